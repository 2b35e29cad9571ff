r"""Accelerated gradient descent (Algorithm AGD), the inner solver of DIPPA and AIPFB.

Problem:    min phi, where phi is ell-smooth and mu-strongly convex, kappa = ell/mu.
Recursion:  x_k  = xt_{k-1} - grad phi(xt_{k-1})/ell
            xt_k = x_k + theta (x_k - x_{k-1}),   theta = (sqrt(kappa) - 1)/(sqrt(kappa) + 1).
            If phi has a simple term p, x_k is prox_{p/ell} of the point above, and the first step has no momentum.
Guarantee:  phi(x_T) - min phi <= (ell + mu)/2 |x_0 - x*|^2 exp(-T/sqrt(kappa))   (Theorem `agd`).
Reference:  Y. Nesterov, Lectures on Convex Optimization, Springer 2018, section 2.2.

It minimises one function, so it is not a saddle method and has no entry in the register.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.theory.agd import agd_momentum, agd_proof_steps, step_gap


class AGDState(NamedTuple):
    """The point x_k, the extrapolated point, and the last gradient."""

    x: Array
    xt: Array
    p: Array  # the gradient, or ell (xt - x), at the previous extrapolated point; zero before the first step


@dataclass(frozen=True)
class AGD:
    """Nesterov's method with constant momentum."""

    def init(self, phi: Smooth, x: Array) -> AGDState:
        """The state at the start x."""
        return AGDState(x, x, 0.0 * x)

    def step(self, phi: Smooth, s: AGDState) -> AGDState:
        """The state after one step, which costs one gradient."""
        theta = agd_momentum(phi.L / phi.mu)
        p = phi.grad(s.xt)
        x = phi.simple_prox(s.xt - (1.0 / phi.L) * p, 1.0 / phi.L)
        if phi.simple is not None:
            p = phi.L * (s.xt - x)
        return AGDState(x, x + theta * (x - s.x), p)


def minimise(phi: Smooth, x: Array, *, steps: int | None = None, gap: float = 0.0) -> Array:
    """Run AGD from x for ``steps`` steps, or until phi(x) - min phi <= gap is proven, and return the last point.

    The proof costs no gradient (see ``step_gap``). If rounding errors prevent it, the run ends after the number of
    steps that is sufficient in exact arithmetic. With a simple term there is one step more, before the others, because
    Theorem `agd` bounds phi(x_0) - min phi by |x_0 - x*|^2: a proximal gradient step makes that true.
    """
    agd = AGD()
    s = agd.init(phi, x)
    most = 1 if steps is None else steps
    k = 0
    if phi.simple is not None:
        s = agd.step(phi, s)
        proven = step_gap(phi.L, phi.mu, norm(s.p))
        if steps is None:
            if proven <= gap or gap == 0.0:
                return s.x
            most, k = agd_proof_steps(phi.L / phi.mu, 4.0 * proven / gap), 1  # 4: see ``agd_proof_steps``
        s = agd.init(phi, s.x)
    while k < most:
        s = agd.step(phi, s)
        k += 1
        if steps is None:
            proven = step_gap(phi.L, phi.mu, norm(s.p))
            if proven <= gap:
                break
            if k == 1:
                most = agd_proof_steps(phi.L / phi.mu, proven / gap) if gap > 0.0 else 1
    return s.x
