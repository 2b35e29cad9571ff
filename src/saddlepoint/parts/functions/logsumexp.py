"""Log-sum-exp, a smooth maximum."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import diags_array, issparse

from saddlepoint.ground.arrays import Array, common_space, eps_of, is_array, namespace, smallest_of
from saddlepoint.ground.compensated import Sum
from saddlepoint.ground.elementwise import cast_like, choose, clip
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.recording import is_recording
from saddlepoint.ground.rounding import ELEMENTARY, flushed, gamma, is_power_of_two
from saddlepoint.ground.validation import as_offset
from saddlepoint.parts.coupling import ArrayCoupling, Coupling, DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.parts.functions.accuracy import known_rounding
from saddlepoint.parts.functions.compensated import (
    divided,
    exactly,
    product,
    rounded,
    total,
    two_product,
    widened,
)
from saddlepoint.parts.functions.constants import gram_bounds
from saddlepoint.parts.functions.given_constants import as_nonnegative
from saddlepoint.parts.functions.given_data import size_of_offset
from saddlepoint.parts.functions.product_rounding import absolute, is_bounded, number_error, ridge_rounding
from saddlepoint.parts.functions.second_order import UP, constant_matrix
from saddlepoint.parts.functions.smooth import Smooth, plus_identity


class LogSumExp(Smooth):
    """tau log sum_i exp((d_i'x - t_i)/tau) + l2/2 |x|^2, which tends to max_i (d_i'x - t_i) as tau falls.

    Its Hessian is D'(diag p - p p')D / tau with softmax weights p, hence L = l2 + min(|D|^2/2, max_i |d_i|^2) / tau.
    Without D the maximum is over the coordinates of x.

    Args:
        D: the matrix of the rows d_i: an array, a SciPy sparse array or an operator; None for the identity.
        t: the offsets, a number or a vector; zero if left out.
        l2: the factor of |x|^2/2, not negative; it is mu.
        tau: the width of the smoothing, a positive number: the value exceeds the maximum by at most tau log N.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> g = sp.LogSumExp(tau=0.5)
        >>> g, round(g(np.array([3.0, 0.0])), 4)
        (LogSumExp(mu=0, L=1), 3.0012)
    """

    def __init__(self, D: Any = None, t: Any = None, l2: float = 0.0, tau: float = 1.0) -> None:
        self.l2 = as_nonnegative(l2, "l2 of LogSumExp")
        self.tau = as_nonnegative(tau, "tau of LogSumExp")
        if not is_recording() and self.tau == 0.0:
            raise ProblemError("tau of LogSumExp is 0; expected a positive number")
        self.D: Coupling | None = None if D is None else as_coupling(D, "D of LogSumExp")
        rows = None if self.D is None else self.D.shape[0]
        self.t: float | Array | None = None if t is None else as_offset(t, "t of LogSumExp", rows)
        super().__init__(
            self._gradient,
            mu=self.l2,
            L=self.l2 + self._curvature() / self.tau,
            value=self._value,
            hessian=self._hessian if self.D is None or isinstance(self.D, DenseCoupling | SparseCoupling) else None,
            hessian_lipschitz=self._hessian_change,
            second_order=self._quadratic_model,
            dim=size_of_offset(self.t) if self.D is None else self.D.shape[1],
            space=common_space(
                {"D of LogSumExp": self.D, "t of LogSumExp": None if isinstance(self.t, float) else self.t}
            ),
            trusted=True,
            **known_rounding(*(self._rounding, self._compensated) if is_bounded(self.D) else ()),
        )

    def _scores(self, x: Array) -> Array:
        Dx = x if self.D is None else self.D.mul(x)
        return (Dx if self.t is None else Dx - self.t) * (1.0 / self.tau)

    def _gradient(self, x: Array) -> Array:
        p = weights(self._scores(x))
        return (p if self.D is None else self.D.tmul(p)) + self.l2 * x

    def _rounding(self, x: Array) -> Array:
        """Bounds on the errors of the entries of the gradient.

        The scores have the error of the product D x, eps of the subtraction of t, and 2 eps of the factor 1/tau;
        ``weight_errors`` turns it into an error d of the weights p. Then D'p has the error of that product and |D|'d.
        """
        scores, D = self._scores(x), self.D
        xp, e = namespace(x), score_errors(x, D, self.t, 1.0 / self.tau, scores)
        p = weights(scores)
        bound: Array = xp.reshape(weight_errors(scores[None, :], e[None, :]), (-1,))
        if D is not None:
            p, bound = D.tmul(p), absolute(D.T).errors(p, bound)
        return bound if self.l2 == 0.0 else bound + ridge_rounding(p, self.l2, x)

    def _compensated(self, x: Array) -> Sum:
        """The gradient with sums in about twice the digits; the weights are as accurate as exp."""
        wide, D = widened(x), self.D
        r = None if wide is None else exactly(wide) if D is None else product(D, exactly(wide))
        if r is not None and wide is not None:
            scores = divided(r if self.t is None else total(r, exactly(-cast_like(self.t, r.hi))), self.tau)
            high, e = rounded(scores)
            p, error = weights(high), namespace(high).reshape(weight_errors(high[None, :], e[None, :]), (-1,))
            found = Sum(p, 0.0 * p, error) if D is None else product(D.T, Sum(p, 0.0 * p, error))
            if found is not None:
                return total(found, two_product(wide, self.l2)) if self.l2 > 0.0 else found
        return Sum(self._gradient(x), 0.0 * x, self._rounding(x))

    def _quadratic_model(self, x: Array) -> Smooth:
        return self.replace(
            grad=SoftmaxProduct(self, x),
            value=None,
            hessian=None if self.hessian is None else partial(constant_matrix, self._hessian(x)),
            hessian_lipschitz=0.0,
            second_order=None,
            quadratic=True,
            trusted=True,
        )

    def _hessian_change(self, x: Array, u: Array, reach: float) -> float:
        """The third derivative of the sum is E[a b c]/tau^2, with centred a, b, c along three directions.

        It is at most the largest |c| times the covariance, whose norm is at most ``_curvature``; and |c| is at most
        twice the length of the longest row of D. The change is also at most twice the largest curvature.
        """
        bound = self.L - self.l2
        rows = 1.0 if self.D is None else float(np.max(self.D.row_lengths()))
        return UP * min(2.0 * rows * bound / self.tau * reach, 2.0 * bound) * norm(u)

    def _hessian(self, x: Array) -> Array:
        p = weights(self._scores(x))
        if self.D is None:
            spread, mean = np.diag(p), p
        else:
            D = self.D.matrix()
            weighted = (diags_array(p) @ D).toarray() if issparse(D) else p[:, None] * D
            spread, mean = D.T @ weighted, self.D.tmul(p)
        return np.asarray(plus_identity((spread - np.outer(mean, mean)) * (1.0 / self.tau), self.l2))

    def _value(self, x: Array) -> float:
        scores = self._scores(x)
        xp = namespace(scores)
        top = xp.max(scores)
        return self.tau * float(top + xp.log(xp.sum(xp.exp(scores - top)))) + 0.5 * self.l2 * inner(x, x)

    @property
    def proven_L(self) -> float | None:
        """L by a proven bound of the eigenvalues of D'D, or by the lengths of the rows of D."""
        if is_recording() or self._steepest == math.inf:
            return None
        return UP * (self.l2 + self._steepest / self.tau)

    def _curvature(self) -> float:
        if self.D is None:
            self._steepest = 0.5  # |diag p - p p'| <= 1/2
            return self._steepest
        _, high, ceiling = gram_bounds(self.D)
        if is_recording() or not self.D.has_entries:
            self._steepest = math.inf
        else:
            self._steepest = min(0.5 * ceiling, float(np.max(self.D.row_lengths())) ** 2)
        bound = 0.5 * high
        if isinstance(self.D, SparseCoupling):
            bound = min(bound, float(self.D.A.multiply(self.D.A).sum(axis=1).max()))
        elif isinstance(self.D, DenseCoupling | ArrayCoupling):
            xp = self.D.space.xp
            bound = min(bound, float(xp.max(xp.sum(self.D.A * self.D.A, axis=1))))
        return bound


class SoftmaxProduct:
    """The function u -> H u, where H = D'(diag p - p p')D/tau + l2 I is the Hessian of a ``LogSumExp`` at x."""

    def __init__(self, of: LogSumExp, x: Array) -> None:
        self.of, self.p = of, weights(of._scores(x))

    def __call__(self, u: Array) -> Array:
        """H u."""
        D, p = self.of.D, cast_like(self.p, u)
        s = u if D is None else D.mul(u)
        weighted = p * s
        centred = (weighted - p * namespace(u).sum(weighted)) * (1.0 / self.of.tau)
        return (centred if D is None else D.tmul(centred)) + self.of.l2 * u


def weights(scores: Array) -> Array:
    """The softmax weights, exp(scores) divided by its sum."""
    xp = namespace(scores)
    p = xp.exp(scores - xp.max(scores))
    share: Array = p / xp.sum(p)
    return share


def score_errors(x: Array, D: Coupling | None, t: float | Array | None, rate: Any, scores: Array) -> Array:
    """Bounds on the errors of the scores (D x - t) rate, where rate is 1/tau: a number, or one for each score."""
    xp, eps = namespace(x), eps_of(x)
    e: Array = 0.0 * xp.abs(scores) if D is None else rate * absolute(D).errors(x)
    if t is not None:
        e = e + eps * xp.abs(scores) + rate * (flushed(x) + number_error(t, eps))
    if is_array(rate) or not is_power_of_two(rate):
        e = e + 2.0 * eps * xp.abs(scores) + smallest_of(x)
    return e


def weight_errors(scores: Array, e: Array) -> Array:
    """Bounds on the errors of ``weights`` of each row of scores, which have the errors e.

    The computed exponentials are those of scores with errors d_j, |d_j| <= D_j = e_j + eps |score_j - top| + a few eps,
    so that the true weight is the computed p_i divided by sum_j p_j exp(d_j - d_i), which differs from 1 by at most
    s_i = sum over j != i of p_j (exp(D_j + D_i) - 1). For s_i <= 1/2 the relative error is at most s_i/(1 - s_i), and
    gamma for the sum and the quotient. Otherwise the true weight is at most p_i exp(D_i)/(1 - T) with
    T = sum_j p_j (exp(D_j) - 1), and at most 1. Scores so low that their exponentials underflow have weights below the
    smallest normal number.
    """
    xp, eps = namespace(scores), eps_of(scores)
    least, slack = float(xp.finfo(scores.dtype).smallest_normal), gamma(int(scores.shape[1]) + 4, eps)
    below = scores - xp.max(scores, axis=1, keepdims=True)
    D = e + eps * xp.abs(below) + (ELEMENTARY + 1.0) * eps
    lost = below + D < math.log(least)
    D = choose(lost, 0.0 * scores, D)
    p = xp.exp(below)
    p = p / xp.sum(p, axis=1, keepdims=True)
    growth = xp.expm1(D)
    own = (p + least) * growth
    total = xp.sum(own, axis=1, keepdims=True)
    others = clip(total - own, 0.0, math.inf) + 2.0 * slack * total
    s = (1.0 + growth) * others + (clip(1.0 - p, 0.0, 1.0) + slack) * growth
    relative = choose(s <= 0.5, s / (1.0 - s) + slack, choose(total + 0.0 * s <= 0.5, 4.0 + 2.0 * growth, math.inf + s))
    error = clip(p * relative + 4.0 * least * (1.0 + growth), 0.0, 1.0)
    known = choose(lost, 0.0 * p + 4.0 * least, error)
    return choose(known == known, known, 0.0 * below + 1.0)  # NaN is 0 times infinity
