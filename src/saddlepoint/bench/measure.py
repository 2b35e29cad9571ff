"""Count what a method needs on the chain that is hardest for first-order methods."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import block_array
from scipy.sparse.linalg import spsolve

from saddlepoint.driver import solve
from saddlepoint.functions import Quadratic
from saddlepoint.generators import chain
from saddlepoint.methods.base import Method, make_method
from saddlepoint.problem import Saddle


class Measurement(NamedTuple):
    """What one run took. ``calls`` is the busiest of the four oracles: the number of queries it cannot do without."""

    method: str
    kx: float
    ky: float
    coupling: float
    solved: bool
    calls: int
    gradients: int  # of g and h together
    products: int  # with A and A' together
    seconds: float


def chain_length(kx: float, ky: float, coupling: float, tol: float) -> int:
    """Long enough that the far end of the chain is still below ``tol`` in the solution."""
    decay = 2.0 / math.sqrt(kx + ky + coupling**2 + 1.0)
    return max(20, math.ceil(1.5 * math.log(1.0 / tol) / decay))


def measure(
    method: str | Method, kx: float, ky: float, coupling: float, tol: float, max_seconds: float = 60.0
) -> Measurement:
    """Run ``method`` on the chain until the certified distance is ``tol`` times the solution's norm."""
    f = chain(chain_length(kx, ky, coupling, tol), kx, ky, coupling)
    result = solve(f, method=method, tol=tol * solution_norm(f), max_seconds=max_seconds, history=False)
    label = method if isinstance(method, str) else method.label
    calls = result.calls
    return Measurement(
        label,
        kx,
        ky,
        coupling,
        result.solved,
        max(calls.values()),
        calls["grad_g"] + calls["grad_h"],
        calls["A"] + calls["At"],
        result.seconds,
    )


def solution_norm(f: Saddle) -> float:
    """|(x*, y*)| of a sparse quadratic problem, by a direct solve."""
    g, h, A = f.g, f.h, f.A.A  # type: ignore[attr-defined]
    assert isinstance(g, Quadratic)
    assert isinstance(h, Quadratic)
    b = [-(np.zeros(size) if q.b is None else q.b) for q, size in zip((g, h), f.shape, strict=True)]
    matrix = block_array([[g.P.A, A], [-A.T, h.P.A]], format="csc")  # type: ignore[union-attr]
    return float(np.linalg.norm(spsolve(matrix, np.concatenate(b))))


def gradient_methods() -> list[str]:
    """The registered methods that need no prox."""
    from saddlepoint.methods.base import methods

    return [info.name for info in methods() if make_method(info.name).oracle == "gradients"]
