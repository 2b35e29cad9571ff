"""Errors of gradients that the caller did not state: certificates allow for them, whatever ended the run."""

import contextlib
import math

import numpy as np
import pytest
from draws import SEED
from exact import dot, exact, times, transposed

import saddlepoint as sp
from saddlepoint.methods.registry import make_method
from saddlepoint.methods.wrappers.refined import Refined
from saddlepoint.parts.functions.gradient_noise import eps_of_code, eps_of_entries, noise_level
from saddlepoint.parts.functions.plateaus import plateau
from saddlepoint.problems.audit import Audit
from saddlepoint.problems.oracle import Meter

P, B = np.array([0.1, 0.5, 1.0]), np.array([1.0, -2.0, 0.3])
SOLUTION = -B / P


def in_float32(x):
    """The gradient of 1/2 x'Px + B'x, by code in float32."""
    return (P.astype(np.float32) * x.astype(np.float32) + B.astype(np.float32)).astype(float)


def problem(grad, **said):
    """A problem whose x is found by itself."""
    return sp.Saddle(sp.Smooth(grad, mu=0.1, L=1.0, **said), sp.Quadratic(1.0), np.zeros((3, 1)))


# -- the end of a run --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [{"max_calls": 60}, {"callback": lambda result: stop_late(result)}])
def test_noise_is_measured_where_a_run_ends_unsolved(end):
    """Before it is measured, the certified distance is below the true one: the float32 gradient is zero."""
    result = sp.solve(problem(in_float32), method="extragradient", tol=1e-300, **end)
    true = np.linalg.norm(result.x - SOLUTION)
    assert not result.solved
    assert result.certificate.noise_x > 0.0
    assert result.certificate.distance >= true
    assert not any("was not measured" in sentence for sentence in result.certificate.assumes)


def stop_late(result):
    """A callback that ends the run."""
    if result.iterations >= 25:
        raise StopIteration


def test_gradients_that_measure_noise_are_counted():
    calls = []

    def grad(x):
        calls.append(1)
        return P * x + B

    result = sp.solve(problem(grad), method="extragradient", tol=1e-300, max_calls=5)
    assert result.calls["grad_g"] + result.setup_calls["grad_g"] + result.monitor_calls == len(calls)


def test_an_interrupted_run_says_that_noise_was_not_measured():
    def interrupt(result):
        raise KeyboardInterrupt

    result = sp.solve(problem(in_float32), method="extragradient", tol=1e-9, callback=interrupt)
    assert result.status == sp.Status.INTERRUPTED
    assert any("The noise of the gradient of g at the point was not measured" in s for s in result.certificate.assumes)


def test_noise_that_cannot_be_measured_is_a_sentence():
    def grad(x):
        return P * x + B if np.all(x == 1.0) else np.full(3, np.nan)

    audit = Audit(problem(grad), Meter())
    audit.noise.measure(np.ones(3), np.zeros(1))
    assert any("was not measured: the gradient is not finite around" in sentence for sentence in audit.assumes())


# -- gradients that remember something ---------------------------------------------------------------------------------


def drifting(size, pace):
    """A gradient whose error grows with the number of calls."""
    calls = [0]

    def grad(x):
        calls[0] += 1
        return P * x + B + size * np.sin(calls[0] / pace) * np.array([0.0, 0.6, 0.8])

    return grad


@pytest.mark.parametrize("pace", [30.0, 300.0, 3000.0])
@pytest.mark.parametrize("calls", [20, 60, 200])
def test_an_error_that_changes_with_the_calls_is_noise(pace, calls):
    """Differences along a line cancel it; a point that is asked for again shows it."""
    with contextlib.suppress(sp.AssumptionError):  # which says that the gradient gave two answers at one point
        result = sp.solve(problem(drifting(1e-4, pace)), method="extragradient", tol=1e-7, max_calls=calls)
        assert result.certificate.distance >= np.linalg.norm(result.x - SOLUTION)


def test_the_certificate_is_made_again_if_the_gradient_is_another_one_now():
    """The best certificate of a noisy gradient is the one in which the noise has helped most."""
    state = {"helps": True}

    def grad(x):
        return P * x + B + (0.0 if state["helps"] else 1e-3)

    audit = Audit(problem(grad), Meter())
    x, y = SOLUTION.copy(), np.zeros(1)
    assert audit.certificate(x, y).distance < 1e-12
    audit.keep(another=True)
    state["helps"] = False
    audit.noise.measure(x, y)
    assert audit.noise.stale
    assert audit.noise.gradients["g"] > 1e-3


def test_more_noise_takes_no_further_query():
    """The gradients and products of the best point are kept; only its bounds are made again."""
    calls = []

    def grad(x):
        calls.append(1)
        return P * x + B

    audit = Audit(problem(grad), Meter())
    x, y = SOLUTION + 1e-3, np.zeros(1)
    before = audit.certificate(x, y)
    audit.keep(another=True)
    audit.noise.gradients["g"], audit.noise.stale = 1e-4, True
    made = len(calls)
    after = audit.with_noise()
    assert len(calls) == made
    assert not audit.noise.stale
    assert after.distance > before.distance + 1e-4
    assert after == audit.certificate(x, y)
    audit.noise.differs = True  # a gradient is another one now
    assert audit.with_noise() is None


# -- gradients that are rounded ----------------------------------------------------------------------------------------


def staircase(rng):
    """A problem whose gradient is rounded coarsely, before or after its product, perhaps inside a domain."""
    m = int(rng.integers(1, 8))
    spectrum = np.geomspace(10.0 ** rng.uniform(-3, 0), 1.0, m) if m > 1 else np.ones(1)
    Q = np.linalg.qr(rng.standard_normal((m, m)))[0]
    H, x = (Q * spectrum) @ Q.T, rng.uniform(0.5, 2.0, m)
    grain, before = 10.0 ** rng.uniform(-7, -1.5), rng.random() < 0.5
    least = 0.3 if rng.random() < 0.5 else -np.inf

    def grad(v):
        if (v <= least).any():
            return np.full(m, np.nan)
        return H @ (grain * np.round((v - x) / grain)) if before else grain * np.round(H @ (v - x) / grain)

    g = sp.Smooth(grad, mu=spectrum[0] * (1.0 - 1e-9), L=1.0 + 1e-9)
    return sp.Saddle(g, sp.Quadratic(1.0), np.zeros((m, 1))), x, grain


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(k, marks=pytest.mark.slow) for k in range(8, 80))])
def test_coarse_rounding_is_not_reported_as_a_wrong_constant(seed):
    """Its steps can be longer than every line around the point, or end with the domain."""
    rng = np.random.default_rng(seed)
    f, x, grain = staircase(rng)
    for method in ("extragradient", "lpd-gs"):
        start = x * (1.0 + 10.0 ** rng.uniform(-8, -0.5) * rng.uniform(-1, 1, len(x)))
        result = sp.solve(f, start, np.zeros(1), method=method, tol=grain, max_calls=200)
        assert result.certificate.distance >= np.linalg.norm(result.x - x) * (1.0 - 1e-9) - 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("grain", [0.3, 1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("start", [[0.0, 0.0, 0.0], [-9.9, 3.9, -0.31]])
@pytest.mark.parametrize("calls", [1, 5, 60])
def test_a_cache_of_rounded_points_is_noise(grain, start, calls):
    """It answers with the gradient at another point, and all points around the one that is returned share it."""
    cache = {}

    def grad(x):
        return cache.setdefault(np.round(x / grain).tobytes(), P * x + B).copy()

    f = problem(grad)
    sp.solve(f, start, np.zeros(1), method="extragradient", tol=1e-300, max_calls=calls)  # which fills the cache
    result = sp.solve(f, np.add(start, 0.3 * grain), np.zeros(1), method="extragradient", tol=1e-300, max_calls=calls)
    assert not result.solved
    assert result.certificate.distance >= np.linalg.norm(result.x - SOLUTION)
    assert result.certificate.noise_x > 0.1 * grain


@pytest.mark.parametrize("grain", [0.5, 1e-2, 1e-5])
def test_a_point_on_a_step_where_the_gradient_is_zero_is_not_called_solved(grain):
    """All gradients around the point are zero, and so is the residual."""
    solution = 0.4 * grain * np.array([1.0, -1.0, 0.5])

    def grad(v):
        return P * (grain * np.round((v - solution) / grain))

    result = sp.solve(problem(grad), method="extragradient", tol=0.1 * grain, max_calls=20)
    assert not result.solved
    assert result.certificate.distance >= np.linalg.norm(result.x - solution)


def test_the_size_of_a_region_is_found_around_a_point_that_is_almost_zero():
    """The length of the point says nothing about the function."""
    grad = sp.Smooth(lambda v: P * np.round(v, 1), mu=0.1, L=1.0)
    assert plateau(grad, np.full(3, 1e-54), np.zeros(3), 0.0).error > 0.05 * np.sqrt(3.0)


@pytest.mark.parametrize("scale", [1e-322, 1e-318, 1e-310])
@pytest.mark.parametrize("method", ["auto", "extragradient", "lpd-gs"])
def test_numbers_that_underflow_are_not_reported_as_wrong_constants(scale, method):
    """Gradients of subnormal numbers are multiples of the smallest one, and look like a staircase."""
    b = scale * B
    f = sp.Saddle(sp.Smooth(lambda x: P * x + b, mu=0.1, L=1.0), sp.Quadratic(1.0), np.full((3, 1), scale))
    result = sp.solve(f, b, np.zeros(1), method=method, tol=5e-324, max_calls=60)
    assert "noisy" not in result.message
    assert result.certificate.distance >= np.linalg.norm(result.x + b / P)


def test_one_gradient_tells_that_there_is_no_region_without_change():
    """It is close to the point; only where it is the same there, or jumps, more are evaluated."""
    x, p = np.ones(3), P + B
    assert plateau(sp.Smooth(lambda v: P * v + B, mu=0.1, L=1.0), x, p, 0.0) == (0.0, 1)
    assert plateau(sp.Smooth(lambda v: P * v + B, mu=0.1, L=0.3), x, p, 0.0) == (0.0, 2)  # L is too small
    rounded = sp.Smooth(lambda v: P * np.round(v, 2) + B, mu=0.1, L=1.0)
    assert plateau(rounded, x, p, 0.0).error > 0.005 * np.sqrt(3.0)


# -- gradients by differences of values --------------------------------------------------------------------------------


def value(x):
    """The function whose gradient is P x + B."""
    return 0.5 * x @ (P * x) + B @ x


def forward_differences(x, h=1e-6):
    """The gradient, too large by h P/2."""
    return np.array([(value(x + h * e) - value(x)) / h for e in np.eye(3)])


def test_values_show_the_error_of_forward_differences():
    """It is the same around all points, so that gradients alone cannot tell."""
    result = sp.solve(problem(forward_differences, value=value), method="extragradient", tol=1e-7, max_calls=3000)
    assert not result.solved
    assert result.certificate.distance >= np.linalg.norm(result.x - SOLUTION) > 1e-7


def test_an_exact_gradient_with_values_in_float32_is_not_noisy():
    """Values that are rounded themselves say nothing about the gradient."""
    rounded = lambda x: float(np.float32(value(x)))  # noqa: E731
    result = sp.solve(problem(lambda x: P * x + B, value=rounded), method="extragradient", tol=1e-9, max_calls=3000)
    assert result.solved


# -- code in a lower precision -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "eps"), [(np.float16, 2.0**-10), (np.float32, 2.0**-23), (np.float64, 2.0**-52)])
@pytest.mark.parametrize("scale", [1.0, 2.0**-300, 2.0**900])
def test_the_precision_of_entries_is_seen(dtype, eps, scale):
    p = np.random.default_rng(1).standard_normal(20).astype(dtype).astype(float)
    assert eps_of_entries(scale * p) == eps


@pytest.mark.parametrize("at", [0, 3, 19])
def test_one_entry_of_a_higher_precision_is_enough(at):
    p = np.random.default_rng(2).standard_normal(20).astype(np.float32).astype(float)
    p[at] = 1.0 / 3.0
    assert eps_of_entries(p) == 2.0**-52
    p[at] = math.inf
    assert eps_of_entries(p) == 2.0**-52
    p[at] = 0.0
    assert eps_of_entries(p) == 2.0**-23


def test_integers_are_no_sign_of_a_low_precision():
    """At the point (1, 1, 1) the gradient has integer entries; nearby it has not."""
    assert eps_of_code(lambda x: 3.0 * x, np.ones(3), np.full(3, 3.0)) == 2.0**-52
    assert eps_of_code(lambda x: (3.0 * x).astype(np.float32).astype(float), np.ones(3), np.full(3, 3.0)) == 2.0**-23


def test_a_certificate_without_a_run_allows_for_code_in_float32():
    """The residual is zero as computed, and the point is not the solution."""
    x = SOLUTION.astype(np.float32).astype(float) * (1.0 + 1e-8)
    found = problem(lambda v: in_float32(v) - in_float32(x)).certificate(x, np.zeros(1))
    assert found.Fx == 0.0
    assert found.distance > 1e-7


@pytest.mark.slow
def test_code_in_float32_is_not_reported_as_a_wrong_L():
    """The gradients of such code contradict L, by the rounding of float32."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        H = rng.standard_normal((4, 4))
        H = (H @ H.T + np.eye(4)).astype(np.float32).astype(float)
        mu, L = np.linalg.eigvalsh(H)[[0, -1]]

        def grad(x, H=H):
            return (H.astype(np.float32) @ x.astype(np.float32) - 1.0).astype(float)

        g = sp.Smooth(grad, mu=mu * (1 - 1e-12), L=L * (1 + 1e-12))
        A = rng.standard_normal((4, 2))
        result = sp.solve(sp.Saddle(g, sp.Quadratic(1.0), A), max_calls=60, tol=1e-12)
        x = np.linalg.solve(H + A @ A.T, np.ones(4))
        assert np.linalg.norm(result.x - x) + np.linalg.norm(result.y - A.T @ x) <= result.certificate.distance


def test_a_correction_from_a_point_without_residual_goes_on_with_A_itself():
    """Code in float32 returns a field of zero where the solution is not."""
    method, f = Refined(make_method("lpd-gs"), "float32"), problem(in_float32)
    start = method.init(f, SOLUTION, np.zeros(1))
    assert start.start == 0.0
    assert method.correct(f, start).exact


@pytest.mark.parametrize("phase", range(13))
def test_errors_that_drift_slowly_with_the_calls_are_measured(phase):
    """Differences along a line take a slow drift for a part of the function; gradients at one point show it."""
    calls = [phase]

    def drifting(x):
        calls[0] += 1
        return P * x + B + 1e-8 * np.sin(0.5 * calls[0]) * np.ones(3)

    audit = Audit(problem(drifting), Meter())
    audit.certificate(SOLUTION, np.zeros(1))
    audit.keep(another=True)
    audit.noise.measure(SOLUTION, np.zeros(1))
    assert audit.noise.gradients["g"] > math.sqrt(3.0) * 1e-8


# -- differences of values ---------------------------------------------------------------------------------------------


def differences(value, x, step):
    """Forward differences, with steps that are relative to the entries of x."""
    steps = step * np.maximum(1.0, np.abs(x))
    return np.array([(value(x + h * e) - value(x)) / h for h, e in zip(steps, np.eye(x.size), strict=True)])


@pytest.mark.parametrize("step", [1e-5, 1e-6])
def test_slightly_smaller_curvatures_of_differences_are_no_reason_for_an_error(step):
    """Where x < 0 the steps shrink with x, so that differences show a mu that is too small by half a step."""
    grads = lambda x: differences(value, x, step)  # noqa: E731
    found = sp.solve(problem(grads), [-20.0, -20.0, -20.0], [0.0], method="extragradient", tol=1e-2)
    assert found.status == "uncertified"  # nothing is proven by such gradients
    assert np.linalg.norm(found.x - SOLUTION) <= 1e-2 + 30.0 * step
    point = sp.certify(problem(grads), [-30.0, 5.0, -3.0], [0.0])
    assert point.distance >= np.linalg.norm(point.x - SOLUTION)


def test_a_mu_that_is_too_large_by_more_than_that_is_an_error():
    wrong = sp.Saddle(sp.Smooth(lambda x: P * x + B, mu=0.1002, L=1.0), sp.Quadratic(1.0), np.zeros((3, 1)))
    with pytest.raises(sp.AssumptionError, match="mu of g is too large"):
        sp.solve(wrong, tol=1e-6)
    slight = sp.Saddle(sp.Smooth(lambda x: P * x + B, mu=0.100002, L=1.0), sp.Quadratic(1.0), np.zeros((3, 1)))
    found = sp.solve(slight, tol=1e-6)
    assert found.solved
    assert np.linalg.norm(found.x - SOLUTION) <= found.certificate.distance


def test_what_all_gradients_have_in_common_is_assumed_unless_values_show_it():
    """Forward differences of a quadratic function are the exact gradient of another one."""
    grad = lambda x: P * (x + 0.5e-4) + B  # noqa: E731
    alone = sp.solve(problem(grad), tol=1e-8)
    assert any("An error that gradients at all points have in common" in said for said in alone.certificate.assumes)
    beside = sp.solve(problem(grad, value=value), tol=1e-3)
    assert np.linalg.norm(beside.x - SOLUTION) <= beside.certificate.distance
    assert not any("have in common" in said for said in beside.certificate.assumes)


@pytest.mark.parametrize("variables", [1, 2, 3])
def test_gradients_of_few_variables_are_not_taken_for_exact_by_chance(variables):
    """The targets of these squared losses nearly cancel, so that sums have errors of many units of rounding."""
    rng = np.random.default_rng(5)
    for _ in range(150):
        D, t = rng.standard_normal((8, variables)), 5.0 * rng.standard_normal(8)
        t -= 0.99 * D @ np.linalg.lstsq(D, t, rcond=None)[0]
        grad = lambda x, D=D, t=t: D.T @ (D @ x - t) / 8.0  # noqa: E731
        x, L = np.linalg.lstsq(D, t, rcond=None)[0], np.linalg.norm(D, 2) ** 2 / 8.0
        rest = [a - b for a, b in zip(times(exact(D), exact(x)), exact(t), strict=True)]
        true = [v / 8 for v in times(transposed(exact(D)), rest)]
        p = grad(x)
        wrong = [a - b for a, b in zip(true, exact(p), strict=True)]
        assumed = 2.0 * 2.0**-52 * (np.linalg.norm(p) + L * np.linalg.norm(x))
        allowed = assumed + noise_level(grad, x, p, np.linalg.norm(x), L).allowance
        assert dot(wrong, wrong) <= exact(allowed) ** 2


def quotients_of(name):
    """The gradient of the quadratic function by differences of its values."""
    moved = {
        "forward": lambda x: 1e-6 + 0.0 * x,
        "relative to the length": lambda x: 1e-6 * (1.0 + np.linalg.norm(x)) + 0.0 * x,
        "hypotenuse": lambda x: 1e-6 * np.hypot(1.0, x),
        "one for each entry": lambda x: np.array([1e-6, 4e-5, 3e-7]) + 0.0 * x,
        "relative": lambda x: 1e-6 * np.abs(x),
        "at least one": lambda x: 1e-6 * np.maximum(1.0, np.abs(x)),
        "central": lambda x: 1e-5 + 0.0 * x,
        "central as in SciPy": lambda x: np.finfo(float).eps ** (1.0 / 3.0) * np.maximum(1.0, np.abs(x)),
    }[name]

    def grad(x):
        steps = np.diag(moved(x))
        back = steps if name.startswith("central") else 0.0 * steps
        ends = [(x + e, x - b) for e, b in zip(steps, back, strict=True)]
        if name.endswith("SciPy"):  # divides by the steps that are left after rounding
            return np.array([(value(a) - value(b)) / (a - b).sum() for a, b in ends])
        return np.array([(value(a) - value(b)) / (e + f).sum() for (a, b), e, f in zip(ends, steps, back, strict=True)])

    return grad


QUOTIENTS = [
    *("forward", "relative", "at least one", "central", "central as in SciPy"),
    *("relative to the length", "hypotenuse", "one for each entry"),
]


@pytest.mark.parametrize("name", QUOTIENTS)
def test_gradients_by_differences_of_values_prove_nothing_without_the_values(name):
    f, far = problem(quotients_of(name)), [-4.0, 3.0, 1.0]
    result = sp.solve(f, far, [0.0], tol=1e-2)
    assert result.status == "uncertified"
    assert "the gradient of g seems to be computed from differences of values" in result.message
    assert result.certificate.distance == result.certificate.gap == math.inf
    assert result.certificate.is_estimated
    unsolved = sp.solve(f, far, [0.0], tol=1e-12, max_calls=20, method="extragradient")
    assert unsolved.certificate.distance == math.inf
    assert sp.certify(f, SOLUTION, [0.0]).distance == math.inf
    found = {finding.found: finding for finding in sp.check(f, SOLUTION).problems}
    assert "give value= to have them measured" in found["rounded as differences"].advice
    measured = sp.solve(problem(quotients_of(name), value=value), far, [0.0], tol=1e-2)
    assert measured.solved
    assert np.linalg.norm(measured.x - SOLUTION) <= measured.certificate.distance


def test_no_problem_of_a_batch_is_certified_by_differences_of_values():
    grad = quotients_of("forward")
    both = sp.Smooth(lambda x: np.concatenate([grad(part) for part in x.reshape(2, 3)]), mu=0.1, L=1.0)
    batch = sp.Batch(both, sp.Quadratic(np.ones(2)), np.zeros((2, 3, 1)))
    for result in sp.solve_many(batch, tol=1e-2):
        assert result.status == "uncertified"
        assert result.certificate.distance == math.inf


def noisy_code(name):
    """Gradients with errors that are noise: after cancellation, of scaled float32, and drawn at random."""
    rng = np.random.default_rng(0)
    return {
        "cancellation": lambda x: (1e4 * (P * x + np.pi) + 1e4 * (B - np.pi)) * 1e-4,
        "float32, scaled": lambda x: 0.37 * in_float32(x) / 0.37,
        "drawn": lambda x: P * x + B + 1e-10 * rng.standard_normal(3),
        "fine and random": lambda x: P * x + B + 1e-10 * np.sin(1e13 * x),
    }[name]


@pytest.mark.parametrize("name", ["cancellation", "float32, scaled", "drawn", "fine and random"])
def test_other_noise_is_not_taken_for_that_of_differences(name):
    result = sp.solve(problem(noisy_code(name)), tol=1e-4)
    assert result.solved
    assert np.linalg.norm(result.x - SOLUTION) <= result.certificate.distance


class OfTwoMatrices:
    """An operator whose transpose is that of another matrix."""

    def __init__(self, A, At):
        self.A, self.At, self.shape = A, At, A.shape

    def __matmul__(self, y):
        return self.A @ y

    @property
    def T(self):
        return OfTwoMatrices(self.At, self.A)


@pytest.mark.parametrize("off", [3e-14, 1e-13])
@pytest.mark.parametrize("seed", range(3))
def test_certificates_allow_for_a_transpose_that_is_slightly_wrong(off, seed):
    """The differences are too small to be called an error, and are much larger than rounding."""
    rng = np.random.default_rng([SEED, seed])
    m, n = 30, 20
    A = rng.standard_normal((m, n)) / np.sqrt(m)
    At = A.T.copy()
    At[:, rng.integers(m)] += off
    b, c = rng.standard_normal(m), rng.standard_normal(n)
    right = np.linalg.solve(np.block([[np.eye(m), A], [-A.T, np.eye(n)]]), -np.concatenate([b, c]))
    f = sp.Saddle(sp.Quadratic(1.0, b), sp.Quadratic(1.0, c), OfTwoMatrices(A, At))
    for point in (sp.solve(f, tol=1e-9), sp.certify(f, right[:m], right[m:]), sp.solve(f, tol=1e-20, max_calls=200)):
        away = np.linalg.norm(point.x - right[:m]) + np.linalg.norm(point.y - right[m:])
        assert away <= point.certificate.distance + 1e-15
        assert point.certificate.distance <= 1e-9
    exact = sp.solve(sp.Saddle(f.g, f.h, OfTwoMatrices(A, A.T)), tol=1e-9).certificate
    assert exact.noise_x + exact.noise_y <= 3e-14  # of rounding
