"""Small linear and quadratic programs, drawn at random, and their optimal values in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from exact import solved

INF = np.inf


class Program(NamedTuple):
    """min 1/2 x'Px + q'x subject to lower <= A x <= upper and x_lower <= x <= x_upper; P is None or a matrix."""

    P: np.ndarray | None
    q: np.ndarray
    A: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    x_lower: np.ndarray
    x_upper: np.ndarray


def drawn(random: np.random.Generator, quadratic: bool = False, most: int = 6) -> Program:
    """A program with small whole numbers, and now and then with rows and columns of other sizes.

    Many of them are degenerate, some infeasible or unbounded. Equations, ranges, and free variables occur.
    """
    m, n = int(random.integers(1, most)), int(random.integers(1, most))
    if quadratic:
        m, n = min(m, 3), min(n, 3)
    A = random.integers(-4, 5, (m, n)) * (random.random((m, n)) < random.choice([0.5, 1.0]))
    at = random.integers(-3, 4, n)
    inside = A @ at
    width = random.choice([0, 0, 1, 4], m)
    lower, upper = (inside - width).astype(float), (inside + random.choice([0, 1], m) * width).astype(float)
    one_sided = random.random(m) < 0.5
    below = random.random(m) < 0.5
    lower[one_sided & below & (width > 0)], upper[one_sided & ~below & (width > 0)] = -INF, INF
    if random.random() < 0.15:
        row = random.integers(m)
        shift = random.integers(1, 6)
        lower[row], upper[row] = lower[row] + shift, upper[row] + shift
    x_lower = np.where(random.random(n) < 0.7, np.minimum(at, random.integers(-3, 1, n)), -INF)
    x_upper = np.where(random.random(n) < 0.4, np.maximum(at, random.integers(0, 4, n)), INF)
    q = random.integers(-4, 5, n).astype(float)
    A = A.astype(float)
    if random.random() < 0.3:  # other sizes; with powers of ten, equations do not fit together exactly any more
        base = random.choice([2.0, 2.0, 10.0])
        rows, columns = base ** random.integers(-3, 4, m), base ** random.integers(-3, 4, n)
        A, q = rows[:, None] * A * columns, q * columns
        lower, upper, x_lower, x_upper = lower * rows, upper * rows, x_lower / columns, x_upper / columns
    P = None
    if quadratic:
        D = random.integers(-2, 3, (n, n)) + 3 * np.eye(n)
        P = (D.T @ D).astype(float)
    return Program(P, q, A, lower, upper, x_lower, x_upper)


def optimal_value(program: Program) -> Fraction | str | None:
    """The optimal value, "infeasible" or "unbounded"; None for a quadratic program that this file cannot solve."""
    return linear_value(program) if program.P is None else quadratic_value(program)


# -- linear programs: the simplex method with Bland's rule ------------------------------------------------------------


def linear_value(program: Program) -> Fraction | str:
    """The optimal value of a linear program."""
    q, A, lower, upper, x_lower, x_upper = (np.asarray(v).tolist() for v in program[1:])
    columns: list[tuple[int, int]] = []  # x_j = start_j + the sum of sign times these variables, which are not negative
    start = [Fraction(0)] * len(q)
    rows: list[tuple[dict[int, Fraction], Fraction, bool]] = []  # coefficients, right-hand side, whether an equation
    for j, (low, high) in enumerate(zip(x_lower, x_upper, strict=True)):
        if low > -INF:
            start[j] = Fraction(low)
            columns.append((j, 1))
            if high < INF:
                rows.append(({len(columns) - 1: Fraction(1)}, Fraction(high) - Fraction(low), False))
        elif high < INF:
            start[j] = Fraction(high)
            columns.append((j, -1))
        else:
            columns += [(j, 1), (j, -1)]
    for a, low, high in zip(A, lower, upper, strict=True):
        coefficients = {k: sign * Fraction(a[j]) for k, (j, sign) in enumerate(columns)}
        shift = sum((Fraction(v) * s for v, s in zip(a, start, strict=True)), Fraction(0))
        if low == high:
            rows.append((coefficients, Fraction(high) - shift, True))
            continue
        if high < INF:
            rows.append((coefficients, Fraction(high) - shift, False))
        if low > -INF:
            rows.append(({k: -v for k, v in coefficients.items()}, shift - Fraction(low), False))
    cost = [sign * Fraction(q[j]) for j, sign in columns]
    constant = sum((Fraction(c) * s for c, s in zip(q, start, strict=True)), Fraction(0))
    found = _simplex(rows, cost)
    return found if isinstance(found, str) else found + constant


def _simplex(rows: list, cost: list[Fraction]) -> Fraction | str:
    slacks = sum(not equation for *_, equation in rows)
    n, m = len(cost), len(rows)
    table, basis, used = [], [], n
    for i, (coefficients, right, equation) in enumerate(rows):
        line = [Fraction(0)] * (n + slacks + m + 1)
        for k, v in coefficients.items():
            line[k] = v
        if not equation:
            line[used] = Fraction(1)
            used += 1
        line[-1] = right
        if right < 0:
            line = [-v for v in line]
        line[n + slacks + i] = Fraction(1)
        basis.append(n + slacks + i)
        table.append(line)
    first = [Fraction(0)] * (n + slacks) + [Fraction(1)] * m
    if _run(table, basis, first, n + slacks + m) != 0:
        return "infeasible"
    for i in range(m):  # artificial variables leave the basis where they can
        if basis[i] >= n + slacks:
            k = next((k for k in range(n + slacks) if table[i][k] != 0), None)
            if k is not None:
                _pivot(table, basis, i, k)
    return _run(table, basis, cost + [Fraction(0)] * (slacks + m), n + slacks)


def _run(table: list, basis: list[int], cost: list[Fraction], allowed: int) -> Fraction | str:
    while True:
        prices = [cost[b] for b in basis]
        entering = None
        for k in range(allowed):
            if (
                k not in basis
                and cost[k] - sum((p * row[k] for p, row in zip(prices, table, strict=True)), Fraction(0)) < 0
            ):
                entering = k
                break
        if entering is None:
            return sum((p * row[-1] for p, row in zip(prices, table, strict=True)), Fraction(0))
        ratios = [(row[-1] / row[entering], basis[i], i) for i, row in enumerate(table) if row[entering] > 0]
        # An artificial variable that stayed in the basis is zero and has to remain so.
        stuck = [(Fraction(0), b, i) for i, b in enumerate(basis) if b >= allowed and table[i][entering] < 0]
        if not ratios and not stuck:
            return "unbounded"
        _pivot(table, basis, min(ratios + stuck)[2], entering)


def _pivot(table: list, basis: list[int], i: int, k: int) -> None:
    scale = table[i][k]
    table[i] = [v / scale for v in table[i]]
    for other in range(len(table)):
        factor = table[other][k]
        if other != i and factor != 0:
            table[other] = [a - factor * b for a, b in zip(table[other], table[i], strict=True)]
    basis[i] = k


# -- quadratic programs: all active sets -------------------------------------------------------------------------------


def quadratic_value(program: Program) -> Fraction | str | None:
    """The optimal value of a program with a positive definite P."""
    P = [[Fraction(v) for v in row] for row in np.asarray(program.P).tolist()]
    q = [Fraction(v) for v in program.q.tolist()]
    n = len(q)
    if linear_value(program._replace(P=None, q=np.zeros(n))) == "infeasible":
        return "infeasible"
    normals = [[Fraction(v) for v in row] for row in program.A.tolist()]
    normals += [[Fraction(int(i == j)) for i in range(n)] for j in range(n)]
    ends = [*zip(program.lower.tolist(), program.upper.tolist(), strict=True)]
    ends += [*zip(program.x_lower.tolist(), program.x_upper.tolist(), strict=True)]
    for sides in product(*[[None, *{e for e in pair if np.isfinite(e)}] for pair in ends]):
        active = [(a, Fraction(e), pair) for a, e, pair in zip(normals, sides, ends, strict=True) if e is not None]
        if len(active) > n:
            continue
        x = _stationary(P, q, active, normals, ends)
        if x is not None:
            half = [sum((a * v for a, v in zip(row, x, strict=True)), Fraction(0)) / 2 for row in P]
            return sum(((h + c) * v for h, c, v in zip(half, q, x, strict=True)), Fraction(0))
    return None


def _stationary(P: list, q: list, active: list, normals: list, ends: list) -> list[Fraction] | None:
    """The point of Karush, Kuhn and Tucker for a set of active constraints; None if there is none."""
    n, k = len(q), len(active)
    matrix = [[*P[i], *(a[i] for a, *_ in active)] for i in range(n)] + [[*a, *[Fraction(0)] * k] for a, *_ in active]
    z = solved(matrix, [*(-v for v in q), *(e for _, e, _ in active)])
    if z is None:
        return None
    for (_, e, (low, high)), multiplier in zip(active, z[n:], strict=True):
        if low != high and ((e == high and multiplier < 0) or (e == low and multiplier > 0)):
            return None
    for a, (low, high) in zip(normals, ends, strict=True):
        if not low <= sum((v * w for v, w in zip(a, z[:n], strict=True)), Fraction(0)) <= high:
            return None
    return z[:n]
