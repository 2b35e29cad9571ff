"""Diagonal scaling of both players: the scales, the simple terms in new units, and runs on badly scaled problems."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import saddlepoint as sp
from saddlepoint.parts.coupling.equilibration import equilibrated
from saddlepoint.parts.simple.diagonal import diagonal_scales, diagonal_simple


def badly_scaled(m: int, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows, columns = np.exp(2.0 * rng.standard_normal(m)), np.exp(2.0 * rng.standard_normal(n))
    return rows[:, None] * rng.standard_normal((m, n)) * columns


def program(A: object, seed: int) -> sp.Saddle:
    """A linear program in a box, with penalties in a box."""
    rng = np.random.default_rng(seed)
    m, n = A.shape  # type: ignore[attr-defined]
    g = sp.Quadratic(np.zeros(m), rng.standard_normal(m), mu=0.0, L=0.0) + sp.Box(0.0, 2.0)
    h = sp.Quadratic(np.zeros(n), rng.standard_normal(n), mu=0.0, L=0.0) + sp.Box(-5.0, 5.0)
    return sp.Saddle(g, h, A)


@pytest.mark.parametrize("sparse", [False, True])
def test_scaled_rows_and_columns_are_alike(sparse: bool) -> None:
    A = badly_scaled(30, 20, 1)
    rows, columns = equilibrated(scipy.sparse.csr_array(A) if sparse else A)
    scaled = rows[:, None] * A * columns
    sizes = np.abs(scaled).sum(axis=1), np.abs(scaled).sum(axis=0)
    assert all(v.max() <= 6.0 * v.min() for v in sizes)
    for v in (rows, columns):
        assert abs(np.log2(v).mean()) <= 0.5
        assert np.all(np.log2(v) == np.round(np.log2(v)))


def test_rows_and_columns_of_zeros_keep_their_units() -> None:
    rows, columns = equilibrated(np.zeros((3, 2)))
    assert rows.tolist() == [1.0, 1.0, 1.0]
    assert columns.tolist() == [1.0, 1.0]


def test_projection_onto_a_simplex_in_other_units_is_the_nearest_point() -> None:
    rng = np.random.default_rng(3)
    d, v = np.exp(rng.standard_normal(6)), rng.standard_normal(6)
    p = diagonal_simple(sp.Simplex(2.0), d, 1.0)
    u = p.prox(v, 0.3)
    assert u.min() >= 0.0
    assert d @ u == pytest.approx(2.0, rel=1e-14)
    theta = (v - u)[u > 0.0] / d[u > 0.0]  # v - u is theta d where u is positive, and at most that elsewhere
    assert np.ptp(theta) <= 1e-12
    assert np.all((v - u)[u == 0.0] <= theta[0] * d[u == 0.0] + 1e-12)


def test_terms_in_other_units_have_the_values_of_the_old_ones() -> None:
    p = sp.Blocks([(range(0, 3), sp.Simplex()), (range(3, 5), sp.L1(0.5) + sp.Box(-1.0, 2.0))])
    d = np.array([0.5, 2.0, 4.0, 8.0, 0.25])
    x = np.array([0.2, 0.3, 0.5, -0.7, 1.5])
    scaled = diagonal_simple(p, d, 3.0)
    assert scaled.value(x / d) == pytest.approx(3.0 * p.value(x))
    assert scaled.value(x / d + 1.0) == np.inf


def test_coordinates_that_a_norm_joins_have_one_unit() -> None:
    d = np.array([1.0, 4.0, 16.0])
    assert diagonal_scales(sp.Norm2(1.0), d).tolist() == [4.0, 4.0, 4.0]
    assert diagonal_scales(sp.L1(1.0), d).tolist() == d.tolist()
    with pytest.raises(sp.ProblemError, match="units of their own"):
        diagonal_simple(sp.Norm2(1.0), d, 1.0)


def test_badly_scaled_program_is_solved() -> None:
    f = program(badly_scaled(20, 15, 4), 5)
    result = sp.solve(f, method="preconditioned-halpern-pdhg", gap=1e-6, max_calls=6000)
    assert result.solved
    assert f.certificate(result.x, result.y).gap <= 1e-6
    plain = sp.solve(f, method="halpern-pdhg", gap=1e-6, max_calls=6000)
    assert not plain.solved


def test_game_with_badly_scaled_rows_is_solved() -> None:
    A = badly_scaled(20, 20, 6)
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), A)
    goal = 1e-6 * np.abs(A).max()
    result = sp.solve(f, *2 * [np.full(20, 0.05)], method=sp.Preconditioned("halpern-pdhg"), gap=goal, max_calls=6000)
    assert result.solved
    assert (A.T @ result.x).max() - (A @ result.y).min() <= goal


def test_other_methods_and_strongly_convex_problems_may_be_preconditioned() -> None:
    f = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(2.0), badly_scaled(6, 5, 7))
    result = sp.solve(f, np.ones(6), np.ones(5), method=sp.Preconditioned(sp.LPDGS()), tol=1e-6)
    assert result.solved
    assert result.method == "preconditioned-lpd-gs"


def test_the_residual_is_that_of_the_inner_method() -> None:
    f, inner = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(2.0), badly_scaled(6, 5, 7)), sp.Anderson(sp.CondatVu())
    method = sp.Preconditioned(inner)
    view = method.normal_form(f)
    state = method.step(view.problem, method.init(view.problem, *view.to(np.ones(6), np.ones(5))))
    assert 0.0 < method.state_residual(state) == inner.state_residual(state) < np.inf


def test_operator_is_left_as_it_is() -> None:
    f = program(aslinearoperator(np.random.default_rng(8).standard_normal((6, 5))), 9)
    one, other = (
        sp.solve(f, method=name, gap=1e-4, max_calls=300) for name in ("halpern-pdhg", "preconditioned-halpern-pdhg")
    )
    assert np.array_equal(one.x, other.x)


def test_continued_run_takes_the_steps_of_one_run(tmp_path: object) -> None:
    f, method = program(badly_scaled(8, 6, 10), 11), "preconditioned-halpern-pdhg"
    whole = sp.solve(f, method=method, gap=1e-12, max_calls=400)
    sp.solve(f, method=method, gap=1e-12, max_calls=200, checkpoint=f"{tmp_path}/run.npz")
    rest = sp.solve(f, method=method, gap=1e-12, max_calls=400, checkpoint=f"{tmp_path}/run.npz")
    assert np.array_equal(whole.x, rest.x)
