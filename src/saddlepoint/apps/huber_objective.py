"""Huber's loss, minimised over the intercept, plus a ridge: values, gradients and bounds on their rounding."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.parts.coupling import Coupling, as_coupling
from saddlepoint.parts.functions import Smooth
from saddlepoint.parts.functions.constants import DENSE, ROUNDING

ENTRIES = 30_000_000  # number of entries of D T up to which it is formed for a sparse D
UNIT = 8.0 * EPS  # relative size of rounding errors, by which the accuracy of the subproblems is chosen
SMALLEST = float(np.finfo(np.float64).tiny)  # the smallest normal number
UP = 1.0 + 1e-6  # factor that exceeds the relative rounding of the bounds themselves
DOUBLINGS = 100  # largest number of doublings of an interval for the intercept


def balance(r: Array, delta: float) -> float:
    """The b with sum_i clip(b - r_i, -delta, delta) = 0: Huber's estimate of the centre of r.

    The sum grows with b and is linear in pieces. A Newton step from the right piece returns to the same b; a step that
    leaves the bracket is replaced by bisection.
    """
    low, high = float(r.min()), float(r.max())
    b = float(np.median(r))
    for _ in range(100):
        above, below = r >= b + delta, r <= b - delta
        inside = ~(above | below)
        count, excess = int(inside.sum()), int(above.sum()) - int(below.sum())
        if count == excess == 0:  # every b in an interval is a solution
            break
        new = (float(r[inside].sum()) + delta * excess) / count if count else excess * math.inf
        low, high = (b, high) if new > b else (low, b)
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if new == b:
            break
        b = new
    return b


def _intercept_error(r: Array, off: Array, delta: float) -> float:
    """A bound on how far the exact intercept is from b, for residuals r with that b that may be wrong by ``off``."""
    inside = np.abs(r) <= delta
    error = max(2.0 * float(off.sum()) / max(1, int(inside.sum())), float(np.max(off)), SMALLEST)
    for _ in range(DOUBLINGS):
        low = math.fsum(np.clip(r - error + off, -delta, delta).tolist())
        high = math.fsum(np.clip(r + error - off, -delta, delta).tolist())
        if low <= 0.0 <= high:
            return error * UP
        error *= 2.0
    return math.inf


def _product(A: Coupling, v: Array) -> tuple[Array, Array]:
    """A v, and bounds on the errors of its entries."""
    found = A.compensated_mul(v)
    assert found is not None  # D is an array or a sparse array
    total = found.hi + found.lo
    return total, found.error + EPS * np.abs(total)


class Loss(NamedTuple):
    """w -> min_b (1/N) sum_i huber(d_i'w + b - t_i); b = 0 if it is not free."""

    D: Coupling
    t: Array
    delta: float
    free: bool

    def value(self, w: Array) -> float:
        """The value at w."""
        size = np.abs(self.residual(w))
        d = self.delta
        return float(np.where(size <= d, 0.5 * size * size, d * size - 0.5 * d * d).mean())

    def grad(self, w: Array) -> Array:
        """The gradient at w."""
        return self.D.tmul(np.clip(self.residual(w), -self.delta, self.delta) * (1.0 / self.D.shape[0]))

    def hessian(self, w: Array) -> Array:
        """The Hessian at w, for a dense D: that of the rows with |r| <= delta, centred if b is free."""
        inside = self.D.matrix()[np.abs(self.residual(w)) <= self.delta]
        if self.free and len(inside):
            inside = inside - inside.mean(axis=0)
        return np.asarray(inside.T @ inside / self.D.shape[0])

    def residual(self, w: Array) -> Array:
        """D w + b - t."""
        r = self.D.mul(w) - self.t
        return r + balance(-r, self.delta) if self.free else r


class Objective(Smooth):
    """g(w). A dense X has its columns centred if there is an intercept; for a sparse X, b accounts for the means."""

    def __init__(self, X: Any, y: Array, l2: float, delta: float, intercept: bool) -> None:
        rows, features = X.shape
        self.means = np.asarray(X.mean(axis=0)).ravel() if intercept else np.zeros(features)
        self.X = X if issparse(X) else X - self.means
        self.median = float(np.median(y)) if intercept else 0.0
        self.t = y - self.median
        self.loss = Loss(as_coupling(self.X, "X"), self.t, delta, intercept)
        self.size_X = norm(np.ravel(self.X.data if issparse(X) else self.X)) / math.sqrt(rows)
        self.size_t = norm(self.t) / math.sqrt(rows)
        # A typical size of the targets, which outliers do not change.
        self.spread = float(np.median(np.abs(self.t))) or self.size_t or 1.0
        self.spectrum = self._spectrum()
        top = (
            self.loss.D.estimated_norm().upper ** 2 / rows
            if self.spectrum is None
            else self.spectrum[0][-1] * (1.0 + ROUNDING)
        )
        super().__init__(
            lambda w: self.loss.grad(w) + l2 * w,
            mu=l2,
            L=l2 + float(top),
            value=lambda w: self.loss.value(w) + 0.5 * l2 * inner(w, w),
            dim=features,
            dtype=np.float64,
            trusted=True,
        )

    def intercept(self, w: Array) -> float:
        """The b that belongs to w and to X as it was given."""
        r = self.t - self.loss.D.mul(w)
        b = balance(r, self.loss.delta) if self.loss.free else 0.0
        return self.median + b - (0.0 if issparse(self.X) else inner(self.means, w))

    @property
    def proven_L(self) -> float:
        """A proven bound on the smoothness: the trace of D'D/N is not below its largest eigenvalue."""
        return UP * (self.mu + self.size_X**2)

    def compensated_gradient(self, w: Array) -> tuple[Array, float]:
        """The gradient at w for the data as given, and a proven bound on its error.

        Products are computed in about twice the digits. The residuals r then lie in intervals, because the entries of D
        are rounded, and so does the intercept: at one end the sum of clip(r + b, -delta, delta) is surely not
        positive, at the other it is surely not negative. So each slope lies in an interval too.
        """
        D, delta, rows = self.loss.D, self.loss.delta, self.loss.D.shape[0]
        size = abs(D.matrix())
        r, off = _product(D, w)
        r = r - self.t
        b = balance(-r, delta) if self.loss.free else 0.0
        off = UP * (off + EPS * (size @ np.abs(w)) + 2.0 * EPS * (np.abs(self.t) + np.abs(r) + abs(b)))
        r = r + b
        if self.loss.free:
            off = off + _intercept_error(r, off, delta)
        slope = np.clip(r, -delta, delta)
        wide = np.maximum(np.clip(r + off, -delta, delta) - slope, slope - np.clip(r - off, -delta, delta))
        sums, error = _product(D.T, slope)
        gradient = sums / rows + self.mu * w
        errors = error + size.T @ (UP * wide + 2.0 * EPS * np.abs(slope)) * (1.0 + gamma(rows + 4, EPS))
        errors = errors / rows + 4.0 * EPS * (np.abs(sums) / rows + self.mu * np.abs(w))
        return gradient, UP * norm(errors)

    def rounding_estimate(self, w: Array) -> float:
        """An estimate of the rounding error of the gradient."""
        return UNIT * (self.size_X * (self.size_X * norm(w) + self.size_t) + self.mu * norm(w))

    def _spectrum(self) -> tuple[Array, Array] | None:
        """Eigenvalues and eigenvectors of D'D/N with centred columns, if they and D T are small enough to form."""
        rows, features = self.X.shape
        if features > DENSE or (issparse(self.X) and rows * features > ENTRIES):
            return None
        gram = self.loss.D.gram() / rows
        if issparse(self.X):
            gram = gram.toarray() - np.outer(self.means, self.means)
        values, vectors = eigh(gram)
        return np.maximum(values, 0.0), vectors
