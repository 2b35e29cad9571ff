"""Policy evaluation: linear values of a policy by the mean squared projected Bellman error (MSPBE).

Problem:    transitions t with features p_t, next features q_t (zero where the episode ends), rewards r_t and weights
            c_t that sum to one; a discount gamma < 1; the value of a state with features p is p'theta. With
                M = sum_t c_t p_t (p_t - gamma q_t)',   b = sum_t c_t r_t p_t,   C = sum_t c_t p_t p_t' + ridge_w I
            minimise  MSPBE(theta) + ridge/2 |theta|^2,  MSPBE(theta) = 1/2 (M theta - b)' C^-1 (M theta - b).
Saddle:     MSPBE(theta) = max_w w'(b - M theta) - 1/2 w'C w, hence with x = theta and y = w
                g(x) = ridge/2 |x|^2,   A = -M',   h(y) = 1/2 y'C y - b'y,
                mu_x = L_x = ridge,   mu_y = lambda_min(C),   L_y = lambda_max(C).
LSTD:       ridge = 0 leaves M theta = b, which is LSTD. Then g is zero, but there is an equivalent problem with a
            strongly convex g: with the field
            F = (-M'y, C y - b + M x) of the saddle form, (F_x + tau M'F_y, (I - tau C) F_y) has the same zeros, and is
            the field of
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
from scipy.sparse import block_array, csr_array, eye_array, issparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg, splu

from saddlepoint.apps.forming import EPS, UP, FormedCoupling, formed
from saddlepoint.apps.proximal import Outcome, proximal_point
from saddlepoint.apps.transitions import (
    as_matrix,
    as_weights,
    check_distributions,
    nonterminal_states,
    scaled_rows,
    transition_table,
)
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.validation import as_vector
from saddlepoint.methods import Method
from saddlepoint.parts.coupling import Coupling, DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.parts.functions import LeastSquares, Quadratic, Smooth
from saddlepoint.parts.functions.constants import eigenvalue_bounds
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve
from saddlepoint.theory.certificate import Certificate

DENSE = 2500  # number of features up to which the closed form uses dense matrices
FORMING = 16.0  # largest cost of forming sparse M and C, in rounds of products with the features
SINGULAR = 1e-12  # ratio of the smallest to the largest eigenvalue below which a matrix counts as singular
ANCHOR = 1e-2  # proximal weight of the first step, in units of |A|^2/L_y
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

    For ridge > 0 and formed matrices, the certificate is about the transitions as they were given: what rounding
    changes in M, C and b is part of it. Otherwise (LSTD, or products with the features) it is about M, C and b as they
    are computed in float64, and for ``from_model`` with features it is about the product of P with them, as computed.

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
        self.discount = _number(discount, "discount")
        if self.discount >= 1.0:
            raise ProblemError(f"discount is {self.discount:g}; expected 0 <= discount < 1")
        self.ridge, self.ridge_w = _number(ridge, "ridge"), _number(ridge_w, "ridge_w")
        now, after = as_matrix(features, "features"), as_matrix(next_features, "next_features")
        if now.shape != after.shape:
            raise ProblemError(f"features are {now.shape} and next_features {after.shape}; expected the same shape")
        if issparse(now) != issparse(after):
            now, after = csr_array(now), csr_array(after)
        rows, self.d = now.shape
        # With the roots of the weights in the rows: M = phi'psi, C = phi'phi + ridge_w I, b = phi'rewards.
        root = np.sqrt(as_weights(weights, rows, "weights"))
        self.phi, self.psi = scaled_rows(now, root), scaled_rows(now - self.discount * after, root)
        self.rewards = root * as_vector(rewards, "rewards", rows).astype(np.float64)
        self.b = np.asarray(self.phi.T @ self.rewards)
        self.states: Any = None
        self.formed = self.ridge_w == 0.0 or self._compact()
        low, high = _eigenvalue_bounds(self.C) if self.formed else (0.0, np.inf)
        if self.formed and max(low, self.ridge_w) == 0.0:
            raise ProblemError(self._dependence())
        if low < 0.5 * self.ridge_w:  # rounding hides the ridge in C, but not in products with the features
            self.formed = False
        if self.formed:
            h = Quadratic(_as_diagonal(self.C), -self.b, mu=low, L=high).replace(trusted=True)
            # Sums over the transitions, and the roots of the weights in them, are rounded; psi is a difference.
            # NumPy adds up the weights in pairs, with at most 60 roundings.
            terms = int(np.bincount(self.phi.indices).max(initial=0)) if issparse(self.phi) else rows
            relative = 2.0 * gamma(terms + 80, EPS)
            sizes = scaled_rows(abs(now) + self.discount * abs(after), root)
            C_error, M_error = relative * (abs(self.phi).T @ abs(self.phi)), relative * (sizes.T @ abs(self.phi))
            b_error = relative * (abs(self.phi).T @ np.abs(self.rewards))
            off = UP * float(np.max(C_error.sum(axis=1))) + 2.0 * EPS * self.ridge_w
            self.h: Smooth = formed(
                h,
                lambda y: UP * (C_error @ np.abs(y) + b_error) + 4.0 * EPS * self.ridge_w * np.abs(y),
                mu=max((low - off) * (1.0 - 8.0 * EPS), self.ridge_w),
            )
            self.A: Coupling = FormedCoupling(as_coupling(-self.M.T), M_error)
        else:
            self.h = rows * LeastSquares(self.phi, self.rewards, self.ridge_w / rows)
            self.A = as_coupling(-(aslinearoperator(self.psi.T) @ aslinearoperator(self.phi)))

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
        alive = nonterminal_states(terminal, S)
        if features is None:
            states = (eye_array(S, format="csr") if issparse(P) else np.eye(S))[:, alive]
        else:
            states = scaled_rows(as_matrix(features, "features"), alive.astype(np.float64), "features")
        weights = as_weights(state_weights, S, "state_weights")[alive]
        rewards = as_vector(r, "r", S)[alive]
        now, after = states[alive], (P @ states)[alive]
        task = cls(now, after, rewards, discount, weights=weights, ridge=ridge, ridge_w=ridge_w)
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
        return cls.from_model(
            P, r, discount, features, state_weights, terminal=terminal, ridge=ridge, ridge_w=ridge_w
        )  # fmt: skip

    # -- the problem -------------------------------------------------------------------------------------------------

    @cached_property
    def M(self) -> Any:
        """sum_t c_t p_t (p_t - gamma q_t)', formed."""
        return self.phi.T @ self.psi

    @cached_property
    def C(self) -> Any:
        """sum_t c_t p_t p_t' + ridge_w I, formed."""
        gram = self.phi.T @ self.phi
        return gram + self.ridge_w * (eye_array(self.d) if issparse(gram) else np.eye(self.d))

    @cached_property
    def _gram_bounds(self) -> tuple[float, float]:
        """Bounds on the eigenvalues of M'M; the lower one is 0 if M is singular or not formed."""
        return _eigenvalue_bounds(self.M.T @ self.M) if self.formed else (0.0, np.inf)

    @cached_property
    def problem(self) -> Saddle:
        """The saddle problem; for ridge = 0 the equivalent one that is strongly convex (see the module)."""
        if self.ridge > 0.0:
            return Saddle(Quadratic(self.ridge), self.h, self.A)
        if self._gram_bounds[0] == 0.0:
            raise ProblemError(NOT_UNIQUE if self.formed else "ridge is 0 and M is not formed; give a positive ridge")
        M, C, b, tau = self.M, self.C, self.b, 0.5 / self.h.L
        # What is formed here is rounded, so that mu is proven anew.
        g = Quadratic(_as_diagonal(tau * (M.T @ M)), -tau * (M.T @ b))
        h = Quadratic(_as_diagonal(C - tau * (C @ C)), tau * (C @ b) - b)
        return Saddle(g, h, tau * (M.T @ C) - M.T)

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
        run: Result | Outcome
        if self.ridge > 0.0 or self._gram_bounds[0] > 0.0:
            run = solve(self.problem, method=method, tol=tol, max_seconds=max_seconds)
            certificate, residual = run.certificate, run.certificate.residual
        else:
            g, weights = Quadratic(0.0), (ANCHOR * self.A.norm**2 / self.h.L, 0.0)
            run = proximal_point(g, self.h, self.A, tol=tol, weights=weights, method=method, max_seconds=max_seconds)
            certificate, residual = None, run.residual
        mspbe = self.mspbe(run.x)
        return PolicyValue(run.x, run.y, mspbe, residual, certificate, run.solved, run.message, run, self.states)

    # -- by factorisation --------------------------------------------------------------------------------------------

    def closed_form(self, dense_up_to: int = DENSE) -> Array:
        """(M'C^-1 M + ridge I)^-1 M'C^-1 b, or M^-1 b for ridge = 0 (LSTD).

        Sparse M and C are factorised as dense matrices up to ``dense_up_to`` features, and as sparse ones beyond.
        """
        if issparse(self.M) and self.d > dense_up_to:
            return self._sparse_closed_form()
        M = _dense(self.M)
        if self.ridge == 0.0:
            return _solved(M, self.b, "gen")
        CiM = linalg.cho_solve(linalg.cho_factor(_dense(self.C)), M)
        return _solved(M.T @ CiM + self.ridge * np.eye(self.d), CiM.T @ self.b, "pos")

    def _sparse_closed_form(self) -> Array:
        """From ridge theta - M'w = 0 and M theta + C w = b at once."""
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
        """Error message: why C is singular, and what to do."""
        advice = f"drop them, or give ridge_w > 0, for example {1e-3 * float(self.C.trace()) / self.d or 1e-3:.1g}"
        unseen = np.flatnonzero(np.asarray(abs(self.phi).sum(axis=0)).ravel() == 0.0)
        if unseen.size:
            some = ", ".join(map(str, unseen[:5])) + (", ..." if unseen.size > 5 else "")
            return (
                f"{unseen.size} of {self.d} features are zero in all transitions ({some}): their states are never "
                f"visited, or have no weight; {advice}"
            )
        return f"the {self.d} features are linearly dependent on the transitions given; {advice}"


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if issparse(matrix) else matrix)


def _as_diagonal(matrix: Any) -> Any:
    """The diagonal of a sparse matrix that is diagonal, such as C of one-hot features; otherwise the matrix itself."""
    if issparse(matrix) and abs(matrix).sum() == abs(matrix.diagonal()).sum():
        return matrix.diagonal()
    return matrix


def _eigenvalue_bounds(matrix: Any) -> tuple[float, float]:
    """Bounds on the eigenvalues of a positive semidefinite matrix; the lower one is 0 if it is nearly singular."""
    matrix = _as_diagonal(matrix)
    if matrix.ndim == 1:
        low, high = float(matrix.min()), float(matrix.max())
    else:
        coupling = as_coupling(matrix)
        assert isinstance(coupling, DenseCoupling | SparseCoupling)
        try:
            low, high = eigenvalue_bounds(coupling)
        except ProblemError:  # a pivot is not positive, because of rounding
            low, high = 0.0, coupling.norm
    return (low if low > SINGULAR * high else 0.0), high


def _solved(matrix: Array, right: Array, kind: str) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("error", linalg.LinAlgWarning)
        try:
            return np.asarray(linalg.solve(matrix, right, assume_a=kind))
        except (linalg.LinAlgError, linalg.LinAlgWarning):
            raise ProblemError(NOT_UNIQUE) from None


def _number(value: Any, name: str) -> float:
    """A finite number that is not negative."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ProblemError(f"{name} is {value!r}; expected a number") from None
    if not 0.0 <= number < np.inf:
        raise ProblemError(f"{name} is {number:g}; expected a finite number that is not negative")
    return number
