"""adaPDM: the length of the next step, from the last two gradients and |A|."""

from __future__ import annotations

import math

THETA = 1.2  # the constant Theta of the method, which must exceed 1


def adapdm_step(step: float, before: float, low: float, high: float, ratio: float, norm: float) -> float:
    """The length gamma of the next primal step; that of the dual step is ratio^2 times it.

    Args:
        step, before: the lengths of the last primal step and of the one before.
        low, high: <dg, dx>/|dx|^2 and |dg|^2/<dg, dx>, where dx and dg are the differences of the last two points and
            gradients; 0 if <dg, dx> is not positive.
        ratio: t, the square root of the dual step divided by the primal step.
        norm: |A|.
    """
    xi = (ratio * step * norm) ** 2
    room = 1.0 - 4.0 * xi
    D = step * low * (step * high - 1.0)
    curvature = 2.0 * (D + math.sqrt(D * D + xi * room))
    allowed = step * math.sqrt(room / curvature) if curvature > 0.0 else math.inf
    growth = step * math.sqrt(1.0 + step / before)
    return min(growth, longest_step(ratio, norm), allowed)


def longest_step(ratio: float, norm: float) -> float:
    """The longest primal step, 1/(2 Theta t |A|); infinite if A = 0."""
    product = 2.0 * THETA * ratio * norm
    return 1.0 / product if product > 0.0 else math.inf
