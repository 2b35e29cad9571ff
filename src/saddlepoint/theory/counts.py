"""Numbers of steps as theorems give them, where they can be too large to be written down."""

from __future__ import annotations

MOST = 1e18  # stands for every larger number of steps: no run makes as many


def countable(steps: float) -> float:
    """``steps``, but ``MOST`` where that is more, or where a formula has left the finite numbers."""
    return steps if steps < MOST else MOST
