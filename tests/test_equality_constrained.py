"""Minimisers subject to linear equations, with proven distances."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from draws import SEED
from exact import distance, exact, solved
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator

import saddlepoint as sp
from saddlepoint.theory import equations_distances


def drawn(random: np.random.Generator):
    """A quadratic function and equations, and the exact solution in fractions."""
    n = int(random.integers(2, 7))
    m = int(random.integers(1, n))
    D = random.standard_normal((n, n)) * 10.0 ** random.uniform(-1.5, 1.5, n)
    P, q = D.T @ D + 10.0 ** random.uniform(-3, 1) * np.eye(n), random.standard_normal(n)
    P = 0.5 * (P + P.T)
    A, b = random.standard_normal((m, n)) * 10.0 ** random.uniform(-2, 2), random.standard_normal(m)
    K = np.block([[P, A.T], [A, np.zeros((m, m))]])
    z = solved(exact(K), exact(np.append(-q, b)))
    return P, q, A, b, z[:n], z[n:]


def assert_bounds_hold(seed: int, count: int) -> None:
    """Certify the exact solutions of drawn problems, and points near them, and compare with the exact distances."""
    for i in range(count):
        random = np.random.default_rng([seed, i])
        P, q, A, b, x, y = drawn(random)
        task = sp.apps.EqualityConstrained(sp.Quadratic(P, q), A, b)
        scale = 10.0 ** random.uniform(-14, 1)
        for noise in (0.0, scale):
            px = np.array([float(v) for v in x]) + noise * random.standard_normal(len(x)) * random.integers(0, 2)
            py = np.array([float(v) for v in y]) + noise * random.standard_normal(len(y)) * random.integers(0, 2)
            found = task.certify(px, py)
            assert distance(px, x) <= found.distance_x, i
            assert distance(py, y) <= found.distance_y, i


def test_bounds_are_above_the_exact_distances():
    assert_bounds_hold(3, 10)


@pytest.mark.slow
def test_bounds_are_above_the_exact_distances_of_many_draws():
    assert_bounds_hold(SEED, 150)


@pytest.mark.slow
def test_quadratic_functions_are_solved():
    for i in range(3):
        P, q, A, b, x, _ = drawn(np.random.default_rng([5, i]))
        found = sp.apps.EqualityConstrained(sp.Quadratic(P, q), A, b).solve(tol=1e-7)
        assert found.solved, found.message
        assert distance(found.x, x) <= found.certificate.distance_x <= 1e-7
        assert found.certificate.assumes == ()


def test_logistic_regression_with_weights_that_sum_to_one_is_within_its_certificate():
    random = np.random.default_rng(0)
    D = random.standard_normal((60, 5))
    labels = np.sign(D @ np.array([1.0, -1.0, 0.5, 0.0, 0.3]) + 0.3 * random.standard_normal(60))
    task = sp.apps.EqualityConstrained(sp.Logistic(D, labels, l2=1e-2), np.ones((1, 5)), [1.0])
    found = task.solve(tol=1e-7)
    finer = task.solve(tol=1e-10)
    assert found.solved
    assert finer.solved
    assert np.linalg.norm(found.x - finer.x) <= found.certificate.distance_x + 1e-10
    assert abs(found.x.sum() - 1.0) <= 1e-12
    assert not any("smoothness L of g" in text for text in found.certificate.assumes)  # it is proven


def test_sigma_that_the_user_gives_is_listed():
    A = aslinearoperator(csr_array(np.array([[1.0, 2.0, 2.0]])))
    with pytest.raises(sp.ProblemError, match="give one that you know with sigma="):
        sp.apps.EqualityConstrained(sp.Quadratic(np.ones(3)), A, [3.0])
    found = sp.apps.EqualityConstrained(sp.Quadratic(np.ones(3)), A, [3.0], sigma=3.0).solve(tol=1e-7)
    assert found.solved
    assert np.linalg.norm(found.x - np.array([1.0, 2.0, 2.0]) / 3.0) <= 1e-7
    assert any("at least 3, as given" in text for text in found.certificate.assumes)


@pytest.mark.parametrize(
    ("given_as", "factor"), [(np.asarray, 1.01), (csr_array, 1.01), (lambda M: aslinearoperator(csr_array(M)), 100.0)]
)
def test_a_sigma_that_the_matrix_contradicts_is_refused(given_as, factor):
    M = np.random.default_rng(SEED).standard_normal((4, 9))
    least = np.linalg.svd(M, compute_uv=False)[-1]
    g = sp.Quadratic(np.ones(9))
    with pytest.raises(sp.ProblemError, match="but A has a singular value of at most"):
        sp.apps.EqualityConstrained(g, given_as(M), np.ones(4), sigma=factor * least)
    assert sp.apps.EqualityConstrained(g, given_as(M), np.ones(4), sigma=least * (1.0 - 1e-12)).solve().solved
    with pytest.raises(sp.ProblemError, match="smallest singular value is 0"):
        sp.apps.EqualityConstrained(sp.Quadratic(np.ones(4)), given_as(M.T.copy()), np.ones(9), sigma=1.0)


def test_claims_about_a_function_of_ones_own_are_examined_before_it_is_called_solved():
    """The mu that is claimed is right in the directions with A d = 0, in which it is searched, but not in all."""
    D = np.array([0.25, 1.0, 1.0])
    A = np.array([[1.0, 0.0, 0.0]])

    def grad(x):
        return D * x - 1.0

    true = sp.apps.EqualityConstrained(sp.Smooth(grad, mu=0.25, L=1.0), A, [2.0]).solve()
    assert true.solved
    assert true.certificate.is_examined
    assert any("mu of g is 0.25, as given; the gradients" in text for text in true.certificate.assumes)
    false = sp.apps.EqualityConstrained(sp.Smooth(grad, mu=1.0, L=1.0), A, [2.0])
    with pytest.raises(sp.AssumptionError, match="mu of g is too large"):
        false.solve()
    with pytest.raises(sp.AssumptionError, match="mu of g is too large"):
        false.certify(true.x, true.y)


def test_noise_of_a_gradient_is_part_of_the_distance():
    random = np.random.default_rng(SEED)
    g = sp.Smooth(lambda x: x - 1.0 + 1e-7 * random.standard_normal(6), mu=1.0, L=1.0)
    found = sp.apps.EqualityConstrained(g, np.ones((1, 6)), [0.0]).solve(tol=1e-4)
    assert found.solved
    assert np.linalg.norm(found.x) <= found.certificate.distance_x
    assert found.certificate.noise_x >= 1e-8


def test_the_theorem_proves_nothing_without_its_constants_and_zero_at_the_solution():
    assert equations_distances(0.0, 1.0, 1.0, 1.0, 1.0) == (np.inf, np.inf)
    assert equations_distances(1.0, 1.0, 0.0, 1.0, 1.0) == (np.inf, np.inf)
    assert equations_distances(1.0, 2.0, 1.0, 0.0, 0.0) == (0.0, 0.0)
    small = equations_distances(1e-3, 1e3, 1e-2, 1e-200, 1e-200)
    assert 0.0 < max(small) < 1e-180


@pytest.mark.parametrize(
    ("g", "A", "words"),
    [
        (sp.Quadratic(np.array([1.0, 0.0])), [[1.0, 1.0]], "strongly convex"),
        (sp.Quadratic(1.0) + sp.L1(0.1), [[1.0, 1.0]], "simple term"),
        (sp.Quadratic(1.0), [[1.0, 1.0], [2.0, 2.0]], "not proven to be independent"),
        (3.0, [[1.0, 1.0]], "expected a Smooth"),
        (sp.Smooth(lambda x: x, mu=1.0, L=None), [[1.0, 1.0]], "the smoothness L of g is not known"),
    ],
)
def test_invalid_problems_are_refused(g, A, words):
    with pytest.raises(sp.ProblemError, match=words):
        sp.apps.EqualityConstrained(g, A, np.ones(len(A)))


def of_ones_own(P, b, error=None, **constants):
    """A quadratic function given as a gradient, perhaps with an error that depends on the number of calls."""
    calls = iter(range(10**9))
    wrong = (lambda k: 0.0) if error is None else error
    return sp.Smooth(lambda x: P * x + b + wrong(next(calls)), **({"mu": P.min(), "L": P.max()} | constants))


@pytest.mark.parametrize("seed", range(3))
def test_a_function_of_ones_own_is_examined(seed):
    rng = np.random.default_rng([SEED, seed])
    P, b, E, e = np.geomspace(0.01, 1.0, 8), rng.standard_normal(8), rng.standard_normal((3, 8)), rng.standard_normal(3)
    right = np.linalg.solve(np.block([[np.diag(P), E.T], [E, np.zeros((3, 3))]]), np.concatenate([-b, e]))
    task = sp.apps.EqualityConstrained(of_ones_own(P, b), E, e)
    found = task.solve(tol=1e-8)
    assert found.solved
    assert found.certificate.is_examined
    assert np.linalg.norm(found.x - right[:8]) <= found.certificate.distance_x
    with pytest.raises(sp.AssumptionError, match="mu of g is too large"):
        sp.apps.EqualityConstrained(of_ones_own(P, b, mu=0.1), E, e).certify(found.x, found.y)
    for error in (lambda k: 1e-6 * np.sin(k / 7.0 + np.arange(8)), lambda k: 1e-6 * rng.standard_normal(8)):
        noisy = sp.apps.EqualityConstrained(of_ones_own(P, b, error), E, e)
        with contextlib.suppress(sp.AssumptionError):  # two answers at one point
            found = noisy.solve(tol=1e-7)
            assert not found.solved
            assert np.linalg.norm(found.x - right[:8]) <= found.certificate.distance_x
