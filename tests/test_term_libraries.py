"""Problems with simple terms in the arrays of other libraries: the same answers and proofs as in NumPy."""

import numpy as np
import pytest
from libraries import LIBRARIES, in_every_library, in_library, marks

import saddlepoint as sp
from saddlepoint.ground.arrays import to_host

TERMS = {
    "l1 and box": (sp.L1(np.linspace(0.0, 1.0, 8)), sp.Box(-0.2, 0.4)),
    "simplex and groups": (sp.Simplex(), sp.Groups([0, 1, 1, 0, 2, 2], 0.3)),
    "balls": (sp.Ball(0.6, center=np.linspace(-1.0, 1.0, 8)), sp.Ball(0.5, norm=1)),
    "blocks and plane": (
        sp.Blocks([((0, 3), sp.Simplex()), ((4, None), sp.Norm2(0.2))]),
        sp.Hyperplane(np.arange(1.0, 7.0), 0.3),
    ),
    "matrix and sparse groups": (sp.Nuclear((2, 4), 0.3), sp.Groups(shape=(2, 3), weight=0.2) + sp.L1(0.1)),
}
METHODS = ["auto", "lpd-gs", "condat-vu", "ogda", "dippa", "anderson-condat-vu"]


def libraries(*left_out):
    """All libraries but some: JAX compiles every operation, and array-api-strict is slow."""
    return [pytest.param(name, marks=marks(name)) for name in LIBRARIES if name not in left_out]


def plain():
    rng = np.random.default_rng(5)
    g = sp.Quadratic(rng.uniform(0.5, 4.0, 8), rng.standard_normal(8))
    return sp.Saddle(g, sp.Quadratic(rng.uniform(0.5, 4.0, 6), rng.standard_normal(6)), rng.standard_normal((8, 6)))


def with_terms(f, terms):
    p, q = TERMS[terms]
    return sp.Saddle(f.g + p, f.h + q, f.A)


@in_every_library("terms", TERMS, few=[], quick=["l1 and box", "balls"])
def test_answers_proofs_and_supports_are_those_of_numpy(terms, xp):
    there = with_terms(in_library(plain(), xp), terms)
    found, known = sp.solve(there, tol=1e-8), sp.solve(with_terms(plain(), terms), tol=1e-8)
    assert found.solved
    assert type(found.x) is type(xp.asarray(np.zeros(8).tolist(), dtype=xp.float64))
    np.testing.assert_allclose(to_host(found.x), known.x, atol=2e-8)
    np.testing.assert_array_equal(found.support_x, known.support_x)
    np.testing.assert_array_equal(found.support_y, known.support_y)
    proof = sp.certify(there, found.x, found.y).certificate
    assert proof.distance <= 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("xp", libraries("jax", "array-api-strict"), indirect=True)
@pytest.mark.parametrize("method", METHODS)
def test_methods_take_terms(method, xp):
    there = with_terms(in_library(plain(), xp), "simplex and groups")
    found, known = (
        sp.solve(there, method=method, tol=1e-7),
        sp.solve(with_terms(plain(), "simplex and groups"), tol=1e-9),
    )
    assert found.solved
    assert np.linalg.norm(to_host(found.x) - known.x) <= 1e-7 + 1e-9


@pytest.mark.parametrize("xp", libraries("jax", "array-api-strict"), indirect=True)
def test_a_game_without_strong_convexity_is_solved_to_a_proven_gap(xp):
    A = np.random.default_rng(2).standard_normal((5, 4))
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), xp.asarray(A.tolist(), dtype=xp.float64))
    found = sp.solve(f, gap=1e-6)
    x, y = to_host(found.x), to_host(found.y)
    assert found.solved
    assert (A.T @ x).max() - (A @ y).min() <= found.certificate.gap + 1e-12


@pytest.mark.parametrize("xp", libraries("jax"), indirect=True)
def test_terms_work_in_single_precision(xp):
    there = with_terms(in_library(plain(), xp, "float32"), "l1 and box")
    found, known = sp.solve(there, tol=1e-4), sp.solve(with_terms(plain(), "l1 and box"), tol=1e-9)
    assert found.solved
    assert found.x.dtype == xp.float32
    assert np.linalg.norm(to_host(found.x) - known.x) <= 1e-4
