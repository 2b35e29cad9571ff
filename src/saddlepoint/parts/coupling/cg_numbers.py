"""What a step of conjugate gradients looks at, on whichever device its vectors are."""

from __future__ import annotations

from typing import NamedTuple


class Numbers(NamedTuple):
    """The product <d, M d> of the last step, |r|^2, and the square of the distance from the origin."""

    curvature: float
    rr: float
    moved: float
