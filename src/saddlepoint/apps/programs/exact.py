"""Bounds on the optimal value of a small program in rational arithmetic, in which equations hold exactly.

Where a solution is degenerate, rounded arithmetic cannot prove that all rows hold at once, or that all reduced costs
have the right sign. Here the rows that seem to be active are solved as equations between fractions, and everything is
checked exactly.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import issparse

from saddlepoint.apps.programs.data import Data
from saddlepoint.ground.arrays import Array

ENTRIES = 50_000  # most entries of A and P, and most variables, of a program that is worked on
WORK = 100_000  # most operations of all eliminations of one question; one with long fractions counts for several
LAST_WORK = 1_500_000  # the same for the last way to find a point, where no other is left: about three seconds
ROUNDS = 6  # times that violated rows and bounds are added to the equations
SMALL = 1e-13  # size of a multiplier, relative to the largest, that is taken for a rounding error
NARROW = 1e-15  # relative distance of two bounds that are one number, rounded down and rounded up
LONG = 500  # bits of a fraction that make an operation count twice; more of them count by their square
NEAR = (1e-8, 1e-5, 1e-3)  # distances, relative to sizes, up to which a row or a bound counts as active
Row = dict[int, Fraction]


class ExactPoint:
    """A vector of fractions that satisfies the program exactly, and its value."""

    def __init__(self, x: list[Fraction], value: Fraction) -> None:
        self.x, self.value = x, value

    @property
    def upper(self) -> float:
        """The value, rounded up."""
        return rounded_up(self.value)


def rounded(v: Sequence[Fraction]) -> Array:
    """A vector of fractions in float64; those that are too large become the largest numbers."""
    most = Fraction(sys.float_info.max)
    return np.array([float(min(max(a, -most), most)) for a in v])


def rounded_up(value: Fraction) -> float:
    """The smallest float64 number, or infinity, that is not below a fraction."""
    try:
        found = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return found if Fraction(found) >= value else math.nextafter(found, math.inf)


def is_small(data: Data) -> bool:
    """Whether the program is small enough for rational arithmetic."""
    m, n = data.shape
    in_P = 0 if data.P is None else data.P.nnz if issparse(data.P) else int(np.count_nonzero(data.P))
    return max(m, n, int(data.rows.nnz + in_P)) <= ENTRIES


class Exact:
    """A program in fractions."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.rows = [matrix_row(data.rows, i) for i in range(data.shape[0])]
        self.columns: list[Row] = [{} for _ in range(data.shape[1])]
        for i, row in enumerate(self.rows):
            for j, a in row.items():
                self.columns[j][i] = a
        P = data.P
        self.P: list[Row] | None = None
        if P is not None:
            self.P = [{j: Fraction(float(P[i, j])) for j in _filled(P, i)} for i in range(data.shape[1])]
        self.q = [Fraction(float(v)) for v in data.q]
        self.budget = Budget()

    def point(self, x: Array) -> ExactPoint | None:
        """A point close to x that satisfies the program; None if none is found."""
        equal = self.data.lower == self.data.upper
        self.budget = Budget()
        with suppress(TooLongError):
            for near in NEAR:
                for snap, rows in ((near, True), (near, equal), (0.0, True)):
                    found = self._point(x, near, snap, rows)
                    if found is not None:
                        return found
        self.budget = Budget(LAST_WORK)
        with suppress(TooLongError):
            return self._point(x, NEAR[0], 0.0, equal, ROUNDS)
        return None

    def _point(self, x: Array, near: float, snap: float, rows: Array | bool, rounds: int = 1) -> ExactPoint | None:
        """A point with equality in the active ones of ``rows``; variables within ``snap`` of a bound are at it.

        With several ``rounds``, rows and bounds that it violates and that are active at x are added to those that hold
        with equality.
        """
        data = self.data
        x = np.clip(x, data.x_lower, data.x_upper)
        reach = snap * (1.0 + np.abs(x))
        with np.errstate(all="ignore"):
            room = np.minimum(x - data.x_lower, data.x_upper - x)
            width = data.x_upper - data.x_lower
        at = (room <= reach) & ((width == 0.0) | (width > NARROW * np.abs(x)))
        fixed = np.where(x - data.x_lower <= reach, data.x_lower, np.where(data.x_upper - x <= reach, data.x_upper, x))
        values = [Fraction(float(v)) for v in fixed]
        inside, size = data.A @ x, 1.0 + abs(data.A) @ np.abs(x)
        low, high = np.abs(inside - data.lower), np.abs(inside - data.upper)
        nearest = np.minimum(low, high)
        close = np.isfinite(nearest) & (nearest <= near * size)
        active = close & rows
        order = np.argsort(-room, kind="stable").tolist()
        for _ in range(rounds):
            equations = []
            for i in np.flatnonzero(active).tolist():
                rest = sum((a * values[j] for j, a in self.rows[i].items() if at[j]), Fraction(0))
                side = data.lower[i] if low[i] <= high[i] else data.upper[i]
                equations.append(({j: a for j, a in self.rows[i].items() if not at[j]}, Fraction(float(side)) - rest))
            solved = _eliminated(equations, [j for j in order if not at[j]], values, self.budget)
            if solved is None:
                return None
            wrong_rows, wrong = self.violated(solved)
            if not wrong_rows and not wrong:
                return ExactPoint(solved, self.value(solved))
            far = room > near * (1.0 + np.abs(x))
            if not close[wrong_rows].all() or far[wrong].any():
                return None
            active[wrong_rows] = True
            for j in wrong:
                at[j] = True
                values[j] = Fraction(float(data.x_lower[j] if solved[j] < data.x_lower[j] else data.x_upper[j]))
        return None

    def satisfied(self, x: Sequence[Fraction]) -> bool:
        """Whether all rows and bounds hold."""
        return self.violated(x) == ([], [])

    def violated(self, x: Sequence[Fraction]) -> tuple[list[int], list[int]]:
        """The rows, and the variables whose bounds, do not hold."""
        data = self.data
        inside = [sum((a * x[j] for j, a in row.items()), Fraction(0)) for row in self.rows]
        ends = ((data.lower, inside, data.upper), (data.x_lower, x, data.x_upper))
        rows, variables = (
            [k for k, (lo, v, hi) in enumerate(zip(*part, strict=True)) if not lo <= v <= hi] for part in ends
        )
        return rows, variables

    def value(self, x: Sequence[Fraction]) -> Fraction:
        """The objective."""
        linear = sum((c * v for c, v in zip(self.q, x, strict=True)), Fraction(0))
        return linear + sum((g * v for g, v in zip(self._times_P(x), x, strict=True)), Fraction(0)) / 2

    def _times_P(self, x: Sequence[Fraction]) -> list[Fraction]:
        """P x."""
        if self.P is None:
            return [Fraction(0)] * len(x)
        return [sum((a * x[j] for j, a in row.items()), Fraction(0)) for row in self.P]

    def lower(self, x: Array, y: Array) -> float:
        """A proven lower bound by multipliers close to y, rounded down; minus infinity if none is found."""
        if not bool((self.data.curvature >= 0.0).all()):
            return -math.inf
        self.budget, best = Budget(), -math.inf
        with suppress(TooLongError):
            for near in NEAR:
                best = max(best, self._lower(x, y, near))
            for near in NEAR if best == -math.inf else ():
                best = max(best, self._lower(x, y, near, ROUNDS))
        return best

    def _lower(self, x: Array, y: Array, near: float, rounds: int = 1) -> float:
        """The bound by multipliers for which reduced costs of variables that are not ``near`` to a bound vanish.

        With several ``rounds``, all multipliers but those of the size of rounding errors are used; those that have the
        wrong sign are left out, and reduced costs of the wrong sign vanish as well.
        """
        data = self.data
        x = np.clip(x, data.x_lower, data.x_upper)
        at = [Fraction(float(v)) for v in x]
        reach = near * (1.0 + np.abs(x))
        with np.errstate(all="ignore"):
            free = np.minimum(x - data.x_lower, data.x_upper - x) > reach
        y = y.copy()
        for _ in range(rounds):
            solved = self._multipliers(y, near if rounds == 1 else SMALL, np.flatnonzero(free), at)
            if solved is None:
                return -math.inf
            moved, multipliers = solved[y.size :], solved[: y.size]
            found = self.bound(moved, multipliers)
            if found > -math.inf or rounds == 1:
                return found
            for i, v in enumerate(multipliers):
                if v and math.isinf(data.upper[i] if v > 0 else data.lower[i]):
                    y[i] = 0.0
            for j, r in enumerate(self.reduced(moved, multipliers)):
                if r and math.isinf(data.x_lower[j] if r > 0 else data.x_upper[j]):
                    free[j] = True
        return -math.inf

    def reduced(self, at: Sequence[Fraction], y: Sequence[Fraction]) -> list[Fraction]:
        """The reduced costs P x + q + A'y."""
        return [
            c + g + sum((a * y[i] for i, a in column.items()), Fraction(0))
            for c, g, column in zip(self.q, self._times_P(at), self.columns, strict=True)
        ]

    def _multipliers(self, y: Array, near: float, vanish: Array, at: list[Fraction]) -> list[Fraction] | None:
        """Multipliers, followed by a point, close to y and ``at``, for which some reduced costs vanish exactly."""
        data = self.data
        size = max(1e-300, float(np.max(np.abs(y), initial=0.0)))
        one_sided = ~(np.isfinite(data.lower) & np.isfinite(data.upper))
        used = (np.abs(y) > near * size) | (data.lower == data.upper)
        room = np.where(one_sided, np.abs(y), 10.0 * size)
        values = [Fraction(float(v)) if abs(v) > near * size else Fraction(0) for v in y]
        order = [int(i) for i in np.argsort(-room, kind="stable") if used[i]]
        equations = []
        m, moved = y.size, set(vanish.tolist()) if self.P is not None else set()
        for j in vanish.tolist():
            row, right = {i: a for i, a in self.columns[j].items() if used[i]}, -self.q[j]
            for k, p in self.P[j].items() if self.P is not None else ():
                if k in moved:
                    row[m + k] = p
                else:
                    right -= p * at[k]
            equations.append((row, right))
        order += [m + j for j in sorted(moved)]
        values += at
        return _eliminated(equations, order, values, self.budget)

    def farkas(self, y: Array) -> bool:
        """Whether multipliers close to y prove that no point satisfies a program whose objective is zero."""
        data = self.data
        r, size = data.At @ y, abs(data.At) @ np.full(y.size, float(np.max(np.abs(y), initial=0.0)))
        x = [Fraction(float(v)) for v in np.clip(np.zeros(data.shape[1]), data.x_lower, data.x_upper)]
        self.budget = Budget()
        with suppress(TooLongError):
            for near in NEAR:
                vanish = np.flatnonzero(np.abs(r) <= near * (size + 1e-300))
                solved = self._multipliers(y, near, vanish, x)
                if solved is not None and self.bound(x, solved[: y.size]) > 0.0:
                    return True
        return False

    def bound(self, at: Sequence[Fraction], y: Sequence[Fraction]) -> float:
        """The lower bound that exact multipliers y prove, with the objective linearised at a point, rounded down."""
        data = self.data
        total = self.value(at)
        for i, v in enumerate(y):
            if v:
                side = float(data.upper[i] if v > 0 else data.lower[i])
                if not math.isfinite(side):
                    return -math.inf
                total -= v * (Fraction(side) - sum((a * at[j] for j, a in self.rows[i].items()), Fraction(0)))
        for j, r in enumerate(self.reduced(at, y)):
            if r:
                end = float(data.x_lower[j] if r > 0 else data.x_upper[j])
                if not math.isfinite(end):
                    return -math.inf
                total += r * (Fraction(end) - at[j])
        return -rounded_up(-total)


def matrix_row(rows: Any, i: int) -> Row:
    """The entries of a row of a sparse array that are not zero."""
    part = slice(rows.indptr[i], rows.indptr[i + 1])
    return {j: Fraction(a) for j, a in zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True) if a}


def _filled(P: Any, i: int) -> list[int]:
    """The column numbers of the entries of row i that are not zero."""
    return [int(j) for j in P[[i]].nonzero()[1]]


class TooLongError(ArithmeticError):
    """The work that is allowed is done."""


class Budget:
    """The work that is left."""

    def __init__(self, work: int = WORK) -> None:
        self.left = float(work)

    def spend(self, operations: int, number: Fraction) -> None:
        """Count operations with a number; a TooLongError if the work is done."""
        bits = number.numerator.bit_length() + number.denominator.bit_length()
        self.left -= operations * (1.0 + (bits / LONG) ** 2)
        if self.left < 0.0:
            raise TooLongError


def _eliminated(
    equations: list[tuple[Row, Fraction]], order: list[int], values: list[Fraction], budget: Budget
) -> list[Fraction] | None:
    """``values`` changed in few coordinates such that the equations hold; None if they contradict each other.

    Pivots are taken from the front of ``order``; coordinates without a pivot keep their values.
    """
    rank = {j: k for k, j in enumerate(order)}
    solved: list[tuple[int, Row, Fraction]] = []
    for given, right in sorted(equations, key=lambda equation: len(equation[0])):
        row = dict(given)
        for pivot, other, side in solved:
            factor = row.pop(pivot, None)
            if factor:
                budget.spend(len(other) + 1, factor)
                for j, a in other.items():
                    entry = row.get(j, Fraction(0)) - factor * a
                    if entry:
                        row[j] = entry
                    else:
                        row.pop(j, None)
                right -= factor * side
        if not row:
            if right:
                return None
            continue
        pivot = min(row, key=lambda j: rank[j])
        scale = row.pop(pivot)
        solved.append((pivot, {j: a / scale for j, a in row.items()}, right / scale))
    found = list(values)
    for pivot, row, right in reversed(solved):
        budget.spend(len(row) + 1, right)
        found[pivot] = right - sum((a * found[j] for j, a in row.items()), Fraction(0))
    return found
