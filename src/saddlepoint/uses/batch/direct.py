r"""Many quadratic problems of one shape, solved directly: one batched factorisation, and a certificate for each.

Problem:    P_b x + A_b y = u_b,  Q_b y - A_b' x = v_b for every b.
Solution:   y = S_b^-1 (v_b + A_b' P_b^-1 u_b) with S_b = Q_b + A_b' P_b^-1 A_b, and x = P_b^-1 (u_b - A_b y). Where it
            is cheaper, y is eliminated instead of x, which is the same with (Q_b, P_b, -A_b') for (P_b, Q_b, A_b).

NumPy's ``linalg`` factorises stacks of matrices without Python between them, which takes a fraction of a loop's time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import Result
from saddlepoint.uses.batch.batch import Batch
from saddlepoint.uses.direct_result import direct_result, matrix_calls

LARGEST = 500  # most variables of a side; larger matrices are not factorised
CHUNK = 1 << 18  # entries of the A_b that are worked on at a time, so that they stay in the cache
REFINEMENTS = 3  # most solutions of a problem, each for the residual of the last


def fits(problems: Sequence[Saddle]) -> bool:
    """Whether the problems can be solved here: quadratic, on NumPy, not too large, without any claims of the caller."""
    return all(
        max(f.shape) <= LARGEST and f.space.is_numpy and all(type(p) is Quadratic and p.trusted for p in (f.g, f.h))
        for f in problems
    )


@np.errstate(all="ignore")  # infinities and NaN are found by later checks
def solve_directly(
    batch: Batch, problems: Sequence[Saddle], tol: float, history: bool, max_seconds: float | None = None
) -> list[Result | None]:
    """The results of the problems; None for those of which no certificate is at most tol.

    Args:
        batch: the problems as one.
        problems: the same, one by one.
        tol: the distance that is to be certified.
        history: whether certificates are recorded.
        max_seconds: after this time, no further factorisation is begun.
    """
    began, limit, (m, n), B = time.perf_counter(), TimeLimit(max_seconds), batch.shape, batch.size
    P, Q = _hessians([f.g for f in problems], m), _hessians([f.h for f in problems], n)
    raw = batch.unscaled
    x, y = raw.space.zeros(B * m), raw.space.zeros(B * n)
    A = raw.A.A  # type: ignore[attr-defined]
    results: list[Result | None] = [None] * B
    calls = matrix_calls(problems[0].g, problems[0].h, batch.shape)  # type: ignore[arg-type]
    left, method_seconds = np.arange(B), 0.0
    for steps in range(1, REFINEMENTS + 1):
        start = time.perf_counter()
        Fx, Fy = (F.reshape(B, -1) for F in raw.field(x.astype(np.float64), y.astype(np.float64)))
        X, Y = x.reshape(B, -1), y.reshape(B, -1)
        for some in np.array_split(left, -(-len(left) * m * n // CHUNK)):
            if limit.is_over:
                break
            try:
                dx, dy = _solved(P[some], Q[some], A[some], Fx[some], Fy[some])
            except np.linalg.LinAlgError:  # a matrix is singular to working precision
                continue
            X[some], Y[some] = X[some] - dx, Y[some] - dy
        method_seconds += time.perf_counter() - start
        certificates = batch.certificates(x, y, tol=tol)
        done = [int(b) for b in left if certificates[b].distance <= tol]
        for b in done:
            results[b] = direct_result(
                problems[b],
                X[b].copy(),
                Y[b].copy(),
                certificates[b],
                steps=steps,
                factorised=calls,
                began=began,
                method_seconds=method_seconds,
                tol=tol,
                history=history,
                note=f"direct, {B} problems solved together",
            )
        left = np.setdiff1d(left, done)
        if not len(left):
            break  # otherwise the residuals of the others are solved for once more
    return results


def _hessians(functions: Sequence[Any], size: int) -> Array:
    """The matrices P_b, of shape (B, size, size), or their diagonals, of shape (B, size)."""
    if isinstance(functions[0].P, Coupling):
        return np.stack([f.P.matrix() for f in functions])
    diagonals = np.empty((len(functions), size), dtype=np.float64)
    for diagonal, f in zip(diagonals, functions, strict=True):
        diagonal[:] = f.P
    return diagonals


def _solved(P: Array, Q: Array, A: Array, u: Array, v: Array) -> tuple[Array, Array]:
    """The x and y with P x + A y = u and Q y - A' x = v, for stacks of problems, in float64."""
    P, Q, A, u, v = (np.asarray(part, dtype=np.float64) for part in (P, Q, A, u, v))
    m, n = A.shape[1:]
    if Q.ndim < P.ndim or (Q.ndim == P.ndim and n > m):  # a diagonal is eliminated first, then the longer vector
        y, x = _eliminated(Q, P, -np.swapaxes(A, 1, 2), v, u)
    else:
        x, y = _eliminated(P, Q, A, u, v)
    return x, y


def _eliminated(P: Array, Q: Array, A: Array, u: Array, v: Array) -> tuple[Array, Array]:
    """The solution by elimination of x."""
    right = np.concatenate((A, u[:, :, None]), axis=2)
    W = right / P[:, :, None] if P.ndim == 2 else np.linalg.solve(P, right)  # P^-1 A, and P^-1 u in the last column
    S = np.swapaxes(A, 1, 2) @ W
    product = S[:, :, -1]
    S = np.ascontiguousarray(S[:, :, :-1])
    if Q.ndim == 2:
        np.einsum("bii->bi", S)[...] += Q
    else:
        S += Q
    y = np.linalg.solve(S, (v + product)[:, :, None])
    x = W[:, :, -1] - (W[:, :, :-1] @ y)[:, :, 0]
    return x, y[:, :, 0]
