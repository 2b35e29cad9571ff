"""Simple terms in decimal arithmetic: each with its function for the library, and a point with a subgradient there.

The points and subgradients have few digits, and the norms of their groups are those of the vectors (3, 4), so that all
conditions on them hold exactly. They are in units of a power of two.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.random import Generator

import saddlepoint as sp

from .numbers import ONE, Array, Decimals, apply, clip, length

ZERO = Decimal(0)


@dataclass
class Term:
    """A simple term, a point x of its domain, and a subgradient s there.

    Attributes:
        simple: the term for the library.
        value: the term in decimal arithmetic, at points of its domain.
        prox: (v, t) -> the prox, in decimal arithmetic.
        x, s: the point and the subgradient, in floats.
        bounded: whether the domain is bounded.
        is_set: whether the term is a constraint.
        at: for each coordinate, what ``Support`` may say of it at x; None if nothing is compared.
    """

    simple: sp.Simple
    value: Callable[[Decimals], Decimal]
    prox: Callable[[Decimals, Decimal], Decimals]
    x: Array
    s: Array
    bounded: bool
    is_set: bool
    at: Array | None = None

    def project(self, x: Decimals) -> Decimals:
        """The nearest point of the domain."""
        return self.prox(x, ONE) if self.is_set else x

    def own(self, rng: Generator) -> Term:
        """The same with functions of one's own: a prox, and perhaps a value and a projection."""
        p = self.simple
        more: dict[str, Any] = {"project": p.project} if self.is_set else {}
        if rng.random() < 0.6:
            more["value"] = p.value
        term = sp.Simple(p.prox, diameter=p.diameter_in(len(self.x)), **more)
        return Term(term, self.value, self.prox, self.x, self.s, self.bounded, self.is_set)


def nothing(x: Decimals) -> Decimal:
    """The value of a constraint inside its set."""
    return ZERO


def _slack(rng: Generator, n: int) -> Array:
    """Shares by which subgradients are inside their range: none, tiny, or a good part."""
    return rng.choice([0.0, 2.0**-40, 0.25, 0.5, 1.0], n)


def _active(rng: Generator, n: int) -> Array:
    """Which coordinates or groups are at a kink or bound: some, all or none."""
    return rng.random(n) < rng.choice([0.0, 0.5, 0.5, 1.0])


def _signs(rng: Generator, n: int) -> Array:
    return rng.choice([-1.0, 1.0], n)


def _soft(v: Decimals, a: Decimal) -> Decimals:
    return apply(lambda r: max(abs(r) - a, ZERO).copy_sign(r), v)


def _onto_simplex(v: Decimals, total: Decimal) -> Decimals:
    """The nearest point with entries that are not negative and have this sum.

    Entries that are larger than the sum by many orders of magnitude take as many more digits.
    """
    down, running, level = sorted(v, reverse=True), ZERO, ZERO
    with decimal.localcontext() as context:
        context.prec += max(0, max(map(abs, v)).adjusted() - total.adjusted())
        for k, r in enumerate(down, 1):
            running += r
            candidate = (running - total) / k
            if r > candidate:
                level = candidate
        return apply(lambda r: max(r - level, ZERO), v)


def l1(rng: Generator, n: int, u: float, w: float) -> Term:
    """2 w |x|_1."""
    zero, sign = _active(rng, n), _signs(rng, n)
    x = u * np.where(zero, 0.0, sign * rng.choice([0.5, 1.0, 3.0], n))
    s = 2.0 * w * sign * np.where(zero, 1.0 - _slack(rng, n), 1.0)
    weight = Decimal(2.0 * w)
    at = np.where(zero, sp.Support.ZERO, sp.Support.OFF)
    return Term(
        sp.L1(2.0 * w), lambda x: weight * sum(map(abs, x)), lambda v, t: _soft(v, t * weight), x, s, False, False, at
    )


def _interval(rng: Generator, n: int, low: float, high: float, w: float, inner: Array, simple: sp.Simple) -> Term:
    """low <= x <= high, one of which may be infinite."""
    at, sign = _active(rng, n), _signs(rng, n)
    if np.isinf(high):
        sign = -np.ones(n)
    x = np.where(at, np.where(sign > 0.0, high, low), inner)
    s = np.where(at, w * sign * _slack(rng, n), 0.0)
    a, b = Decimal(low), Decimal(high)
    lower, upper = (np.where(x == end, said, sp.Support.OFF) for end, said in ((low, 3), (high, 4)))
    found = np.where(x == low, lower, upper)
    bounded = bool(np.isfinite(low) and np.isfinite(high))
    return Term(simple, nothing, lambda v, t: apply(lambda r: clip(r, a, b), v), x, s, bounded, True, found)


def box(rng: Generator, n: int, u: float, w: float) -> Term:
    """-u <= x <= 2u."""
    return _interval(rng, n, -u, 2.0 * u, w, u * rng.choice([-0.5, 0.25, 1.5], n), sp.Box(-u, 2.0 * u))


def nonnegative(rng: Generator, n: int, u: float, w: float) -> Term:
    """x >= 0."""
    term = _interval(rng, n, 0.0, np.inf, w, u * rng.choice([0.5, 1.0, 4.0], n), sp.NonNegative())
    term.at = None  # 0 is both zero and a lower bound
    return term


def max_ball(rng: Generator, n: int, u: float, w: float) -> Term:
    """|x_i| <= u."""
    term = _interval(rng, n, -u, u, w, u * rng.choice([-0.5, 0.25, 0.75], n), sp.Ball(u, norm="inf"))
    term.at = None
    return term


def simplex(rng: Generator, n: int, u: float, w: float) -> Term:
    """x >= 0 with the sum 4u."""
    at = _active(rng, n)
    at[rng.integers(n)] = False
    x = np.where(at, 0.0, 0.25 * u)
    first = int(np.flatnonzero(~at)[0])
    x[first] += 4.0 * u - x.sum()
    s = w * np.where(at, 1.0 - _slack(rng, n), 1.0)
    total = Decimal(4.0 * u)
    return Term(sp.Simplex(4.0 * u), nothing, lambda v, t: _onto_simplex(v, total), x, s, True, True)


def sum_ball(rng: Generator, n: int, u: float, w: float) -> Term:
    """|x|_1 <= 4u."""
    base, sign, total = simplex(rng, n, u, w), _signs(rng, n), Decimal(4.0 * u)
    inside = rng.random() < 0.3
    x, s = (0.5 * sign * base.x, 0.0 * base.s) if inside else (sign * base.x, sign * base.s)

    def prox(v: Decimals, t: Decimal) -> Decimals:
        sizes = apply(abs, v)
        if sum(sizes) <= total:
            return v
        return apply(lambda r, size: size.copy_sign(r), v, _onto_simplex(sizes, total))

    return Term(sp.Ball(4.0 * u, norm=1), nothing, prox, x, s, True, True)


def _pairs(rng: Generator, n: int) -> tuple[list[list[int]], Array]:
    """Pairs of coordinates with vectors of length 5, and a last single coordinate with 5 if n is odd."""
    pairs = [[2 * k, 2 * k + 1] for k in range(n // 2)] + ([[n - 1]] if n % 2 else [])
    v = np.concatenate([rng.permutation([3.0, 4.0]) if len(pair) == 2 else [5.0] for pair in pairs])
    return pairs, v * _signs(rng, n)


def _scaled(v: Decimals, pairs: list[list[int]], factor: Callable[[Decimal], Decimal]) -> Decimals:
    found = v.copy()
    for pair in pairs:
        found[pair] = v[pair] * factor(length(v[pair]))
    return found


def _each(rng: Generator, pairs: list[list[int]], n: int, draw: Callable[[int], Array]) -> Array:
    """One number for each pair, repeated for its coordinates."""
    found = np.empty(n)
    for pair, number in zip(pairs, draw(len(pairs)), strict=True):
        found[pair] = number
    return found


def groups(rng: Generator, n: int, u: float, w: float) -> Term:
    """5 w times the sum of the norms of pairs."""
    pairs, v = _pairs(rng, n)
    zero = _each(rng, pairs, n, lambda k: _active(rng, k)) > 0.0
    x = np.where(zero, 0.0, u * v * _each(rng, pairs, n, lambda k: rng.choice([0.5, 1.0, 2.0], k)))
    s = w * v * np.where(zero, 1.0 - _each(rng, pairs, n, lambda k: _slack(rng, k)), 1.0)
    weight = Decimal(5.0 * w)

    def value(x: Decimals) -> Decimal:
        return Decimal(weight * sum(length(x[pair]) for pair in pairs))

    def prox(v: Decimals, t: Decimal) -> Decimals:
        return _scaled(v, pairs, lambda r: max(1 - t * weight / r, ZERO) if r > 0 else ZERO)

    return Term(sp.Groups(pairs, 5.0 * w), value, prox, x, s, False, False)


def group_balls(rng: Generator, n: int, u: float, w: float) -> Term:
    """Pairs whose norms are at most 5u."""
    pairs, v = _pairs(rng, n)
    at = _each(rng, pairs, n, lambda k: _active(rng, k)) > 0.0
    x = np.where(at, u * v, 0.5 * u * v)
    s = np.where(at, w * v * _each(rng, pairs, n, lambda k: _slack(rng, k)), 0.0)
    radius = Decimal(5.0 * u)

    def prox(v: Decimals, t: Decimal) -> Decimals:
        return _scaled(v, pairs, lambda r: min(radius / r, ONE) if r > 0 else ONE)

    return Term(sp.GroupBalls(pairs, 5.0 * u), nothing, prox, x, s, True, True)


def _one_pair(rng: Generator, n: int) -> Array:
    v = np.zeros(n)
    if n == 1:
        v[0] = 5.0
    else:
        v[rng.choice(n, 2, replace=False)] = rng.permutation([3.0, 4.0])
    return v * _signs(rng, n)


def ball(rng: Generator, n: int, u: float, w: float) -> Term:
    """|x| <= 5u."""
    v, at, radius = _one_pair(rng, n), rng.random() < 0.6, Decimal(5.0 * u)

    def prox(v: Decimals, t: Decimal) -> Decimals:
        r = length(v)
        return v if r <= radius else v * (radius / r)

    x = u * v if at else 0.5 * u * v
    return Term(sp.Ball(5.0 * u), nothing, prox, x, w * v * _slack(rng, 1)[0] if at else 0.0 * v, True, True)


def norm2(rng: Generator, n: int, u: float, w: float) -> Term:
    """5 w |x|."""
    v, zero, weight = _one_pair(rng, n), rng.random() < 0.4, Decimal(5.0 * w)

    def prox(v: Decimals, t: Decimal) -> Decimals:
        r = length(v)
        return v * (max(1 - t * weight / r, ZERO) if r > 0 else ZERO)

    x, s = (0.0 * v, w * v * (1.0 - _slack(rng, 1)[0])) if zero else (2.0 * u * v, w * v)
    return Term(sp.Norm2(5.0 * w), lambda x: weight * length(x), prox, x, s, False, False)


TERMS: dict[str, Callable[[Generator, int, float, float], Term]] = {
    "l1": l1,
    "box": box,
    "nonnegative": nonnegative,
    "inf ball": max_ball,
    "simplex": simplex,
    "l1 ball": sum_ball,
    "groups": groups,
    "group balls": group_balls,
    "ball": ball,
    "norm": norm2,
}
BOUNDED = ("box", "inf ball", "simplex", "l1 ball", "group balls", "ball")


def no_term(rng: Generator, n: int, u: float) -> Term:
    """No term: a point, and the subgradient 0."""
    x = u * rng.choice([-2.0, -0.5, 0.0, 1.0, 3.0], n)
    return Term(None, nothing, lambda v, t: v, x, np.zeros(n), False, False)  # type: ignore[arg-type]


def term(rng: Generator, n: int, u: float, w: float, bounded: bool = False) -> Term:
    """A term of any kind for n variables, in the units u of x and w of its subgradients."""
    names = BOUNDED if bounded else tuple(TERMS)
    return TERMS[names[rng.integers(len(names))]](rng, n, u, w)
