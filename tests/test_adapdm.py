"""The rule by which adaPDM chooses its steps."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import saddlepoint as sp
from saddlepoint.theory.adapdm import adapdm_step, longest_step


@given(
    st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.01, 100.0)), min_size=1, max_size=30),
    st.floats(0.01, 100.0),
    st.floats(0.0, 100.0),
)
def test_steps_are_positive_grow_slowly_and_keep_to_the_coupling(curvatures, ratio, norm):
    longest = longest_step(ratio, norm)
    last = before = min(1.0, longest)
    for share, high in curvatures:
        step = adapdm_step(last, before, share * high, high, ratio, norm)
        assert 0.0 < step <= min(longest, last * math.sqrt(1.0 + last / before))
        last, before = step, last


def test_without_coupling_a_step_of_1_over_L_is_allowed_and_a_much_longer_one_is_not():
    assert adapdm_step(0.1, 0.1, 10.0, 10.0, 1.0, 0.0) == pytest.approx(0.1 * math.sqrt(2.0))
    assert adapdm_step(1.0, 1.0, 10.0, 10.0, 1.0, 0.0) < 0.1


@pytest.mark.slow
def test_no_constant_of_the_functions_is_used():
    """L is used in the first step only, mu in the ratio of the steps only: wrong ones change the number of steps."""
    rng = np.random.default_rng(1)
    A, P = rng.standard_normal((6, 4)), np.geomspace(1.0, 10.0, 6)
    h = sp.Quadratic(2.0, rng.standard_normal(4))
    for mu, L in ((1.0, 10.0), (1e-2, 1e3), (None, 1e3)):
        f = sp.Saddle(sp.Smooth(lambda x: P * x + 1.0, mu=mu, L=L), h, A)
        result = sp.solve(f, method="adapdm", tol=1e-7)
        x = np.linalg.solve(np.diag(P) + A @ A.T / 2.0, -np.ones(6) + A @ h.b / 2.0)
        np.testing.assert_allclose(result.x, x, atol=1e-6)
