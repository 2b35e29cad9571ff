r"""Least squares against the worst distribution near the data.

Problem:    min_{w,b} max_P E_P[(x'w + b - t)^2]^(1/2) over the distributions P to which the N samples (d_i, t_i) can be
            transported by moving features, not targets, with a mean squared Euclidean distance of at most radius^2.
            If r is the residual of a sample and v its move, Minkowski, and Cauchy and Schwarz give
            rms(r + v'w) <= rms(r) + rms(v'w) <= rms(r) + radius |w|, with equality for v = radius (r/rms(r)) w/|w|.
            So F(w) = |B w - s| + radius |w| is minimised, with B = D/sqrt(N) and s = t/sqrt(N), both centred if
            there is a b, because the best b makes the mean residual zero.
Saddle:     phi(z) = huber(|z|) + theta/(2 Z) |z|^2, z = B w - s, and psi(w) = radius (huber(|w|) + theta/(2 W) |w|^2)
            replace the two norms; huber(r) is r minus half a width, or a parabola where r is below the width.
            With phi(z) = max_u <u, z> - phi*(u) this is min_w max_u psi(w) + <w, B'u> - (phi*(u) + s'u), that is,
            g = psi, A = B' and h = phi* + s'u.
Constants:  mu_x = radius theta/W, L_x = radius (theta/W + 1/width_w), mu_y = 1/(theta/Z + 1/width_z), L_y = Z/theta.
            With the widths W/2 and Z/2, kappa_x = kappa_y = 1 + 2/theta.
No bias:    At the minimum of F, B' times the direction of z, plus radius times the direction of w, is zero. At that of
            the smooth problem, these have the factors 1 + theta |z|/Z and 1 + theta |w|/W. For Z = |z| and W = |w| the
            factors are equal, and the solution is that of F. So Z and W are updated from round to round, by secants,
            and theta need not be small: it is 0.1. If a norm is below its width, the next width is a tenth of it.
Proof:      ``theory/norm_sum.py``: any w and, after scaling, any u give min F an upper and a lower end. Those
            of a solved round differ by at most max(theta |z|/Z, theta |w|/W) F(w), if no norm is below its width.
Reference:  J. Blanchet, Y. Kang and K. Murthy, Robust Wasserstein profile inference and applications to machine
            learning, J. Appl. Probab. 2019; the same F from perturbed rows in L. El Ghaoui and H. Lebret, Robust
            solutions to least-squares problems with uncertain data, SIAM J. Matrix Anal. Appl. 1997.
"""

from __future__ import annotations

import math
import warnings
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from saddlepoint.apps.centred import centred, uncentred
from saddlepoint.apps.data_errors import UP
from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.ground.validation import as_flag, positive
from saddlepoint.methods import Method
from saddlepoint.methods.registry import method_or_auto
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.functions import GroupHuber, Quadratic
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.interruption import uninterrupted
from saddlepoint.solving.recommendation import is_strong
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve
from saddlepoint.theory.certificate import Certificate
from saddlepoint.theory.norm_sum import norm_sum_lower, norm_sum_upper

ROUNDS = 50  # rounds at most; about five are usual
PATIENCE = 6  # rounds without halving the interval after which the run ends
THETA = 0.1  # factor of the squares that make the norms strongly convex
TINY = 1e-14  # smallest factor by which Z and W may change in a round
STRETCH = 50.0  # longest step of a secant, in units of the step without a secant
LEAP = 3.0  # largest change of log W by a secant
FLOOR = 3.0  # least accuracy of a round, in units of the rounding in the certificate of the round before
SHARE = 0.1  # accuracy of a round, relative to the interval
UP_ONCE = 1.0 + 16.0 * EPS  # factor that exceeds the relative rounding of the formulas of the two ends


class RobustLeastSquares(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression with the smallest root mean squared error in the worst case around the data.

    In the worst case, the features have moved so that the mean of the squared lengths of all moves is radius^2. Then
    the error is rms(x_i'w + b - y_i) + radius |w|, which is minimised over w and b. The docstring of
    this module has the saddle form, its constants and the proof of the interval. The interval is about the numbers as
    they were given: means are computed in about twice the digits, and what rounding changes when the data are centred
    and scaled, and in the bounds themselves, is part of it. ``certificate_`` is only about the problem of the last
    round, as it was computed.

    Args:
        radius: root mean square of the moves, in the units of the features, which should therefore be scaled alike.
            It is positive; ordinary least squares is the limit 0.
        fit_intercept: whether there is an intercept.
        tol: the width of the certified interval of the smallest worst-case error, relative to its upper end.
        method: a name that ``sp.solve`` knows, a ``Method``, or "auto"; None takes anderson-imex where the coupling is
            strong and anderson-condat-vu elsewhere.
        max_seconds: wall-clock limit; there is a ConvergenceWarning if it was too short.

    Attributes:
        coef_, intercept_: w and b.
        interval_: a lower and an upper end of the smallest worst-case error; the upper end is that of coef_.
        adversary_: a unit vector u; the worst distribution moves row i by radius sqrt(N) u_i w/|w|.
        smoothing_: Z, W and the widths of the last round.
        result_, certificate_: the result and certificate of the last round, in units of the root mean square of y
            (about its mean, if there is an intercept).
        n_iter_: the number of rounds.

    Example:
        >>> from saddlepoint.apps.robust_least_squares import RobustLeastSquares
        >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], [1.0, 0.0, 2.0, 3.0]
        >>> model = RobustLeastSquares(radius=0.5).fit(X, y)
        >>> model.coef_.round(3), model.interval_
        (array([0.537, 0.394]), Interval(lower=0.9038670..., upper=0.9038670...))
    """

    def __init__(
        self,
        radius: float = 0.1,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        method: str | Method | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.method = method
        self.max_seconds = max_seconds

    def problem(self, X: Any, y: Any) -> Saddle:
        """The saddle problem of the last round if there was a fit, otherwise of the first round.

        The solution of the last round is coef_, in units of the root mean square of y, up to an error of the smoothing.
        """
        X, y = check_X_y(X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        data, radius = Data.of(X, y, as_flag(self.fit_intercept, "fit_intercept")), _as_radius(self.radius)
        smoothing: Smoothing = self.smoothing_ if hasattr(self, "smoothing_") else Smoothing.first(data)
        return smoothing.saddle(data, radius)

    def fit(self, X: Any, y: Any) -> RobustLeastSquares:
        """Learn from samples X, an array or a SciPy sparse matrix, with targets y."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        radius, tol = _as_radius(self.radius), positive(self.tol, "tol of RobustLeastSquares")
        if self.method is not None:
            method_or_auto(self.method)
        limit = TimeLimit(self.max_seconds, "max_seconds of RobustLeastSquares")
        data = Data.of(X, y, as_flag(self.fit_intercept, "fit_intercept"))
        answer = minimise(data, radius, tol, self.method, limit)
        if answer.interval.width > tol:
            warnings.warn(
                f"RobustLeastSquares is not solved: the interval is {answer.interval.width:.3g} of its upper end wide, "
                f"but {tol:.3g} was asked for; scale the features, or raise tol or max_seconds",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.coef_ = data.unit * answer.w
        self.intercept_ = data.y_mean - inner(data.x_mean, self.coef_)
        self.interval_ = Interval(data.unit * answer.interval.lower, data.unit * answer.interval.upper)
        self.adversary_ = _direction(data.residual(answer.w))
        self.smoothing_: Smoothing = answer.smoothing
        self.result_: Result = answer.result
        self.certificate_: Certificate = answer.result.certificate
        self.n_iter_ = answer.rounds
        return self

    def predict(self, X: Any) -> Array:
        """x'w + b of every sample."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)

    def worst_case(self, X: Any) -> Array:
        """The samples X of the fit, moved to where the error of coef_ and intercept_ is the upper end of interval_."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        rows = self.adversary_.shape[0]
        if X.shape[0] != rows:
            raise ProblemError(f"X has {X.shape[0]} samples; expected the {rows} samples of the fit")
        lengths = float(self.radius) * math.sqrt(rows) * self.adversary_
        return np.asarray(dense(X) + np.outer(lengths, _direction(self.coef_)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class Interval(NamedTuple):
    """Ends of an interval that holds the smallest worst-case error."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """Relative to the upper end."""
        return (self.upper - self.lower) / self.upper if self.upper > 0.0 else 0.0


class Data(NamedTuple):
    """A = B' and s, which has about length one: the targets are in units of their root mean square.

    Attributes:
        A: B'.
        s: the targets.
        unit: the unit of the targets. It may be any number, so it is exact.
        x_mean, y_mean: what was subtracted, rounded to float64.
        sizes: bounds on the norms of the columns of B.
        errors: bounds on the norms of the columns of B minus the exact matrix.
        s_error: a bound on the norm of s minus the exact vector.
    """

    A: Coupling
    s: Array
    unit: float
    x_mean: Array
    y_mean: float
    sizes: Array
    errors: Array
    s_error: float

    @classmethod
    def of(cls, X: Any, y: Array, intercept: bool) -> Data:
        """The data, centred if there is an intercept; sparse columns with few entries stay sparse."""
        scale = 1.0 / math.sqrt(X.shape[0])
        y = y.astype(np.float64)
        features = centred(X, scale=scale) if intercept else uncentred(X, scale=scale)
        targets = centred(y[:, None], scale=scale) if intercept else uncentred(y[:, None], scale=scale)
        s = targets.D.matrix()[:, 0]
        unit = norm(s) or 1.0
        s_error = UP * (float(targets.errors[0]) / unit + 2.0 * EPS * (norm(s) / unit))
        A, (x_mean, y_mean) = features.D.T, (features.means, float(targets.means[0]))
        return cls(A, s / unit, unit, x_mean, y_mean, features.sizes, features.errors, s_error)

    def residual(self, w: Array) -> Array:
        """z = B w - s."""
        return self.A.tmul(w) - self.s


class Smoothing(NamedTuple):
    """The parameters that make the norms smooth and strongly convex: the lengths Z and W of z and w, and the widths."""

    Z: float
    W: float
    width_z: float
    width_w: float
    last: tuple[float, float] | None = None  # log W/Z before the last round, and the log |w|/|z| that it found

    @classmethod
    def first(cls, data: Data) -> Smoothing:
        """Z = |s|, and for W the length of a gradient step of least squares from 0."""
        step = norm(data.A.mul(data.s)) / data.A.norm**2 if data.A.norm > 0.0 else 0.0
        return cls(1.0, step or 1.0, 0.5, 0.5 * (step or 1.0))

    def saddle(self, data: Data, radius: float) -> Saddle:
        """The saddle problem of a round."""
        g = GroupHuber(None, radius, self.width_w, THETA * radius / self.W)
        phi = GroupHuber(None, 1.0, self.width_z, THETA / self.Z)
        return Saddle(g, phi.conjugate() + Quadratic(0.0, data.s), data.A)

    def after(self, z: float, w: float) -> Smoothing:
        """The parameters of the next round: the lengths z and w that were found, or a secant step from two rounds."""
        below_z, below_w = z < self.width_z, w < self.width_w
        Z, W = max(z, TINY), max(w, TINY * self.W)
        if below_z or below_w:
            return Smoothing(Z, W, (0.1 if below_z else 0.5) * Z, (0.1 if below_w else 0.5) * W)
        before, found = math.log(self.W / self.Z), math.log(W / Z)
        if self.last is not None and before != self.last[0]:
            slope = (found - self.last[1]) / (before - self.last[0])
            stretch = 1.0 / max(1.0 - slope, 1.0 / STRETCH) if slope > 0.0 else 1.0
            W *= math.exp(np.clip((stretch - 1.0) * (found - before), -LEAP, LEAP))
        return Smoothing(Z, W, 0.5 * Z, 0.5 * W, (before, found))


def bounds(data: Data, radius: float, w: Array, u: Array) -> Interval:
    """Bounds on min F: F(w), and -s'v for multiples v of u and of z with |v| <= 1 and |B'v| <= radius.

    They hold for the data as they were given: products, sums and norms are rounded, and B and s have errors.
    """
    A, z, (n, N) = data.A, data.residual(w), data.A.shape
    size, length = float(np.abs(w) @ data.sizes), 1.0 + gamma(max(n, N) + 8, EPS)
    wrong = float(np.abs(w) @ data.errors) + gamma(n + 8, EPS) * (size + norm(data.s)) + data.s_error
    upper = UP_ONCE * (norm_sum_upper(radius, length * norm(z), length * norm(w)) + length * wrong)
    ends = []
    for v in (u, z):
        of_v, compensated = length * norm(v), A.compensated_mul(v)
        if compensated is None:
            most = length * (norm(A.mul(v)) + gamma(N + 8, EPS) * norm(data.sizes) * of_v)
        else:
            most = length * (norm(compensated.hi + compensated.lo) + norm(compensated.error))
        most += length * norm(data.errors) * of_v
        sv = inner(data.s, v) + (gamma(N + 8, EPS) * length + data.s_error) * of_v
        ends.append(norm_sum_lower(radius, sv, of_v, most) / UP_ONCE)
    return Interval(min(max(*ends, 0.0), upper), upper)


class Answer(NamedTuple):
    """The best w, the interval, and the last round."""

    w: Array
    interval: Interval
    smoothing: Smoothing
    result: Result
    rounds: int


def minimise(data: Data, radius: float, tol: float, method: str | Method | None, limit: TimeLimit) -> Answer:
    """Solve round after round and update the smoothing until the interval is at most tol times its upper end wide."""
    if radius < EPS * data.A.norm:
        raise ProblemError(
            f"radius {radius:g} is too small for double precision, for features of the norm {data.A.norm:.3g}; "
            "use LinearRegression"
        )
    w, u = np.zeros(data.A.shape[0]), -data.s  # the solution if the radius is so large that w = 0 is best
    best, interval = w, bounds(data, radius, w, u)
    smoothing, halved, waited = Smoothing.first(data), 1.0, 0
    answer: Answer | None = None
    for rounds in range(1, ROUNDS + 1):
        f = smoothing.saddle(data, radius)
        accuracy = SHARE * max(1.0 if answer is None else interval.width, SHARE * tol) * min(smoothing.W, 1.0)
        if answer is not None:  # rounding may prevent a better certificate, and the interval needs none
            accuracy = max(accuracy, FLOOR * answer.result.certificate.rounding)
        options: dict[str, Any] = {"max_seconds": limit.left, "history": False}
        chosen = method_for(f) if method is None else method
        result = uninterrupted(solve(f, w, u, method=chosen, tol=accuracy, **options))
        w, u = result.x, result.y
        found = bounds(data, radius, w, u)
        best = w if found.upper < interval.upper else best
        interval = Interval(max(found.lower, interval.lower), min(found.upper, interval.upper))
        answer = Answer(best, interval, smoothing, result, rounds)
        waited = waited + 1 if interval.width > 0.5 * halved else 0
        halved = halved if waited else interval.width
        if interval.width <= tol or waited >= PATIENCE or limit.is_over:
            break
        smoothing = smoothing.after(norm(data.residual(w)), norm(w))
    assert answer is not None
    return answer


def method_for(f: Saddle) -> str:
    """The default method: one that solves linear systems with the coupling if the coupling is strong."""
    return "anderson-imex" if is_strong(*f.numbers) else "anderson-condat-vu"


def _direction(v: Array) -> Array:
    """v/|v|; for v = 0, where any direction will do, a vector of equal entries and length one."""
    length = norm(v)
    return v / length if length > 0.0 else np.full_like(v, 1.0 / math.sqrt(v.shape[0]))


def _as_radius(radius: Any) -> float:
    if isinstance(radius, Real) and radius == 0:
        raise ProblemError("radius of RobustLeastSquares is 0; expected a positive number: for 0 use LinearRegression")
    return positive(radius, "radius of RobustLeastSquares")
