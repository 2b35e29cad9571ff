"""Methods around another method: ``Catalyst(DIPPA())`` and ``Anderson("lpd-gs")`` are two."""
