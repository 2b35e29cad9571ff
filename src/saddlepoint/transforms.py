"""The same problem in other coordinates: rescaled, with the players swapped, or anchored.

A transform returns a ``View``: the new problem and the way between its variables and the old ones. It wraps the oracle
and never looks inside, so a counted problem stays counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from saddlepoint.arrays import Space
from saddlepoint.coupling import Coupling, Norm
from saddlepoint.functions.smooth import anchored as anchored_function
from saddlepoint.functions.smooth import stretched
from saddlepoint.problem import Saddle
from saddlepoint.vectors import Array


@dataclass(frozen=True)
class View:
    """A problem in new variables (u, v), where x = a u and y = b v, or x = a v and y = b u if swapped."""

    problem: Saddle
    a: float = 1.0
    b: float = 1.0
    swapped: bool = False

    def to(self, x: Array, y: Array) -> tuple[Array, Array]:
        """From the old variables to the new."""
        u, v = _times(1.0 / self.a, x), _times(1.0 / self.b, y)
        return (v, u) if self.swapped else (u, v)

    def back(self, u: Array, v: Array) -> tuple[Array, Array]:
        """From the new variables to the old."""
        x, y = (v, u) if self.swapped else (u, v)
        return _times(self.a, x), _times(self.b, y)


def rescaled(f: Saddle, a: float, b: float) -> View:
    """f(a u, b v)."""
    if a == 1.0 and b == 1.0:
        return View(f)
    return View(Saddle.of(stretched(f.g, a), stretched(f.h, b), scaled_coupling(f.A, a * b), f.space), a, b)


def swapped(f: Saddle) -> View:
    """The other player's problem, min_y max_x h(y) + <y, -A' x> - g(x): the same saddle point."""
    return View(Saddle.of(f.h, f.g, scaled_coupling(f.A.T, -1.0), f.space), swapped=True)


def anchored(f: Saddle, beta: float, centre: Array) -> Saddle:
    """f(x, y) + beta/2 |x - centre|^2 (the variables stay the same)."""
    return f if beta == 0.0 else Saddle.of(anchored_function(f.g, beta, centre), f.h, f.A, f.space)


def equal_smoothness(f: Saddle) -> View:
    """The paper's rescaling to L_x = L_y: f(x, sqrt(L_x/L_y) y)."""
    return rescaled(f, 1.0, (f.L_x / f.L_y) ** 0.5)


def equal_smoothness_keeping_norm(f: Saddle) -> View:
    """The appendix's rescaling to L_x = L_y: f((L_y/L_x)^(1/4) x, (L_x/L_y)^(1/4) y), which keeps |A|."""
    return rescaled(f, (f.L_y / f.L_x) ** 0.25, (f.L_x / f.L_y) ** 0.25)


def balanced(f: Saddle) -> View:
    """The rescaling to L_x mu_x = L_y mu_y that keeps |A|.

    With kappa_x = kappa_y it is the appendix's, and L_x = L_y, mu_x = mu_y. Otherwise both functions are
    L-smooth and mu-strongly convex for L = max(L_x, L_y), mu = min(mu_x, mu_y) with L/mu = max(kappa_x, kappa_y),
    the smallest ratio that any rescaling reaches, and |A|/sqrt(L mu) is the smallest too.
    """
    ratio = (f.L_y / f.L_x) ** 0.125 * (f.mu_y / f.mu_x) ** 0.125
    return rescaled(f, ratio, 1.0 / ratio)


def unit_strength(f: Saddle) -> View:
    """The rescaling to mu_x = mu_y = 1; then L_x = kappa_x, L_y = kappa_y and |A| is the coupling condition number."""
    return rescaled(f, 1.0 / f.mu_x**0.5, 1.0 / f.mu_y**0.5)


def smaller_mu_first(f: Saddle) -> View:
    """Catalyst's form: L_x = L_y and mu_x <= mu_y, by rescaling and, if need be, swapping the players."""
    view = equal_smoothness_keeping_norm(f)
    if f.kappa_x >= f.kappa_y:
        return view
    return View(swapped(view.problem).problem, view.a, view.b, swapped=True)


class ScaledCoupling(Coupling):
    """c A."""

    def __init__(self, A: Coupling, c: float) -> None:
        self.A, self.c = A, c
        self.shape, self.dtype, self.fused = A.shape, A.dtype, A.fused

    @property
    def space(self) -> Space:
        """That of A."""
        return self.A.space

    def mul(self, y: Array) -> Array:
        """c A y."""
        return self.c * self.A.mul(y)

    def tmul(self, x: Array) -> Array:
        """c A' x."""
        return self.c * self.A.tmul(x)

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(c A y, c A' x)."""
        Ay, Atx = self.A.both(x, y)
        return self.c * Ay, self.c * Atx

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, c A'(s t + e)) with t = c A y."""
        t, u = self.A.through(y, s * self.c * self.c, None if e is None else self.c * e)
        return self.c * t, u

    def resolvent(self, p: Array, q: Array, a: float) -> tuple[Array, Array]:
        """That of A with the step c a."""
        return self.A.resolvent(p, q, self.c * a)

    def normal_solver(self, a: float) -> Callable[[Array], Array]:
        """That of A with the step c a, so that one factorisation serves every view of A."""
        return self.A.normal_solver(self.c * a)

    def matrix(self) -> Any:
        """c A."""
        return self.c * self.A.matrix()

    def gram(self) -> Any:
        """c^2 A'A."""
        return self.c * self.c * self.A.gram()

    def _transpose(self) -> Coupling:
        return ScaledCoupling(self.A.T, self.c)

    @property
    def norm_estimate(self) -> Norm:
        """That of A, scaled."""
        n, c = self.A.norm_estimate, abs(self.c)
        return Norm(c * n.lower, c * n.upper, n.failure, n.products)


def scaled_coupling(A: Coupling, c: float) -> Coupling:
    """c A, with scalings of scalings folded into one."""
    if isinstance(A, ScaledCoupling):
        return scaled_coupling(A.A, A.c * c)
    return A if c == 1.0 else ScaledCoupling(A, c)


def _times(c: float, x: Array) -> Array:
    return x if c == 1.0 else c * x
