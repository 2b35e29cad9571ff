"""True problems are never reported as wrong; wrong constants are found where they could make a certificate false."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from examination import CLAIMED_KINDS, KINDS, WRONG_CLAIMS, Case
from tiers import slow_except

import saddlepoint as sp
from saddlepoint.parts.functions.circulation import circulation
from saddlepoint.parts.functions.curvature_estimate import curvature
from saddlepoint.parts.functions.gradient_noise import LINE, noise_level, seen_noise
from saddlepoint.parts.functions.probes import Unexaminable
from saddlepoint.problems.audit import Audit
from saddlepoint.problems.gradient_check import GradientCheck
from saddlepoint.problems.oracle import Meter
from saddlepoint.solving.monitor import NEAR_CHECKS, STALL_CHECKS, Monitor
from saddlepoint.theory.smoothness import circulation_bound, least_error, smooth_lemma


def silent(oracle, calls):
    """A meter that counts nothing."""


# -- a slice of the campaign -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", slow_except(KINDS, *list(KINDS)[::3]))
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 3), marks=pytest.mark.slow)])
def test_true_problems_are_not_reported_as_wrong(kind, seeds):
    for seed in seeds:
        end, words = Case(seed, kind).outcome()
        assert end not in ("reported", "FALSE", "doubted"), (seed, words)


@pytest.mark.parametrize("claim", ["large_mu", "small_L", "twisted", "one_sign"])
def test_wrong_claims_are_found(claim):
    ends = [Case(seed, CLAIMED_KINDS[seed % 3], WRONG_CLAIMS[claim]).outcome()[0] for seed in range(5)]
    assert "FALSE" not in ends
    assert ends.count("reported") >= 4, ends


# -- true problems that look wrong -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_of_a_curved_function_is_not_doubted(seed):
    """Lengths that are taken from the gradient are far longer than those on which tanh bends."""
    rng, mu, n = np.random.default_rng(seed), 1e-4, 300
    c = rng.standard_normal(n)
    h = sp.Smooth(lambda y: mu * y - c + mu * np.tanh(y), mu=mu, L=2.0 * mu)
    audit = Audit(sp.Saddle(sp.Quadratic(1.0), h, np.ones((1, n))), Meter())
    audit.examine(np.zeros(1), 0.01 * rng.standard_normal(n), thoroughly=True)
    assert audit.doubts == ()


@pytest.mark.parametrize("grain", [1e-7, 1e-5, 1e-3])
def test_coarse_rounding_is_noise_and_not_a_wrong_mu(grain):
    """A staircase is far flatter than mu between its jumps; their height is taken for noise."""
    P = np.geomspace(0.1, 1.0, 5)
    x = np.linspace(0.7, 1.3, 5)
    g = sp.Smooth(lambda v: P * (grain * np.round(v / grain)) - P * x, mu=0.1, L=1.0)
    f = sp.Saddle(g, sp.Quadratic(1.0), np.zeros((5, 1)))
    result = sp.solve(f, x + 0.3 * grain, np.zeros(1), tol=1e-2 * grain)
    assert not result.solved
    assert "the gradient of g (about" in result.message
    assert result.certificate.distance >= np.linalg.norm(result.x - x)


@pytest.mark.parametrize("n", [1, 2, 40])
def test_code_in_single_precision_is_noise_and_not_a_wrong_mu(n):
    P, x = np.linspace(1e-4, 1e-2, n), np.full(n, 1.5)

    def grad(v):
        return (P * v - P * x - 0.3).astype(np.float32).astype(np.float64)

    f = sp.Saddle(sp.Smooth(grad, mu=1e-4, L=1e-2), sp.Quadratic(1.0), np.full((n, 1), 0.1))
    result = sp.solve(f, method="lpd-gs", tol=1e-9, max_calls=3000)
    assert not result.solved
    assert "seems noisy" in result.message


def test_scaled_code_in_single_precision_is_noise():
    """The gradient is flat on lengths far beyond the size of x, because it is large there."""
    end, words = Case(48, "single_precision").outcome()
    assert end != "reported", words


def test_temperatures_are_not_noise():
    """A softmax varies on the scale of its temperature, which may be far below the size of x."""
    rng = np.random.default_rng(0)
    D, tau = rng.standard_normal((12, 6)), 1e-5

    def grad(x):
        e = np.exp((D @ x - (D @ x).max()) / tau)
        return x + D.T @ (e / e.sum())

    x = rng.standard_normal(6)
    L = 1.0 + np.linalg.norm(D, 2) ** 2 / tau
    noise = noise_level(grad, x, grad(x), np.linalg.norm(x), L)
    assert not noise.is_noisy
    assert noise.allowance <= 1e-11


def test_noise_below_the_threshold_enters_the_certificate():
    """Two hundred units of rounding are not called noise, but a certificate allows only for two by itself."""
    rng = np.random.default_rng(0)
    P, eps = np.linspace(1.0, 2.0, 20), np.finfo(float).eps
    g = sp.Smooth(lambda x: P * x - 1.0 + 200.0 * eps * rng.standard_normal(20), mu=1.0, L=2.0)
    f = sp.Saddle(g, sp.Quadratic(1.0), np.zeros((20, 3)))
    result = sp.solve(f, method="lpd-gs", tol=1e-9)
    assert result.solved
    assert 2e-13 <= result.certificate.noise_x <= 1e-11
    assert "noisy" not in result.message


def gradients(kind, level=0.0, n=40):
    """A strongly convex function with mu = 1 and errors of its gradients of this length, and a point."""
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    P = (Q * np.linspace(1.0, 9.0, n)) @ Q.T

    def grad(v):
        p = P @ v if kind == "quadratic" else v + 8.0 * np.tanh(v)
        error = rng.standard_normal(n)
        return p + (level / np.linalg.norm(error)) * error

    return sp.Smooth(grad, mu=1.0, L=9.0 + 1e-6), rng.standard_normal(n)


@pytest.mark.parametrize("kind", ["quadratic", "log-cosh"])
@pytest.mark.parametrize("level", [1e-12, 1e-11, 1e-9])
def test_the_search_for_curvatures_sees_how_wrong_gradients_are(kind, level):
    """Errors make the differences of gradients asymmetric: no further gradients are needed to see them."""
    f, x = gradients(kind, level)
    p, length = f.grad(x), np.linalg.norm(x)
    local = curvature(f.grad, x, length, 10, p=p)
    line = noise_level(f.grad, x, p, length, f.L)
    assert 0.5 * level <= local.wrong <= 2.0 * level
    assert 0.25 * line.total <= local.wrong <= 4.0 * line.total
    assert curvature(f.grad, x, length, 5, p=p).wrong == np.inf  # five directions are too few to tell
    assert seen_noise(local, x, p, length, 1.0, f) is None  # this is more than rounding, and is to be measured


@pytest.mark.parametrize("kind", ["quadratic", "log-cosh"])
def test_gradients_without_noise_are_not_measured_again(kind):
    f, x = gradients(kind)
    p, length = f.grad(x), np.linalg.norm(x)
    local = curvature(f.grad, x, length, 10, p=p)
    seen = seen_noise(local, x, p, length, 1.0, f)
    assert seen.calls == 0
    assert not seen.is_noisy
    assert seen_noise(local, x, p.astype(np.float32).astype(float), length, 1.0, f) is None
    assert seen_noise(local, x, p, length, 1.0, f.replace(mu=3.0 * local.low)) is None
    rounding = 8.0 * seen.rounding
    assert seen_noise(local._replace(wrong=rounding), x, p, length, 1.0, f).level == rounding
    assert seen_noise(local._replace(wrong=rounding), x, p, length, rounding, f) is None  # the residual is as small


def test_one_line_measures_noise_of_a_few_units_of_rounding():
    f, x = gradients("quadratic", level=2e-14)
    noise = noise_level(f.grad, x, f.grad(x), np.linalg.norm(x), f.L)
    assert noise.calls == LINE
    assert 0.5e-14 <= noise.total <= 4e-14
    assert not noise.is_noisy


# -- what is found -----------------------------------------------------------------------------------------------------


def rotated(m, low, seed):
    """A Hessian with curvatures from 1 to 1000 and one that is ``low`` in a direction that is no axis, and this one."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((m, m)))[0]
    P = (Q * np.r_[low, np.geomspace(1.0, 1000.0, m - 1)]) @ Q.T
    return 0.5 * (P + P.T), Q[:, 0]


@pytest.mark.parametrize("m", [20, 60, 120])
def test_a_long_search_for_curvatures_finds_the_ends_of_the_spectrum(m):
    """The basis stays orthogonal: with all directions, the curvatures are the eigenvalues, and nothing is skew."""
    P, _ = rotated(m, 1e-3, 0)
    local = curvature(lambda x: P @ x, np.ones(m), 1.0, m)
    assert local.low == pytest.approx(1e-3, abs=1e-4)
    assert local.high == pytest.approx(1000.0, rel=1e-5)
    assert local.skew <= 1e-3


@pytest.mark.parametrize("m", [12, 50])
@pytest.mark.parametrize("seed", range(3))
def test_a_flat_direction_that_no_axis_and_no_field_shows_is_found(m, seed):
    """The error of the start is along it, and the field there is dominated by the steep directions."""
    rng = np.random.default_rng(seed)
    P, flat = rotated(m, 1e-3, seed)
    c = rng.standard_normal(m)
    x = np.linalg.solve(P, c) + 1e-2 * flat + 1e-6 * rng.standard_normal(m) / np.sqrt(m)
    f = sp.Saddle(sp.Smooth(lambda x: P @ x - c, mu=1.0, L=1001.0), sp.Quadratic(1.0), np.zeros((m, 1)))
    start = f.certificate(x, np.zeros(1)).distance
    assert start < 2e-3  # the true distance is 1e-2
    with pytest.raises(sp.AssumptionError, match="mu of g is too large"):
        sp.solve(f, x, np.zeros(1), tol=1.1 * start)


@pytest.mark.parametrize("seed", range(3))
def test_the_field_shows_a_wrong_mu(seed):
    """The start is where gradient descent stops: its error is along the flattest direction, and so is the field."""
    rng, n = np.random.default_rng(seed), 200
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    P = (Q * np.geomspace(1e-3, 1.0, n)) @ Q.T
    x = rng.standard_normal(n)
    g = sp.Smooth(lambda v: P @ (v - x), mu=1e-2, L=1.0)
    f = sp.Saddle(g, sp.Quadratic(1.0), np.zeros((n, 2)))
    with pytest.raises(sp.AssumptionError, match="mu of g is too large"):
        sp.solve(f, x + 3.7e-6 * Q[:, 0], np.zeros(2), tol=1e-6)


@pytest.mark.parametrize("raises", [True, False])
@pytest.mark.parametrize("small", [1e-1, 1e-4, 1e-8])
def test_a_domain_does_not_hide_a_wrong_mu(raises, small):
    x, P = np.array([small, 1.0]), np.array([1.0, 1.0 / 30.0])

    def grad(v):
        if (v > 0.0).all():
            return P * (v - x)
        if raises:
            raise ValueError("outside the domain")
        return np.full(2, np.nan)

    f = sp.Saddle(sp.Smooth(grad, mu=1.0, L=1.0), sp.Quadratic(1.0), np.zeros((2, 1)))
    with pytest.raises(sp.AssumptionError, match="mu of g is too large"):
        sp.solve(f, x * (1.0 + 1e-7), np.zeros(1), tol=1e-5)


def test_a_gradient_that_can_be_evaluated_at_one_point_only_is_called_unexaminable():
    x = np.array([1.0, 2.0])

    def grad(v):
        return v - x if (v == x).all() else np.full(2, np.nan)

    audit = Audit(sp.Saddle(sp.Smooth(grad, mu=1.0, L=3.0), sp.Quadratic(1.0), np.zeros((2, 1))), Meter())
    assert audit.assumes()[0] == "The strong convexity mu of g is 1, as given; it was not examined."
    audit.examine(x, np.zeros(1))
    assert "it could not be examined: the gradient is not finite around" in audit.assumes()[0]
    with pytest.raises(Unexaminable):
        noise_level(grad, x, grad(x), 1.0, 3.0)
    with pytest.raises(Unexaminable):
        curvature(grad, x, 1.0, 5)


def test_what_was_examined_is_said():
    f = sp.Saddle(sp.Smooth(lambda x: 2.0 * x - 1.0, mu=0.3, L=2.0), sp.Quadratic(1.0), np.zeros((2, 1)))
    audit = Audit(f, Meter())
    audit.examine(np.full(2, 0.5), np.zeros(1))
    agrees = "mu of g is 0.3, as given; the gradients that were examined around the point agree with it."
    assert agrees in audit.assumes()[0]
    result = sp.solve(f)
    assert result.certificate.assumes[0] == audit.assumes()[0]


def test_a_gradient_that_changes_during_the_run_is_found():
    """The first gradient is asked for again at the end."""
    calls = [0]

    def grad(x):
        calls[0] += 1
        return 2.0 * x - 1.0 + 1e-3 * (calls[0] > 5)

    f = sp.Saddle(sp.Smooth(grad, mu=2.0, L=2.5), sp.Quadratic(1.0), 0.1 * np.ones((3, 2)))
    with pytest.raises(sp.AssumptionError, match=r"gave two answers at one point|mu of g|L of g|cannot both hold"):
        sp.solve(f, method="lpd-gs", tol=1e-9)


@pytest.mark.parametrize("later", [None, np.zeros(2), "text"])
def test_answers_of_another_kind_after_the_first_are_refused(later):
    calls = [0]

    def grad(x):
        calls[0] += 1
        return x - 1.0 if calls[0] < 4 else later

    f = sp.Saddle(sp.Smooth(grad, mu=1.0, L=2.0), sp.Quadratic(1.0), np.ones((3, 2)))
    with pytest.raises(sp.ProblemError, match=r"the gradient of g returned .* for a point of shape \(3,\)"):
        sp.solve(f, method="lpd-gs")


def test_a_prox_that_is_right_near_zero_only_is_found():
    def prox(v, t):
        return v / (1.0 + t) if np.linalg.norm(v) < 5.0 else v / (1.0 + 2.0 * t)

    g = sp.Smooth(lambda x: x, mu=1.0, L=1.0, prox=prox)
    (wrong,) = sp.check(sp.Saddle(g, sp.Quadratic(1.0), np.eye(2))).problems
    assert wrong.what == "prox of g"


@pytest.mark.parametrize("where", [1.0, 30.0, 1000.0, -5.0, -0.1])
def test_a_prox_that_is_wrong_in_one_region_only_is_found(where):
    def prox(v, t):
        return v / np.where(np.abs(v / where - (1.0 + t)) < 0.5, 1.0 + 2.0 * t, 1.0 + t)

    g = sp.Smooth(lambda x: x, mu=1.0, L=1.0, prox=prox)
    (wrong,) = sp.check(sp.Saddle(g, sp.Quadratic(1.0), np.eye(3))).problems
    assert wrong.what == "prox of g"


def test_a_prox_that_is_right_for_one_step_only_is_found():
    g = sp.Smooth(lambda x: 2.0 * x, mu=2.0, L=2.0, prox=lambda v, t: v / 2.0)  # t = 1/L
    (wrong,) = sp.check(sp.Saddle(g, sp.Quadratic(1.0), np.eye(2))).problems
    assert wrong.what == "prox of g"


def test_check_stays_inside_a_domain_and_names_one_that_is_too_small():
    x = np.array([1e-3, 2.0])
    g = sp.Smooth(lambda v: np.where(v > 0.0, v, np.nan), mu=1.0, L=1.0)
    assert sp.check(sp.Saddle(g, sp.Quadratic(1.0), np.eye(2)), x).ok
    alone = sp.Smooth(lambda v: v if (v == x).all() else v * np.nan, mu=1.0, L=1.0)
    (finding,) = sp.check(sp.Saddle(alone, sp.Quadratic(1.0), np.eye(2)), x).problems
    assert finding.what == "domain of grad g"


def test_a_small_asymmetry_is_a_doubt_and_not_an_error():
    """The Jacobian is not symmetric, but it would take thousands of gradients to prove that."""
    P = np.array([[1.0, 2e-4, 0.0], [-2e-4, 0.5, 0.0], [0.0, 0.0, 0.1]])
    f = sp.Saddle(sp.Smooth(lambda x: P @ x - 1.0, mu=0.05, L=1.5), sp.Quadratic(1.0), np.eye(3))
    result = sp.solve(f, tol=1e-8)
    assert result.solved
    assert "the gradient of g seems not to be the gradient of a function" in result.message


def test_a_corrected_mu_is_examined_again():
    """Each search finds a part of the spectrum only, so that the first correction is not the last one."""
    rng, n = np.random.default_rng(0), 200
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    P, x = (Q * np.geomspace(1e-3, 1.0, n)) @ Q.T, rng.standard_normal(n)
    g = sp.Smooth(lambda v: P @ (v - x), mu=1.0, L=1.0)
    f = sp.Saddle(g, sp.Quadratic(1.0), np.zeros((n, 2)))
    result = sp.solve(f, method="lpd-gs", tol=1e-6, on_violation="adapt")
    assert result.solved
    assert np.linalg.norm(result.x - x) <= result.certificate.distance
    assert any("agree with it" in sentence for sentence in result.certificate.assumes)


@pytest.mark.parametrize(
    ("floors", "waited", "stalled", "at_floor"),
    [
        (3.0, STALL_CHECKS, True, True),
        (30.0, STALL_CHECKS, False, False),
        (30.0, NEAR_CHECKS, True, False),
        (300.0, NEAR_CHECKS, False, False),
    ],
)
def test_the_precision_is_the_reason_only_where_it_is_reached(floors, waited, stalled, at_floor):
    """The precision is reached up to thirty times the rounding level; above it, another method may continue."""
    run = SimpleNamespace(
        state=SimpleNamespace(
            monitor=SimpleNamespace(checks=waited, improved=(0, 0)),
            best=(0, 0),
            counts=SimpleNamespace(total=1),
            target=SimpleNamespace(argument="tol"),
        ),
        certificate=SimpleNamespace(distance=floors),
        audit=SimpleNamespace(floor=lambda *of: 1.0),
        mu_known=True,
        diagnose=lambda: None,
        at_rounding_floor=False,
        floor=None,
        clock=nullcontext(),
    )
    assert (Monitor.stalled(run), run.at_rounding_floor) == (stalled, at_floor)


# -- theory ------------------------------------------------------------------------------------------------------------


def test_least_error_is_the_distance_from_the_ball_of_the_lemma():
    rng = np.random.default_rng(0)
    for _ in range(50):
        mu, L = np.sort(10.0 ** rng.uniform(-2, 1, 2))
        dx, dg = rng.standard_normal(3), rng.standard_normal(3)
        middle = dg - 0.5 * (L + mu) * dx
        error = least_error(np.linalg.norm(middle), np.linalg.norm(dx), mu, L)
        slack = smooth_lemma(dg @ dx, dx @ dx, dg @ dg, mu, L)
        assert (error > 0.0) == (slack < 0.0)
        repaired = dg - error * middle / np.linalg.norm(middle)
        assert smooth_lemma(repaired @ dx, dx @ dx, repaired @ repaired, mu, L) >= -1e-12


@pytest.mark.parametrize("corners", [3, 5, 12])
def test_the_circulation_bound_holds_and_is_reached(corners):
    """The bound holds for functions with kinks and quadratic ones, and a function that bends most comes close to it."""
    rng = np.random.default_rng(corners)
    plane = np.eye(2)[0], np.eye(2)[1]
    for _ in range(50):
        a, t = rng.standard_normal(2), rng.uniform(-1, 1)
        L = 0.1 + a @ a

        def grad(x, a=a, t=t):
            return 0.1 * x + a * max(a @ x - t, 0.0)

        loop = circulation(grad, rng.standard_normal(2), plane, 1.0, corners, (0.1, L), 0.0)
        assert loop.skew <= loop.bound + 1e-12
    twist = circulation(
        lambda x: np.array([x[0] + x[1], x[1] - x[0]]), np.zeros(2), plane, 1.0, corners, (1.0, 1.0), 0.0
    )
    np.testing.assert_allclose(twist.skew, 2.0)
    assert twist.is_proof
    assert circulation_bound(1.0, 1.0, 3.0) == 1.0


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_a_gradient_that_is_not_symmetric_is_refuted_at_any_scale(scale):
    P = np.array([[2.0, 0.3], [-0.3, 1.0]])
    check = GradientCheck("g", 0.5, 3.0, lambda x: P @ x, silent)
    x = scale * np.ones(2)
    with pytest.raises(sp.AssumptionError, match="not the gradient of any function"):
        check.refuse_skew(x, P @ x, scale, 0.0, curvature(check.grad, x, scale, 5))


def test_two_points_around_zero_are_examined_in_finite_time():
    """The line between two points on both sides of 0 used to be divided until its pieces were far below rounding."""
    b = np.array([0.03, -0.11, 0.07])

    def grad(x):
        return 3.0 * x - 8.0 * np.tanh(x)  # not convex around 0, and convex far away

    check = GradientCheck("g", 1.0, 10.0, grad, lambda oracle, calls: None)
    with pytest.raises(sp.AssumptionError, match="g is not convex"):
        check.compare(b, grad(b), -b, grad(-b))


def test_a_run_that_ends_early_says_that_its_claims_were_not_examined():
    g = sp.Smooth(lambda x: 2.0 * x + np.tanh(x) - 1.0, mu=2.0, L=3.0)
    f = sp.Saddle(g, sp.Quadratic(1.0), np.ones((2, 1)))
    early, solved = sp.solve(f, [5.0, 1.0], max_calls=3), sp.solve(f, [5.0, 1.0])
    assert not early.certificate.is_examined
    assert "if the claims in certificate.assumes are true, which were not examined" in early.message
    assert "its claims were not examined" in repr(early)
    assert "at a certified" not in early.message
    assert solved.certificate.is_examined
    assert "not examined" not in repr(solved)
    assert repr(f.certificate(solved.x, solved.y)).endswith("; claims not examined)")
    ready = sp.Saddle(sp.Quadratic(1.0, [1.0, 2.0]), sp.Quadratic(1.0), np.ones((2, 1)))
    assert "at a certified distance" in sp.solve(ready, [5.0, 1.0], max_calls=2, method="ogda").message
