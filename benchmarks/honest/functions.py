"""Functions given twice: for the library, and in decimal arithmetic of 60 digits.

A ``Part`` is a ``Smooth`` for the library and, from the same float64 (or float32) data, a gradient and a value that are
computed with 60 digits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from decimal import Decimal
from typing import Any

import numpy as np

import saddlepoint as sp

from .losses import Loss
from .numbers import ONE, Array, Decimals, apply, decimals, length

Hessian = list[tuple[Decimal, Array]]  # a sum of multiples of matrices of floats that are not too large or small


class NoValueError(Exception):
    """A function whose value is not known."""


class Part(ABC):
    """A function for the library (``smooth``) and in decimal arithmetic.

    Attributes:
        smooth: the function as the library knows it.
        mu: a lower bound on the true strong convexity; it may be smaller than the true one by a factor.
        L: a true upper bound on the smoothness.
    """

    smooth: sp.Smooth
    mu: float
    L: float

    @abstractmethod
    def grad(self, x: Decimals) -> Decimals:
        """The gradient."""

    @abstractmethod
    def value(self, x: Decimals) -> Decimal:
        """The value."""

    @abstractmethod
    def hessian(self, x: Decimals) -> Hessian:
        """The Hessian, approximately."""

    def curvature(self, x: Decimals) -> Decimals:
        """The Hessian with 60 digits, where that is more than ``hessian`` has."""
        return sum(c * decimals(M) for c, M in self.hessian(x))

    @abstractmethod
    def floats(self, x: Array) -> Array:
        """The gradient in floats, as a user would write it with NumPy."""

    def own(self, **changes: Any) -> Part:
        """The same function as a black box: a gradient and true constants."""
        given = {"mu": self.smooth.mu, "L": self.smooth.L} | changes
        return As(self, sp.Smooth(given.pop("grad", self.floats), **given))


def unit(array: Array) -> tuple[float, Array]:
    """A power of two and the array divided by it, so that its largest entry is about one."""
    most = float(np.max(np.abs(array), initial=0.0))
    if most == 0.0:
        return 1.0, np.asarray(array, dtype=float)
    exponent = math.frexp(most)[1] - 1
    return math.ldexp(1.0, exponent), np.ldexp(np.asarray(array, dtype=float), -exponent)


class Quadratic(Part):
    """1/2 x'Px + b'x; P is a matrix, or a vector as a diagonal."""

    def __init__(self, P: Array, b: Array, smooth: sp.Smooth | None = None) -> None:
        self.P, self.b = P, b
        self.smooth = sp.Quadratic(P, b) if smooth is None else smooth
        self.dense = P.toarray() if hasattr(P, "toarray") else np.asarray(P)
        ends = np.asarray(self.dense, dtype=float) if self.dense.ndim == 1 else _eigenvalues(self.dense)
        self.mu, self.L = 0.5 * float(ends.min()), 2.0 * float(ends.max())
        self.exact, self.linear = decimals(self.dense), decimals(b)

    def grad(self, x: Decimals) -> Decimals:
        """P x + b."""
        return (self.exact * x if self.dense.ndim == 1 else self.exact @ x) + self.linear

    def value(self, x: Decimals) -> Decimal:
        """1/2 x'Px + b'x."""
        Px = self.exact * x if self.dense.ndim == 1 else self.exact @ x
        return Decimal(x @ (Px / 2 + self.linear))

    def hessian(self, x: Decimals) -> Hessian:
        """P."""
        scale, P = unit(self.dense)
        return [(Decimal(scale), np.diag(P) if P.ndim == 1 else P)]

    def floats(self, x: Array) -> Array:
        """P x + b."""
        return (self.P * x if self.dense.ndim == 1 else self.P @ x) + self.b


def _eigenvalues(P: Array) -> Array:
    scale, P = unit(P)
    return np.linalg.eigvalsh(P) * scale


class Risk(Part):
    """sum_i weight_i loss(d_i'x - t_i, label_i) + l2/2 |x|^2.

    Args:
        loss: the loss.
        smooth: the function for the library.
        D: the data; None for the identity.
        t, labels: vectors, or None.
        l2: the multiple of |x|^2/2.
        counts: how often each row of D occurs in the library's data; None for once.
        mean: whether the losses are averaged.
    """

    def __init__(
        self,
        loss: Loss,
        smooth: sp.Smooth | None,
        D: Array,
        t: Array = None,
        l2: float = 0.0,
        labels: Array = None,
        counts: Array = None,
        mean: bool = True,
        size: int | None = None,
    ) -> None:
        rows = size if D is None else D.shape[0]
        assert rows is not None
        self.loss, self.D, self.t, self.labels, self.l2 = loss, D, t, labels, l2
        self.dense = None if D is None else D.toarray() if hasattr(D, "toarray") else np.asarray(D)
        self.exact = None if D is None else decimals(self.dense)
        self.shift = decimals(np.zeros(rows) if t is None else t)
        self.signs = decimals(np.ones(rows) if labels is None else labels)
        self.number = Decimal(int(rows if counts is None else sum(counts))) if mean else ONE
        self.weights = decimals(np.ones(rows) if counts is None else counts) / self.number
        self.mu = l2
        norm = 1.0 if D is None else float(np.linalg.norm(unit(self.dense)[1], 2)) * unit(self.dense)[0]
        self.L = l2 + 1.001 * loss.most * norm * norm * float(max(self.weights))
        if smooth is not None:
            self.smooth = smooth
            self.mu = max(l2, 0.25 * smooth.mu)  # least squares have more than l2

    def _residual(self, x: Decimals) -> Decimals:
        return (x if self.exact is None else self.exact @ x) - self.shift

    def grad(self, x: Decimals) -> Decimals:
        """D'(weight slope) + l2 x."""
        slope = self.weights * apply(self.loss.slope, self._residual(x), self.signs)
        return (slope if self.exact is None else self.exact.T @ slope) + Decimal(self.l2) * x

    def value(self, x: Decimals) -> Decimal:
        """The weighted losses, and l2/2 |x|^2."""
        losses = self.weights * apply(self.loss.value, self._residual(x), self.signs)
        return Decimal(sum(losses) + Decimal(self.l2) * (x @ x) / 2)

    def hessian(self, x: Decimals) -> Hessian:
        """D' diag(weight loss'') D + l2 I."""
        second_derivative = self.weights * apply(self.loss.second_derivative, self._residual(x), self.signs)
        most = max(second_derivative)
        own = [(Decimal(self.l2), np.eye(len(x)))]
        if most == 0:
            return own
        share = (second_derivative / most).astype(float)
        if self.dense is None:
            return [(most, np.diag(share)), *own]
        scale, D = unit(self.dense)
        return [(most * Decimal(scale) ** 2, (D.T * share) @ D), *own]

    def curvature(self, x: Decimals) -> Decimals:
        """D' diag(weight loss'') D + l2 I."""
        if self.exact is None:
            return super().curvature(x)
        second_derivative = self.weights * apply(self.loss.second_derivative, self._residual(x), self.signs)
        return (self.exact.T * second_derivative) @ self.exact + Decimal(self.l2) * decimals(np.eye(len(x)))

    def floats(self, x: Array) -> Array:
        """The gradient with NumPy."""
        r = x if self.D is None else self.D @ x
        r = r if self.t is None else r - self.t
        slope = self.loss.floats(r, 1.0 if self.labels is None else self.labels)
        if self.D is not None:
            slope = self.D.T @ slope
        if self.number != ONE:
            slope = slope / float(self.number)
        return slope + self.l2 * x


class LogSumExp(Part):
    """tau log sum_i exp((d_i'x - t_i)/tau) + l2/2 |x|^2."""

    def __init__(self, D: Array, t: Array, l2: float, tau: float) -> None:
        self.D, self.t, self.l2, self.tau = D, t, l2, tau
        self.smooth = sp.LogSumExp(D, t, l2=l2, tau=tau)
        self.dense = D
        self.exact, self.shift = decimals(D), decimals(t)
        self.mu, self.L = l2, self.smooth.L * 1.001

    def _scores(self, x: Decimals) -> Decimals:
        return (self.exact @ x - self.shift) / Decimal(self.tau)

    def _weights(self, x: Decimals) -> Decimals:
        scores = self._scores(x)
        top = max(scores)
        e = apply(lambda s: (s - top).exp(), scores)
        return e / sum(e)

    def grad(self, x: Decimals) -> Decimals:
        """D' p + l2 x with softmax weights p."""
        return self.exact.T @ self._weights(x) + Decimal(self.l2) * x

    def value(self, x: Decimals) -> Decimal:
        """The value."""
        scores = self._scores(x)
        top = max(scores)
        total = Decimal(sum(apply(lambda s: (s - top).exp(), scores)))
        return Decimal(Decimal(self.tau) * (top + total.ln()) + Decimal(self.l2) * (x @ x) / 2)

    def hessian(self, x: Decimals) -> Hessian:
        """D'(diag p - p p')D / tau + l2 I."""
        scale, D = unit(self.dense)
        p = self._weights(x).astype(float)
        spread = (D.T * p) @ D - np.outer(D.T @ p, D.T @ p)
        return [(Decimal(scale) ** 2 / Decimal(self.tau), spread), (Decimal(self.l2), np.eye(len(x)))]

    def floats(self, x: Array) -> Array:
        """The gradient with NumPy."""
        s = (self.D @ x - self.t) / self.tau
        e = np.exp(s - s.max())
        return self.D.T @ (e / e.sum()) + self.l2 * x


class GroupHuber(Part):
    """weight sum_G huber(|x_G|) + l2/2 |x|^2."""

    def __init__(self, groups: Array, weight: float, width: float, l2: float) -> None:
        self.groups, self.weight, self.width, self.l2 = np.asarray(groups), weight, width, l2
        self.smooth = sp.GroupHuber(groups, weight, width, l2)
        self.mu, self.L = l2, self.smooth.L * 1.001

    def _each(self) -> list[Array]:
        return [np.flatnonzero(self.groups == label) for label in np.unique(self.groups)]

    def grad(self, x: Decimals) -> Decimals:
        """The radial slopes along x, and l2 x."""
        found, weight, width = Decimal(self.l2) * x, Decimal(self.weight), Decimal(self.width)
        for group in self._each():
            r = length(x[group])
            if r > 0:
                found[group] += x[group] * (weight * min(r / width, ONE) / r)
        return found

    def value(self, x: Decimals) -> Decimal:
        """The value."""
        weight, d, total = Decimal(self.weight), Decimal(self.width), Decimal(self.l2) * (x @ x) / 2
        for group in self._each():
            r = length(x[group])
            total += weight * (r * r / (2 * d) if r <= d else r - d / 2)
        return Decimal(total)

    def hessian(self, x: Decimals) -> Hessian:
        """Along x_G the curvature of the loss, across it its slope over |x_G|."""
        n, weight, d = len(x), Decimal(self.weight), Decimal(self.width)
        terms: Hessian = [(Decimal(self.l2), np.eye(n))]
        for group in self._each():
            r = length(x[group])
            M = np.zeros((n, n))
            inside = np.ix_(group, group)
            if r <= d:
                M[inside] = np.eye(len(group))
                terms.append((weight / d, M))
            else:
                along = (x[group] / r).astype(float)
                M[inside] = np.eye(len(group)) - np.outer(along, along)
                terms.append((weight / r, M))
        return terms

    def floats(self, x: Array) -> Array:
        """The gradient with NumPy."""
        found = self.l2 * x
        for group in self._each():
            r = np.linalg.norm(x[group])
            if r > 0.0:
                found[group] += x[group] * (self.weight * min(float(r) / self.width, 1.0) / r)
        return found


class As(Part):
    """A part whose function is given to the library in another way."""

    def __init__(self, part: Part, smooth: sp.Smooth) -> None:
        self.part, self.smooth, self.mu, self.L = part, smooth, part.mu, part.L

    def grad(self, x: Decimals) -> Decimals:
        """The gradient of the part."""
        return self.part.grad(x)

    def value(self, x: Decimals) -> Decimal:
        """The value of the part."""
        return self.part.value(x)

    def hessian(self, x: Decimals) -> Hessian:
        """The Hessian of the part."""
        return self.part.hessian(x)

    def curvature(self, x: Decimals) -> Decimals:
        """The Hessian of the part with 60 digits."""
        return self.part.curvature(x)

    def floats(self, x: Array) -> Array:
        """The gradient of the part in floats."""
        return self.part.floats(x)
