"""Methods that wrap another method, such as ``Catalyst(DIPPA())`` and ``Anderson("lpd-gs")``."""
