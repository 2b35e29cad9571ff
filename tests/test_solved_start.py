"""Results of starts that are good enough: those of runs without steps, and refused where a run is due."""

import pickle

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.solving.lazy_result import LazyResult
from saddlepoint.solving.solved_start import solved_start

rng = np.random.default_rng(18)
D, w = rng.standard_normal((60, 8)), np.array([1.0, -2.0, 0.0, 0.0, 0.5, 0.0, 0.0, 3.0])
t = D @ w + 0.1 * rng.standard_normal(60)


def sparse_problem():
    g = sp.LeastSquares(D, t, l2=0.1) + sp.L1(0.2)
    return sp.Saddle(g, sp.Quadratic(1.0), np.zeros((8, 1)))


def test_the_result_is_that_of_a_run_without_steps():
    f = sparse_problem()
    x, y = sp.solve(f, tol=1e-10).x, np.zeros(1)
    found, run = solved_start(f, x, y, 1e-9), sp.solve(f, x, y, tol=1e-9)
    assert isinstance(found, LazyResult)
    assert found.certificate == run.certificate
    assert found.certificate.assumes == run.certificate.assumes
    for name in ("status", "iterations", "calls", "monitor_calls", "method", "solved"):
        assert getattr(found, name) == getattr(run, name), name
    assert np.array_equal(found.x, x)
    assert np.array_equal(found.support_x, run.support_x)
    assert found.support_y is run.support_y is None
    assert len(found.history) == 1
    assert found.provenance["constants"] == run.provenance["constants"]
    assert found.cite() == run.cite()
    assert "no step was taken" in found.message
    assert found.vjp(vx=np.ones(8)).bound == run.vjp(vx=np.ones(8)).bound


def test_it_can_be_sent_and_saved(tmp_path):
    f = sparse_problem()
    found = solved_start(f, sp.solve(f, tol=1e-10).x, np.zeros(1), 1e-9)
    sent = pickle.loads(pickle.dumps(found))
    assert type(sent) is sp.Result
    assert sent.certificate == found.certificate
    with pytest.raises(sp.ProblemError, match="does not hold its problem"):
        sent.vjp(vx=np.ones(8))
    found.save(tmp_path / "found.npz")
    assert sp.load_result(tmp_path / "found.npz").message == found.message


def test_a_run_is_due_where_the_start_is_not_good_enough_or_something_is_claimed():
    f = sparse_problem()
    x, y = sp.solve(f, tol=1e-10).x, np.zeros(1)
    assert solved_start(f, x + 1e-3, y, 1e-9) is None
    by_hand = sp.Smooth(f.g.without_term.grad, mu=f.mu_x, L=f.L_x) + sp.L1(0.2)
    assert solved_start(f.replace(g=by_hand), x, y, 1e-9) is None
    own = f.g.without_term + sp.Simple(prox=sp.L1(0.2).prox)
    assert solved_start(sp.Saddle(own, f.h, f.A.matrix()), x, y, 1e-9) is None


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_classifiers_with_a_good_start_take_no_step_and_their_proofs_are_true(loss):
    signs = np.where(t > 0.0, 1.0, -1.0)
    made = {"l2": 0.05, "fit_intercept": False, "l1": 0.0 if loss == "hinge" else 0.01}
    model = sp.apps.RiskClassifier(loss, **made, tol=1e-6).fit(D, signs)
    exact = sp.apps.RiskClassifier(loss, **made, tol=1e-9).fit(D, signs)
    assert model.n_iter_ == 0
    assert type(model.result_) is LazyResult
    off = np.linalg.norm(model.coef_ - exact.coef_)
    assert off <= model.certificate_.distance_x + exact.certificate_.distance_x
    named = sp.apps.RiskClassifier(loss, **made, tol=1e-6, method="interior-point" if loss == "hinge" else "lpd-gs")
    assert type(named.fit(D, signs).result_) is sp.Result
    assert pickle.loads(pickle.dumps(model)).result_.message == model.result_.message


def test_what_data_that_are_written_into_later_change_does_not_enter_the_result():
    data = D.copy()
    model = sp.apps.RiskRegressor(l1=0.2, l2=0.1, fit_intercept=False).fit(data, t)
    other = sp.apps.RiskRegressor(l1=0.2, l2=0.1, fit_intercept=False).fit(D, t)
    data[:] = 0.0
    assert np.array_equal(model.result_.support_x, other.result_.support_x)
    assert model.result_.message == other.result_.message
