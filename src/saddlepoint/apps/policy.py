"""Policy evaluation: linear values of a policy by the mean squared projected Bellman error (MSPBE).

Problem:    transitions t with features p_t, next features q_t (zero where the episode ends), rewards r_t and weights
            c_t that sum to one; a discount gamma < 1; the value of a state with features p is p'theta. With
                M = sum_t c_t p_t (p_t - gamma q_t)',   b = sum_t c_t r_t p_t,   C = sum_t c_t p_t p_t' + ridge_w I
            minimise  MSPBE(theta) + ridge/2 |theta|^2,  MSPBE(theta) = 1/2 (M theta - b)' C^-1 (M theta - b).
Saddle:     MSPBE(theta) = max_w w'(b - M theta) - 1/2 w'C w, hence with x = theta and y = w
                g(x) = ridge/2 |x|^2,   A = -M',   h(y) = 1/2 y'C y - b'y,
                mu_x = L_x = ridge,   mu_y = lambda_min(C),   L_y = lambda_max(C).
LSTD:       ridge = 0 leaves M theta = b, which is LSTD. Then g is zero, but there is an equivalent problem with a
            strongly convex g. With the field F = (-M'y, C y - b + M x) of the saddle form,
            (F_x + tau M'F_y, (I - tau C) F_y) has the same zeros, and is the field of
                g(x) = tau/2 |M x - b|^2,   A = -M'(I - tau C),   h(y) = 1/2 y'(C - tau C^2) y - b'(I - tau C) y.
            With tau = 1/(2 lambda_max(C)), c - tau c^2 grows with c for all eigenvalues c of C, so that
                mu_x = tau sigma_min(M)^2,   L_x = tau |M|^2,   mu_y = m - tau m^2, m = lambda_min(C),
                L_y = lambda_max(C)/2.
            If M is singular or not formed, the proximal point method finds a theta without a certificate.
Reference:  S. Du, J. Chen, L. Li, L. Xiao and D. Zhou, Stochastic variance reduction methods for policy evaluation,
            ICML 2017 (the saddle form); R. Sutton et al., Fast gradient-descent methods for temporal-difference
            learning with linear function approximation, ICML 2009 (MSPBE, GTD2); S. Bradtke and A. Barto, Linear
            least-squares algorithms for temporal difference learning, Machine Learning 1996 (LSTD).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse import block_array, eye_array, issparse
from scipy.sparse.linalg import LinearOperator, cg, splu

from saddlepoint.apps.data_errors import UP
from saddlepoint.apps.moments import Moments, NextFeatures
from saddlepoint.apps.proximal import Outcome, proximal_point
from saddlepoint.apps.transitions import (
    as_matrix,
    as_weights,
    check_distributions,
    nonterminal_states,
    scaled_rows,
    transition_table,
)
from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.ground.validation import as_vector
from saddlepoint.methods import Method
from saddlepoint.methods.registry import method_or_auto
from saddlepoint.parts.functions import Quadratic
from saddlepoint.parts.functions.given_constants import as_nonnegative
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve
from saddlepoint.theory.certificate import Certificate

DENSE = 2500  # number of features up to which the closed form uses dense matrices
FORMING = 16.0  # largest cost of forming sparse M and C, in rounds of products with the features
ANCHOR = 1e-2  # proximal weight of x in the first step, in units of |A|^2/L_y
AIM = 1e-4  # least accuracy that is asked of a run of LSTD, in units of tol
NOT_UNIQUE = "M is singular, so that theta is not unique; give a positive ridge"


@dataclass(frozen=True, eq=False)
class PolicyValue:
    """The weights that ``PolicyEvaluation.solve`` found, and how good they are.

    Attributes:
        theta: the weights of the features.
        w: the dual variable, C^-1 (b - M theta) at the solution.
        mspbe: MSPBE(theta).
        residual: |F|, the length of the field of the problem solved.
        certificate: the bound on the distance of theta and w; None if ridge = 0 and M is singular or not formed.
        solved, message: whether ``tol`` was reached, and how the run ended, in a sentence.
        run: the ``Result`` of ``solve``, or the ``Outcome`` of the proximal point method.
        states: the features of the states, if there is a model.
    """

    theta: Array
    w: Array
    mspbe: float
    residual: float
    certificate: Certificate | None
    solved: bool
    message: str
    run: Result | Outcome
    states: Any

    def values(self, features: Any = None) -> Array:
        """The values of states with these features; of all states of the model if left out."""
        if features is None and self.states is None:
            raise ProblemError(
                "values needs features, one row for each state; they can be left out only if there is a model"
            )
        rows = self.states if features is None else as_matrix(features, "features")
        if rows.shape[1] != self.theta.shape[0]:
            raise ProblemError(
                f"features have {rows.shape[1]} columns; expected {self.theta.shape[0]}, one for each weight"
            )
        return np.asarray(rows @ self.theta)

    def __repr__(self) -> str:
        proof = f"residual {self.residual:.3g}" if self.certificate is None else repr(self.certificate)
        return f"PolicyValue({self.theta.shape[0]} features, mspbe {self.mspbe:.3g}, {proof}, {self.message})"


class PolicyEvaluation:
    """The values of a policy, linear in features, from transitions or from a model.

    Args:
        features: the features of the state, one row for each transition; an array or a SciPy sparse array.
        next_features: the features of the next state; zero where the episode ended.
        rewards: one for each transition.
        discount: gamma, with 0 <= gamma < 1.
        weights: the weight of each transition, for example importance weights; equal weights if left out.
        ridge: the weight of |theta|^2/2. Zero gives LSTD.
        ridge_w: added to the diagonal of C; it must be positive if features are linearly dependent or states are never
            visited.

    M and C are formed where a round of products with them reads fewer numbers than one with the features, and where
    ridge_w = 0, for the smallest eigenvalue of C. Otherwise all products go through the features, and mu_y is ridge_w.

    The certificate is about the transitions, the model or the table as they were given: what rounding changes in the
    weights, in expected features and rewards, in M, C and b, and in products with the features, is part of it.

    Example:
        >>> import numpy as np
        >>> from saddlepoint.apps import PolicyEvaluation
        >>> task = PolicyEvaluation.from_model(np.full((2, 2), 0.5), [1.0, 0.0], discount=0.9)
        >>> task.solve(tol=1e-9).values().round(6)
        array([5.5, 4.5])
    """

    def __init__(
        self,
        features: Any,
        next_features: Any,
        rewards: Any,
        discount: float,
        *,
        weights: Any = None,
        ridge: float = 0.0,
        ridge_w: float = 0.0,
    ) -> None:
        self.discount = as_nonnegative(discount, "discount")
        if self.discount >= 1.0:
            raise ProblemError(f"discount is {self.discount:g}; expected 0 <= discount < 1")
        self.ridge, self.ridge_w = as_nonnegative(ridge, "ridge"), as_nonnegative(ridge_w, "ridge_w")
        now = as_matrix(features, "features")
        after = next_features if isinstance(next_features, NextFeatures) else NextFeatures.given(next_features)
        rows, self.d = now.shape
        shares = as_weights(weights, rows, "weights")
        rewards = as_vector(rewards, "rewards", rows).astype(np.float64)
        self.moments = Moments(now, after, rewards, shares, self.discount, self.ridge_w)
        self.phi, self.psi = self.moments.phi, self.moments.psi
        self.rewards, self.b = self.moments.rewards, self.moments.b
        self.states: Any = None
        self.formed = self.ridge_w == 0.0 or self._compact()
        if self.formed and self.moments.least == 0.0:
            raise ProblemError(self._dependence())
        if self.formed and self.moments.C_bounds[0] < 0.5 * self.ridge_w:
            self.formed = False  # rounding hides the ridge in C, but not in products with the features
        self.h, self.A = self.moments.formed_parts() if self.formed else self.moments.product_parts()

    @classmethod
    def from_model(
        cls,
        P: Any,
        r: Any,
        discount: float,
        features: Any = None,
        state_weights: Any = None,
        *,
        terminal: Any = (),
        ridge: float = 0.0,
        ridge_w: float = 0.0,
    ) -> PolicyEvaluation:
        """Expectations under a known model instead of samples.

        Args:
            P: the matrix of transition probabilities under the policy, dense or sparse; its rows sum to one.
            r: the expected reward on leaving each state.
            discount: gamma.
            features: one row for each state; if left out, one feature for each state that is not terminal.
            state_weights: the weight of each state; equal weights if left out.
            terminal: the states in which the episode is over, a list of indices. Their value is zero, and so are their
                features, whatever ``features`` says.
            ridge, ridge_w: as in the class.
        """
        P = as_matrix(P, "P")
        S = P.shape[0]
        if P.shape != (S, S):
            raise ProblemError(f"P has shape {P.shape}; expected a square matrix")
        check_distributions(P, "P")
        going_on = nonterminal_states(terminal, S)
        if features is None:
            states = (eye_array(S, format="csr") if issparse(P) else np.eye(S))[:, going_on]
        else:
            states = scaled_rows(as_matrix(features, "features"), going_on.astype(np.float64), "features")
        weights = as_weights(state_weights, S, "state_weights")[going_on]
        rewards = as_vector(r, "r", S)[going_on]
        after = NextFeatures.expected(P, None if features is None else states, going_on)
        task = cls(states[going_on], after, rewards, discount, weights=weights, ridge=ridge, ridge_w=ridge_w)
        task.states = states
        return task

    @classmethod
    def from_gymnasium(
        cls,
        env: Any,
        discount: float,
        policy: Any = None,
        features: Any = None,
        state_weights: Any = None,
        *,
        ridge: float = 0.0,
        ridge_w: float = 0.0,
    ) -> PolicyEvaluation:
        """The model of a Gymnasium environment with a transition table: FrozenLake, CliffWalking, Taxi.

        States entered by a transition that the table marks as terminated are terminal.

        Args:
            env: the environment; its table is ``env.unwrapped.P``.
            discount: gamma.
            policy: the probability of each action (columns) in each state (rows); uniform if left out.
            features, state_weights, ridge, ridge_w: as in ``from_model``.
        """
        P, r, terminal = transition_table(env, policy)
        ridges = {"ridge": ridge, "ridge_w": ridge_w}
        return cls.from_model(P, r, discount, features, state_weights, terminal=terminal, **ridges)

    # -- the problem -------------------------------------------------------------------------------------------------

    @cached_property
    def M(self) -> Any:
        """sum_t c_t p_t (p_t - gamma q_t)', formed."""
        return self.moments.M

    @cached_property
    def C(self) -> Any:
        """sum_t c_t p_t p_t' + ridge_w I, formed."""
        return self.moments.C

    @cached_property
    def _strongly_convex(self) -> Saddle | None:
        """The saddle problem; for ridge = 0 the equivalent one, or None if M is singular or not formed."""
        if self.ridge > 0.0:
            return Saddle(Quadratic(self.ridge), self.h, self.A)
        parts = self.moments.lstd_parts_of_data() if self.formed else None
        return None if parts is None else Saddle(*parts)

    @property
    def problem(self) -> Saddle:
        """The saddle problem; for ridge = 0 the equivalent one that is strongly convex (see the module)."""
        if self._strongly_convex is None:
            raise ProblemError(NOT_UNIQUE if self.formed else "ridge is 0 and M is not formed; give a positive ridge")
        return self._strongly_convex

    def solve(
        self, *, tol: float = 1e-6, method: str | Method = "auto", max_seconds: float | None = None
    ) -> PolicyValue:
        """theta with |theta - theta*| + |w - w*| <= tol, certified.

        If ridge = 0 and M is singular or not formed, the proximal point method finds a theta with |F| <= tol instead.

        Args:
            tol: the accuracy to reach.
            method: a method of ``sp.solve``.
            max_seconds: wall-clock limit.
        """
        limit = TimeLimit(max_seconds)
        method_or_auto(method)
        if self._strongly_convex is None:
            g, weights = Quadratic(0.0), (ANCHOR * self.A.norm**2 / self.h.L, 0.0)
            found = proximal_point(g, self.h, self.A, tol=tol, weights=weights, method=method, max_seconds=limit.left)
            return self._value(found, None, found.residual, found.solved, found.message)
        if self.ridge == 0.0:
            return self._solve_lstd(tol, method, limit)
        run = solve(self._strongly_convex, method=method, tol=tol, max_seconds=limit.left)
        return self._value(run, run.certificate, run.certificate.residual, run.solved, run.message)

    def _solve_lstd(self, tol: float, method: str | Method, limit: TimeLimit) -> PolicyValue:
        """LSTD: the problem as computed is solved more and more accurately, until the distance is proven for the data.

        A run is about M, C and b as computed. What it returns is certified for the data (see ``lstd_distance``).
        """
        assert self._strongly_convex is not None
        assert self.moments.lstd_parts is not None
        f, aim = Saddle(*self.moments.lstd_parts), tol
        x = y = None
        while True:
            run = solve(f, x, y, method=method, tol=aim, max_seconds=limit.left)
            proof = self._strongly_convex.certificate(run.x, run.y, tol)
            (of_x, rounding), of_y = self.moments.lstd_distance(run.x), norm(run.y)  # w is 0 at the solution
            if of_x + of_y < proof.distance:
                proof = proof._replace(
                    distance=UP * (of_x + of_y), distance_x=of_x, distance_y=UP * of_y, rounding=rounding
                )
            if proof.distance <= tol:
                message = f"certified distance {proof.distance:.3g} <= tol {tol:.3g}"
                return self._value(run, proof, proof.residual, True, message)
            if not run.solved or rounding > 0.5 * tol or aim < AIM * tol:
                break
            x, y, aim = run.x, run.y, 0.1 * aim
        rounded = f"the certified distance is {proof.distance:.3g}, because M, C and b are rounded; raise tol"
        message = rounded if run.solved else run.message
        return self._value(run, proof, proof.residual, False, message)

    def _value(
        self, run: Result | Outcome, certificate: Certificate | None, residual: float, solved: bool, message: str
    ) -> PolicyValue:
        return PolicyValue(run.x, run.y, self.mspbe(run.x), residual, certificate, solved, message, run, self.states)

    # -- by factorisation --------------------------------------------------------------------------------------------

    def closed_form(self, dense_up_to: int = DENSE) -> Array:
        """(M'C^-1 M + ridge I)^-1 M'C^-1 b, or M^-1 b for ridge = 0 (LSTD).

        Sparse M and C are factorised as dense matrices up to ``dense_up_to`` features, and as sparse ones beyond.
        """
        if issparse(self.M) and self.d > dense_up_to:
            return self._sparse_closed_form()
        M = dense(self.M)
        if self.ridge == 0.0:
            return _solution(M, self.b, "gen")
        CiM = linalg.cho_solve(linalg.cho_factor(dense(self.C)), M)
        return _solution(M.T @ CiM + self.ridge * np.eye(self.d), CiM.T @ self.b, "pos")

    def _sparse_closed_form(self) -> Array:
        """The theta of the equations ridge theta - M'w = 0 and M theta + C w = b, by one sparse factorisation."""
        K = block_array([[self.ridge * eye_array(self.d), -self.M.T], [self.M, self.C]], format="csc")
        try:
            z = splu(K).solve(np.concatenate((np.zeros(self.d), self.b)))
        except RuntimeError:
            raise ProblemError(NOT_UNIQUE) from None
        return np.asarray(z[: self.d])

    def mspbe(self, theta: Any) -> float:
        """1/2 (M theta - b)' C^-1 (M theta - b), by a factorisation of C, or conjugate gradients if C is not formed."""
        miss = self.b + self.A.tmul(as_vector(theta, "theta", self.d).astype(np.float64))
        return 0.5 * inner(miss, self._over_C(miss))

    @cached_property
    def _over_C(self) -> Callable[[Array], Array]:
        """The function r -> C^-1 r."""
        if not self.formed:
            C = LinearOperator((self.d, self.d), matvec=lambda w: self.h.grad(w) + self.b, dtype=np.float64)
            return lambda r: np.asarray(cg(C, r, rtol=1e-10)[0])
        if issparse(self.C):
            lu = splu(self.C.tocsc())
            return lambda r: np.asarray(lu.solve(r))
        factor = linalg.cho_factor(self.C)
        return lambda r: np.asarray(linalg.cho_solve(factor, r))

    # -- properties of the data --------------------------------------------------------------------------------------

    def _compact(self) -> bool:
        """Whether M, M' and C have fewer entries than a round of products with the features would read."""
        if not issparse(self.phi):
            return bool(self.d <= 2 * self.phi.shape[0])
        now, both = (np.diff(matrix.indptr).astype(np.float64) for matrix in (self.phi, self.psi))
        reads = 4.0 * self.phi.nnz + 2.0 * self.psi.nnz
        return inner(now, now + both) <= FORMING * reads and bool(reads >= 2.0 * self.M.nnz + self.C.nnz)

    def _dependence(self) -> str:
        """The error message that says why C is singular, and what to do."""
        advice = f"drop them, or give ridge_w > 0, for example {1e-3 * float(self.C.trace()) / self.d or 1e-3:.1g}"
        unseen = np.flatnonzero(np.asarray(abs(self.phi).sum(axis=0)).ravel() == 0.0)
        if unseen.size:
            some = ", ".join(map(str, unseen[:5])) + (", ..." if unseen.size > 5 else "")
            return (
                f"{unseen.size} of {self.d} features are zero in all transitions ({some}): their states are never "
                f"visited, or have no weight; {advice}"
            )
        return (
            f"the {self.d} features are linearly dependent on the transitions given, or so nearly that rounding hides "
            f"it; {advice}"
        )


def _solution(matrix: Array, right: Array, kind: str) -> Array:
    """The solution of a dense linear system; an error if the matrix is singular, exactly or to working precision."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", linalg.LinAlgWarning)
        try:
            return np.asarray(linalg.solve(matrix, right, assume_a=kind))
        except (linalg.LinAlgError, linalg.LinAlgWarning):
            raise ProblemError(NOT_UNIQUE) from None
