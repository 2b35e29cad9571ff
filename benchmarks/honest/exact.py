"""Saddle points in decimal arithmetic of 60 digits.

``Exact`` is a saddle problem of two parts. Its solution is found by Newton's method. How far the result is from the
true solution is then bounded by its residual, as in the library's own certificate, but with 60 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from .functions import NoValueError, Part
from .numbers import ONE, Array, Decimals, decimals, eliminate, length

NEWTON = 60  # most steps of Newton's method
CLOSE = Decimal("1e-30")  # accuracy of a solution, relative to its size


class NoSolutionError(Exception):
    """Newton's method did not find the solution to 30 digits."""


class Exact:
    """The problem min max g(x) + <x, A y> - h(y) in decimal arithmetic.

    Args:
        g, h: the functions.
        A: the matrix of floats.
        counts_x, counts_y: how often the library has each variable; all of its copies have the same data.
    """

    def __init__(self, g: Part, h: Part, A: Array, counts_x: Array = None, counts_y: Array = None) -> None:
        self.g, self.h = g, h
        self.dense = A.toarray() if hasattr(A, "toarray") else np.asarray(A)
        self.A = A if isinstance(A, np.ndarray) and A.dtype == object else decimals(self.dense)
        m, n = self.A.shape
        self.counts_x = np.ones(m, dtype=int) if counts_x is None else counts_x
        self.counts_y = np.ones(n, dtype=int) if counts_y is None else counts_y
        self.repeats_x, self.repeats_y = decimals(self.counts_x), decimals(self.counts_y)
        # Further starts of Newton's method.
        self.further_starts: Callable[[], Iterator[tuple[Array, Array]]] = lambda: iter(())

    @property
    def mu(self) -> tuple[Decimal, Decimal]:
        """The strong convexity of both functions."""
        return Decimal(self.g.mu), Decimal(self.h.mu)

    def field(self, x: Decimals, y: Decimals) -> tuple[Decimals, Decimals]:
        """The two residuals, of one copy of each variable."""
        return self.g.grad(x) + self.A @ (self.repeats_y * y), self.h.grad(y) - self.A.T @ (self.repeats_x * x)

    def radius(self, Fx: Decimals, Fy: Decimals) -> Decimal:
        """The distance to the solution is at most this."""
        mu_x, mu_y = self.mu
        W = sum(self.repeats_x * Fx * Fx) / mu_x + sum(self.repeats_y * Fy * Fy) / mu_y
        return Decimal((1 / mu_x + 1 / mu_y) * W).sqrt()

    def _path(self, factor: int) -> tuple[Array, Array]:
        """Approximate solution: that of F(z) + t mu z = 0, as t falls from a large number by this factor."""
        m, n = self.A.shape
        x, y = decimals(np.zeros(m)), decimals(np.zeros(n))
        mu_x, mu_y = self.mu
        t = Decimal(10) ** 9
        while t > Decimal("1e-2"):
            last = None
            for _ in range(8):
                Fx, Fy = self.field(x, y)
                Fx, Fy = Fx + t * mu_x * x, Fy + t * mu_y * y
                size = self.radius(Fx, Fy)
                if last is not None and size > Decimal("0.5") * last:
                    break
                last = size
                try:
                    dx, dy = self._step(x, y, Fx, Fy, float(t))
                except (np.linalg.LinAlgError, ValueError, ArithmeticError):
                    break
                x, y = x - dx, y - dy
            t /= factor
        return x, y

    def _step(
        self, x: Decimals, y: Decimals, Fx: Decimals, Fy: Decimals, more: float = 0.0
    ) -> tuple[Decimals, Decimals]:
        """Newton's step, computed in floats for variables in units of 1/sqrt(mu); ``more`` is added to the diagonal."""
        root_x, root_y = (mu.sqrt() for mu in self.mu)
        J = more * np.eye(len(x) + len(y))
        m = len(x)
        for c, M in self.g.hessian(x):
            J[:m, :m] += float(c / root_x**2) * M
        for c, M in self.h.hessian(y):
            J[m:, m:] += float(c / root_y**2) * M
        scaled = (self.A / (root_x * root_y)).astype(float)
        J[:m, m:], J[m:, :m] = scaled * self.counts_y, -scaled.T * self.counts_x
        F = np.concatenate([Fx / root_x, Fy / root_y])
        most = max(abs(F))
        if most == 0:
            return 0 * x, 0 * y
        step = decimals(np.linalg.solve(J, (F / most).astype(float))) * most
        return step[:m] / root_x, step[m:] / root_y

    def _decimal_step(self, x: Decimals, y: Decimals, Fx: Decimals, Fy: Decimals) -> tuple[Decimals, Decimals]:
        """Newton's step in decimal arithmetic, which is slower."""
        m = len(x)
        J = decimals(np.zeros((m + len(y),) * 2))
        J[:m, :m], J[m:, m:] = self.g.curvature(x), self.h.curvature(y)
        J[:m, m:], J[m:, :m] = self.A * self.repeats_y, -self.A.T * self.repeats_x
        step = eliminate(J, np.concatenate([Fx, Fy]))
        return step[:m], step[m:]

    @cached_property
    def solution(self) -> tuple[Decimals, Decimals, Decimal]:
        """The solution x, y and a bound on its error."""
        m, n = self.A.shape
        zero = np.zeros(m), np.zeros(n)
        for x, y in chain([zero], (self._path(factor) for factor in (8, 2)), self.further_starts()):
            for step in (self._step, self._decimal_step):
                start = [v if v.dtype == object else decimals(v) for v in (x, y)]
                found = self._newton(start[0], start[1], step)
                if found is not None:
                    return found
        raise NoSolutionError

    def _newton(self, x: Decimals, y: Decimals, step: Any) -> tuple[Decimals, Decimals, Decimal] | None:
        Fx, Fy = self.field(x, y)
        radius = self.radius(Fx, Fy)
        for _ in range(NEWTON):
            if radius <= CLOSE * (length(x) + length(y)):
                return x, y, radius
            try:
                dx, dy = step(x, y, Fx, Fy)
            except (np.linalg.LinAlgError, ValueError, ArithmeticError):
                return None
            t = ONE
            while True:
                new_x, new_y = x - t * dx, y - t * dy
                Gx, Gy = self.field(new_x, new_y)
                shorter = self.radius(Gx, Gy)
                if shorter < radius or t < Decimal("1e-6"):
                    break
                t /= 2
            x, y, Fx, Fy = new_x, new_y, Gx, Gy
            if shorter >= radius:
                return None
            radius = shorter
        return None

    def errors(self, x: Array, y: Array) -> tuple[Decimal, Decimal]:
        """Lower bounds on |x - x*| and |y - y*|, which are nearly the true distances."""
        xs, ys, radius = self.solution
        return (
            max(_distance(x, xs, self.counts_x) - radius, Decimal(0)),
            max(_distance(y, ys, self.counts_y) - radius, Decimal(0)),
        )

    def gap(self, x: Array, y: Array) -> Decimal | None:
        """A lower bound on the duality gap at (x, y); None if it is not found."""
        if (self.counts_x != 1).any() or (self.counts_y != 1).any():
            return None
        x, y = decimals(x), decimals(y)
        xs, ys, _ = self.solution
        best_y = _minimise(self.h, ys, -(self.A.T @ x))
        best_x = _minimise(self.g, xs, self.A @ y)
        if best_x is None or best_y is None:
            return None
        try:
            terms = (
                self.g.value(x),
                x @ (self.A @ best_y),
                -self.h.value(best_y),
                -self.g.value(best_x),
                -(best_x @ (self.A @ y)),
                self.h.value(y),
            )
        except NoValueError:
            return None
        return Decimal(sum(terms) - Decimal("1e-50") * sum(map(abs, terms)))

    def size(self) -> float:
        """|x*| + |y*|, or one if that is zero, in floats."""
        x, y, _ = self.solution
        total = sum(self.repeats_x * x * x).sqrt() + sum(self.repeats_y * y * y).sqrt()
        return float(total) or 1.0


def _distance(x: Array, exact: Decimals, counts: Array) -> Decimal:
    """The distance of a vector of floats from the exact one, whose entries are repeated by counts."""
    x = np.asarray(x)
    if (counts == 1).all():
        return length(decimals(x) - exact)
    total, ends = Decimal(0), np.cumsum(counts)
    for value, part in zip(exact, np.split(x, ends[:-1]), strict=True):
        found, times = np.unique(part, return_counts=True)
        for number, repeated in zip(found.tolist(), times.tolist(), strict=True):
            total += repeated * (Decimal(number) - value) ** 2
    return total.sqrt()


def _minimise(part: Part, x: Decimals, linear: Decimals) -> Decimals | None:
    """A point that is nearly the minimiser of part + <linear, .>, from a start nearby."""
    root = Decimal(part.mu).sqrt()
    gradient = part.grad(x) + linear
    size = length(gradient)
    for _ in range(12):
        if size == 0 or size / root <= Decimal("1e-25") * root * length(x):
            break
        H = sum(float(c / root**2) * M for c, M in part.hessian(x))
        most = max(abs(gradient))
        try:
            step = decimals(np.linalg.solve(H, (gradient / most).astype(float))) * (most / root**2)
        except (np.linalg.LinAlgError, ArithmeticError):
            break
        t = ONE
        while t > Decimal("1e-3"):
            new = part.grad(x - t * step) + linear
            if length(new) < size:
                break
            t /= 2
        else:
            break
        x, gradient, size = x - t * step, new, length(new)
    return x
