"""Distances where one of the two functions is not strongly convex, but A moves every vector of its side."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact import solved
from libraries import in_library, xp  # noqa: F401 - a fixture
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator

import saddlepoint as sp
from saddlepoint.problems import one_sided
from saddlepoint.uses.batch import Batch, solve_many

m, n = 6, 4


def linear(c: np.ndarray) -> sp.Smooth:
    """A linear function that the caller wrote."""
    return sp.Smooth(lambda y: c + 0.0 * y, mu=0.0, L=1.0)


def steep(L: float) -> sp.Smooth:
    """A strongly convex function that the caller wrote, with a smoothness of 21."""
    t = np.linspace(-1.0, 1.0, m)
    return sp.Smooth(lambda x: x + 20.0 * np.tanh(x - t) - 5.0, mu=1.0, L=L)


@pytest.fixture
def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    return random.standard_normal((m, n)), random.standard_normal(m), random.standard_normal(n)


@pytest.mark.parametrize("swapped", [False, True])
def test_distances_hold_for_exact_saddle_points(swapped: bool) -> None:
    """Quadratics of all sizes, whose saddle points are known in rational arithmetic."""
    random, counted = np.random.default_rng(int(swapped)), 0
    for _ in range(40):
        rows = int(random.integers(1, 7))
        columns = int(random.integers(1, rows + 1))
        A = random.integers(-4, 5, (rows, columns)) * 10.0 ** random.integers(-4, 5)
        P, Q = 10.0 ** random.integers(-3, 4, rows), np.zeros(columns)
        Q[: int(random.integers(0, columns))] = 2.0
        b, c = random.standard_normal(rows), random.standard_normal(columns) * 10.0 ** random.integers(-3, 4)
        f = sp.Saddle(sp.Quadratic(P, b), sp.Quadratic(Q, c), A)
        if swapped:  # x and y, and the players
            f = sp.Saddle(sp.Quadratic(Q, c), sp.Quadratic(P, b), -A.T)
        if np.linalg.matrix_rank(A) < columns:
            with pytest.raises(sp.ProblemError, match="independent"):
                sp.solve(f)
            continue
        result = sp.solve(f, rtol=1e-3, max_calls=2000)
        K = [[Fraction(float(v)) for v in row] for row in np.block([[np.diag(P), A], [-A.T, np.diag(Q)]])]
        z = solved(K, [Fraction(float(-v)) for v in np.concatenate([b, c])])
        assert z is not None
        proof, found = result.certificate, (result.x, result.y)
        found, bounds = (found, (proof.distance_x, proof.distance_y)) if not swapped else (
            found[::-1], (proof.distance_y, proof.distance_x))  # fmt: skip
        for point, exact, bound in zip(found, (z[:rows], z[rows:]), bounds, strict=True):
            assert bound < np.inf
            away = sum((Fraction(float(v)) - w) ** 2 for v, w in zip(point, exact, strict=True))
            assert away <= Fraction(bound) ** 2
        assert proof.gap == np.inf
        counted += result.solved
    assert counted > 15


@pytest.mark.parametrize("target", ["tol", "rtol"])
def test_functions_of_the_caller_and_sparse_matrices_have_proven_distances(
    drawn: tuple[np.ndarray, ...], target: str
) -> None:
    A, _, c = drawn
    result = sp.solve(sp.Saddle(steep(21.0), linear(c), csr_array(A)), **{target: 1e-9})
    assert result.solved, result.message
    assert result.certificate.distance <= 1e-9 * (1.0 if target == "tol" else 100.0)
    assert any("The smoothness L of g is at most 21." in sentence for sentence in result.certificate.assumes)
    assert "L of g" in repr(sp.certify(sp.Saddle(steep(21.0), linear(c), A), result.x, result.y).certificate.assumes)


def test_ready_functions_and_matrices_leave_nothing_to_assume(drawn: tuple[np.ndarray, ...]) -> None:
    A, b, c = drawn
    f = sp.Saddle(sp.Quadratic(np.eye(m) + np.outer(b, b), b), sp.Quadratic(0.0, c), A)
    result = sp.solve(f, tol=1e-8)
    assert result.solved
    assert result.certificate.assumes == ()


def test_a_smoothness_that_is_too_small_is_found(drawn: tuple[np.ndarray, ...]) -> None:
    A, _, c = drawn
    f = sp.Saddle(steep(1.1), linear(c), A)
    with pytest.raises(sp.AssumptionError, match="L of g is too small"):
        sp.solve(f)
    with pytest.raises(sp.AssumptionError, match="L of g is too small"):
        sp.certify(f, np.zeros(m), np.zeros(n))


def test_what_a_proof_lacks_is_said(drawn: tuple[np.ndarray, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    A, b, c = drawn
    g, h = sp.Quadratic(1.0, b), linear(c)
    dependent = np.column_stack([A[:, :3], A[:, 0]])
    wide = sp.Saddle(sp.Quadratic(1.0, c), linear(b), A.T)
    estimated = sp.Saddle(sp.Smooth(lambda x: 2.0 * x + b, mu=2.0, L=None), h, A)
    for f, words in (
        (sp.Saddle(g, h, dependent), "the columns of A are not proven to be independent"),
        (sp.Saddle(linear(c), sp.Quadratic(1.0, b), dependent.T), "the rows of A are not proven to be independent"),
        (wide, "the 6 columns of A cannot be independent"),
        (sp.Saddle(g, h, aslinearoperator(A)), "EqualityConstrained takes sigma="),
        (estimated, "the smoothness L of g is not known: give it"),
    ):
        with pytest.raises(sp.ProblemError, match=words):
            sp.solve(f)
    with pytest.raises(sp.ProblemError, match="or ask for a distance with tol="):
        sp.solve(sp.Saddle(g, h, A), gap=1e-6)
    monkeypatch.setattr(one_sided, "ENTRIES", 10)
    with pytest.raises(sp.ProblemError, match="10 entries"):
        sp.solve(sp.Saddle(g, h, A))


def test_runs_go_on_from_checkpoints(drawn: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    A, _, c = drawn
    f, file = sp.Saddle(steep(21.0), linear(c), A), tmp_path / "run"
    costs = dict.fromkeys(("grad_g", "grad_h", "A", "At"), 1.0)
    whole = sp.solve(f, tol=1e-9, costs=costs)
    stopped = sp.solve(f, tol=1e-9, costs=costs, max_calls=60, checkpoint=file)
    resumed = sp.solve(f, tol=1e-9, costs=costs, checkpoint=file)
    assert not stopped.solved
    assert resumed.x.tobytes() == whole.x.tobytes()
    assert (resumed.calls, resumed.certificate) == (whole.calls, whole.certificate)


def test_lists_paths_and_prepared_problems_have_proven_distances(drawn: tuple[np.ndarray, ...]) -> None:
    A, b, c = drawn
    f = sp.Saddle(sp.Quadratic(1.0, b), sp.Quadratic(0.0, c), A)
    strong = sp.Saddle(sp.Quadratic(1.0, b), sp.Quadratic(1.0, c), A)
    assert all(result.solved for result in solve_many([f, strong, f], tol=1e-8))
    assert all(result.solved for result in solve_many([f, f], tol=1e-8, method="pdhg"))
    assert sp.path(lambda s: f.replace(g=sp.Quadratic(1.0, s * b)), [1.0, 2.0], tol=1e-8).solved
    prepared = sp.prepare(f, tol=1e-8)
    assert prepared.solve().solved
    again = prepared.update(A=2.0 * A).solve()
    assert again.solved
    K = np.block([[np.eye(m), 2.0 * A], [-2.0 * A.T, np.zeros((n, n))]])
    assert np.linalg.norm(np.linalg.solve(K, -np.concatenate([b, c])) - np.concatenate([again.x, again.y])) < 2e-8
    with pytest.raises(sp.ProblemError, match="mu = 0"):
        Batch(sp.Quadratic(1.0, np.tile(b, 2)), sp.Quadratic(0.0, np.tile(c, 2)), np.stack([A, A]))


def test_distances_are_proven_in_all_array_libraries(drawn: tuple[np.ndarray, ...], xp: Any) -> None:  # noqa: F811
    A, b, c = drawn
    f = in_library(sp.Saddle(sp.Quadratic(1.0, b), sp.Quadratic(0.0, c), A), xp)
    result = sp.solve(f, tol=1e-6)
    assert result.solved, result.message
    with pytest.raises(sp.ProblemError, match="with tol=1e-6 shows"):
        sp.predict(f)
