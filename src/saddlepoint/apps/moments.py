r"""The saddle problem of policy evaluation from transitions, with bounds on what rounding changes in it.

Problem:    phi has the rows sqrt(c_t) p_t, and psi the rows sqrt(c_t) (p_t - gamma q_t), so that M = phi'psi,
            C = phi'phi + ridge_w I and b = phi'(sqrt(c_t) r_t); see ``policy`` for their use.
Rounding:   an entry of phi has a relative error of a few units, and one of psi differs by as much of
            sqrt(c_t) (|p_t| + gamma |q_t|). If q_t is an expected value, it is a sum, with an error of its own. Hence
            |M - M~| <= gamma |phi|'sizes, and so on for C and b; what is computed from them inherits these errors.
Products:   where M and C are not formed, products go through phi and psi, with bounds of the same form.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array, issparse

from saddlepoint.apps.data_errors import UP, CouplingWithError, with_error
from saddlepoint.apps.transitions import as_matrix, scaled_rows
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS, Sum
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.parts.coupling import Coupling, DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.parts.functions import LeastSquares, Quadratic, Smooth
from saddlepoint.parts.functions.compensated import exactly, product, total
from saddlepoint.parts.functions.constants import eigenvalue_bounds
from saddlepoint.parts.functions.product_rounding import absolute

SINGULAR = 1e-12  # ratio of the smallest to the largest eigenvalue below which a matrix counts as singular
ROWS = 256  # rows whose products are added up in one sum; such sums are then added two at a time
ENTRY = 6  # roundings of an entry of phi, psi or the rewards
UNIT = EPS / 2.0  # the largest relative error of one operation


class NextFeatures(NamedTuple):
    """The features of the next states.

    Attributes:
        mean: the features, or their expected values.
        size: bounds on the sums of absolute values whose rounding changes ``mean``.
        terms: the number of roundings of an entry of ``mean``, relative to ``size``.
    """

    mean: Any
    size: Any
    terms: int

    @classmethod
    def given(cls, features: Any) -> NextFeatures:
        """Features as a caller gave them, which are exact."""
        mean = as_matrix(features, "next_features")
        return cls(mean, abs(mean), 0)

    @classmethod
    def expected(cls, P: Any, states: Any, rows: Array) -> NextFeatures:
        """The expected features P states in some rows, for entries of P that were rounded once.

        If ``states`` is None, there is a feature for each of these rows.
        """
        if states is None:
            mean = P[rows][:, rows]
            return cls(mean, abs(mean), 1)
        terms = int(np.diff(P.indptr).max(initial=0)) if issparse(P) else P.shape[1]
        return cls((P @ states)[rows], (abs(P) @ abs(states))[rows], terms + 1)


class LSTDErrors(NamedTuple):
    """Bounds on the errors of the entries of g(x) = 1/2 x'Px + q'x, of h, which has the same form, and of A."""

    g_matrix: Any
    g_vector: Array
    h_matrix: Any
    h_vector: Array
    coupling: Any


class Moments:
    """M, C and b, and the functions and the matrix of the saddle problem.

    Args:
        now: the features, one row for each transition.
        after: those of the next states.
        rewards: one for each transition; they may have a relative error of eps.
        weights: one for each transition; their sum is one.
        discount, ridge_w: as in ``PolicyEvaluation``.
    """

    def __init__(
        self, now: Any, after: NextFeatures, rewards: Array, weights: Array, discount: float, ridge_w: float
    ) -> None:
        if now.shape != after.mean.shape:
            raise ProblemError(
                f"features are {now.shape} and next_features {after.mean.shape}; expected the same shape"
            )
        if issparse(now) != issparse(after.mean):
            now, after = csr_array(now), NextFeatures(csr_array(after.mean), csr_array(after.size), after.terms)
        root = np.sqrt(weights)
        self.phi, self.psi = scaled_rows(now, root), scaled_rows(now - discount * after.mean, root)
        self.sizes = scaled_rows(abs(now) + discount * after.size, root)
        self.rewards, self.ridge_w = root * rewards, ridge_w
        self.b = np.asarray(_product(self.phi, self.rewards[:, None]))[:, 0]
        self.rows, self.d = now.shape
        self.entry = 2 * ENTRY + after.terms  # roundings of a product of entries of phi and psi

    # -- formed matrices ---------------------------------------------------------------------------------------------

    @cached_property
    def M(self) -> Any:
        """sum_t c_t p_t (p_t - gamma q_t)'."""
        return _product(self.phi, self.psi)

    @cached_property
    def C(self) -> Any:
        """sum_t c_t p_t p_t' + ridge_w I."""
        gram = _product(self.phi, self.phi)
        return gram + self.ridge_w * (eye_array(self.d) if issparse(gram) else np.eye(self.d))

    @cached_property
    def relative(self) -> float:
        """A bound on the errors of M, C and b by rounding, relative to the same sums of absolute values."""
        if issparse(self.phi):
            terms = int(np.bincount(self.phi.indices).max(initial=0))
        else:
            terms = min(self.rows, ROWS) + max(0, math.ceil(math.log2(self.rows / ROWS)))
        return UP * gamma(terms + self.entry, UNIT)

    @cached_property
    def M_error(self) -> Any:
        """Bounds on the errors of the entries of M."""
        return self.relative * _product(abs(self.phi), self.sizes)

    @cached_property
    def C_error(self) -> Any:
        """Bounds on the errors of the entries of C."""
        error = self.relative * _product(abs(self.phi), abs(self.phi))
        more = 2.0 * EPS * self.ridge_w
        return error if more == 0.0 else error + more * (eye_array(self.d) if issparse(error) else np.eye(self.d))

    @cached_property
    def b_error(self) -> Array:
        """Bounds on the errors of the entries of b."""
        return np.asarray(self.relative * (abs(self.phi).T @ np.abs(self.rewards)))

    @cached_property
    def C_bounds(self) -> tuple[float, float]:
        """Bounds on the eigenvalues of C as computed; the lower one is 0 if it is nearly singular."""
        return psd_bounds(self.C)

    @cached_property
    def least(self) -> float:
        """A lower bound on the eigenvalues of C of the data: it is positive, or 0 if nothing is proven."""
        low = (self.C_bounds[0] - UP * _row_sum(self.C_error)) * (1.0 - 8.0 * EPS)
        return max(low, self.ridge_w)

    def formed_parts(self) -> tuple[Smooth, Coupling]:
        """h(y) = 1/2 y'C y - b'y and A = -M'."""
        C_error, b_error = self.C_error, self.b_error
        h = Quadratic(as_diagonal(self.C), -self.b, mu=self.least, L=max(self.C_bounds[1], self.least))
        h_of_data = with_error(h.replace(trusted=True), lambda y: UP * (C_error @ np.abs(y) + b_error))
        return h_of_data, CouplingWithError(as_coupling(-self.M.T), self.M_error.T)

    @cached_property
    def M_bounds(self) -> tuple[float, float]:
        """Bounds on the squares of the singular values of M; the lower one is of the data, 0 if nothing is proven."""
        M = self.M
        low, high = psd_bounds(M.T @ M)
        low -= UP * gamma(_longest(M) + 2, UNIT) * _row_sum(abs(M).T @ abs(M))
        off = UP * math.sqrt(_row_sum(self.M_error)) * math.sqrt(_row_sum(self.M_error.T))
        least = math.sqrt(max(low, 0.0)) * (1.0 - 4.0 * EPS) - off
        return max(least, 0.0) ** 2 * (1.0 - 4.0 * EPS), high

    @cached_property
    def tau(self) -> float:
        """The number of the equivalent problem of LSTD; any number leaves its solution as it is."""
        return 0.5 / self.C_bounds[1]

    @cached_property
    def lstd_errors(self) -> LSTDErrors:
        """Bounds on what rounding changes in the problem of LSTD: in M, C and b, and in what is computed from them."""
        E, F, e, tau = self.M_error, self.C_error, self.b_error, self.tau
        S, T, B = abs(self.M) + E, abs(self.C) + F, abs(self.b) + e  # bounds on the entries of M, C and b of the data
        slack = gamma(max(_longest(self.M), _longest(self.C)) + 3, UNIT)
        return LSTDErrors(
            tau * (S.T @ E + E.T @ S + slack * (S.T @ S)),
            tau * (S.T @ (e + slack * B) + E.T @ B),
            F + slack * T + tau * (T @ F + F @ T + slack * (T @ T)),
            e + slack * B + tau * (T @ (e + slack * B) + F @ B),
            UP * ((E + slack * S).T + tau * (S.T @ F + E.T @ T + slack * (S.T @ T))),
        )

    @cached_property
    def lstd_parts(self) -> tuple[Smooth, Smooth, Coupling] | None:
        """g, h and A of LSTD (see ``policy``) as computed; None if M is singular, or may be.

        The constants mu are those of the data, or below.
        """
        M, C, b, tau = self.M, self.C, self.b, self.tau
        least, high = self.M_bounds
        mu = tau * least * (1.0 - 4.0 * EPS)
        if mu == 0.0:
            return None
        h = Quadratic(as_diagonal(C - tau * (C @ C)), tau * (C @ b) - b)
        mu_h = h.mu - UP * _row_sum(self.lstd_errors.h_matrix)
        if mu_h <= 0.0:
            return None
        g = Quadratic(as_diagonal(tau * (M.T @ M)), -tau * (M.T @ b), mu=mu, L=max(tau * high, mu))
        return g.replace(trusted=True), h.replace(mu=mu_h, trusted=True), as_coupling(tau * (M.T @ C) - M.T)

    def lstd_parts_of_data(self) -> tuple[Smooth, Smooth, Coupling] | None:
        """The same, with bounds that refer to the data."""
        if self.lstd_parts is None:
            return None
        (g, h, A), errors = self.lstd_parts, self.lstd_errors
        return (
            with_error(g, lambda x: UP * (errors.g_matrix @ np.abs(x) + errors.g_vector)),
            with_error(h, lambda y: UP * (errors.h_matrix @ np.abs(y) + errors.h_vector)),
            CouplingWithError(A, errors.coupling),
        )

    def lstd_distance(self, theta: Array) -> tuple[float, float]:
        """A bound on |theta - theta*|, where M theta* = b, and the part of it that allows for rounding.

        |theta - theta*| <= |M theta - b|/sigma_min(M). The certificate of the saddle problem contains the condition
        number of M'M instead, because the residual of g is multiplied by M'.
        """
        sigma = math.sqrt(self.M_bounds[0]) * (1.0 - 4.0 * EPS)
        times = CouplingWithError(as_coupling(self.M), self.M_error).compensated_mul(theta)
        assert times is not None
        miss = total(times, exactly(-self.b))
        size, error = norm(np.abs(miss.hi) + np.abs(miss.lo)), norm(miss.error + self.b_error)
        return UP * (size + error) / sigma, UP * error / sigma

    # -- products with the features ----------------------------------------------------------------------------------

    def product_parts(self) -> tuple[Smooth, Coupling]:
        """The same h and A, by products with the features; mu is ridge_w."""
        phi = as_coupling(self.phi)
        h = self.rows * LeastSquares(phi, self.rewards, self.ridge_w / self.rows)
        size, size_T, rewards = absolute(phi), absolute(phi.T), np.abs(self.rewards)
        relative, more = UP * gamma(2 * ENTRY + 2, UNIT), 4.0 * EPS * self.ridge_w

        def error(y: Array) -> Array:
            return relative * size_T.times(size.times(np.abs(y)) + rewards) + more * np.abs(y)

        A = MinusProduct(as_coupling(self.psi), phi, as_coupling(self.sizes), self.entry)
        return with_error(h, error, mu=self.ridge_w * (1.0 - 4.0 * EPS)), A


class MinusProduct(Coupling):
    """The matrix -psi'phi by products with psi and phi.

    Args:
        psi, phi: matrices with as many rows.
        sizes: a matrix without negative entries, at least as large as |psi|.
        entry: roundings of a product of entries: those of psi are relative to ``sizes``, those of phi to |phi|.
    """

    trusted = True
    has_entries = True

    def __init__(self, psi: Coupling, phi: Coupling, sizes: Coupling, entry: int) -> None:
        self.psi, self.phi, self.sizes, self.entry = psi, phi, sizes, entry
        self.shape, self.dtype = (psi.shape[1], phi.shape[1]), phi.dtype

    def mul(self, y: Array) -> Array:
        """-psi'(phi y)."""
        return -self.psi.tmul(self.phi.mul(y))

    def tmul(self, x: Array) -> Array:
        """-phi'(psi x)."""
        return -self.phi.tmul(self.psi.mul(x))

    @property
    def sum_length(self) -> int:
        """Roundings of an entry of the product, relative to the same sum of absolute values."""
        return absolute(self.phi).length + absolute(self.psi.T).length + self.entry + 4

    def rounding_scale(self, y: Array) -> float:
        """A bound on the norm of sizes'|phi||y|."""
        return UP * norm(self._size(y))

    def compensated_mul(self, y: Array) -> Sum | None:
        """The product in about twice the digits; its error includes that of the entries."""
        inner = self.phi.compensated_mul(y)
        found = None if inner is None else product(self.psi.T, inner)
        if found is None:
            return None
        return Sum(-found.hi, -found.lo, found.error + UP * gamma(self.entry, UNIT) * self._size(y))

    def _size(self, y: Array) -> Array:
        """sizes'|phi||y|, in which errors of entries are relative."""
        return absolute(self.sizes.T).times(absolute(self.phi).times(np.abs(y)))

    def _transpose(self) -> Coupling:
        return TransposedProduct(self)


class TransposedProduct(MinusProduct):
    """The transpose of a ``MinusProduct``, -phi'psi."""

    def __init__(self, of: MinusProduct) -> None:
        super().__init__(of.phi, of.psi, of.sizes, of.entry)

    def _size(self, y: Array) -> Array:
        return absolute(self.psi.T).times(absolute(self.sizes).times(np.abs(y)))


def _product(left: Any, right: Any) -> Any:
    """left'right; long sums of dense matrices are halved until they have at most ``ROWS`` terms."""
    rows = left.shape[0]
    if issparse(left) or rows <= ROWS:
        return left.T @ right
    half = ROWS * 2 ** max(0, math.ceil(math.log2(rows / ROWS)) - 1)
    return _product(left[:half], right[:half]) + _product(left[half:], right[half:])


def _longest(matrix: Any) -> int:
    """The most entries of a column of a matrix, whose products with a column have as many terms."""
    return int(np.diff(matrix.tocsc().indptr).max(initial=0)) if issparse(matrix) else matrix.shape[0]


def _row_sum(matrix: Any) -> float:
    """The largest sum of a row of a matrix without negative entries."""
    return float(np.max(matrix.sum(axis=1)))


def as_diagonal(matrix: Any) -> Any:
    """The diagonal of a sparse matrix that is diagonal, such as C of one-hot features; otherwise the matrix itself."""
    if issparse(matrix) and abs(matrix).sum() == abs(matrix.diagonal()).sum():
        return matrix.diagonal()
    return matrix


def psd_bounds(matrix: Any) -> tuple[float, float]:
    """Bounds on the eigenvalues of a positive semidefinite matrix; the lower one is 0 if it is nearly singular."""
    matrix = as_diagonal(matrix)
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
