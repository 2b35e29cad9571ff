"""A simple term is never lost: wherever a function is taken apart, the term is taken over or refused in a sentence."""

import numpy as np
import pytest
from known_problems import known_problem

import saddlepoint as sp
from saddlepoint.apps.proximal import proximal_point
from saddlepoint.parts.simple.rescaled import rescaled_simple


def soft(weight):
    return sp.Simple(
        prox=lambda v, t: np.sign(v) * np.maximum(np.abs(v) - weight * t, 0.0),
        value=lambda x: weight * np.abs(x).sum(),
    )


# -- checkpoints -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "lpd-gs"])
def test_a_run_with_terms_goes_on_from_its_checkpoint(method, tmp_path):
    f, _, _ = known_problem("simplex", "box", np.random.default_rng(5))
    whole = sp.solve(f, method=method, tol=1e-9)
    for budget in (3, 20, 50):
        sp.solve(f, method=method, tol=1e-9, max_calls=budget, checkpoint=tmp_path / "run", checkpoint_every=1e9)
    resumed = sp.solve(f, method=method, tol=1e-9, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(resumed.x, whole.x)
    np.testing.assert_array_equal(resumed.y, whole.y)
    assert resumed.calls == whole.calls
    assert resumed.certificate == whole.certificate
    np.testing.assert_array_equal(resumed.support_x, whole.support_x)
    assert resumed.provenance["resumed"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("term", "other"),
    [
        (sp.L1(2.0), None),
        (None, sp.NonNegative()),
        (sp.L1(2.0), sp.L1(2.0 + 1e-6)),
        (sp.L1(1e-6), sp.L1(2e-6)),
        (sp.Box(-1e5, 1e5), sp.Box(-1e5, 2e5)),
        (sp.Box(-1e5, 1e5), None),
        (sp.Simplex(1.0), sp.Simplex(2.0)),
        (soft(1.0), soft(1.5)),
    ],
)
def test_a_checkpoint_of_another_term_is_refused(term, other, tmp_path):
    A = np.random.default_rng(0).standard_normal((4, 3))

    def problem(p):
        smooth = sp.Smooth(lambda x: 2.0 * x - 1.0, mu=2.0, L=2.0)
        return sp.Saddle(smooth if p is None else smooth + p, sp.Quadratic(1.0), A)

    file = tmp_path / "run"
    sp.solve(problem(term), method="lpd-gs", max_calls=20, checkpoint=file)
    with pytest.raises(sp.ProblemError, match="another problem: the prox of the simple term of g at a probe differs"):
        sp.solve(problem(other), method="lpd-gs", checkpoint=file)
    assert sp.solve(problem(term), method="lpd-gs", checkpoint=file).provenance["resumed"] == 1


# -- functions ---------------------------------------------------------------------------------------------------------


def test_multiples_know_for_how_many_coordinates_their_term_is():
    g = 2.0 * (sp.Quadratic(1.0) + sp.Blocks({range(9): sp.Simplex()}))
    with pytest.raises(sp.ProblemError, match="is for the coordinates 0:9, but x has 3"):
        sp.Saddle(g, sp.Quadratic(1.0), np.eye(3))
    part = rescaled_simple(sp.L1(np.arange(6.0)), 1.0, 3.0).restrict(slice(2, 4))
    np.testing.assert_allclose(part.prox(np.array([10.0, 10.0]), 0.1), sp.L1([6.0, 9.0]).prox(10.0 * np.ones(2), 0.1))


def test_a_ready_function_with_a_term_is_no_ready_function_any_more():
    g = sp.Quadratic(2.0, [1.0, 2.0]).replace(simple=sp.L1(0.5))
    assert type(g) is sp.Smooth
    assert (g.has_whole_prox, g.separable) == (False, False)
    assert g.trusted
    assert g.quadratic  # its gradient is still affine, so that nothing is assumed about exp and log
    assert not sp.Saddle(g, sp.Quadratic(1.0), np.eye(2)).assumes
    assert g(np.array([1.0, -1.0])) == sp.Quadratic(2.0, [1.0, 2.0])(np.array([1.0, -1.0])) + 1.0


@pytest.mark.parametrize("weight", [3.0, 0.25])
def test_a_multiple_of_a_function_with_a_term_has_its_support(weight):
    f, xs, _ = known_problem("l1", "box", np.random.default_rng(3))
    many = sp.solve(sp.Saddle(weight * f.g, weight * f.h, weight * f.A.matrix()), tol=1e-9)
    np.testing.assert_allclose(many.x, xs, atol=1e-9)
    one = sp.solve(f, tol=1e-9)
    np.testing.assert_array_equal(many.support_x, one.support_x)
    np.testing.assert_array_equal(many.support_y, one.support_y)
    assert f"simple term {weight:g} L1(2)" in refusal(lambda: sp.solve(sp.Saddle(weight * f.g, f.h, f.A), method="pbr"))


def test_the_support_in_a_negative_unit_exchanges_the_bounds():
    p = rescaled_simple(sp.Box(-1.0, 2.0), -2.0, 3.0)  # u -> 3 p(-2 u), so that -1 <= u <= 1/2
    u, w = np.array([-1.0, 0.5, 0.0]), np.array([5.0, -5.0, 0.0])
    assert p.support(u, w, 1e-3, 1e-3).tolist() == [sp.Support.LOWER, sp.Support.UPPER, sp.Support.OFF]


# -- uses --------------------------------------------------------------------------------------------------------------


def refusal(call):
    with pytest.raises(sp.ProblemError) as caught:
        call()
    return str(caught.value)


def test_a_path_over_the_weight_of_an_l1_norm_starts_from_the_answer_before():
    rng = np.random.default_rng(0)
    D, t, A = rng.standard_normal((20, 8)), rng.standard_normal(20), rng.standard_normal((8, 3))
    loss, h, weights = sp.LeastSquares(D, t, l2=0.1), sp.Quadratic(1.0), np.geomspace(0.5, 0.05, 4)
    family = sp.path(lambda weight: sp.Saddle(loss + sp.L1(weight), h, A), weights, tol=1e-9)
    assert family.solved
    zeros = [np.count_nonzero(result.support_x == sp.Support.ZERO) for result in family]
    assert zeros[0] > zeros[-1]
    alone = [sp.solve(sp.Saddle(loss + sp.L1(weight), h, A), tol=1e-9) for weight in weights]
    for result, single in zip(family, alone, strict=True):
        np.testing.assert_allclose(result.x, single.x, atol=2e-9)
    assert sum(family.calls[1:]) < sum(sum(single.calls.values()) for single in alone[1:])


def test_a_prepared_problem_keeps_its_terms_and_replaces_them():
    f, xs, _ = known_problem("l1", "box", np.random.default_rng(1))
    prepared = sp.prepare(f, tol=1e-9)
    np.testing.assert_allclose(prepared.solve().x, xs, atol=1e-9)
    b = np.arange(8.0)
    result = prepared.update(b=b).solve()
    expected = sp.solve(sp.Saddle(f.g + sp.Quadratic(0.0, b), f.h, f.A), tol=1e-9)
    np.testing.assert_allclose(result.x, expected.x, atol=2e-9)
    smooth = f.g.replace(simple=None)
    result = prepared.update(g=smooth + sp.NonNegative()).solve()
    assert result.x.min() >= 0.0
    assert prepared.update(g=smooth).solve().x.min() < 0.0


def test_predictions_name_methods_that_take_terms_and_no_others():
    f, _, _ = known_problem("l1", "box", np.random.default_rng(1))
    names = {row.method for row in sp.predict(f).rows}
    assert {"condat-vu", "lpd-gs", "lower bound"} <= names
    assert "krylov" not in names
    assert "krylov" in {row.method for row in sp.predict(kx=f.kappa_x, ky=f.kappa_y, coupling=f.coupling).rows}


def test_uses_that_cannot_take_a_term_say_so():
    f, _, _ = known_problem("l1", "box", np.random.default_rng(1))
    assert "needs g and h without simple terms" in refusal(lambda: sp.solve(f, storage="float32"))
    cost = sp.Quadratic(1.0) + sp.L1(0.1)
    game = refusal(lambda: sp.apps.ConstrainedGame.mixed(np.eye(2), cost))
    assert "cost_x has the simple term L1(0.1), which the cost of a game cannot have" in game
    assert "g has the simple term L1(0.1)" in refusal(lambda: proximal_point(cost, sp.Quadratic(1.0), np.eye(2)))
    stacked = np.stack([np.eye(2), np.eye(2)])
    assert "simple term" in refusal(lambda: sp.Batch(sp.Quadratic(np.ones(4)) + sp.L1(0.1), sp.Quadratic(1.0), stacked))


def test_the_value_of_coupled_costs_has_the_term():
    game = sp.apps.CoupledCosts(np.eye(2), sp.Quadratic(1.0, [1.0, 2.0]) + sp.L1(0.5), 1.0)
    x = np.array([1.0, -1.0])
    assert game.value(x, np.zeros(2)) == 1.0 - 1.0 + 1.0
