"""Operators of pyproximal and PyLops as they are: as simple terms, as A, and in the applications."""

import numpy as np
import pytest

import saddlepoint as sp

pyproximal = pytest.importorskip("pyproximal", reason="needs pyproximal, which is no part of the development tools")
pylops = pytest.importorskip("pylops", reason="needs PyLops")

N = 12
OPERATORS = {  # operators of pyproximal, and the same functions of ours
    "l1": (lambda: pyproximal.L1(sigma=0.5), lambda: sp.L1(0.5)),
    "box": (lambda: pyproximal.Box(-0.1, 0.3), lambda: sp.Box(-0.1, 0.3)),
    "simplex": (lambda: pyproximal.Simplex(N, 2.0, xtol=1e-16), lambda: sp.Simplex(2.0)),
    "ball": (lambda: pyproximal.EuclideanBall(np.full(N, 0.5), 0.7), lambda: sp.Ball(0.7, center=np.full(N, 0.5))),
    "l1 ball": (lambda: pyproximal.L1Ball(N, 1.3, xtol=1e-16), lambda: sp.Ball(1.3, norm=1)),
    "norm": (lambda: pyproximal.Euclidean(sigma=0.9), lambda: sp.Norm2(0.9)),
    "groups": (lambda: pyproximal.L21(ndim=2, sigma=0.6), lambda: sp.Groups(shape=(2, N // 2), weight=0.6)),
    "nuclear": (lambda: pyproximal.Nuclear((3, N // 3), sigma=0.6), lambda: sp.Nuclear((3, N // 3), 0.6)),
    "plane": (
        lambda: pyproximal.AffineSet(pylops.MatrixMult(np.ones((1, N))), np.array([0.4]), niter=5),
        lambda: sp.Hyperplane(np.ones(N), 0.4),
    ),
}


def smooth(seed=0):
    rng = np.random.default_rng(seed)
    return sp.Quadratic(rng.uniform(1.0, 5.0, N), 2.0 * rng.standard_normal(N)), rng.standard_normal((N, 5))


@pytest.mark.parametrize("kind", OPERATORS)
def test_operators_are_terms_as_they_are(kind):
    """Only the prox is used; the distance is proven, and the point is that of the ready-made function."""
    operator, ready = (make() for make in OPERATORS[kind])
    g, A = smooth()
    h = sp.Quadratic(2.0, np.ones(5))
    found, known = sp.solve(sp.Saddle(g + operator, h, A), tol=1e-7), sp.solve(sp.Saddle(g + ready, h, A), tol=1e-9)
    assert found.solved
    assert np.linalg.norm(found.x - known.x) + np.linalg.norm(found.y - known.y) <= 1e-7 + 1e-9
    assert repr(sp.as_simple(operator)).endswith(" of pyproximal")
    proof = sp.certify(sp.Saddle(g + operator, h, A), known.x, known.y)
    assert proof.distance <= 1e-6


def test_an_operator_may_be_an_argument_of_a_function_or_a_function_alone():
    g, A = smooth(1)
    h = sp.Quadratic(2.0, np.ones(5))
    with_argument = sp.Smooth(g.grad, mu=g.mu, L=g.L, simple=pyproximal.L1(sigma=0.5))
    known = sp.solve(sp.Saddle(g + sp.L1(0.5), h, A), tol=1e-9)
    assert np.linalg.norm(sp.solve(sp.Saddle(with_argument, h, A), tol=1e-7).x - known.x) <= 1e-7 + 1e-9
    alone = sp.Saddle(pyproximal.Simplex(N, 1.0, xtol=1e-16), h, A)
    assert alone.mu_x == 0.0
    assert "Simplex of pyproximal" in repr(alone.g.simple)


@pytest.mark.parametrize("kind", ["L0", "SCAD"])
def test_penalties_that_are_not_convex_are_never_solved(kind):
    """Their prox jumps, which no prox of a convex function does."""
    operator = pyproximal.L0(sigma=0.5) if kind == "L0" else pyproximal.SCAD(sigma=0.8, a=2.2)
    g, A = smooth(2)
    with pytest.raises(sp.AssumptionError, match="prox"):
        sp.solve(sp.Saddle(g + operator, sp.Quadratic(2.0, np.ones(5)), A), tol=1e-7)


def test_a_prox_whose_iterations_end_early_is_refused():
    """A projection onto the simplex with an error of 1e-8 would make every proof wrong by about as much."""
    g, A = smooth(4)
    with pytest.raises(sp.AssumptionError, match="computed by iterations, let them go on to the last digits"):
        sp.solve(sp.Saddle(g + pyproximal.Simplex(N, 2.0), sp.Quadratic(2.0, np.ones(5)), A), tol=1e-6)


def test_a_pylops_operator_may_be_A():
    D = pylops.FirstDerivative(N, kind="forward", edge=False)
    g, _ = smooth(3)
    f = sp.Saddle(g + sp.L1(0.2), sp.Quadratic(1.5, np.ones(N)), D)
    dense = sp.Saddle(g + sp.L1(0.2), sp.Quadratic(1.5, np.ones(N)), D.todense())
    found, known = sp.solve(f, tol=1e-7), sp.solve(dense, tol=1e-9)
    assert found.solved
    assert np.linalg.norm(found.x - known.x) <= 1e-7 + 1e-9


@pytest.mark.slow
def test_a_pylops_operator_may_blur_the_image_of_total_variation():
    image = np.zeros((8, 6))
    image[2:5, 1:4] = 1.0
    B = pylops.signalprocessing.Convolve2D((8, 6), np.full((3, 3), 1.0 / 9.0), offset=(1, 1))
    blurred = (B @ image.ravel()).reshape(8, 6)
    found, known = (
        sp.apps.TotalVariation(blurred, 0.02, operator=operator, ridge=0.05).solve(rms=1e-3)
        for operator in (B, B.todense())
    )
    assert found.solved
    assert np.sqrt(np.mean((found.image - known.image) ** 2)) <= 2e-3
