"""Parametrised tests of which `make check` runs a part."""

import pytest


def slow_except(values, *quick):
    """Values for ``pytest.mark.parametrize``: all of them are marked slow but the quick ones."""
    values = list(values)
    assert set(quick) <= set(values), f"{sorted(set(quick) - set(values))} are not among the values"
    return [value if value in quick else pytest.param(*_arguments(value), marks=pytest.mark.slow) for value in values]


def thinned(firsts, seconds, quick=(), every=3):
    """Pairs for ``pytest.mark.parametrize``: each first value with one of ``every`` second ones, and the other way.

    The quick ones, which may be among the first or the second values, meet all others. All other pairs are marked slow.
    """
    return [
        (first, second) if first in quick or second in quick else pytest.param(first, second, marks=pytest.mark.slow)
        for i, first in enumerate(firsts)
        for j, second in enumerate(seconds)
        if first in quick or second in quick or (i + j) % every == 0
    ]


def _arguments(value):
    return value if isinstance(value, tuple) else (value,)
