"""Small linear and quadratic programs of many awkward kinds, drawn at random; their answers are known exactly.

Each kind changes a plain program: whole numbers, equations, ranges and one-sided rows, bounds on some variables. The
linear ones are answered by ``exact_programs.linear_value``, the quadratic ones by the solution they are made from.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from exact_programs import INF, Program, linear_value

Random = np.random.Generator
MOST = 9  # rows, and variables, of a plain program are fewer


def plain(random: Random) -> Program:
    """A program with small whole numbers, of which one point satisfies all rows and bounds."""
    m, n = int(random.integers(1, MOST)), int(random.integers(1, MOST))
    A = (random.integers(-4, 5, (m, n)) * (random.random((m, n)) < random.choice([0.4, 0.7, 1.0]))).astype(float)
    x = random.integers(-2, 4, n).astype(float)
    width = random.choice([0, 0, 1, 3], m)
    lower, upper = A @ x - width, A @ x + random.choice([0, 1], m) * width
    one_sided, below = (random.random(m) < 0.5) & (width > 0), random.random(m) < 0.5
    lower[one_sided & below], upper[one_sided & ~below] = -INF, INF
    x_lower = np.where(random.random(n) < 0.75, np.minimum(x, random.integers(-3, 1, n)), -INF)
    x_upper = np.where(random.random(n) < 0.4, np.maximum(x, random.integers(0, 4, n)), INF)
    return Program(None, random.integers(-4, 5, n).astype(float), A, lower, upper, x_lower, x_upper)


def degenerate(random: Random) -> Program:
    """Twice as many rows as variables go through one vertex."""
    n = int(random.integers(1, MOST))
    m = 2 * n + 2
    A = random.integers(-2, 3, (m, n)).astype(float)
    q = A.T @ random.integers(0, 3, m) * (random.random() < 0.8) + random.integers(-1, 2, n) * (random.random() < 0.2)
    low = np.where(random.random(n) < 0.5, 0.0, -INF)
    return Program(None, q, A, np.zeros(m), np.full(m, INF), low, np.full(n, INF))


def infeasible(random: Random) -> Program:
    """A row that is out of reach, or that another one contradicts, by 1 or by a millionth."""
    p = plain(random)
    r, by = int(random.integers(len(p.lower))), float(random.integers(1, 6))
    p.lower[r] += by
    p.upper[r] += by
    if len(p.lower) > 1 and r > 0 and np.isfinite(p.lower[r]):
        p.A[0], p.lower[0], p.upper[0] = p.A[r], -INF, p.lower[r] - random.choice([1.0, 1e-6])
    return p


def almost_infeasible(random: Random) -> Program:
    """Two rows that leave a slit, or miss each other, by 1e-9 to 1e-15, or just touch."""
    p = plain(random)
    at = float(np.floor(p.A[0].sum()))
    by = random.choice([1e-15, 1e-12, 1e-9]) * random.choice([-1, 0, 1]) * max(1.0, abs(at))
    p.lower[0], p.upper[0] = -INF, at
    return with_rows(p, p.A[:1], np.array([at + by]), np.array([INF]))


def unbounded(random: Random) -> Program:
    """Most variables have no bounds above, and half of them none at all."""
    p = plain(random)
    return p._replace(x_lower=np.where(random.random(len(p.q)) < 0.5, p.x_lower, -INF), x_upper=np.full(len(p.q), INF))


def free(random: Random) -> Program:
    """No variable has a bound."""
    p = plain(random)
    return p._replace(x_lower=np.full(len(p.q), -INF), x_upper=np.full(len(p.q), INF))


def fixed(random: Random) -> Program:
    """Half of the variables have two equal bounds."""
    p = plain(random)
    at, some = random.integers(-2, 4, len(p.q)).astype(float), random.random(len(p.q)) < 0.5
    return p._replace(x_lower=np.where(some, at, p.x_lower), x_upper=np.where(some, at, p.x_upper))


def rescaled(p: Program, rows: np.ndarray, columns: np.ndarray, objective: float) -> Program:
    """The program with rows and variables in other units, rounded."""
    ends = p.lower * rows, p.upper * rows, p.x_lower / columns, p.x_upper / columns
    return Program(None, objective * p.q * columns, rows[:, None] * p.A * columns, *ends)


def powers_of_ten(random: Random) -> Program:
    """Rows and columns in units of 1e-6 to 1e6, the objective in units of 1e-9 to 1e9."""
    p = plain(random)
    rows, columns = (10.0 ** random.integers(-6, 7, k) for k in p.A.shape)
    return rescaled(p, rows, columns, 10.0 ** random.integers(-9, 10))


def any_units(random: Random) -> Program:
    """Rows and columns times exp(4 normal)."""
    p = plain(random)
    rows, columns = (np.exp(random.normal(0.0, 4.0, k)) for k in p.A.shape)
    return rescaled(p, rows, columns, 1.0)


def tiny(random: Random) -> Program:
    """All ends from 1e-5 to 1e-11."""
    p, by = plain(random), 10.0 ** -random.integers(5, 12)
    ends = p.lower * by, p.upper * by, p.x_lower * by, p.x_upper * by
    return Program(None, p.q * 10.0 ** random.integers(-9, 9), p.A, *ends)


def far_bounds(random: Random) -> Program:
    """Bounds of 1e5 to 1e19 where none is meant."""
    p = plain(random)
    n = len(p.q)
    far = 10.0 ** random.integers(5, 20, (2, n))
    low, high = (np.where(random.random(n) < 0.5, *pair) for pair in ((-far[0], p.x_lower), (far[1], p.x_upper)))
    return p._replace(x_lower=low, x_upper=high)


def with_rows(p: Program, A: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Program:
    """The program with further rows."""
    return p._replace(A=np.vstack([p.A, A]), lower=np.append(p.lower, lower), upper=np.append(p.upper, upper))


def redundant(random: Random) -> Program:
    """A row three times, one added to another one, and a tenth of one, which rounding may make contradict it."""
    p = plain(random)
    k = int(random.integers(len(p.lower)))

    def more(v: np.ndarray) -> np.ndarray:
        return np.array([3.0 * v[k], v[k] + v[0], v[k] * 0.1])

    return with_rows(p, more(p.A), *np.sort([more(p.lower), more(p.upper)], axis=0))


def contradicting_sums(random: Random) -> Program:
    """Equations, and their sum with a right-hand side that is off by 1, 1e-8, 1e-13, or not at all."""
    p = plain(random)
    at = p.A @ random.integers(-2, 4, len(p.q))
    ends = np.append(at, at.sum() + random.choice([0.0, 1.0, 1e-8, 1e-13]) * random.choice([-1.0, 1.0]))
    return p._replace(A=np.vstack([p.A, p.A.sum(axis=0)]), lower=ends, upper=ends.copy())


def zeros(random: Random) -> Program:
    """A row and a column of zeros, and sometimes no objective."""
    p = plain(random)
    p.A[random.integers(len(p.lower))], p.A[:, random.integers(len(p.q))] = 0.0, 0.0
    return p._replace(q=p.q * (random.random() < 0.7))


def large_numbers(random: Random) -> Program:
    """Coefficients of up to four million."""
    p = plain(random)
    A = p.A * random.integers(1, 10**6, p.A.shape)
    at = A @ random.integers(-2, 4, len(p.q))
    lower, upper = np.where(np.isfinite(p.lower), at, -INF), np.where(np.isfinite(p.upper), at + 1.0, INF)
    return p._replace(A=A, lower=lower, upper=upper)


def decimals(random: Random) -> Program:
    """Coefficients with two decimals, whose products round."""
    m, n = int(random.integers(1, MOST)), int(random.integers(1, MOST))
    A = np.round(random.random((m, n)) * random.choice([1, 10, 100]), 2) * random.choice([-1, 1], (m, n))
    at = np.round(A @ np.round(np.abs(random.normal(size=n)), 1), random.choice([3, 12]))
    upper = np.where(random.random(m) < 0.5, at, INF)
    return Program(None, np.round(random.normal(size=n), 2), A, at, upper, np.zeros(n), np.full(n, INF))


def transport(random: Random) -> Program:
    """Goods of two or three places for two or three others, in whole numbers or in tenths."""
    a, b = int(random.integers(2, 4)), int(random.integers(2, 4))
    A = np.vstack([np.kron(np.eye(a), np.ones(b)), np.kron(np.ones(a), np.eye(b))])
    supply = random.integers(1, 20, a)
    ends = np.append(supply, random.multinomial(supply.sum(), np.ones(b) / b)) / random.choice([1.0, 10.0])
    high = np.where(random.random(a * b) < 0.3, random.integers(1, 20, a * b), INF)
    q = random.integers(0, 9, a * b) / random.choice([1.0, 10.0])
    return Program(None, q, A, ends, ends.copy(), np.zeros(a * b), high)


def flows(random: Random) -> Program:
    """Flows in a graph, with capacities."""
    k = int(random.integers(3, 6))
    n = int(random.integers(k, 3 * k))
    A = np.zeros((k, n))
    for j in range(n):
        A[random.choice(k, 2, replace=False), j] = 1.0, -1.0
    x = random.integers(0, 4, n)
    high = np.where(random.random(n) < 0.6, x + random.integers(0, 3, n), INF)
    return Program(None, random.integers(-3, 9, n).astype(float), A, A @ x, A @ x, np.zeros(n), high)


LINEAR: tuple[Callable[[Random], Program], ...] = (
    plain, degenerate, infeasible, almost_infeasible, unbounded, free, fixed, powers_of_ten, any_units, tiny,
    far_bounds, redundant, contradicting_sums, zeros, large_numbers, decimals, transport, flows,
)  # fmt: skip


def singular_quadratic(random: Random) -> tuple[Program, Fraction]:
    """A quadratic program with a singular P, made from a solution and multipliers in whole numbers; and its value."""
    p = plain(random)
    n = len(p.q)
    D = random.integers(-2, 3, (int(random.integers(1, n + 1)), n))
    P = (D.T @ D).astype(float)
    x = random.integers(-2, 4, n).astype(float)
    y = random.integers(-2, 3, len(p.lower)).astype(float)
    slack = random.integers(0, 3, len(p.lower))
    lower, upper = (p.A @ x - slack * (y >= 0.0), p.A @ x + slack * (y <= 0.0))  # an end is active where y is not 0
    cost = random.integers(-2, 3, n).astype(float)
    low, high = (np.where(random.random(n) < 0.5, s * INF, x + s) for s in (-1.0, 1.0))
    low, high = np.where(cost > 0.0, x, low), np.where(cost < 0.0, x, high)
    q = cost - P @ x - p.A.T @ y
    return Program(P, q, p.A, lower, upper, low, high), Fraction(float(0.5 * x @ P @ x + q @ x))


def drawn_kind(kind: str, random: Random) -> tuple[Program, Fraction | str]:
    """A program of a kind, and its optimal value, "infeasible" or "unbounded"."""
    if kind == singular_quadratic.__name__:
        return singular_quadratic(random)
    program = next(draw for draw in LINEAR if draw.__name__ == kind)(random)
    return program, linear_value(program)


KINDS = (*(draw.__name__ for draw in LINEAR), singular_quadratic.__name__)


def is_true(truth: Fraction | str, lower: float, upper: float) -> bool:
    """Whether an interval for the optimal value says nothing false."""
    if isinstance(truth, str):
        return upper == INF if truth == "infeasible" else lower == -INF
    return lower <= truth <= upper
