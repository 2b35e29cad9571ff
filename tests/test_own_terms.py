"""Simple terms that the caller wrote: solved with a proof, and examined before a run is called solved."""

import math
from contextlib import suppress

import numpy as np
import pytest
from known_problems import distance, known_problem

import saddlepoint as sp
from saddlepoint.parts.simple.prox_inequalities import ProxStep, refuted_by_steps, refuted_prox
from saddlepoint.problems.prox_check import wrong_prox


def soft(v, a):
    return np.sign(v) * np.maximum(np.abs(v) - a, 0.0)


def l1_value(x):
    return 2.0 * np.abs(x).sum()


def box_value(x):
    return 0.0 if np.abs(x).max() <= 1.0 + 1e-12 else math.inf


def with_terms(f, p=None, q=None):
    g = f.g if p is None else f.g.replace(simple=p)
    return sp.Saddle(g, f.h if q is None else f.h.replace(simple=q), f.A)


OWN_L1 = {
    "prox": lambda: sp.Simple(lambda v, t: soft(v, 2.0 * t)),
    "prox and value": lambda: sp.Simple(lambda v, t: soft(v, 2.0 * t), l1_value),
}


@pytest.mark.parametrize("own", OWN_L1)
@pytest.mark.parametrize("tol", [1e-6, 1e-11])
def test_a_problem_with_a_prox_of_the_caller_is_solved_with_a_proof(own, tol):
    f, xs, ys = known_problem("l1", "box", np.random.default_rng(3))
    box = sp.Simple(lambda v, t: np.clip(v, -1.0, 1.0), project=lambda v: np.clip(v, -1.0, 1.0))
    result = sp.solve(with_terms(f, OWN_L1[own](), box), tol=tol)
    assert result.solved
    assert distance(result.x - xs, result.y - ys) <= result.certificate.distance <= tol


def test_a_prox_of_the_caller_may_be_in_float32():
    f, xs, ys = known_problem("l1", "box", np.random.default_rng(3))
    g, h = (
        sp.Quadratic(np.float32(q.grad(np.ones(n)) - q.grad(np.zeros(n))), np.float32(q.grad(np.zeros(n))))
        for q, n in ((f.g, 8), (f.h, 6))
    )
    narrow = sp.Saddle(g + OWN_L1["prox"](), h + sp.Box(-1.0, 1.0), f.A.matrix().astype(np.float32))
    result = sp.solve(narrow, tol=1e-4)
    assert result.solved
    assert result.x.dtype == np.float32
    assert distance(result.x - xs, result.y - ys) <= result.certificate.distance <= 1e-4


def test_a_run_with_a_prox_of_the_caller_continues_from_its_checkpoint(tmp_path):
    f, _, _ = known_problem("l1", "box", np.random.default_rng(3))
    own = with_terms(f, OWN_L1["prox"]())
    whole = sp.solve(own, tol=1e-9)
    sp.solve(own, tol=1e-9, max_calls=20, checkpoint=tmp_path / "run")
    resumed = sp.solve(own, tol=1e-9, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.solved


def test_results_of_a_prox_that_differ_by_rounding_are_no_contradiction():
    """Far from a set the slopes (v - x)/t are long, and so is their product with a rounding error of x."""
    far = [ProxStep(np.array([v, 0.0]), 0.003, np.array([x, 0.0])) for v, x in ((9.0, 1.0 - 1e-15), (5.0, 1.0))]
    assert refuted_by_steps(far) is None
    wrong = [far[0]._replace(x=np.array([1.0 - 1e-6, 0.0])), far[1]]
    assert "not the prox of a convex function" in refuted_by_steps(wrong)


def test_the_value_where_the_prox_was_taken_is_compared_too():
    """All results are 0, where the value is 0 as well; but from 30 nobody goes to 0 for the sake of this value."""
    points = [np.array([30.0, -30.0]), np.array([40.0, 1.0])]
    assert "at the point where the prox was taken" in refuted_prox(sp.Simple(lambda v, t: 0.0 * v, l1_value), points)
    assert refuted_prox(OWN_L1["prox and value"](), points) is None


def test_a_projection_that_moves_results_of_the_prox_is_found():
    points = [np.array([3.0, -0.5]), np.array([0.2, 0.1])]

    def own(factor):
        return sp.Simple(lambda v, t: np.clip(v, -1.0, 1.0), project=lambda v: factor * np.clip(v, -1.0, 1.0))

    assert "project moves a result of prox by 0.0005" in refuted_prox(own(0.9995), points)
    assert refuted_prox(own(1.0), points) is None


def test_a_diameter_that_is_too_small_is_found():
    """Without strong convexity the diameter is part of the proof of a gap."""
    simplex, points = sp.Simplex(), [np.array([9.0, 0.0]), np.array([0.0, 9.0])]
    own, true = (sp.Simple(simplex.prox, project=simplex.project, diameter=d) for d in (1e-9, math.sqrt(2.0)))
    assert "expected a larger diameter" in refuted_prox(own, points)
    assert refuted_prox(true, points) is None
    with pytest.raises(sp.AssumptionError, match="expected a larger diameter"):
        sp.certify(sp.Saddle(own, simplex, np.eye(2)), [0.5, 0.5], [0.5, 0.5])


def test_arithmetic_in_float32_is_called_inexact_and_not_wrong():
    """It is the prox, and the value, of a convex function; the errors of the prox are measured."""
    p, points = OWN_L1["prox and value"](), [np.array([3.0, -0.1]), np.array([0.7, 1.3]), np.array([1e-3, 5.0])]
    narrow = sp.Simple(lambda v, t: p.prox(v.astype(np.float32), np.float32(t)).astype(np.float64))
    assert refuted_prox(narrow, points) is None
    assert 1e-8 < narrow.inexact < 1e-6
    rounded = sp.Simple(p.prox, lambda x: float(np.float32(l1_value(x))))
    assert refuted_prox(rounded, points).startswith("prox and value are too inexact for a proof")


def test_a_jump_of_a_prox_far_from_the_point_is_found():
    """Around the point the prox is the identity, as without a term; near zero it is not."""
    term = sp.Simple(lambda v, t: 0.0 * v if np.linalg.norm(v) <= 2.0 * t else v)
    found = wrong_prox(sp.Quadratic(1.0, np.zeros(2)) + term, np.array([60.0, 80.0]), np.array([0.01, 0.02]))
    assert "not the prox of a convex function" in found


def test_a_prox_that_brings_every_examined_point_to_zero_is_examined_with_shorter_steps():
    """Soft thresholding with t squared: for long steps it is always zero, which is the prox of another function."""
    term = sp.Simple(lambda v, t: soft(v, t * t))
    h = sp.Quadratic(1e-4, np.array([-3.0, 2.0])) + term
    f = sp.Saddle(sp.Quadratic(1.0, np.ones(2)), h, 1e-4 * np.eye(2))
    with pytest.raises(sp.AssumptionError, match="look at how it depends on t"):
        sp.solve(f, gap=1e-3)
    assert wrong_prox(sp.Quadratic(1.0) + sp.Simple(lambda v, t: 0.0 * v), np.zeros(2), np.ones(2)) is None


ERRORS = [1e-4, 1e-6, 1e-9]


def short_soft(error, value=None, **said):
    """A prox that is too short by a small factor, so that for each t it is the prox of another function."""
    return sp.Simple(lambda v, t: soft((1.0 - error) * v, 2.0 * t), value, **said)


@pytest.mark.parametrize("target", ["tol", "rtol", "gap"])
@pytest.mark.parametrize("error", ERRORS)
def test_errors_of_a_prox_that_were_not_said_are_estimated_and_prove_nothing(error, target):
    f, _, _ = known_problem("l1", "box", np.random.default_rng(5))
    term = short_soft(error)
    result = sp.solve(with_terms(f, term), **{target: min(1e3 * error, 0.5)})
    assert result.status == "uncertified"
    assert 0.1 * error < term.inexact < 10.0 * error
    assert result.certificate.distance == result.certificate.gap == math.inf
    assert "estimated to be" in result.message
    assert "say what it errs by at most with accuracy= of sp.Simple" in result.message
    assert any("the prox of the simple term of g seems inexact".capitalize() in s for s in result.certificate.assumes)
    assert not np.any(result.support_x)
    found = sp.certify(with_terms(f, short_soft(error)), result.x, result.y)
    assert found.certificate.distance == found.certificate.gap == math.inf


@pytest.mark.parametrize("value", [None, l1_value], ids=["prox", "prox and value"])
@pytest.mark.parametrize("target", ["tol", "gap"])
@pytest.mark.parametrize("error", ERRORS)
def test_errors_of_a_prox_that_were_said_are_part_of_the_proof(error, target, value):
    for seed in range(5):
        f, x, y = known_problem("l1", "box", np.random.default_rng(seed))
        term = short_soft(error, value, accuracy=error)
        result = sp.solve(with_terms(f, term), **{target: 1e3 * error}, max_calls=2000)
        assert result.solved or target == "gap"
        assert np.linalg.norm(result.x - x) + np.linalg.norm(result.y - y) <= result.certificate.distance < math.inf
        assert result.certificate.distance > 0.1 * error
        assert any("as stated; the duality gap is that of the exact prox" in s for s in result.certificate.assumes)


def test_a_prox_that_is_less_accurate_than_was_said_is_refused():
    f, _, _ = known_problem("l1", "box", np.random.default_rng(5))
    with pytest.raises(sp.AssumptionError, match="accuracy is 1e-08, but prox is less accurate"):
        sp.solve(with_terms(f, short_soft(1e-5, accuracy=1e-8)), tol=1e-3)
    for wrong in (-1.0, 2.0, math.nan, "much"):
        with pytest.raises(sp.ProblemError, match=r"accuracy of Simple is .*; expected a number from 0 to 1"):
            short_soft(0.0, accuracy=wrong)


def test_blocks_are_as_accurate_as_the_least_accurate_of_their_terms():
    def blocks(*accuracies):
        return sp.Blocks([(slice(i, i + 1), short_soft(0.0, accuracy=a)) for i, a in enumerate(accuracies)])

    assert blocks(1e-6, 1e-3).accuracy == 1e-3
    assert math.isnan(blocks(1e-6, None).accuracy)
    assert sp.Blocks([(slice(0, 1), short_soft(0.0, accuracy=0.5)), (slice(1, 2), sp.L1(1.0))]).accuracy == 0.5


def test_a_projection_by_iterations_is_not_called_wrong():
    """Onto a box with a bounded sum, by bisection that ends early: with its accuracy said, the run is solved."""

    def prox(v, t, enough=1e-7):
        low, high = 0.0, max(v.max(), 0.0)
        while high - low > enough * np.abs(v).max() and np.clip(v, 0.0, 1.0).sum() > 1.0:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if np.clip(v - middle, 0.0, 1.0).sum() > 1.0 else (low, middle)
        return np.clip(v - low, 0.0, 1.0)

    b = np.array([-0.9, 0.4, -0.7])

    def problem(**said):
        return sp.Saddle(sp.Quadratic(1.0, b) + sp.Simple(prox, **said), sp.Quadratic(1.0), 0.1 * np.eye(3))

    silent = sp.solve(problem(), tol=1e-3)
    assert silent.status == "uncertified"
    assert "seems inexact" in silent.message
    result = sp.solve(problem(accuracy=2e-7), tol=1e-3)
    assert result.solved
    share = (0.9 - 0.7) / 1.01  # x = (b1 - l, 0, b2 - l)/1.01 with the sum 1
    truth = np.array([0.5 + 0.5 * share, 0.0, 0.5 - 0.5 * share])
    assert 0.0 < np.linalg.norm(result.x - truth) <= result.certificate.distance
    crude = sp.Simple(lambda v, t: prox(v, t, 0.1))
    assert "prox is too inexact for a proof, or" in wrong_prox(sp.Quadratic(1.0) + crude, result.x, b)


def test_an_unsolved_run_says_that_the_prox_of_the_caller_was_not_examined():
    """Its bound is false if the prox is; before a run is called solved, the prox is examined."""
    f, _, _ = known_problem("l1", "box", np.random.default_rng(3))
    own = with_terms(f, OWN_L1["prox"]())
    stopped, solved = sp.solve(own, tol=1e-9, max_calls=5), sp.solve(own, tol=1e-9)
    assert any("were not examined" in said for said in stopped.certificate.assumes)
    assert not any("not examined" in said for said in solved.certificate.assumes)


WRONG = {
    "scaled threshold": (lambda v, t: soft(v, 4.0 * t), l1_value, "value do not belong to one convex function"),
    "half a threshold": (lambda v, t: soft(v, 1.0 * t), l1_value, "value do not belong to one convex function"),
    "without t": (lambda v, t: soft(v, 2.0), None, "look at how it depends on t"),
    "t squared": (lambda v, t: soft(v, 2.0 * t * t), None, "look at how it depends on t"),
    "hard threshold": (lambda v, t: np.where(np.abs(v) > 2.0 * t, v, 0.0), None, "not the prox of a convex function"),
    "sum instead": (lambda v, t: v + 0.1 * np.abs(v).sum(), None, "not the prox of a convex function"),
    "another set": (lambda v, t: np.clip(v, -2.0, 2.0), box_value, "value is inf at a result of prox"),
    "stretched projection": (lambda v, t: 1.5 * np.clip(v, -1.0, 1.0), None, "not the prox of a convex function"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("seed", [3, 4])
def test_a_prox_that_is_none_does_not_lead_to_solved(name, seed):
    prox, value, sentence = WRONG[name]
    f, _, _ = known_problem("l1", "box", np.random.default_rng(seed))
    problem = with_terms(f, sp.Simple(prox, value))
    report = sp.check(problem)
    assert [finding.what for finding in report.problems] == ["simple term of g"]
    assert sentence in report.problems[0].advice
    refusals = []
    with suppress(sp.AssumptionError):
        refusals.append(sp.solve(problem, tol=1e-7, max_calls=3000).solved)
    assert refusals in ([], [False])


def test_certify_examines_the_prox_too():
    prox, value, sentence = WRONG["scaled threshold"]
    f, xs, ys = known_problem("l1", "box", np.random.default_rng(3))
    with pytest.raises(sp.AssumptionError, match=sentence):
        sp.certify(with_terms(f, sp.Simple(prox, value)), xs, ys)


def test_check_has_a_line_for_every_term():
    f, _, _ = known_problem("l1", "box", np.random.default_rng(3))
    report = sp.check(with_terms(f, OWN_L1["prox and value"]()))
    assert report.ok
    lines = {finding.what: finding for finding in report.findings if finding.what.startswith("simple term")}
    assert lines["simple term of g"].found == "agrees with its values"
    assert lines["simple term of h"].given == "Box(-1, 1)"
    assert lines["simple term of h"].found == "correct by construction"


NO_POINT = {
    "prox returned an array of shape": lambda v, t: v[:-1],
    "prox returned a float": lambda v, t: 1.0,
    "prox returned a NoneType": lambda v, t: None,
    "prox returned ndarray of dtype float32; expected": lambda v, t: v.astype(np.float32),
    "prox returned ndarray of dtype int64; expected": lambda v, t: v.astype(np.int64),
    "prox returned NaN or infinity": lambda v, t: v + math.nan,
    "prox changed its argument": lambda v, t: np.clip(v + 0.0, 1.0, 2.0, out=v).copy(),
}


@pytest.mark.parametrize("sentence", NO_POINT)
def test_answers_that_are_no_points_are_refused_at_the_first_call(sentence):
    f, _, _ = known_problem("l1", "box", np.random.default_rng(3))
    problem = with_terms(f, sp.Simple(NO_POINT[sentence]))
    with pytest.raises(sp.ProblemError, match="the simple term of g: " + sentence):
        sp.solve(problem)


def test_a_projection_that_is_none_is_refused_at_the_first_call():
    f, _, _ = known_problem("l1", "box", np.random.default_rng(3))
    own = sp.Simple(lambda v, t: soft(v, 2.0 * t), project=lambda v: v[:2])
    with pytest.raises(sp.ProblemError, match=r"the simple term of g: project returned an array of shape \(2,\)"):
        sp.solve(with_terms(f, own))


@pytest.mark.parametrize("as_view", [False, True])
def test_a_prox_in_memory_that_is_used_again_is_refused_at_the_first_call(as_view):
    memory = np.zeros(200)

    def prox(v, t):
        memory[: v.size] = soft(v, 2.0 * t)
        return memory[: v.size] if as_view else memory

    n = 100 if as_view else 200
    f = sp.Saddle(sp.Quadratic(1.0, np.ones(n)) + sp.Simple(prox), sp.Quadratic(1.0), np.eye(n))
    with pytest.raises(sp.ProblemError, match="the simple term of g: prox returned the same array twice"):
        sp.solve(f)
