"""Problems whose solutions are differentiated, and their derivatives in 40 digits.

They are those of public threads about wrong gradients, where they are in the class of this package or nearly so
(`benchmarks/results/layers.md` says what was changed). A reference is a closed formula, or a central difference of
Newton's method on the support of the solution, which this package proves. That needs mpmath.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

import saddlepoint as sp
from saddlepoint.ground.arrays import Array

mp: Any = import_module("mpmath")
DIGITS = 40  # decimal digits of the references
STEP = 1e-15  # of the central differences, whose error is about its square
VARIABLES = 30  # of the quadratic programs
BOX = 0.2  # all variables are from -BOX to BOX
MARGIN, HEAT = 6, 0.5  # rows and columns of Sinkhorn's matrix, and the weight of its entropy
RIDGE, WEIGHT = 0.01, 0.05  # multiples of |x|^2/2 and of the l1 norm in logistic regression
ACCURATE = 1e-10  # certified distance of the points whose support is read


# -- data --------------------------------------------------------------------------------------------------------------


def quadratic(n: int, spread: float = 1.0) -> tuple[Array, Array, Array]:
    """The data P, p and v of threads 67 and 70 of cvxpylayers: x'P x/2 - <p, x>, and the derivative of <v, x>."""
    rng = np.random.default_rng(0)
    L = rng.standard_normal((n, n)) / np.sqrt(n)
    scale = np.where(np.arange(n) < n // 2, 1.0 / spread, spread)
    P = (L @ L.T) * np.outer(scale, scale) + np.eye(n)
    return P, rng.standard_normal(n), rng.standard_normal(n)


def quadratic_of(name: str) -> tuple[Array, Array, Array]:
    """The data of the quadratic program with this name."""
    return quadratic(VARIABLES, 10.0 if name == "spread box QP" else 1.0)


def direction() -> Array:
    """The direction along which p of the quadratic programs is changed."""
    return np.random.default_rng(9).standard_normal(VARIABLES)


def logistic() -> tuple[Array, Array, Array]:
    """The data, labels and v of thread 85: logistic regression, differentiated by the weight of the l1 norm."""
    rng = np.random.default_rng(0)
    D = rng.standard_normal((40, 10))
    labels = np.sign(D[:, 0] - D[:, 1] + 0.5 * rng.standard_normal(40))
    return D, labels, rng.standard_normal(10)


def sinkhorn() -> tuple[Array, Array, Array]:
    """Costs of thread 120, the direction in which they change, and the weights of the entries that are added up."""
    rng = np.random.default_rng(0)
    return rng.random((MARGIN, MARGIN)), rng.standard_normal((MARGIN, MARGIN)), rng.standard_normal((MARGIN, MARGIN))


# -- supports of the solutions -----------------------------------------------------------------------------------------


def proven(g: sp.Smooth, n: int) -> sp.Result:
    """An accurate minimiser of g, every coordinate of which is proven to be at a bound or zero, or off it."""
    result = sp.solve(sp.Saddle(g, sp.Quadratic(1.0), np.zeros((n, 1))), tol=ACCURATE)
    assert not np.any(result.support_x == sp.Support.UNDECIDED)
    return result


def off_bounds(result: sp.Result) -> Array:
    """The coordinates that are proven to be off all bounds and zero."""
    return np.flatnonzero(result.support_x == sp.Support.OFF)


# -- references --------------------------------------------------------------------------------------------------------


def central_difference(function: Callable[[Any], Any], at: float) -> float:
    """The derivative of a function of one number."""
    x, h = mp.mpf(repr(at)), mp.mpf(STEP)
    return float((function(x + h) - function(x - h)) / (2 * h))


def solved(matrix: Sequence[Sequence[Any]], right: Sequence[Any]) -> Any:
    """The solution of a system of linear equations, in many digits."""
    return mp.lu_solve(mp.matrix(matrix), mp.matrix(right))


def of_box(name: str) -> float:
    """A quadratic program in a box: the free variables solve linear equations."""
    P, p, v = quadratic_of(name)
    d = direction()
    result = proven(sp.Quadratic(P, -p) + sp.Box(-BOX, BOX), VARIABLES)
    free, fixed = off_bounds(result), np.flatnonzero(result.support_x != sp.Support.OFF)
    ends = np.where(result.support_x == sp.Support.LOWER, -BOX, BOX)

    def moved(t: Any) -> Any:
        right = [mp.mpf(p[i]) + t * d[i] - sum(mp.mpf(P[i, j]) * ends[j] for j in fixed) for i in free]
        x = solved(P[np.ix_(free, free)].tolist(), right)
        return sum(x[k] * v[i] for k, i in enumerate(free))

    return central_difference(moved, 0.0)


def of_l1_ball() -> float:
    """A quadratic program in an l1 ball: the free variables and the multiplier of its face solve linear equations."""
    P, p, v = quadratic_of("l1 ball QP")
    d = direction()
    result = proven(sp.Quadratic(P, -p) + sp.Ball(1.0, 1), VARIABLES)
    assert abs(np.abs(result.x).sum() - 1.0) < 10.0 * ACCURATE
    free = off_bounds(result)
    sign = np.sign(result.x[free])
    rows = [[mp.mpf(P[i, j]) for j in free] + [mp.mpf(s)] for i, s in zip(free, sign, strict=True)]
    face = [*rows, [mp.mpf(s) for s in sign] + [mp.mpf(0)]]

    def moved(t: Any) -> Any:  # P x + multiplier sign = p + t d and <sign, x> = 1
        x = solved(face, [mp.mpf(p[i]) + t * d[i] for i in free] + [mp.mpf(1)])
        return sum(x[k] * v[i] for k, i in enumerate(free))

    return central_difference(moved, 0.0)


def of_logistic() -> float:
    """Sparse logistic regression: the weights that are not zero, by Newton's method."""
    D, labels, v = logistic()
    result = proven(sp.Logistic(D, labels, RIDGE) + sp.L1(WEIGHT), D.shape[1])
    free = off_bounds(result)
    sign = np.sign(result.x[free])
    Df = mp.matrix((labels[:, None] * D[:, free]).tolist())
    rows, columns = range(Df.rows), range(Df.cols)

    def newton_step(x: Any, weight: Any) -> Any:
        r = Df * x
        s = [1 / (1 + mp.exp(r[i])) for i in rows]
        gradient = [
            -sum(s[i] * Df[i, j] for i in rows) / Df.rows + x[j] * mp.mpf(repr(RIDGE)) + weight * sign[j]
            for j in columns
        ]
        hessian = [
            [sum(s[i] * (1 - s[i]) * Df[i, j] * Df[i, k] for i in rows) / Df.rows for k in columns] for j in columns
        ]
        for j in columns:
            hessian[j][j] += mp.mpf(repr(RIDGE))
        return x - solved(hessian, gradient)

    def weighted(weight: Any) -> Any:
        x = mp.matrix(Df.cols, 1)
        for _ in range(60):
            x = newton_step(x, weight)
        return sum(x[j] * v[free[j]] for j in columns)

    return central_difference(weighted, WEIGHT)


def of_softmax() -> float:
    """Linear gains with an entropy on probabilities: the formula of the softmax."""
    p = np.exp(np.array([0.7, 0.2]) / 0.3)
    p /= p.sum()
    return float(-p[0] * p[1] / 0.3)


def of_sinkhorn() -> float:
    """The nonnegative matrix with rows and columns of sum 1 that is nearest to costs: its potentials, by Newton."""
    C, direction, v = sinkhorn()
    n, heat = MARGIN, mp.mpf(repr(HEAT))

    def matrix(z: Any, t: Any) -> Any:
        """exp((a_i + b_j - C_ij)/heat - 1), where the last b is 0."""
        b = [*z[n:], mp.mpf(0)]
        costs = [[mp.mpf(C[i, j]) + t * mp.mpf(direction[i, j]) for j in range(n)] for i in range(n)]
        return [[mp.exp((z[i] + b[j] - costs[i][j]) / heat - 1) for j in range(n)] for i in range(n)]

    def moved(t: Any) -> Any:
        z = [heat * (1 - mp.log(n)) + mp.mpf(0)] * n + [mp.mpf(0)] * (n - 1)
        for _ in range(60):
            X = matrix(z, t)
            rows = [sum(row) for row in X]
            columns = [sum(X[i][j] for i in range(n)) for j in range(n - 1)]
            top = [[rows[i] if i == k else mp.mpf(0) for k in range(n)] + X[i][: n - 1] for i in range(n)]
            low = [
                [X[i][j] for i in range(n)] + [columns[j] if j == k else mp.mpf(0) for k in range(n - 1)]
                for j in range(n - 1)
            ]
            step = solved([*top, *low], [1 - r for r in rows] + [1 - c for c in columns])
            z = [z[k] + heat * step[k] for k in range(2 * n - 1)]
        X = matrix(z, t)
        return sum(X[i][j] * mp.mpf(v[i, j]) for i in range(n) for j in range(n))

    return central_difference(moved, 0.0)


def of_log_barrier() -> float:
    """The largest x + w (log(1 + x) + log(1 - x)), by w at w = 1."""
    return float(-1 + 1 / mp.sqrt(2))


REFERENCES: dict[str, Callable[[], float]] = {
    "box QP": lambda: of_box("box QP"),
    "l1 ball QP": of_l1_ball,
    "spread box QP": lambda: of_box("spread box QP"),
    "l1 logistic": of_logistic,
    "log barrier": of_log_barrier,
    "softmax": of_softmax,
    "Sinkhorn's matrix": of_sinkhorn,
}


def reference(name: str) -> float:
    """The derivative for the problem with this name."""
    mp.mp.dps = DIGITS
    return REFERENCES[name]()
