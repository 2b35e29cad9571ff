"""The largest eigenvalue of a positive semidefinite operator: a quick estimate, or an upper bound.

The bound holds with a stated probability. The estimate takes about a sixth of the products, and no probability is
stated for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal
from scipy.linalg.lapack import dstev

from saddlepoint.ground.arrays import NUMPY64, Array, Space
from saddlepoint.ground.linalg import inner, norm

MARGIN = 0.05  # relative width of the bound on the eigenvalue
FAILURE = 1e-8  # probability with which the bound may be too small
QUICK = 4  # steps before a quick estimate first computes its residual
GUARD = 1.01  # factor by which a quick estimate is larger than Ritz value and residual together
UNPROVEN = 1.0  # the probability of failure that is stated for a quick estimate
KEPT = 4096  # most entries of a random start that is kept for the next call: drawing it takes longer than using it


class Eigenvalue(NamedTuple):
    """Bounds: ``lower <= lambda_max`` always, ``lambda_max <= upper`` with probability at least ``1 - failure``.

    With ``failure`` = UNPROVEN, ``upper`` is a quick estimate.
    """

    lower: float
    upper: float
    failure: float
    products: int


def lanczos_steps(n: int, margin: float = MARGIN, failure: float = FAILURE) -> int:
    """Lanczos steps after which ``ritz / (1 - margin)`` is an upper bound with probability at least ``1 - failure``.

    Kuczynski and Wozniakowski (1992), Theorem 4.2: from a start that is uniform on the sphere,
    P[(lambda - ritz_k)/lambda > margin] <= 1.648 sqrt(n) exp(-sqrt(margin) (2k - 1)).
    """
    return max(1, math.ceil((math.log(1.648 * math.sqrt(n) / failure) / math.sqrt(margin) + 1.0) / 2.0))


@np.errstate(over="ignore", invalid="ignore")  # a product that overflows ends the iteration, without a bound
def largest_eigenvalue(
    apply: Callable[[Array], Array],
    n: int,
    *,
    space: Space = NUMPY64,
    margin: float = MARGIN,
    failure: float = FAILURE,
    seed: int = 0,
    quick: bool = False,
) -> Eigenvalue:
    """The largest eigenvalue of the positive semidefinite map ``apply`` of R^n, by Lanczos from a random start.

    A ``quick`` estimate ends when the residual of the largest Ritz value is within the margin: some eigenvalue is that
    close to it, and it is rarely another one than the largest.

    Only the three-term recurrence is kept, without reorthogonalisation: rounding may repeat Ritz values that have
    converged, but adds none above the spectrum. The iteration ends early where it has found an invariant subspace, and
    then the value is exact with probability one.
    """
    unit = space.eps
    v = _kept_draw(n, seed) if space.is_numpy and n <= KEPT else _draw(n, seed)
    v = space.cast(v)
    v = v / norm(v)
    previous = 0.0 * v
    diagonal: list[float] = []
    off: list[float] = []
    exact = False
    for _ in range(lanczos_steps(n, margin, failure)):
        u = apply(v)
        diagonal.append(inner(u, v))
        u = u - diagonal[-1] * v - (off[-1] if off else 0.0) * previous
        beta = norm(u)
        if not math.isfinite(beta):
            return Eigenvalue(math.nan, math.inf, failure, len(diagonal))
        if beta <= 8 * unit * max(map(abs, diagonal)):
            exact = True
            break
        off.append(beta)
        previous, v = v, u / beta
        if quick and len(diagonal) >= QUICK:
            ritz, residual = _largest_pair(diagonal, off)
            if residual <= margin * ritz:
                return Eigenvalue(ritz, GUARD * (ritz + residual), UNPROVEN, len(diagonal))
    products = len(diagonal)
    ritz = float(eigvalsh_tridiagonal(np.array(diagonal), np.array(off[: products - 1]))[-1])
    rounding = 1.0 + 16 * unit * products
    upper = ritz * rounding / (1.0 if exact else 1.0 - margin)
    return Eigenvalue(max(ritz, 0.0), max(upper, 0.0), failure, products)


def _draw(n: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(n)


@lru_cache(maxsize=16)
def _kept_draw(n: int, seed: int) -> Array:
    draw = _draw(n, seed)
    draw.setflags(write=False)
    return draw


def _largest_pair(diagonal: list[float], off: list[float]) -> tuple[float, float]:
    """The largest Ritz value and the length of its residual."""
    values, vectors, _ = dstev(diagonal, off[:-1])
    return float(values[-1]), off[-1] * abs(float(vectors[-1, -1]))


def largest_of_starts(
    apply: Callable[[Array], Array],
    n: int,
    starts: int,
    space: Space = NUMPY64,
    margin: float = MARGIN,
    seed: int = 0,
) -> Eigenvalue:
    """The largest eigenvalue by Lanczos from several starts at once.

    It is meant for a map that costs little more for a NumPy matrix of vectors than for one vector. The starts are
    independent, so the probability that all of them fail is the product of their probabilities. Each of them may
    therefore fail with probability FAILURE^(1/starts), which takes fewer steps. ``products`` counts single vectors.
    """
    unit = space.eps
    steps = lanczos_steps(n, margin, FAILURE ** (1.0 / starts))
    V = space.cast(np.random.default_rng(seed).standard_normal((n, starts)))
    V = V / np.linalg.norm(V, axis=0)
    previous, off = 0.0 * V, [np.zeros(starts, space.dtype)]
    diagonal: list[Array] = []
    exact = False
    while len(diagonal) < steps and not exact:
        U = apply(V)
        diagonal.append(np.einsum("ij,ij->j", U, V))
        U = U - diagonal[-1] * V - off[-1] * previous
        beta = np.linalg.norm(U, axis=0)
        if not np.isfinite(beta).all():
            return Eigenvalue(math.nan, math.inf, FAILURE, len(diagonal) * starts)
        exact = bool((beta <= 8 * unit * np.max(np.abs(diagonal), axis=0)).any())
        off.append(beta)
        previous, V = V, U / np.where(beta > 0.0, beta, 1.0)
    bands = zip(np.transpose(diagonal), np.transpose(off[1:-1]) if len(diagonal) > 1 else [[]] * starts, strict=True)
    ritz = max(float(eigvalsh_tridiagonal(d, e)[-1]) for d, e in bands)
    upper = ritz * (1.0 + 16 * unit * len(diagonal)) / (1.0 if exact else 1.0 - margin)
    return Eigenvalue(max(ritz, 0.0), max(upper, 0.0), FAILURE, len(diagonal) * starts)
