"""The numbers by which conjugate gradients decide whether to stop, for vectors on any device."""

from __future__ import annotations

from typing import NamedTuple


class Numbers(NamedTuple):
    """Numbers after a step of conjugate gradients.

    Attributes:
        curvature: <d, M d> for the direction d of the step and the matrix M.
        rr: |r|^2 for the residual r.
        moved: the square of the distance from the origin.
    """

    curvature: float
    rr: float
    moved: float
