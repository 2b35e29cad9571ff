"""The double inexact proximal point algorithm: Theorem `dippa-out`, Lemma `dippa:inner`, Theorem `dippa:0`.

kappa = L/mu and nu = |A|/sqrt(L mu) throughout; C_0 bounds |x_0 - x*|^2 + |y_0 - y*|^2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.theory.agd import agd_steps
from saddlepoint.theory.apfb import apfb_steps
from saddlepoint.theory.counts import countable


def dippa_rho(kappa: float) -> float:
    """rho = 1/(2 sqrt(kappa))."""
    return 0.5 / math.sqrt(kappa)


def dippa_start(kappa: float, nu: float, terms: bool = False) -> float:
    """The factor of C_0 in the bound on a_1 = |z_1 - z*|^2 + |w_1 - w*|^2: 1 + |A|^2/(L mu).

    With simple terms z_1 = x_0 + alpha grad g(x_0), because the subgradients at the solution are not known. It differs
    from z* = x* + alpha grad g(x*) by at most 1 + alpha L = 1 + sqrt(kappa) times |x_0 - x*|.
    """
    return (1.0 + math.sqrt(kappa)) ** 2 if terms else 1.0 + nu * nu


def dippa_C(kappa: float, nu: float, terms: bool = False) -> float:
    """C = 4 sqrt(kappa) + 1 + |A|^2/(L mu); with simple terms, 4 sqrt(kappa) + (1 + sqrt(kappa))^2."""
    return 4.0 * math.sqrt(kappa) + dippa_start(kappa, nu, terms)


def dippa_level(k: int, kappa: float, C0: float) -> float:
    """C_0 (1 - rho)^(k+1), the inexactness that the paper allows in step k.

    With eps_k and delta_k at a level c, the proof of Theorem `dippa-out` shows for a_k = |z_k - z*|^2 + |w_k - w*|^2

        a_{k+1} <= (1 - 2 rho) a_k + 2 c.
    """
    return C0 * (1.0 - dippa_rho(kappa)) ** (k + 1)


def dippa_eps(level: float, mu: float) -> float:
    """eps_k = level mu/16: the inner loop for G_k (and H_k) may end this far above the minimum."""
    return level * mu / 16.0


def dippa_delta(level: float, kappa: float, nu: float) -> float:
    """delta_k = level L mu/(2 (1 + sqrt(kappa))(L mu + |A|^2)), for the coupling subproblem.

    It is the squared distance to the saddle point of the subproblem at which its inner loop may end.
    """
    return level / (2.0 * (1.0 + math.sqrt(kappa)) * (1.0 + nu * nu))


def dippa_residual(level: float, kappa: float) -> float:
    """The squared residual at which the inner loop for the coupling subproblem may end.

    The proof of Theorem `dippa-out` uses delta_k only through |M(u - u_k*)|^2 <= (1 + nu^2) delta_k with
    M = [[I, alpha A], [-alpha A', I]], and M(u - u_k*) is the residual. So the residual may be larger than
    |M^-1| <= 1 alone would allow, by the factor 2 (1 + nu^2); and it can be computed.
    """
    return level / (1.0 + math.sqrt(kappa))


def dippa_inner_error(level: float, kappa: float) -> float:
    """A bound on the change of (z_{k+1}, w_{k+1}) that inner errors at this level can cause.

    The errors 2 |xt - argmin G_k|, and those for H_k, pass through a reflection, and the residual through an isometry;
    with simple terms, both through a map that does not lengthen distances.
    """
    prox = 4.0 * 2.0 * dippa_eps(level, 1.0) / (1.0 + math.sqrt(kappa))  # 4 |xt - argmin G_k|^2, times 1/mu for mu
    return math.sqrt(2.0 * prox) + math.sqrt(dippa_residual(level, kappa))


def dippa_adaptive_level(bound: float, kappa: float) -> float:
    """rho/2 of a bound on a_k: the most for which the recursion makes that bound fall by 1 - rho."""
    return 0.5 * dippa_rho(kappa) * bound


def dippa_first_level(moved: float, bound: float, kappa: float) -> float:
    """The adaptive level of the first step, whose length is about ``moved`` = alpha |F(x_0, y_0)|.

    At this level inner errors are at most as long as the step. Any level is allowed, since the bound on a_2 takes it
    into account. The bound on a_1 alone, a worst case over all problems, would allow errors that are longer than the
    first steps.
    """
    return min(dippa_adaptive_level(bound, kappa), 0.25 * (1.0 + math.sqrt(kappa)) * moved * moved)


def dippa_next_bound(bound: float, level: float, moved: float, kappa: float) -> float:
    """A bound on a_{k+1}, given one on a_k, the level of step k, and |(z_{k+1} - z_k, w_{k+1} - w_k)|.

    It is the smaller of two bounds: the recursion above, and what the contraction of exact steps by the factor
    r = (sqrt(kappa) - 1)/(sqrt(kappa) + 1) says, sqrt(a_k) <= (moved + error)/(1 - r) and so
    sqrt(a_{k+1}) <= r (moved + error)/(1 - r) + error, where r/(1 - r) = (sqrt(kappa) - 1)/2.
    """
    error = dippa_inner_error(level, kappa)
    seen = 0.5 * (math.sqrt(kappa) - 1.0) * (moved + error) + error
    return min((1.0 - 2.0 * dippa_rho(kappa)) * bound + 2.0 * level, seen * seen)


def dippa_bound(kappa: float, nu: float, K: int, C0: float, terms: bool = False) -> float:
    """Theorem `dippa-out`, K >= 1: |x_K - x*|^2 + |y_K - y*|^2 is at most this, with or without simple terms."""
    return dippa_C(kappa, nu, terms) * (1.0 - dippa_rho(kappa)) ** K * C0


def dippa_K(kappa: float, nu: float, C0: float, eps: float) -> int:
    """The outer steps after which |x - x*| + |y - y*| <= eps (Definition 2) by Theorem `dippa-out`.

    The theorem bounds the sum of squares, which must be at most eps^2/2.
    """
    reduction = 2.0 * dippa_C(kappa, nu) * C0 / eps / eps
    return max(1, math.floor(countable(2.0 * math.sqrt(kappa) * math.log(max(reduction, 1.0)))) + 1)


def dippa_K1(kappa: float, nu: float, terms: bool = False) -> int:
    """Lemma `dippa:inner`: the AGD steps that bring G_k (or H_k) within eps_k of its minimum.

    The lemma assumes |z_1 - z*|^2 + |w_1 - w*|^2 <= C (1 - rho) C_0, but (1 + nu^2) C_0 is all that holds and can be
    larger when nu^2 > 8 kappa; hence 1 - rho is squared here.
    """
    rho = dippa_rho(kappa)
    root = math.sqrt(kappa) + 1.0
    reduction = 32.0 * dippa_C(kappa, nu, terms) * root * root / (1.0 - rho) ** 2
    return agd_steps(math.sqrt(kappa), reduction)


def dippa_K2(kappa: float, nu: float, terms: bool = False) -> int:
    """Lemma `dippa:inner`: the APFB steps that bring the coupling subproblem to delta_k.

    The count has the factor |A|/sqrt(L mu) of Theorem `apfb`, which the lemma's proof drops. With simple terms the
    squared residual is to be at most 2 (1 + nu^2) delta_k, and it is at most 64 nu^2 times the largest squared distance
    of the last three points (``proximal_apfb_steps``): 32 times the reduction, and two steps more.
    """
    rho = dippa_rho(kappa)
    reduction = 20.0 * dippa_C(kappa, nu, terms) * (1.0 + math.sqrt(kappa)) * (1.0 + nu * nu) / (1.0 - rho)
    return apfb_steps(nu, 32.0 * reduction) + 2 if terms else apfb_steps(nu, reduction)


def cg_steps(nu: float, reduction: float) -> int:
    """Conjugate gradient steps on I + alpha^2 A'A that shrink the residual by ``reduction``.

    From |r_t| <= 2 sqrt(cond) ((sqrt(cond) - 1)/(sqrt(cond) + 1))^t |r_0| with cond = 1 + nu^2.
    """
    root = math.hypot(1.0, nu)
    return max(1, math.ceil(countable(0.5 * (root + 1.0) * math.log(max(2.0 * root * reduction, 1.0)))))


def dippa_K2_cg(kappa: float, nu: float) -> int:
    """The counterpart of K2 for conjugate gradients: steps that always suffice, by the same start and target."""
    rho = dippa_rho(kappa)
    return cg_steps(nu, math.sqrt((1 + nu * nu) * 5 * dippa_C(kappa, nu) * (1 + math.sqrt(kappa))) / (1 - rho))


class DippaCalls(NamedTuple):
    """The most calls of each oracle that DIPPA makes, by its theorem."""

    grad_g: int
    grad_h: int
    A: int
    At: int


def dippa_calls(kappa: float, nu: float, C0: float, eps: float) -> DippaCalls:
    """Theorem `dippa:0` with its constants: K steps of K1 gradients of each function and K2 + 1 products each way."""
    K, K1, K2 = dippa_K(kappa, nu, C0, eps), dippa_K1(kappa, nu), dippa_K2(kappa, nu)
    return DippaCalls(K * K1, K * K1, K * (K2 + 1) + 1, K * (K2 + 1) + 1)
