"""Simple terms of x where A and x are in shards: the same answers, proofs and supports as in one process."""

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.parts.sharded import LocalEngine, ShardedCoupling

M, N = 60, 12
RNG = np.random.default_rng(7)
A = RNG.standard_normal((M, N)) / 3.0
B, C, D = RNG.standard_normal(M), RNG.standard_normal(N), np.linspace(1.0, 4.0, M)
TERMS = {
    "l1": lambda: sp.L1(np.linspace(0.0, 1.0, M)),
    "box": lambda: sp.Box(-0.1, np.linspace(0.05, 0.5, M)),
    "nonnegative l1": lambda: sp.L1(0.2) + sp.NonNegative(),
    "blocks": lambda: sp.Blocks([((0, 25), sp.L1(0.3)), ((40, None), sp.Ball(0.2, "inf"))]),
    "own": lambda: sp.Simple(
        lambda v, t: np.sign(v) * np.maximum(np.abs(v) - 0.3 * t, 0.0), lambda x: 0.3 * np.abs(x).sum(), separable=True
    ),
}


def problem(term, coupling, q=None):
    h = sp.Quadratic(1.0, C)
    return sp.Saddle(sp.Quadratic(D, B) + term, h if q is None else h + q, coupling)


def in_shards(term, q=None, shards=4):
    return problem(term, ShardedCoupling(LocalEngine(A, shards)), q)


@pytest.mark.parametrize(
    "kind", [kind if kind == "box" else pytest.param(kind, marks=pytest.mark.slow) for kind in TERMS]
)
def test_answers_proofs_and_supports_are_those_of_one_process(kind):
    term = TERMS[kind]()
    known, found = sp.solve(problem(term, A, sp.Simplex()), tol=1e-9), sp.solve(in_shards(term, sp.Simplex()), tol=1e-7)
    assert found.solved
    assert np.linalg.norm(found.x - known.x) + np.linalg.norm(found.y - known.y) <= 1e-7 + 1e-9
    decided = found.support_x != sp.Support.UNDECIDED
    assert kind == "own" or decided.any()
    agree = found.support_x == known.support_x
    assert agree[decided & (known.support_x != sp.Support.UNDECIDED)].all()


@pytest.mark.parametrize("kind", TERMS)
def test_certificates_are_those_of_one_process(kind):
    """The sums are taken in another order, so that they differ by rounding."""
    f, sharded = problem(TERMS[kind](), A), in_shards(TERMS[kind]())
    for size in (0.0, 1e-3, 1.0):
        x, y = f.project(size * np.linspace(-1.0, 1.0, M), size * np.ones(N))
        known, found = f.certificate(x, y), sharded.certificate(x, y)
        assert found.distance == pytest.approx(known.distance, rel=1e-9)
        assert found.gap == pytest.approx(known.gap, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["condat-vu", "lpd", "lpd-gs", "ogda", "anderson-condat-vu"])
def test_methods_take_terms_in_shards(name):
    known = sp.solve(problem(TERMS["box"](), A), tol=1e-9)
    found = sp.solve(in_shards(TERMS["box"]()), method=name, tol=1e-6)
    assert found.solved
    assert np.linalg.norm(found.x - known.x) <= 1e-6 + 1e-9


def test_terms_that_are_no_sums_over_coordinates_are_refused():
    with pytest.raises(sp.ProblemError, match=r"Simplex\(\) is not a sum over coordinates, .* in shards"):
        in_shards(sp.Simplex())
