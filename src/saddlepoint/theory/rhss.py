"""Recursive Hermitian/skew-Hermitian splitting of (H + S) z = r, where mu_x = mu_y = 1 (Wang and Li 2020).

H = d I + e G, and G holds the Hessians of g and h, with eigenvalues in [1, kappa]; so m = d + e is the smallest
eigenvalue of H. S = [[0, A], [-A', 0]] and c = |S| is the coupling condition number. A step is

    z_1 = (eta P + H)^-1 r,   z_2 = (eta P + S)^-1 (r - (H + S) z_1),   z = z_1 + z_2,   P = m I + beta H,

or z = H^-1 r where c <= m/2: a step of Richardson, for which eta = beta = 0 here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.theory.counts import countable

SLACK, PROVEN = 0.5, 0.125  # shares of 1 - contraction: what the solves within a step are granted at first, and at last
SMALLEST = 1e-17  # stands for a smaller share, and for a smaller gain: they are lost in rounding


class HssParameters(NamedTuple):
    """eta and beta."""

    eta: float
    beta: float


def rhss_parameters(k: int, m: float, c: float) -> HssParameters:
    """beta = t^-2 and eta = t, t = (c/m)^(1/k), with k levels to go, but eta = 2 t if k = 1; zero where c <= m/2.

    Then eta P + S is a system of the same kind, but its c/m is t^(k-1) at most, and 1/2 at most if k = 1.
    """
    if c <= 0.5 * m:
        return HssParameters(0.0, 0.0)
    t = max(c / m, 1.0) ** (1.0 / k)
    return HssParameters(t if k > 1 else 2.0 * t, t**-2.0)


def rhss_contraction(k: int, d: float, e: float, c: float, kappa: float) -> float:
    """What an exact step leaves of |P^1/2 z_1| at most: max |eta - lam|/(eta + lam) over the spectrum of P^-1 H.

    That is h/(m + beta h) for h from m to d + e kappa, and the maximum is at an end. A step of Richardson leaves c/m of
    |H^1/2 z|.
    """
    m = d + e
    eta, beta = rhss_parameters(k, m, c)
    if eta == 0.0:
        return c / m
    ends = (1.0 / (beta + m / h) for h in (m, d + e * kappa))
    return max(abs(eta - lam) / (eta + lam) for lam in ends)


class HssGoal(NamedTuple):
    """How accurate the solves within a step have to be, given what the first one has found.

    Let q_1 and q_2 be the residuals that they leave. In the norm |P^-1/2 q|/eta they add at most 2 sigma |q_1| and
    (1 + sigma) |q_2| to what the step leaves, where sigma is its contraction; so ``tol`` |P^1/2 z_1| is asked of both.
    For a step of Richardson it is tol |H^1/2 z| in the norm |H^-1/2 q|.
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
    """tol = slack (1 - sigma), but not below what arithmetic can tell apart."""
    tol = max(slack * (1.0 - rhss_contraction(k, d, e, c, kappa)), SMALLEST)
    return HssGoal(d + e, *rhss_parameters(k, d + e, c), tol)


def rhss_inexact_contraction(contraction: float, tol: float) -> float:
    """sigma + (1 + 3 sigma) tol/(1 - tol): what a step with inexact solves leaves at most.

    That is (1 + sigma)/2 at most for the ``PROVEN`` share. A step of Richardson leaves (sigma + tol)/(1 - tol), less.
    """
    return contraction + (1.0 + 3.0 * contraction) * tol / (1.0 - tol)


def rhss_steps(contraction: float, kappa: float, reduction: float) -> int:
    """Steps, each of which leaves (1 + sigma)/2 at most, that are sure to shrink the residual by ``reduction``.

    (1 + kappa)^2 allows for the change between its norm and the one in which steps are contractions.
    """
    gain = max(-math.log(0.5 * (1.0 + contraction)), SMALLEST)
    return max(1, math.ceil(countable((2.0 * math.log1p(kappa) + math.log(max(reduction, 1.0))) / gain)))
