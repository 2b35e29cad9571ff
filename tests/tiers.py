"""Parametrised tests of which `make check` runs a part."""

import pytest


def slow_except(values, *quick):
    """Values for ``pytest.mark.parametrize``: all of them are marked slow but the quick ones."""
    values = list(values)
    assert set(quick) <= set(values), f"{sorted(set(quick) - set(values))} are not among the values"
    return [value if value in quick else pytest.param(*_arguments(value), marks=pytest.mark.slow) for value in values]


def _arguments(value):
    return value if isinstance(value, tuple) else (value,)
