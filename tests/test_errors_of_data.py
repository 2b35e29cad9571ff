"""Runs that end where bounds on the errors of data and of rounding allow no more, and not long after."""

import numpy as np
import pytest
from draws import SEED

from saddlepoint.apps import RiskRegressor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def samples(seed, N, n):
    """Whole numbers whose means are not: centring rounds them."""
    rng = np.random.default_rng([SEED, 18, seed])
    X = np.round(2.0 * rng.standard_normal((N, n))) + 3.0
    return X, np.round(X @ rng.standard_normal(n) + 3.0 * rng.standard_normal(N))


@pytest.mark.parametrize(("loss", "l1"), [("squared", 0.0), ("squared", 0.1), ("huber", 0.0)])
def test_a_run_ends_where_nearly_all_of_the_certified_distance_is_the_bound_on_errors(loss, l1):
    X, t = samples(0, 2000, 20)
    model = RiskRegressor(loss, 1e-5, l1=l1, tol=1e-16, max_seconds=60).fit(X, t)
    found = model.result_
    assert "the precision of float64 allows no more" in found.message
    assert found.certificate.distance < 3.0 * found.certificate.rounding
    assert max(found.calls.values()) < 5000


def test_methods_in_turns_end_there_too():
    """The duality gap is what is asked for. Without the rule for turns, these methods take turns without an end."""
    rng = np.random.default_rng(11)
    X = np.round(2.0 * rng.standard_normal((100, 5))) + 3.0
    t = np.round(X @ rng.standard_normal(5) + 3.0 * rng.standard_normal(100))
    model = RiskRegressor("absolute", 1e-5, tol=1e-13, max_seconds=60).fit(X, t)
    assert not model.result_.solved
    assert "the precision of float64 allows no more" in model.result_.message
    assert max(model.result_.calls.values()) < 10_000
