"""The interior-point method on simplices and boxes, and its place in auto."""

from __future__ import annotations

import numpy as np
import pytest
from draws import SEED
from scipy.optimize import linprog
from scipy.sparse import csr_array, diags_array

import saddlepoint as sp
from saddlepoint.solving.auto import choose

RNG = np.random.default_rng(5)
DRAWS = {
    "uniform": RNG.uniform(-1.0, 1.0, (12, 9)),
    "low rank": RNG.standard_normal((12, 2)) @ RNG.standard_normal((2, 9)),
    "scaled rows": np.exp(3.0 * RNG.standard_normal((12, 1))) * RNG.standard_normal((12, 9)),
    "ties": RNG.integers(-1, 2, (9, 12)).astype(float),
    "one column": RNG.standard_normal((6, 1)),
}


def value(A: np.ndarray) -> float:
    """The value of min_x max_y x'Ay over probabilities, by a linear program."""
    m, n = A.shape
    found = linprog(
        np.r_[np.zeros(m), 1.0],
        A_ub=np.hstack([A.T, -np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.r_[np.ones(m), 0.0][None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
    )
    return float(found.fun)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("sparse", [False, True])
def test_games_have_the_value_of_the_linear_program(name: str, sparse: bool) -> None:
    A = DRAWS[name]
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), csr_array(A) if sparse else A)
    goal = 1e-10 * np.abs(A).max()
    result = sp.solve(f, method="interior-point", gap=goal)
    assert result.solved
    assert result.iterations <= 25
    assert result.x @ A @ result.y == pytest.approx(value(A), abs=1e-7 * np.abs(A).max())
    assert (A.T @ result.x).max() - (A @ result.y).min() <= goal


def test_few_steps_are_enough_whatever_the_scales_of_rows_and_columns() -> None:
    rng = np.random.default_rng(SEED)
    for _ in range(5):
        m, n = rng.integers(2, 40, 2)
        rows, columns = (10.0 ** rng.uniform(-2.0, 2.0, k) for k in (m, n))
        A = rows[:, None] * rng.standard_normal((m, n)) * columns
        f = sp.Saddle(sp.Quadratic(0.0, rng.standard_normal(m)) + sp.Simplex(), sp.Box(-1.0, 1.0), A)
        result = sp.solve(f, method="interior-point", gap=1e-8 * np.abs(A).max())
        assert result.solved
        assert result.iterations <= 25


def test_boxes_with_quadratic_functions_have_the_point_of_a_first_order_method() -> None:
    g = sp.Quadratic(np.linspace(0.5, 2.0, 8), RNG.standard_normal(8)) + sp.Box(-0.3, [0.1] * 4 + [np.inf] * 4)
    h = sp.Quadratic(diags_array(np.linspace(1.0, 3.0, 6)).toarray(), RNG.standard_normal(6))
    f = sp.Saddle(g, h, RNG.standard_normal((8, 6)))
    result = sp.solve(f, method="interior-point", tol=1e-7)
    other = sp.solve(f, method="lpd-gs", tol=1e-9)
    assert result.solved
    assert np.abs(result.x - other.x).max() <= 2e-7


def test_a_player_without_a_choice_is_no_obstacle() -> None:
    f = sp.Saddle(sp.Simplex(), sp.Box(-1.0, 1.0), RNG.standard_normal((1, 3)))
    assert sp.solve(f, method="interior-point", gap=1e-9).solved


def test_terms_without_a_barrier_and_functions_that_are_not_quadratic_are_refused() -> None:
    A = np.ones((3, 2))
    with pytest.raises(
        sp.ProblemError, match=r"interior-point needs simplices or boxes .* but g has the simple term L1"
    ):
        sp.solve(sp.Saddle(sp.Quadratic(1.0) + sp.L1(0.1), sp.Quadratic(1.0), A), method="interior-point")
    with pytest.raises(sp.ProblemError, match="interior-point needs simplices or boxes with an interior"):
        sp.solve(sp.Saddle(sp.Quadratic(1.0) + sp.Box(1.0, 1.0), sp.Quadratic(1.0), A), method="interior-point")
    with pytest.raises(sp.ProblemError, match="interior-point needs quadratic g and h"):
        sp.solve(sp.Saddle(sp.LogCosh(l2=1.0), sp.Quadratic(1.0), A), method="interior-point")


def test_it_ends_at_the_rounding_floor_and_auto_says_so() -> None:
    A = DRAWS["uniform"]
    result = sp.solve(sp.Saddle(sp.Simplex(), sp.Simplex(), A), method="interior-point", gap=1e-25)
    assert not result.solved
    assert result.certificate.gap <= 1e-13
    assert result.iterations <= 60


def test_auto_takes_it_where_factorisations_take_little() -> None:
    labels = ["interior-point", "preconditioned-halpern-pdhg", "anderson-pdhg", "proximal-anderson-condat-vu"]
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), DRAWS["uniform"])
    assert [method.label for method in choose(f).methods] == labels
    l1 = sp.Saddle(sp.L1(0.1) + sp.Box(-1.0, 1.0), sp.Simplex(), DRAWS["uniform"])
    assert [method.label for method in choose(l1).methods] == labels[1:]
    assert choose(l1).turns == 3
    large = sp.Saddle(sp.Simplex(), sp.Simplex(), csr_array((60_000, 50_000)))
    assert [method.label for method in choose(large).methods] == labels[1:]
    dear = choose(f, {"grad_g": 100.0, "grad_h": 100.0, "A": 1.0, "At": 1.0})
    assert [method.label for method in dear.methods] == labels[1:]


def test_first_order_methods_go_on_where_it_breaks_down(monkeypatch: pytest.MonkeyPatch) -> None:
    from saddlepoint.ground.errors import SingularError

    def broken(self: object, f: object, s: object) -> None:
        raise SingularError("no factorisation")

    monkeypatch.setattr(sp.InteriorPoint, "step", broken)
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), DRAWS["uniform"])
    result = sp.solve(f, gap=1e-6)
    assert result.solved
    assert result.method == "preconditioned-halpern-pdhg"


def test_a_continued_run_takes_the_steps_of_one_run(tmp_path: object) -> None:
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), DRAWS["scaled rows"])
    whole = sp.solve(f, method="interior-point", gap=1e-9)
    sp.solve(f, method="interior-point", gap=1e-9, max_calls=40, checkpoint=f"{tmp_path}/run.npz")
    rest = sp.solve(f, method="interior-point", gap=1e-9, checkpoint=f"{tmp_path}/run.npz")
    assert rest.solved
    assert rest.iterations == whole.iterations
    assert np.array_equal(whole.x, rest.x)


def test_a_whole_matrix_that_is_too_large_is_not_factorised() -> None:
    """Where a Schur complement of 10 rows breaks down, a dense matrix of 6010 rows does not take its place."""
    from saddlepoint.ground.errors import SingularError
    from saddlepoint.methods.interior_point import _solver

    A, Q = RNG.standard_normal((10, 6000)), diags_array(np.r_[0.0, np.ones(5999)])
    with pytest.raises(SingularError, match="not positive"):
        _solver(diags_array(np.zeros(10)), Q, A)
    solve = _solver(diags_array(np.zeros(10)), Q.tocsr()[:20, :20], A[:, :20])  # a small one does
    _x, y = solve(np.ones(10), np.ones(20))
    assert np.allclose(A[:, :20] @ y, 1.0)


def test_the_last_steps_before_the_rounding_floor_raise_no_error_and_print_nothing(capfd: object) -> None:
    """Slacks become zero there, and Newton's equations are not finite any more."""
    for seed in range(12):
        rng = np.random.default_rng([SEED, 18, seed])
        X = np.round(2.0 * rng.standard_normal((46, 3)))
        s = np.where(X @ rng.standard_normal(3) + rng.standard_normal(46) > 0.0, 1.0, -1.0)
        h = sp.Quadratic(0.0, s) + sp.Box(np.minimum(-s, 0.0), np.maximum(-s, 0.0))
        result = sp.solve(sp.Saddle(sp.Quadratic(0.046), h, X.T), gap=1e-18, method="interior-point")
        assert result.certificate.gap < 1e-9
    assert capfd.readouterr() == ("", "")  # type: ignore[attr-defined]
