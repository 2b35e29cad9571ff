"""Recursive Hermitian/skew-Hermitian splitting of (H + S) z = r, where mu_x = mu_y = 1 (Wang and Li 2020).

H = d I + e G, and G holds the Hessians of g and h, with eigenvalues in [1, kappa]; so m = d + e is the smallest
eigenvalue of H. S = [[0, A], [-A', 0]] and c = |S| is the coupling condition number. A step is

    z_1 = (eta P + H)^-1 r,   z_2 = (eta P + S)^-1 (r - (H + S) z_1),   z = z_1 + z_2,   P = m I + beta H,

or, if c <= m/2, the Richardson step z = H^-1 r, for which eta = beta = 0 in this module.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.theory.counts import countable

SLACK = 0.5  # first tolerance of the solves within a step, in units of 1 - contraction
PROVEN = 0.125  # tolerance with which the contraction of a step is proven, in units of 1 - contraction; the least one
SMALLEST = 1e-17  # least tolerance, and least gain of a step: smaller ones are lost in rounding


class HssParameters(NamedTuple):
    """The parameters eta and beta of a step."""

    eta: float
    beta: float


def rhss_parameters(k: int, m: float, c: float) -> HssParameters:
    """beta = t^-2 and eta = t, t = (c/m)^(1/k), if k levels are left, but eta = 2 t if k = 1; zero where c <= m/2.

    Then eta P + S is a system of the same kind, but its c/m is t^(k-1) at most, and 1/2 at most if k = 1.
    """
    if c <= 0.5 * m:
        return HssParameters(0.0, 0.0)
    t = max(c / m, 1.0) ** (1.0 / k)
    return HssParameters(t if k > 1 else 2.0 * t, t**-2.0)


def rhss_contraction(k: int, d: float, e: float, c: float, kappa: float) -> float:
    """The factor on |P^1/2 z_1| of an exact step, at most: max |eta - lam|/(eta + lam) over the spectrum of P^-1 H.

    The spectrum consists of h/(m + beta h) for h from m to d + e kappa, and the maximum is at an end. A Richardson step
    multiplies |H^1/2 z| by at most c/m.
    """
    m = d + e
    eta, beta = rhss_parameters(k, m, c)
    if eta == 0.0:
        return c / m
    ends = (1.0 / (beta + m / h) for h in (m, d + e * kappa))
    return max(abs(eta - lam) / (eta + lam) for lam in ends)


class HssGoal(NamedTuple):
    """How accurate the solves within a step have to be, given what the first one has found.

    Let q_1 and q_2 be the residuals of the two solves. In the norm |P^-1/2 q|/eta they add at most 2 sigma |q_1| and
    (1 + sigma) |q_2| to the error after the step, where sigma is its contraction; so both must be at most
    ``tol`` |P^1/2 z_1|. For a Richardson step the residual must be at most tol |H^1/2 z| in the norm |H^-1/2 q|.
    """

    m: float
    eta: float
    beta: float
    tol: float

    def weight(self, zz: float, zr: float) -> float:
        """|P^1/2 z|, or |H^1/2 z|, from |z|^2 and <z, r>: conjugate gradients keep q_1 orthogonal to z."""
        if self.eta == 0.0:
            return math.sqrt(max(zr, 0.0))
        return math.sqrt(max(self.m * zz + self.beta * zr, 0.0) / (1.0 + self.eta * self.beta))

    def size(self, zz: float, zr: float) -> float:
        """The norm of a residual that is small enough."""
        least = self.m if self.eta == 0.0 else self.eta * self.eta * self.m * (1.0 + self.beta)
        return self.tol * math.sqrt(least) * self.weight(zz, zr)


def rhss_goal(k: int, d: float, e: float, c: float, kappa: float, slack: float) -> HssGoal:
    """The goal with tol = slack (1 - sigma), but at least ``SMALLEST``."""
    tol = max(slack * (1.0 - rhss_contraction(k, d, e, c, kappa)), SMALLEST)
    return HssGoal(d + e, *rhss_parameters(k, d + e, c), tol)


def rhss_inexact_contraction(contraction: float, tol: float) -> float:
    """sigma + (1 + 3 sigma) tol/(1 - tol), a bound on the contraction of a step with inexact solves.

    It is at most (1 + sigma)/2 for tol = PROVEN (1 - sigma). For a Richardson step (sigma + tol)/(1 - tol), which is
    less, is a bound.
    """
    return contraction + (1.0 + 3.0 * contraction) * tol / (1.0 - tol)


def rhss_steps(contraction: float, kappa: float, reduction: float) -> int:
    """Steps with a contraction of at most (1 + sigma)/2 that are sure to shrink the residual by ``reduction``.

    The factor (1 + kappa)^2 allows for the change from the norm of the residual to the one in which steps contract.
    """
    gain = max(-math.log(0.5 * (1.0 + contraction)), SMALLEST)
    return max(1, math.ceil(countable((2.0 * math.log1p(kappa) + math.log(max(reduction, 1.0))) / gain)))
