"""sp.check: correct problems pass, and every violated assumption is named, with advice."""

import json
import re
import sys

import numpy as np
import pytest
from cases import BLACK_BOX, CASES, case
from reference import dense
from wrong_assumptions import VIOLATIONS, problem

import saddlepoint as sp
from saddlepoint.commands import run as cli


@pytest.mark.parametrize("name", CASES)
def test_correct_problems_pass(name):
    report = sp.check(case(name)[0])
    assert report.ok, report


@pytest.mark.parametrize("name", CASES)
def test_black_boxes_pass_at_the_solution(name):
    """Where a piecewise quadratic function has its kinks."""
    f, xs, ys = case(name)
    g, h = (sp.Smooth(q.grad, mu=q.mu, L=q.L, value=q.value, prox=q.prox if q.has_prox else None) for q in (f.g, f.h))
    report = sp.check(sp.Saddle(g, h, dense(f.A)), xs, ys, points=2, seed=1)
    assert report.ok, report


def test_the_report_is_readable():
    report = sp.check(BLACK_BOX())
    lines = repr(report).splitlines()
    assert lines[0].split() == ["what", "given", "found"]
    assert {line[: len("mu of g")] for line in lines} >= {"mu of g", "mu of h"}
    assert lines[-1].startswith("one call takes: grad_g ")
    assert report.ok
    assert report.problems == ()
    assert json.loads(json.dumps(report.to_dict()))["ok"] is True


NAMED = {
    "L of g": "give a larger one",
    "mu of g": "give a smaller one|check the gradient of g",
    "symmetry of g": "not the gradient of any function",
    "A' of A": "A' is not the transpose of A",
    "|A|": "is too small",
    "noise of grad g": "make the gradient exact",
}
FOUND = {
    "L / 2": "L of g",
    "L / 100": "L of g",
    "mu * 2": "mu of g",
    "mu * 100": "mu of g",
    "norm / 2": "|A|",
    "norm / 100": "|A|",
    "a sign": "symmetry of g",
    "asymmetric": "symmetry of g",
    "slightly asymmetric": "symmetry of g",
    "a sign in A'": "A' of A",
    "a row of A'": "A' of A",
    "A' scaled": "A' of A",
    "random noise": "noise of grad g",
    "noise": "noise of grad g",
    "not convex": "mu of g",
}


@pytest.mark.parametrize("violation", FOUND)
def test_a_violation_is_found(violation):
    correct, _, _ = problem("quadratic")
    report = sp.check(VIOLATIONS[violation](correct, plain=True))
    found = {finding.what: finding for finding in report.problems}
    assert FOUND[violation] in found, report
    assert re.search(NAMED[FOUND[violation]], found[FOUND[violation]].advice)
    assert set(found) <= {FOUND[violation], "mu of g"}, report  # a sign makes a convex function not convex, too


def one(**given):
    """A problem whose g is x'Px/2 with something else given along."""
    P = np.array([2.0, 1.0, 0.5])
    g = sp.Smooth(**({"grad": lambda x: P * x - 1.0, "mu": 0.5, "L": 2.0} | given))
    return sp.Saddle(g, sp.Quadratic(1.0), np.eye(3))


BUFFER = np.zeros(3)


def same_array(x):
    return np.multiply(2.0, x, out=BUFFER)


def changes_its_argument(x):
    x *= 2.0
    return x.copy()


WRONG = {
    "value": ({"value": lambda x: float(x @ x)}, "value of g"),
    "prox": ({"prox": lambda v, t: v / (1.0 + t)}, "prox of g"),
    "hessian": ({"hessian": lambda x: np.eye(3)}, "Hessian of g"),
    "quadratic": ({"grad": lambda x: x + 0.5 * np.tanh(x), "mu": 1.0, "quadratic": True}, "g quadratic"),
    "same array": ({"grad": same_array}, "gradient of g"),
    "argument": ({"grad": changes_its_argument}, "gradient of g"),
    "shape": ({"grad": lambda x: x[:2]}, "gradient of g"),
    "nan": ({"grad": lambda x: x * np.nan}, "gradient of g"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_else_is_given_is_compared_with_the_gradient(what):
    given, row = WRONG[what]
    report = sp.check(one(**given), np.full(3, 0.3))
    assert [finding.what for finding in report.problems] == [row], report
    assert report.problems[0].advice


def test_right_extras_pass():
    P = np.array([2.0, 1.0, 0.5])
    extras = {
        "value": lambda x: float(0.5 * x @ (P * x) - x.sum()),
        "prox": lambda v, t: (v + t) / (1.0 + t * P),
        "hessian": lambda x: np.diag(P),
        "quadratic": True,
    }
    assert sp.check(one(**extras)).ok


@pytest.mark.parametrize("seed", range(5))
def test_single_precision_passes(seed):
    rng = np.random.default_rng(seed)
    P = rng.uniform(0.1, 1.0, 30).astype(np.float32)
    g = sp.Smooth(lambda x: P * x - np.float32(1.0), mu=0.09, L=1.1, dtype=np.float32)
    f = sp.Saddle(g, sp.Quadratic(np.float32(1.0)), rng.standard_normal((30, 20)).astype(np.float32))
    report = sp.check(f, seed=seed)
    assert report.ok, report


def test_bad_arguments_are_refused():
    for bad, sentence in (({"points": 0}, "points is 0"), ({"seed": -1}, "seed is -1"), ({"x0": [1.0]}, "x0 has 1")):
        with pytest.raises(sp.ProblemError, match=sentence):
            sp.check(BLACK_BOX(), **bad)
    with pytest.raises(sp.ProblemError, match="f is a int; expected a Saddle"):
        sp.check(3)


def test_the_command_prints_the_report_and_sets_the_exit_code(tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "A.npy", np.eye(3))
    (tmp_path / "p.toml").write_text(
        'A = "A.npy"\n[g]\nkind = "quadratic"\nP = 2.0\n[h]\nkind = "quadratic"\nP = 1.0\nb = [1.0, 2.0, 3.0]\n'
    )

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["saddlepoint", "check", str(tmp_path / "p.toml"), *words])
        code = cli.run()
        return code, capsys.readouterr().out

    code, out = run()
    assert code == 0
    assert "mu of g" in out
    assert "one call takes: grad_g" in out
    code, out = run("--json", "--points", "1")
    assert code == 0
    assert json.loads(out)["ok"] is True
    wrong = sp.Report((sp.Finding("mu of g", "1", "<= 0.5", False, "give mu <= 0.5"),), {"A": 1e-6})
    monkeypatch.setattr("saddlepoint.commands.app.check_problem", lambda f, **how: wrong)
    code, out = run()
    assert code == 1
    assert "mu of g: give mu <= 0.5" in out


def test_a_hessian_with_jumps_is_not_called_wrong():
    """The Hessian of Huber's function jumps at its kinks, which steps of differences may cross."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        h = sp.Huber(rng.standard_normal((30, 5)), 1e-3 * rng.standard_normal(30), delta=1e-3, l2=0.1)
        report = sp.check(sp.Saddle(sp.Quadratic(1.0), h, np.zeros((2, 5))), seed=seed)
        assert report.ok, report


def test_a_wrong_hessian_is_found():
    wrong = sp.Smooth(lambda y: 2.0 * y + np.tanh(y), mu=2.0, L=3.0, hessian=lambda y: np.diag(2.0 + np.tanh(y) ** 2))
    report = sp.check(sp.Saddle(sp.Quadratic(1.0), wrong, np.zeros((2, 3))), y0=np.array([0.5, -0.3, 0.1]))
    assert [finding.what for finding in report.problems] == ["Hessian of h"]


def test_numbers_near_the_smallest_are_not_called_a_domain():
    tiny = sp.Smooth(lambda x: x - 1e-307, mu=1.0, L=1.0)
    report = sp.check(sp.Saddle(tiny, sp.Quadratic(1.0), np.zeros((2, 1))))
    assert not any("domain" in finding.what for finding in report.problems), report


def test_a_hessian_that_would_not_fit_the_memory_is_not_formed():
    calls = []
    g = sp.Smooth(lambda x: 2.0 * x, mu=2.0, L=2.0, hessian=lambda x: calls.append(len(x)) or 2.0 * np.eye(len(x)))
    assert sp.check(sp.Saddle(g, sp.Quadratic(1.0), np.ones((5000, 1)))).ok
    assert not calls
    assert sp.check(sp.Saddle(g, sp.Quadratic(1.0), np.ones((5, 1)))).ok
    assert calls


# -- gradients that do not depend on the point alone -------------------------------------------------------------------


def with_memory(change):
    """A problem whose gradient has the error ``change(calls)`` in every entry."""
    P, calls = np.array([2.0, 1.0, 0.5]), [0]

    def grad(x):
        calls[0] += 1
        return P * x - 1.0 + change(calls[0])

    return one(grad=grad)


REMEMBERING = {
    "after one call": lambda k: 1e-3 * (k > 1),
    "after sixty calls": lambda k: 1e-3 * (k > 60),
    "between two gradients that are compared": lambda k: 1e-3 * (k > 78),
    "grows": lambda k: 1e-9 * k,
    "drifts": lambda k: 1e-4 * np.sin(k / 3000.0),
}


@pytest.mark.parametrize("name", REMEMBERING)
def test_a_gradient_that_remembers_its_calls_is_found(name):
    """The first points are asked for again after all others."""
    report = sp.check(with_memory(REMEMBERING[name]))
    found = {finding.what: finding for finding in report.problems}
    assert "answers of grad g" in found, report
    assert "gave two answers at one point" in found["answers of grad g"].advice


def test_random_noise_is_called_noise_and_not_two_answers():
    rng = np.random.default_rng(3)
    report = sp.check(with_memory(lambda k: 1e-6 * rng.standard_normal(3)))
    assert [finding.what for finding in report.problems] == ["noise of grad g"]


@pytest.mark.parametrize("digits", [1, 3, 6, 9])
def test_a_cache_of_rounded_points_is_found(digits):
    P, cache = np.array([2.0, 1.0, 0.5]), {}
    report = sp.check(
        one(grad=lambda x: cache.setdefault(np.round(x, digits).tobytes(), P * x - 1.0).copy()), [1.03, 2.11, 0.77]
    )
    assert "noise of grad g" in {finding.what for finding in report.problems}, report


def test_the_prox_of_data_in_float32_has_their_rounding():
    """Where the gradient nearly vanishes, the rounding of t P in float32 is all of what is compared."""
    g = sp.Quadratic(np.ones(1, dtype=np.float32), np.full(1, -6.0, dtype=np.float32))
    f = sp.Saddle(g, sp.LogCosh(None, np.zeros(8), 0.03), np.full((1, 8), 3.0))
    assert all(sp.check(f, seed=seed).ok for seed in range(5))


def test_a_gradient_that_is_defined_at_its_first_calls_alone_is_named():
    calls = [0]

    def grad(x):
        calls[0] += 1
        return 2.0 * x if calls[0] <= 4 else np.full(x.shape, np.nan)

    report = sp.check(sp.Saddle(sp.Smooth(grad, mu=1.0, L=2.0), sp.Quadratic(1.0), np.eye(3)))
    assert not report.ok
