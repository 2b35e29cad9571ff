"""Arguments of the applications: wrong ones are refused with a sentence, before anything is computed."""

import time

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.ground.time_limit import LEAST, TimeLimit
from saddlepoint.uses.batch import direct

pytest.importorskip("sklearn")

from saddlepoint import apps
from saddlepoint.apps import linear_model, total_variation

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 4))
SIGNS = (X[:, 0] > 0.0).astype(int)
TARGETS = X @ [1.0, -2.0, 0.0, 0.5] + RNG.standard_normal(40)
SQUARE = RNG.standard_normal((6, 6))
MODEL = np.full((4, 4), 0.25), np.arange(4.0), 0.9

ESTIMATORS = {
    "AUCClassifier": (apps.AUCClassifier, SIGNS, {}),
    "RiskClassifier": (apps.RiskClassifier, SIGNS, {}),
    "RiskClassifier, sparse": (apps.RiskClassifier, SIGNS, {"l1": 0.01}),
    "RiskClassifier, exact": (apps.RiskClassifier, SIGNS, {"loss": "hinge"}),
    "RiskRegressor": (apps.RiskRegressor, TARGETS, {}),
    "RiskRegressor, exact": (apps.RiskRegressor, TARGETS, {"loss": "absolute"}),
    "ConstrainedHuber": (apps.ConstrainedHuber, TARGETS, {}),
    "RobustLeastSquares": (apps.RobustLeastSquares, TARGETS, {}),
    "GroupDROClassifier": (apps.GroupDROClassifier, SIGNS, {}),
    "GroupDRORegressor": (apps.GroupDRORegressor, TARGETS, {}),
    "WassersteinClassifier": (apps.WassersteinClassifier, SIGNS, {}),
    "FairClassifier": (apps.FairClassifier, SIGNS, {}),
    "FairClassifier, exact": (apps.FairClassifier, SIGNS, {"loss": "hinge"}),
}
SOLVERS = {
    "TotalVariation": lambda **given: apps.TotalVariation(SQUARE, 0.1).solve(**given),
    "MatrixGame": lambda **given: apps.MatrixGame(SQUARE).solve(**given),
    "MatrixGame with costs": lambda **given: apps.MatrixGame(SQUARE, 1.0, 1.0).solve(**given),
    "ConstrainedGame": lambda **given: apps.ConstrainedGame.mixed(SQUARE).solve(**given),
    "ExtensiveGame": lambda **given: apps.ExtensiveGame.load("kuhn").solve(**given),
    "CoupledCosts": lambda **given: apps.CoupledCosts(SQUARE, 1.0, 1.0).solve(**given),
    "QuadraticProgram": lambda **given: apps.QuadraticProgram(np.eye(3), np.ones(3)).solve(**given),
    "EqualityConstrained": lambda **given: apps.EqualityConstrained(sp.Quadratic(1.0), np.ones((1, 3)), [1.0]).solve(
        **given
    ),
    "PolicyEvaluation": lambda **given: apps.PolicyEvaluation.from_model(*MODEL).solve(**given),
}
SECONDS = ("long", float("nan"), float("inf"), -1.0, 0, True, [1.0], np.ones(2), 1j, 10**400)


def fit(name, **given):
    estimator, y, fixed = ESTIMATORS[name]
    more = {"sensitive_features": X[:, 1] > 0.0} if estimator is apps.FairClassifier else {}
    return estimator(**fixed, **given).fit(X, y, **more)


@pytest.mark.parametrize("name", [*ESTIMATORS, *SOLVERS])
def test_limits_that_are_no_seconds_are_refused(name):
    for wrong in SECONDS:
        with pytest.raises(sp.ProblemError, match=r"max_seconds.* is .*; expected a positive number"):
            SOLVERS[name](max_seconds=wrong) if name in SOLVERS else fit(name, max_seconds=wrong)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "AUCClassifier"])
def test_texts_do_not_stand_for_an_intercept(name):
    with pytest.raises(sp.ProblemError, match="fit_intercept is 'no'; expected True or False"):
        fit(name, fit_intercept="no")


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (lambda: fit("RiskClassifier", positive="no"), "positive is 'no'; expected True or False"),
        (lambda: fit("RobustLeastSquares", method=0), "method is 0; expected a name"),
        (lambda: apps.TotalVariation(SQUARE, 0.1, isotropic="no"), "isotropic is 'no'; expected True or False"),
        (lambda: apps.TotalVariation(SQUARE, 0.1, lower=np.ones(2)), "lower is array.*; expected a number"),
        (lambda: apps.MatrixGame(SQUARE, 10**400), "cost_row is 1000.*; expected a convex Smooth function, or"),
        (lambda: SOLVERS["ConstrainedGame"](progress="no"), "progress is 'no'; expected True or False"),
        (lambda: SOLVERS["ConstrainedGame"](callback=3), "callback is 3; expected a function of an Equilibrium"),
        (lambda: SOLVERS["ExtensiveGame"](callback=3), "callback is 3; expected a function of an Equilibrium"),
        (lambda: SOLVERS["ExtensiveGame"](feasibility="no"), "feasibility is 'no'; expected a positive number"),
        (lambda: SOLVERS["ExtensiveGame"](checkpoint_every=-1), "checkpoint_every is -1.0; expected seconds"),
        (lambda: SOLVERS["ExtensiveGame"](checkpoint="no folder/file"), "in the folder .*no folder, which does not"),
        (lambda: SOLVERS["QuadraticProgram"](method=["simplex"]), r"method is \['simplex'\]; expected one of 'auto'"),
        (
            lambda: apps.PolicyEvaluation.from_model(*MODEL, terminal={}),
            "terminal has dtype object and holds {}; expected real numbers",
        ),
        (lambda: apps.PolicyEvaluation.from_model(*MODEL, terminal=[4]), r"terminal is \[4\]; expected some, not all"),
    ],
)
def test_the_applications_refuse(run, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        run()


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if not name.startswith("GroupDRO")])
def test_an_unknown_method_is_refused_by_estimators(name):
    with pytest.raises(sp.ProblemError, match=r"unknown method 'dipa'.*did you mean 'dippa'"):
        fit(name, method="dipa")


def refuse_to_run(*given, **more):
    raise AssertionError("computed although the method is unknown")


def test_an_unknown_method_is_refused_before_a_start_is_computed(monkeypatch):
    monkeypatch.setattr(linear_model, "few_features", refuse_to_run)
    monkeypatch.setattr(linear_model, "PiecewiseLinear", refuse_to_run)
    monkeypatch.setattr(total_variation, "dual_gradient", refuse_to_run)
    for run in (
        lambda: fit("RiskClassifier, sparse", method="dipa"),
        lambda: fit("RiskClassifier, exact", method="dipa"),
        lambda: SOLVERS["TotalVariation"](method="dipa"),
    ):
        with pytest.raises(sp.ProblemError, match="unknown method 'dipa'"):
            run()


def test_problems_that_are_solved_together_share_one_limit(monkeypatch):
    """The time that factorising all of them together took is not given to them once more."""

    def slow(batch, problems, *given):
        time.sleep(0.3)
        return [None] * len(problems)

    problems = [sp.Saddle(sp.Quadratic(1.0, [1.0, 2.0]), sp.Quadratic(mu), np.eye(2)) for mu in (1.0, 2.0)]
    assert all(result.solved for result in sp.solve_many(problems, method="direct", max_seconds=0.2))
    monkeypatch.setattr(direct, "solve_directly", slow)
    results = sp.solve_many(problems, method="direct", max_seconds=0.2)
    assert [result.status for result in results] == ["out of time", "out of time"]


def test_a_limit_counts_from_where_it_is_made():
    limit = TimeLimit(0.05)
    assert not limit.is_over
    assert 0.0 < limit.left <= 0.05
    time.sleep(0.06)
    assert limit.is_over
    assert limit.left == LEAST
    assert 0.06 <= limit.spent < 10.0


def test_a_limit_goes_on_from_earlier_sessions_and_none_is_never_over():
    assert TimeLimit(5.0, before=6.0).is_over
    free = TimeLimit(None, before=6.0)
    assert free.left is None
    assert not free.is_over
    assert free.spent >= 6.0
