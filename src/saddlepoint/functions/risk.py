"""Regularised risks: an average of losses of D x, plus l2/2 |x|^2.

Each loss is one convex function of one variable. Without data D the loss acts on the coordinates of x themselves and
is summed instead of averaged; the function is then separable and its prox is cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import eye_array, issparse
from scipy.special import expit

from saddlepoint.coupling import Coupling, as_coupling
from saddlepoint.errors import ProblemError
from saddlepoint.functions.constants import gram_bounds
from saddlepoint.functions.smooth import Hessian, Prox, Smooth, _constant
from saddlepoint.vectors import Array, as_vector, inner

Elementwise = Callable[[Array], Array]


class Risk(Smooth):
    """mean_i loss(d_i'x - t_i) + l2/2 |x|^2, or sum_i loss(x_i - t_i) + l2/2 |x|^2 when D is None.

    Args:
        loss, slope: the loss and its derivative, applied to arrays.
        curvature: bounds on the second derivative of the loss.
    """

    def __init__(
        self,
        D: Any,
        t: Any,
        l2: float,
        *,
        loss: Elementwise,
        slope: Elementwise,
        curvature: tuple[float, float],
        prox: Prox | None = None,
        hessian: Hessian | None = None,
    ) -> None:
        name = type(self).__name__
        self.l2 = l2 = _constant(l2, f"l2 of {name}")
        self.D: Coupling | None = None if D is None else as_coupling(D, f"D of {name}")
        rows = None if self.D is None else self.D.shape[0]
        self.t: Array | None = None if t is None else as_vector(t, f"t of {name}", rows)
        self._loss, self._slope = loss, slope
        low, high = (1.0, 1.0) if self.D is None else (bound / self.D.shape[0] for bound in gram_bounds(self.D))
        mu = l2 + curvature[0] * low
        data = [array.dtype for array in (self.D, self.t) if array is not None]
        super().__init__(
            self._gradient,
            mu=mu,
            L=max(mu, l2 + curvature[1] * high),
            value=self._value,
            prox=prox if self.D is None else None,
            dim=self.D.shape[1] if self.D is not None else None if self.t is None else self.t.shape[0],
            dtype=np.result_type(*data) if data else None,
            hessian=hessian,
        )

    def _residual(self, x: Array) -> Array:
        Dx = x if self.D is None else self.D.mul(x)
        return Dx if self.t is None else Dx - self.t

    def _gradient(self, x: Array) -> Array:
        slope = self._slope(self._residual(x))
        if self.D is not None:
            slope = self.D.tmul(slope) * (1.0 / self.D.shape[0])
        return slope + self.l2 * x

    def _value(self, x: Array) -> float:
        total = float(self._loss(self._residual(x)).sum())
        return (total if self.D is None else total / self.D.shape[0]) + 0.5 * self.l2 * inner(x, x)


class LeastSquares(Risk):
    """|D x - t|^2 / (2 N) + l2/2 |x|^2 with the N rows of D."""

    def __init__(self, D: Any, t: Any, l2: float = 0.0) -> None:
        if D is None:
            raise ProblemError("LeastSquares needs data D; for a separable quadratic use Quadratic")
        super().__init__(
            D, t, l2, loss=lambda r: 0.5 * r * r, slope=lambda r: r, curvature=(1.0, 1.0), hessian=self._matrix
        )

    def _matrix(self, n: int) -> Any:
        assert self.D is not None
        gram = self.D.gram() * (1.0 / self.D.shape[0])
        return gram + (self.l2 * eye_array(n) if issparse(gram) else self.l2 * np.eye(n))


class Logistic(Risk):
    """mean_i log(1 + exp(-label_i d_i'x)) + l2/2 |x|^2 with labels +1 and -1."""

    def __init__(self, D: Any, labels: Any, l2: float = 0.0) -> None:
        if D is None:
            raise ProblemError("Logistic needs data D, one row a sample")
        self.labels = s = as_vector(labels, "labels of Logistic", as_coupling(D, "D of Logistic").shape[0])
        if not (np.abs(s) == 1.0).all():
            odd = float(s[np.abs(s) != 1.0][0])
            raise ProblemError(f"labels of Logistic hold {odd:g}; expected +1 and -1 (2 * label - 1 maps 0/1 labels)")
        super().__init__(
            D,
            None,
            l2,
            loss=lambda r: np.logaddexp(0.0, -s * r),
            slope=lambda r: (-s * expit(-s * r)).astype(r.dtype, copy=False),
            curvature=(0.0, 0.25),
        )


class Huber(Risk):
    """Huber loss with l2: r^2/2 where |r| <= delta, delta |r| - delta^2/2 beyond.

    mean_i huber(d_i'x - t_i) + l2/2 |x|^2; without D: sum_i huber(x_i - t_i) + l2/2 |x|^2.
    """

    def __init__(self, D: Any = None, t: Any = None, l2: float = 0.0, delta: float = 1.0) -> None:
        self.delta = d = _constant(delta, "delta of Huber")
        if d == 0.0:
            raise ProblemError("delta of Huber is 0; expected a positive number")
        super().__init__(
            D,
            t,
            l2,
            loss=lambda r: np.where(np.abs(r) <= d, 0.5 * r * r, d * np.abs(r) - 0.5 * d * d),
            slope=lambda r: np.clip(r, -d, d),
            curvature=(0.0, 1.0),
            prox=self._shrink,
        )

    def _shrink(self, v: Array, t: float) -> Array:
        """Of clip(u - c, -d, d) + l2 u + (u - v)/t = 0: solve both branches, and keep the one that fits."""
        d, centre = self.delta, 0.0 if self.t is None else self.t
        s = self.l2 + 1.0 / t
        middle = (v / t + centre) / (1.0 + s)
        return np.where(
            np.abs(middle - centre) <= d, middle, np.where(middle > centre, (v / t - d) / s, (v / t + d) / s)
        )


class LogCosh(Risk):
    """log-cosh loss with l2, a smooth absolute value: mean_i log cosh(d_i'x - t_i) + l2/2 |x|^2.

    Without D: sum_i log cosh(x_i - t_i) + l2/2 |x|^2.
    """

    def __init__(self, D: Any = None, t: Any = None, l2: float = 0.0) -> None:
        super().__init__(
            D,
            t,
            l2,
            loss=lambda r: np.logaddexp(r, -r) - np.log(2.0).astype(r.dtype),
            slope=np.tanh,
            curvature=(0.0, 1.0),
            prox=self._newton,
        )

    def _newton(self, v: Array, t: float) -> Array:
        """Of tanh(u - c) + l2 u + (u - v)/t = 0 by Newton steps in a shrinking bracket, halved where Newton is slow."""
        centre = 0.0 if self.t is None else self.t
        s = self.l2 + 1.0 / t
        low, high = (v / t - 1.0) / s, (v / t + 1.0) / s
        u, last = np.clip(v, low, high), np.full_like(v, np.inf)
        for _ in range(100):
            th = np.tanh(u - centre)
            residual = th + s * u - v / t
            low, high = np.where(residual < 0.0, u, low), np.where(residual > 0.0, u, high)
            step = u - residual / (1.0 - th * th + s)
            newton = (step > low) & (step < high) & (np.abs(residual) <= 0.5 * last)
            new = np.where(newton | (step == u), step, 0.5 * (low + high))
            if np.array_equal(new, u):
                break
            u, last = new, np.abs(residual)
        return u
