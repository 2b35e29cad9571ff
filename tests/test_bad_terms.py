"""Simple terms that make no sense are refused where they are made, in a sentence."""

import math

import numpy as np
import pytest

import saddlepoint as sp

Q, EYE = sp.Quadratic(1.0), np.eye(3)


def linear(v, t):
    return v / (1.0 + t)


def solved(p, *start):
    return sp.solve(sp.Saddle(Q + p, Q, EYE), *start)


BAD = {
    "weight of L1 is -1; expected finite numbers that are not negative": lambda: sp.L1(-1.0),
    "weight of L1": lambda: sp.L1(math.nan),
    "function of 2 coordinates, but x has 3": lambda: sp.Saddle(Q + sp.L1([1.0, 2.0]), Q, EYE),
    "lower = 1 and upper = 0 of Box; expected lower <= upper": lambda: sp.Box(1.0, 0.0),
    "the box is empty": lambda: sp.Box(0.0, 1.0) + sp.Box(2.0, 3.0),
    "at index 1": lambda: sp.Box([0.0, 3.0], [1.0, 2.0]),
    "total of Simplex is 0": lambda: sp.Simplex(0.0),
    "radius of Ball is -1": lambda: sp.Ball(-1.0),
    "norm of Ball is": lambda: sp.Ball(1.0, np.array([1, 2])),
    "coordinate 1 is in groups 0 and 1 of Groups": lambda: sp.Groups([[0, 1], [1, 2]], 1.0),
    "group 0 of Groups is": lambda: sp.Groups([[0, [1]]], 1.0),
    "axis of Groups is": lambda: sp.Groups(shape=(2, 2), axis="rows"),
    r"the prox of Simplex\(\) \+ L1\(1\) is not known": lambda: sp.Simplex() + sp.L1(1.0),
    "simple of Smooth is 3; expected a simple function": lambda: sp.Smooth(linear, mu=1.0, L=1.0, simple=3),
    "domain of Smooth is 'yes'; expected True or False": lambda: sp.Smooth(linear, mu=1.0, L=1.0, domain="yes"),
    "quadratic of Smooth is 'no'; expected True or False": lambda: sp.Smooth(linear, mu=1.0, L=1.0, quadratic="no"),
    "value of Simple returned 'a'; expected a number": lambda: solved(sp.Simple(linear, value=lambda x: "a")),
    "value of Simple returned None; expected a number": lambda: solved(sp.Simple(linear, value=lambda x: None)),
    "x0 has a nan": lambda: solved(sp.Simplex(), [math.nan, 0.0, 0.0]),
    "the simple term of g: prox returned an array of shape": lambda: sp.certify(
        sp.Saddle(Q + sp.Simple(lambda v, t: v[:2]), Q, EYE), np.zeros(3), np.zeros(3)
    ),
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_terms_are_refused_in_a_sentence(sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        BAD[sentence]()


@pytest.mark.parametrize("far", [2.0, 1e8, 1e300])
def test_a_start_outside_of_the_domain_is_projected(far):
    result = solved(sp.Simplex(), [far, -far, 0.0])
    assert result.solved
    np.testing.assert_allclose(result.x, np.full(3, 1.0 / 3.0), atol=1e-6)


def test_a_value_that_is_not_finite_in_the_domain_is_refuted():
    with pytest.raises(sp.AssumptionError, match="value is nan at a result of prox"):
        solved(sp.Simple(linear, value=lambda x: math.nan))
