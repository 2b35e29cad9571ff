"""Small problems with simple terms, in whole numbers and halves, whose saddle points are known exactly."""

import math
from fractions import Fraction

import numpy as np

import saddlepoint as sp

TERMS = {
    "l1": lambda: sp.L1(2.0),
    "box": lambda: sp.Box(-1.0, 1.0),
    "nonnegative": lambda: sp.NonNegative(),
    "l1 and box": lambda: sp.L1(1.0) + sp.Box(-2.0, 2.0),
    "simplex": lambda: sp.Simplex(4.0),
}


def known_point(kind, n, rng):
    """A point of the domain with some active coordinates, and a subgradient there, both in whole numbers and halves."""
    free = rng.random(n) < 0.5
    x, s = np.zeros(n), np.zeros(n)
    if kind == "l1":
        x[free] = rng.choice([-3.0, -1.0, 0.5, 2.0], free.sum())
        s = np.where(free, 2.0 * np.sign(x), rng.choice([-2.0, -1.5, 0.0, 1.0], n))  # -2 is nearly active
    elif kind == "box":
        x = np.where(free, rng.choice([-0.5, 0.0, 0.5], n), rng.choice([-1.0, 1.0], n))
        s = np.where(free, 0.0, x * rng.choice([0.0, 0.5, 3.0], n))
    elif kind == "nonnegative":
        x = np.where(free, rng.choice([0.5, 1.0, 4.0], n), 0.0)
        s = np.where(free, 0.0, rng.choice([0.0, -0.5, -3.0], n))
    elif kind == "l1 and box":
        x = np.where(free, rng.choice([-1.0, 0.0, 1.5], n), rng.choice([-2.0, 2.0], n))
        s = np.where(
            free,
            np.where(x == 0.0, rng.choice([-1.0, 0.5], n), np.sign(x)),
            np.sign(x) * (1.0 + rng.choice([0.0, 2.0], n)),
        )
    else:
        free[:1] = True
        x[free] = 4.0 / (2.0 ** math.ceil(math.log2(free.sum())))
        x[np.flatnonzero(free)[0]] += 4.0 - x.sum()
        s = np.where(free, 1.0, rng.choice([1.0, 0.5, -2.0], n))
    return x, s


def known_problem(kind_x, kind_y, rng, m=8, n=6):
    """A problem whose data are whole numbers and halves, and its exact saddle point."""
    (x, s), (y, r) = known_point(kind_x, m, rng), known_point(kind_y, n, rng)
    A = rng.integers(-3, 4, (m, n)).astype(float)
    P, Q = rng.integers(1, 9, m).astype(float), rng.integers(1, 9, n).astype(float)
    b, c = -(P * x + A @ y + s), -(Q * y - A.T @ x + r)
    return sp.Saddle(sp.Quadratic(P, b) + TERMS[kind_x](), sp.Quadratic(Q, c) + TERMS[kind_y](), A), x, y


def distance(x, y):
    """An upper and nearly exact value of |x| + |y|, from exact sums of squares."""
    squares = [sum((Fraction(float(a)) ** 2 for a in v), Fraction(0)) for v in (x, y)]
    return sum(math.sqrt(square) for square in squares)


def in_normal_form(method, kind_x, kind_y, seed=7):
    """A problem, its saddle point and a start, in the coordinates that the method wants."""
    rng = np.random.default_rng(seed)
    f, xs, ys = known_problem(kind_x, kind_y, rng)
    view = method.normal_form(f)
    x, y = f.project(rng.standard_normal(8), rng.standard_normal(6))
    return view.problem, *view.to(xs, ys), *view.to(x, y)


def squared(x, y):
    return np.sum(x**2) + np.sum(y**2)
