"""Simple functions: prox, conjugates, domains, bounds that certificates rest on, sums, libraries, and invalid input."""

import importlib
import math
import operator
import pickle
import re
from contextlib import suppress
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from libraries import in_every_library, load_library

import saddlepoint as sp
from saddlepoint.ground.arrays import to_host
from saddlepoint.parts.simple import L1Box, bounds
from saddlepoint.parts.simple.ball import L1Ball
from saddlepoint.parts.simple.groups import GroupsL1
from saddlepoint.parts.simple.prox_inequalities import refuted_prox
from saddlepoint.parts.simple.shifted import Shifted

with suppress(ImportError):  # where the tests on a GPU run, it may be missing
    import cvxpy

N = 6
LOW = np.array([-math.inf, -1.0, 0.0, 0.5, -2.0, -0.25])
HIGH = np.array([0.75, math.inf, 1.0, 0.5, -0.5, math.inf])
WEIGHT = np.array([0.0, 0.3, 1.0, 0.2, 0.7, 0.5])
CENTER = np.array([3.0, 0.0, -0.1, 0.7, 0.2, -5.0])

SIMPLE = {
    "l1": sp.L1(0.3),
    "l1, weights": sp.L1(WEIGHT),
    "box": sp.Box(-0.3, 0.7),
    "box, bounds": sp.Box(LOW, HIGH),
    "nonnegative": sp.NonNegative(),
    "l1 and box": sp.L1(0.3) + sp.Box(LOW, HIGH),
    "l1 and weights and box": sp.L1(WEIGHT) + sp.Box(-0.3, 0.7),
    "l1 and nonnegative": sp.NonNegative() + sp.L1(0.3),
    "simplex": sp.Simplex(),
    "simplex, total": sp.Simplex(3.7),
    "norm": sp.Norm2(0.7),
    "groups": sp.Groups([0, 1, 1, 2, 0, 1], [0.5, 1.0, 0.0]),
    "groups, listed": sp.Groups([[5, 3], range(1)], 0.6),
    "groups, array": sp.Groups(shape=(2, 3), weight=0.4),
    "group balls": sp.GroupBalls([0, 1, 1, 2, 0, 3], [0.5, 1.2, math.inf, 0.0]),
    "group balls, array": sp.GroupBalls(shape=(3, 2), axis=1, radius=0.3),
    "ball": sp.Ball(1.3),
    "ball, l1": sp.Ball(1.3, norm=1),
    "ball, maximum": sp.Ball(0.4, norm="inf"),
    "ball, center": sp.Ball(1.3, center=CENTER),
    "ball, l1, center": sp.Ball(1.3, norm=1, center=CENTER),
    "ball, maximum, center": sp.Ball(0.4, norm="inf", center=CENTER),
    "groups and l1": sp.L1(0.2) + sp.Groups(["a", "b", "b", "c", "a", "b"], [0.5, 1.0, 0.3]),
    "groups and l1 and nonnegative": sp.Groups(shape=(2, 3)) + sp.L1(WEIGHT) + sp.NonNegative(),
    "groups and nonnegative": sp.NonNegative() + sp.Groups([0, 1, 1, 2, 0, 1], [0.5, 1.0, 0.3]),
    "norm and l1": sp.Norm2(0.7) + sp.L1(0.2),
    "nuclear": sp.Nuclear((2, 3), 0.6),
    "hyperplane": sp.Hyperplane([1.0, -2.0, 0.3, 0.0, 1e-3, 7.0], 0.4),
    "blocks": sp.Blocks([((4, 6), sp.Ball(0.5)), (range(1, 3), sp.Simplex()), (slice(0, 1), sp.L1(0.5))]),
}
CONES = {  # value and constraints as CVXPY takes them
    "simplex, total": lambda u: (0.0, [u >= 0.0, cvxpy.sum(u) == 3.7]),
    "norm": lambda u: (0.7 * cvxpy.norm(u), []),
    "groups": lambda u: (0.5 * cvxpy.norm(u[[0, 4]]) + cvxpy.norm(u[[1, 2, 5]]), []),
    "groups, listed": lambda u: (0.6 * cvxpy.norm(u[[5, 3]]) + 0.6 * cvxpy.norm(u[[0]]), []),
    "groups, array": lambda u: (sum(0.4 * cvxpy.norm(u[[i, i + 3]]) for i in range(3)), []),
    "group balls": lambda u: (0.0, [cvxpy.norm(u[[0, 4]]) <= 0.5, cvxpy.norm(u[[1, 2]]) <= 1.2, u[5] == 0.0]),
    "group balls, array": lambda u: (0.0, [cvxpy.norm(u[[i, i + 1]]) <= 0.3 for i in (0, 2, 4)]),
    "ball": lambda u: (0.0, [cvxpy.norm(u) <= 1.3]),
    "ball, l1": lambda u: (0.0, [cvxpy.norm1(u) <= 1.3]),
    "ball, maximum": lambda u: (0.0, [cvxpy.abs(u) <= 0.4]),
    "ball, center": lambda u: (0.0, [cvxpy.norm(u - CENTER) <= 1.3]),
    "ball, l1, center": lambda u: (0.0, [cvxpy.norm1(u - CENTER) <= 1.3]),
    "ball, maximum, center": lambda u: (0.0, [cvxpy.abs(u - CENTER) <= 0.4]),
    "nuclear": lambda u: (0.6 * cvxpy.normNuc(cvxpy.reshape(u, (2, 3), order="C")), []),
    "hyperplane": lambda u: (0.0, [u[0] - 2.0 * u[1] + 0.3 * u[2] + 1e-3 * u[4] + 7.0 * u[5] == 0.4]),
    "blocks": lambda u: (
        0.5 * cvxpy.abs(u[0]), [u[1:3] >= 0.0, cvxpy.sum(u[1:3]) == 1.0, cvxpy.norm(u[4:6]) <= 0.5]
    ),
    "groups and l1": lambda u: (
        0.2 * cvxpy.norm1(u) + 0.5 * cvxpy.norm(u[[0, 4]]) + cvxpy.norm(u[[1, 2, 5]]) + 0.3 * cvxpy.abs(u[3]), []
    ),
    "groups and l1 and nonnegative": lambda u: (
        sum(cvxpy.norm(u[[i, i + 3]]) for i in range(3)) + WEIGHT @ cvxpy.abs(u), [u >= 0.0]
    ),
    "groups and nonnegative": lambda u: (
        0.5 * cvxpy.norm(u[[0, 4]]) + cvxpy.norm(u[[1, 2, 5]]) + 0.3 * cvxpy.abs(u[3]), [u >= 0.0]
    ),
    "norm and l1": lambda u: (0.7 * cvxpy.norm(u) + 0.2 * cvxpy.norm1(u), []),
}  # fmt: skip
QUICK = ("l1 and box", "simplex", "groups", "ball")


def tiered(names):
    """The names, of which those that ``make check`` leaves out are marked slow."""
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


every = pytest.mark.parametrize("name", tiered(SIMPLE))


def draw(seed, n=N, scale=2.0):
    """A vector whose entries have several sizes, some of them equal to each other and some zero."""
    rng = np.random.default_rng(seed)
    v = scale * rng.standard_normal(n) * 10.0 ** rng.integers(-2, 2, n)
    v[rng.random(n) < 0.2] = 0.0
    v[rng.random(n) < 0.2] = 0.3
    return v


seeds = st.integers(0, 10**9)
steps = st.sampled_from([1e-3, 0.3, 1.0, 50.0])


# -- the function ------------------------------------------------------------------------------------------------------


@every
@given(seeds, steps)
def test_the_prox_is_where_a_subgradient_says_it_is(name, seed, t):
    """x = prox(v, t) if and only if (v - x)/t is a subgradient at x, which is that the gap of the two is zero."""
    p, v = SIMPLE[name], draw(seed)
    kept = v.copy()
    x = p.prox(v, t)
    np.testing.assert_array_equal(v, kept)
    pair = p.pairing(x, (v - x) / t)
    size = np.linalg.norm(v) + np.linalg.norm(x) + 1.0
    assert pair.off_x <= 1e-14 * size
    assert np.linalg.norm(pair.s - (v - x) / t) + pair.off_s <= 1e-14 * size / t + 2e-14 * np.linalg.norm(pair.s)
    assert pair.gap <= 1e-13 * size**2 / t


@every
@given(seeds, seeds, steps)
def test_the_prox_is_firmly_nonexpansive(name, one, two, t):
    p, u, v = SIMPLE[name], draw(one), draw(two)
    d = p.prox(u, t) - p.prox(v, t)
    assert d @ d <= d @ (u - v) + 1e-13 * (u @ u + v @ v + 1.0)


@every
@given(seeds, seeds)
def test_value_and_conjugate_satisfy_fenchels_inequality(name, one, two):
    p, s = SIMPLE[name], draw(two)
    x = p.project(draw(one))
    assert p.value(x) < math.inf
    assert p.value(x) + p.conjugate(s) - s @ x >= -1e-12 * (1.0 + abs(s) @ abs(x))


@every
@given(seeds, steps)
def test_the_conjugate_is_attained(name, seed, t):
    p, v = SIMPLE[name], draw(seed)
    x = p.prox(v, t)
    s = p.dual_point((v - x) / t)
    assert p.conjugate(s) == pytest.approx(s @ x - p.value(x), abs=1e-12 * (1.0 + v @ v) / t)


@every
@given(seeds)
def test_projections_are_inside_and_nearest(name, seed):
    p, x = SIMPLE[name], draw(seed)
    z = p.project(x)
    assert p.outside(z) <= 1e-14 * (1.0 + np.abs(z).sum())
    assert p.is_inside(z)
    assert p.value(z) < math.inf
    far = np.linalg.norm(x - z)
    assert far * (1.0 - 1e-14) <= p.outside(x) * (1.0 + 1e-14) + 1e-15 * (1.0 + np.abs(x).sum())
    assert (p.value(x) == math.inf) == (far > 1e-12)
    u = p.project(draw(seed + 1))
    assert (x - z) @ (u - z) <= 1e-13 * (1.0 + x @ x + u @ u)  # z is nearest if the angle is obtuse for every u


@every
@given(seeds)
def test_dual_points_are_near_and_in_the_domain(name, seed):
    p, s = SIMPLE[name], draw(seed)
    near = p.dual_point(s)
    assert p.conjugate(near) < math.inf
    assert p.fenchel_gap(p.project(draw(seed + 1)), near) < math.inf
    np.testing.assert_allclose(p.dual_point(near), near, rtol=1e-14)
    if p.conjugate(s) < math.inf:
        np.testing.assert_allclose(near, s, rtol=1e-14)


# -- slow twins --------------------------------------------------------------------------------------------------------


def exactly(a, n=None):
    """A vector as exact fractions, or a number as n of them; infinities stay."""
    if isinstance(a, np.ndarray) and a.dtype == object:
        return list(a)
    numbers = np.asarray(a, np.float64) if n is None else np.broadcast_to(np.asarray(a, np.float64), n)
    return [Fraction(b) if math.isfinite(b) else b for b in numbers.tolist()]


def slow_prox_of_interval(v, t, weight, lower, upper):
    """The best of all candidates: the minima of the two parabolas, the kink and the ends."""
    candidates = [v - t * weight, v + t * weight, Fraction(0), lower, upper]
    inside = [u for u in candidates if math.isfinite(u) and lower <= u <= upper]
    return min(inside, key=lambda u: t * weight * abs(u) + (u - v) ** 2 / 2)


@pytest.mark.parametrize("name", tiered(name for name, p in SIMPLE.items() if isinstance(p, L1Box)))
@given(seeds, steps)
def test_the_prox_of_norms_and_boxes_is_the_best_candidate(name, seed, t):
    p, v = SIMPLE[name], draw(seed)
    parts = [exactly(part, N) for part in (v, t, p.weight.value, p.lower.value, p.upper.value)]
    slow = [slow_prox_of_interval(*part) for part in zip(*parts, strict=True)]
    slow, size = np.array(slow, dtype=float), 1.0 + np.abs(v).max()
    np.testing.assert_allclose(p.prox(v, t), slow, rtol=1e-15, atol=1e-15 * size)


def slow_simplex(v, total):
    """The projection in exact arithmetic: the largest entries, as many as stay positive."""
    ranked = sorted(v, reverse=True)
    for k in range(len(v), 0, -1):
        theta = (sum(ranked[:k]) - total) / k
        if ranked[k - 1] > theta:
            return [max(a - theta, Fraction(0)) for a in v]
    raise AssertionError


@pytest.mark.parametrize("total", [1.0, 3.7, 1e-8, 1e6])
@pytest.mark.parametrize("n", [1, 2, 5, 40])
@given(seeds)
def test_the_projection_onto_the_simplex_is_that_of_exact_arithmetic(total, n, seed):
    v = draw(seed, n)
    x = sp.Simplex(total).prox(v, 1.0)
    slow = np.array(slow_simplex([Fraction(a) for a in v], Fraction(total)), dtype=float)
    np.testing.assert_allclose(x, slow, rtol=0, atol=4e-16 * total * math.sqrt(n))
    assert abs(sum(map(Fraction, x)) - Fraction(total)) <= Fraction(4e-16) * Fraction(total)


def test_the_projection_onto_a_large_simplex_from_far_away_is_in_it():
    v = 1e6 + np.random.default_rng(0).standard_normal(100_000)
    x = sp.Simplex().prox(v, 1.0)
    assert abs(math.fsum(x) - 1.0) <= 1e-15
    assert sp.Simplex().outside(x) <= 2e-15
    narrow = sp.Simplex().prox(v.astype(np.float32), 1.0)
    assert narrow.dtype == np.float32
    assert abs(math.fsum(narrow) - 1.0) <= 1e-6


CONJUGATES = {  # pairs of functions of which each is the conjugate of the other
    "l1": (sp.L1(0.4), sp.Ball(0.4, "inf")),
    "norm": (sp.Norm2(1.3), sp.Ball(1.3)),
    "groups": (sp.Groups([0, 1, 1, 2, 0, 1], [0.5, 1.0, 0.0]), sp.GroupBalls([0, 1, 1, 2, 0, 1], [0.5, 1.0, 0.0])),
    "orthant": (sp.NonNegative(), sp.Box(-math.inf, 0.0)),
}


@pytest.mark.parametrize("name", CONJUGATES)
@given(seeds, steps)
def test_moreaus_identity_holds(name, seed, t):
    """prox_{t p}(v) + t prox_{p*/t}(v/t) = v."""
    v = draw(seed)
    for p, conjugate in (CONJUGATES[name], CONJUGATES[name][::-1]):
        np.testing.assert_allclose(p.prox(v, t) + t * conjugate.prox(v / t, 1.0 / t), v, atol=1e-14 * np.abs(v).max())
        s = conjugate.project(v)
        assert p.conjugate(s) == pytest.approx(conjugate.value(s), abs=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SIMPLE if name in CONES])
def test_the_prox_is_that_of_a_general_solver(name):
    pytest.importorskip("cvxpy")
    for seed in range(3):
        v = draw(seed)
        u = cvxpy.Variable(N)
        value, constraints = CONES[name](u)
        cvxpy.Problem(cvxpy.Minimize(0.7 * value + 0.5 * cvxpy.sum_squares(u - v)), constraints).solve("CLARABEL")
        np.testing.assert_allclose(SIMPLE[name].prox(v, 0.7), u.value, atol=1e-4 * (1.0 + np.abs(v).max()))


# -- bounds that certificates rest on, against exact arithmetic --------------------------------------------------------


def gap_of_norm_and_box(p, x, s):
    total = Fraction(0)
    bounds = (exactly(part.value, len(x)) for part in (p.weight, p.lower, p.upper))
    parts = zip(exactly(x), exactly(s), *bounds, strict=True)
    for a, b, weight, lower, upper in parts:
        a = min(max(a, lower), upper)
        ends = [u for u in (lower, upper, Fraction(0)) if lower <= u <= upper and math.isfinite(u)]
        if (upper == math.inf and b > weight) or (lower == -math.inf and b < -weight):
            return math.inf
        total += weight * abs(a) - a * b + max(b * u - weight * abs(u) for u in ends)
    return total


def gap_of_simplex(p, x, s):
    x = [max(a, Fraction(0)) for a in exactly(x)]
    top = max(exactly(s))
    return sum((top - b) * a for a, b in zip(x, exactly(s), strict=True)) * Fraction(p.total) / sum(x)


def digits(a):
    parts = [b if isinstance(b, Fraction) else Fraction(float(b)) for b in a]
    return [Decimal(b.numerator) / Decimal(b.denominator) for b in parts]


def members(partition, n):
    """The coordinates of each group, in the order of its norms."""
    labels = partition.on_coordinates(np.arange(partition.count), n)
    return [np.flatnonzero(labels == i) for i in range(partition.count)]


def length(v):
    return sum((a * a for a in v), Decimal(0)).sqrt()


def gap_of_groups(balls, a, b, near=0.0):
    """The sum of w |a_G| - <a_G, b'_G> and |b' - b|, where b' = b, or on the sphere if b is outside or near it."""
    total, square = Decimal(0), Decimal(0)
    for group, w in zip(members(balls.partition, len(a)), balls.radii.everywhere(balls.partition.count), strict=True):
        u, v, w = digits(a[group]), digits(b[group]), Decimal(float(w))
        r, size = length(u), length(v)
        if w.is_infinite():
            assert r == 0
            continue
        factor = w / size if size > w * (1 - Decimal(near)) else Decimal(1)
        total += w * r - factor * sum((c * d for c, d in zip(u, v, strict=True)), Decimal(0))
        square += ((1 - factor) * size) ** 2
    return total, square.sqrt()


def nuclear_norm_of_two_rows(p, x):
    """For two rows a and b, the square of the sum of the two singular values is |a|^2 + |b|^2 + 2 det(X X')^(1/2)."""
    a, b = digits(x[:3]), digits(x[3:])
    products = [sum(map(operator.mul, u, v), Decimal(0)) for u, v in ((a, a), (a, b), (b, b))]
    product = max(products[0] * products[2] - products[1] ** 2, Decimal(0)).sqrt()
    return Decimal(p.weight) * (products[0] + products[2] + 2 * product).sqrt()


def exact_gap(p, x, s):
    """The gap in about a hundred digits, at the point of the domain that ``fenchel_gap`` takes for x."""
    if isinstance(p, sp.Blocks):
        return sum(exact_gap(part, x[rows], s[rows]) for rows, part in p.parts(N))
    if isinstance(p, sp.Hyperplane):
        return Fraction(0)
    if isinstance(p, sp.Ball):
        p = p.ball
    outside = 0.0 if isinstance(p, Shifted | GroupsL1) else p.outside(x)
    if isinstance(p, Shifted):
        outside = p.p.outside(np.asarray(x, np.float64) - CENTER)
        x = np.array([a - b for a, b in zip(exactly(x), exactly(CENTER), strict=True)])
        p = p.p
    if isinstance(p, sp.Simplex):
        return gap_of_simplex(p, x, s)
    if isinstance(p, L1Box):
        return gap_of_norm_and_box(p, x, s)
    if isinstance(p, L1Ball):
        x, s = exactly(x), exactly(s)
        factor = min(Fraction(1), Fraction(p.radius) / max(sum(map(abs, x)), Fraction(1e-300)))
        return Fraction(p.radius) * max(map(abs, s)) - factor * sum(a * b for a, b in zip(x, s, strict=True))
    if isinstance(p, sp.Nuclear):
        return Fraction(nuclear_norm_of_two_rows(p, x) - sum(map(operator.mul, digits(x), digits(s))))
    with localcontext(Context(prec=100)):
        if isinstance(p, sp.Groups):
            gap, off = gap_of_groups(p.balls, x, s)
        elif isinstance(p, sp.GroupBalls):
            gap, off = gap_of_groups(p.balls, s, x, 2e-14 if outside > 0.0 else 0.0)
            return Fraction(gap)
        else:
            weight, s = p.other.weight.everywhere(N), np.asarray(s, np.float64)
            gap, off = gap_of_groups(p.groups.balls, x, 0.0 * s)
            gap += sum(a * abs(b) - c * b for a, b, c in zip(digits(weight), digits(x), digits(s), strict=True))
        assert off == 0
        return Fraction(gap)


def floor_of(p, x, s):
    """The gap of a point that is off a sphere by rounding."""
    flat = isinstance(p, L1Box | sp.Simplex)
    return 0.0 if flat else 1e-13 * (p.value(x) + abs(p.conjugate(s)) + float(np.abs(x).astype(np.float64) @ np.abs(s)))


@every
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(seeds, seeds, st.sampled_from([1e-250, 1e-9, 1.0, 1e9]))
def test_gaps_are_bounds_and_tight(name, dtype, one, two, scale):
    p = SIMPLE[name]
    x, s = p.project(draw(one).astype(dtype)), p.dual_point((scale * draw(two)).astype(dtype))
    assert x.dtype == s.dtype == dtype
    found, true = p.fenchel_gap(x, s), exact_gap(p, x, s)
    assert found < math.inf
    assert Fraction(found) >= true
    floor = floor_of(p, x, s) * (1e10 if dtype == np.float32 else 1.0)
    assert Fraction(found) <= true * Fraction(1 + 1e-13) + Fraction(1e-300) + Fraction(floor)


@every
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(seeds, steps, st.sampled_from([0.0, 1e-14, 1e-9, 1e-4]))
def test_gaps_near_a_solution_are_bounds_and_tight(name, dtype, seed, t, off):
    """A subgradient at one point, paired with a point next to it: the gap is of second order, or zero."""
    p, v = SIMPLE[name], draw(seed).astype(dtype)
    x = p.prox(v, t)
    s = p.dual_point((v - x) / dtype(t))
    x = p.project((x + off * np.random.default_rng(seed).standard_normal(N)).astype(dtype))
    found, true = p.fenchel_gap(x, s), exact_gap(p, x, s)
    assert Fraction(found) >= true
    floor = floor_of(p, x, s) * (1e10 if dtype == np.float32 else 1.0)
    assert Fraction(found) <= true * Fraction(1 + 1e-13) + Fraction(1e-300) + Fraction(floor)


@pytest.mark.parametrize("name", tiered([*(name for name, p in SIMPLE.items() if hasattr(p, "balls")), "ball"]))
@given(seeds, steps, st.sampled_from([0.0, 1e-14, 1e-9, 1e-4, 1.0]))
def test_pairings_on_spheres_are_true_and_have_no_floor(name, seed, t, off):
    p, v = SIMPLE[name], draw(seed)
    p = p.ball if isinstance(p, sp.Ball) else p
    x = p.prox(v, t)
    s = p.subgradient(x, (v - x) / t)
    np.testing.assert_allclose(s, (v - x) / t, atol=1e-14 * (1.0 + np.abs(v).max()) / t)
    x = p.project(x + off * np.random.default_rng(seed).standard_normal(N))
    pair = p.pairing(x, s)
    norm, size = isinstance(p, sp.Groups), Decimal("1e-13") * Decimal(1.0 + np.linalg.norm(x) + np.linalg.norm(s))
    with localcontext(Context(prec=100)):
        for near in (2e-14, 5e-15):  # a group that is inside the sphere by about 1e-14 may be moved onto it or not
            gap, moved = gap_of_groups(p.balls, *((x, pair.s) if norm else (pair.s, x)), near)
            if Decimal(pair.gap) >= gap and Decimal(pair.off_s if norm else pair.off_x) >= moved:
                break
        else:
            pytest.fail("neither bound is true")
        if off != 1e-14:
            assert Decimal(pair.gap) <= gap * Decimal("1.00001") + size * size + size * gap.sqrt()
        assert Decimal(pair.off_x) + Decimal(pair.off_s) <= moved + size


@given(seeds, st.sampled_from([0.0, 1e-10, 1e-4, 1.0]))
def test_pairings_of_matrices_are_true_and_have_no_floor(seed, off):
    p, v = SIMPLE["nuclear"], draw(seed)
    x = p.prox(v, 1.0)
    s = p.subgradient(x, v - x)
    np.testing.assert_allclose(s, v - x, atol=1e-13 * (1.0 + np.abs(v).max()))
    x = x + off * np.random.default_rng(seed).standard_normal(N)
    pair, size = p.pairing(x, s), 1.0 + np.linalg.norm(x)
    assert pair.off_x <= 1e-13 * size
    assert pair.off_s <= 1e-13
    with localcontext(Context(prec=100)):
        true = float(nuclear_norm_of_two_rows(p, x) - sum(map(operator.mul, digits(x), digits(s))))
    assert true <= (pair.gap_at_x + pair.off_s * size) * (1.0 + 1e-12)
    floor = 1e-14 * size  # the stored matrices, whose gap is computed, differ from those of the pairing by rounding
    assert true * (1.0 - 1e-9) - floor <= pair.gap <= true * (1.0 + 1e-3) + floor
    if off == 0.0:
        assert pair.gap <= 1e-24 * size


@every
def test_nothing_is_proven_about_nan(name):
    p, good = SIMPLE[name], np.full(N, 0.1)
    for i in range(N):
        bad = np.where(np.arange(N) == i, np.nan, p.project(good))
        assert np.isnan(p.prox(bad, 1.0)).any()
        pair = p.pairing(bad, p.dual_point(good))
        assert math.inf in (pair.gap, pair.off_x) or np.isnan(pair.s).any()
        pair = p.pairing(p.project(good), bad)
        assert math.inf in (pair.gap, pair.off_s) or np.isnan(pair.s).any()


@every
def test_gaps_with_dual_vectors_outside_the_domain_are_infinite(name):
    p, x = SIMPLE[name], SIMPLE[name].project(np.ones(N))
    s = 100.0 * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    assert (p.fenchel_gap(x, s) == math.inf) == (p.conjugate(s) == math.inf)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(-10.0, 10.0))
def test_sums_are_known_to_the_last_digit(numbers, total):
    a = np.array(numbers)
    found, true = bounds.sum_error(a, total), abs(sum(map(Fraction, numbers)) - Fraction(total))
    assert (
        true <= Fraction(found) <= true * Fraction(1 + 1e-14) + Fraction(1e-24) * sum(map(abs, map(Fraction, numbers)))
    )


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_distances_to_the_simplex_are_bounds(numbers):
    x, p = np.array(numbers), sp.Simplex()
    slow = slow_simplex([Fraction(a) for a in numbers], Fraction(1))
    square = sum((Fraction(a) - b) ** 2 for a, b in zip(numbers, slow, strict=True))
    assert Fraction(p.outside(x)) ** 2 >= square


def test_bregman_of_a_ready_function_is_its_gap():
    p, v = sp.L1(0.3), draw(3)
    xh = p.prox(v, 0.5)
    s = (v - xh) / 0.5
    assert p.bregman(v, xh, s) == p.fenchel_gap(v, p.dual_point(s))
    assert p.bregman(v, xh, s) == pytest.approx(p(v) - p(xh) - s @ (v - xh), abs=1e-12)


# -- proven supports ---------------------------------------------------------------------------------------------------


@every
@given(seeds, st.sampled_from([1e-12, 1e-3, 0.5]))
def test_what_is_proven_about_coordinates_is_true(name, seed, reach):
    """The solution of min |x - v|^2/2 + p(x) is prox(v, 1), with w* = x* - v; the point is reach away from it."""
    p, v = SIMPLE[name], draw(seed)
    solution = p.prox(v, 1.0)
    step = np.random.default_rng(seed).standard_normal(N)
    step *= 0.99 * reach / np.linalg.norm(step)
    off = np.random.default_rng(seed + 1).uniform(-0.99, 0.99, N) * reach
    found = p.support(solution + step, solution - v + off, reach, np.full(N, reach))
    assert found.dtype == np.int8
    check_support(p, found, solution)


def check_support(p, found, solution):
    n = len(solution)
    if isinstance(p, sp.Blocks):
        for rows, part in p.parts(n):
            check_support(part, found[rows], solution[rows])
        return
    box = p.other if isinstance(p, GroupsL1) else p.ball if isinstance(p, sp.Ball) else p
    lower, upper, kinks = np.full(n, -np.inf), np.full(n, np.inf), np.full(n, False)
    if isinstance(box, L1Box):
        lower, upper, kinks = (part.everywhere(n) for part in (box.lower, box.upper, box.weight))
    elif isinstance(p, sp.Simplex):
        lower = np.zeros(n)
    assert (solution[found == sp.Support.ZERO] == 0.0).all()
    assert (solution == lower)[found == sp.Support.LOWER].all()
    assert (solution == upper)[found == sp.Support.UPPER].all()
    free = (lower < solution) & (solution < upper) & ((solution != 0.0) | (kinks == 0.0))
    if isinstance(p, sp.Groups | GroupsL1):
        part = p if isinstance(p, sp.Groups) else p.groups
        sizes, weights = part.partition.norms(solution), part.balls.radii.everywhere(part.partition.count)
        free &= part.partition.on_coordinates((sizes > 0.0) | (weights == 0.0), n)
    if isinstance(box, sp.GroupBalls):
        inside = box.partition.norms(solution) < box.balls.radii.everywhere(box.partition.count) * (1.0 - 1e-14)
        free &= box.partition.on_coordinates(inside, n)
    assert free[found == sp.Support.OFF].all()


def test_supports_are_decided_near_the_solution():
    v = np.array([3.0, 0.1, -2.0, 0.02, 1.0, -0.7])
    groups = sp.Groups([0, 1, 0, 1, 0, 1], 0.8)
    flat = sp.L1(0.5), sp.Box(-1.0, 1.5), sp.NonNegative(), sp.Simplex(2.0), sp.L1(0.5) + sp.Box(-1.0, 1.5)
    for p in (*flat, groups, groups + sp.L1(0.5), sp.Norm2(9.0), sp.Ball(100.0), sp.Ball(0.5, 1), sp.Ball(100.0, 1)):
        solution = p.prox(v, 1.0)
        found = p.support(solution, solution - v, 1e-9, 1e-9)
        assert (found != sp.Support.UNDECIDED).sum() >= 5
        assert (p.support(solution, solution - v, 100.0, 100.0) != sp.Support.OFF).all()
    found = sp.Box([0.0, -1.0, 2.0], [1.0, 1.0, 2.0]).support(np.zeros(3), np.array([2.0, -1.0, 0.0]), 0.1, 0.1)
    assert found.tolist() == [sp.Support.ZERO, sp.Support.UPPER, sp.Support.LOWER]


# -- sums, sizes, copies -----------------------------------------------------------------------------------------------


def test_sums_of_norms_and_boxes_are_one_term_or_refused():
    assert repr(sp.L1(0.1) + sp.L1(0.2) + sp.NonNegative()) == "L1(0.3) + NonNegative()"
    assert repr(sp.Box(-1.0, 2.0) + sp.Box(0.0, 5.0)) == "Box(0, 2)"
    assert repr(sp.Box(-1.0, np.ones(3)) + sp.NonNegative()) == "Box(0, 3 numbers)"
    with pytest.raises(sp.ProblemError, match="box is empty"):
        sp.Box(0.0, 1.0) + sp.Box(2.0, 3.0)
    with pytest.raises(sp.ProblemError, match="as many for every part"):
        sp.L1(np.ones(3)) + sp.Box(0.0, np.ones(4))


@pytest.mark.parametrize("name", SIMPLE)
def test_multiples_of_simple_functions_have_their_prox_value_and_conjugate(name):
    p, rng = SIMPLE[name], np.random.default_rng(4)
    v, s = 3.0 * rng.standard_normal((2, N))
    for q in (2.5 * p, p * 2.5):
        np.testing.assert_allclose(q.prox(v, 0.3), p.prox(v, 0.75), rtol=1e-12, atol=1e-12)
        assert q(q.prox(v, 0.3)) == pytest.approx(2.5 * p(q.prox(v, 0.3)), rel=1e-12)
        assert q.conjugate(2.5 * s) == pytest.approx(2.5 * p.conjugate(s), rel=1e-9)


def test_a_multiple_of_a_function_that_the_caller_wrote_has_its_prox_and_conjugate():
    own = sp.Simple(lambda v, t: v / (1.0 + t), lambda x: 0.5 * x @ x, conjugate=lambda s: 0.5 * s @ s, accuracy=1e-9)
    many, v = 4.0 * own, np.array([3.0, -1.0])
    assert many.prox(v, 0.5).tolist() == [1.0, -1.0 / 3.0]
    assert (many(v), many.conjugate(v), many.accuracy) == (20.0, 1.25, 1e-9)
    for factor in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(sp.ProblemError, match="can only be multiplied by a finite positive number"):
            factor * own


def test_other_sums_say_why_not():
    with pytest.raises(sp.ProblemError, match=r"prox of L1\(1\) \+ Simplex\(\) is not known.*sp\.Simple\(prox"):
        sp.L1() + sp.Simplex()
    with pytest.raises(TypeError):
        sp.L1() + 1.0
    with pytest.raises(TypeError):
        1.0 + sp.L1()


def test_diameters_are_upper_bounds():
    assert sp.L1().diameter == sp.NonNegative().diameter == sp.Box(0.0, 1.0).diameter == math.inf
    assert math.sqrt(3.0) <= sp.Box(0.0, 1.0).diameter_in(3) <= 1.74
    assert 5.0 <= sp.Box(0.0, [3.0, 4.0]).diameter <= 5.0 + 1e-14
    assert sp.Box(2.0, 2.0).diameter == 0.0
    assert math.sqrt(2.0) <= sp.Simplex().diameter <= 1.4143
    assert sp.Simplex().diameter_in(1) == 0.0
    assert sp.Ball(2.0).diameter == sp.Ball(2.0, 1).diameter == 4.0
    assert 4.0 * math.sqrt(3.0) <= sp.Ball(2.0, "inf").diameter_in(3) <= 6.93
    assert 10.0 <= sp.GroupBalls([0, 1, 1], [3.0, 4.0]).diameter <= 10.0 + 1e-13
    assert sp.Hyperplane([1.0, 1.0]).diameter == sp.Norm2().diameter == math.inf
    assert sp.Hyperplane([2.0], 3.0).diameter == 0.0
    both = sp.Blocks([(range(2), sp.Simplex()), (slice(2, None), sp.Ball(1.0))])
    assert math.sqrt(6.0) <= both.diameter_in(9) <= 2.4495
    assert both.diameter == sp.Blocks([(range(2), sp.Simplex())]).diameter_in(3) == math.inf


def test_a_term_of_some_coordinates_has_their_part_of_the_prox():
    p = sp.L1(WEIGHT) + sp.Box(LOW, 1e9)
    v = draw(5)
    np.testing.assert_array_equal(p.restrict(slice(2, 5)).prox(v[2:5], 0.7), p.prox(v, 0.7)[2:5])
    p = sp.Blocks([(slice(1, 3), p.restrict(slice(1, 3))), (slice(4, None), sp.L1([3.0, 4.0]))])
    for rows in (slice(2, 5), slice(0, 1), slice(0, 6), slice(5, 6)):
        np.testing.assert_array_equal(p.restrict(rows).prox(v[rows], 0.7), p.prox(v, 0.7)[rows])
    for whole in (sp.Simplex(), sp.Blocks([(range(3), sp.Simplex())])):
        with pytest.raises(sp.ProblemError, match="not a sum over coordinates"):
            whole.restrict(slice(0, 2))


@every
def test_functions_survive_pickling(name):
    p, v = SIMPLE[name], draw(8)
    p.prox(v.astype(np.float32), 0.4)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(p)).prox(v, 0.4), p.prox(v, 0.4))


# -- one's own ---------------------------------------------------------------------------------------------------------


def own(**changes):
    arguments = {"prox": lambda v, t: np.sign(v) * np.maximum(abs(v) - t, 0.0), "value": lambda x: np.abs(x).sum()}
    return sp.Simple(**(arguments | changes))


def test_a_function_that_the_caller_wrote_proves_what_it_knows():
    p, v = own(), draw(9)
    xh = p.prox(v, 0.5)
    s = (v - xh) / 0.5
    ready = sp.L1().bregman(v, xh, s)
    assert ready <= p.bregman(v, xh, s) <= ready + 1e-10
    assert not p.structured
    assert p.outside(v) == 0.0
    assert p.project(v) is v
    assert p.fenchel_gap(v, s) == math.inf
    assert own(value=None).bregman(v, xh, s) == math.inf
    assert (p.support(v, s, 0.0, 0.0) == sp.Support.UNDECIDED).all()
    bounded = own(conjugate=lambda s: 0.0 if np.abs(s).max() <= 1.0 else math.inf)
    s = sp.L1().dual_point(s)
    assert sp.L1().fenchel_gap(v, s) <= bounded.fenchel_gap(v, s) <= sp.L1().fenchel_gap(v, s) + 1e-10


def test_a_constraint_that_the_caller_wrote_needs_a_projection_to_measure_distances():
    p = sp.Simple(lambda v, t: np.maximum(v, 0.0), lambda x: 0.0 if x.min() >= 0.0 else math.inf)
    assert p.outside(np.array([-1.0])) == math.inf
    p = sp.Simple(lambda v, t: np.maximum(v, 0.0), project=lambda v: np.maximum(v, 0.0))
    assert p.outside(np.array([-1.0, 2.0])) == pytest.approx(1.0)
    with pytest.raises(sp.ProblemError, match="no value"):
        p(np.ones(2))
    with pytest.raises(sp.ProblemError, match="no conjugate"):
        p.conjugate(np.ones(2))


class Soft:
    """An operator as those of pyproximal."""

    def __call__(self, x):
        return np.abs(x).sum()

    def prox(self, x, tau):
        if tau <= 0:
            raise ValueError("tau must be positive")
        return np.sign(x) * np.maximum(np.abs(x) - tau, 0.0)


def test_operators_of_other_libraries_are_taken():
    p, v = sp.as_simple(Soft()), draw(11)
    np.testing.assert_array_equal(p.prox(v, 0.3), sp.L1().prox(v, 0.3))
    assert not p.has_value
    assert sp.as_simple(p) is p
    assert refuted_prox(sp.Simple(Soft().prox, Soft()), POINTS) is None


# -- a prox that is none -----------------------------------------------------------------------------------------------

POINTS = [draw(seed, scale=0.3) for seed in range(4)]


@every
def test_every_prox_satisfies_the_inequalities(name):
    for dtype in (np.float64, np.float32):
        assert refuted_prox(SIMPLE[name], [v.astype(dtype) for v in POINTS]) is None


@pytest.mark.parametrize(
    ("prox", "value", "message"),
    [
        (lambda v, t: 2.0 * v, None, "not the prox of a convex function"),
        (lambda v, t: -v, None, "not the prox of a convex function"),
        (lambda v, t: np.where(np.abs(v) > 0.5, v, 0.0), None, "not the prox of a convex function"),
        (lambda v, t: np.round(v), None, "not the prox of a convex function"),
        (lambda v, t: v * t / (1.0 + t), None, "look at how it depends on t"),
        (lambda v, t: np.sign(v) * np.maximum(abs(v) - 0.3, 0.0), None, "look at how it depends on t"),
        (lambda v, t: np.sign(v) * np.maximum(abs(v) - 0.3, 0.0), lambda x: np.abs(x).sum(), "prox and value do not"),
        (lambda v, t: np.maximum(v - t, 0.0), lambda x: 2.0 * x.sum(), "prox and value do not belong"),
        (lambda v, t: np.maximum(v, 0.0), lambda x: 0.0 if x.min() > 0.0 else math.inf, "value is inf at a result"),
        (lambda v, t: v[:2], None, r"prox returned an array of shape \(2,\); expected an array of shape \(6,\)"),
        (lambda v, t: None, None, "prox returned a NoneType"),
        (lambda v, t: v.astype(np.float32), None, "dtype float32; expected ndarray of dtype float64"),
        (lambda v, t: np.full(N, np.nan), None, "NaN or infinity at a finite point"),
        (lambda v, t: np.maximum(v, 0.0, out=v), None, "changed its argument"),
    ],
)  # fmt: skip
def test_a_prox_that_is_none_is_found(prox, value, message):
    found = refuted_prox(sp.Simple(prox, value), [v.copy() for v in POINTS])
    assert re.search(message, found)


# -- libraries and dtypes ----------------------------------------------------------------------------------------------


def agrees_with_numpy(p, xp, v, t):
    for dtype, digits in (("float64", 1e-13), ("float32", 1e-5)):
        kind = getattr(xp, dtype)
        there = xp.asarray(v.tolist(), dtype=kind)
        x = p.prox(there, t)
        assert x.dtype == kind
        assert type(x) is type(there)
        here = np.asarray(v, dtype)
        expected = p.prox(here, t)
        assert expected.dtype == here.dtype
        np.testing.assert_allclose(to_host(x), expected, rtol=digits, atol=digits)
        s = p.dual_point((there - x) * (1.0 / t))
        assert s.dtype == kind
        assert p.project(there).dtype == kind
        assert p.outside(x) <= digits * 10
        assert p.value(x) == pytest.approx(p.value(expected), rel=10 * digits)
        assert p.conjugate(s) < math.inf
        slack = 1e-12 if dtype == "float64" else 1e-2
        floor = floor_of(p, to_host(x), to_host(s)) + 1e-290
        assert p.fenchel_gap(x, s) == pytest.approx(p.fenchel_gap(to_host(x), to_host(s)), rel=1e-12, abs=floor)
        mine, theirs = p.pairing(to_host(x), to_host(s)), p.pairing(x, s)
        assert theirs.s.dtype == kind
        assert theirs[1:] == pytest.approx(mine[1:], rel=1e-6, abs=1e-14)
        assert p.fenchel_gap(x, s) <= slack
        found = p.support(x, (x - there) * (1.0 / t), 1e-6, 1e-6)
        np.testing.assert_array_equal(found, p.support(to_host(x), (to_host(x) - here) / t, 1e-6, 1e-6))


@in_every_library("name", SIMPLE, few=["l1 and box", "simplex", "groups", "ball, l1"], quick=QUICK)
def test_other_libraries_agree(xp, name):
    agrees_with_numpy(SIMPLE[name], xp, draw(17), 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["l1 and box", "simplex", "groups", "ball, l1", "groups and l1 and nonnegative"])
def test_jax_compiles_a_prox(name):
    load_library("jax")
    jax, p, v = importlib.import_module("jax"), SIMPLE[name], draw(21)
    compiled = jax.jit(lambda v: p.prox(v, 0.3))
    for _ in range(2):
        np.testing.assert_allclose(compiled(jax.numpy.asarray(v)), p.prox(v, 0.3), rtol=1e-13, atol=1e-15)


@every
def test_points_in_float32_are_inside_exactly(name):
    p = SIMPLE[name]
    for seed in range(5):
        x = p.prox(draw(seed).astype(np.float32), 0.3)
        assert p.outside(x) <= (0.0 if p.separable else 1e-6)
        s = p.dual_point(draw(seed).astype(np.float32))
        assert p.conjugate(s.astype(np.float64)) < math.inf or isinstance(p, sp.Hyperplane)


@pytest.mark.parametrize(("size", "refused"), [(3e-15, False), (1e-9, False), (1e-3, True)])
def test_errors_of_a_projection_are_rounding_or_measured_or_refused(size, refused):
    """A projection that is wrong by a few roundings is a prox; a larger error is measured, and a large one refused."""
    plane, rng = sp.Hyperplane(np.ones(N), 0.4), np.random.default_rng(3)
    p = sp.Simple(lambda v, t: plane.prox(v, t) + size * rng.standard_normal(N))
    v = draw(3)
    found = refuted_prox(p, [v, v + 0.2, v - 0.3])
    assert (found is not None and "too inexact for a proof" in found) == refused
    assert refused or (p.inexact >= size if size > 1e-12 else p.inexact == 0.0)


@pytest.mark.parametrize("p", [sp.Box(-0.1, 0.7), sp.L1(0.3) + sp.Box(np.full(N, -0.1), 0.7)])
def test_a_point_in_float32_is_paired_with_the_bounds_that_float32_does_not_have(p):
    """The gap is that of the exact bounds, which are next to the stored point."""
    x = p.prox(np.array([-3.0, 2.0, 0.2, 5.0, -0.05, 3.0]).astype(np.float32), 0.1)
    s = np.array([-2.0, 3.0, p.weight.most, 1.0, -p.weight.most, 0.5])
    pair, exact = p.pairing(x, s), np.where(x < -0.09, -0.1, np.where(x > 0.69, 0.7, x.astype(np.float64)))
    assert np.linalg.norm(exact - x) <= pair.off_x <= 1e-7
    assert gap_of_norm_and_box(p, exact, s) <= pair.gap <= 1e-14 < p.fenchel_gap(x, s) == pair.gap_at_x
    assert p.pairing(x.astype(np.float64), s)[1:] == pair[1:]
    wide = p.pairing(exact, s)
    assert wide.off_x == 0.0


# -- invalid input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sp.L1(-1.0), r"weight of L1 is -1; expected finite numbers that are not negative"),
        (lambda: sp.L1([1.0, -2.0]), r"weight of L1 is -2 at index 1"),
        (lambda: sp.L1(math.inf), r"weight of L1 is inf; expected finite"),
        (lambda: sp.L1(math.nan), r"weight of L1 is NaN"),
        (lambda: sp.L1([1.0, math.nan]), r"weight of L1 has a NaN at index 1"),
        (lambda: sp.L1("one"), r"weight of L1 is 'one'; expected a number"),
        (lambda: sp.L1(np.ones((2, 2))), r"weight of L1 has shape \(2, 2\)"),
        (lambda: sp.L1([]), r"weight of L1 is empty"),
        (lambda: sp.Box(1.0, 0.0), r"lower = 1 and upper = 0 of Box; expected lower <= upper"),
        (lambda: sp.Box([0.0, 2.0], 1.0), r"lower = 2 and upper = 1 of Box at index 1"),
        (lambda: sp.Box(math.inf, math.inf), r"the box is empty"),
        (lambda: sp.Box(np.zeros(2), np.ones(3)), r"lower of Box has 2 and upper of Box has 3 entries"),
        (lambda: sp.Simplex(0.0), r"total of Simplex is 0.0; expected a positive number"),
        (lambda: sp.Simplex(-1), r"total of Simplex is -1.0"),
        (lambda: sp.Norm2(-1.0), r"weight of Norm2 is -1; expected finite numbers that are not negative"),
        (lambda: sp.Groups(), r"neither groups nor shape"),
        (lambda: sp.Groups([0, 1], math.inf), r"weight of Groups is inf; expected finite"),
        (lambda: sp.Groups([0, 1], [1.0, -1.0]), r"weight of Groups is -1 at index 1"),
        (lambda: sp.Groups([0, 1, 1], [1.0, 1.0, 1.0]), r"has 3 entries; expected one for each of the 2 groups"),
        (lambda: sp.Groups([[0, 1], [1, 2]]), r"coordinate 1 is in groups 0 and 1 of Groups; expected groups without"),
        (lambda: sp.Groups([[0, 1, 0]]), r"coordinate 0 is in group 0 more than once"),
        (lambda: sp.Groups([[0, -1]]), r"group 0 of Groups is \[0, -1\]; expected a list of coordinates from 0 on"),
        (lambda: sp.Groups([[0], slice(1, None)]), r"group 1 of Groups is slice.*; expected a slice with a start"),
        (lambda: sp.Groups([]), r"groups of Groups is empty"),
        (lambda: sp.Groups([0], shape=(1, 1)), r"both groups and shape"),
        (lambda: sp.Groups(shape=(2, 3), axis=2), r"axis of Groups is 2"),
        (lambda: sp.GroupBalls(), r"neither groups nor shape"),
        (lambda: sp.GroupBalls([0, 0], math.nan), r"radius of GroupBalls is NaN"),
        (lambda: sp.Ball(0.0), r"radius of Ball is 0.0; expected a positive number"),
        (lambda: sp.Ball(1.0, norm=3), r'norm of Ball is 3; expected 1, 2 or "inf"'),
        (lambda: sp.Ball(1.0, center=[0.0, math.inf]), r"center of Ball is infinite; expected finite numbers"),
        (lambda: sp.Ball(1.0, center=[0.0, math.nan]), r"center of Ball has a NaN at index 1"),
        (lambda: sp.Ball(1.0, center=[0.0, 1.0]).validate(3), r"function of 2 coordinates, but x has 3"),
        (lambda: sp.Groups([0, 0]) + sp.L1([1.0]), r"cannot add Groups\(1 groups\) of 2 coordinates"),
        (lambda: sp.Groups([0, 0]) + sp.Box(-1.0, 1.0), r"is not known"),
        (lambda: sp.Hyperplane([0.0, 0.0], 1.0), r"a of Hyperplane is zero"),
        (lambda: sp.Hyperplane([1.0, math.nan], 1.0), r"a of Hyperplane has a nan at index 1"),
        (lambda: sp.Hyperplane([1.0], math.inf), r"b of Hyperplane is inf; expected a finite number"),
        (lambda: sp.Hyperplane([1e200], 1.0), r"has entries up to 1e\+200; divide a and b"),
        (lambda: sp.Nuclear(3), r"shape of Nuclear is 3; expected the numbers of rows and columns"),
        (lambda: sp.Nuclear((3, 0)), r"shape of Nuclear is 0; expected a whole number from 1"),
        (lambda: sp.Nuclear((3, 2), -1.0), r"weight of Nuclear is -1; expected a finite number that is not negative"),
        (lambda: sp.Nuclear((3, 2)).validate(5), r"function of 6 coordinates, but x has 5"),
        (lambda: sp.Blocks({}), r"Blocks is empty"),
        (lambda: sp.Blocks(3), r"Blocks was given 3; expected a dictionary or a list of pairs"),
        (lambda: sp.Blocks({(0, 3): sp.L1(), (2, 4): sp.Simplex()}), r"L1\(1\) at 0:3 and .* from 2 on overlap"),
        (lambda: sp.Blocks([(slice(0, None), sp.L1()), ((2, 4), sp.L1())]), r"overlap in Blocks"),
        (lambda: sp.Blocks({(0, 3): abs}), r"is no simple function"),
        (lambda: sp.Blocks({(3, 3): sp.L1()}), r"\(3, 3\) of Blocks is no range"),
        (lambda: sp.Blocks({range(0, 6, 2): sp.L1()}), r"of Blocks is no range"),
        (lambda: sp.Blocks({(-2, 3): sp.L1()}), r"of Blocks is no range"),
        (lambda: sp.Blocks({2: sp.L1()}), r"2 of Blocks is no range"),
        (lambda: sp.Blocks({(0, 3): sp.L1()}).validate(2), r"for the coordinates 0:3, but x has 2"),
        (lambda: sp.Blocks({(0, 3): sp.L1([1.0])}).validate(4), r"function of 1 coordinates, but x\[0:3\] has 3"),
        (lambda: sp.as_simple(3, "the term"), r"the term is 3; expected a simple function"),
        (lambda: sp.as_simple(sp.L1), r"expected a simple function"),
        (lambda: sp.Simple(3), r"prox of Simple is 3; expected a function"),
        (lambda: sp.Simple(abs, 3), r"value of Simple is 3; expected a function"),
        (lambda: own(diameter=-1.0), r"diameter of Simple is -1"),
        (lambda: own(dim=0), r"dim of Simple is 0"),
        (lambda: sp.L1(np.ones(3)).validate(4, "y"), r"is a function of 3 coordinates, but y has 4"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(sp.ProblemError, match=message):
        make()


def test_sizes_are_checked():
    sp.L1(np.ones(3)).validate(3)
    sp.L1().validate(7)
    own(dim=4).validate(4)
    with pytest.raises(sp.ProblemError, match="function of 4 coordinates, but x has 3"):
        own(dim=4).validate(3)
