"""Risks with the usual losses: squares, logistic, smoothed hinge, Huber and log-cosh."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, is_float64, namespace
from saddlepoint.ground.compensated import Sum
from saddlepoint.ground.elementwise import cast_like, choose, clip, sigmoid, softplus, tanh
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import is_recording
from saddlepoint.ground.rounding import ELEMENTARY, underflow
from saddlepoint.ground.validation import as_vector
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.functions.compensated import rounded
from saddlepoint.parts.functions.given_constants import as_nonnegative
from saddlepoint.parts.functions.given_data import as_data, part_of_offset
from saddlepoint.parts.functions.risk import Risk
from saddlepoint.parts.functions.second_order import UP
from saddlepoint.parts.functions.smooth import plus_identity

LOGISTIC_THIRD = 1.0 / (6.0 * math.sqrt(3.0))  # largest third derivative of log(1 + exp(r)): 0.0962
LOG_COSH_THIRD = 4.0 / (3.0 * math.sqrt(3.0))  # largest third derivative of log cosh(r): 0.770


class LeastSquares(Risk):
    """|D x - t|^2 / (2 N) + l2/2 |x|^2 with the N rows of D.

    Args:
        D: the data, one row a sample: an array, a SciPy sparse array or an operator.
        t: the targets, one for each row, or a number for all.
        l2: the factor of |x|^2/2, not negative.

    Example:
        >>> import saddlepoint as sp
        >>> sp.LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0], l2=0.5)
        LeastSquares(n=2, mu=1, L=2.5)
    """

    slope_units = 1.0

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

    def _compensated_slope(self, r: Sum) -> Sum:
        return r

    def _second_derivative(self, r: Array) -> Array:
        return np.ones_like(r)

    def _weights(self, x: Array) -> float:
        return 1.0

    def _hessian(self, x: Array) -> Any:
        assert self.D is not None
        return plus_identity(self.D.gram() * (1.0 / self.D.shape[0]), self.l2)


class Logistic(Risk):
    """mean_i log(1 + exp(-label_i d_i'x)) + l2/2 |x|^2 with labels +1 and -1.

    Args:
        D: the data, one row d_i a sample: an array, a SciPy sparse array or an operator.
        labels: +1 or -1 for each row.
        l2: the factor of |x|^2/2, not negative; it is mu.

    Example:
        >>> import saddlepoint as sp
        >>> sp.Logistic([[1.0, 0.0], [0.0, 2.0]], [1.0, -1.0], l2=0.5)
        Logistic(n=2, mu=0.5, L=1)
    """

    slope_units = 2.0 * ELEMENTARY

    def __init__(self, D: Any, labels: Any, l2: float = 0.0) -> None:
        D = as_data(D, "Logistic")
        self.labels: float | Array = _as_labels(D, labels, "Logistic")
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

    def _second_derivative(self, r: Array) -> Array:
        return sigmoid(r) * sigmoid(-r)

    def _second_derivative_change(self, r: Array, e: Array) -> Array:
        return LOGISTIC_THIRD * e


class SmoothedHinge(Risk):
    """mean_i hinge(label_i d_i'x) + l2/2 |x|^2 with labels +1 and -1, the hinge max(0, 1 - s) rounded over ``width``.

    hinge(s) = 0 for s >= 1, (1 - s)^2/(2 width) for 1 - width <= s <= 1, and 1 - s - width/2 below.

    Args:
        D: the data, one row d_i a sample: an array, a SciPy sparse array or an operator.
        labels: +1 or -1 for each row.
        l2: the factor of |x|^2/2, not negative; it is mu.
        width: the length of the interval on which the kink of the hinge is rounded, a positive number.

    Example:
        >>> import saddlepoint as sp
        >>> sp.SmoothedHinge([[1.0, 0.0], [0.0, 2.0]], [1.0, -1.0], l2=0.5, width=0.5)
        SmoothedHinge(n=2, mu=0.5, L=4.5)
    """

    slope_units = ELEMENTARY

    def __init__(self, D: Any, labels: Any, l2: float = 0.0, width: float = 1.0) -> None:
        D = as_data(D, "SmoothedHinge")
        self.labels = _as_labels(D, labels, "SmoothedHinge")
        self.width = w = as_nonnegative(width, "width of SmoothedHinge")
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

    def _second_derivative(self, r: Array) -> Array:
        w, short = self.width, 1.0 - self.labels * r
        return choose((short > 0.0) & (short < w), 0.0 * r + 1.0 / w, 0.0 * r)

    def _second_derivative_change(self, r: Array, e: Array) -> Array:
        """Nothing changes where no kink of the slope is within reach."""
        xp, w = namespace(r), self.width
        short = 1.0 - self.labels * r
        return choose((xp.abs(short) > UP * e) & (xp.abs(short - w) > UP * e), 0.0 * e, 0.0 * e + 1.0 / w)


def _least(r: Array, e: Array) -> Array:
    """The least absolute value of a residual that differs from r by at most e."""
    return clip(namespace(r).abs(r) - e, 0.0, math.inf)


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


class Huber(Risk):
    """Huber loss with l2: r^2/2 where |r| <= delta, delta |r| - delta^2/2 beyond.

    mean_i huber(d_i'x - t_i) + l2/2 |x|^2; without D: sum_i huber(x_i - t_i) + l2/2 |x|^2.

    Args:
        D: the data, one row d_i a sample: an array, a SciPy sparse array or an operator; None for the identity.
        t: the targets, a number or a vector; zero if left out.
        l2: the factor of |x|^2/2, not negative; it is mu.
        delta: the residual from which the loss is linear, a positive number.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> g = sp.Huber(l2=0.5, delta=2.0)
        >>> g, g.grad(np.array([1.0, 10.0])).tolist()
        (Huber(mu=0.5, L=1.5), [1.5, 7.0])
    """

    slope_units = 1.0

    def __init__(self, D: Any = None, t: Any = None, l2: float = 0.0, delta: float = 1.0) -> None:
        self.delta = d = as_nonnegative(delta, "delta of Huber")
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
        d = 0.0 if is_float64(r) else eps_of(r) * self.delta
        return choose(_least(r, e) > self.delta + d, 0.0 * e + d, clip(e, 0.0, 2.0 * self.delta) + d)

    def _compensated_slope(self, r: Sum) -> Sum:
        """The residuals themselves where they are surely within delta."""
        high, error = rounded(r)
        inside = abs(high) + error < self.delta
        nothing, slope = 0.0 * high, self._slope(high)
        return Sum(slope, choose(inside, r.lo, nothing), choose(inside, r.error, self._slope_error(high, error)))

    def _second_derivative(self, r: Array) -> Array:
        return choose(abs(r) <= self.delta, 0.0 * r + 1.0, 0.0 * r)

    def _second_derivative_change(self, r: Array, e: Array) -> Array:
        """Nothing changes where no kink of the slope is within reach."""
        return choose(abs(abs(r) - self.delta) > UP * e, 0.0 * e, 0.0 * e + 1.0)

    def _restrict(self, rows: slice) -> Huber:
        return Huber(None, part_of_offset(self.t, rows), self.l2, self.delta)

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

    Args:
        D: the data, one row d_i a sample: an array, a SciPy sparse array or an operator; None for the identity.
        t: the targets, a number or a vector; zero if left out.
        l2: the factor of |x|^2/2, not negative; it is mu.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> g = sp.LogCosh(l2=0.5)
        >>> g, g.grad(np.array([0.0, 2.0])).round(3).tolist()
        (LogCosh(mu=0.5, L=1.5), [0.0, 1.964])
    """

    slope_units = ELEMENTARY

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

    def _second_derivative(self, r: Array) -> Array:
        return 1.0 - tanh(r) ** 2

    def _second_derivative_change(self, r: Array, e: Array) -> Array:
        return LOG_COSH_THIRD * e

    def _restrict(self, rows: slice) -> LogCosh:
        return LogCosh(None, part_of_offset(self.t, rows), self.l2)

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
