"""What the equations of a small program imply beyond themselves, in rational arithmetic.

Data that were rounded, such as the thirds of a table of shares, make rows that ought to follow from others follow from
them almost: a combination of equations leaves coefficients of about 1e-16. As the numbers stand, this remainder is an
equation like the others, and often it has one variable alone, which then has one value only, or none. A point that
satisfies everything up to rounding does not show that. Here the equations are eliminated exactly, and the remainders
give bounds on their variables. They cut off no point that satisfies the program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from saddlepoint.apps.programs.data import Data
from saddlepoint.apps.programs.exact import Budget, Row, TooLongError, matrix_row, rounded_up
from saddlepoint.ground.arrays import Array

ROUNDS = 10  # rounds over all rows in which variables are fixed, at most
REMAINDER = 1e-10  # size of a coefficient, relative to the terms that it is the sum of, that rounding may have left


class Equation(NamedTuple):
    """A combination of equations: ``row`` times x is ``right``."""

    row: Row
    right: Fraction
    factors: Row  # those of the equations that were combined, by their numbers


class Implied(NamedTuple):
    """The program with the bounds that its equations imply, or the multipliers of equations that contradict it."""

    data: Data
    ray: Array | None = None


def implied(data: Data) -> Implied | None:
    """What rows and remainders of equations imply; None if they imply nothing new."""
    low, high = data.x_lower.copy(), data.x_upper.copy()
    rows = [matrix_row(data.rows, i) for i in range(data.shape[0])]
    for _ in range(ROUNDS):
        fixed = int((low == high).sum())
        for i, row in enumerate(rows):
            if not _fix(row, float(data.lower[i]), float(data.upper[i]), low, high):
                return Implied(data, _ray(data, {i: Fraction(1)}, row, float(data.lower[i]), low, high))
        if int((low == high).sum()) == fixed:
            break
    with suppress(TooLongError, OverflowError):
        for equation in remainders(data, rows, low, high):
            if not _tighten(equation.row, equation.right, low, high):
                return Implied(data, _ray(data, equation.factors, equation.row, equation.right, low, high))
    if np.array_equal(low, data.x_lower) and np.array_equal(high, data.x_upper):
        return None
    return Implied(replace(data, x_lower=low, x_upper=high))


def _ray(data: Data, factors: Row, row: Row, side: Fraction | float, low: Array, high: Array) -> Array:
    """The multipliers that prove that no point satisfies the program, scaled so that the largest one is 1 or -1.

    Args:
        data: the program.
        factors: by the number of each row that is added up, its factor.
        row: the coefficients of the sum of these rows, which contradicts the bounds.
        side: the lower end of the sum.
        low, high: the bounds of x.
    """
    y = np.zeros(data.shape[0])
    most = _sum([_ends(a, float(low[j]), float(high[j]))[1] for j, a in row.items()])
    size = max(abs(v) for v in factors.values()) * (-1 if most is not None and most < side else 1)
    for i, v in factors.items():
        y[i] = float(v / size)
    return y


def remainders(data: Data, rows: list[Row], low: Array, high: Array) -> Iterator[Equation]:
    """The combinations of equations all coefficients of which are so small that rounding may have left them.

    Variables with equal bounds are taken as numbers. A TooLongError is raised when the work that is allowed is done.
    """
    equations = []
    for i in np.flatnonzero(data.lower == data.upper).tolist():
        known = {j: a for j, a in rows[i].items() if low[j] == high[j]}
        side = Fraction(float(data.lower[i])) - sum(
            (a * Fraction(float(low[j])) for j, a in known.items()), Fraction(0)
        )
        equations.append((i, {j: a for j, a in rows[i].items() if j not in known}, side))
    budget = Budget()
    solved: list[tuple[int, Equation]] = []
    for i, row, side in sorted(equations, key=lambda equation: len(equation[1])):
        right, factors = side, {i: Fraction(1)}
        sizes = {j: abs(float(a)) for j, a in row.items()}
        for pivot, other in solved:
            factor = row.pop(pivot, None)
            if factor:
                budget.spend(len(other.row) + len(other.factors) + 1, factor)
                weight = abs(float(factor))
                for j, a in other.row.items():
                    row[j] = row.get(j, Fraction(0)) - factor * a
                    sizes[j] = sizes.get(j, 0.0) + weight * abs(float(a))
                    if not row[j]:
                        del row[j]
                for k, a in other.factors.items():
                    factors[k] = factors.get(k, Fraction(0)) - factor * a
                right -= factor * other.right
        if all(abs(float(a)) <= REMAINDER * sizes[j] for j, a in row.items()) and (row or right):
            yield Equation(row, right, factors)
        if row:
            pivot = max(row, key=lambda j: abs(float(row[j])) / sizes[j])
            scale = row[pivot]
            scaled = {j: a / scale for j, a in row.items() if j != pivot}
            solved.append((pivot, Equation(scaled, right / scale, {k: a / scale for k, a in factors.items()})))


def _fix(row: Row, lower: float, upper: float, low: Array, high: Array) -> bool:
    """Fix the variables of a row if only one value of each satisfies it; False if no values do."""
    ends = [(j, *_ends(a, float(low[j]), float(high[j]))) for j, a in row.items()]
    least, most = _sum([end[1] for end in ends]), _sum([end[2] for end in ends])
    bottom, top = (Fraction(side) if math.isfinite(side) else None for side in (lower, upper))
    if (least is not None and top is not None and least > top) or (
        most is not None and bottom is not None and most < bottom
    ):
        return False
    at_least, at_most = least is not None and least == top, most is not None and most == bottom
    if at_least or at_most:
        for j, a in row.items():
            low[j] = high[j] = low[j] if (a > 0) == at_least else high[j]
    elif bottom is not None and bottom == top and sum(low[j] != high[j] for j in row) == 1:
        return _tighten(row, bottom, low, high)
    return True


def _tighten(row: Row, right: Fraction, low: Array, high: Array) -> bool:
    """Tighten the bounds by the equation ``row`` times x = ``right``; False if no point satisfies it."""
    ends = {j: _ends(a, float(low[j]), float(high[j])) for j, a in row.items()}
    least, most = (_sum([pair[side] for pair in ends.values()]) for side in (0, 1))
    if (least is not None and least > right) or (most is not None and most < right):
        return False
    for j, a in row.items():
        others = [pair for k, pair in ends.items() if k != j]
        below, above = _sum([pair[0] for pair in others]), _sum([pair[1] for pair in others])
        first = None if above is None else (right - above) / a
        second = None if below is None else (right - below) / a
        bottom, top = (first, second) if a > 0 else (second, first)
        if bottom is not None:
            low[j] = max(low[j], -rounded_up(-bottom))
        if top is not None:
            high[j] = min(high[j], rounded_up(top))
    return True


def _ends(a: Fraction, low: float, high: float) -> tuple[Fraction | None, Fraction | None]:
    """The least and the largest value of a v for v from low to high; None where it has no bound."""
    least, most = (low, high) if a > 0 else (high, low)
    return (
        a * Fraction(least) if math.isfinite(least) else None,
        a * Fraction(most) if math.isfinite(most) else None,
    )


def _sum(terms: list[Fraction | None]) -> Fraction | None:
    """The sum; None if a term is missing."""
    known = [term for term in terms if term is not None]
    return sum(known, Fraction(0)) if len(known) == len(terms) else None
