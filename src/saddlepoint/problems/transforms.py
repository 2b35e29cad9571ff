"""The same problem in other coordinates: rescaled, with the players swapped, anchored, or in other units.

A transform returns a ``View``: the new problem, and the maps between its variables and the old ones. The
new problem calls the oracles of the old one and nothing else, so the calls of a metered problem are still counted.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from saddlepoint.ground.arrays import Array, is_array
from saddlepoint.ground.compensated import Sum
from saddlepoint.parts.coupling import Coupling, Norm
from saddlepoint.parts.coupling.equilibration import DiagonalCoupling
from saddlepoint.parts.coupling.forwarding import ForwardingCoupling
from saddlepoint.parts.coupling.low_precision import LowPrecisionCoupling
from saddlepoint.parts.functions.affine import affine
from saddlepoint.parts.functions.anchored import anchored as anchored_function
from saddlepoint.problems.saddle import Saddle


@dataclass(frozen=True)
class View:
    """A problem in new variables (u, v), where x = a u and y = b v, or x = a v and y = b u if swapped.

    a and b are numbers, or vectors with a number for each variable.
    """

    problem: Saddle
    a: Any = 1.0
    b: Any = 1.0
    swapped: bool = False

    def to(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The point (x, y) of the old variables in the new ones."""
        u, v = _times(1.0 / self.a, x), _times(1.0 / self.b, y)
        return (v, u) if self.swapped else (u, v)

    def back(self, u: Array, v: Array) -> tuple[Array, Array]:
        """The point (u, v) of the new variables in the old ones."""
        x, y = (v, u) if self.swapped else (u, v)
        return _times(self.a, x), _times(self.b, y)

    def then(self, further: View) -> View:
        """The view that applies this one, which must not swap the players, and then a view of its problem."""
        return View(further.problem, self.a * further.a, self.b * further.b, further.swapped)


def rescaled(f: Saddle, a: float, b: float) -> View:
    """The problem f(a u, b v)."""
    if a == 1.0 and b == 1.0:
        return View(f)
    return View(Saddle.of(affine(f.g, scale=a), affine(f.h, scale=b), scaled_coupling(f.A, a * b), f.space), a, b)


def diagonally_rescaled(f: Saddle, a: Array, b: Array, norm: Norm) -> View:
    """The problem f(a u, b v) with vectors a and b of positive numbers, and bounds on the norm of its coupling."""
    A = DiagonalCoupling(f.A, a, b, norm)
    return View(Saddle.of(affine(f.g, scale=a), affine(f.h, scale=b), A, f.space), a, b)


def swapped(f: Saddle) -> View:
    """The problem of the other player, min_y max_x h(y) + <y, -A' x> - g(x), which has the same saddle point."""
    return View(Saddle.of(f.h, f.g, scaled_coupling(f.A.T, -1.0), f.space), swapped=True)


def anchored(f: Saddle, beta: float, centre: Array) -> Saddle:
    """The problem f(x, y) + beta/2 |x - centre|^2, in the same variables."""
    return f if beta == 0.0 else Saddle.of(anchored_function(f.g, beta, centre), f.h, f.A, f.space)


def equal_smoothness(f: Saddle) -> View:
    """The paper's rescaling to L_x = L_y: f(x, sqrt(L_x/L_y) y)."""
    return rescaled(f, 1.0, (f.L_x / f.L_y) ** 0.5)


def equal_smoothness_keeping_norm(f: Saddle) -> View:
    """The appendix's rescaling to L_x = L_y: f((L_y/L_x)^(1/4) x, (L_x/L_y)^(1/4) y), which keeps |A|."""
    return rescaled(f, (f.L_y / f.L_x) ** 0.25, (f.L_x / f.L_y) ** 0.25)


def balanced(f: Saddle) -> View:
    """The rescaling to L_x mu_x = L_y mu_y that keeps |A|.

    With kappa_x = kappa_y it is the rescaling of the appendix, and L_x = L_y, mu_x = mu_y. Otherwise both functions are
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


class Units(NamedTuple):
    """Exponents of a change of units: x = 2^(a+t) u, y = 2^(b+t) v, and f in units of 2^(2t)."""

    a: int = 0
    b: int = 0
    t: int = 0


def safe_units(f: Saddle, x: float, y: float, Fx: float, Fy: float) -> Units:
    """Units in which neither the numbers of a run nor their squares leave the range of the arithmetic.

    The exponents are zero for a problem whose numbers are within the fifth root of the range of its dtype. Otherwise a
    and b make L_x and L_y equal, up to a factor of four, with mu, L and |A| around 1; and t makes the largest of |x|,
    |y|, |F| and |F|/L rather large, because they fall during a run.

    Args:
        f: the problem.
        x, y, Fx, Fy: norms of the start and of the field there.
    """
    most = math.frexp(f.space.largest)[1] // 5
    constants = [_bits(c) for c in (f.L_x, f.L_y, f.mu_x, f.mu_y, f.norm) if c > 0.0]  # without A = 0 and an unknown mu
    sizes = (x, y, Fx, Fy, Fx / f.L_x if f.L_x > 0.0 else 0.0, Fy / f.L_y if f.L_y > 0.0 else 0.0)
    largest = max((_bits(size) for size in sizes if size > 0.0), default=0)
    if max(map(abs, constants), default=0) <= most and abs(largest) <= most:
        return Units()
    Lx, Ly, limit = _smoothness_bits(f), _smoothness_bits(f, other=True), f.space.exponent
    others = [_bits(c) - L for c, L in ((f.mu_x, Lx), (f.mu_y, Ly), (f.norm, (Lx + Ly) // 2)) if c > 0.0]
    middle = (max(0, *others) + max(min(0, *others), -most)) // 2  # much smaller constants do not matter
    a, b = (min(max((-middle - L) // 2, -limit // 2), limit // 2) for L in (Lx, Ly))
    shifts = (-a, -b, a, b, -a, -b)
    largest = max((_bits(size) + shift for size, shift in zip(sizes, shifts, strict=True) if size > 0.0), default=0)
    room = limit - max(abs(a), abs(b))
    return Units(a, b, min(max(largest - most // 2, -room), room))


def in_units(f: Saddle, units: Units) -> View:
    """The problem 2^-2t f(2^(a+t) u, 2^(b+t) v). Multiplying by powers of two causes no rounding."""
    a, b, t = units
    if not any(units):
        return View(f)
    x, y = 2.0 ** (a + t), 2.0 ** (b + t)
    g, h = affine(f.g, scale=x, slope=2.0 ** (a - t)), affine(f.h, scale=y, slope=2.0 ** (b - t))
    return View(Saddle.of(g, h, UnitCoupling(f.A, units), f.space), x, y)


def _smoothness_bits(f: Saddle, other: bool = False) -> int:
    """The binary exponent of L_x, or of L_y; where that is 0, the one that goes with |A| and the other L."""
    own, opposite = (f.L_y, f.L_x) if other else (f.L_x, f.L_y)
    if own > 0.0:
        return _bits(own)
    norm = _bits(f.norm) if f.norm > 0.0 else 0
    return 2 * norm - _bits(opposite) if opposite > 0.0 else norm


def _bits(size: float) -> int:
    """The binary exponent of a positive number; for infinity, that of the largest finite number."""
    return math.frexp(min(size, sys.float_info.max))[1]


class ScaledCoupling(ForwardingCoupling):
    """The coupling c A."""

    def __init__(self, A: Coupling, c: float) -> None:
        super().__init__(A)
        self.c = c

    def mul(self, y: Array) -> Array:
        """The product c A y."""
        return self.c * self.A.mul(y)

    def tmul(self, x: Array) -> Array:
        """The product c A' x."""
        return self.c * self.A.tmul(x)

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The products (c A y, c A' x)."""
        Ay, Atx = self.A.both(x, y)
        return self.c * Ay, self.c * Atx

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """The pair (t, c A'(s t + e)) with t = c A y."""
        t, u = self.A.through(y, s * self.c * self.c, None if e is None else self.c * e)
        return self.c * t, u

    def resolvent(self, p: Array, q: Array, a: float) -> tuple[Array, Array]:
        """The resolvent of A with the step c a."""
        return self.A.resolvent(p, q, self.c * a)

    def normal_solver(self, a: float) -> Callable[[Array], Array]:
        """The solver of A with the step c a, so that all views of A share one factorisation."""
        return self.A.normal_solver(self.c * a)

    def matrix(self) -> Any:
        """The matrix c A."""
        return self.c * self.A.matrix()

    def gram(self) -> Any:
        """The matrix c^2 A'A."""
        return self.c * self.c * self.A.gram()

    def compensated_mul(self, y: Array) -> Sum | None:
        """None: certificates are taken in the problem's own variables."""
        return None

    def rounding_scale(self, y: Array) -> float:
        """The rounding scale of A times |c|."""
        return abs(self.c) * self.A.rounding_scale(y)

    def _transpose(self) -> Coupling:
        return ScaledCoupling(self.A.T, self.c)

    @property
    def norm_estimate(self) -> Norm:
        """The norm estimate of A times |c|."""
        n, c = self.A.norm_estimate, abs(self.c)
        return Norm(c * n.lower, c * n.upper, n.failure, n.products)


class UnitCoupling(ForwardingCoupling):
    """The coupling 2^(a+b) A. Its products are computed in the old units, in which they do not overflow."""

    def __init__(self, A: Coupling, units: Units) -> None:
        super().__init__(A)
        self.units, self.fused = units, False
        a, b, t = units
        self.c = 2.0 ** (a + b)
        self.x, self.y, self.Fx, self.Fy = (2.0**e for e in (a + t, b + t, a - t, b - t))

    def around(self, A: Coupling) -> Coupling:
        """The same around another coupling; for a scaled copy in a lower precision, one that stays in these units."""
        if isinstance(A, LowPrecisionCoupling) and A.scale != 1.0:
            return scaled_coupling(A.unscaled(), self.c * A.scale)
        return super().around(A)

    def mul(self, y: Array) -> Array:
        """The product 2^(a+b) A y."""
        return self.Fx * self.A.mul(self.y * y)

    def tmul(self, x: Array) -> Array:
        """The product 2^(a+b) A' x."""
        return self.Fy * self.A.tmul(self.x * x)

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Both products at once."""
        Ay, Atx = self.A.both(self.x * x, self.y * y)
        return self.Fx * Ay, self.Fy * Atx

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """The same as for every coupling, by two products, each in its own units."""
        return Coupling.through(self, y, s, e)

    def normal_solver(self, a: float) -> Callable[[Array], Array]:
        """The solver of A with the step 2^(a+b) a, unless that overflows."""
        step = self.c * a
        return self.A.normal_solver(step) if math.isfinite(step) else super().normal_solver(a)

    def matrix(self) -> Any:
        """The matrix 2^(a+b) A."""
        return self.c * self.A.matrix()

    def gram(self) -> Any:
        """The matrix 2^(2a+2b) A'A."""
        matrix = self.matrix()
        return matrix.T @ matrix

    def compensated_mul(self, y: Array) -> Sum | None:
        """None: certificates are taken in the problem's own variables."""
        return None

    def rounding_scale(self, y: Array) -> float:
        """The rounding scale of A times 2^(a+b)."""
        return self.c * self.A.rounding_scale(y)

    def _transpose(self) -> Coupling:
        a, b, t = self.units
        return UnitCoupling(self.A.T, Units(b, a, t))

    @property
    def norm_estimate(self) -> Norm:
        """The norm estimate of A times 2^(a+b)."""
        n = self.A.norm_estimate
        return Norm(self.c * n.lower, self.c * n.upper, n.failure, n.products)


def scaled_coupling(A: Coupling, c: float) -> Coupling:
    """The coupling c A; the scaling of a scaled coupling is combined with the first one."""
    if isinstance(A, ScaledCoupling):
        return scaled_coupling(A.A, A.c * c)
    return A if c == 1.0 else ScaledCoupling(A, c)


def _times(c: Any, x: Array) -> Array:
    return x if not is_array(c) and c == 1.0 else c * x
