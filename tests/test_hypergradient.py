"""Derivatives of held-out losses with respect to the penalties of fitted models."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from draws import SEED
from scipy.sparse import csr_array

import saddlepoint as sp
from saddlepoint.apps.hypergradient import hypergradient_of
from saddlepoint.apps.risk import RiskClassifier, RiskRegressor
from saddlepoint.apps.structure import Graph


def data(seed, classes=2):
    rng = np.random.default_rng(seed)
    X = 2.0 + rng.standard_normal((60, 6))
    scores = X @ np.array([2.0, -1.0, 0.5, 0.0, 0.0, 0.0]) + rng.standard_normal(60)
    labels = np.digitize(scores, np.quantile(scores, np.arange(1, classes) / classes))
    return X[:40], X[40:], scores, labels


MODELS = {
    "logistic": lambda **k: RiskClassifier(**k),
    "three classes": lambda **k: RiskClassifier(intercept_scaling=2.0, **k),
    "smoothed hinge": lambda **k: RiskClassifier("smoothed_hinge", fit_intercept=False, **k),
    "squared": lambda **k: RiskRegressor(**k),
    "squared without intercept": lambda **k: RiskRegressor(fit_intercept=False, **k),
    "huber": lambda **k: RiskRegressor("huber", delta=0.5, **k),
}


def fitted(name, seed, tol=1e-10, sparse=False, **penalties):
    X, held, scores, labels = data(seed, 3 if name == "three classes" else 2)
    model = MODELS[name](tol=tol, **penalties)
    y = scores if isinstance(model, RiskRegressor) else labels
    model.fit(csr_array(X) if sparse else X, y[:40])
    return model, model.hypergradient(held, y[40:])


@pytest.mark.parametrize("name", MODELS)
def test_it_is_the_slope_of_the_held_out_loss(name):
    h, at = 1e-5, {"l2": 0.1, "l1": 0.05}
    model, slope = fitted(name, 3, **at)
    for penalty in ("l2", "l1"):
        up, down = (fitted(name, 3, **at | {penalty: at[penalty] + s * h})[1].value for s in (1.0, -1.0))
        assert getattr(slope, penalty) == pytest.approx((up - down) / (2 * h), rel=1e-4, abs=1e-6)
        if name not in ("smoothed hinge", "huber"):  # their Hessians jump
            assert getattr(slope, f"bound_{penalty}") < 1e-4
    assert "d/dl2 = " in repr(slope)
    _, held, scores, labels = data(3, 3 if name == "three classes" else 2)
    if isinstance(model, RiskRegressor) and name != "huber":
        assert slope.value == pytest.approx(0.5 * np.mean((model.predict(held) - scores[40:]) ** 2))
    if name == "logistic":
        signed = np.where(labels[40:] == 1, 1.0, -1.0)
        assert slope.value == pytest.approx(np.mean(np.log1p(np.exp(-signed * model.decision_function(held)))))


def test_bounds_allow_for_the_rounding_of_long_inner_products():
    n = 100_000
    x = np.full(n, 0.1)  # the rounding errors of such a sum have one sign
    exact = SimpleNamespace(certificate=SimpleNamespace(distance_x=0.0), support_x=None)
    exact.x, exact.differentiable = x, lambda: SimpleNamespace(f=SimpleNamespace(mu_x=1.0))
    exact.vjp = lambda v: SimpleNamespace(ux=v, bound_x=0.0, why="")
    loss = sp.Quadratic(1.0).replace(accuracy=0.0, rounding=np.zeros_like)
    found = hypergradient_of([(exact, loss)], n)
    wrong = abs(Fraction(found.l2) + n * Fraction(0.1) ** 2)
    assert 1e-14 * abs(found.l2) < wrong <= found.bound_l2 < 1e-9 * abs(found.l2)


@pytest.mark.parametrize("name", ["logistic", "three classes", "squared"])
def test_bounds_hold_on_drawn_data(name):
    exact = fitted(name, SEED, l2=0.2, l1=0.03)[1]
    rough = fitted(name, SEED, tol=1e-3, l2=0.2, l1=0.03)[1]
    for penalty in ("l2", "l1"):
        bounds = getattr(rough, f"bound_{penalty}") + getattr(exact, f"bound_{penalty}")
        assert abs(getattr(rough, penalty) - getattr(exact, penalty)) <= bounds


def test_sparse_data_have_the_same_slopes_and_an_l1_norm_from_zero_a_bound_away_from_kinks():
    dense, sparse = (fitted("logistic", 4, sparse=s, l2=0.1)[1] for s in (False, True))
    assert sparse.l2 == pytest.approx(dense.l2, rel=1e-6)
    assert dense.bound_l1 < math.inf  # no weight is near the kink of |w|
    X, held, _, labels = data(4)
    X, held = (np.hstack([part, np.zeros((len(part), 1))]) for part in (X, held))
    slope = RiskClassifier(l2=0.1).fit(X, labels[:40]).hypergradient(held, labels[40:])
    assert slope.bound_l2 < math.inf == slope.bound_l1
    assert "kink" in slope.why


def test_models_without_a_hypergradient_are_refused():
    X, held, scores, labels = data(5)
    with pytest.raises(sp.ProblemError, match="structure or with groups"):
        RiskClassifier(structure=Graph([(0, 1)])).fit(X, labels[:40]).hypergradient(held, labels[40:])
    with pytest.raises(sp.ProblemError, match="not fitted to"):
        RiskClassifier().fit(X, labels[:40]).hypergradient(held, 7 + labels[40:])
    with pytest.raises(sp.ProblemError, match="'absolute' is not smooth"):
        RiskRegressor("absolute", tol=1e-2).fit(X, scores[:40]).hypergradient(held, scores[40:])
