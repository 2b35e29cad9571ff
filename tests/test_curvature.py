"""Derivatives of solutions on spheres, with Euclidean norms, and with nuclear norms."""

import math

import numpy as np
import pytest
from draws import SEED

import saddlepoint as sp
from saddlepoint.parts.simple.rescaled import rescaled_simple
from saddlepoint.problems.curvature import Curved, Near, curvature_function
from saddlepoint.problems.faces import free_directions

GROUPS = [0, 0, 1, 1, 1, 2, 2]
TERMS = {
    "balls": (sp.Ball(0.3), sp.Ball(0.1)),
    "ball around a center, norm": (sp.Ball(0.3, center=0.2), sp.Norm2(0.2)),
    "groups": (sp.Groups(GROUPS, 0.08), sp.GroupBalls([0, 0, 1, 1, 1], [0.1, 0.3])),
    "sparse groups": (sp.Groups(GROUPS, 0.05) + sp.L1(0.02), sp.Norm2(0.05)),
    "l1 balls": (sp.Ball(0.3, 1), sp.Ball(5.0, 1)),
    "blocks": (
        sp.Blocks({range(0, 3): sp.Ball(0.1), range(3, 7): sp.Groups([0, 0, 1, 1], 0.05)}),
        sp.Ball(0.05, "inf"),
    ),
    "nuclear norms": (
        sp.Blocks({range(0, 6): sp.Nuclear((2, 3), 0.2), range(6, 7): sp.L1(0.01)}),
        sp.Blocks({range(1, 5): sp.Nuclear((2, 2), 0.1)}),
    ),
    "nuclear norm of a vector": (sp.Nuclear((7, 1), 0.08), sp.Nuclear((1, 5), 0.02)),
    "a point": (sp.GroupBalls(GROUPS, [0.0, 0.2, math.inf]), sp.Simplex()),
}


def problem(name, seed, change=0.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    D, E, A, dA = (rng.standard_normal(shape).astype(dtype) for shape in ((12, 7), (12, 5), (7, 5), (7, 5)))
    labels, t = np.sign(rng.standard_normal(12)).astype(dtype), rng.standard_normal(12).astype(dtype)
    p, q = TERMS[name]
    return sp.Saddle(
        sp.Logistic(D, labels, 0.3) + p, sp.LogCosh(E, t, 0.3) + q, (0.4 * A + change * dA).astype(dtype)
    ), dA


@pytest.mark.parametrize("name", TERMS)
def test_derivatives_are_those_of_finite_differences(name):
    h, dA = 1e-5, problem(name, 8)[1]
    result, up, down = (sp.solve(problem(name, 8, s)[0], tol=1e-10) for s in (0.0, h, -h))
    moved = result.jvp(A=dA)
    assert moved.undecided == 0
    assert moved.bound < 1e-6
    assert np.linalg.norm(moved.x) + np.linalg.norm(moved.y) > 0.1
    assert moved.x == pytest.approx((up.x - down.x) / (2 * h), abs=1e-5)
    assert moved.y == pytest.approx((up.y - down.y) / (2 * h), abs=1e-5)
    vx, vy = np.arange(7.0), np.arange(5.0)
    assert np.sum(result.vjp(vx, vy).A * dA) == pytest.approx(vx @ moved.x + vy @ moved.y, rel=1e-6)


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bounds_hold_on_drawn_problems(name, dtype):
    f, dA = problem(name, SEED, dtype=dtype)
    wide = problem(name, SEED)[0] if dtype is np.float64 else problem_in_float64(f, name, SEED)
    exact = sp.solve(wide, tol=1e-10, max_calls=20_000).jvp(A=dA.astype(np.float64))
    for tol in (1e-2, 1e-4):
        rough = sp.solve(f, tol=tol, method="condat-vu").jvp(A=dA)
        error = np.linalg.norm(rough.x - exact.x) + np.linalg.norm(rough.y - exact.y)
        assert error <= rough.bound + exact.bound


def problem_in_float64(f, name, seed):
    """The problem whose numbers are those of the problem in float32."""
    rng = np.random.default_rng(seed)
    D, E = (rng.standard_normal(shape).astype(np.float32).astype(np.float64) for shape in ((12, 7), (12, 5)))
    rng.standard_normal((7, 5)), rng.standard_normal((7, 5))
    labels, t = np.sign(rng.standard_normal(12)), rng.standard_normal(12).astype(np.float32).astype(np.float64)
    p, q = TERMS[name]
    A = f.A.matrix().astype(np.float64)
    return sp.Saddle(sp.Logistic(D, labels, 0.3) + p, sp.LogCosh(E, t, 0.3) + q, A)


def test_the_derivative_on_a_sphere_is_the_one_by_hand():
    """The nearest point to -b in the ball of radius 1 is -b/|b|, with the derivative -(I - d d')/|b|."""
    b = np.array([3.0, 4.0])
    u = sp.solve(sp.Saddle(sp.Quadratic(1.0, b) + sp.Ball(1.0), sp.Quadratic(1.0), np.zeros((2, 1)))).vjp([1.0, 0.0])
    assert u.bx == pytest.approx(-np.array([1.0 - 0.36, -0.48]) / 5.0, abs=1e-9)
    inside = sp.solve(sp.Saddle(sp.Quadratic(1.0, b) + sp.Ball(9.0), sp.Quadratic(1.0), np.zeros((2, 1))))
    assert inside.vjp([1.0, 0.0]).bx == pytest.approx([-1.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("term", [sp.Ball(5.0), sp.Norm2(5.0), sp.Ball(7.0, 1)])
def test_at_a_kink_an_element_is_returned_and_flagged(term):
    f = sp.Saddle(sp.Quadratic(1.0, [3.0, 4.0]) + term, sp.Quadratic(1.0), np.zeros((2, 1)))
    u = sp.solve(f).vjp([1.0, 0.0])
    assert u.undecided == 2
    assert u.bound == math.inf
    assert "2 coordinates are neither proven" in u.why
    assert np.isfinite(u.bx).all()


def test_the_curvature_is_a_function():
    f = curvature_function([Curved(np.array([0, 2]), 3.0, np.array([0.6, 0.8]))], 4, np.zeros(4))
    u = np.array([1.0, 2.0, 3.0, 4.0])
    assert f.grad(u) == pytest.approx([3.0 * (1.0 - 3.0 * 0.6), 0.0, 3.0 * (3.0 - 3.0 * 0.8), 0.0])
    assert f.hessian(u) @ u == pytest.approx(f.grad(u))


@pytest.mark.parametrize(
    "terms",
    [
        (sp.Ball(0.6), sp.Ball(0.3)),
        (sp.Norm2(0.25), sp.Norm2(1.5)),
        (sp.L1(0.5), sp.L1(3.0)),
        (sp.Nuclear((3, 1), 0.9), sp.Nuclear((3, 1), 5.4)),
    ],
)
def test_a_term_in_another_unit_has_the_same_directions(terms):
    """3 p(-2 x) for the first term p is the second one."""
    x, near = np.array([0.0, 0.18, 0.24]), Near(np.array([0.0, -3.0, -4.0]), 1e-6, 1e-5)
    one = free_directions(rescaled_simple(terms[0], -2.0, 3.0), x, None, near)
    two = free_directions(terms[1], x, None, near)
    assert one.free.tolist() == two.free.tolist()
    assert np.abs(one.normals) == pytest.approx(np.abs(two.normals))
    for a, b in zip(one.curvature.parts, two.curvature.parts, strict=True):
        assert a.c == pytest.approx(b.c)
        assert np.abs(a.d) == pytest.approx(np.abs(b.d))
    assert one.curvature[1:3] == pytest.approx(two.curvature[1:3])
    for a, b in zip(one.curvature.ranks, two.curvature.ranks, strict=True):
        Z = np.array([[1.0], [2.0], [-3.0]])
        assert a.times(Z) == pytest.approx(b.times(Z))


def low_rank(tol, weight=0.3, seed=3):
    rng = np.random.default_rng(seed)
    B, A = rng.standard_normal((4, 3)), 0.3 * rng.standard_normal((12, 2))
    f = sp.Saddle(sp.Quadratic(1.0, B.reshape(-1)) + sp.Nuclear((4, 3), weight), sp.Quadratic(1.0, [1.0, -1.0]), A)
    return sp.solve(f, tol=tol)


def test_the_derivative_with_a_nuclear_norm_is_the_one_by_hand():
    """The solution for X = -diag(b) is diag(b - weight): singular vectors turn by 1/(b1 + b2) of the skew part."""
    b, weight = np.diag([3.0, 2.0]), 0.5
    f = sp.Saddle(sp.Quadratic(1.0, -b.reshape(-1)) + sp.Nuclear((2, 2), weight), sp.Quadratic(1.0), np.zeros((4, 1)))
    u = sp.solve(f, tol=1e-10).vjp([0.0, 1.0, 0.0, 0.0])
    skew = 1.0 - 2.0 * weight / 5.0  # (s1 + s2)/(b1 + b2) with s = b - weight
    assert u.bx == pytest.approx([0.0, -0.5 - 0.5 * skew, -0.5 + 0.5 * skew, 0.0], abs=1e-8)
    assert u.undecided == 0
    assert u.bound < 1e-7


@pytest.mark.parametrize("weight", [0.3, 1.0, 2.0, 5.0])  # ranks 3, 2, 1, 0
def test_bounds_with_a_nuclear_norm_hold_for_every_rank(weight):
    exact = low_rank(1e-11, weight).vjp(np.ones(12), np.ones(2))
    assert exact.bound < 1e-6
    for tol in (1e-1, 1e-2, 1e-4):
        rough = low_rank(tol, weight).vjp(np.ones(12), np.ones(2))
        error = np.linalg.norm(rough.ux - exact.ux) + np.linalg.norm(rough.uy - exact.uy)
        assert error <= rough.bound + exact.bound
    assert rough.bound < math.inf


def test_a_rank_that_is_not_proven_is_flagged():
    b = np.diag([3.0, 0.5]).reshape(-1)  # the second singular value is just at the weight
    f = sp.Saddle(sp.Quadratic(1.0, b) + sp.Nuclear((2, 2), 0.5), sp.Quadratic(1.0), np.zeros((4, 1)))
    u = sp.solve(f).vjp([1.0, 0.0, 0.0, 1.0])
    assert u.undecided == 4
    assert u.bound == math.inf
    assert np.isfinite(u.bx).all()


def test_one_s_own_term_is_refused():
    term = sp.Simple(prox=lambda v, t: np.maximum(v, 0.0), value=lambda x: 0.0 if (x >= 0.0).all() else math.inf)
    f = sp.Saddle(sp.Quadratic(1.0, [1.0] * 4) + term, sp.Quadratic(1.0), np.eye(4))
    with pytest.raises(sp.ProblemError, match="not implemented"):
        sp.solve(f).vjp(np.ones(4))
