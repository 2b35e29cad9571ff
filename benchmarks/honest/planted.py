"""Problems with simple terms whose saddle point is planted, that is, chosen first.

A point (x, y) is drawn together with subgradients s and r of the terms there. The linear terms that make it the saddle
point are computed in decimal arithmetic and rounded to floats. Where nothing had to be rounded, the saddle point is
known exactly; elsewhere what was rounded away is a residual, which bounds how far the true one is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.random import Generator

import saddlepoint as sp

from . import functions, sums
from .draws import Case, between, function, matrix, sizes
from .exact import NoSolutionError
from .functions import NoValueError, Part
from .numbers import Array, Decimals, decimals, length
from .simple import Term, no_term, term

STEPS = 12  # prox steps towards a best response
FAR = Decimal("1e20")  # length of a prox step for a linear function, relative to the solution
EPS = Decimal(2.0**-52)
ALLOWED = 64  # units of rounding by which the point that a gap is proven for may be from the stored one


@dataclass
class Planted:
    """A saddle problem with simple terms in decimal arithmetic, whose saddle point is known up to ``radius``.

    It has the methods of ``Exact`` that the campaign asks for.
    """

    g: Part
    h: Part
    A: Decimals
    p: Term
    q: Term
    radius: Decimal
    eps: Decimal = EPS
    gaps: bool = True  # whether duality gaps of points within rounding errors are known
    further_starts: Callable[[], Iterator[tuple[Array, Array]]] = field(default=lambda: iter(()))

    def __post_init__(self) -> None:
        m, n = self.A.shape
        self.counts_x, self.counts_y = np.ones(m, dtype=int), np.ones(n, dtype=int)
        self.dense = self.A.astype(float)
        self.solution = decimals(self.p.x), decimals(self.q.x), self.radius

    def size(self) -> float:
        """|x*| + |y*|, or one if that is zero."""
        return float(length(self.solution[0]) + length(self.solution[1])) or 1.0

    def errors(self, x: Array, y: Array) -> tuple[Decimal, Decimal]:
        """Lower bounds on |x - x*| and |y - y*|."""
        xs, ys, radius = self.solution
        pairs = ((x, xs, self.g.smooth.mu), (y, ys, self.h.smooth.mu))
        # Without strong convexity the solution need not be the planted one; no distance is claimed then.
        dx, dy = (max(length(decimals(v) - s) - radius, Decimal(0)) if mu > 0 else Decimal(0) for v, s, mu in pairs)
        return dx, dy

    def gap(self, x: Array, y: Array) -> Decimal | None:
        """A lower bound on the duality gap at every point of the domain that is within rounding errors of (x, y)."""
        if not self.gaps:
            return None
        x, y = self.p.project(decimals(x)), self.q.project(decimals(y))
        slope_x, slope_y = self.A @ y, -(self.A.T @ x)
        try:
            least_x, best_x = self._least(self.g, self.p, slope_x, self.solution[0])
            least_y, best_y = self._least(self.h, self.q, slope_y, self.solution[1])
            of_x = self._whole(self.g, self.p, x) - least_x
            of_y = self._whole(self.h, self.q, y) - least_y
        except NoValueError:
            return None
        moved = self._moved(self.p, self.g, x, slope_x, self.A @ best_y)
        moved += self._moved(self.q, self.h, y, slope_y, self.A.T @ best_x)
        return Decimal(of_x + of_y - moved - Decimal("1e-48") * (abs(of_x) + abs(of_y)))

    def _moved(self, simple: Term, part: Part, x: Decimals, one: Decimals, two: Decimals) -> Decimal:
        """A bound on the change of the gap between points within rounding errors of x."""
        if simple.simple is None:
            return Decimal(0)
        slope = length(part.grad(x)) + length(one) + length(two) + length(decimals(simple.s))
        return ALLOWED * self.eps * Decimal(len(x)).sqrt() * length(x) * slope

    @staticmethod
    def _whole(part: Part, simple: Term, x: Decimals) -> Decimal:
        return part.value(x) + simple.value(x)

    def _least(self, part: Part, simple: Term, c: Decimals, x: Decimals) -> tuple[Decimal, Decimals]:
        """An upper bound on min part + term + <c, .>, by prox steps from x, and the point where it is taken."""
        L, most = Decimal(part.L), max(map(abs, part.grad(x) + c))
        step = 1 / L if L > 0 else FAR * (max(map(abs, x)) or 1) / (most or 1)
        best, at = self._whole(part, simple, x) + c @ x, x
        for _ in range(STEPS if L > 0 else 1):
            x = simple.prox(x - step * (part.grad(x) + c), step)
            value = self._whole(part, simple, x) + c @ x
            if value < best:
                best, at = value, x
        return best, at


def linear(c: Array) -> Part:
    """<c, .>."""
    return functions.Quadratic(np.zeros(len(c)), c, sp.Quadratic(0.0, c))


def plant(g: Part, h: Part, A: Array, p: Term, q: Term, own: float = 0.0, rng: Any = None, **more: Any) -> Case:
    """The case of these functions and terms, after linear terms are added so that (p.x, q.x) solves it.

    Args:
        own: probability that the functions are given as gradients alone.
    """
    B, x, y, s, r = decimals(A), decimals(p.x), decimals(q.x), decimals(p.s), decimals(q.s)
    rx, ry = g.grad(x) + B @ y + s, h.grad(y) - B.T @ x + r
    b, c = -rx.astype(float), -ry.astype(float)
    if not (np.isfinite(b).all() and np.isfinite(c).all()):
        raise NoSolutionError
    ex, ey = length(rx + decimals(b)), length(ry + decimals(c))
    mu_x, mu_y = Decimal(g.mu), Decimal(h.mu)
    radius = Decimal(0)
    if ex or ey:
        if not (mu_x > 0 and mu_y > 0):
            raise NoSolutionError
        radius = ((1 / mu_x + 1 / mu_y) * (ex * ex / mu_x + ey * ey / mu_y)).sqrt()
    parts: list[Part] = [sums.Total([1.0, 1.0], [f, linear(v)]) for f, v in ((g, b), (h, c))]
    if rng is not None:
        parts = [f.own() if rng.random() < own else f for f in parts]
    exact = Planted(parts[0], parts[1], B, p, q, radius)
    f = sp.Saddle(with_term(parts[0].smooth, p), with_term(parts[1].smooth, q), A)
    return Case(f, exact, rows=A, **more)  # type: ignore[arg-type]


def with_term(f: sp.Smooth, p: Term) -> sp.Smooth:
    """The function and its term."""
    return f if p.simple is None else f + p.simple


def power(rng: Generator, most: int) -> float:
    """A power of two."""
    return math.ldexp(1.0, int(rng.integers(-most, most + 1)))


def exact_quadratic(rng: Generator, n: int, u: float, w: float) -> Part:
    """A diagonal of powers of two, in units in which x has the size u and gradients have the size w."""
    P = (w / u) * rng.choice([1.0, 2.0, 4.0, 8.0], n)
    return functions.Quadratic(P, np.zeros(n))


def both_terms(rng: Generator, m: int, n: int, units: tuple[float, ...], bounded: bool = False) -> tuple[Term, Term]:
    """A term for x, a term for y, or both."""
    u, v, w, z = units
    pick = rng.random()
    p = term(rng, m, u, w, bounded) if pick < 0.8 or bounded else no_term(rng, m, u)
    q = term(rng, n, v, z, bounded) if pick > 0.2 or bounded else no_term(rng, n, v)
    return p, q


def units(rng: Generator, far: bool) -> tuple[float, float, float, float]:
    """Powers of two: sizes of x, of y, and of gradients with respect to them; those of the coupling fit."""
    most = 150 if far else 6
    u, v, e = power(rng, most), power(rng, most), power(rng, 60 if far else 3)
    return u, v, e / u, e / v  # values have the size e on both sides


def exact_case(rng: Generator, far: bool = False) -> Case:
    """Quadratic functions, whole numbers in A, and any terms: the saddle point is exact."""
    m, n = sizes(rng)
    u, v, w, z = units(rng, far)
    p, q = both_terms(rng, m, n, (u, v, w, z))
    A = (w / v) * rng.integers(-2, 3, (m, n)).astype(float)
    return plant(exact_quadratic(rng, m, u, w), exact_quadratic(rng, n, v, z), A, p, q)


def exact_terms(rng: Generator) -> Case:
    """The same in ordinary units."""
    return exact_case(rng)


def far_terms(rng: Generator) -> Case:
    """The same in extreme units."""
    return exact_case(rng, far=True)


def float32_terms(rng: Generator) -> Case:
    """The same in float32."""
    case = exact_case(rng)
    exact: Any = case.exact
    exact.eps = Decimal(2.0**-23)
    sides = []
    for part, simple in ((exact.g, exact.p), (exact.h, exact.q)):
        quadratic, shift = part.parts
        P, b = quadratic.P.astype(np.float32), shift.b.astype(np.float32)
        if not np.array_equal(b.astype(float), shift.b):
            raise NoSolutionError
        sides.append(with_term(sp.Quadratic(P, b), simple))
    case.f, case.rows = sp.Saddle(sides[0], sides[1], np.asarray(case.rows, dtype=np.float32)), None
    return case


def ready_terms(rng: Generator) -> Case:
    """Ready or own smooth functions of all kinds with ready terms."""
    m, n = sizes(rng, 8)
    p, q = both_terms(rng, m, n, (1.0, 1.0, 0.25, 0.25))
    A = matrix(rng, m, n, between(rng, -2, 1.5))
    return plant(function(rng, m), function(rng, n), A, p, q, 0.5, rng)


def own_terms(rng: Generator) -> Case:
    """Terms of one's own: a prox, and perhaps a value and a projection."""
    m, n = sizes(rng, 8)
    u, v, w, z = units(rng, False)
    p, q = both_terms(rng, m, n, (u, v, w, z))
    if p.simple is not None and (q.simple is None or rng.random() < 0.7):
        p = p.own(rng)
    elif q.simple is not None:
        q = q.own(rng)
    A = (w / v) * rng.integers(-2, 3, (m, n)).astype(float)
    return plant(exact_quadratic(rng, m, u, w), exact_quadratic(rng, n, v, z), A, p, q, 0.3, rng)


def inexact_terms(rng: Generator) -> Case:
    """The same with a prox that errs, by at most what was said about its accuracy; the errors are others at each point.

    The gap of the exact prox is what is proven, so that gaps at the computed point are not compared.
    """
    case = own_terms(rng)
    side, meant = _own_side(case)
    exact: Any = case.exact
    exact.gaps = False
    true, accuracy, wave = meant.simple, between(rng, -12, -2), rng.standard_normal(len(meant.x))

    def prox(v: Array, t: float) -> Array:
        x = true.prox(v, t)
        off = np.sin(wave * (1.0 + np.linalg.norm(v) + 7.0 * t) + np.arange(len(v)))
        return x + (0.9 * accuracy * (np.linalg.norm(v) + np.linalg.norm(x)) / (1.0 + np.linalg.norm(off))) * off

    simple = sp.Simple(prox, project=true.project if meant.is_set else None, accuracy=accuracy)
    f, old = case.f, case.f.g if side == "p" else case.f.h
    new = old.replace(simple=simple)
    case.f = sp.Saddle(new, f.h, case.rows) if side == "p" else sp.Saddle(f.g, new, case.rows)
    return case


def bilinear(rng: Generator) -> Case:
    """Linear functions on bounded sets: games. No distance can be proven; the duality gap is exact."""
    m, n = sizes(rng)
    u, v, w, z = units(rng, rng.random() < 0.3)
    p, q = both_terms(rng, m, n, (u, v, w, z), bounded=True)
    A = (w / v) * rng.integers(-3, 4, (m, n)).astype(float)
    return plant(linear(np.zeros(m)), linear(np.zeros(n)), A, p, q)


def half_strong(rng: Generator) -> Case:
    """One strongly convex function, and a linear one on a bounded set, as in total variation and in SVMs."""
    m, n = sizes(rng)
    u, v, w, z = units(rng, rng.random() < 0.3)
    p, q = both_terms(rng, m, n, (u, v, w, z), bounded=True)
    if rng.random() < 0.5:
        p = no_term(rng, m, u)
    A = (w / v) * rng.integers(-3, 4, (m, n)).astype(float)
    return plant(exact_quadratic(rng, m, u, w), linear(np.zeros(n)), A, p, q)


PLANTED: dict[str, Callable[[Generator], Case]] = {
    "terms, exact": exact_terms,
    "terms, extreme scales": far_terms,
    "terms, float32": float32_terms,
    "terms, all functions": ready_terms,
    "terms of one's own": own_terms,
    "inexact terms of one's own": inexact_terms,
    "bilinear": bilinear,
    "one linear function": half_strong,
}


# -- false claims ------------------------------------------------------------------------------------------------------


def _own_side(case: Case) -> tuple[str, Term]:
    """The side with a term of one's own, and that term."""
    exact: Any = case.exact
    side = "p" if type(exact.p.simple) is sp.Simple else "q"
    return side, getattr(exact, side)


def wrong_prox(rng: Generator) -> Case:
    """A prox that is not that of the term that was meant: another threshold, another set, another t, no prox at all."""
    case = own_terms(rng)
    side, meant = _own_side(case)
    true, factor = meant.simple, between(rng, -6, 0.5) * rng.choice([-1.0, 1.0])
    pick = int(rng.integers(4))
    if pick == 0 and not true.has_value:  # it could be the prox of another multiple of the term
        pick = 2

    def prox(v: Array, t: float) -> Array:
        if pick == 0:
            return true.prox(v, t * max(1.0 + factor, 0.01)) if not meant.is_set else (1.0 + factor) * true.prox(v, t)
        if pick == 1:
            return true.prox(v, t * t)
        if pick == 2:
            kept = true.prox(v, t)
            return np.where(kept == 0.0, 0.0, v) if not meant.is_set else kept + 0.01 * factor * np.abs(v).max()
        return true.prox(v * (1.0 + factor), t)

    wrong = sp.Simple(
        prox,
        true.value if true.has_value and (pick == 0 or rng.random() < 0.7) else None,
        project=true.project if meant.is_set else None,
        diameter=true.diameter_in(len(meant.x)),
    )
    return _given(case, side, wrong, "prox")


def _given(case: Case, side: str, simple: Any, claim: str, **changes: Any) -> Case:
    """The case with another term or other constants on one side; ``case.f`` stays the problem that was meant."""
    f, exact = case.f, case.exact
    true: sp.Smooth = f.g if side == "p" else f.h

    def build() -> sp.Saddle:
        new = true.replace(simple=simple, **changes)
        return sp.Saddle(new, f.h, case.rows) if side == "p" else sp.Saddle(f.g, new, case.rows)

    return Case(f, exact, claim=claim, rows=case.rows, build=build)


def wrong_mu(rng: Generator) -> Case:
    """A strong convexity that is too large, beside a term."""
    m, n = sizes(rng, 8)
    p, q = both_terms(rng, m, n, (1.0, 1.0, 0.25, 0.25))
    A = matrix(rng, m, n, between(rng, -2, 1))
    case = plant(function(rng, m), function(rng, n), A, p, q, 1.0, rng)
    side = "p" if rng.random() < 0.5 else "q"
    f = case.f.g if side == "p" else case.f.h
    return _given(case, side, f.simple, "mu", mu=min(between(rng, 0.1, 3) * f.mu, f.L), trusted=False)


def wrong_value(rng: Generator) -> Case:
    """A value, a projection or a diameter that does not belong to the prox."""
    case = own_terms(rng)
    side, meant = _own_side(case)
    true, factor = meant.simple, 1.0 + between(rng, -4, 0.5) * rng.choice([-1.0, 1.0])
    n = len(meant.x)
    ready = meant.value

    def value(x: Array) -> float:
        return float(factor) * float(ready(decimals(x)))

    project = (lambda v: factor * true.project(v)) if meant.is_set else None
    wrong = sp.Simple(true.prox, value, project=project, diameter=max(factor, 0.0) * true.diameter_in(n))
    return _given(case, side, wrong, "value")


FALSE_TERMS: dict[str, Callable[[Generator], Case]] = {
    "false claim: prox of a term": wrong_prox,
    "false claim: mu beside a term": wrong_mu,
    "false claim: value of a term": wrong_value,
}
