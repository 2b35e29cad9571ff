"""A slice of ``benchmarks/derivative_bounds.py``: bounds on errors of derivatives are above the exact errors."""

import pytest
from derivative_bounds import judge
from draws import SEED


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 8, 16, SEED])
def test_bounds_of_derivatives_are_above_the_exact_errors(first):
    compared = 0
    for seed in range(first, first + 8):
        for _, error, bound in judge(seed).get("pairs", []):
            assert error <= bound, seed
            compared += 1
    assert compared >= 18


@pytest.mark.slow
def test_the_bound_for_A_is_infinite_where_x_is_zero_and_a_coordinate_is_undecided():
    bounds = {name: bound for name, _, bound in judge(415688280)["pairs"][:3]}  # the run to the larger tolerance
    assert bounds == {"vjp": float("inf"), "A": float("inf"), "jvp": float("inf")}
