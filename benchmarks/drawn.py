"""Problems drawn at random for `benchmarks/fresh.py`: functions written by hand as users write them, and ready ones.

One seed is one problem. Sizes are between 10 and 3000, mu between 1e-6 and 1, |A|/sqrt(L_x L_y) between 1e-3 and 1e3,
all of them even on a logarithmic scale. Problems with simple terms, `draw_with_terms`, have sizes up to 600, mu from
1e-4 and |A|/sqrt(L_x L_y) between 1e-2 and 1e2, and a random term on one side or on both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, random_array
from scipy.sparse.linalg import LinearOperator, aslinearoperator, svds

import saddlepoint as sp
from saddlepoint.ground.arrays import Array

Rng = np.random.Generator
Make = Callable[[], sp.Smooth]  # a new object each time, so that no run profits from an earlier one
SAFE = 1.02  # factor that makes an estimated largest singular value an upper bound
FULL = 1.5e6  # entries up to which A is a dense array


class Problem(NamedTuple):
    """A problem: `make()` returns it as a new object."""

    seed: int
    make: Callable[[], sp.Saddle]
    words: str
    own: bool  # at least one function is written by hand
    quadratic: bool  # both functions are known to be quadratic


class Function(NamedTuple):
    """A function g or h."""

    make: Make
    mu: float
    L: float
    words: str
    own: bool = True
    quadratic: bool = False


def largest(M: Any) -> float:
    """About the largest singular value."""
    if min(M.shape) <= 200 and isinstance(M, np.ndarray):
        return float(np.linalg.norm(M, 2))
    return float(svds(M, k=1, return_singular_vectors=False, random_state=0, tol=1e-3)[0])


def data(rng: Rng, size: int) -> tuple[Array, float]:
    """Rows of data with columns of different scales, and the largest eigenvalue of D'D/N."""
    rows = int(size * rng.uniform(1.0, 2.5)) + 5
    D = rng.standard_normal((rows, size)) * np.geomspace(1.0, 10.0 ** -rng.uniform(0.0, 2.0), size)
    return D, (SAFE * largest(D)) ** 2 / rows


# -- functions written by hand ----------------------------------------------------------------------------------------


def elementwise(name: str, slope: Callable[[Array], Array], curvature: float) -> Callable[[Rng, int, float], Function]:
    """The kind of function whose gradient is slope((v - t)/s) + mu v; slope has at most this curvature."""

    def draw(rng: Rng, size: int, mu: float) -> Function:
        t, s = rng.standard_normal(size) * 10.0 ** rng.uniform(-1.0, 1.0), 10.0 ** rng.uniform(-1.0, 1.0)
        L = curvature / s + mu
        return Function(lambda: sp.Smooth(lambda v: slope((v - t) / s) + mu * v, mu=mu, L=L), mu, L, f"own {name}")

    return draw


def own_diagonal(rng: Rng, size: int, mu: float) -> Function:
    """A quadratic function with a diagonal Hessian."""
    d = mu * 10.0 ** rng.uniform(0.0, rng.uniform(0.5, 5.0), size)
    d[0], t = mu, rng.standard_normal(size)
    L, declared = float(d.max()), bool(rng.random() < 0.5)  # some users declare that their function is quadratic
    make = lambda: sp.Smooth(lambda v: d * v - t, mu=mu, L=L, quadratic=declared)  # noqa: E731
    return Function(make, mu, L, "own diagonal quadratic", quadratic=declared)


def own_quadratic(rng: Rng, size: int, mu: float) -> Function:
    """Least squares with a ridge."""
    D, top = data(rng, size)
    rows, b = D.shape[0], rng.standard_normal(size)
    make = lambda: sp.Smooth(lambda v: D.T @ (D @ v) / rows + mu * v - b, mu=mu, L=top + mu)  # noqa: E731
    return Function(make, mu, top + mu, "own least squares")


def own_logistic(rng: Rng, size: int, mu: float) -> Function:
    """Logistic regression with a ridge."""
    D, top = data(rng, size)
    D *= np.sign(rng.standard_normal(D.shape[0]))[:, None]
    rows, L = D.shape[0], 0.25 * top + mu
    make = lambda: sp.Smooth(  # noqa: E731
        lambda v: -D.T @ (0.5 - 0.5 * np.tanh(0.5 * (D @ v))) / rows + mu * v, mu=mu, L=L
    )
    return Function(make, mu, L, "own logistic")


def own_neighbours(rng: Rng, size: int, mu: float) -> Function:
    """A smoothed total variation: neighbours are pulled together."""
    t, s = rng.standard_normal(size), 10.0 ** rng.uniform(-1.0, 1.0)
    L = 4.0 / s + mu

    def gradient(v: Array) -> Array:
        pull = np.tanh(np.diff(v) / s)
        return mu * (v - t) + np.concatenate(([0.0], pull)) - np.concatenate((pull, [0.0]))

    return Function(lambda: sp.Smooth(gradient, mu=mu, L=L), mu, L, "own total variation")


# -- ready functions --------------------------------------------------------------------------------------------------


def ready_quadratic(rng: Rng, size: int, mu: float) -> Function:
    """A quadratic function with a number, a diagonal or a dense matrix."""
    b = rng.standard_normal(size)
    form = rng.choice(["number", "diagonal", "dense"])
    if form == "number":
        top = mu * 10.0 ** rng.uniform(0.0, 1.0)
        return Function(lambda: sp.Quadratic(top, b), top, top, "Quadratic, number", own=False, quadratic=True)
    if form == "diagonal" or size > 1000:
        d = mu * 10.0 ** rng.uniform(0.0, rng.uniform(0.5, 5.0), size)
        d[0] = mu
        return Function(lambda: sp.Quadratic(d, b), mu, float(d.max()), "Quadratic, diagonal", False, True)
    D, top = data(rng, size)
    P = D.T @ D / D.shape[0] + mu * np.eye(size)
    return Function(lambda: sp.Quadratic(P, b), mu, top + mu, "Quadratic, dense", own=False, quadratic=True)


def ready_risk(rng: Rng, size: int, mu: float) -> Function:
    """A risk with one of the ready-made losses."""
    D, top = data(rng, size)
    t, labels = (
        D @ rng.standard_normal(size) + rng.standard_normal(D.shape[0]),
        np.sign(rng.standard_normal(D.shape[0])),
    )
    kind = rng.choice(["LeastSquares", "Logistic", "Huber", "LogCosh", "SmoothedHinge"])
    target = labels if kind in ("Logistic", "SmoothedHinge") else t
    curvature = 0.25 if kind == "Logistic" else 1.0
    make = lambda: getattr(sp, kind)(D, target, l2=mu)  # noqa: E731
    return Function(make, mu, curvature * top + mu, str(kind), own=False, quadratic=kind == "LeastSquares")


KINDS: dict[str, list[Callable[[Rng, int, float], Function]]] = {
    "own": [
        elementwise("log-cosh", np.tanh, 1.0),
        elementwise("Huber", lambda u: np.clip(u, -1.0, 1.0), 1.0),
        elementwise("softplus", lambda u: 0.5 + 0.5 * np.tanh(0.5 * u), 0.25),
        elementwise("pseudo-Huber", lambda u: u / np.sqrt(1.0 + u * u), 1.0),
        elementwise("arctan", np.arctan, 1.0),
        elementwise("one-sided square", lambda u: np.maximum(u, 0.0), 1.0),
        own_diagonal,
        own_quadratic,
        own_logistic,
        own_neighbours,
    ],
    "ready": [ready_quadratic, ready_quadratic, ready_risk, ready_risk],
}


# -- A ----------------------------------------------------------------------------------------------------------------


def matrix(rng: Rng, m: int, n: int) -> tuple[Any, str]:
    """A of one of several kinds, and its name."""
    kind = rng.choice(["dense", "dense", "decaying", "zeros", "sparse", "sparse", "chain", "operator"])
    if kind == "chain":
        return diags_array([np.ones(min(m, n)), -np.ones(min(m, n))], offsets=[0, 1], shape=(m, n)).tocsr(), kind
    if kind == "sparse" or m * n > FULL:
        density = min(1.0, rng.uniform(2.0, 20.0) / n)
        return csr_array(random_array((m, n), density=density, rng=rng, data_sampler=rng.standard_normal)), "sparse"
    A = rng.standard_normal((m, n))
    if kind == "decaying":
        A *= np.geomspace(1.0, 10.0 ** -rng.uniform(0.0, 4.0), n)
    if kind == "zeros":
        A[rng.random((m, n)) < 0.8] = 0.0
    return (aslinearoperator(A), kind) if kind == "operator" else (A, str(kind))


# -- simple terms -----------------------------------------------------------------------------------------------------


def group_labels(rng: Rng, size: int) -> Array:
    """Groups of neighbours, of one to eight coordinates each."""
    return np.repeat(np.arange(size), rng.integers(1, 9, size))[:size]


TERMS: dict[str, Callable[[Rng, int, float], sp.Simple]] = {  # of a size and a scale of weights or bounds
    "l1": lambda rng, n, scale: sp.L1(scale * rng.uniform(0.0, 1.0, n) if rng.random() < 0.3 else scale),
    "box": lambda rng, n, scale: sp.Box(-scale * rng.uniform(0.0, 1.0, n), scale),
    "nonnegative": lambda rng, n, scale: sp.NonNegative(),
    "l1 and box": lambda rng, n, scale: sp.L1(scale) + sp.Box(-rng.uniform(0.1, 2.0), rng.uniform(0.1, 2.0)),
    "simplex": lambda rng, n, scale: sp.Simplex(10.0 * scale),
    "ball": lambda rng, n, scale: sp.Ball(10.0 * scale, norm=[1, 2, "inf"][rng.integers(3)]),
    "norm": lambda rng, n, scale: sp.Norm2(math.sqrt(n) * scale),
    "groups": lambda rng, n, scale: sp.Groups(group_labels(rng, n), scale),
    "sparse groups": lambda rng, n, scale: sp.Groups(group_labels(rng, n), scale) + sp.L1(0.3 * scale),
    "plane": lambda rng, n, scale: sp.Hyperplane(rng.standard_normal(n), scale),
    "blocks": lambda rng, n, scale: sp.Blocks({(0, n // 2): sp.Simplex(), (n // 2, n): sp.L1(scale)}),
}


def draw_with_terms(seed: int) -> Problem:
    """The problem of a seed, with a simple term on one side or on both."""
    rng = np.random.default_rng((seed, 1))
    plain = drawn(seed, rng, 600.0, 1e-4, 2.0)
    sizes = plain.make().shape
    terms: list[sp.Simple | None] = []
    words = []
    for size, there in zip(sizes, [(True, True), (True, False), (False, True)][rng.integers(3)], strict=True):
        kind = str(rng.choice(list(TERMS)))
        scale = 10.0 ** rng.uniform(-2.0, 0.5)
        terms.append(TERMS[kind](rng, size, scale) if there else None)
        words.append(f"{kind} {scale:.1e}" if there else "no term")

    def make() -> sp.Saddle:
        f = plain.make()
        g, h = (side if term is None else side + term for side, term in zip((f.g, f.h), terms, strict=True))
        return sp.Saddle(g, h, f.A)

    return plain._replace(make=make, words=f"{plain.words}; {words[0]}, {words[1]}")


def draw(seed: int) -> Problem:
    """The problem of a seed."""
    return drawn(seed, np.random.default_rng(seed), 3000.0, 1e-6, 3.0)


def drawn(seed: int, rng: Rng, largest_size: float, least_mu: float, powers: float) -> Problem:
    """A problem with sizes from 10 to the largest, mu from the least to 1, and |A|/L within so many powers of ten."""
    m, n = (round(10.0 ** rng.uniform(1.0, math.log10(largest_size))) for _ in range(2))
    sides = rng.choice(["own", "own", "ready", "ready", "one each"])
    wanted = ("own", "ready") if sides == "one each" else (str(sides), str(sides))
    if rng.random() < 0.5:
        wanted = wanted[::-1]
    functions = []
    for kind, size in zip(wanted, (m, n), strict=True):
        maker = KINDS[kind][rng.integers(len(KINDS[kind]))]
        functions.append(maker(rng, size, 10.0 ** rng.uniform(math.log10(least_mu), 0.0)))
    g, h = functions
    A, name = matrix(rng, m, n)
    strength = 10.0 ** rng.uniform(-powers, powers)
    norm = largest(A if not isinstance(A, LinearOperator) else A.A) or 1.0
    factor = strength * math.sqrt(g.L * h.L) / norm
    A = aslinearoperator(A.A * factor) if isinstance(A, LinearOperator) else A * factor
    words = (
        f"{m} x {n}, {g.words} against {h.words}, A {name}, kx {g.L / g.mu:.0e}, ky {h.L / h.mu:.0e}, "
        f"|A|/L {strength:.1e}"
    )
    return Problem(seed, lambda: sp.Saddle(g.make(), h.make(), A), words, g.own or h.own, g.quadratic and h.quadratic)
