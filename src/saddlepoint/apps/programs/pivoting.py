r"""Solutions of very small programs by Lemke's method, in rational arithmetic.

Problem:    min 1/2 x'Px + q'x subject to G x >= h, x >= 0. A point and multipliers y >= 0 of the rows are optimal if

                w = M z + r >= 0,   z = (x, y) >= 0,   z'w = 0,   M = [P, -G'; G, 0],   r = (q, -h).

Recursion:  z0 is added to all w, so large that w >= 0. One pivot after the other exchanges one variable of a pair
            (w_i, z_i) for the other one of the last pair, until z0 leaves. Ties are broken lexicographically, so that
            it ends.
Guarantee:  It ends with a solution if there is one. Otherwise it ends with a ray, a direction (d, v) >= 0 in which z
            can grow: P d = 0, G d >= 0, G'v <= 0 and q'd < h'v. Either h'v > 0, and no point satisfies the rows, or
            q'd < 0, and the objective decreases along d.
Reference:  C. E. Lemke, Bimatrix equilibrium points and mathematical programming, Management Science 1965;
            R. W. Cottle, J.-S. Pang and R. E. Stone, The Linear Complementarity Problem, SIAM 2009, sections 4.4, 4.9.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from saddlepoint.apps.programs.exact import Budget, Exact, rounded
from saddlepoint.ground.arrays import Array

UNKNOWNS = 60  # most variables and rows, with those for free variables and second ends, of a program that is solved
WORK = 400_000  # most operations with fractions
ZERO, ONE = Fraction(0), Fraction(1)
Vector = list[Fraction]


class Found(NamedTuple):
    """A point and multipliers of the rows, or a direction in which both can grow."""

    x: Vector
    y: Vector
    is_ray: bool


def by_pivoting(exact: Exact, objective: bool = True) -> Found | None:
    """A solution of a program, or a ray; None for a program that is too large. A TooLongError ends long ones.

    Args:
        exact: the program; its P is positive semidefinite.
        objective: whether it has its objective; a program without one asks for any point.
    """
    form = _Form(exact)
    if len(form.signs) + len(form.sides) > UNKNOWNS:
        return None
    return form.back(*_Tableau(*form.complementarity(objective)).solve())


def largest_one(v: Vector) -> Array:
    """A vector that is not zero, in float64, scaled so that its largest entry is 1 or -1."""
    size = max(abs(a) for a in v)
    return rounded([a / size for a in v] if size else v)


class _Form:
    """A program in variables u >= 0, with rows G u >= h.

    Attributes:
        start, signs: x is start plus the sum of sign times u for the pairs (j, sign) of ``signs``.
        rows: the coefficients of G.
        sides: h.
        origin: for each row the number of the program's row and the sign of its multiplier; -1 for a bound of x.
    """

    def __init__(self, exact: Exact) -> None:
        self.exact, data = exact, exact.data
        self.start: Vector = []
        self.signs: list[tuple[int, int]] = []
        self.rows: list[Vector] = []
        self.sides: Vector = []
        self.origin: list[tuple[int, int]] = []
        widths = []
        for j, (low, high) in enumerate(zip(data.x_lower.tolist(), data.x_upper.tolist(), strict=True)):
            end = low if math.isfinite(low) else high if math.isfinite(high) else 0.0
            self.start.append(Fraction(end))
            if math.isfinite(low) and math.isfinite(high):
                widths.append((len(self.signs), Fraction(high) - Fraction(low)))
            self.signs += [(j, 1)] * (math.isfinite(low) or not math.isfinite(high))
            self.signs += [(j, -1)] * (not math.isfinite(low))
        for i, row in enumerate(exact.rows):
            shift = sum((a * self.start[j] for j, a in row.items()), ZERO)
            coefficients = [sign * row.get(j, ZERO) for j, sign in self.signs]
            for end, sign in ((float(data.lower[i]), 1), (float(data.upper[i]), -1)):
                if math.isfinite(end):
                    self._add([sign * a for a in coefficients], sign * (Fraction(end) - shift), (i, -sign))
        for k, width in widths:
            self._add([-ONE if other == k else ZERO for other in range(len(self.signs))], -width, (-1, 0))

    def _add(self, coefficients: Vector, side: Fraction, origin: tuple[int, int]) -> None:
        self.rows.append(coefficients)
        self.sides.append(side)
        self.origin.append(origin)

    def complementarity(self, objective: bool) -> tuple[list[Vector], Vector]:
        """M and r."""
        k, m = len(self.signs), len(self.sides)
        M = [[ZERO] * (k + m) for _ in range(k + m)]
        for i, row in enumerate(self.rows):
            for j, a in enumerate(row):
                M[j][k + i], M[k + i][j] = -a, a
        slope = [ZERO] * k
        if objective:
            gradient = self.exact.reduced(self.start, [ZERO] * len(self.exact.rows))
            slope = [sign * gradient[j] for j, sign in self.signs]
            for line, (i, sign) in zip(M, self.signs, strict=False):
                curved = {} if self.exact.P is None else self.exact.P[i]
                line[:k] = [sign * other * curved.get(j, ZERO) for j, other in self.signs]
        return M, slope + [-v for v in self.sides]

    def back(self, z: Vector, is_ray: bool) -> Found:
        """The point and the multipliers of the program; without the start for a ray."""
        x = [ZERO] * len(self.start) if is_ray else list(self.start)
        y = [ZERO] * len(self.exact.rows)
        for (j, sign), v in zip(self.signs, z, strict=False):
            x[j] += sign * v
        for (i, sign), v in zip(self.origin, z[len(self.signs) :], strict=True):
            if i >= 0:
                y[i] += sign * v
        return Found(x, y, is_ray)


class _Tableau:
    """w - M z - z0 = r, solved for a basis; the columns are those of w, of z, of z0, and the right-hand sides."""

    def __init__(self, M: list[Vector], r: Vector) -> None:
        self.n = n = len(r)
        self.lines = [[*(ONE if i == j else ZERO for j in range(n)), *(-a for a in M[i]), -ONE, r[i]] for i in range(n)]
        self.basis = list(range(n))
        self.budget = Budget(WORK)

    def solve(self) -> tuple[Vector, bool]:
        """z, or a ray of it, and which of them it is."""
        n = self.n
        if all(line[-1] >= 0 for line in self.lines):
            return [ZERO] * n, False
        leaving = self._pivot(min(range(n), key=lambda i: self._order(i, ONE)), 2 * n)
        while leaving != 2 * n:
            entering = leaving + n if leaving < n else leaving - n
            rows = [i for i in range(n) if self.lines[i][entering] > 0]
            if not rows:
                return self._ray(entering), True
            leaving = self._pivot(min(rows, key=lambda i: self._order(i, self.lines[i][entering])), entering)
        return self._values([line[-1] for line in self.lines]), False

    def _order(self, i: int, by: Fraction) -> Vector:
        """The right-hand side and the columns of w in a line, divided by a number: the lexicographic order of lines."""
        line = self.lines[i]
        return [line[-1] / by, *(a / by for a in line[: self.n])]

    def _pivot(self, i: int, column: int) -> int:
        """Exchange the basic variable of a line for the one of a column; the number of the one that leaves."""
        scale = self.lines[i][column]
        chosen = self.lines[i] = [a / scale if a else a for a in self.lines[i]]
        filled = [k for k, a in enumerate(chosen) if a]
        for other, line in enumerate(self.lines):
            factor = line[column]
            if other != i and factor:
                self.budget.spend(len(filled), factor)
                for k in filled:
                    line[k] -= factor * chosen[k]
        leaving, self.basis[i] = self.basis[i], column
        return leaving

    def _values(self, values: Vector) -> Vector:
        """z for these values of the basic variables."""
        z = [ZERO] * self.n
        for b, v in zip(self.basis, values, strict=True):
            if self.n <= b < 2 * self.n:
                z[b - self.n] = v
        return z

    def _ray(self, entering: int) -> Vector:
        """The change of z as the entering variable grows by 1."""
        z = self._values([-line[entering] for line in self.lines])
        if entering >= self.n:
            z[entering - self.n] = ONE
        return z
