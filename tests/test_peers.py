"""Problems on which `auto` and its peers are compared."""

import numpy as np
import pytest
from peers.fresh_problems import FAMILIES, drawn

SEEDS = {drawn(seed).family: drawn(seed) for seed in range(20)}


@pytest.mark.parametrize("family", FAMILIES)
def test_functions_by_hand_are_the_ready_ones(family):
    ready, own = SEEDS[family].new(ready=True), SEEDS[family].new(ready=False)
    rng = np.random.default_rng(7)
    x, y = (rng.standard_normal(size) for size in ready.shape)
    for ours, theirs in zip(ready.field(x, y), own.field(x, y), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11 * np.abs(ours).max())
    assert (own.mu_x, own.mu_y, own.L_x, own.L_y) == (ready.mu_x, ready.mu_y, ready.L_x, ready.L_y)
    assert own.g.hessian is None


def test_a_seed_is_one_problem():
    assert drawn(3) == drawn(3) != drawn(4)
    first, again = drawn(3).new(ready=True), drawn(3).new(ready=True)
    assert first is not again
    np.testing.assert_array_equal(first.A.mul(np.ones(first.shape[1])), again.A.mul(np.ones(first.shape[1])))
