"""Bounds on the rounding errors of gradients, against gradients in exact or high-precision arithmetic."""

import math

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.parts.functions.affine import affine
from saddlepoint.parts.functions.smooth import anchored

X = np.array([3.0, -4.0, 0.0])


# -- what a caller says ------------------------------------------------------------------------------------------------


def black_box(accuracy=None, L=2.0):
    return sp.Smooth(lambda x: 2.0 * x, mu=2.0, L=L, accuracy=accuracy)


def test_two_units_are_assumed_where_nothing_is_said():
    f, p = black_box(), 2.0 * X
    assert math.isnan(f.accuracy)
    assert f.rounding is None
    assert f.gradient_error(X, p) == pytest.approx(2 * 2.0**-52 * (10.0 + 2.0 * 5.0), rel=1e-12)
    lower = f.gradient_error(X.astype(np.float32), p)  # the lower precision counts
    assert lower == pytest.approx(2 * 2.0**-23 * 20.0, rel=1e-6)


def test_a_number_is_relative_to_the_gradient_and_the_point():
    assert black_box(1e-6).gradient_error(X, 2.0 * X) == pytest.approx(1e-6 * 20.0, rel=1e-5)
    assert black_box(0.0).gradient_error(X, 2.0 * X) == 0.0
    assert black_box(1.0).gradient_error(X, 2.0 * X) == math.inf


def test_a_function_bounds_the_entries():
    f = black_box(lambda x: np.full(3, 2.0))
    assert f.accuracy == 0.0
    assert f.gradient_error(X, 2.0 * X) == pytest.approx(math.sqrt(12.0))
    sizes = f.gradient_error(X, 2.0 * X, lambda v: np.abs(v))  # three blocks of one variable
    np.testing.assert_allclose(sizes, [2.0, 2.0, 2.0])


def test_what_cannot_be_computed_is_not_bounded():
    assert black_box(lambda x: np.full(3, math.nan)).gradient_error(X, X) == math.inf
    assert black_box(L=None).gradient_error(X, X) == math.inf
    assert black_box().gradient_error(X, np.array([1.0, math.nan, 1.0])) == math.inf
    blocks = black_box(lambda x: np.array([1.0, math.nan, 1.0])).gradient_error(X, X, np.abs)
    np.testing.assert_array_equal(blocks, [1.0, math.inf, 1.0])


@pytest.mark.parametrize(
    ("accuracy", "message"),
    [
        (-1e-9, "accuracy of Smooth is -1e-09; expected a number from 0 to 1, or a function"),
        (math.nan, "accuracy of Smooth is nan; expected"),
        (2.0, "accuracy of Smooth is 2; expected"),
        ("high", "accuracy of Smooth is 'high'; expected"),
    ],
)
def test_invalid_accuracies(accuracy, message):
    with pytest.raises(sp.ProblemError, match=message):
        black_box(accuracy)


def test_invalid_bounds():
    with pytest.raises(sp.ProblemError, match=r"accuracy of Smooth returned 1\.0 for a point of shape \(3,\)"):
        black_box(lambda x: 1.0).gradient_error(X, X)
    with pytest.raises(sp.ProblemError, match="returned a negative bound"):
        black_box(lambda x: -np.ones(3)).gradient_error(X, X)
    with pytest.raises(sp.ProblemError, match="both rounding and a function"):
        sp.Smooth(np.sin, mu=None, L=None, accuracy=np.abs, rounding=np.abs)
    with pytest.raises(sp.ProblemError, match="rounding of Smooth is 3; expected a function"):
        sp.Smooth(np.sin, mu=None, L=None, rounding=3)


# -- what copies inherit -----------------------------------------------------------------------------------------------


def wrong_by(c, direction, slope=1.0):
    """x -> slope x, computed with an error of c (|grad| + L |x|) along a direction of length one."""
    return sp.Smooth(lambda x: slope * x + 2.0 * c * slope * np.linalg.norm(x) * direction, mu=slope, L=slope)


DIRECTION = np.array([0.6, 0.0, 0.8])
CHANGES = {
    "sum": lambda f: f + black_box(0.0),
    "sum, from the right": lambda f: black_box(0.0) + f,
    "cancelling sum": lambda f: f + affine(black_box(0.0), linear=-3.0 * X),
    "sum of two": lambda f: f + f,
    "multiple": lambda f: 7.0 * f,
    "scaled": lambda f: affine(f, scale=0.3),
    "scaled by a vector": lambda f: affine(f, scale=np.array([10.0, -1.0, 0.1])),
    "shifted": lambda f: affine(f, shift=-1.5 * X, weight=3.0),
    "tilted": lambda f: affine(f, linear=-X),
    "anchored": lambda f: anchored(f, 0.5, 3.0 * X),
    "cancelled by the anchor": lambda f: anchored(f, 1.0, 2.0 * X),
    "all": lambda f: anchored(3.0 * affine(f, scale=0.7, shift=X, linear=X) + f, 2.0, X),
}


@pytest.mark.parametrize("c", [1e-12, 1e-3, 0.1])
@pytest.mark.parametrize("name", CHANGES)
def test_copies_inherit_a_stated_accuracy(name, c):
    """The error is larger than rounding, so the bound must come from what was stated."""
    wrong, right = wrong_by(c, DIRECTION), wrong_by(0.0, DIRECTION)
    f = CHANGES[name](wrong.replace(accuracy=c))
    found, truth = f.grad(X), CHANGES[name](right).grad(X)
    error = np.linalg.norm(found - truth)
    assert 0.0 < error - 1e-13 <= f.gradient_error(X, found) * (1.0 + 1e-12)
    # The same as bounds on the entries.
    f = CHANGES[name](wrong.replace(accuracy=lambda x: 2.0 * c * np.linalg.norm(x) * DIRECTION))
    assert f.accuracy == 0.0
    assert error - 1e-13 <= f.gradient_error(X, found) * (1.0 + 1e-12)
    assert (np.abs(found - truth) <= f.rounding(X) * (1.0 + 1e-12) + 1e-13).all()


def test_black_boxes_stay_black_boxes():
    for change in CHANGES.values():
        f = change(black_box())
        assert math.isnan(f.accuracy)
        assert 0.0 < f.gradient_error(X, f.grad(X)) < 1e-12
