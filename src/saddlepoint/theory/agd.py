"""Accelerated gradient descent: Theorem `agd`."""

from __future__ import annotations

import math

from saddlepoint.theory.counts import countable


def agd_momentum(kappa: float) -> float:
    """theta = (sqrt(kappa) - 1)/(sqrt(kappa) + 1)."""
    return (math.sqrt(kappa) - 1.0) / (math.sqrt(kappa) + 1.0)


def agd_bound(ell: float, mu: float, T: int, start: float) -> float:
    """Theorem `agd`: phi(x_T) - phi(x*) is at most this, where start = |x_0 - x*|^2."""
    return 0.5 * (ell + mu) * start * math.exp(-T / math.sqrt(ell / mu))


def agd_steps(kappa: float, reduction: float) -> int:
    """The T of Theorem `agd` for which exp(-T/sqrt(kappa)) <= 1/reduction."""
    return max(1, math.floor(countable(math.sqrt(kappa) * math.log(max(reduction, 1.0)))) + 1)


def step_gap(ell: float, mu: float, gradient: float) -> float:
    """phi(x - p/ell) - min phi is at most this, for a gradient p at x of norm ``gradient``.

    Strong convexity gives phi(x) - min phi <= |p|^2/(2 mu), and the step gains |p|^2/(2 ell). So AGD, which takes
    exactly this step, can stop with a proof and without another gradient. With a simple term the same holds for
    p = ell (x - x+), where x+ is the proximal step: for every u, phi(x+) <= phi(u) + <p, x - u> - mu/2 |x - u|^2
    - |p|^2/(2 ell).
    """
    return 0.5 * gradient * gradient * (1.0 / mu - 1.0 / ell)


def agd_proof_steps(kappa: float, reduction: float) -> int:
    """AGD steps within which ``step_gap`` is sure to fall by ``reduction`` from its value at the start.

    Where |p_0| is the gradient at x_0, |x_0 - x*| <= |p_0|/mu, and the gradient at the extrapolated point is at most
    3 ell max(|x_{T-1} - x*|, |x_{T-2} - x*|), which Theorem `agd` bounds. With a simple term p is at most twice that,
    so that the reduction is to be four times as large.
    """
    return agd_steps(kappa, max(reduction, 1.0) * 9.0 * kappa * kappa * (kappa + 1.0)) + 2
