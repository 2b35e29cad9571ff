"""The certificate: one formula for single problems and for blocks, correct and tight at every scale."""

import ast
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sps
from exact import exact as fractions_of
from exact import solved
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import saddlepoint as sp
from saddlepoint.ground.arrays import NUMPY64, space_of, to_host
from saddlepoint.ground.linalg import norm, norms
from saddlepoint.parts.coupling import DenseCoupling
from saddlepoint.problems import residuals
from saddlepoint.theory import (
    bounded_multipliers_bound,
    certificate_from_residuals,
    certificates_from_residuals,
    distance_from_gap,
    equations_bound,
    equations_certificate,
    norm_sum_lower,
    norm_sum_upper,
)
from saddlepoint.theory.certificate import LEAST, NO_CERTIFICATE, NORMAL, UP, Certificate
from saddlepoint.uses.batch import Batch, solve_many

BOUNDS = ("distance", "distance_x", "distance_y", "gap", "rounding")
SMALLEST, LARGEST = math.ulp(0.0), float(np.finfo(float).max)

numbers = st.floats(1e-300, 1e300)
lengths = st.just(0.0) | numbers
arguments = st.tuples(numbers, numbers, *[lengths] * 6)


def exact_squares(mu_x, mu_y, Rx, Ry, slack_x, slack_y, noise_x, noise_y):
    """The squares of the bounds in rational numbers (of the gap, the bound itself)."""
    mu_x, mu_y = Fraction(mu_x), Fraction(mu_y)

    def weighted(x, y):
        return x * x / mu_x + y * y / mu_y

    error = Fraction(slack_x) + Fraction(noise_x), Fraction(slack_y) + Fraction(noise_y)
    W = weighted(Fraction(Rx) + error[0], Fraction(Ry) + error[1])
    both = 1 / mu_x + 1 / mu_y
    return {
        "distance": both * W,
        "distance_x": W / mu_x,
        "distance_y": W / mu_y,
        "gap": W / 2,
        "rounding": both * weighted(*error),
    }


# -- the formula -------------------------------------------------------------------------------------------------------


@given(arguments)
def test_every_bound_is_rounded_up_and_by_little(given_):
    """Numbers from 1e-300 to 1e300, of which squares and quotients overflow and underflow."""
    found = certificate_from_residuals(*given_)
    for name, exact in exact_squares(*given_).items():
        bound = getattr(found, name)
        if bound == math.inf:  # the bound itself, or a sum of residuals, is beyond float64
            size = exact if name == "gap" else Fraction(math.isqrt(int(exact)))
            assert 16 * size > LARGEST or sum(given_) > LARGEST or exact == 0
            continue
        power = 1 if name == "gap" else 2
        assert Fraction(bound) ** power >= exact
        assert max(Fraction(bound) - Fraction(3 * LEAST), Fraction(0)) ** power <= exact * Fraction(UP) ** (4 * power)
        assert (bound == 0.0) == (exact == 0)


@given(st.lists(arguments, min_size=1, max_size=6))
def test_blocks_and_single_problems_agree(rows):
    """The two agree to four units of rounding, because math.hypot and np.hypot may differ in the last bit."""
    blocks = certificates_from_residuals(*np.array(rows).T)
    for found, row in zip(blocks.each(), rows, strict=True):
        assert all(type(value) is float for value in found[:-1])
        np.testing.assert_allclose(
            found[:-1], certificate_from_residuals(*row)[:-1], rtol=4 * np.finfo(float).eps, atol=LEAST
        )


def test_a_number_holds_for_all_blocks():
    found = certificates_from_residuals(1.0, 2.0, np.array([0.0, 3.0]), np.array([1.0, 4.0]), 0.0, 0.0, 0.5, 0.0)
    assert [proof[:-1] for proof in found.each()] == [
        pytest.approx(certificate_from_residuals(1.0, 2.0, Rx, Ry, noise_x=0.5)[:-1], rel=1e-15)
        for Rx, Ry in ((0.0, 1.0), (3.0, 4.0))
    ]


@given(arguments, st.integers(2, 7), st.floats(1.0, 1e3))
def test_larger_residuals_slack_and_noise_never_prove_more(given_, which, factor):
    more = list(given_)
    more[which] = max(factor * more[which], 1e-310)
    before, after = certificate_from_residuals(*given_), certificate_from_residuals(*more)
    for name in BOUNDS:
        if name != "rounding" or which >= 4:
            assert getattr(after, name) >= getattr(before, name) * (1 - 4e-16)


@given(arguments, st.integers(0, 1), st.floats(1.0, 1e3))
def test_a_larger_mu_never_proves_less(given_, which, factor):
    more = list(given_)
    more[which] *= factor
    if more[which] < 1e300:
        before, after = certificate_from_residuals(*given_), certificate_from_residuals(*more)
        for name in BOUNDS:
            assert getattr(after, name) <= getattr(before, name) * (1 + 4e-16)


ordinary = st.floats(1e-30, 1e30)


@given(st.tuples(*[ordinary] * 8), st.integers(-200, 200), st.integers(-100, 100))
def test_powers_of_two_scale_exactly(given_, length, stiffness):
    """Scaling residuals by 2^k scales distances by 2^k; scaling mu by 4^j and residuals by 2^j divides them by 2^j."""
    found = certificate_from_residuals(*given_)
    mu, rest = given_[:2], given_[2:]
    longer = certificate_from_residuals(*mu, *(math.ldexp(value, length) for value in rest))
    stiffer = certificate_from_residuals(
        *(math.ldexp(value, 2 * stiffness) for value in mu), *(math.ldexp(value, stiffness) for value in rest)
    )
    for name in BOUNDS:
        bound = getattr(found, name)
        assert getattr(longer, name) == math.ldexp(bound, (2 if name == "gap" else 1) * length)
        assert getattr(stiffer, name) == (bound if name == "gap" else math.ldexp(bound, -stiffness))


@given(st.floats(NORMAL, LARGEST), st.floats(0.0, LARGEST))
def test_the_distance_by_a_gap_is_rounded_up_and_by_little(mu, gap):
    """Quotients of such numbers underflow to zero, and overflow."""
    bound, exact = distance_from_gap(mu, gap), 2 * Fraction(gap) / Fraction(mu)
    if bound < math.inf:
        assert Fraction(bound) ** 2 >= exact
        assert max(Fraction(bound) - Fraction(3 * LEAST), Fraction(0)) ** 2 <= exact * Fraction(UP) ** 4
        assert (bound == 0.0) == (gap == 0.0)


@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, 0.5 * NORMAL])
def test_no_distance_follows_from_a_gap_without_a_positive_mu(mu):
    assert distance_from_gap(mu, 0.0) == distance_from_gap(mu, 1.0) == math.inf


def test_no_certificate_is_made_elsewhere():
    """All come from ``theory``; a file that was saved holds the numbers of one."""
    source = Path(sp.__file__).parent
    found = set()
    for path in source.rglob("*.py"):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        if {"Certificate", "BlockCertificates"} & {func.id for func in calls if isinstance(func, ast.Name)}:
            found.add(str(path.relative_to(source)))
    assert found == {"theory/certificate.py", "theory/equations.py", "solving/result_file.py"}


@pytest.mark.parametrize("which", range(8))
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nothing_is_proven_from_what_is_not_finite(which, bad):
    given_ = [1.0, 2.0, 3.0, 4.0, 0.1, 0.1, 0.1, 0.1]
    given_[which] = bad
    assert certificate_from_residuals(*given_)[:5] == (math.inf,) * 5
    blocks = certificates_from_residuals(*np.array([given_, [1.0] * 8]).T)
    assert blocks.each()[0][:5] == (math.inf,) * 5
    assert blocks.each()[1].distance == pytest.approx(6.0)
    assert blocks.worst()[:5] == (math.inf,) * 5


@pytest.mark.parametrize("side", [0, 1])
def test_without_strong_convexity_the_distance_of_that_side_is_not_proven(side):
    """In an unbounded domain nothing is proven from a residual that is not 0; if all are 0, the gap is 0."""
    mus, residuals = [1.0, 1.0], [0.0, 0.0]
    mus[side], residuals[side] = 0.0, 1e-9
    assert certificate_from_residuals(*mus, *residuals)[:5] == (math.inf,) * 5
    proof = certificate_from_residuals(*mus, 0.0, 0.0)
    assert proof.distance == (proof.distance_x, proof.distance_y)[side] == math.inf
    assert proof.gap == (proof.distance_y, proof.distance_x)[side] == 0.0


@pytest.mark.parametrize("mu", [-1.0, SMALLEST, math.nan])
@pytest.mark.parametrize("side", [0, 1])
def test_nothing_is_proven_without_a_positive_mu(mu, side):
    mus = [1.0, 1.0]
    mus[side] = mu
    assert certificate_from_residuals(*mus, 0.0, 0.0)[:5] == (math.inf,) * 5
    assert certificate_from_residuals(*mus, 0.0, 0.0)[5:] == (0.0, 0.0, 0.0, 0.0, ())


def test_a_positive_bound_is_never_zero():
    for Rx, Ry in ((SMALLEST, 0.0), (0.0, SMALLEST)):
        found = certificate_from_residuals(1e300, 1e300, Rx, Ry)
        assert 0.0 < min(found.distance, found.distance_x, found.distance_y, found.gap) < 1e-320
        assert found.rounding == 0.0
    # |y - y*| <= |Rx|/sqrt(mu_x mu_y) although |Rx|/sqrt(mu_x) underflows
    assert certificate_from_residuals(1e300, 1e-300, 1e-200, 0.0).distance_y == pytest.approx(1e-200)


@pytest.mark.parametrize(
    ("mu_y", "terms"), [(0.0, {"diameters": (math.inf, 1.0)}), (1.0, {"outside": (SMALLEST, 0.0)})]
)
@pytest.mark.parametrize("Rx", [SMALLEST, 1e-200, 1e-170, 1e-162])
def test_distances_whose_squares_underflow_are_certified_with_terms(mu_y, terms, Rx):
    """For g(x) = x^2/2 - Rx x and h = 0, the point x = 0 is Rx away from x*; it was certified as 0.0 away."""
    found = certificate_from_residuals(1.0, mu_y, Rx, 0.0, **terms)
    assert Rx <= found.distance_x <= max(2.0 * Rx, 1e-160)
    assert found.gap > 0.0


def test_the_worst_of_blocks_holds_for_all():
    blocks = certificates_from_residuals(
        np.array([1.0, 1e-4]), np.array([1e-4, 1.0]), np.array([1.0, 1e-3]), np.array([0.0, 2e-3]), *np.zeros((4, 2))
    )
    each, worst = blocks.each(), blocks.worst()
    for name in BOUNDS[:4]:
        assert getattr(worst, name) == max(getattr(block, name) for block in each)
    assert worst.residual == pytest.approx(math.hypot(1.0, 1e-3, 2e-3))


def test_nothing_is_proven_yet():
    assert NO_CERTIFICATE[:7] == (math.inf,) * 7
    assert NO_CERTIFICATE.residual == math.inf
    assert repr(NO_CERTIFICATE) == "Certificate(|x-x*| + |y-y*| <= inf, duality gap <= inf)"
    assert sp.Certificate is Certificate


def test_words_leave_out_the_side_without_a_bound():
    one_side = NO_CERTIFICATE._replace(distance_x=0.5, gap=0.25)
    assert repr(one_side) == "Certificate(|x-x*| <= 0.5, duality gap <= 0.25)"
    assert repr(one_side._replace(distance_x=math.inf)) == "Certificate(duality gap <= 0.25)"
    assert one_side._replace(distance=2.0).words("gap") == "|x-x*| + |y-y*| <= 2, gap <= 0.25"


# -- the theorems of applications --------------------------------------------------------------------------------------


@given(*[st.floats(1e-120, 1e120)] * 2, st.floats(1.0, 1e9), st.floats(1e-9, 1.0), st.floats(1e-60, 1e60))
def test_equations_bound_is_the_larger_root(r, q, kappa, sigma, mu):
    """It satisfies mu d^2 >= (r + L q/sigma) d + q r/sigma in rational numbers, and hardly more than that."""

    def excess(d):
        exact = [Fraction(value) for value in (mu, kappa * mu, sigma, r, q)]
        m, L, s, a, b = exact
        return m * d * d - (a + L * b / s) * d - a * b / s

    d = Fraction(equations_bound(mu, kappa * mu, sigma, r, q))
    assert excess(d) >= 0
    assert excess(d * (1 - Fraction(1, 10**14))) < 0


@given(*[st.floats(1e-120, 1e120)] * 2, st.floats(1e-60, 1e60), st.floats(1e-60, 1e60))
def test_the_bound_with_bounded_multipliers_is_the_larger_root(r, q, B, mu):
    """It satisfies mu d^2 >= r d + q B in rational numbers, and hardly more than that."""

    def excess(d):
        m, a, b, c = (Fraction(value) for value in (mu, r, q, B))
        return m * d * d - a * d - b * c

    d = Fraction(bounded_multipliers_bound(mu, r, q, B))
    assert excess(d) >= 0
    assert excess(d * (1 - Fraction(1, 10**14))) < 0
    assert bounded_multipliers_bound(0.0, r, q, B) == bounded_multipliers_bound(mu, r, q, math.inf) == math.inf


def test_equations_bound_of_a_feasible_point_is_that_of_strong_convexity():
    assert equations_bound(0.1, 5.0, 0.5, 0.3, 0.0) == pytest.approx(3.0)
    assert equations_bound(0.1, 5.0, 0.5, 0.0, 0.0) == 0.0
    assert equations_bound(0.1, 5.0, 0.5, 1e-200, 1e-200) > 1e-199
    for bad in ((0.0, 5.0, 0.5, 0.3, 0.0), (0.1, 5.0, 0.0, 0.3, 0.2), (0.1, 5.0, 0.5, math.nan, 0.2)):
        assert equations_bound(*bad) == math.inf


@given(st.integers(0, 10**6), st.sampled_from([1e-9, 1e-3, 1.0, 1e3]))
def test_equations_certificate_is_true(seed, spread):
    """Quadratic functions subject to equations, whose solution is that of a linear system."""
    rng = np.random.default_rng(seed)
    P = np.diag(np.geomspace(0.1, 2.0, 5))
    b, E, e = rng.standard_normal(5), rng.standard_normal((2, 5)), rng.standard_normal(2)
    solution = np.linalg.solve(np.block([[P, E.T], [E, np.zeros((2, 2))]]), np.concatenate([-b, e]))
    w, y = np.split(solution + spread * rng.standard_normal(7), [5])
    found = equations_certificate(
        0.1, 2.0, np.linalg.svd(E)[1][-1], np.linalg.norm(P @ w + b + E.T @ y), np.linalg.norm(E @ w - e), 1e-14, 1e-14
    )
    assert np.linalg.norm(w - solution[:5]) <= found.distance + 1e-13
    assert 0.0 < found.rounding < found.distance
    assert repr(found).startswith("EquationsCertificate(|w-w*| <= ")


@given(st.integers(0, 10**6), st.floats(0.01, 10.0))
def test_norm_sum_bounds_enclose_every_value(seed, radius):
    """For any point and any dual vector, the lower end is below the value at every point."""
    rng = np.random.default_rng(seed)
    B, s, u = rng.standard_normal((6, 3)), rng.standard_normal(6), rng.standard_normal(6)
    lower = norm_sum_lower(radius, s @ u, np.linalg.norm(u), np.linalg.norm(B.T @ u))
    for w in (np.zeros(3), rng.standard_normal(3), np.linalg.lstsq(B, s)[0]):
        upper = norm_sum_upper(radius, np.linalg.norm(B @ w - s), np.linalg.norm(w))
        assert 0.0 <= lower <= upper * (1 + 1e-14)


def test_norm_sum_bounds_meet_at_a_solution():
    """For a radius above |B's|/|s| the minimiser is w = 0, and u = -s/|s| proves it."""
    rng = np.random.default_rng(0)
    B, s = rng.standard_normal((6, 3)), rng.standard_normal(6)
    radius = 1.1 * np.linalg.norm(B.T @ s) / np.linalg.norm(s)
    lower = norm_sum_lower(radius, -(s @ s), np.linalg.norm(s), np.linalg.norm(B.T @ s))
    assert lower == pytest.approx(norm_sum_upper(radius, np.linalg.norm(s), 0.0))
    assert norm_sum_lower(radius, 1.0, 0.0, 0.0) == 0.0


# -- problems with exact solutions -------------------------------------------------------------------------------------


def exact_saddle_point(p, b, q, c, A):
    """The saddle point of p x^2/2 + b x + x A y - q y^2/2 - c y, with p and q for every variable."""
    system = np.block([[np.diag(p), A], [-A.T, np.diag(q)]])
    solution = solved(fractions_of(system), [-value for value in fractions_of((*b, *c))])
    return solution[: len(p)], solution[len(p) :]


def squared_distance(found, exact):
    return sum((Fraction(float(a)) - b) ** 2 for a, b in zip(found, exact, strict=True))


def random_data(rng, scale=1.0, M=3, N=2):
    p, q = np.geomspace(10.0 ** rng.uniform(-3, 0), 1.0, M), np.geomspace(10.0 ** rng.uniform(-3, 0), 2.0, N)
    b, c = scale * rng.standard_normal(M), scale * rng.standard_normal(N)
    return p, b, q, c, rng.standard_normal((M, N)) * 10.0 ** rng.uniform(-2, 1)


def quadratic_of(p, b, q, c, A):
    return sp.Saddle(sp.Quadratic(p, b), sp.Quadratic(q, c), A)


def holds(certificate, x, y, exact):
    """Whether the point is as near as the certificate says, decided in rational numbers."""
    dx, dy = squared_distance(x, exact[0]), squared_distance(y, exact[1])
    distance = Fraction(certificate.distance)
    both = dx <= Fraction(certificate.distance_x) ** 2 and dy <= Fraction(certificate.distance_y) ** 2
    # sqrt(dx) + sqrt(dy) <= d, squared twice
    rest = distance**2 - dx - dy
    return both and rest >= 0 and 4 * dx * dy <= rest**2


@given(st.integers(0, 10**6), st.integers(-290, 290), st.sampled_from([0.0, 1e-15, 1e-8, 1.0, 1e6]))
def test_the_solution_is_never_further_away_than_certified(seed, exponent, spread):
    """Solutions of sizes from 1e-290 to 1e290, and points near them and far from them."""
    rng = np.random.default_rng(seed)
    scale = 10.0**exponent
    data = random_data(rng, scale)
    exact = exact_saddle_point(*data)
    x, y = (
        np.array([float(value) for value in side]) + spread * scale * rng.standard_normal(len(side)) for side in exact
    )
    found = quadratic_of(*data).certificate(x, y)
    assert holds(found, x, y, exact)
    assert max(found.distance_x, found.distance_y) <= found.distance <= found.distance_x + found.distance_y


# -- batches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-170, 1e-155, 1.0, 1e155, 1e300])
def test_blocks_of_any_scale_are_certified_as_single_problems_are(scale, monkeypatch):
    """Values near 1e-170, whose squares underflow, were certified as 0.0."""
    monkeypatch.setattr(residuals, "ROUGH", 0.0)  # a batch has no rough bounds
    rng = np.random.default_rng(1)
    data = [random_data(rng, scale if b % 2 else 1.0) for b in range(4)]
    problems = [quadratic_of(*numbers) for numbers in data]
    batch = Batch.of(problems)
    x, y = np.zeros(4 * 3), np.zeros(4 * 2)
    found = batch.certificates(x, y)
    for certificate, f, numbers in zip(found, problems, data, strict=True):
        assert certificate.distance > 0.0
        own = f.certificate(np.zeros(3), np.zeros(2))
        np.testing.assert_allclose(certificate[:-1], own[:-1], rtol=1e-12, atol=1e-320)
        assert holds(certificate, np.zeros(3), np.zeros(2), exact_saddle_point(*numbers))
    worst = batch.worst(x, y)
    assert worst.distance == max(certificate.distance for certificate in found)
    assert worst.residual > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-170, 1e-100])
def test_tiny_problems_are_solved_together(scale):
    """tol is far below the solution, so the start is not good enough."""
    rng = np.random.default_rng(2)
    data = [random_data(rng, scale) for _ in range(3)]
    results = solve_many([quadratic_of(*numbers) for numbers in data], tol=1e-6 * scale, method="lpd-gs")
    for result, numbers in zip(results, data, strict=True):
        assert "solved together" in result.message
        assert result.solved, result
        assert 0.0 < result.certificate.distance <= 1e-6 * scale
        assert holds(result.certificate, result.x, result.y, exact_saddle_point(*numbers))
        assert result.x.any()


@pytest.mark.parametrize("entries", [1e-170, 1e170])
def test_the_rounding_of_products_of_any_scale_is_allowed_for(entries, monkeypatch):
    """A y cancels, so that its rounding error is far above |A y|; squares of the entries of A leave float64."""
    monkeypatch.setattr(residuals, "ROUGH", 0.0)  # a batch has no rough bounds
    A = entries * np.array([[[1.0, 1.0]], [[3.0, 1.0]]])
    batch = Batch(sp.Quadratic(1.0), sp.Quadratic(1.0), A)
    x, y = np.zeros(2), np.array([1.0, -1.0 + 2.0**-40, 1.0, -3.0])
    error = 2.0**-53 * entries
    _, _, slack_x, slack_y = batch.unscaled.residuals(batch.unscaled.gradients_and_products(x, y))
    assert (slack_x > error).all()
    for k, (block, part) in enumerate(zip(A, y.reshape(2, 2), strict=True)):
        single = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), block)
        _, _, *slack = single.residuals(single.gradients_and_products(np.zeros(1), part))
        np.testing.assert_allclose((slack_x[k], slack_y[k]), slack, rtol=1e-12)


# -- noise in the gradients of a batch ---------------------------------------------------------------------------------


LEVEL = 1e-6


def noisy_batch(seed, unequal=False, B=5, M=3):
    """Blocks with the gradient x_b + b_b of g_b and noise of size LEVEL in each entry; the exact solutions with it."""
    rng = np.random.default_rng(seed)
    b, c, A = rng.standard_normal(B * M), rng.standard_normal(B * 2), 0.3 * rng.standard_normal((B, M, 2))
    level = np.repeat(LEVEL * (10.0 ** -np.arange(B) if unequal else np.ones(B)), M)
    g = sp.Smooth(lambda x: x + b + level * np.sin(1e9 * x), mu=1.0, L=1.0)
    parts = zip(b.reshape(B, M), c.reshape(B, 2), A, strict=True)
    exact = [exact_saddle_point(np.ones(M), bb, np.ones(2), cb, Ab) for bb, cb, Ab in parts]
    return Batch(g, sp.Quadratic(1.0, c), A), exact


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_certificates_of_a_batch_allow_for_noise(seed, unequal):
    batch, exact = noisy_batch(seed, unequal)
    results = solve_many(batch, tol=1e-4, method="lpd-gs")
    for result, solution in zip(results, exact, strict=True):
        assert result.solved, result
        assert holds(result.certificate, result.x, result.y, solution)
        assert LEVEL < result.certificate.noise_x < 20 * LEVEL
        assert result.certificate.noise_y == 0.0
        assert result.certificate.rounding > LEVEL
    whole = sp.solve(batch.problem, tol=1e-4, method="lpd-gs")
    assert whole.certificate.distance == max(result.certificate.distance for result in results)


@pytest.mark.slow
@pytest.mark.parametrize("tol", [4e-6, 2e-6, 1e-6, 1e-9])
@pytest.mark.parametrize("seed", range(4))
def test_a_batch_is_not_solved_below_its_noise(seed, tol):
    """Certificates without the noise called such points solved, and were smaller than the true distance."""
    batch, exact = noisy_batch(seed)
    results = solve_many(batch, tol=tol, method="lpd-gs", max_calls=2000)
    for result, solution in zip(results, exact, strict=True):
        assert not result.solved
        assert "seems noisy" in result.message
        assert holds(result.certificate, result.x, result.y, solution)


def test_noise_counts_by_block_and_in_the_units_of_each(monkeypatch):
    """Blocks of very different mu: each allows for the noise of its own gradient, whatever the scaling of the run."""
    monkeypatch.setattr(residuals, "ROUGH", 0.0)  # a batch has no rough bounds
    rng = np.random.default_rng(0)
    mu = 10.0 ** np.array([-2.0, 0.0, 1.0])
    problems = [sp.Saddle(sp.Quadratic(m, rng.standard_normal(3)), sp.Quadratic(2.0), np.eye(3)) for m in mu]
    batch = Batch.of(problems)
    x, y = rng.standard_normal((2, 9))
    noise = (1e-3, 2e-3)
    found = batch.certificates(x, y, noise)
    for k, (f, certificate) in enumerate(zip(problems, found, strict=True)):
        scale = [slope[k] for slope in batch._slopes]
        f.noise = (noise[0] / scale[0], noise[1] / scale[1])
        own = f.certificate(x[3 * k : 3 * k + 3], y[3 * k : 3 * k + 3])
        np.testing.assert_allclose(certificate[:-1], own[:-1], rtol=1e-12)
        # in the variables of the whole, equal noise adds the same to the distance of every block
        assert own.rounding == pytest.approx(2**0.5 * math.hypot(*noise), rel=1e-9)


def test_blocks_are_not_called_solved_before_their_gradients_were_examined():
    """The last block takes long. The others begin at their solution, before their noise has been measured."""
    slope = np.repeat([0.0, 0.0, 1.0], 2)

    def results(trusted):
        g = sp.Smooth(lambda x: 1e-6 * x + slope, mu=1e-6, L=1.0, trusted=trusted)
        batch = Batch(g, sp.Quadratic(1.0), np.zeros((3, 2, 2)))
        return solve_many(batch, tol=1e-4, method="extragradient", max_calls=300)

    near = [result.certificate.distance <= 1e-4 for result in results(False)]
    assert near == [True, True, False]
    assert [result.solved for result in results(False)] == [False, False, False]
    assert "the gradients have not been examined" in results(False)[0].message
    assert [result.solved for result in results(True)] == near


# -- norms -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-100, 1.0, 1e100, 1e200])
def test_norms_of_blocks_are_those_of_their_rows_in_every_library(xp, scale):
    rng = np.random.default_rng(0)
    a = scale * rng.standard_normal((5, 7))
    a[2] = 0.0
    array = xp.asarray(a.tolist(), dtype=xp.float64)
    for axis in (0, 1):
        with np.errstate(over="ignore"):
            expected = [norm(np.ascontiguousarray(row)) for row in (a if axis else a.T)]
        found = norms(array, axis)
        assert space_of(found) == space_of(array)
        np.testing.assert_allclose(to_host(found), expected, rtol=1e-14)


@given(st.integers(-320, 300), st.integers(0, 10**6))
def test_norms_of_any_size_are_accurate(exponent, seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((4, 6)) * 10.0 ** (rng.uniform(-3, 3, (4, 1)) + exponent)
    exact = [sum(Fraction(value) ** 2 for value in row) for row in a.tolist()]
    for found, square in zip(norms(a, 1), exact, strict=True):
        assert abs(Fraction(float(found)) ** 2 - square) <= square / 10**14 + Fraction(4 * SMALLEST) ** 2 + Fraction(
            8 * SMALLEST
        ) * Fraction(float(found))


def test_norms_of_rows_that_are_not_finite_are_not_finite():
    found = norms(np.array([[1.0, math.inf], [math.nan, 1.0], [3.0, 4.0]]), 1)
    assert found[0] == math.inf
    assert math.isnan(found[1])
    assert found[2] == 5.0


@pytest.mark.parametrize("scale", [1e-170, 1e-10])
def test_batches_of_every_library_certify_alike(xp, scale):
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((3, 3, 2)), scale * rng.standard_normal(9)

    def batch(array):
        return Batch(sp.Quadratic(1.0, array(b)), sp.Quadratic(2.0), array(A))

    x, y = scale * rng.standard_normal(9), scale * rng.standard_normal(6)
    expected = batch(NUMPY64.cast).certificates(x, y)

    def array(a):
        return xp.asarray(np.asarray(a).tolist(), dtype=xp.float64)

    found = batch(array).certificates(array(x), array(y))
    for one, other in zip(found, expected, strict=True):
        assert 0.0 < one.distance < 100 * scale
        # outside NumPy, what may be flushed to zero is allowed for, which is far below these values
        np.testing.assert_allclose(one[:-1], other[:-1], rtol=1e-10, atol=1e-300)


# -- certificates in results -------------------------------------------------------------------------------------------


def test_saved_results_and_json_carry_all_fields(tmp_path):
    data = random_data(np.random.default_rng(5))
    result = sp.solve(quadratic_of(*data), tol=1e-8)
    assert 0.0 < result.certificate.distance_x <= result.certificate.distance
    found = json.loads(json.dumps(result.to_dict()))["certificate"]
    more = {"residual": result.certificate.residual, "assumes": list(result.certificate.assumes)}
    assert found == result.certificate._asdict() | more
    result.save(tmp_path / "result.npz")
    assert sp.load_result(tmp_path / "result.npz").certificate == result.certificate


# -- long sums ---------------------------------------------------------------------------------------------------------


def long_row(n, kind):
    """min_x max_y x^2/2 + 0.1 x (y_1 + ... + y_n) - |y|^2/2 with a slope at y: A y and A' x are long sums."""
    A = np.full((1, n), 0.1)
    return {"dense": A, "rows": sps.csr_array(A), "columns": sps.csc_array(A), "float32": A.astype(np.float32)}[kind]


@pytest.mark.parametrize("kind", ["dense", "rows", "columns", "float32"])
@pytest.mark.parametrize("transposed", [False, True])
def test_long_rows_of_equal_entries_are_certified_with_their_rounding(kind, transposed):
    """Sums of equal entries are rounded one way: the error of A y was 190 times what two units of rounding allow."""
    n = 100_000
    A = long_row(n, kind)
    entry = Fraction(float(A.dtype.type(0.1)))
    b = np.full(n, -1.0)  # y* = c (1, ..., 1) with c = 1/(1 + n entry^2), x* = -n entry c
    g, h = sp.Quadratic(1.0), sp.Quadratic(1.0, b)
    f = sp.Saddle(h, g, -A.T) if transposed else sp.Saddle(g, h, A)
    c = 1 / (1 + n * entry**2)
    x, y = np.array([float(-n * entry * c)]), np.full(n, float(c))
    error_x, error_y = abs(Fraction(float(x[0])) + n * entry * c), abs(Fraction(float(c)) - c)
    true = float(error_x) + float(error_y) * math.sqrt(n)
    point = (y, x) if transposed else (x, y)
    cheap, compensated = f.certificate(*point, tol=math.inf), f.certificate(*point)
    assert true <= compensated.distance <= cheap.distance
    assert cheap.rounding > 1e-12  # the bound for any order of summation
    assert compensated.distance < 1e-11


def test_more_digits_are_computed_only_where_rounding_decides():
    """The products in about twice the digits are computed only if they can bring the distance below tol."""
    calls = []

    class Counted(DenseCoupling):
        def compensated_mul(self, y):
            calls.append(1)
            return super().compensated_mul(y)

    rng = np.random.default_rng(0)
    f = sp.Saddle(
        sp.Quadratic(1.0, rng.standard_normal(300)), sp.Quadratic(1.0), Counted(rng.standard_normal((300, 200)))
    )
    result = sp.solve(f, tol=1e-6, method="direct")
    assert result.solved
    assert not calls
    far = f.certificate(np.ones(300), np.ones(200))
    assert not calls
    assert far.rounding < 1e-9 * far.distance
    cheap = f.certificate(result.x, result.y, tol=1.0)
    assert not calls
    compensated = f.certificate(result.x, result.y, tol=0.5 * cheap.rounding)
    assert calls
    assert compensated.rounding < 0.1 * cheap.rounding


def test_certificates_say_what_they_rest_on():
    ready = sp.Smooth(lambda x: 2.0 * x, mu=2.0, L=2.0, accuracy=0.0, trusted=True, quadratic=True)
    black = sp.Smooth(lambda x: 2.0 * x, mu=2.0, L=2.0)
    stated = sp.Smooth(lambda x: 2.0 * x, mu=2.0, L=2.0, accuracy=1e-9)
    unknown = sp.Smooth(lambda x: 2.0 * x, mu=None, L=2.0)

    def said(g, h, A):
        return " ".join(sp.Saddle(g, h, A).certificate(np.zeros(2), np.zeros(2)).assumes)

    assert said(ready, ready, np.eye(2)) == ""
    sentences = said(black, stated, aslinearoperator(np.eye(2)))
    assert "mu of g is 2, as given" in sentences
    assert "gradient of g is computed to within two units" in sentences
    assert "gradient of h is as accurate" in sentences
    assert "Products with A" in sentences
    assert "mu of h is unknown" in said(ready, unknown, np.eye(2))


def test_errors_of_an_operator_are_measured():
    """Products with terms that are far larger than A err by more than two units of rounding of |A| |y|."""
    rng = np.random.default_rng(0)
    A, large = rng.standard_normal((30, 20)), 1e7
    shift = np.full((30, 1), large)
    mul, tmul = (lambda y: (A + shift) @ y - shift[:, 0] * y.sum()), (lambda x: (A + shift).T @ x - large * x.sum())
    operator = LinearOperator(A.shape, matvec=mul, rmatvec=tmul, dtype=np.float64)
    g, h = sp.Quadratic(1.0, rng.standard_normal(30)), sp.Quadratic(1.0, rng.standard_normal(20))
    found = sp.solve(sp.Saddle(g, h, operator), tol=1e-5)
    assert found.solved
    assert min(found.certificate.noise_x, found.certificate.noise_y) > 1e-10
    error_x = np.linalg.norm(mul(found.y) - A @ found.y)
    assert found.certificate.noise_x > error_x
    plain = sp.solve(
        sp.Saddle(g, h, LinearOperator(A.shape, matvec=A.dot, rmatvec=A.T.dot, dtype=np.float64)), tol=1e-5
    )
    assert plain.certificate.noise_x <= 1e-14
