"""solve: how runs end, their results, and invalid arguments."""

import gc
import json
import math
import re
import signal
import subprocess
import sys
import textwrap
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
from cases import case
from reference import distance
from tiers import slow_except

import saddlepoint as sp
from saddlepoint.ground.spectrum import UNPROVEN
from saddlepoint.parts.coupling import Norm
from saddlepoint.problems.audit import Audit
from saddlepoint.problems.generators import random_logistic, random_quadratic
from saddlepoint.problems.oracle import Meter
from saddlepoint.solving.auto import choose
from saddlepoint.solving.monitor import latest_check, next_check
from saddlepoint.solving.result import Record
from saddlepoint.solving.target import Target


class Point(NamedTuple):
    """The least state that a method can have."""

    x: Any
    y: Any


@dataclass(frozen=True)
class Given(sp.Method):
    """A method whose ``init`` and ``step`` return what a test wants; its steps call no oracle."""

    first: Any = Point
    later: Any = Point

    def init(self, f, x, y):
        return self.first(x, y)

    def step(self, f, state):
        return self.later(state.x, state.y)


@pytest.mark.parametrize(
    ("given", "name"), [({"first": lambda x, y: (x, y)}, "init"), ({"later": lambda x, y: None}, "step")]
)
def test_states_without_x_and_y_are_refused(given, name):
    f, *_ = case("logistic")
    with pytest.raises(sp.ProblemError, match=f"{name} of the method given returned .*; expected a state whose first"):
        sp.solve(f, method=Given(**given))


def test_a_method_that_calls_no_oracle_keeps_to_its_time():
    f, *_ = case("logistic")
    result = sp.solve(f, method=Given(), max_seconds=0.05)
    assert result.status is sp.Status.OUT_OF_TIME
    assert result.iterations > 0


def test_a_solved_run_tells_everything():
    f, *_ = case("logistic, mu_x < mu_y")
    result = sp.solve(f, method="dippa", tol=1e-8)
    assert result.solved
    assert result.status is sp.Status.SOLVED
    # The certificate is that of the point returned.
    assert result.certificate[:-1] == f.certificate(result.x, result.y)[:-1]
    assert set(result.calls) == {"grad_g", "grad_h", "A", "At"}
    assert result.passes == result.calls["A"] + result.calls["At"]
    assert result.iterations > 0
    assert 0 < result.method_seconds < result.seconds
    assert result.method == "dippa"
    assert {"alpha", "kappa", "rho", "C", "K1", "K2"} == set(result.parameters)
    assert result.monitor_calls == len(result.history)
    text = repr(result)
    for word in ("solved", "certificate", "calls", "dippa", "float64"):
        assert word in text


def test_history_is_light_and_goes_to_pandas():
    f, *_ = case("balanced")
    result = sp.solve(f, method="dippa", tol=1e-8)
    history = result.history
    assert isinstance(history[0], Record)
    assert history[0].iteration == history[0].grad_g == 0
    for name in ("iteration", "grad_g", "A", "seconds"):
        assert (np.diff(history.column(name)) >= 0).all()
    assert history[-1].distance == result.certificate.distance
    assert history[-1].grad_g == result.calls["grad_g"]
    frame = history.to_pandas()
    assert list(frame.columns) == list(Record._fields)
    assert len(frame) == len(history) == len(list(history))
    assert len(history[:2]) == 2
    assert "records" in repr(history)
    assert len(sp.solve(f, method="dippa", history=False).history) == 0


def test_certificates_are_taken_on_a_geometric_grid():
    f = random_quadratic(60, 50, 1e3, 1e3, 100, seed=0)
    result = sp.solve(f, method="aipfb", tol=1e-8)
    assert result.iterations > 300
    assert len(result.history) < 30 + math.log(sum(result.calls.values())) / math.log(1.05)


def test_certificates_do_not_change_the_run():
    f, *_ = case("balanced")
    quiet = sp.solve(f, method="dippa", tol=1e-8)
    seen = []
    watched = sp.solve(f, method="dippa", tol=1e-8, callback=seen.append, history=False)
    np.testing.assert_array_equal(quiet.x, watched.x)
    assert quiet.calls == watched.calls
    assert len(seen) == len(quiet.history)


def test_the_callback_sees_results_and_can_stop():
    f, *_ = case("balanced")
    seen = []

    def callback(result):
        seen.append(result)
        assert result.status == "running"
        assert result.x.shape == (f.shape[0],)
        if len(seen) == 5:
            raise StopIteration

    result = sp.solve(f, method="dippa", tol=1e-12, callback=callback)
    assert result.status == "stopped by the callback"
    assert not result.solved
    assert len(seen) == 5
    assert result.certificate.distance == min(r.certificate.distance for r in seen)


def test_the_best_certified_point_is_returned():
    f, *_ = case("logistic")
    result = sp.solve(f, np.full(f.shape[0], 10.0), method="dippa", tol=1e-12, max_calls=60)
    assert result.certificate.distance == min(record.distance for record in result.history)


def test_a_start_at_the_solution_is_solved_at_once():
    f, xs, ys = case("balanced")
    result = sp.solve(f, xs, ys, tol=1e-6)
    assert result.solved
    assert result.iterations == 0
    assert sum(result.calls.values()) == 0


def test_a_run_may_begin_where_another_ended():
    f, *_ = case("logistic")
    part = sp.solve(f, tol=1e-9, max_calls=50)
    assert not part.solved
    rest = sp.solve(f, part.x, part.y, tol=1e-9)
    assert rest.solved


@pytest.mark.parametrize("method", ["dippa", "aipfb", "catalyst-dippa", "apfb", "dppa"])
def test_a_stall_at_the_precision_of_the_arithmetic_is_detected(method):
    f, xs, ys = case("balanced")
    result = sp.solve(f, method=method, tol=1e-300)
    assert result.status == "stalled"
    assert not result.solved
    assert "the precision of float64 allows no more; raise tol" in result.message
    assert distance(result.x, result.y, xs, ys) <= result.certificate.distance <= 1e-9


@pytest.mark.parametrize("method", ["dippa", "aipfb", "catalyst-aipfb"])
def test_a_float32_run_stalls_at_its_own_precision(method):
    rng = np.random.default_rng(0)
    P = np.geomspace(0.05, 1, 30).astype(np.float32)
    A = rng.standard_normal((30, 30)).astype(np.float32)
    f = sp.Saddle(sp.Quadratic(P, np.ones(30, np.float32)), sp.Quadratic(P, np.ones(30, np.float32)), A)
    result = sp.solve(f, method=method, tol=1e-9)
    assert result.status == "stalled"
    assert "the precision of float32 allows no more; use float64" in result.message
    assert result.x.dtype == np.float32
    assert result.certificate.distance < 1e-2


def test_ctrl_c_returns_the_best_point_so_far():
    f, *_ = case("logistic")
    calls = []

    def grad(x):
        calls.append(1)
        if len(calls) == 100:
            raise KeyboardInterrupt
        return f.g.grad(x)

    g = sp.Smooth(grad, mu=f.mu_x, L=f.L_x)
    result = sp.solve(sp.Saddle(g, f.h, f.A), method="dippa", tol=1e-12)
    assert result.status == "interrupted"
    assert "go on from x, y" in result.message
    assert result.certificate.distance < result.history[0].distance


@pytest.mark.slow
def test_a_real_ctrl_c_ends_a_run_with_its_best_point():
    script = textwrap.dedent("""
        import json, time
        import numpy as np
        import saddlepoint as sp

        def slow(x):
            time.sleep(0.002)
            return np.linspace(1e-6, 1.0, 80) * x - 1.0

        f = sp.Saddle(sp.Smooth(slow, mu=1e-6, L=1.0), sp.Quadratic(1e-6), np.ones((80, 60)))

        def report(result):
            if result.iterations:
                print("stepping", flush=True)

        r = sp.solve(f, method="aipfb", tol=1e-12, callback=report)
        print(json.dumps([r.status, r.iterations, r.certificate.distance < np.inf]))
    """)
    run = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline().strip() == "stepping"
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=300)
    assert err == ""
    status, iterations, certified = json.loads(out.splitlines()[-1])
    assert status == "interrupted"
    assert iterations > 0
    assert certified


def test_a_run_that_leaves_the_finite_numbers_says_so():
    state = {"calls": 0}

    def grad(x):
        state["calls"] += 1
        return x if state["calls"] < 50 else x * np.nan

    f = sp.Saddle(sp.Smooth(grad, mu=0.9, L=1.1), sp.Quadratic(1.0, np.ones(3)), 5 * np.eye(3))
    result = sp.solve(f, np.ones(3), method="aipfb", tol=1e-30)
    assert result.status == "diverged"
    assert "sp.check examines mu, L and the gradients" in result.message
    assert np.isfinite(result.x).all()


def test_a_gradient_that_writes_into_its_argument_never_gets_a_point_of_the_run():
    """Every way into the library gives it a copy, or it would end in NumPy's error about a read-only array."""

    def grad(x):
        x *= 1.0 - 1e-3
        return x

    f = sp.Saddle(sp.Smooth(grad, mu=0.9, L=1.1), sp.Quadratic(1.0, np.ones(3)), np.eye(3))
    with pytest.raises(sp.ProblemError, match="changed the array it was given"):
        sp.solve(f, np.ones(3), tol=1e-9)
    audit = Audit(f, Meter())
    point = np.ones(3)
    point.flags.writeable = False
    assert audit.floor(point, point, f.certificate(np.ones(3), np.ones(3))) >= 0.0


def test_an_estimated_L_is_corrected_on_the_way():
    """The gradient is flat near the start and steep at the solution: no estimate at the start can know that."""

    def grad(x):
        return 0.1 * x + 5.0 * (np.tanh(8.0 * (x - 3.0)) + 1.0) - 5.0

    f = sp.Saddle(sp.Smooth(grad, mu=0.1, L=None), sp.Quadratic(1.0, np.ones(4)), 0.1 * np.eye(4))
    before = f.L_x
    result = sp.solve(f, method="dippa", tol=1e-8)
    assert result.solved
    assert before < 20.0  # the true L is 40.1
    assert f.L_x == before  # the problem itself is left alone


def test_a_method_that_calls_nothing_still_ends():
    class Idle(sp.Method):
        def init(self, f, x, y):
            return sp.State(x, y)

        def step(self, f, s):
            return s

    seen = []

    def callback(result):
        seen.append(result.iterations)
        if len(seen) == 4:
            raise StopIteration

    assert sp.solve(case("balanced")[0], method=Idle(), callback=callback).status == "stopped by the callback"
    assert seen == [0, 24, 48, 72]


def test_a_wide_oracle_in_a_narrow_problem_is_certified_at_the_point_returned():
    A, P = np.eye(3, dtype=np.float32), np.array([1.0, 2.0, 3.0])
    f = sp.Saddle(sp.Smooth(lambda x: P * x - 1.0, mu=1.0, L=3.0), sp.Quadratic(2.0), A)
    result = sp.solve(f, method="dippa", tol=1e-5)
    assert result.x.dtype == np.float32
    assert result.certificate[:-1] == f.certificate(result.x, result.y)[:-1]


def test_dtype_follows_the_input():
    A32 = np.eye(3, dtype=np.float32)
    one, other = sp.Quadratic(2.0), sp.Quadratic(np.ones(3, np.float32))
    assert sp.solve(sp.Saddle(one, other, A32)).x.dtype == np.float32
    assert sp.solve(sp.Saddle(one, sp.Quadratic(np.ones(3)), A32)).x.dtype == np.float64
    assert sp.solve(sp.Saddle(one, one, np.eye(3, dtype=int))).x.dtype == np.float64
    result = sp.solve(sp.Saddle(one, other, A32), np.ones(3), [1, 2, 3])
    assert result.x.dtype == np.float32


def test_progress_bars_draw_and_leave_the_result_alone(capfd):
    f, *_ = case("balanced")
    plain = sp.solve(f, method="dippa", tol=1e-6)
    shown = sp.solve(f, method="dippa", tol=1e-6, progress=True)
    np.testing.assert_array_equal(plain.x, shown.x)
    assert "certified" in capfd.readouterr().err


def test_progress_is_printed_plainly_without_rich(capsys, monkeypatch):
    from saddlepoint.solving import progress

    monkeypatch.setattr(progress, "RichProgress", lambda *_: (_ for _ in ()).throw(ImportError()))
    sp.solve(case("balanced")[0], method="dippa", progress=True)
    assert "dippa, step 0: certified" in capsys.readouterr().err


@pytest.mark.slow
def test_a_result_is_plotted_and_saved(tmp_path):
    result = sp.solve(case("balanced")[0], tol=1e-6)
    figure = result.plot(tmp_path / "deep" / "run.png")
    assert (tmp_path / "deep" / "run.png").stat().st_size > 5000
    assert [axis.get_xlabel() for axis in figure.axes] == ["gradient calls (g and h)", "products with A and A'"]
    result.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as saved:
        np.testing.assert_array_equal(saved["x"], result.x)
        np.testing.assert_array_equal(saved["y"], result.y)
        summary = json.loads(str(saved["summary"]))
        assert saved["history"].shape == (len(result.history), len(Record._fields))
    assert summary["solved"] is True
    assert summary["certificate"]["distance"] == result.certificate.distance
    assert len(result.to_dict(arrays=True)["x"]) == result.x.size


def test_the_plot_shows_the_gap_where_no_distance_is_certified():
    game = sp.Saddle(sp.Simplex(), sp.Simplex(), np.random.default_rng(1).standard_normal((8, 6)))
    result = sp.solve(game, gap=1e-7)
    left, _ = result.plot().axes
    assert left.get_ylabel() == "certified duality gap"
    np.testing.assert_array_equal(left.get_lines()[0].get_ydata(), result.history.column("gap"))


# -- constants that are corrected during a run ------------------------------------------------------------------------


class Claimed(sp.Coupling):
    """A dense A whose norm is claimed to be something."""

    def __init__(self, A, norm):
        self.A, self.claim, self.shape, self.dtype = A, norm, A.shape, A.dtype

    def mul(self, y):
        return self.A @ y

    def tmul(self, x):
        return self.A.T @ x

    def _transpose(self):
        return Claimed(self.A.T, self.claim)

    @property
    def norm_estimate(self):
        return Norm(0.0, self.claim, 0.0, 0)


def claimed(f, **wrong):
    """f with other constants of g, or another norm of A."""
    g = sp.Smooth(f.g.grad, mu=wrong.get("mu", f.mu_x), L=wrong.get("L", f.L_x))
    return sp.Saddle(g, f.h, Claimed(f.A.matrix(), wrong["norm"]) if "norm" in wrong else f.A)


WRONG_CONSTANTS = {
    "L of g": lambda f: claimed(f, L=f.L_x / 10),
    "mu of g": lambda f: claimed(f, mu=5 * f.mu_x),
    "|A|": lambda f: claimed(f, norm=f.norm / 20),
}


def records_of(*pairs):
    """Records with these calls of grad g and certified distances."""
    return [Record(0, calls, 0, 0, 0, 0, 0.0, distance, 1.0) for calls, distance in pairs]


def ahead(records, tol):
    """Where the certificate after 1100 calls is taken."""
    return next_check(1100, records, Target("tol", tol), records[-1].distance / tol)


def test_certificates_come_where_the_distance_is_expected_to_be_below_tol():
    steady = records_of((1000, 1e-2), (1100, 1e-3))
    assert ahead(steady, 1e-3 / 0.85 / 10**0.8) == 1180  # a factor of 10 in 100 calls
    assert ahead(steady, 1e-2) == 1124 == ahead(steady, 1.2e-3)  # a certificate is four calls
    slow = records_of((1000, 1e-2), (1100, 0.5e-2))
    assert ahead(slow, 1e-9) == 2380 == latest_check(1100)
    assert next_check(1100, slow, Target("tol", 1e-9), 5e6, racing=True) == 1650 == latest_check(1100, racing=True)
    fast = records_of((1097, 1e-2), (1100, 1e-3))  # 3 log 1e4/log 10 are fewer than 24
    assert ahead(fast, 1e-30) == ahead(fast, 1e-9) == 1124
    for records in (records_of((1000, 1.0), (1100, 2.0)), records_of((0, 1.0)), records_of((0, math.inf), (9, 1.0))):
        assert ahead(records, 1e-9) == 1155
    assert latest_check(100_000) == 105_000


@pytest.mark.parametrize("name", ["newton", "anderson-condat-vu", "anderson-imex"])
def test_the_residual_of_a_method_says_when_to_certify(name):
    """A run ends about where the certified distance falls below tol, not at a multiple of some number of calls."""
    f, tol = random_logistic(30, 20, 300, 200, 20), 1e-7
    method, steps = sp.make_method(name), 0
    view = method.normal_form(f)
    state = method.init(view.problem, *view.to(np.zeros(30), np.zeros(20)))
    while f.certificate(*view.back(state.x, state.y)).distance > tol:
        state, steps = method.step(view.problem, state), steps + 1
    result = sp.solve(f, method=name, tol=tol)
    assert result.solved
    assert steps <= result.iterations <= steps + 3
    assert result.monitor_calls < 12


@pytest.mark.parametrize("name", ["anderson-condat-vu", "anderson-imex"])
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_a_short_run_is_certified_at_its_start_and_at_its_end(name, start):
    """The residual of the first step and the certificate of the start say when the run may be done."""
    rng = np.random.default_rng(5)
    b, c, A = rng.standard_normal(30), rng.standard_normal(20), 0.05 * rng.standard_normal((30, 20))
    g, h = (
        sp.Smooth(lambda x: x + np.tanh(x - b), mu=1.0, L=2.0),
        sp.Smooth(lambda y: y + np.tanh(y - c), mu=1.0, L=2.0),
    )
    result = sp.solve(sp.Saddle(g, h, A), np.full(30, start), np.full(20, start), method=name, tol=1e-4)
    assert result.solved
    assert result.iterations > 3
    assert result.monitor_calls == 2


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "condat-vu", "dippa", "lpd-gs", "extragradient", "ogda"])
def test_an_estimate_of_the_norm_that_is_too_small_is_corrected_on_the_way(method, tmp_path):
    f, xs, ys = case("mu_x < mu_y")

    def problem():
        A = sp.as_coupling(f.A.matrix())
        A.__dict__["norm_estimate"] = Norm(0.0, f.norm / 20, UNPROVEN, 6)
        return sp.Saddle(f.g, f.h, A)

    result = sp.solve(problem(), method=method, tol=1e-6)
    assert result.solved, result
    assert distance(result.x, result.y, xs, ys) <= result.certificate.distance <= 1e-6
    if method != "auto":  # auto may choose a method that does not depend on |A|
        assert [correction["constant"] for correction in result.provenance["corrections"]] == ["norm"]
        assert result.provenance["constants"]["norm"]["upper"] >= np.linalg.norm(f.A.matrix(), 2)
    assert "refuted" not in result.message  # the norm was an estimate and no claim
    for budget in (10, 40, 200):
        sp.solve(problem(), method=method, tol=1e-6, max_calls=budget, checkpoint=tmp_path / "run")
    again = sp.solve(problem(), method=method, tol=1e-6, checkpoint=tmp_path / "run")
    assert again.x.tobytes() == result.x.tobytes()
    assert (again.calls, again.message) == (result.calls, result.message)


@pytest.mark.slow
@pytest.mark.parametrize("method", slow_except(["auto", "dippa", "lpd-gs", "catalyst-aipfb"], "auto"))
@pytest.mark.parametrize("kind", WRONG_CONSTANTS)
def test_a_refuted_constant_is_adapted_if_that_is_wished(kind, method, tmp_path):
    f, xs, ys = case("mu_x < mu_y")
    wrong, x0 = WRONG_CONSTANTS[kind](f), np.full(f.shape[0], 5.0)
    result = sp.solve(wrong, x0, method=method, tol=1e-6, on_violation="adapt")
    assert result.solved, result
    assert distance(result.x, result.y, xs, ys) <= result.certificate.distance <= 1e-6
    if kind == "mu of g":  # the one on which certificates rest
        assert result.provenance["constants"]["mu_x"] <= f.mu_x
        assert all(record.distance > 0.0 for record in result.history)
    assert result.provenance["corrections"]
    for correction in result.provenance["corrections"]:
        name = "|A|" if correction["constant"] == "norm" else f"{correction['constant']} of {correction['function']}"
        assert f"{name} = {correction['given']:.6g} was refuted, and {correction['used']:.6g} used" in result.message
        assert name == kind
    with pytest.raises(sp.AssumptionError) as caught:
        sp.solve(wrong, x0, method=method, tol=1e-6)
    assert caught.value.suggested is not None
    for budget in (20, 100, 400):
        sp.solve(
            wrong, x0, method=method, tol=1e-6, on_violation="adapt", max_calls=budget, checkpoint=tmp_path / "run"
        )
    again = sp.solve(wrong, x0, method=method, tol=1e-6, on_violation="adapt", checkpoint=tmp_path / "run")
    assert again.x.tobytes() == result.x.tobytes()
    assert (again.calls, again.message) == (result.calls, result.message)


def test_what_is_not_convex_cannot_be_adapted():
    f = sp.Saddle(sp.Smooth(lambda x: -x, mu=1.0, L=2.0), sp.Quadratic(1.0, np.ones(3)), np.eye(3))
    with pytest.raises(sp.AssumptionError, match="g is not convex") as caught:
        sp.solve(f, np.ones(3), method="dippa", on_violation="adapt")
    assert caught.value.suggested is None
    assert caught.value.result is not None


def test_the_history_says_what_the_smaller_mu_proves():
    f = case("mu_x < mu_y")[0]
    result = sp.solve(claimed(f, mu=5 * f.mu_x), np.full(f.shape[0], 5.0), method="dippa", on_violation="adapt")
    used = result.provenance["constants"]["mu_x"]
    start = claimed(f, mu=used).certificate(np.full(f.shape[0], 5.0), np.zeros(f.shape[1]))
    assert result.provenance["corrections"]
    assert result.history[0].distance >= start.distance
    assert result.history[0].gap >= start.gap


F = random_logistic(5, 4, 10, 10, 2)
BAD = [
    (lambda: sp.solve(3), "f is a int; expected a Saddle"),
    (lambda: sp.solve(F, np.zeros(4)), "x0 has 4 entries; expected 5"),
    (lambda: sp.solve(F, y0=np.zeros((4, 1))), r"y0 has shape \(4, 1\); expected a vector"),
    (lambda: sp.solve(F, [math.nan] * 5), "x0 has a nan at index 0"),
    (lambda: sp.solve(F, ["a"] * 5), "expected real numbers"),
    (lambda: sp.solve(F, tol=0), "tol is 0.0; expected a positive number"),
    (lambda: sp.solve(F, tol=-1e-3), "tol is -0.001"),
    (lambda: sp.solve(F, tol=math.nan), "tol is nan"),
    (lambda: sp.solve(F, tol="small"), "tol is 'small'"),
    (lambda: sp.solve(F, max_seconds=0), "max_seconds is 0.0"),
    (lambda: sp.solve(F, on_violation="ignore"), "on_violation is 'ignore'; expected one of raise, adapt"),
    (lambda: sp.solve(F, callback=3), "callback is 3; expected a function"),
    (lambda: sp.solve(F, method="simplex"), "unknown method 'simplex'; the known ones are auto, adapdm"),
    (lambda: sp.solve(F, method=sp.DIPPA), r"give an object, DIPPA\(\)"),
    (lambda: sp.solve(F, method=3), "method is 3; expected a name or a Method object"),
    (lambda: sp.solve(F, method="apfb"), r"apfb needs the prox of g, but g \(Logistic\) has none"),
    (lambda: sp.Saddle(np.sin, F.h, F.A), "g is a ufunc; expected a Smooth"),
    (lambda: sp.Saddle(F.h, F.g, F.A), "g has 4 variables but A has 5 rows"),
    (
        lambda: sp.solve(sp.Saddle(F.h, sp.Logistic(np.ones((3, 5)), np.ones(3)), F.A.T)),
        r"h is not strongly convex \(mu = 0\)",
    ),
    (lambda: sp.solve(F, tol=1e-3, gap=1e-3), "tol and gap were given; expected one of tol, rtol and gap"),
    (lambda: sp.solve(F, gap=-1.0), "gap is -1"),
    (lambda: sp.solve(F, rtol=0.0), "rtol is 0"),
    (lambda: sp.solve(_shaped(lambda x: x[:-1])), r"returned an array of shape \(4,\) for a point of shape \(5,\)"),
    (lambda: sp.solve(_shaped(lambda x: 0.0)), "returned a float for a point of shape"),
    (lambda: sp.solve(_shaped(lambda x: None)), "returned a NoneType"),
    (lambda: sp.solve(_shaped(lambda x: x.astype(int))), "has dtype int64; expected float32 or float64"),
    (lambda: sp.solve(_shaped(lambda x: x * math.nan)), "the gradient of g is not finite at the start"),
]


def _shaped(grad):
    return sp.Saddle(sp.Smooth(grad, mu=1.0, L=1.0), F.h, F.A)


@pytest.mark.parametrize(("bad", "sentence"), BAD, ids=[sentence for _, sentence in BAD])
def test_bad_input_is_refused_in_a_sentence(bad, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        bad()


def test_problem_errors_are_value_errors():
    assert issubclass(sp.ProblemError, ValueError)
    assert "Saddle(5 x 4" in repr(F)


@pytest.mark.slow
def test_the_benchmarks_can_count_cpu_time():
    """The comparison with other solvers makes runs read CPU seconds, by replacing names of this package."""
    code = """
import numpy as np, saddlepoint as sp
from benchmarks.peers import clock
clock.use_for_ours()
f = sp.Saddle(sp.LogCosh(l2=1.0), sp.LogCosh(l2=1.0), np.ones((20, 10)))
assert sp.solve(f).solved and sp.solve(f, method="dippa", max_seconds=5.0).solved
clock.time.sleep(0.3)  # no time at all, by that clock
assert sp.solve(f).seconds < 0.3
"""
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# -- arguments are checked before anything is computed ----------------------------------------------------------------


WRONG = [
    ({"max_calls": -1}, "max_calls is -1"),
    ({"max_calls": {"grad": 3}}, "max_calls names the oracle 'grad'"),
    ({"max_seconds": 0.0}, "max_seconds is 0.0"),
    ({"tol": 0.0}, "tol is 0.0"),
    ({"method": "simplex"}, "unknown method 'simplex'"),
    ({"method": "newton"}, "newton needs g and h without simple terms"),
    ({"costs": "rubbish"}, "costs is 'rubbish'; expected a dict by oracle"),
    ({"costs": "rubbish", "method": "dippa"}, "costs is 'rubbish'; expected a dict by oracle"),
    ({"costs": {"grad_g": -1.0}, "method": "dippa"}, "costs of grad_g is -1.0"),
    ({"callback": 3}, "callback is 3"),
    ({"storage": "float16"}, "storage is 'float16'"),
    ({"on_violation": "ignore"}, "on_violation is 'ignore'"),
    ({"on_violation": np.ones(2)}, "on_violation is array([1., 1.]); expected one of raise, adapt"),
    ({"progress": "no"}, "progress is 'no'; expected True or False"),
    ({"history": np.ones(2)}, "history is array([1., 1.]); expected True or False"),
    ({"checkpoint": 3}, "checkpoint is 3"),
    ({"checkpoint": __file__}, "test_solve.py is not a checkpoint; delete it to begin anew, or name another file"),
    ({"checkpoint_every": -1.0}, "checkpoint_every is -1.0"),
    ({"checkpoint_every": -1.0, "checkpoint": None}, "checkpoint_every is -1.0"),
    ({"x0": np.ones(3)}, "x0 has 3 entries; expected 6"),
    ({"y0": [np.nan] * 5}, "y0 has a nan"),
]


@pytest.mark.parametrize(("options", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_a_wrong_argument_is_refused_before_any_call(options, sentence):
    calls = []

    class Operator:
        shape = (6, 5)

        def __matmul__(self, y):
            calls.append("A")
            return np.ones((6, 5)) @ y

        @property
        def T(self):
            return Transposed()

    class Transposed:
        shape = (5, 6)

        def __matmul__(self, x):
            calls.append("At")
            return np.ones((5, 6)) @ x

    def grad(x):
        calls.append("grad")
        return 2.0 * x

    def prox(v, t):
        calls.append("prox")
        return v

    g = sp.Smooth(grad, mu=1.0, L=3.0) + sp.Simple(prox)
    f = sp.Saddle(g, g, Operator())
    calls.clear()  # forget the calls that examined the operator
    with pytest.raises(sp.ProblemError, match=re.escape(sentence)):
        sp.solve(f, **options)
    assert calls == []


def test_the_progress_bar_shows_the_method_that_is_running(monkeypatch):
    """auto's first method makes no step, and the next one takes over."""
    from saddlepoint.solving import progress

    labels = []

    class Bar(progress.Progress):
        def __init__(self, tol, label, reading=None):
            labels.append(label)

        def show_method(self, label):
            labels.append(label)

    monkeypatch.setattr(progress, "RichProgress", Bar)
    f = random_logistic(20, 15, 100, 50, 20, seed=1)
    first = choose(f).methods[0]
    monkeypatch.setattr(type(first), "step", lambda self, f, s: s._replace(x=s.x * np.nan))
    result = sp.solve(f, tol=1e-6, progress=True)
    assert result.solved
    assert labels[0] == first.label
    assert labels[-1] == result.method != first.label


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.1, 2.0])
def test_a_run_keeps_to_its_memory_and_frees_it(strength):
    m, n = 6000, 3000
    rng = np.random.default_rng(5)
    A = strength * scipy.sparse.random_array((m, n), density=1e-3, rng=rng, format="csr")
    b = rng.standard_normal(m)
    g = sp.Smooth(lambda x: 0.1 * x + np.tanh(x - b), mu=0.1, L=1.1)
    h = sp.Smooth(lambda y: 0.1 * y + np.tanh(y), mu=0.1, L=1.1)
    f = sp.Saddle(g, h, A)
    vector = 8 * (m + n)
    peaks = {}
    gc.collect()
    gc.disable()
    try:
        for memory in (60, None):
            sp.solve(f, tol=1e-3, memory=memory)  # the first run computes what f keeps
            tracemalloc.start()
            result = sp.solve(f, tol=1e-3, memory=memory)
            left, peaks[memory] = (size / vector for size in tracemalloc.get_traced_memory())
            tracemalloc.stop()
            assert result.solved
            assert result.method.startswith("anderson")
            assert left < 10  # the result takes one of them; the window alone would take more
    finally:
        tracemalloc.stop()
        gc.enable()
    assert peaks[60] < 60
    assert peaks[None] > 60


def test_a_memory_that_is_too_small_is_refused():
    f, *_ = case("balanced")
    for memory in (48, 0, -1, 1.5, True, "much"):
        with pytest.raises(sp.ProblemError, match="expected a whole number of vectors above 48"):
            sp.solve(f, memory=memory)
    assert sp.Krylov().within(20).window == 10
    assert sp.Catalyst(sp.Anderson(sp.LPDGS())).within(20).method.memory == 20
    assert sp.Anderson(sp.LPDGS(), memory=5).within(20).memory == 5
    assert sp.DIPPA().within(3) == sp.DIPPA()
