r"""Huber regression with linear equations for the coefficients.

Problem:    min_{w,b} (1/N) sum_i huber(d_i'w + b - t_i) + l2/2 |w|^2 subject to E w = e, where huber(r) = r^2/2 up to
            |r| = delta, and delta |r| - delta^2/2 beyond.
Saddle:     g(w) is the objective, minimised over b, and w = T v with T = (l2 + D'D/N)^(-1/2), the columns of D centred
            if there is a b: in the coordinates v the Hessian of ridge regression is the identity. With T E' = Q R, Q
            orthonormal, the equations are Q'v = c, and the problem is min_v max_z g(T v) + <v, Q z> - c'z. There
            h(z) = c'z is linear, so the proximal point method, which is then the method of multipliers, solves a few
            problems with h(z) + weight/2 |z - z_k|^2 in place of h. R y = z gives the multipliers y of E w = e.
Constants:  The Hessian of g in w is l2 + D'C D/N. Without b, C is diagonal, 1 where |r_i| <= delta and 0 elsewhere;
            with b, the mean over these rows is subtracted. Either way 0 <= C <= 1, and with b the means of the columns
            of D do not matter. In v it lies between mu_x = l2/(l2 + lambda), lambda being the largest eigenvalue of
            D'D/N, and L_x = 1. A = Q has norm 1, and mu_y = L_y = weight = 1/1000: the dual function is
            1/L_x-strongly concave, so each exact step divides the error of z by 1001.
Proof:      ``theory/equations.py``, in w, with mu = l2, the trace of D'D/N in the place of lambda in L, and a proven
            lower bound of sigma, the smallest singular value of E. In the end w is moved to where E w = e.
Reference:  P. J. Huber, Robust estimation of a location parameter, Ann. Math. Statist. 1964; R. T. Rockafellar,
            Augmented Lagrangians and applications of the proximal point algorithm, Math. Oper. Res. 1976.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.sparse import eye_array, issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from saddlepoint.apps.equations import Equations, read_equations
from saddlepoint.apps.huber_objective import UP, Objective
from saddlepoint.apps.proximal import Outcome, proximal_point
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.ground.validation import as_flag, positive
from saddlepoint.methods import Method
from saddlepoint.methods.registry import method_or_auto
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.functions import Quadratic, Smooth
from saddlepoint.parts.functions.affine import affine
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.parts.functions.constants import ROUNDING
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.equations import EquationsCertificate, equations_certificate

WEIGHT = 1e-3  # proximal weight
STEPS = 25  # proximal steps at most; about five are usual
LENGTH = 1e-9  # more than the relative rounding error of the length of a vector


class ConstrainedHuber(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression with Huber's loss, l2, and equations E w = e for the coefficients.

    (1/N) sum_i huber(x_i'w + b - y_i) + l2/2 |w|^2 is minimised subject to E w = e. The intercept b is free. The
    docstring of this module has the saddle form, its constants and the proof of the certificate. T is a multiple of the
    identity if there are more than 1500 features, or if the data are too large to be made dense.

    Args:
        constraints: the pair (E, e): a matrix with a column for each feature, dense or sparse, and a right-hand side.
            None for no constraints. Equations that follow from the others are left out, and get the multiplier 0.
        delta: residuals beyond it count linearly; in the units of y. 1.35 times the standard deviation of the noise
            loses 5 % where the noise is normal. (scikit-learn's HuberRegressor estimates that deviation as well.)
        l2: the multiple of |w|^2/2; positive, because the certificate needs it.
        fit_intercept: whether there is an intercept.
        tol: the certified |coef_ - w*| to reach, relative to the median of |y - m|, where m is the median of y,
            or 0 without an intercept.
        method: the method for the subproblems: a name that ``sp.solve`` knows, a ``Method``, or "auto".
        max_seconds: wall-clock limit; there is a ConvergenceWarning if it was too short.

    Attributes:
        coef_, intercept_: w and b; coef_ satisfies E w = e up to rounding.
        multipliers_: y with grad g(w) + E'y = 0; the optimal value changes by -y per unit of e.
        independent_: the row numbers of independent equations; the others follow from them.
        certificate_: the bound on the distance of coef_ to the optimum.
        result_: the ``Outcome`` of the proximal point method, in the variables v and z; n_iter_ are its steps.
        whitening_: T; coef_ is whitening_ @ v.

    Example:
        >>> from saddlepoint.apps.constrained_huber import ConstrainedHuber
        >>> X, y = [[0, 1], [1, 0], [2, 2], [3, 1], [4, 0], [1, 3]], [1.0, 0.3, 2.2, 1.6, 1.1, 99.0]
        >>> model = ConstrainedHuber(([[1, 1]], [1]), delta=0.1).fit(X, y)  # coefficients that sum to one
        >>> model.coef_.round(3), model.result_.solved
        (array([0.198, 0.802]), True)
    """

    def __init__(
        self,
        constraints: tuple[Any, Any] | None = None,
        *,
        delta: float = 1.35,
        l2: float = 1e-4,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        method: str | Method = "anderson-imex",
        max_seconds: float | None = None,
    ) -> None:
        self.constraints = constraints
        self.delta = delta
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.method = method
        self.max_seconds = max_seconds

    def problem(self, X: Any, y: Any) -> Saddle:
        """The saddle problem of a proximal step in v and z, around the z of the last fit if there was one, else 0.

        Around the z of a fit to the same data, its solution v is the answer, w = T v.
        """
        X, y = check_X_y(X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        f = whitened_problem(*self._parts(X, y))
        z = np.zeros(f.Q.shape[1])
        if hasattr(self, "result_") and self.result_.y.shape == z.shape:
            z = self.result_.y
        return Saddle(f.g, anchored(f.h, WEIGHT, z), f.Q)

    def fit(self, X: Any, y: Any) -> ConstrainedHuber:
        """Learn from samples X, an array or a SciPy sparse matrix, with targets y."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        g, equations = self._parts(X, y)
        tol = positive(self.tol, "tol of ConstrainedHuber") * g.spread
        method_or_auto(self.method)
        limit = TimeLimit(self.max_seconds, "max_seconds of ConstrainedHuber")
        f = whitened_problem(g, equations)
        self.result_: Outcome = proximal_point(
            f.g,
            f.h,
            f.Q,
            # |grad g(w) + E'y| is at most sqrt(L) times as large in w as in v. With this accuracy the certificate is at
            # most tol, unless rounding prevents it.
            tol=max(0.3 * tol * g.mu, g.rounding_estimate(np.zeros(X.shape[1]))) / math.sqrt(g.L),
            weights=(0.0, WEIGHT),
            shrink=1.0,
            method=self.method,
            max_steps=STEPS,
            max_seconds=limit.left,
        )
        v, z = f.polished(self.result_.x)
        self.result_.x, self.result_.y = v, z
        self.coef_ = equations.nearest(f.T @ v)
        self.intercept_ = g.intercept(self.coef_)
        self.multipliers_ = equations.multipliers(f.multipliers(z))
        self.independent_ = equations.kept
        self.certificate_ = certify(g, equations, self.coef_, f.multipliers(z))
        self.whitening_ = f.T
        self.n_iter_ = self.result_.steps
        self.result_.solved = self.certificate_.distance <= tol
        if not self.result_.solved:
            warnings.warn(
                f"ConstrainedHuber is not solved: certified |w - w*| <= {self.certificate_.distance:.3g}, "
                f"but {tol:.3g} was asked for; scale the features, or raise tol, l2 or max_seconds",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> Array:
        """x'w + b of every sample."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)

    def _parts(self, X: Any, y: Array) -> tuple[Objective, Equations]:
        delta, l2 = positive(self.delta, "delta of ConstrainedHuber"), positive(self.l2, "l2 of ConstrainedHuber")
        y = y.astype(np.float64)  # because differences of float32 numbers are rounded to float32
        intercept = as_flag(self.fit_intercept, "fit_intercept")
        return Objective(X, y, l2, delta, intercept), read_equations(self.constraints, X.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


# -- the problem in v ------------------------------------------------------------------------------------------------


class WhitenedProblem(NamedTuple):
    """g(T v), h(z) = c'z and Q, which is one column of zeros if there are no equations; T E' = Q R."""

    g: Smooth
    h: Quadratic
    Q: Array
    R: Array
    T: Any

    def polished(self, v: Array) -> tuple[Array, Array]:
        """The point nearest to v with Q'v = c, and the z that makes the gradient of the Lagrangian there shortest."""
        v = v - self.Q @ (self.Q.T @ v - self.h.b)
        return v, -(self.Q.T @ self.g.grad(v))

    def multipliers(self, z: Array) -> Array:
        """y with R y = z."""
        return np.asarray(solve_triangular(self.R, z)) if self.R.size else np.zeros(0)


def whitened_problem(g: Objective, equations: Equations) -> WhitenedProblem:
    """The problem in v = T^-1 w."""
    T, inside = _whitened(g) if g.spectrum is not None else _scaled(g)
    if not equations.kept.size:
        return WhitenedProblem(inside, Quadratic(0.0, np.zeros(1)), np.zeros((T.shape[0], 1)), np.zeros((0, 0)), T)
    Q, R = qr(T @ equations.E.T, mode="economic")
    return WhitenedProblem(inside, Quadratic(0.0, solve_triangular(R, equations.e, trans="T")), Q, R, T)


def _whitened(g: Objective) -> tuple[Array, Smooth]:
    assert g.spectrum is not None
    values, vectors = g.spectrum
    T = (vectors / np.sqrt(g.mu + values)) @ vectors.T
    # D T is formed once: products with D and T one after the other would amplify rounding errors by T.
    B = g.X @ T - (g.means @ T if issparse(g.X) else 0.0)
    loss, P = g.loss._replace(D=as_coupling(B)), g.mu * (T @ T)
    slack = 1e-9 + ROUNDING * T.shape[0] * g.L / g.mu  # error of T that the errors of the eigenvalues cause
    return T, Smooth(
        lambda v: loss.grad(v) + P @ v,
        mu=g.mu / g.L * max(1.0 - slack, 0.5),
        L=1.0 + slack,
        value=lambda v: loss.value(v) + 0.5 * inner(v, P @ v),
        dim=g.dim,
        dtype=np.float64,
        hessian=lambda v: loss.hessian(v) + P,
        trusted=True,
    )


def _scaled(g: Objective) -> tuple[Any, Smooth]:
    c = 1.0 / math.sqrt(g.L)
    return c * eye_array(g.X.shape[1]), affine(g, scale=c)


# -- the certificate -------------------------------------------------------------------------------------------------


def certify(g: Objective, equations: Equations, w: Array, y: Array) -> EquationsCertificate:
    """The certificate of w with multipliers y of the independent equations.

    It is about the numbers in X, y, E and e as they were given: what rounding changes in them and in all products is
    part of it, and mu, L and sigma are proven bounds.
    """
    E, e = equations.E, equations.e
    gradient, error = g.compensated_gradient(w)
    growth_r, growth_q = gamma(E.shape[0] + 4, EPS), gamma(E.shape[1] + 4, EPS)
    r, q = norm(gradient + E.T @ y), norm(E @ w - e)
    slack_r = error + growth_r * norm(np.abs(E).T @ np.abs(y)) + EPS * norm(gradient)
    slack_q = growth_q * norm(np.abs(E) @ np.abs(w) + np.abs(e))
    found = equations_certificate(
        g.mu, g.proven_L, equations.sigma, r, q, UP * slack_r + LENGTH * r, UP * slack_q + LENGTH * q
    )
    return found._replace(assumes=equations.assumes)
