"""The proximal point method stays under its bounds, and `auto` falls back on it without strong convexity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.methods.wrappers.base import FIRST_CHECK, GROWTH
from saddlepoint.methods.wrappers.proximal import Proximal
from saddlepoint.parts.functions.zero import Zero

MOST = 20_000  # steps of the inner method in all


def outer_steps(method: Proximal, f: sp.Saddle, x: np.ndarray, y: np.ndarray, count: int) -> list[dict[str, Any]]:
    """For each outer step: its weight, its residual, its centres, and the steps of the inner method that it took."""
    w, size = sp.PDHG().first_weight(f), f.norm
    found, state = [], method.init(f, x, y)
    for _ in range(MOST):
        if len(found) == count:
            break
        after = method.step(f, state)
        if after.k > state.k:
            vx, vy = state.t * w * size * (state.u - after.u), state.t * size / w * (state.v - after.v)
            residual = math.hypot(np.linalg.norm(vx) / math.sqrt(w * size), np.linalg.norm(vy) / math.sqrt(size / w))
            row = {"t": state.t, "residual": residual, "steps": state.steps + 1}
            found.append(row | {"u": state.u, "v": state.v, "next_u": after.u, "next_v": after.v})
        state = after
    return found


def distance(f: sp.Saddle, dx: np.ndarray, dy: np.ndarray) -> float:
    """The norm in which the distances of the theorem are measured."""
    w, size = sp.PDHG().first_weight(f), f.norm
    return math.hypot(math.sqrt(w * size) * np.linalg.norm(dx), math.sqrt(size / w) * np.linalg.norm(dy))


@pytest.mark.parametrize("shrink", [1.0, 0.5])
@pytest.mark.parametrize("sigma", [0.1, 0.5])
def test_residuals_and_distances_of_outer_steps_stay_under_their_bounds(sigma: float, shrink: float) -> None:
    """min_x max_y g(x) + <x, A y> - <c, y> with g = sum sqrt(1 + x_i^2) - <d, x>, which is convex and no more."""
    rng = np.random.default_rng(int(10 * sigma) + int(2 * shrink))
    n = 6
    A = rng.standard_normal((n, n)) + 2.0 * np.eye(n)
    x_star, y_star = rng.standard_normal(n), rng.standard_normal(n)
    slope = x_star / np.sqrt(1.0 + x_star**2) + A @ y_star
    g = sp.Smooth(lambda x: x / np.sqrt(1.0 + x * x) - slope, mu=0.0, L=1.0)
    c = A.T @ x_star
    f = sp.Saddle(g, sp.Smooth(lambda y: c + 0.0 * y, mu=0.0, L=1.0), A)
    method = Proximal(sp.LPDGS(), sigma=sigma, shrink=shrink, start=0.3)
    count = 12 if shrink == 1.0 else 5
    rows = outer_steps(method, f, np.zeros(n), np.zeros(n), count)
    assert len(rows) == count
    start = distance(f, x_star, y_star)
    weights, last = [], start
    for row in rows:
        weights.append(row["t"])
        best = min(r["residual"] for r in rows[: len(weights)])
        assert best <= theory.proximal_bound(sigma, weights) * start * (1.0 + 1e-9)
        away = distance(f, row["next_u"] - x_star, row["next_v"] - y_star)
        assert away <= last * (1.0 + 1e-9) + 1e-13
        last = away
        a, b = method.anchor_weights(f, row["t"])
        kx, ky = 1.0 + 1.0 / a, 1.0 + 1.0 / b
        promised = theory.proximal_inner_steps(kx, ky, f.norm / math.sqrt(a * b), sigma)
        assert row["steps"] <= max(FIRST_CHECK, math.ceil(GROWTH * promised) + 1)
    if shrink == 1.0:
        best, t = min(row["residual"] for row in rows), rows[0]["t"]
        assert len(rows) <= theory.proximal_steps(sigma, t, best, start) + 1


@pytest.mark.parametrize("t", [0.2, 0.05])
def test_the_distance_falls_linearly_on_a_sharp_problem(t: float) -> None:
    n, rng = 5, np.random.default_rng(3)
    A = rng.standard_normal((n, n)) + 2.0 * np.eye(n)
    f = sp.Saddle(Zero(), Zero(), A)  # the only saddle point is 0
    method = Proximal(sp.LPDGS(), shrink=1.0, start=t)
    sharpness = float(np.linalg.svd(A, compute_uv=False)[-1]) / f.norm
    rate = theory.proximal_rate(method.sigma, t, sharpness)
    assert rate < 0.95
    rows = outer_steps(method, f, np.ones(n), np.ones(n), 8)
    assert len(rows) == 8
    for row in rows:
        assert distance(f, row["next_u"], row["next_v"]) <= rate * distance(f, row["u"], row["v"]) * (1.0 + 1e-9)


def test_with_simple_terms_the_distance_of_the_centres_never_grows() -> None:
    A = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), A)
    third = np.full(3, 1.0 / 3.0)
    last, rows = math.inf, outer_steps(Proximal(sp.LPDGS()), f, np.eye(3)[0], np.eye(3)[1], 4)
    assert len(rows) == 4
    for row in rows:
        away = distance(f, row["next_u"] - third, row["next_v"] - third)
        assert away <= last * (1.0 + 1e-9) + 1e-13
        last = away


def test_it_is_the_inner_method_where_both_functions_are_strongly_convex() -> None:
    f = sp.Saddle(sp.Quadratic([1.0, 3.0], [1.0, 1.0]), sp.Quadratic(2.0), [[1.0, 2.0], [0.0, 1.0]])
    alone, wrapped = (sp.solve(f, method=m) for m in (sp.LPDGS(), Proximal(sp.LPDGS())))
    assert np.array_equal(alone.x, wrapped.x)
    assert alone.calls == wrapped.calls


def badly_scaled(seed: int) -> sp.Saddle:
    """A saddle problem in boxes with linear functions, and rows of very different sizes."""
    rng = np.random.default_rng(seed)
    n, m = 60, 30
    A = np.exp(2.0 * rng.standard_normal((n, 1))) * rng.standard_normal((n, m)) / math.sqrt(n)
    b, c = rng.standard_normal(n), rng.standard_normal(m)
    g = sp.Smooth(lambda x: b + 0.0 * x, mu=0.0, L=1e-3) + sp.Box(-1.0, 1.0)
    h = sp.Smooth(lambda y: c + 0.0 * y, mu=0.0, L=1e-3) + sp.Box(-1.0, 1.0)
    return sp.Saddle(g, h, A)


@pytest.mark.slow
def test_auto_falls_back_on_the_proximal_point_method_where_halpern_with_restarts_is_slow() -> None:
    f = badly_scaled(5)
    result = sp.solve(f, gap=1e-6, max_calls=12_000)
    assert result.solved, result.message
    assert "proximal-anderson-condat-vu" in result.message
    alone = sp.solve(f, gap=1e-6, method="preconditioned-halpern-pdhg", max_calls=12_000)
    assert not alone.solved


def test_a_problem_that_the_first_methods_solve_soon_is_left_to_them() -> None:
    rng = np.random.default_rng(0)
    f = sp.Saddle(sp.Ball(1.0), sp.Ball(1.0), rng.standard_normal((20, 20)))
    result = sp.solve(f, np.ones(20), np.ones(20), gap=1e-6)
    assert result.solved
    assert "proximal" not in result.message
