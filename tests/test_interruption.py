"""Ctrl-C ends applications and commands that make several runs, not only the run that it interrupts."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.apps import (
    AUCClassifier,
    ConstrainedHuber,
    EqualityConstrained,
    FairClassifier,
    PolicyEvaluation,
    RiskClassifier,
    RiskRegressor,
    RobustLeastSquares,
)
from saddlepoint.commands import app
from saddlepoint.methods.lpd_gs import LPDGS
from saddlepoint.methods.pdhg import PDHG
from saddlepoint.solving.result import Status
from saddlepoint.uses.bench.measure import measure

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4))
T = X @ np.ones(4) + 0.1 * RNG.standard_normal(30)
Y = (T > 0.0).astype(int)


STARTED = []  # the methods that were begun


class Interrupting:
    """A method whose first step is interrupted by Ctrl-C."""

    def step(self, f, s):
        STARTED.append(self)
        raise KeyboardInterrupt


@dataclass(frozen=True)
class Interrupted(Interrupting, LPDGS):
    """For problems that are strongly convex."""


@dataclass(frozen=True)
class InterruptedPDHG(Interrupting, PDHG):
    """For problems that are not."""


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (RiskClassifier(method=Interrupted()), np.arange(30) % 3),  # the problems of the other classes do not begin
        (RiskClassifier("hinge", method=InterruptedPDHG(), tol=1e-16), Y),
        (RiskRegressor("huber", method=Interrupted()), T),
        (AUCClassifier(method=Interrupted()), Y),
        (ConstrainedHuber(([[1.0, 1.0, 0.0, 0.0]], [1.0]), method=Interrupted()), T),
        (RobustLeastSquares(method=Interrupted()), T),
    ],
    ids=lambda value: type(value).__name__,
)
def test_ctrl_c_ends_a_fit(model, y):
    STARTED.clear()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert len(STARTED) == 1


def test_ctrl_c_ends_the_fit_of_a_fair_classifier():
    with pytest.raises(KeyboardInterrupt):
        FairClassifier("hinge", method=InterruptedPDHG(), tol=1e-14).fit(X, Y, sensitive_features=X[:, 0])


def test_an_interrupted_minimiser_subject_to_equations_is_what_is_proven_by_then():
    STARTED.clear()
    g = sp.Quadratic(np.linspace(1.0, 9.0, 4), np.ones(4))
    found = EqualityConstrained(g, [[1.0, 1.0, 0.0, 0.0]], [1.0]).solve(method=Interrupted())
    assert len(STARTED) == 1
    assert not found.solved
    assert found.message.startswith("interrupted at proven distance")
    assert found.certificate.distance_x < np.inf


def test_ctrl_c_ends_the_proximal_point_method():
    twice = np.hstack((X, X))  # theta is not unique
    with pytest.raises(KeyboardInterrupt):
        PolicyEvaluation(twice, 0.5 * twice, T, 0.9, ridge_w=0.1).solve(method=Interrupted())


def test_ctrl_c_ends_measurements():
    with pytest.raises(KeyboardInterrupt):
        measure(Interrupted(), 10.0, 10.0, 3.0, 1e-6)


def test_ctrl_c_ends_the_demo(run, monkeypatch):
    solve, names = app.solve_problem, []

    def interrupted(f, method, **options):
        names.append(method)
        result = solve(f, method=method, **options | {"tol": 1e6})
        return replace(result, status=Status.INTERRUPTED) if method == app.DEMO[1] else result

    monkeypatch.setattr(app, "solve_problem", interrupted)
    code, _, _ = run("demo")
    assert code == 130
    assert names == list(app.DEMO[:2])
