"""Regularised risks: an average of losses of D x, plus l2/2 |x|^2.

Each loss is one convex function of one variable. Without data D the loss acts on the coordinates of x themselves and
is summed instead of averaged; the function is then separable and its prox is cheap.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np
from scipy.sparse import diags_array, issparse

from saddlepoint.ground.arrays import (
    NUMPY64,
    Array,
    common_space,
    eps_of,
    is_array,
    is_constant,
    namespace,
    space_of,
)
from saddlepoint.ground.compensated import Sum
from saddlepoint.ground.directed import add_down, mul_down
from saddlepoint.ground.elementwise import cast_like, choose, clip, sigmoid, softplus, tanh
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.recording import is_recording
from saddlepoint.ground.rounding import ELEMENTARY, flushed, underflow
from saddlepoint.ground.validation import as_offset, as_vector
from saddlepoint.parts.coupling import Coupling, DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.parts.functions.accuracy import Careful, Rounding, known_rounding
from saddlepoint.parts.functions.careful import divided, exactly, product, rounded, total, two_product, widened
from saddlepoint.parts.functions.constants import gram_bounds
from saddlepoint.parts.functions.products import absolute, is_bounded, number_error, ridge_rounding
from saddlepoint.parts.functions.second_order import UP
from saddlepoint.parts.functions.smooth import Smooth, _constant, plus_identity

LOGISTIC_THIRD = 1.0 / (6.0 * math.sqrt(3.0))  # largest third derivative of log(1 + exp(r)): 0.0962
LOG_COSH_THIRD = 4.0 / (3.0 * math.sqrt(3.0))  # largest third derivative of log cosh(r): 0.770


class Risk(Smooth):
    """mean_i loss(d_i'x - t_i) + l2/2 |x|^2, or sum_i loss(x_i - t_i) + l2/2 |x|^2 when D is None.

    Args:
        curvature: bounds on the second derivative of the loss.

    A subclass defines the loss and its first two derivatives, applied to arrays: ``_loss``, ``_slope`` and ``_bend``.
    They are methods and not closures, so that the function can be sent to another process. With D = None a subclass may
    have ``_separable_prox`` and ``_restrict``.
    """

    _separable_prox: Any = None
    _restrict: Any = None
    _kept: tuple[Array, Array, Array] | None = None  # a point, its residuals, and D'slope/N

    def __init__(
        self,
        D: Any,
        t: Any,
        l2: float,
        *,
        curvature: tuple[float, float],
        quadratic: bool = False,
    ) -> None:
        name = type(self).__name__
        self.l2 = l2 = _constant(l2, f"l2 of {name}")
        self.D: Coupling | None = _as_data(D, name)
        rows = None if self.D is None else self.D.shape[0]
        self.t: float | Array | None = None if t is None else as_offset(t, f"t of {name}", rows)
        self.curvature, self.quadratic = curvature, quadratic
        self._ends = (1.0, 1.0) if self.D is None else gram_bounds(self.D)
        self._gram = self._ends[1]
        self._assemble()

    def with_l2(self, l2: float) -> Risk:
        """This function with another l2; D and what was computed for it are shared.

        Example:
            >>> import saddlepoint as sp
            >>> sp.LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0]).with_l2(0.5)
            LeastSquares(n=2, mu=1, L=2.5)
        """
        other = copy(self)
        other.l2 = _constant(l2, f"l2 of {type(self).__name__}")
        other._assemble()
        return other

    def _assemble(self) -> None:
        """Make the oracles, which are methods of this object."""
        name, l2, curvature, gram = type(self).__name__, self.l2, self.curvature, self._ends
        scale = 1.0 if self.D is None else 1.0 / self.D.shape[0]
        mu = add_down(l2, mul_down(scale, mul_down(curvature[0], gram[0])))
        elsewhere = None
        if self.D is not None:
            of_Dx = Smooth(
                self._gradient,
                mu=0.0,
                L=curvature[1],
                value=self._value,
                quadratic=self.quadratic,
                restrict=self._losses,
                **known_rounding(*(self._rounding, self._careful) if self._bounds_slopes() else ()),
            )
            elsewhere = self.D.of_rows(of_Dx, scale=scale, l2=l2, curvature=curvature, gram=gram)
        super().__init__(
            self._gradient if elsewhere is None else elsewhere.grad,
            mu=mu,
            L=larger(mu, l2 + scale * curvature[1] * gram[1]),
            value=self._value if elsewhere is None else elsewhere.value,
            prox=self._separable_prox if self.D is None else None,
            dim=self.D.shape[1] if self.D is not None else _size(self.t),
            space=common_space(
                {
                    f"D of {name}": None if self.D is None else self.D.space.of_y,
                    f"t of {name}": None if isinstance(self.t, float) else self.t,
                }
            ),
            quadratic=self.quadratic,
            restrict=self._restrict if self.D is None else None,
            hessian=self._hessian if self.D is None or isinstance(self.D, DenseCoupling | SparseCoupling) else None,
            hessian_lipschitz=0.0 if self.quadratic else self._hessian_change,
            second_order=self._quadratic_model if elsewhere is None else None,
            trusted=True,
            **(known_rounding(*self._known_rounding()) if elsewhere is None else elsewhere.arithmetic),
        )

    def _loss(self, r: Array) -> Array:
        raise NotImplementedError

    def _slope(self, r: Array) -> Array:
        raise NotImplementedError

    def _bend(self, r: Array) -> Array:
        raise NotImplementedError

    def _bend_change(self, r: Array, e: Array) -> Array:
        """Bounds on the changes of ``_bend`` where the residuals change by at most e.

        It is what the range of the second derivative allows, unless a subclass knows more.
        """
        return 0.0 * e + (self.curvature[1] - self.curvature[0])

    def _slope_error(self, r: Array, e: Array) -> Array:
        """Bounds on the errors of ``_slope(r)`` as the slope at the true residual, which differs from r by at most e.

        A subclass without this method has no bounds on the errors of its gradient.
        """
        raise NotImplementedError

    def _losses(self, rows: slice) -> Smooth:
        """The sum of the losses of some rows, as a function of the entries of D x that belong to them."""
        own = object.__new__(type(self))
        held = {name: value for name, value in vars(self).items() if name in ("t", "labels", "delta", "width")}
        sliced = {name: _part(held[name], rows) for name in ("t", "labels") if held.get(name) is not None}
        vars(own).update({**held, **sliced, "D": None, "l2": 0.0})
        return Smooth(
            own._gradient, mu=0.0, L=self.curvature[1], value=own._value, **known_rounding(*own._known_rounding())
        )

    def _residual(self, x: Array) -> Array:
        Dx = x if self.D is None else self.D.mul(x)
        return Dx if self.t is None else Dx - self.t

    def _gradient(self, x: Array) -> Array:
        r = self._residual(x)
        slope = self._slope(r)
        if self.D is not None:
            slope = self.D.tmul(slope) * (1.0 / self.D.shape[0])
            if is_constant(x):
                self._kept = x, r, slope
        return slope + self.l2 * x

    def _products(self, x: Array) -> tuple[Array, Array | None]:
        """The residuals at x, and the gradient without the term l2 x if ``_gradient`` has just computed it there."""
        kept, self._kept = self._kept, None
        return kept[1:] if kept is not None and kept[0] is x else (self._residual(x), None)

    def _bounds_slopes(self) -> bool:
        return type(self)._slope_error is not Risk._slope_error

    def _known_rounding(self) -> tuple[Rounding, Careful] | tuple[()]:
        return (self._rounding, self._careful) if self._bounds_slopes() and is_bounded(self.D) else ()

    def _rounding(self, x: Array) -> Array:
        """Bounds on the errors of the entries of the gradient.

        The residual r = D x - t has the error e of the product and eps |r| of the subtraction; ``_slope_error`` turns
        it into an error d of the slopes s. Then D's has the error of that product and |D|'d. The factor 1/N, l2 and
        the two products with them are rounded, and the sum.
        """
        xp, eps, D = namespace(x), eps_of(x), self.D
        r, product = self._products(x)
        e = 0.0 * xp.abs(r) if D is None else absolute(D).errors(x)
        if self.t is not None:
            e = e + eps * xp.abs(r) + flushed(r) + number_error(self.t, eps)
        slope, bound = self._slope(r), self._slope_error(r, e)
        if D is not None:
            scale, transpose = 1.0 / D.shape[0], absolute(D.T)
            bound = scale * transpose.errors(slope, bound)
            slope = D.tmul(slope) * scale if product is None else product
            bound = bound + 2.0 * eps * xp.abs(slope) + underflow(slope)
        return bound if self.l2 == 0.0 else bound + ridge_rounding(slope, self.l2, x)

    def _careful(self, x: Array) -> Sum:
        """The gradient with sums in about twice the digits; the ordinary one where D has no such products."""
        wide, D = widened(x), self.D
        r = None if wide is None else exactly(wide) if D is None else product(D, exactly(wide))
        if r is not None and wide is not None:
            slope = self._careful_slope(r if self.t is None else total(r, exactly(-cast_like(self.t, r.hi))))
            found = slope if D is None else product(D.T, slope)
            if found is not None:
                found = found if D is None else divided(found, float(D.shape[0]))
                return total(found, two_product(wide, self.l2)) if self.l2 > 0.0 else found
        return Sum(self._gradient(x), 0.0 * x, self._rounding(x))

    def _careful_slope(self, r: Sum) -> Sum:
        """The slopes at the residuals r, as accurately as ``_slope`` computes them."""
        high, error = rounded(r)
        slope = self._slope(high)
        return Sum(slope, 0.0 * slope, self._slope_error(high, error))

    def _weights(self, x: Array) -> Any:
        """The second derivatives of the losses at x."""
        return self._bend(self._residual(x))

    def _quadratic_model(self, x: Array) -> Smooth:
        return WeightedSquares(self, self._weights(x))

    def _hessian_change(self, x: Array, u: Array, reach: float) -> float:
        """A bound on |(H(x') - H(x)) u| for |x' - x| <= reach, and for H(x) as computed.

        Residuals change by at most |d_i| reach, and second derivatives of the losses by at most c_i. With b_i = c_i
        |<d_i, u>|, the change is |D'b|/N at most, hence at most |D||b|/N and the sum of the |d_i| b_i/N.
        """
        xp, D, r = namespace(x), self.D, self._residual(x)
        if D is None:
            e, s = reach + 2.0 * eps_of(x) * xp.abs(x), u
        else:
            rows = D.row_lengths()
            lengths: Any = cast_like(space_of(x).cast(np.asarray(rows)), x) if is_array(rows) else rows
            e, s = lengths * (reach + 0.0 * r), D.mul(u)
            if is_bounded(D):
                e, s = e + absolute(D).errors(x), xp.abs(s) + absolute(D).errors(u)
        e = UP * (e + 2.0 * eps_of(x) * xp.abs(r))
        own = 4.0 * ELEMENTARY * eps_of(x) * self.curvature[1]  # rounding of the second derivatives
        b = (clip(self._bend_change(r, e), 0.0, self.curvature[1] - self.curvature[0]) + own) * xp.abs(s)
        if D is None:
            return UP * norm(b)
        return UP * min(math.sqrt(self._gram) * norm(b), float(xp.sum(lengths * b))) / int(D.shape[0])

    def _hessian(self, x: Array) -> Any:
        bend = self._bend(self._residual(x))
        if self.D is None:
            return diags_array(bend + self.l2, format="csr")
        D = self.D.matrix()
        weighted = diags_array(bend) @ D if issparse(D) else bend[:, None] * D
        return plus_identity((1.0 / D.shape[0]) * (D.T @ weighted), self.l2)

    def _value(self, x: Array) -> float:
        losses = self._loss(self._residual(x))
        total = float(namespace(losses).sum(losses))
        return (total if self.D is None else total / self.D.shape[0]) + 0.5 * self.l2 * inner(x, x)


class WeightedSquares(Risk):
    """mean_i weight_i (d_i'u)^2/2 + l2/2 |u|^2: the quadratic model of a risk.

    Args:
        of: the risk.
        weights: the second derivatives of its losses, or one number for all.
    """

    def __init__(self, of: Risk, weights: Any) -> None:
        self.D, self.t, self.l2, self.curvature, self._gram = of.D, None, of.l2, of.curvature, of._gram
        self.weights = weights
        Smooth.__init__(
            self,
            self._gradient,
            mu=of.mu,
            L=of.L,
            value=self._value,
            dim=of.dim,
            space=of.space,
            quadratic=True,
            hessian=None if of.hessian is None else self._hessian,
            hessian_lipschitz=0.0,
            second_order=self._same,
            trusted=True,
            **known_rounding(*self._known_rounding()),
        )

    def _same(self, x: Array) -> Smooth:
        return self

    def _like(self, r: Array) -> Any:
        return self.weights if isinstance(self.weights, float) else cast_like(self.weights, r)

    def _loss(self, r: Array) -> Array:
        losses: Array = 0.5 * self._like(r) * r * r
        return losses

    def _slope(self, r: Array) -> Array:
        slope: Array = self._like(r) * r
        return slope

    def _bend(self, r: Array) -> Array:
        bend: Array = self._like(r) + 0.0 * r
        return bend

    def _slope_error(self, r: Array, e: Array) -> Array:
        """That of the residual, times the weight; the weight in the dtype of r and the product are rounded."""
        xp = namespace(r)
        bound: Array = self._like(r) * e * (1.0 + 2.0 * eps_of(r)) + 2.0 * eps_of(r) * xp.abs(self._slope(r))
        return bound + underflow(r)


class LeastSquares(Risk):
    """|D x - t|^2 / (2 N) + l2/2 |x|^2 with the N rows of D."""

    def __init__(self, D: Any, t: Any, l2: float = 0.0) -> None:
        if D is None:
            raise ProblemError("LeastSquares needs data D; for a separable quadratic use Quadratic")
        super().__init__(D, t, l2, curvature=(1.0, 1.0), quadratic=True)

    def _loss(self, r: Array) -> Array:
        return 0.5 * r * r

    def _slope(self, r: Array) -> Array:
        return r

    def _slope_error(self, r: Array, e: Array) -> Array:
        return e

    def _careful_slope(self, r: Sum) -> Sum:
        return r

    def _bend(self, r: Array) -> Array:
        return np.ones_like(r)

    def _weights(self, x: Array) -> float:
        return 1.0

    def _hessian(self, x: Array) -> Any:
        assert self.D is not None
        return plus_identity(self.D.gram() * (1.0 / self.D.shape[0]), self.l2)


class Logistic(Risk):
    """mean_i log(1 + exp(-label_i d_i'x)) + l2/2 |x|^2 with labels +1 and -1."""

    def __init__(self, D: Any, labels: Any, l2: float = 0.0) -> None:
        D = _as_data(D, "Logistic")
        self.labels = _as_labels(D, labels, "Logistic")
        super().__init__(D, None, l2, curvature=(0.0, 0.25))

    def _loss(self, r: Array) -> Array:
        return softplus(-(self.labels * r))

    def _slope(self, r: Array) -> Array:
        s = self.labels
        return cast_like(-(s * sigmoid(-(s * r))), r)

    def _slope_error(self, r: Array, e: Array) -> Array:
        """The derivative is at most 1/4 and exp(-|r|). The logistic function of other libraries than NumPy is
        1/2 + tanh(r/2)/2, with an error relative to 1 instead of the result.
        """
        xp, eps = namespace(r), eps_of(r)
        steepest = clip(xp.exp(-_least(r, e)), 0.0, 0.25)
        relative = isinstance(r, np.ndarray)
        own = 2.0 * ELEMENTARY * eps * (xp.abs(self._slope(r)) if relative else 0.0 * e + 1.0)
        least: float = float(xp.finfo(r.dtype).smallest_normal)
        return clip(e * steepest + own + least, 0.0, 1.0)

    def _bend(self, r: Array) -> Array:
        return sigmoid(r) * sigmoid(-r)

    def _bend_change(self, r: Array, e: Array) -> Array:
        return LOGISTIC_THIRD * e


class SmoothedHinge(Risk):
    """mean_i hinge(label_i d_i'x) + l2/2 |x|^2 with labels +1 and -1, the hinge max(0, 1 - s) rounded over ``width``.

    hinge(s) = 0 for s >= 1, (1 - s)^2/(2 width) for 1 - width <= s <= 1, and 1 - s - width/2 below.
    """

    def __init__(self, D: Any, labels: Any, l2: float = 0.0, width: float = 1.0) -> None:
        D = _as_data(D, "SmoothedHinge")
        self.labels = _as_labels(D, labels, "SmoothedHinge")
        self.width = w = _constant(width, "width of SmoothedHinge")
        if not is_recording() and w == 0.0:
            raise ProblemError("width of SmoothedHinge is 0; expected a positive number")
        super().__init__(D, None, l2, curvature=(0.0, 1.0 / w))

    def _loss(self, r: Array) -> Array:
        w, short = self.width, clip(1.0 - self.labels * r, 0.0, math.inf)
        return choose(short <= w, short * short / (2.0 * w), short - 0.5 * w)

    def _slope(self, r: Array) -> Array:
        s, w = self.labels, self.width
        return cast_like(-(s * clip((1.0 - s * r) / w, 0.0, 1.0)), r)

    def _slope_error(self, r: Array, e: Array) -> Array:
        """The difference 1 - label r, the width and the quotient are rounded; where the slope is surely 0 or 1, the
        error is 0.
        """
        xp, w = namespace(r), self.width
        inside = 1.0 - self.labels * r
        off = (e + 3.0 * eps_of(r) * xp.abs(inside)) / w
        sure = (inside / w < -off) | (inside / w > 1.0 + off)
        return choose(sure, 0.0 * r, clip(off, 0.0, 1.0))

    def _bend(self, r: Array) -> Array:
        w, short = self.width, 1.0 - self.labels * r
        return choose((short > 0.0) & (short < w), 0.0 * r + 1.0 / w, 0.0 * r)

    def _bend_change(self, r: Array, e: Array) -> Array:
        """Nothing changes where no kink of the slope is within reach."""
        xp, w = namespace(r), self.width
        short = 1.0 - self.labels * r
        return choose((xp.abs(short) > UP * e) & (xp.abs(short - w) > UP * e), 0.0 * e, 0.0 * e + 1.0 / w)


def larger(a: float, b: float) -> float:
    """The larger number; within ``recording()``, where numbers may be symbols, the second one."""
    return b if is_recording() else max(a, b)


def _least(r: Array, e: Array) -> Array:
    """The least absolute value of a residual that differs from r by at most e."""
    return clip(namespace(r).abs(r) - e, 0.0, math.inf)


def _as_data(D: Any, name: str) -> Coupling | None:
    return None if D is None else as_coupling(D, f"D of {name}")


def _as_labels(D: Coupling | None, labels: Any, name: str) -> Array:
    if D is None:
        raise ProblemError(f"{name} needs data D, one row a sample")
    s = as_vector(labels, f"labels of {name}", D.shape[0])
    xp = namespace(s)
    if is_recording():
        return s
    if not bool(xp.all(xp.abs(s) == 1.0)):
        odd = float(s[xp.abs(s) != 1.0][0])
        raise ProblemError(f"labels of {name} hold {odd:g}; expected +1 and -1 (2 * label - 1 maps 0/1 labels)")
    return s


def _size(t: float | Array | None) -> int | None:
    """The number of entries of an offset; None for a number, which fits all sizes."""
    return None if t is None or isinstance(t, float) else int(t.shape[0])


def _part(t: float | Array | None, rows: slice) -> float | Array | None:
    """Some entries of an offset; a number is the same for all."""
    return t if t is None or isinstance(t, float) else t[rows]


class Huber(Risk):
    """Huber loss with l2: r^2/2 where |r| <= delta, delta |r| - delta^2/2 beyond.

    mean_i huber(d_i'x - t_i) + l2/2 |x|^2; without D: sum_i huber(x_i - t_i) + l2/2 |x|^2.
    """

    def __init__(self, D: Any = None, t: Any = None, l2: float = 0.0, delta: float = 1.0) -> None:
        self.delta = d = _constant(delta, "delta of Huber")
        if not is_recording() and d == 0.0:
            raise ProblemError("delta of Huber is 0; expected a positive number")
        super().__init__(D, t, l2, curvature=(0.0, 1.0))

    def _loss(self, r: Array) -> Array:
        d = self.delta
        return choose(abs(r) <= d, 0.5 * r * r, d * abs(r) - 0.5 * d * d)

    def _slope(self, r: Array) -> Array:
        return clip(r, -self.delta, self.delta)

    def _slope_error(self, r: Array, e: Array) -> Array:
        """Where the residual is surely beyond delta, only delta is rounded, to the dtype of r."""
        d = eps_of(r) * self.delta if eps_of(r) > NUMPY64.eps else 0.0
        return choose(_least(r, e) > self.delta + d, 0.0 * e + d, clip(e, 0.0, 2.0 * self.delta) + d)

    def _careful_slope(self, r: Sum) -> Sum:
        """The residuals themselves where they are surely within delta."""
        high, error = rounded(r)
        inside = abs(high) + error < self.delta
        nothing, slope = 0.0 * high, self._slope(high)
        return Sum(slope, choose(inside, r.lo, nothing), choose(inside, r.error, self._slope_error(high, error)))

    def _bend(self, r: Array) -> Array:
        return choose(abs(r) <= self.delta, 0.0 * r + 1.0, 0.0 * r)

    def _bend_change(self, r: Array, e: Array) -> Array:
        """Nothing changes where no kink of the slope is within reach."""
        return choose(abs(abs(r) - self.delta) > UP * e, 0.0 * e, 0.0 * e + 1.0)

    def _restrict(self, rows: slice) -> Huber:
        return Huber(None, _part(self.t, rows), self.l2, self.delta)

    def _separable_prox(self, v: Array, t: float) -> Array:
        """The u with clip(u - c, -d, d) + l2 u + (u - v)/t = 0: both branches are solved, and the valid one is kept."""
        d, centre = self.delta, 0.0 if self.t is None else self.t
        s = self.l2 + 1.0 / t
        middle = (v / t + centre) / (1.0 + s)
        outside = choose(middle > centre, (v / t - d) / s, (v / t + d) / s)
        return choose(abs(middle - centre) <= d, middle, outside)


class LogCosh(Risk):
    """log-cosh loss with l2, a smooth absolute value: mean_i log cosh(d_i'x - t_i) + l2/2 |x|^2.

    Without D: sum_i log cosh(x_i - t_i) + l2/2 |x|^2.
    """

    def __init__(self, D: Any = None, t: Any = None, l2: float = 0.0) -> None:
        super().__init__(D, t, l2, curvature=(0.0, 1.0))

    def _loss(self, r: Array) -> Array:
        return abs(r) + softplus(-2.0 * abs(r)) - math.log(2.0)

    def _slope(self, r: Array) -> Array:
        return tanh(r)

    def _slope_error(self, r: Array, e: Array) -> Array:
        """The derivative is at most 1 and 4 exp(-2 |r|)."""
        xp = namespace(r)
        steepest = clip(4.0 * xp.exp(-2.0 * _least(r, e)), 0.0, 1.0)
        bound: Array = clip(e * steepest, 0.0, 2.0) + ELEMENTARY * eps_of(r) * xp.abs(tanh(r)) + underflow(r)
        return bound

    def _bend(self, r: Array) -> Array:
        return 1.0 - tanh(r) ** 2

    def _bend_change(self, r: Array, e: Array) -> Array:
        return LOG_COSH_THIRD * e

    def _restrict(self, rows: slice) -> LogCosh:
        return LogCosh(None, _part(self.t, rows), self.l2)

    def _separable_prox(self, v: Array, t: float) -> Array:
        """The u with tanh(u - c) + l2 u + (u - v)/t = 0, by Newton in a bracket, and bisection where that is slow."""
        centre = 0.0 if self.t is None else self.t
        s = self.l2 + 1.0 / t
        low, high = (v / t - 1.0) / s, (v / t + 1.0) / s
        u, last = choose(v < low, low, choose(v > high, high, v)), 0.0 * v + math.inf
        for _ in range(100):
            th = tanh(u - centre)
            residual = th + s * u - v / t
            low, high = choose(residual < 0.0, u, low), choose(residual > 0.0, u, high)
            step = u - residual / (1.0 - th * th + s)
            newton = (step > low) & (step < high) & (abs(residual) <= 0.5 * last)
            new = choose(newton | (step == u), step, 0.5 * (low + high))
            if bool(namespace(new).all(new == u)):
                break
            u, last = new, abs(residual)
        return u
