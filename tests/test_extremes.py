"""Extreme scales, condition numbers and sizes: a run is solved, or its status and certificate say what was reached.

The solution is known exactly: a well-scaled problem is multiplied by powers of two, or solved in rational arithmetic.
Every test runs with NumPy set to raise on overflow, underflow, division by zero and NaN; these settings must neither
break a run nor be changed by it.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from cases import case
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tiers import slow_except, thinned

import saddlepoint as sp
from saddlepoint.ground.linalg import norm
from saddlepoint.methods.registry import method_names
from saddlepoint.problems.generators import random_quadratic
from saddlepoint.problems.transforms import Units, in_units, safe_units
from saddlepoint.solving.result import Status
from saddlepoint.theory import lpd_gs_calls
from saddlepoint.theory.counts import MOST, countable

METHODS = [*method_names(), "auto"]
QUICK = ("auto",)
POSSIBLE = {Status.SOLVED, Status.STALLED, Status.OUT_OF_CALLS}
E150 = 498  # 2^498 is about 1e150
M, N = 7, 5


@pytest.fixture(autouse=True)
def float_errors_raise():
    with np.errstate(all="raise"):
        yield
        assert set(np.geterr().values()) == {"raise"}


def usual_data(dtype=np.float64):
    """P, Q, A, b, d of an ordinary problem."""
    rng = np.random.default_rng(0)
    A = 0.5 * rng.standard_normal((M, N))
    data = np.geomspace(0.05, 1.0, M), np.geomspace(0.1, 1.0, N), A, rng.standard_normal(M), rng.standard_normal(N)
    return [array.astype(dtype) for array in data]


def quadratic(P, Q, A, b, d):
    return sp.Saddle(sp.Quadratic(P, b), sp.Quadratic(Q, d), A)


def scaled(f, x, y, dtype=np.float64):
    """The ordinary problem with f in units of 2^-f, x of 2^-x and y of 2^-y, and its saddle point."""
    P, Q, A, b, d = usual_data(dtype)
    z = np.linalg.solve(np.block([[np.diag(P), A], [-A.T, np.diag(Q)]]).astype(np.float64), -np.r_[b, d])
    parts = zip((P, Q, A, b, d), (f - 2 * x, f - 2 * y, f - x - y, f - x, f - y), strict=True)
    problem = quadratic(*(np.ldexp(part, e) for part, e in parts))
    return problem, np.ldexp(z[:M], x), np.ldexp(z[M:], y)


def size(x, y):
    return ignoring_errors(lambda: norm(x) + norm(y))


def ignoring_errors(function):
    with np.errstate(all="ignore"):
        return function()


def check(result, x, y, allowed=POSSIBLE):
    """The status is allowed, and the certificate is true."""
    assert result.status in allowed, result
    error = size(*ignoring_errors(lambda: (result.x - x, result.y - y)))
    assert error <= result.certificate.distance, result
    return result


SCALES = {
    "f": (E150, 0, 0),
    "1/f": (-E150, 0, 0),
    "x": (0, E150, 0),
    "1/x": (0, -E150, 0),
    "y": (0, 0, E150),
    "1/y": (0, 0, -E150),
    "x and y": (0, E150, E150),
    "1/x and 1/y": (0, -E150, -E150),
    "x and 1/y": (0, E150, -E150),
    "f and x": (E150, E150, 0),
    "all": (E150, E150, E150),
    "1/all": (-E150, -E150, -E150),
}


@pytest.mark.parametrize(("scale", "method"), thinned(SCALES, METHODS, QUICK))
def test_problems_of_scales_from_1e_150_to_1e150_are_solved(scale, method):
    f, x, y = scaled(*SCALES[scale])
    check(sp.solve(f, method=method, tol=1e-7 * size(x, y)), x, y, {Status.SOLVED})


@pytest.mark.parametrize(
    ("scale", "method"), thinned([(0, 0, 0), (100, 0, 0), (0, 50, -50), (-100, -100, -100)], METHODS, QUICK, every=2)
)
def test_float32_reaches_its_precision_and_says_that_it_allows_no_more(scale, method):
    f, x, y = scaled(*scale, dtype=np.float32)
    check(sp.solve(f, method=method, tol=1e-3 * size(x, y)), x, y, {Status.SOLVED})
    result = check(sp.solve(f, method=method, tol=1e-12 * size(x, y)), x, y, {Status.STALLED})
    assert result.x.dtype == np.float32
    assert result.certificate.distance <= 1e-5 * size(x, y)
    assert "the precision of float32 allows no more; use float64" in result.message


# -- one number at a time ----------------------------------------------------------------------------------------------

P0, Q0, A0 = np.geomspace(0.05, 1.0, 4), np.geomspace(0.1, 1.0, 4), np.linspace(0.1, 0.5, 4)
B0, D0 = np.array([1.0, -0.4, 0.3, 2.0]), np.array([0.5, 1.5, -1.0, 0.2])
ONES = np.ones(4)

EXTREMES = {
    "g 1e-150": {"P": 1e-150 * P0},
    "g 1e150": {"P": 1e150 * P0},
    "g and h 1e-150": {"P": 1e-150 * P0, "Q": 1e-150 * Q0},
    "g and b 1e-150": {"P": 1e-150 * P0, "b": 1e-150 * B0},
    "A 1e150": {"A": 1e150 * A0},
    "A 1e-200": {"A": 1e-200 * A0},
    "A denormal": {"A": 1e-310 * ONES},
    "A = 0": {"A": 0.0 * A0},
    "A from 1e-200 to 1": {"A": np.geomspace(1e-200, 1.0, 4)},
    "b 1e150": {"b": 1e150 * B0},
    "b and d 1e-300": {"b": 1e-300 * B0, "d": 1e-300 * D0},
    "b and d denormal": {"b": 1e-310 * B0, "d": 1e-310 * D0},
    "b and d 1e300": {"b": 1e300 * B0, "d": 1e300 * D0},
    "all 1e300": {"P": 1e300 * P0, "Q": 1e300 * Q0, "A": 1e300 * A0, "b": 1e300 * B0, "d": 1e300 * D0},
    "x0 1e150": {"x0": 1e150 * ONES, "y0": -1e150 * ONES},
    "x0 denormal": {"x0": 1e-310 * ONES, "y0": -1e-320 * ONES},
    "to zero": {"b": 0.0 * B0, "d": 0.0 * D0, "x0": ONES, "y0": ONES, "tol": 1e-318},
    "L = mu": {"P": 2e150 * ONES, "Q": 3e-150 * ONES},
    "kappa 1e12": {"P": np.geomspace(1e-12, 1.0, 4), "Q": np.geomspace(1e-12, 1.0, 4)},
    "kappa_x 1e12": {"P": np.geomspace(1e-12, 1.0, 4)},
    "coupling 1e-12": {"A": 1e-12 * A0},
    "coupling 1e12": {"A": 1e11 * A0},
    "tol 1e-300": {"tol": 1e-300},
    "tol 1e300": {"tol": 1e300},
}
# All other cases are solved. In these, the methods reach what the budget and the arithmetic allow.
HARD = {"g 1e-150", "g and h 1e-150", "g and b 1e-150", "A 1e150", "x0 1e150", "to zero", "kappa 1e12", "kappa_x 1e12",
        "coupling 1e12", "tol 1e-300"}  # fmt: skip


def diagonal(P=P0, Q=Q0, A=A0, b=B0, d=D0, **rest):
    """A problem of four independent pairs, and its saddle point by rational arithmetic."""
    x, y = [], []
    for numbers in zip(P, Q, A, b, d, strict=True):
        p, q, a, u, v = map(Fraction, numbers)
        x.append(float((a * v - q * u) / (p * q + a * a)))
        y.append(float((-p * v - a * u) / (p * q + a * a)))
    return quadratic(P, Q, np.diag(A), b, d), np.array(x), np.array(y), rest


@pytest.mark.parametrize(("extreme", "method"), thinned(EXTREMES, METHODS, QUICK, every=4))
def test_one_extreme_number_leaves_certificates_true(extreme, method):
    f, x, y, rest = diagonal(**EXTREMES[extreme])
    options = {"tol": 1e-6 * size(x, y), "max_calls": 2500} | rest
    result = check(sp.solve(f, method=method, **options), x, y)
    assert result.solved or extreme in HARD, result
    assert math.isfinite(result.certificate.distance)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "extreme"),
    [
        (m, e)
        for m in ("auto", "direct", "newton")
        for e in ("kappa 1e12", "kappa_x 1e12", "coupling 1e12", "tol 1e-300")
    ]
    + [("krylov", "kappa 1e12"), ("krylov", "kappa_x 1e12")],
)
def test_rounding_explains_where_a_run_stalls(method, extreme):
    """At kappa = 1e12 an error of 1e-16 in the field is 1e-4 in the point: ordinary arithmetic allows no more.

    The certificate itself is computed in about twice the digits, so that its own rounding is far smaller.
    """
    f, x, y, rest = diagonal(**EXTREMES[extreme])
    result = sp.solve(f, method=method, **{"tol": 1e-12 * size(x, y)} | rest)
    check(result, x, y, {Status.STALLED})
    assert result.certificate.distance <= 100.0 * f.precision(result.x, result.y)
    assert result.certificate.rounding <= 0.01 * result.certificate.distance
    assert size(result.x - x, result.y - y) <= 1e-3 * size(x, y)


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ({"P": np.geomspace(1e-310, 1.0, 4)}, "L_x/mu_x is inf"),
        ({"Q": np.geomspace(1e-200, 1.0, 4)}, r"L_y/mu_y is 1e\+200"),
        ({"A": 1e200 * A0}, r"\|A\|/sqrt\(mu_x mu_y\) is .*e\+20"),
    ],
)
def test_condition_numbers_beyond_arithmetic_are_refused(numbers, name):
    with pytest.raises(sp.ProblemError, match=f"{name}.* give a larger mu"):
        sp.solve(diagonal(**numbers)[0])


# -- other functions, and constants that are not known -----------------------------------------------------------------


def logistic(f, x, y, mu=True):
    """The logistic case in units of 2^-f, 2^-x and 2^-y, as a black box."""
    problem, u, v = case("logistic")

    def black_box(g, unit):
        known = math.ldexp(g.mu, f - 2 * unit) if mu else None
        slope, to = 2.0 ** (f - unit), 2.0**-unit
        return sp.Smooth(lambda z: slope * g.grad(to * z), mu=known, L=math.ldexp(g.L, f - 2 * unit))

    A = np.ldexp(problem.A.A, f - x - y)
    return sp.Saddle(black_box(problem.g, x), black_box(problem.h, y), A), np.ldexp(u, x), np.ldexp(v, y)


@pytest.mark.parametrize("scale", ["1/f", "x and 1/y", "all", "1/x and 1/y"])
@pytest.mark.parametrize(
    "method", slow_except(["auto", "dippa", "catalyst-aipfb", "lpd-slide", "anderson-imex", "pbr", "agraal"], "auto")
)
def test_black_boxes_at_extreme_scales_are_solved(method, scale):
    f, x, y = logistic(*SCALES[scale])
    check(sp.solve(f, method=method, tol=1e-6 * size(x, y)), x, y, {Status.SOLVED})


@pytest.mark.parametrize("scale", ["1/f", "x", "1/y", "all", "1/x and 1/y"])
@pytest.mark.parametrize("method", ["auto", "agraal"])
def test_the_residual_stops_a_run_without_mu(method, scale):
    f, *_ = logistic(*SCALES[scale], mu=False)
    start = f.certificate(np.zeros(f.shape[0]), np.zeros(f.shape[1])).residual
    result = sp.solve(f, method=method, tol=1e-6 * start)
    assert result.status is Status.UNCERTIFIED, result
    assert result.certificate.residual <= 1e-6 * start


# -- sizes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", slow_except(METHODS, *QUICK))
@pytest.mark.parametrize("e", [0, E150])
def test_problems_of_one_dimension_are_solved(e, method):
    f = quadratic(*(np.ldexp(part, e) for part in ([2.0], [3.0], [[5.0]], [1.0], [1.0])))
    x, y = np.array([2.0]) / 31.0, np.array([-7.0]) / 31.0
    check(sp.solve(f, method=method, tol=1e-9), x, y, {Status.SOLVED})


@pytest.mark.slow
@pytest.mark.parametrize(("e", "method"), [(0, "auto"), (-E150, "auto"), (0, "lpd-gs"), (-E150, "dippa")])
def test_a_million_variables_of_extreme_size_are_solved(e, method):
    n = 10**6
    rng = np.random.default_rng(0)
    P, Q, a = rng.uniform(0.8, 1.0, n), rng.uniform(0.8, 1.0, n), rng.uniform(0.0, 0.1, n)
    b, d = rng.standard_normal(n), rng.standard_normal(n)
    x, y = (a * d - Q * b) / (P * Q + a * a), (-P * d - a * b) / (P * Q + a * a)
    P, Q, a, b, d = (np.ldexp(part, e) for part in (P, Q, a, b, d))
    f = quadratic(P, Q, sparse.diags_array(a).tocsr(), b, d)
    check(sp.solve(f, method=method, tol=1e-3 * size(x, y)), x, y, {Status.SOLVED})


# -- the parts of a problem --------------------------------------------------------------------------------------------


def test_an_ordinary_problem_is_left_as_it_is():
    f = random_quadratic(6, 4, 1e3, 1e3, 1e3, seed=1)
    assert safe_units(f, 1e3, 0.0, 1e6, 1e-9) == Units()
    assert in_units(f, Units()).problem is f


@pytest.mark.parametrize("method", ["extragradient", "ogda", "lpd-gs", "condat-vu", "apdg", "direct"])
def test_units_round_nothing(method):
    """Assert that the iterates are the same to the last bit, up to the exponent."""
    f, x, y = scaled(0, 0, 0)
    plain = sp.solve(f, method=method, tol=1e-7 * size(x, y))
    f, *_ = scaled(748, E150, E150)
    large = sp.solve(f, method=method, tol=math.ldexp(1e-7 * size(x, y), E150))
    np.testing.assert_array_equal(large.x, np.ldexp(plain.x, E150))
    np.testing.assert_array_equal(large.y, np.ldexp(plain.y, E150))
    assert large.calls == plain.calls


exponents = st.integers(-E150, E150)


@given(exponents, exponents, exponents, st.floats(0, 1e150), st.floats(0, 1e150))
def test_numbers_in_the_units_are_of_usual_size(f, x, y, at, field):
    parts = (f - 2 * x, f - 2 * y, f - x - y, f - x, f - y)
    if max(map(abs, parts)) > 1000:
        return
    problem, *_ = scaled(f, x, y)
    view = in_units(problem, safe_units(problem, at, 0.0, field, 0.0))
    g = view.problem
    assert all(2.0**-250 <= number <= 2.0**250 for number in (g.mu_x, g.mu_y, g.L_x, g.L_y, g.norm))
    np.testing.assert_allclose(g.numbers, problem.numbers, rtol=1e-12)
    u, v = np.ones(M), np.ones(N)
    there = view.to(*view.back(u, v))
    np.testing.assert_array_equal(np.r_[there], np.r_[u, v])


@given(st.integers(-1000, 900), st.integers(0, 10**6))
def test_the_norm_of_a_vector_of_any_size_is_accurate(e, seed):
    v = np.random.default_rng(seed).uniform(-1.0, 1.0, 9)
    exact = math.ldexp(math.sqrt(math.fsum(v * v)), e)
    assert ignoring_errors(lambda: norm(np.ldexp(v, e))) == pytest.approx(
        exact, rel=1e-15 if e > -960 else 1e-2, abs=1e-300
    )
    small = max(min(e // 8, 120), -120)
    narrow = np.ldexp(v.astype(np.float32), small)
    assert ignoring_errors(lambda: norm(narrow)) == pytest.approx(
        math.ldexp(math.sqrt(math.fsum(v * v)), small), rel=1e-6
    )


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.linalg.aslinearoperator])
@pytest.mark.parametrize("e", [-1030, -700, -E150, 0, E150, 700, 1000])
def test_bounds_on_the_norm_of_A_hold_at_any_size(e, kind):
    A = np.random.default_rng(3).standard_normal((30, 20))
    estimate = sp.as_coupling(kind(ignoring_errors(lambda: np.ldexp(A, e)))).norm_estimate
    true = np.linalg.norm(A, 2)
    for bound, low, high in ((estimate.lower, 0.9, 1.0), (estimate.upper, 1.0, 1.1)):
        assert low * true * (1 - 1e-9) <= math.ldexp(bound, -e) <= high * true * (1 + 1e-9)


def test_bounds_on_the_norm_of_A_in_float32_hold_at_any_size():
    A = np.random.default_rng(3).standard_normal((30, 20)).astype(np.float32)
    for e in (-120, -60, 0, 60, 110):
        estimate = sp.as_coupling(ignoring_errors(lambda e=e: np.ldexp(A, e))).norm_estimate
        assert estimate.lower <= math.ldexp(np.linalg.norm(A.astype(float), 2), e) * (1 + 1e-5) <= 1.1 * estimate.upper


@given(exponents, exponents, st.integers(0, 10**6))
def test_certificates_scale_with_the_problem(f, x, seed):
    """With one unit for both players, the distance scales with this unit, and the gap with that of f."""
    if abs(f - 2 * x) > 960 or abs(f - x) > 960:
        return
    rng = np.random.default_rng(seed)
    u, v = rng.standard_normal(M), rng.standard_normal(N)
    plain = scaled(0, 0, 0)[0].certificate(u, v)
    large = scaled(f, x, x)[0].certificate(np.ldexp(u, x), np.ldexp(v, x))
    assert large.distance == pytest.approx(math.ldexp(plain.distance, x), rel=1e-9)
    assert large.gap == pytest.approx(math.ldexp(plain.gap, f), rel=1e-9)
    assert large.rounding == pytest.approx(math.ldexp(plain.rounding, x), rel=1e-2)


def test_what_underflows_is_in_the_certificate():
    """The field underflows to zero, but the certificate does not."""
    f = quadratic(np.full(2, 1e-200), np.full(2, 1e-200), np.zeros((2, 2)), np.zeros(2), np.zeros(2))
    x = np.array([1e-150, 0.0])
    certificate = f.certificate(x, np.zeros(2))
    assert certificate.residual == 0.0
    assert certificate.distance >= 1e-150
    assert f.certificate(np.zeros(2), np.zeros(2)).distance == 0.0


def test_numbers_of_steps_are_finite():
    assert countable(math.inf) == countable(math.nan) == countable(1e300) == MOST
    assert countable(12.5) == 12.5
    ordinary = lpd_gs_calls(1e3, 1e3, 10.0, 1.0, 1.0, 1.0, 1.0, 1e-6)
    assert lpd_gs_calls(1e3, 1e3, 10.0, 1e150, 1e150, 1e200, 1e200, 1e-56) == pytest.approx(ordinary, abs=2)
    for numbers in ((1.0, 1.0, 0.0), (1e12, 1.0, 1e150), (1e150, 1e150, 1e150)):
        assert 1.0 <= lpd_gs_calls(*numbers, 1e150, 1e-150, 1e-150, 1e-150, 1e-300) < math.inf


@pytest.mark.parametrize("rtol", [1e-6, 10.0])
@pytest.mark.parametrize("method", ["auto", "lpd-gs"])
def test_a_solution_at_zero_is_found_with_a_relative_distance(method, rtol):
    """A start at zero is the solution; from elsewhere, lengths shrink until they underflow."""
    f = quadratic(np.array([0.5, 2.0]), np.ones(2), np.eye(2), np.zeros(2), np.zeros(2))
    assert sp.solve(f, rtol=rtol, method=method).solved
    away = sp.solve(f, np.ones(2), rtol=rtol, method=method, max_calls=3000)
    assert away.certificate.distance <= 1e-100
    assert away.solved == (away.certificate.distance == 0.0)
