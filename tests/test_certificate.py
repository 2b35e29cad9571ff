"""The certificate: one formula for single problems and for blocks, true and tight at every scale."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_arrays import xp  # noqa: F401 - xp is a fixture

import saddlepoint as sp
from saddlepoint.theory import (
    certificate_from_residuals,
    certificates_from_residuals,
    equations_bound,
    equations_certificate,
    norm_sum_lower,
    norm_sum_upper,
)
from saddlepoint.theory.certificate import LEAST, NO_CERTIFICATE, UP, Certificate

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
    """From 1e-300 to 1e300, where squares and quotients overflow and underflow."""
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
    """To four units of rounding: math.hypot and np.hypot may differ in the last bit."""
    blocks = certificates_from_residuals(*np.array(rows).T)
    for found, row in zip(blocks.each(), rows, strict=True):
        assert all(type(value) is float for value in found)
        np.testing.assert_allclose(found, certificate_from_residuals(*row), rtol=4 * np.finfo(float).eps, atol=LEAST)


def test_numbers_serve_all_blocks():
    found = certificates_from_residuals(1.0, 2.0, np.array([0.0, 3.0]), np.array([1.0, 4.0]), 0.0, 0.0, 0.5, 0.0)
    assert found.each() == [
        pytest.approx(certificate_from_residuals(1.0, 2.0, Rx, Ry, noise_x=0.5), rel=1e-15)
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
    """Residuals by 2^k: distances by 2^k and the gap by 2^2k. And mu by 4^j, residuals by 2^j: distances by 2^-j."""
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


@pytest.mark.parametrize("mu", [0.0, -0.0, -1.0, SMALLEST, math.nan])
@pytest.mark.parametrize("side", [0, 1])
def test_nothing_is_proven_without_a_positive_mu(mu, side):
    mus = [1.0, 1.0]
    mus[side] = mu
    assert certificate_from_residuals(*mus, 0.0, 0.0)[:5] == (math.inf,) * 5
    assert certificate_from_residuals(*mus, 0.0, 0.0)[5:] == (0.0, 0.0, 0.0, 0.0)


def test_a_positive_bound_is_never_zero():
    for Rx, Ry in ((SMALLEST, 0.0), (0.0, SMALLEST)):
        found = certificate_from_residuals(1e300, 1e300, Rx, Ry)
        assert 0.0 < min(found.distance, found.distance_x, found.distance_y, found.gap) < 1e-320
        assert found.rounding == 0.0
    # |y - y*| <= |Rx|/sqrt(mu_x mu_y) although |Rx|/sqrt(mu_x) underflows
    assert certificate_from_residuals(1e300, 1e-300, 1e-200, 0.0).distance_y == pytest.approx(1e-200)


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
    """Any point and any dual vector: the lower end is below the value at every point."""
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
