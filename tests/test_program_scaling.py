"""Programs whose numbers are of very different sizes: the interior-point method still needs few steps."""

from __future__ import annotations

import numpy as np
import pytest
from draws import SEED

import saddlepoint as sp

INF = np.inf
LIMIT = 25  # steps of the interior-point method, far above what well scaled programs need


def with_a_large_demand(random: np.random.Generator, quadratic: bool) -> sp.apps.QuadraticProgram:
    """Costs of a flow of 1e6 through layers of nodes, beside small variables that are at most 1."""
    layers, width, small = 6, 4, 40
    arcs = [(layer, i, j) for layer in range(layers) for i in range(width) for j in range(width)]
    n = len(arcs) + small
    A = np.zeros(((layers - 1) * width + 1 + small // 2, n))
    for k, (layer, i, j) in enumerate(arcs):
        if layer < layers - 1:
            A[layer * width + j, k] = random.uniform(0.5, 1.0)
        if layer > 0:
            A[(layer - 1) * width + i, k] = -1.0
        else:
            A[(layers - 1) * width, k] = 1.0
    A[-(small // 2) :, len(arcs) :] = random.standard_normal((small // 2, small))
    inside = random.random(small)
    lower = np.zeros(A.shape[0])
    lower[(layers - 1) * width] = 1e6
    lower[-(small // 2) :] = A[-(small // 2) :, len(arcs) :] @ inside
    upper = lower + np.append(np.zeros(A.shape[0] - small // 2), np.ones(small // 2))
    q = np.append(random.uniform(1.0, 100.0, len(arcs)), random.standard_normal(small))
    P = np.diag(np.append(random.uniform(0.0, 1e-6, len(arcs)), np.ones(small))) if quadratic else None
    return sp.apps.QuadraticProgram(P, q, A, lower, upper, 0.0, np.append(np.full(len(arcs), INF), np.ones(small)))


@pytest.mark.parametrize("quadratic", [False, True])
def test_a_solution_much_larger_than_most_bounds_needs_few_steps(quadratic):
    random = np.random.default_rng(SEED)
    for _ in range(5):
        found = with_a_large_demand(random, quadratic).solve(method="interior")
        assert found.status == "optimal", found
        assert found.steps <= LIMIT


@pytest.mark.parametrize("size", [1e-9, 1e-4, 1e4, 1e9])
def test_the_units_of_a_program_do_not_matter(size):
    random = np.random.default_rng(SEED)
    A, x = random.integers(-3, 4, (6, 12)).astype(float), random.integers(0, 5, 12).astype(float)
    q = random.integers(1, 9, 12).astype(float)
    reference = sp.apps.QuadraticProgram(q=q, A=A, lower=A @ x, upper=A @ x, x_lower=0.0).solve(gap=1e-4)
    side = size * (A @ x)
    found = sp.apps.QuadraticProgram(q=q / size, A=A, lower=side, upper=side, x_lower=0.0).solve(gap=1e-4)
    assert reference.status == found.status == "optimal"
    assert abs(found.lower - reference.lower) <= 2e-4
    assert found.steps <= LIMIT


def test_a_quadratic_program_may_have_equations_alone():
    found = sp.apps.QuadraticProgram(np.diag([2.0, 4.0]), [0.0, -4.0], [[1.0, 1.0]], 0.0, 0.0).solve(gap=1e-9)
    assert found.status == "optimal"
    assert found.lower <= -4.0 / 3.0 + 1e-12
    assert found.upper >= -4.0 / 3.0 - 1e-12


@pytest.mark.parametrize("rows", [3, 30])
def test_contradictions_of_whole_numbers_are_proven(rows):
    """A chain x_0 <= x_1 <= ... whose ends contradict each other: only exact multipliers 1 prove it."""
    random = np.random.default_rng(SEED)
    A = np.eye(rows, rows + 1) - np.eye(rows, rows + 1, 1)
    A = np.vstack([A, -A.sum(axis=0), random.integers(0, 2, (rows, rows + 1))])
    upper = np.append(np.zeros(rows), np.append(-1.0, np.full(rows, INF)))
    found = sp.apps.QuadraticProgram(A=A, upper=upper, lower=-INF).solve()
    assert found.status == "infeasible"


@pytest.mark.parametrize("costs", [(1e300, 1.0), (1e-300, 2e-300)])
def test_extreme_costs_do_not_end_in_an_error(costs):
    found = sp.apps.QuadraticProgram(q=costs, A=[[1.0, 1.0]], lower=1.0, x_lower=0.0).solve()
    assert found.status == "optimal"
    assert found.lower <= min(costs) <= found.upper
