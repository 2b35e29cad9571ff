"""The certified duality gap is that of the numbers that are returned, also where bounds are no float32 numbers."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import saddlepoint as sp

BOUNDS = (0.1, 0.3, 0.7, 1.1)  # no float32 numbers
WEIGHT = 0.3


def exact(numbers):
    return [Fraction(float(number)) for number in numbers]


def root(square):
    """The root of a fraction, with an error far below that of float64."""
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(square.numerator) / Decimal(square.denominator)).sqrt())


def products(A, x, y):
    """A y and -A' x in fractions."""
    rows = [exact(row) for row in A]
    down = [-sum(row[j] * a for row, a in zip(rows, x, strict=True)) for j in range(len(y))]
    return [sum(a * b for a, b in zip(row, y, strict=True)) for row in rows], down


def gain(mu, c, u, bound, weight):
    """By how much mu/2 u^2 + c u + weight |u| is above its smallest value between -bound and bound."""

    def value(z):
        return mu / 2 * z * z + c * z + weight * abs(z)

    assert bound is None or abs(u) <= bound  # else the gap is infinite
    stationary = [(sign * weight - c) / mu for sign in (-1, 1)] if mu else []
    inside = [z for z in stationary if bound is None or abs(z) <= bound]
    return value(u) - min(map(value, [Fraction(0), *inside, *([] if bound is None else [-bound, bound])]))


def drawn(terms, mu, rng, dtype=np.float32):
    """A problem with these terms, its matrix and the vectors of its linear functions."""
    A = rng.standard_normal((5, 4)).astype(dtype)
    linear = [(3.0 * rng.standard_normal(n)).astype(dtype) for n in (5, 4)]
    g, h = (sp.Quadratic(mu, b) + p for b, p in zip(linear, terms, strict=True))
    return sp.Saddle(g, h, A), A, linear


def proofs(f, rng, runs):
    """Points of the domain with their certified gaps: at bounds and between them, and answers of runs."""
    for size in (0.1, 100.0):
        point = f.project(*((size * rng.standard_normal(n)).astype(f.dtype) for n in f.shape))
        yield point, f.certificate(*point).gap
    for aim in runs:
        result = sp.solve(f, **aim)
        assert result.solved
        assert result.x.dtype == f.dtype
        yield (result.x, result.y), result.certificate.gap


def gap_between_bounds(mu, linear, A, bound, weight, point):
    """The duality gap of quadratics with an l1 norm and a box, or without a box if the bound is None."""
    z = [exact(part) for part in point]
    return sum(
        gain(Fraction(mu), a + b, u, bound, weight)
        for part, given, product in zip(z, linear, products(A, *z), strict=True)
        for u, b, a in zip(part, exact(given), product, strict=True)
    )


KINDS = {
    "box": lambda bound: sp.Box(-bound, bound),
    "blocks": lambda bound: sp.Blocks([(slice(0, 2), sp.Box(-bound, bound)), (slice(2, None), sp.Box(-bound, bound))]),
    "l1 and box": lambda bound: sp.L1(WEIGHT) + sp.Box(-bound, bound),
    "l1": lambda bound: sp.L1(WEIGHT),
}


@pytest.mark.parametrize(("kind", "mu"), [*((kind, 0.5) for kind in KINDS), ("box", 0.0), ("l1 and box", 0.0)])
def test_the_certified_gap_is_above_that_of_the_stored_numbers(kind, mu):
    rng, weight = np.random.default_rng(7), Fraction(WEIGHT if "l1" in kind else 0.0)
    for bound in BOUNDS:
        f, A, linear = drawn([KINDS[kind](bound)] * 2, mu, rng)
        limit = None if kind == "l1" else Fraction(bound)
        for point, gap in proofs(f, rng, [{"tol": 1e-4}] if mu else [{"gap": 1e-3}]):
            assert gap_between_bounds(mu, linear, A, limit, weight, point) <= Fraction(gap) < np.inf


def test_the_gap_at_a_corner_is_that_of_the_stored_numbers():
    """Both players are at their bounds: the stored numbers are off by one rounding, which is the whole gap."""
    rng = np.random.default_rng(3)
    for bound in (0.1, 0.7):  # the float32 number inside is not the nearest one for the second
        A = rng.standard_normal((5, 4)).astype(np.float32)
        linear = [(50.0 * rng.choice([-1.0, 1.0], n)).astype(np.float32) for n in (5, 4)]
        f = sp.Saddle(*(sp.Quadratic(1.0, b) + sp.Box(-bound, bound) for b in linear), A)
        point = f.project(*(-b for b in linear))
        true, proof = gap_between_bounds(1.0, linear, A, Fraction(bound), Fraction(0), point), f.certificate(*point)
        assert 1e-7 < true <= Fraction(proof.gap) <= true * Fraction(1.000001)
        assert proof.distance <= 1e-6  # and not the square root of the gap


@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_the_gap_of_a_box_of_ones_own_is_that_of_the_stored_numbers(mu):
    rng = np.random.default_rng(8)
    for bound in (0.35, 0.7, 0.9):  # their nearest float32 numbers are between the bounds

        def clip(x, bound=bound):
            return np.clip(x, -bound, bound)

        f, A, linear = drawn([sp.Simple(prox=lambda v, t, clip=clip: clip(v), project=clip)] * 2, mu, rng)
        result = sp.solve(f, tol=1e-4)
        assert result.solved
        true = gap_between_bounds(mu, linear, A, Fraction(bound), Fraction(0), (result.x, result.y))
        assert true <= Fraction(result.certificate.gap)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["simplex", "l1 ball", "ball"])
def test_outside_of_its_domain_a_point_is_taken_for_the_scaled_one(kind, dtype):
    """The gap of numbers outside the domain is infinite; it is that of the point that is scaled onto it."""
    rng = np.random.default_rng(9)
    for bound in BOUNDS:
        size = Fraction(bound)
        term = {"simplex": sp.Simplex(bound), "l1 ball": sp.Ball(bound, 1), "ball": sp.Ball(bound)}[kind]
        f, A, linear = drawn([term, term], 0.0, rng, dtype)
        for point, gap in proofs(f, rng, [{"gap": 1e-3}]):
            z = []
            for part in map(exact, point):
                length = root(sum(u * u for u in part)) if kind == "ball" else sum(map(abs, part))
                scale = size / length if kind == "simplex" or length > size else Fraction(1)
                z.append([scale * u for u in part])
            true = Fraction(0)
            for part, given, product in zip(z, linear, products(A, *z), strict=True):
                c = [a + b for a, b in zip(product, exact(given), strict=True)]
                least = {
                    "simplex": lambda c: min(c),
                    "l1 ball": lambda c: -max(map(abs, c)),
                    "ball": lambda c: -root(sum(a * a for a in c)),
                }[kind](c)
                true += sum(a * u for a, u in zip(c, part, strict=True)) - size * least
            assert true <= Fraction(gap) < np.inf
