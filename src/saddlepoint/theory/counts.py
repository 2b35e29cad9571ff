"""A limit for the numbers of steps that theorems give, which can be too large for an integer."""

from __future__ import annotations

MOST = 1e18  # largest number of steps that is returned


def countable(steps: float) -> float:
    """The number ``steps``, or ``MOST`` if it is larger, infinite or NaN."""
    return steps if steps < MOST else MOST
