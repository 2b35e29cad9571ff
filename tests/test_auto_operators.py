"""`auto` where A is an operator, or one side is small: which factorisations it begins, and which matrices it makes."""

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import saddlepoint as sp
from saddlepoint.solving import factoring
from saddlepoint.solving.auto import choose


def quadratics_with_an_operator(m, n, least=1e-4, g=None):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, n))
    quadratic, h = (sp.Quadratic(np.geomspace(least, 1.0, size), rng.standard_normal(size)) for size in (m, n))
    return sp.Saddle(g or quadratic, h, aslinearoperator(A))


@pytest.mark.parametrize("shape", [(9, 500), (500, 9), (40, 40)])
def test_a_small_operator_is_factorised_where_the_functions_are_quadratic(shape):
    """The matrix is made by as many products as the smaller side has variables."""
    f = quadratics_with_an_operator(*shape)
    assert choose(f).methods[0] == sp.Direct()
    result = sp.solve(f, rtol=1e-6)
    assert result.solved
    assert max(result.calls.values()) <= min(shape) + 4


def test_no_large_matrix_is_made_of_an_operator(monkeypatch):
    monkeypatch.setattr(factoring, "MADE", 9 * 500)
    assert choose(quadratics_with_an_operator(9, 500)).methods[0] == sp.Direct()
    assert sp.Direct() not in choose(quadratics_with_an_operator(9, 501)).methods
    curved = sp.LogCosh(t=np.ones(9), l2=1e-3)
    assert sp.Newton() in choose(quadratics_with_an_operator(9, 500, g=curved)).methods
    assert sp.Newton() not in choose(quadratics_with_an_operator(9, 501, g=curved)).methods
    many = quadratics_with_an_operator(700, 700)
    assert sp.Direct() not in choose(many).methods  # more than 600 products
    easy = quadratics_with_an_operator(60, 60, least=0.9)
    easy = sp.Saddle(easy.g, easy.h, aslinearoperator(0.01 * np.eye(60)))
    assert sp.Direct() not in choose(easy).methods  # fewer rounds than 60 are likely to suffice


@pytest.mark.parametrize("operator", [False, True])
def test_newton_is_the_first_where_a_quadratic_side_has_many_times_the_variables_of_the_other(operator):
    rng = np.random.default_rng(0)
    A = 10.0 * rng.standard_normal((12, 800))
    ready, h = sp.Huber(t=rng.standard_normal(12), l2=1e-4), sp.Quadratic(np.geomspace(1e-4, 1.0, 800))
    # A Hessian of the caller takes a time that is not known, so that the calls decide.
    g = sp.Smooth(ready.grad, mu=ready.mu, L=ready.L, hessian=ready.hessian)
    f = sp.Saddle(g, h, aslinearoperator(A) if operator else A)
    plan = choose(f)
    assert [method.label for method in plan.racing] == ["newton", "anderson-imex", "anderson-condat-vu", "dippa"]
    assert "the larger side is quadratic" in plan.message
    mirror = sp.Saddle(h, g, aslinearoperator(-A.T) if operator else -A.T)
    assert choose(mirror).methods[0] == sp.Newton()
    auto, newton = (sp.solve(f, tol=1e-6, method=method, max_calls=2000) for method in ("auto", "newton"))
    assert auto.solved
    assert max(auto.calls.values()) == max(newton.calls.values())
    near = sp.Saddle(g, sp.Quadratic(np.geomspace(1e-4, 1.0, 90)), A[:, :90])
    assert choose(near).methods[0] != sp.Newton()
