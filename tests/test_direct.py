"""The factorisation of quadratic problems: Schur complements, and how matrices are counted."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, diags_array, issparse, random_array
from scipy.sparse.linalg import LinearOperator

import saddlepoint as sp
from saddlepoint.ground.factor import diagonal_of
from saddlepoint.ground.probing import products_needed
from saddlepoint.methods.direct import solver

DIAGONAL = lambda d: diags_array(d, format="csr")  # noqa: E731
FULL = lambda d: np.diag(d) + 0.1 * np.ones((d.size, d.size))  # noqa: E731


@pytest.mark.parametrize("size", [(40, 6), (6, 40)])
@pytest.mark.parametrize("P", [DIAGONAL, FULL], ids=["diagonal P", "full P"])
@pytest.mark.parametrize("Q", [DIAGONAL, FULL], ids=["diagonal Q", "full Q"])
@pytest.mark.parametrize("density", [1.0, 0.05], ids=["dense A", "sparse A"])
def test_every_elimination_solves_the_whole_system(size, P, Q, density):
    rng = np.random.default_rng(1)
    m, n = size
    A = rng.standard_normal(size) * (rng.random(size) <= density)
    P, Q = P(rng.uniform(0.5, 3.0, m)), Q(rng.uniform(0.5, 3.0, n))
    u, v = rng.standard_normal(m), rng.standard_normal(n)
    x, y = solver(P, Q, csr_array(A) if density < 1.0 else A)(u, v)
    plain = [M.toarray() if issparse(M) else M for M in (P, Q)]
    z = np.linalg.solve(np.block([[plain[0], A], [-A.T, plain[1]]]), np.r_[u, v])
    np.testing.assert_allclose(np.r_[x, y], z, atol=1e-12)


def test_a_diagonal_is_recognised_by_its_entries():
    assert diagonal_of(np.eye(3)) is None  # it is stored as a full matrix, and factorised as one
    assert diagonal_of(csr_array(np.eye(3) + np.eye(3, k=1))) is None
    np.testing.assert_array_equal(diagonal_of(DIAGONAL(np.array([1.0, 0.0, 2.0]))), [1.0, 0.0, 2.0])


def test_a_large_side_with_a_diagonal_hessian_is_never_a_full_matrix():
    """A Hessian of 60 000 rows would take 29 GB."""
    rng = np.random.default_rng(2)
    m, n = 60_000, 5
    g, h = sp.Quadratic(rng.uniform(0.01, 1.0, m), rng.standard_normal(m)), sp.Quadratic(rng.uniform(0.01, 1.0, n))
    result = sp.solve(sp.Saddle(g, h, rng.standard_normal((m, n))), method="direct", tol=1e-6)
    assert result.solved
    assert max(result.calls.values()) <= n + 4  # the columns of A, and a product for each of the four steps


def test_hessians_and_a_count_as_the_calls_that_would_compute_them():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((30, 12))
    f = sp.Saddle(sp.Quadratic(np.ones(30)), sp.Quadratic(FULL(np.ones(12)), np.ones(12)), A)
    calls = sp.solve(f, method="direct", tol=1e-8).calls
    assert (calls["grad_g"], calls["grad_h"], calls["A"], calls["At"]) == (2, 13, 13, 1)
    mirror = sp.Saddle(f.h, f.g, -A.T)
    calls = sp.solve(mirror, method="direct", tol=1e-8).calls
    assert (calls["grad_g"], calls["grad_h"], calls["A"], calls["At"]) == (13, 2, 1, 13)


def test_an_operator_gives_its_matrix_by_the_fewer_products():
    A, calls = np.random.default_rng(4).standard_normal((3, 40)), []
    operator = LinearOperator(
        A.shape, matvec=lambda y: calls.append("A") or A @ y, rmatvec=lambda x: calls.append("At") or A.T @ x
    )
    coupling = sp.as_coupling(operator)
    calls.clear()
    np.testing.assert_array_equal(coupling.matrix(), A)
    assert calls == ["At"] * 3


def test_a_singular_diagonal_is_refused():
    with pytest.raises(ArithmeticError, match="not positive definite"):
        solver(DIAGONAL(np.array([0.0, 1.0])), np.eye(3), np.ones((2, 3)))


def test_a_sparse_matrix_is_counted_as_the_products_that_would_compute_it():
    n = 400
    A = diags_array([np.ones(n - 1), 2.0 * np.ones(n)], offsets=[-1, 0], format="csr")
    P = diags_array([-np.ones(n - 1), 3.0 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1], format="csr")
    f = sp.Saddle(sp.Quadratic(P, np.ones(n)), sp.Quadratic(1.0, np.ones(n)), A)
    result = sp.solve(f, tol=1e-8, method="direct")
    steps = result.calls["At"]
    assert result.solved
    assert result.calls == {"grad_g": 3 + steps, "grad_h": 1 + steps, "A": 2 + steps, "At": steps} | {
        name: 0 for name in result.calls if name.startswith("prox")
    }


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_columns_of_a_group_have_no_common_row(seed):
    rng = np.random.default_rng(seed)
    S = random_array((int(rng.integers(1, 30)), int(rng.integers(1, 30))), density=rng.uniform(0.0, 0.5), rng=rng)
    number = products_needed(S)
    together = (abs(S).T @ abs(S)).toarray() > 0
    longest = int(np.diff(S.tocsr().indptr).max(initial=0))
    degree = int((together.sum(axis=1) - np.diag(together)).max(initial=0))
    assert max(longest, 1) <= number <= 1 + degree  # no fewer than a row has entries, no more than greedy needs


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_columns_of_a_large_matrix_are_counted_without_groups(layout, monkeypatch):
    rng = np.random.default_rng(0)
    S = random_array((30, 40), density=0.1, rng=rng)
    exact = products_needed(S.asformat(layout))
    monkeypatch.setattr(sys.modules[products_needed.__module__], "MANY", 0)
    of_rows, of_columns = ((S.toarray() != 0).sum(axis=axis).max() for axis in (1, 0))
    assert exact <= products_needed(S.asformat(layout)) == min(40, 1 + of_columns * (of_rows - 1))


def test_auto_factorises_sparse_quadratic_problems_whose_factors_stay_sparse():
    n = 4000
    A = diags_array([np.ones(n - 1), -np.ones(n)], offsets=[-1, 0], format="csr")
    f = sp.Saddle(sp.Quadratic(1e-4, np.ones(n)), sp.Quadratic(1e-3, np.ones(n)), A)
    result = sp.solve(f, rtol=1e-8)
    assert result.solved
    assert result.method == "direct"
