"""Functions and saddle points in decimal arithmetic of 60 digits.

A ``Part`` is a function given twice: for the library, as a ``Smooth``, and here, with a gradient and a value that are
computed with 60 digits from the same float64 (or float32) data. ``Exact`` is a saddle problem of two parts. Its
solution is found by Newton's method; how far the result is from the true solution is then bounded by its residual, as
in the library's own certificate, but with 60 digits.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

import saddlepoint as sp

Array = Any  # arrays of floats
Decimals = Any  # arrays of Decimal

DIGITS = 60
decimal.setcontext(
    decimal.Context(prec=DIGITS, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[decimal.InvalidOperation])
)
ONE, TWO = Decimal(1), Decimal(2)
NEWTON = 60  # most steps of Newton's method
CLOSE = Decimal("1e-30")  # accuracy of a solution, relative to its size


def decimals(array: Any) -> Decimals:
    """The numbers of an array of floats, exactly."""
    array = np.asarray(array)
    found = np.empty(array.shape, dtype=object)
    flat = found.reshape(-1)
    for i, number in enumerate(array.reshape(-1).tolist()):
        flat[i] = Decimal(number)
    return found


def length(vector: Decimals) -> Decimal:
    """The Euclidean norm."""
    return Decimal(sum((v * v for v in vector), Decimal(0))).sqrt()


def apply(function: Callable[..., Decimal], *vectors: Decimals) -> Decimals:
    """The function of each entry."""
    found = np.empty(len(vectors[0]), dtype=object)
    for i, entries in enumerate(zip(*vectors, strict=True)):
        found[i] = function(*entries)
    return found


def clip(r: Decimal, low: Decimal, high: Decimal) -> Decimal:
    """The number nearest to r between low and high."""
    return min(max(r, low), high)


def tanh(r: Decimal) -> Decimal:
    """The hyperbolic tangent, with a small relative error also near 0."""
    if abs(r) < Decimal("1e-15"):
        square = r * r
        return r * (1 - square / 3 + 2 * square * square / 15 - 17 * square**3 / 315)
    with decimal.localcontext() as context:
        context.prec = DIGITS + 20
        e = (-2 * abs(r)).exp()
        t = (1 - e) / (1 + e)
    return +t.copy_sign(r)


def sigmoid(r: Decimal) -> Decimal:
    """1/(1 + exp(-r))."""
    if r < 0:
        e = r.exp()
        return e / (1 + e)
    return 1 / (1 + (-r).exp())


def softplus(r: Decimal) -> Decimal:
    """log(1 + exp(r)), to 60 digits beside 1."""
    return max(r, Decimal(0)) + (1 + (-abs(r)).exp()).ln()


# -- losses of one variable --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loss:
    """A convex function of one number r, and perhaps a label s: value, slope and curvature, and the slope in floats."""

    value: Callable[[Decimal, Decimal], Decimal]
    slope: Callable[[Decimal, Decimal], Decimal]
    bend: Callable[[Decimal, Decimal], Decimal]
    floats: Callable[[Array, Array], Array]  # the slope as anyone would write it with NumPy
    most: float  # largest curvature


def _float_sigmoid(r: Array) -> Array:
    e = np.exp(-np.abs(r))
    return np.where(r >= 0.0, 1.0 / (1.0 + e), e / (1.0 + e))


SQUARE = Loss(lambda r, s: r * r / 2, lambda r, s: r, lambda r, s: ONE, lambda r, s: r, 1.0)
LOGISTIC = Loss(
    lambda r, s: softplus(-s * r),
    lambda r, s: -s * sigmoid(-s * r),
    lambda r, s: sigmoid(r) * sigmoid(-r),
    lambda r, s: -s * _float_sigmoid(-s * r),
    0.25,
)
LOGCOSH = Loss(
    lambda r, s: abs(r) + softplus(-2 * abs(r)) - TWO.ln(),
    lambda r, s: tanh(r),
    lambda r, s: 1 - tanh(r) ** 2,
    lambda r, s: np.tanh(r),
    1.0,
)


def huber(delta: float) -> Loss:
    """The Huber loss."""
    d = Decimal(delta)
    return Loss(
        lambda r, s: r * r / 2 if abs(r) <= d else d * abs(r) - d * d / 2,
        lambda r, s: clip(r, -d, d),
        lambda r, s: ONE if abs(r) <= d else Decimal(0),
        lambda r, s: np.clip(r, -delta, delta),
        1.0,
    )


def hinge(width: float) -> Loss:
    """The hinge loss, rounded over a width."""
    w = Decimal(width)

    def value(r: Decimal, s: Decimal) -> Decimal:
        short = max(1 - s * r, Decimal(0))
        return short * short / (2 * w) if short <= w else short - w / 2

    return Loss(
        value,
        lambda r, s: -s * clip((1 - s * r) / w, Decimal(0), ONE),
        lambda r, s: 1 / w if 0 < 1 - s * r < w else Decimal(0),
        lambda r, s: -s * np.clip((1.0 - s * r) / width, 0.0, 1.0),
        1.0 / width,
    )


# -- functions ---------------------------------------------------------------------------------------------------------

Hessian = list[tuple[Decimal, Array]]  # a sum of multiples of matrices of floats that are not too large or small


class Part:
    """A function for the library (``smooth``) and in decimal arithmetic.

    Attributes:
        smooth: the function as the library knows it.
        mu: a lower bound on the true strong convexity; it may be smaller than the true one by a factor.
        L: a true upper bound on the smoothness.
    """

    smooth: sp.Smooth
    mu: float
    L: float

    def grad(self, x: Decimals) -> Decimals:
        """The gradient."""
        raise NotImplementedError

    def value(self, x: Decimals) -> Decimal:
        """The value."""
        raise NotImplementedError

    def hessian(self, x: Decimals) -> Hessian:
        """The Hessian, approximately."""
        raise NotImplementedError

    def curvature(self, x: Decimals) -> Decimals:
        """The Hessian with 60 digits, where that is more than ``hessian`` has."""
        return sum(c * decimals(M) for c, M in self.hessian(x))

    def floats(self, x: Array) -> Array:
        """The gradient in floats, as a user would write it with NumPy."""
        raise NotImplementedError

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
        """D' diag(weight bend) D + l2 I."""
        bend = self.weights * apply(self.loss.bend, self._residual(x), self.signs)
        most = max(bend)
        own = [(Decimal(self.l2), np.eye(len(x)))]
        if most == 0:
            return own
        share = (bend / most).astype(float)
        if self.dense is None:
            return [(most, np.diag(share)), *own]
        scale, D = unit(self.dense)
        return [(most * Decimal(scale) ** 2, (D.T * share) @ D), *own]

    def curvature(self, x: Decimals) -> Decimals:
        """D' diag(weight bend) D + l2 I."""
        if self.exact is None:
            return super().curvature(x)
        bend = self.weights * apply(self.loss.bend, self._residual(x), self.signs)
        return (self.exact.T * bend) @ self.exact + Decimal(self.l2) * decimals(np.eye(len(x)))

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


@dataclass
class Separable(Part):
    """A sum of functions of single coordinates, by their slopes, curvatures and values, and a linear function."""

    smooth: sp.Smooth
    slope: Callable[[Decimal], Decimal]
    bend: Callable[[Decimal], Decimal]
    antiderivative: Callable[[Decimal], Decimal] | None
    linear: Decimals
    mu: float
    L: float

    def grad(self, x: Decimals) -> Decimals:
        """The slopes, and the linear part."""
        return apply(self.slope, x) + self.linear

    def value(self, x: Decimals) -> Decimal:
        """The value."""
        if self.antiderivative is None:
            raise NotImplementedError
        return Decimal(sum(apply(self.antiderivative, x)) + self.linear @ x)

    def hessian(self, x: Decimals) -> Hessian:
        """The curvatures."""
        bends = apply(self.bend, x)
        most = max(bends)
        return [(most, np.diag((bends / most).astype(float)))]

    def floats(self, x: Array) -> Array:
        """The gradient that the library has."""
        return self.smooth.grad(x)


def entropy(n: int, low: float, high: float) -> Part:
    """The sum of x log x within [low, high], continued by parabolas on both sides."""
    a, b = Decimal(low), Decimal(high)

    def slope(x: Decimal) -> Decimal:
        t = clip(x, a, b)
        return 1 + t.ln() + (x - t) / t

    def value(x: Decimal) -> Decimal:
        t = clip(x, a, b)
        return t * t.ln() + (1 + t.ln()) * (x - t) + (x - t) ** 2 / (2 * t)

    def bend(x: Decimal) -> Decimal:
        return 1 / clip(x, a, b)

    return Separable(sp.Entropy(low, high), slope, bend, value, decimals(np.zeros(n)), 0.999 / high, 1.001 / low)


@dataclass
class Total(Part):
    """A weighted sum of parts."""

    weights: Sequence[float]
    parts: Sequence[Part]
    smooth: sp.Smooth = field(init=False)

    def __post_init__(self) -> None:
        pairs = list(zip(self.weights, self.parts, strict=True))
        total = None
        for weight, part in pairs:
            term = part.smooth if weight == 1.0 else weight * part.smooth
            total = term if total is None else total + term
        assert total is not None
        self.smooth = total
        self.mu = sum(weight * part.mu for weight, part in pairs)
        self.L = sum(weight * part.L for weight, part in pairs)

    def grad(self, x: Decimals) -> Decimals:
        """The weighted sum of the gradients."""
        return sum(Decimal(w) * part.grad(x) for w, part in zip(self.weights, self.parts, strict=True))

    def value(self, x: Decimals) -> Decimal:
        """The weighted sum of the values."""
        return Decimal(sum(Decimal(w) * part.value(x) for w, part in zip(self.weights, self.parts, strict=True)))

    def hessian(self, x: Decimals) -> Hessian:
        """The weighted sum of the Hessians."""
        pairs = zip(self.weights, self.parts, strict=True)
        return [(Decimal(w) * c, M) for w, part in pairs for c, M in part.hessian(x)]

    def curvature(self, x: Decimals) -> Decimals:
        """The weighted sum of the Hessians."""
        return sum(Decimal(w) * part.curvature(x) for w, part in zip(self.weights, self.parts, strict=True))

    def floats(self, x: Array) -> Array:
        """The weighted sum of the gradients."""
        return sum(w * part.floats(x) for w, part in zip(self.weights, self.parts, strict=True))


class As(Part):
    """A part whose function is given to the library in another way."""

    def __init__(self, part: Part, smooth: sp.Smooth) -> None:
        self.part, self.smooth, self.mu, self.L = part, smooth, part.mu, part.L
        self.grad, self.value, self.floats = part.grad, part.value, part.floats  # type: ignore[method-assign]
        self.hessian, self.curvature = part.hessian, part.curvature  # type: ignore[method-assign]


# -- saddle points -----------------------------------------------------------------------------------------------------


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
        self.ask: Callable[[], Iterator[tuple[Array, Array]]] = lambda: iter(())  # further starts of Newton's method

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

    def _careful_step(self, x: Decimals, y: Decimals, Fx: Decimals, Fy: Decimals) -> tuple[Decimals, Decimals]:
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
        for x, y in chain([zero], (self._path(factor) for factor in (8, 2)), self.ask()):
            for step in (self._step, self._careful_step):
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
        except NotImplementedError:
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


def eliminate(matrix: Decimals, right: Decimals) -> Decimals:
    """The solution of a linear system, by Gaussian elimination with pivots."""
    J, r = matrix.copy(), right.copy()
    n = len(r)
    for k in range(n):
        pivot = k + max(range(n - k), key=lambda i: abs(J[k + i, k]))
        if J[pivot, k] == 0:
            raise ArithmeticError("the matrix is singular")
        J[[k, pivot]], r[[k, pivot]] = J[[pivot, k]], r[[pivot, k]]
        for i in range(k + 1, n):
            factor = J[i, k] / J[k, k]
            if factor:
                J[i, k:] -= factor * J[k, k:]
                r[i] -= factor * r[k]
    for k in reversed(range(n)):
        r[k] = (r[k] - J[k, k + 1 :] @ r[k + 1 :] if k + 1 < n else r[k]) / J[k, k]
    return r


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
