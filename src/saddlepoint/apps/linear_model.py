r"""What the linear estimators have in common: the saddle problem of a loss and its penalties, its solution, and scores.

Smooth losses:   the risk and l2/2 |w|^2 are g, the structure is h, and tol is a distance |w - w*| + |y - y*|.
Exact losses:    a loss max_y y r - q(y) over an interval, with r = d_i'w - t_i, is what y maximises: A = D', and h(y)
                 is t'y plus q. So that the intervals do not depend on N, the objective is multiplied by N. Then
                 mu_y = 0, and |w - w*| is proven by the duality gap or by the face of the solution.
Terms of w:      l1 |w|_1, bounds, and norms of disjoint groups of weights are simple terms of g.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from saddlepoint.apps.data_errors import UP, with_error
from saddlepoint.apps.piecewise_linear import PiecewiseLinear
from saddlepoint.apps.samples import CHECKS
from saddlepoint.apps.structure import Norms, Structure, disjoint_groups
from saddlepoint.apps.working_set import few_features, with_ridge
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.directed import mul_down
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.ground.validation import as_flag, positive
from saddlepoint.methods import Method
from saddlepoint.methods.registry import method_or_auto
from saddlepoint.parts.coupling import Coupling, DenseCoupling, SparseCoupling
from saddlepoint.parts.functions import Quadratic, Smooth
from saddlepoint.parts.functions.given_constants import as_nonnegative
from saddlepoint.parts.functions.risk import Risk
from saddlepoint.parts.simple import Groups, L1Box, Simple
from saddlepoint.problems.audit import is_correct_by_construction
from saddlepoint.problems.distance_on_face import distance_by_query, distance_on_face
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.interruption import uninterrupted
from saddlepoint.solving.result import Result, Status
from saddlepoint.solving.solve import solve
from saddlepoint.solving.solved_start import result_of_start, solved_start
from saddlepoint.solving.target import Target

ENOUGH = 16.0  # gap that is asked for, relative to that of a start whose distance is proven by its face
HESSIANS = 2000  # up to this many weights, Hessians of g are factorised


class LinearModel(BaseEstimator):  # type: ignore[misc]
    """The parameters, problems and solutions that the linear estimators share."""

    loss: str
    l2: float
    l1: float
    positive: bool
    groups: Any
    group_weight: Any
    structure: Structure | None
    fit_intercept: bool
    intercept_scaling: float
    tol: float
    method: str | Method
    max_seconds: float | None

    # -- problems ------------------------------------------------------------------------------------------------------

    def _saddle(self, risk: Smooth, n_features: int) -> Saddle:
        """The problem of a smooth risk in the weights of the features and, with an intercept, of the constant."""
        l2 = positive(self.l2, "l2")
        size = risk.dim
        assert size is not None
        term = self._term(size, n_features)
        if self.structure is None:
            return Saddle(_sum(with_ridge(risk, l2), term), Quadratic(1.0), np.zeros((size, 1)))
        if not isinstance(self.structure, Structure):
            raise ProblemError(
                f"structure is {self.structure!r}; expected None, Graph, Groups, Squares, Norms or Fused"
            )
        K = self.structure.matrix(n_features)
        K.resize((K.shape[0], size))  # the structure does not include the constant
        if isinstance(self.structure, Norms) and self.structure.is_exact:
            return Saddle(_sum(with_ridge(risk, l2), term), self.structure.balls(K), self.structure.coupling(K))
        ridge, h = self.structure.split(K, l2)
        return Saddle(_sum(risk + ridge, term), h, self.structure.coupling(K))

    def _exact_saddle(self, A: Coupling, h: Smooth, q: L1Box, n_features: int) -> Saddle:
        """The problem of an exact loss: h is linear and q its interval; A' has a row for each sample.

        Products of N with the weights of the penalties are rounded. For the penalties as they were given, gradients and
        subgradients differ by at most EPS times N (l2 |w_i| + l1 + weight of the group) in entry i.
        """
        if self.structure is not None:
            raise ProblemError(
                f"structure is {self.structure!r}, but the loss {self.loss!r} is not smooth; expected structure=None "
                "with it, or a smooth loss"
            )
        N, l2 = A.shape[1], positive(self.l2, "l2")
        term = self._term(A.shape[0], n_features, float(N))
        in_groups = 0.0 if self._groups(n_features) is None else float(np.max(self.group_weight))
        weights = N * (as_nonnegative(self.l1, "l1") + in_groups)
        error = partial(_penalty_error, N * l2, weights)
        rho = Quadratic(N * l2)
        ridge = with_error(rho, error, mu=mul_down(N, l2), L=UP * rho.L).replace(dim=A.shape[0], trusted=True)
        return Saddle(_sum(ridge, term), h + q, A)

    def _term(self, size: int, n_features: int, factor: float = 1.0) -> Simple | None:
        """The simple term of all weights, times a factor; None if there is none."""
        l1 = as_nonnegative(self.l1, "l1")
        is_positive = as_flag(self.positive, "positive")
        term: Simple | None = self._l1_box(np.arange(size), n_features, factor) if l1 > 0.0 or is_positive else None
        lists = self._groups(n_features)
        if lists is None:
            return term
        if is_positive:
            raise ProblemError("positive=True with groups; expected one of the two: the prox of their sum is not known")
        weights = factor * self._group_weights(len(lists))
        if not any(size - 1 in part for part in lists):  # Groups infers the number of weights from the largest index
            lists, weights = [*lists, [size - 1]], np.append(weights, 0.0)
        norms = Groups(lists, weights)
        return norms if term is None else norms + term

    def _groups(self, n_features: int) -> list[list[int]] | None:
        """The disjoint groups of features; None if there are none."""
        return None if self.groups is None else disjoint_groups(self.groups, n_features)

    def _group_weights(self, groups: int) -> Array:
        """The weight of each group."""
        given = np.asarray(self.group_weight)
        fits = given.dtype.kind in "fiu" and given.shape in ((), (groups,))
        if not fits or not (np.isfinite(given).all() and (given >= 0.0).all()):
            raise ProblemError(
                f"group_weight is {self.group_weight!r}; expected a number that is not negative, or one for each of "
                f"the {groups} groups"
            )
        return np.broadcast_to(given.astype(np.float64), groups)

    def _l1_box(self, weights: Array, n_features: int, factor: float = 1.0) -> L1Box:
        """The simple term of the weights with the given numbers; the constant has none."""
        l1, least = factor * self.l1, 0.0 if self.positive else -math.inf
        if weights[-1] < n_features:  # the numbers ascend
            return L1Box(l1, least)
        feature = weights < n_features
        return L1Box(np.where(feature, l1, 0.0), np.where(feature, least, -math.inf) if self.positive else least)

    # -- solutions -----------------------------------------------------------------------------------------------------

    def _solve(self, f: Saddle, D: Coupling, risk: Smooth | None, n_features: int, scale: float, name: str) -> Result:
        """The solution with decision values that are, in root mean square, within tol times ``scale``.

        Args:
            f: the problem.
            D: the data.
            risk: the risk of the data, without l2; None for an exact loss.
            n_features: how many weights are not that of the constant.
            scale: the unit of the decision values.
            name: what the problem is called in a warning.
        """
        limit = TimeLimit(self.max_seconds)
        method_or_auto(self.method)  # a ProblemError if there is no such method, before anything is computed
        length = risk.data_norm if isinstance(risk, Risk) and risk.D is not None else D.norm
        unit = scale * math.sqrt(D.shape[0]) / length if length > 0.0 else scale
        tol = positive(self.tol, "tol") * unit
        if f.mu_y == 0.0:
            result = self._solve_by_gap(f, tol, None if risk is not None else D.shape[0] * float(self.l2), limit)
        else:
            result = self._solve_by_distance(f, D, risk, n_features, tol, limit)
        if not result.solved:
            warnings.warn(f"{name} is not solved: {result.message}", ConvergenceWarning, stacklevel=3)
        return result

    def _solve_by_distance(
        self, f: Saddle, D: Coupling, risk: Smooth | None, n_features: int, tol: float, limit: TimeLimit
    ) -> Result:
        """The solution where y is strongly concave; sparse models start from one with few features."""
        start = None
        is_sparse = isinstance(D, DenseCoupling | SparseCoupling) and isinstance(f.g.simple, L1Box) and self.l1 > 0.0
        if self.structure is None and is_sparse and isinstance(risk, Risk):
            term = partial(self._l1_box, n_features=n_features)
            start = few_features(f.g, risk, term, float(self.l2), tol, limit.left)
            found = solved_start(f, start, np.zeros(f.shape[1]), tol) if self._is_auto else None
            if found is not None:
                return found
        return uninterrupted(solve(f, start, method=self.method, tol=tol, max_seconds=limit.left))

    def _solve_by_gap(self, f: Saddle, tol: float, ridge: float | None, limit: TimeLimit) -> Result:
        """The solution where y is not strongly concave; it is solved if |w - w*| <= tol is proven."""
        start: tuple[Any, Any] = (None, None)
        least = gap = 0.5 * f.mu_x * tol * tol * (1.0 - 1e-12)
        proof, on_face = None, math.inf
        if _has_newton(f, ridge):
            start = PiecewiseLinear(f, ridge).start(0.5 * tol, limit.left)
            found = _proven_on_face(f, *start, tol) if self._is_auto else None
            if found is not None:
                return found
            proof = f.certificate(*start, gap=gap)
            on_face = distance_on_face(f, *start, proof, tol)
            if on_face <= tol:  # a larger gap is enough, because the face proves the rest
                gap = max(gap, ENOUGH * proof.gap)
        result = uninterrupted(solve(f, *start, method=self.method, gap=gap, max_seconds=limit.left))
        if proof is None or not (np.array_equal(result.x, start[0]) and np.array_equal(result.y, start[1])):
            proof = f.certificate(result.x, result.y, gap=least)
            proof = min(proof, result.certificate, key=lambda found: found.gap)
            on_face = distance_on_face(f, result.x, result.y, proof, tol)
        proven = min(proof.distance_x, result.certificate.distance_x, on_face)
        found = replace(result, certificate=result.certificate._replace(distance_x=proven))
        if proven <= tol:
            return replace(found, status=Status.SOLVED, message=_certified(proven, tol))
        return found

    @property
    def _is_auto(self) -> bool:
        """Whether the choice of the method is left to ``solve``."""
        return method_or_auto(self.method) is None

    # -- data ----------------------------------------------------------------------------------------------------------

    def _with_constant(self, X: Any) -> Any:
        """X, and a column of ``intercept_scaling`` if there is to be an intercept."""
        return with_constant(X, self.intercept_scaling) if as_flag(self.fit_intercept, "fit_intercept") else X

    def _scores(self, X: Any) -> Array:
        """x'w + b of every sample."""
        check_is_fitted(self)
        X = validate_data(self, X, **CHECKS, reset=False)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def with_constant(X: Any, intercept_scaling: float) -> Any:
    """X with one more column, which is constant."""
    column = np.full((X.shape[0], 1), positive(intercept_scaling, "intercept_scaling"))
    return hstack((X, csr_array(column)), format="csr") if issparse(X) else np.hstack((X, column))


def _sum(g: Smooth, term: Simple | None) -> Smooth:
    """g plus the term, if there is one."""
    return g if term is None else g + term


def _penalty_error(ridge: float, weights: float, w: Array) -> Array:
    """Bounds on what the rounding of the weights of penalties changes in a subgradient at w."""
    return np.asarray(UP * EPS * (ridge * np.abs(w) + weights))


def _proven_on_face(f: Saddle, x: Array, y: Array, tol: float) -> Result | None:
    """The result at (x, y) where the face of the solution proves |x - x*| <= tol; None where it does not."""
    if not is_correct_by_construction(f):
        return None
    began = time.perf_counter()
    with np.errstate(all="ignore"):
        query = f.query(x, y)
        residuals = f.residuals(query)
        # The gap only has to prove the face, however large it is beside tol^2.
        proof = f.certificate_from(residuals, query)
        distance = min(proof.distance_x, distance_by_query(f, query, residuals, proof, tol))
    if not distance <= tol:
        return None
    certificate = proof._replace(distance_x=distance, assumes=f.assumes)
    return result_of_start(f, query, residuals, certificate, Target("tol", tol), began, _certified(distance, tol))


def _certified(distance: float, tol: float) -> str:
    return f"certified |w-w*| {distance:.3g} <= {tol:.3g}"


def _has_newton(f: Saddle, ridge: float | None) -> bool:
    """Whether a start by Newton's method is possible, and cheap enough."""
    few = f.shape[0] <= HESSIANS and f.g.hessian is not None
    return PiecewiseLinear.suits(f) and (few or ridge is not None)
