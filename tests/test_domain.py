"""A gradient that is defined in the domain of the simple term alone is never called elsewhere."""

import math

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.methods.needs import missing
from saddlepoint.methods.registry import make_method, method_names


def root_costs(n, seen):
    """A function with the second derivatives 1 + 1/(2 sqrt(x_i + 0.01)); ``seen`` gets the points of its gradients."""

    def grad(x):
        seen.append(x.copy())
        assert x.min() >= 0.0, "called outside the domain"
        return x + np.sqrt(x + 0.01) - 3.0 * np.linspace(0.0, 1.0, n)

    return sp.Smooth(grad, mu=1.0, L=6.0, domain=True)


def takes_terms(name):
    f = sp.Saddle(root_costs(5, []) + sp.Box(0.0, 1.0), sp.Quadratic(1.0), np.ones((5, 4)))
    return not missing(make_method(name), f)


METHODS = [name for name in method_names() if takes_terms(name)]
TERMS = [sp.NonNegative(), sp.Simplex(), sp.Box(0.0, 1.0)]
CASES = [*(("auto", term) for term in TERMS), *((method, TERMS[-1]) for method in METHODS)]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "term"), CASES, ids=str)
def test_no_method_and_no_examination_calls_it_outside(method, term, tmp_path):
    seen: list[np.ndarray] = []
    A = np.random.default_rng(0).standard_normal((5, 4))
    f = sp.Saddle(root_costs(5, seen) + term, sp.Quadratic(1.0), A)
    result = sp.solve(f, -np.ones(5), method=method, tol=1e-7, checkpoint=tmp_path / "run")
    assert result.solved
    assert len(seen) > 10
    assert all(term.outside(x) <= 1e-15 for x in seen)
    assert result.certificate.distance <= 1e-7


def test_certificates_and_checks_stay_inside():
    seen: list[np.ndarray] = []
    f = sp.Saddle(root_costs(3, seen) + sp.Box(0.0, 1.0), sp.Quadratic(1.0), np.eye(3))
    answer = sp.solve(f, tol=1e-9)
    proof = f.certificate(np.array([-1.0, 2.0, 0.5]), np.zeros(3))
    assert np.linalg.norm([-1.0, 2.0, 0.5] - answer.x) + np.linalg.norm(answer.y) <= proof.distance < math.inf
    assert sp.certify(f, [-1.0, 2.0, 0.5], np.zeros(3)).outside_x > 1.0
    assert sp.check(f, [-1.0, 2.0, 0.5]).ok
    assert sp.prepare(f).update(b=np.ones(3)).solve().solved
    assert sp.path(lambda t: sp.Saddle(t * root_costs(3, seen) + sp.Box(0.0, 1.0), f.h, f.A), [1.0, 2.0]).solved
    assert all(x.min() >= 0.0 for x in seen)


def test_wrong_constants_are_still_refuted_by_points_inside():
    """The steps of the method are inside, and their gradients are compared with the constants."""
    wrong = sp.Smooth(lambda x: 0.1 * x - 0.05, mu=1.0, L=2.0, domain=True) + sp.Box(0.0, 1.0)
    with pytest.raises(sp.AssumptionError, match="mu"):
        sp.solve(sp.Saddle(wrong, sp.Quadratic(1.0), np.eye(3)), np.ones(3), tol=1e-9)


def test_a_domain_without_a_term_or_without_L_is_refused():
    with pytest.raises(sp.ProblemError, match=r"g has domain=True.*but it has no simple term; add one"):
        sp.Saddle(root_costs(3, []), sp.Quadratic(1.0), np.eye(3))
    unknown = sp.Smooth(lambda x: x, mu=1.0, L=None, domain=True) + sp.NonNegative()
    with pytest.raises(sp.ProblemError, match="L of g is unknown, and cannot be estimated with domain=True"):
        sp.Saddle(unknown, sp.Quadratic(1.0), np.eye(3))
