"""Norms of groups, made smooth near zero."""

from __future__ import annotations

from copy import copy

import numpy as np

from saddlepoint.ground.arrays import Array, dense
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple import Groups

SMALL = 10.0  # groups up to this many times delta are taken for zero


class SmoothNorms:
    """g(x) + sum_G weight_G sqrt(|x_G|^2 + delta^2), which is g plus norms of groups in the limit delta = 0.

    Args:
        p: the norms.
        g: the smooth function, with a value and a Hessian.
        n: the number of variables.

    Attributes:
        delta: how far from zero the norms are rounded; with delta = 0, the derivatives leave out groups that are zero.
    """

    def __init__(self, p: Groups, g: Smooth, n: int) -> None:
        assert g.hessian is not None
        assert g.value is not None
        self.p, self.delta = p, 0.0
        self.smooth_value, self.smooth_grad, self.smooth_hessian = g.value, g.grad, g.hessian
        count = p.partition.norms(np.zeros(n)).shape[0]
        self.labels = np.broadcast_to(p.partition.spread(np.arange(count), np.zeros(n)), n)
        self.members = [np.flatnonzero(self.labels == label) for label in range(count)]
        self.weights = p.balls.radii.everywhere(count)

    def value(self, x: Array) -> float:
        """The value at x."""
        return self.smooth_value(x) + float(self.weights @ self._sizes(x))

    def grad(self, x: Array) -> Array:
        """The gradient at x."""
        found: Array = self.smooth_grad(x) + self._factors(x)[self.labels] * x
        return found

    def hessian(self, x: Array) -> Array:
        """The Hessian at x: weight/s (I - x_G x_G'/s^2) with s^2 = |x_G|^2 + delta^2 for each group is added."""
        H, factors, sizes = dense(self.smooth_hessian(x)), self._factors(x), self._sizes(x)
        H = H + np.diag(factors[self.labels])
        for label in np.flatnonzero(factors > 0.0):
            G = self.members[label]
            H[np.ix_(G, G)] -= factors[label] / sizes[label] ** 2 * np.outer(x[G], x[G])
        return H

    def exact(self) -> SmoothNorms:
        """The same with delta = 0."""
        other = copy(self)
        other.delta = 0.0
        return other

    def residual(self, x: Array, w: Array) -> Array:
        """grad g(x) + w plus the subgradient of the norms themselves at x that makes it shortest, nearly."""
        slope = self.smooth_grad(x) + w
        return np.asarray(slope + self.p.subgradient(x, self.p.dual_point(-slope)))

    def without_small_groups(self, x: Array) -> Array:
        """x with zeros in the groups that only the rounding of the norms keeps off zero."""
        small = self._sizes(x) <= SMALL * self.delta
        return np.where(small[self.labels] & (self.weights > 0.0)[self.labels], 0.0, x)

    def used(self, x: Array) -> Array:
        """Whether each coordinate is in a group that is not zero at x, or in one without a norm."""
        return np.asarray(((self.exact()._sizes(x) > 0.0) | (self.weights == 0.0))[self.labels])

    def _sizes(self, x: Array) -> Array:
        return np.asarray(np.sqrt(np.bincount(self.labels, x * x, self.weights.shape[0]) + self.delta**2))

    def _factors(self, x: Array) -> Array:
        sizes = self._sizes(x)
        return np.asarray(np.where(sizes > 0.0, self.weights / np.where(sizes > 0.0, sizes, 1.0), 0.0))
