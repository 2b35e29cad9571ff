"""Smooth norms of groups of coordinates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import NUMPY64, Array, eps_of, space_of
from saddlepoint.ground.compensated import Sum
from saddlepoint.ground.directed import div_down
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, power_of_two
from saddlepoint.ground.rounding import gamma, underflow
from saddlepoint.ground.validation import as_vector
from saddlepoint.parts.functions.given_constants import as_nonnegative
from saddlepoint.parts.functions.second_order import UP
from saddlepoint.parts.functions.smooth import Smooth

SAFE = 1e-10, 1e10  # range of the largest entry in which squares of float32 numbers neither overflow nor underflow


class GroupHuber(Smooth):
    """weight sum_G huber(|x_G|) + l2/2 |x|^2 over groups G of coordinates, huber(r) = r^2/(2 width) or r - width/2.

    It is a smooth version of the group lasso's sum of norms: the term of a group is smaller than weight |x_G| by at
    most weight width/2. The Hessian of a radial function phi(r) has the eigenvalues phi''(r) and phi'(r)/r, hence
    mu = l2 and L = l2 + weight/width.

    Args:
        groups: a label for every coordinate, equal within a group; None makes one group of all of them.
        weight: the factor of the norms.
        width: below this norm the function is quadratic.
        l2: the multiple of |x|^2/2 that is added.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> phi = sp.GroupHuber([0, 0, 1], width=0.1, l2=0.5)
        >>> float(phi(np.array([3.0, 4.0, 0.0])))  # 5 - 0.1/2 + 0.5 * 25/2
        11.2
        >>> phi.conjugate()
        GroupHuberConjugate(n=3, mu=0.0952381, L=2)
    """

    def __init__(self, groups: Any = None, weight: float = 1.0, width: float = 1e-2, l2: float = 0.0) -> None:
        self.weight, self.width = _positive(weight, "weight"), _positive(width, "width")
        self.l2 = as_nonnegative(l2, "l2 of GroupHuber")
        self.labels = None if groups is None else _as_labels(groups)
        super().__init__(
            self._gradient,
            mu=self.l2,
            L=self.l2 + self.weight / self.width,
            value=self._value,
            prox=self._proximal,
            dim=None if self.labels is None else self.labels.shape[0],
            trusted=True,
            accuracy=0.0,
            rounding=self._rounding,
            compensated=self._compensated,
        )

    @property
    def proven_L(self) -> float:
        """L, rounded up."""
        return UP * self.L

    def conjugate(self) -> GroupHuberConjugate:
        """The conjugate y -> max_x <x, y> - f(x). It is smooth if f is strongly convex, so l2 must be positive."""
        return GroupHuberConjugate(self)

    def _gradient(self, x: Array) -> Array:
        return self._along(x, self._slope)

    def _compensated(self, x: Array) -> Sum:
        """The gradient with the sums of squares in more digits, which matters for large groups."""
        wide = np.asarray(x, dtype=np.float64)
        norms = CompensatedGroupNorms(wide, self.labels)
        p = scaled(wide, norms, self._slope)
        return Sum(p, 0.0 * p, self._errors(wide, norms, np.abs(p)))

    def _rounding(self, x: Array) -> Array:
        """Bounds on the errors of the entries of the gradient.

        They are x_i times slope(r)/r, a sum of positive terms that is computed by less than ten operations and changes
        by at most the relative error of r. Where r is lost to underflow, an entry and its error are at most L |x_i|.
        """
        return self._errors(x, GroupNorms(x, self.labels), np.abs(self._gradient(x)))

    def _errors(self, x: Array, r: GroupNorms, p: Array) -> Array:
        eps = eps_of(x)
        bound = p * r.spread(r.error + 10.0 * eps) + underflow(x)
        return np.where(r.spread(r.lost), self.L * np.abs(x) * (1.0 + eps) + p, bound)

    def _slope(self, r: Array) -> Array:
        return self.weight * np.minimum(r / self.width, 1.0) + self.l2 * r

    def _value(self, x: Array) -> float:
        r, d = GroupNorms(x, self.labels).sizes, self.width
        return self.weight * float(np.where(r <= d, r * r / (2.0 * d), r - 0.5 * d).sum()) + 0.5 * self.l2 * inner(x, x)

    def _proximal(self, v: Array, t: float) -> Array:
        """The norm r with phi'(r) + (r - |v|)/t = 0: of the solutions for the two branches of phi, the larger one."""

        def radius(s: Array) -> Array:
            inside = s / (1.0 + t * (self.l2 + self.weight / self.width))
            return np.maximum(inside, (s - t * self.weight) / (1.0 + t * self.l2))

        return self._along(v, radius)

    def _along(self, x: Array, radial: Any) -> Array:
        return along(x, self.labels, radial)


class GroupHuberConjugate(Smooth):
    """The conjugate of a ``GroupHuber``: on every group s^2/(2 c), c = l2 + weight/width, up to the norm
    s = weight + l2 width, and a parabola of curvature 1/l2 beyond. mu = 1/c and L = 1/l2.
    """

    def __init__(self, of: GroupHuber) -> None:
        if of.l2 == 0.0:
            raise ProblemError("the conjugate of a GroupHuber is smooth only if l2 > 0; give it a positive l2")
        self.of = of
        self._steep = of.L
        super().__init__(
            self._gradient,
            mu=div_down(1.0, of.L * (1.0 + 4.0 * NUMPY64.eps)),  # the sum and the quotient in of.L are rounded
            L=1.0 / of.l2,
            value=self._value,
            dim=of.dim,
            trusted=True,
            accuracy=0.0,
            rounding=self._rounding,
            compensated=self._compensated,
        )

    @property
    def proven_L(self) -> float:
        """1/l2 of the conjugate, rounded up."""
        return UP * self.L

    def _radius(self, s: Array) -> Array:
        return np.maximum(s / self._steep, (s - self.of.weight) / self.of.l2)

    def _gradient(self, y: Array) -> Array:
        return along(y, self.of.labels, self._radius)

    def _compensated(self, y: Array) -> Sum:
        """The gradient with the sums of squares in more digits."""
        wide = np.asarray(y, dtype=np.float64)
        norms = CompensatedGroupNorms(wide, self.of.labels)
        p = scaled(wide, norms, self._radius)
        return Sum(p, 0.0 * p, self._errors(wide, norms, np.abs(p)))

    def _rounding(self, y: Array) -> Array:
        """Bounds on the errors of the entries of the gradient, y_i times radius(s)/s.

        The two terms of the radius have errors from those of s and from a few operations; the one that is surely
        smaller does not count. Where s is lost to underflow, an entry and its error are at most L |y_i|.
        """
        return self._errors(y, GroupNorms(y, self.of.labels), np.abs(self._gradient(y)))

    def _errors(self, y: Array, norms: GroupNorms, p: Array) -> Array:
        of, eps, s = self.of, eps_of(y), norms.sizes
        inner_, outer = s / self._steep, (s - of.weight) / of.l2
        e_inner = (norms.error + 6.0 * eps) * inner_
        e_outer = (norms.error * s + eps * of.weight) / of.l2 + 3.0 * eps * np.abs(outer)
        error = np.where(outer + e_outer < inner_ - e_inner, e_inner, np.maximum(e_inner, e_outer))
        share = np.divide(error, s, out=np.zeros_like(s), where=s > 0.0)
        bound = np.abs(y) * norms.spread(share) + p * norms.spread(norms.error + 3.0 * eps) + underflow(y)
        return np.where(norms.spread(norms.lost), self.L * np.abs(y) * (1.0 + eps) + p, bound)

    def _value(self, y: Array) -> float:
        x = self._gradient(y)  # where <x, y> - f(x) is largest
        return inner(x, y) - self.of(x)


class GroupNorms:
    """The norms |x_G| of the groups G.

    The squares are summed in a unit in which those of the largest entries neither overflow nor underflow.

    Attributes:
        sizes: the norms.
    """

    def __init__(self, x: Array, labels: Array | None) -> None:
        if not isinstance(x, np.ndarray):
            raise ProblemError(
                f"GroupHuber was given a {type(x).__name__}; expected a NumPy array: with another library, use the "
                "simple function Groups"
            )
        self.labels, self.info, self.size = labels, np.finfo(x.dtype), x.size
        unit = 1.0
        with np.errstate(over="ignore"):
            self._squares = self._sums(x)
        if not (self._squares < math.inf).all() or self.lost.any():
            top = float(np.max(np.abs(x)))
            if top > 0.0 and not SAFE[0] < top < SAFE[1]:
                unit = power_of_two(top, space_of(x).exponent)
                self._squares = self._sums(x * (1.0 / unit))
        self.sizes = np.asarray(unit * np.sqrt(self._squares), dtype=x.dtype)

    def _sums(self, x: Array) -> Array:
        return np.atleast_1d(x.dot(x)) if self.labels is None else np.bincount(self.labels, x * x)

    @property
    def lost(self) -> Array:
        """Whether a norm is so far below the largest entry that its square has lost digits to underflow."""
        # An error of half the smallest normal number in each square is below eps/8 of their sum.
        return np.asarray(self._squares < 4.0 * float(self.info.smallest_normal / self.info.eps) * self.size)

    @property
    def error(self) -> Array:
        """Bounds on the relative errors of the norms."""
        counts = np.array([self.size]) if self.labels is None else np.bincount(self.labels)
        kinds, kind = np.unique(counts, return_inverse=True)
        return np.array([gamma(int(count) + 4, float(self.info.eps)) for count in kinds])[kind]

    def spread(self, values: Array) -> Array:
        """The value of its group for every coordinate."""
        return np.asarray(values[0] if self.labels is None else values[self.labels])


class CompensatedGroupNorms(GroupNorms):
    """The norms of ``GroupNorms``, with sums of squares that are rounded once, whatever the sizes of the groups."""

    def _sums(self, x: Array) -> Array:
        if self.labels is None:
            return np.array([_rounded_sum(x * x)])
        order = np.argsort(self.labels, kind="stable")
        ends = np.cumsum(np.bincount(self.labels))[:-1]
        return np.array([_rounded_sum(part) for part in np.split((x * x)[order], ends)])

    @property
    def error(self) -> Array:
        """Bounds on the relative errors: each square, their sum and its root are rounded once."""
        return np.full(self.sizes.shape, gamma(3, float(self.info.eps)))


def _rounded_sum(squares: Array) -> float:
    """The sum, rounded once; infinity or NaN if it is not finite."""
    try:
        return math.fsum(squares.tolist())
    except (OverflowError, ValueError):
        return float(squares.sum())


def along(x: Array, labels: Array | None, radial: Any) -> Array:
    """The vector x, rescaled so that the norm r of each group becomes radial(r)."""
    return scaled(x, GroupNorms(x, labels), radial)


def scaled(x: Array, norms: GroupNorms, radial: Any) -> Array:
    """The vector x, rescaled as by ``along``, for norms of the groups that are known."""
    r = norms.sizes
    return np.asarray(x * norms.spread(np.divide(radial(r), r, out=np.zeros_like(r), where=r > 0.0)))


def _as_labels(groups: Any) -> Array:
    labels = as_vector(groups, "groups of GroupHuber")
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def _positive(value: float, name: str) -> float:
    number = as_nonnegative(value, f"{name} of GroupHuber")
    if number == 0.0:
        raise ProblemError(f"{name} of GroupHuber is 0; expected a positive number")
    return number
