"""Problems with simple terms whose saddle point is known exactly.

A point x of the domain and a subgradient s of the term there are drawn in numbers of few digits, such as 3, 4 and 5,
whose Euclidean norms are whole numbers too. With whole numbers in A and in the Hessians, the linear terms that make
(x, y) the saddle point are exact in floating-point arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import saddlepoint as sp

ACTIVE = ("mixed", "all", "none", "nearly")  # which coordinates are at a bound or at zero at the solution
SIZE = 12  # variables of each player

Draw = Callable[[np.random.Generator, str, float], tuple[Any, np.ndarray, np.ndarray]]


def bound(rng: np.random.Generator, active: str, n: int = SIZE) -> np.ndarray:
    """Which of n coordinates, or groups of them, are at a bound or at zero."""
    share = {"mixed": 0.5, "all": 1.0, "none": 0.0, "nearly": 0.5}[active]
    return rng.random(n) < share


def slack(rng: np.random.Generator, active: str, near: float, n: int = SIZE) -> np.ndarray:
    """Numbers from 0 to 1 by which subgradients are inside their range; tiny where coordinates are nearly active."""
    if active == "nearly":
        return rng.choice([0.0, near, 2.0 * near], n)
    return rng.choice([0.0, 0.25, 0.5, 1.0], n)


def l1(rng: np.random.Generator, active: str, near: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """2 |x|_1: at zero the subgradient is between -2 and 2."""
    zero, sign = bound(rng, active), rng.choice([-1.0, 1.0], SIZE)
    x = np.where(zero, 0.0, sign * rng.choice([0.5, 1.0, 3.0], SIZE))
    return sp.L1(2.0), x, 2.0 * sign * np.where(zero, 1.0 - slack(rng, active, near), 1.0)


def box(rng: np.random.Generator, active: str, near: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """-1 <= x <= 2."""
    at, sign = bound(rng, active), rng.choice([-1.0, 1.0], SIZE)
    x = np.where(at, np.where(sign > 0.0, 2.0, -1.0), rng.choice([-0.5, 0.0, 1.5], SIZE))
    return sp.Box(-1.0, 2.0), x, np.where(at, sign * slack(rng, active, near), 0.0)


def nonnegative(rng: np.random.Generator, active: str, near: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """x >= 0."""
    at = bound(rng, active)
    x = np.where(at, 0.0, rng.choice([0.5, 1.0, 4.0], SIZE))
    return sp.NonNegative(), x, np.where(at, -slack(rng, active, near), 0.0)


def simplex(rng: np.random.Generator, active: str, near: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """x >= 0 with the sum 4."""
    at = bound(rng, active)
    at[rng.integers(SIZE)] = False
    free = np.flatnonzero(~at)
    x = np.zeros(SIZE)
    x[free] = 0.25
    x[free[0]] += 4.0 - x.sum()
    return sp.Simplex(4.0), x, np.where(at, 1.0 - slack(rng, active, near), 1.0)


def l1_ball(rng: np.random.Generator, active: str, near: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """|x|_1 <= 4."""
    _, x, s = simplex(rng, active, near)
    sign = rng.choice([-1.0, 1.0], SIZE)
    if active == "none":  # inside the ball, where the subgradient is 0
        return sp.Ball(4.0, norm=1), 0.5 * sign * x, 0.0 * s
    return sp.Ball(4.0, norm=1), sign * x, sign * np.maximum(s, 0.0)


def groups_of(rng: np.random.Generator) -> np.ndarray:
    """Six vectors of length 5 in the plane."""
    return np.array([rng.permutation([3.0, 4.0]) * rng.choice([-1.0, 1.0], 2) for _ in range(SIZE // 2)])


PAIRS = [[2 * k, 2 * k + 1] for k in range(SIZE // 2)]


def groups(rng: np.random.Generator, active: str, near: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """5 times the sum of the norms of six pairs."""
    zero, v = bound(rng, active, SIZE // 2)[:, None], groups_of(rng)
    x = np.where(zero, 0.0, v * rng.choice([0.5, 1.0, 2.0], (SIZE // 2, 1)))
    s = v * np.where(zero, 1.0 - slack(rng, active, near, SIZE // 2)[:, None], 1.0)
    return sp.Groups(PAIRS, 5.0), x.ravel(), s.ravel()


def group_balls(rng: np.random.Generator, active: str, near: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """Six pairs whose norms are at most 5, as in the dual of total variation."""
    at, v = bound(rng, active, SIZE // 2)[:, None], groups_of(rng)
    x = np.where(at, v, 0.5 * v)
    s = np.where(at, v * slack(rng, active, near, SIZE // 2)[:, None], 0.0)
    return sp.GroupBalls(PAIRS, 5.0), x.ravel(), s.ravel()


def norm2(rng: np.random.Generator, active: str, near: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """5 |x|, at zero or elsewhere."""
    v = np.zeros(SIZE)
    v[rng.choice(SIZE, 2, replace=False)] = groups_of(rng)[0]
    zero = bool(bound(rng, active, 1)[0])
    return sp.Norm2(5.0), 0.0 * v if zero else 2.0 * v, v * (1.0 - slack(rng, active, near, 1)[0]) if zero else v


def ball(rng: np.random.Generator, active: str, near: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """|x| <= 5."""
    v = np.zeros(SIZE)
    v[rng.choice(SIZE, 2, replace=False)] = groups_of(rng)[0]
    at = bool(bound(rng, active, 1)[0])
    return sp.Ball(5.0), v if at else 0.5 * v, v * slack(rng, active, near, 1)[0] if at else 0.0 * v


def hyperplane(rng: np.random.Generator, active: str, near: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """<a, x> = b, whose subgradients are the multiples of a."""
    a, x = rng.integers(-3, 4, SIZE).astype(float), rng.integers(-2, 3, SIZE).astype(float)
    a[0] = 1.0
    return sp.Hyperplane(a, float(a @ x)), x, a * slack(rng, active, near, 1)[0]


def nuclear(rng: np.random.Generator, active: str, near: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """25 times the nuclear norm of a 3 x 4 matrix of rank 0 or 1; elsewhere singular values of s are up to 25."""
    u, v = np.zeros(3), np.zeros(4)
    u[[0, 1]], v[[1, 3]] = groups_of(rng)[:2]
    across = np.zeros((3, 4))
    across[2, 2] = 25.0 * (1.0 - slack(rng, active, near, 1)[0])  # orthogonal to u and v
    zero = bool(bound(rng, active, 1)[0])
    s = np.outer(u, v) * (1.0 - slack(rng, active, near, 1)[0] if zero else 1.0) + across
    return sp.Nuclear((3, 4), 25.0), (0.0 if zero else 0.5) * np.outer(u, v).ravel(), s.ravel()


FAMILIES: dict[str, Draw] = {
    "l1": l1,
    "box": box,
    "nonnegative": nonnegative,
    "simplex": simplex,
    "l1 ball": l1_ball,
    "groups": groups,
    "group balls": group_balls,
    "norm": norm2,
    "ball": ball,
    "hyperplane": hyperplane,
    "nuclear norm": nuclear,
}


def known_problem(
    family_x: str, family_y: str, rng: np.random.Generator, active: str = "mixed", dtype: Any = np.float64
) -> tuple[sp.Saddle, np.ndarray, np.ndarray]:
    """A problem with these terms, and its exact saddle point."""
    near = 2.0**-40 if dtype == np.float64 else 2.0**-12
    (p, x, s), (q, y, r) = FAMILIES[family_x](rng, active, near), FAMILIES[family_y](rng, active, near)
    A = rng.integers(-2, 3, (SIZE, SIZE)).astype(float)
    P, Q = (rng.choice([1.0, 2.0, 4.0, 8.0], SIZE) for _ in range(2))
    b, c = -(P * x + A @ y + s), -(Q * y - A.T @ x + r)
    P, Q, A, b, c = (v.astype(dtype) for v in (P, Q, A, b, c))
    return sp.Saddle(sp.Quadratic(P, b) + p, sp.Quadratic(Q, c) + q, A), x, y


def exact_difference(a: np.ndarray, b: np.ndarray) -> list[Fraction]:
    """a - b without rounding."""
    return [Fraction(float(u)) - Fraction(float(v)) for u, v in zip(a, b, strict=True)]


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """|a - b|, rounded down a little."""
    square = sum((d * d for d in exact_difference(a, b)), Fraction(0))
    return math.sqrt(square) * (1.0 - 1e-15)
