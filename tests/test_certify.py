"""``sp.certify``: the certificate of anyone's point is above the truth, and says which point it is about."""

import json
import math

import numpy as np
import pytest
from draws import SEED
from known_problems import TERMS, distance, known_problem

import saddlepoint as sp


@pytest.mark.parametrize("kind", TERMS)
def test_certified_points_are_as_near_as_they_say(kind):
    rng = np.random.default_rng([SEED, list(TERMS).index(kind)])
    for _ in range(3):
        f, xs, ys = known_problem(kind, "box", rng)
        for size in (0.0, 1e-12, 1e-7, 1e-2, 3.0):
            x, y = xs + size * rng.standard_normal(8), ys + size * rng.standard_normal(6)
            found = sp.certify(f, x, y)
            assert distance(found.x - xs, found.y - ys) <= found.distance < math.inf
            assert distance(found.x - xs, []) <= found.distance_x
            assert distance([], found.y - ys) <= found.distance_y
            assert found.gap == found.certificate.gap
            assert found.distance <= f.certificate(*f.project(x, y)).distance
            if size == 0.0:
                assert found.distance <= 1e-12


def test_a_point_outside_is_projected_and_the_distance_is_returned():
    f = sp.Saddle(sp.Quadratic(1.0) + sp.Box(0.0, 1.0), sp.Quadratic(1.0), np.eye(2))
    found = sp.certify(f, np.array([-3.0, 5.0]), np.zeros(2))
    assert found.outside_x == pytest.approx(5.0)
    assert found.outside_y == 0.0
    assert "x was 5 outside of its domain, and was projected" in repr(found)
    assert np.all((found.x >= 0.0) & (found.x <= 1.0))


BALL = sp.Ball(1.0, center=[1.0, 0.0])
SHIFTED = {
    "ball": BALL,
    "ball of another norm": sp.Ball(1.0, norm=1, center=[1.0, 0.0]),
    "block": sp.Blocks({range(0, 2): BALL}),
}


@pytest.mark.parametrize("name", SHIFTED)
def test_zero_on_the_boundary_of_a_set_around_another_point_is_inside(name):
    """The rounding of x - center is relative to the center, and x has no rounding at zero."""
    f = sp.Saddle(sp.Quadratic(1.0, [5.0, 0.0]) + SHIFTED[name], sp.Quadratic(1.0), np.zeros((2, 1)))
    found = sp.certify(f, np.zeros(2), np.zeros(1))
    assert found.outside_x == 0.0
    assert found.distance < 1e-12


def test_a_prox_step_certifies_a_function_of_the_caller_without_a_value():
    """The certificate from values cancels at 1e-8; the subgradient of a prox step does not."""
    f, xs, ys = known_problem("l1", "box", np.random.default_rng(3))

    def prox(v, t):
        return np.sign(v) * np.maximum(np.abs(v) - 2.0 * t, 0.0)

    own = sp.Saddle(f.g.replace(simple=sp.Simple(prox)), f.h, f.A)
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-12, 1e-5):
        x, y = f.project(xs + size * rng.standard_normal(8), ys + size * rng.standard_normal(6))
        assert own.certificate(x, y).distance == math.inf
        found = sp.certify(own, x, y)
        assert found.stepped
        assert "after one prox step" in repr(found)
        assert distance(found.x - xs, found.y - ys) <= found.distance <= 1e3 * size + 1e-12
    assert any("prox" in sentence for sentence in found.certificate.assumes)


def test_the_point_after_the_step_is_returned_where_its_bound_is_smaller():
    """A point that is off its kink by little is far by its values, and near after one step."""
    f, xs, ys = known_problem("l1", "box", np.random.default_rng(3))
    kink = f.certificate(xs, ys)
    off = np.where(xs == 0.0, 1e-6, xs)
    found = sp.certify(f, off, ys)
    assert found.stepped
    assert found.distance < 0.5 * f.certificate(off, ys).distance
    assert kink.distance < 1e-12
    assert not sp.certify(f, xs, ys).stepped or sp.certify(f, xs, ys).distance < kink.distance


def test_the_certificate_of_a_ready_function_does_not_rest_on_its_prox():
    """With a prox that is wrong by 1e-6, a step from the point that it leads to does not move, and proves nothing."""
    wrong = sp.L1(2.0 * (1.0 - 1e-6))

    class Inaccurate(sp.L1):
        def prox(self, v, t):
            return wrong.prox(v, t)

    f, xs, ys = known_problem("l1", "box", np.random.default_rng(2))
    led_to = sp.solve(sp.Saddle(f.g.replace(simple=wrong), f.h, f.A), tol=1e-11)
    found = sp.certify(sp.Saddle(f.g.replace(simple=Inaccurate(2.0)), f.h, f.A), led_to.x, led_to.y)
    assert 1e-8 < distance(found.x - xs, found.y - ys) <= found.distance


def test_supports_are_part_of_the_answer():
    f, xs, ys = known_problem("l1", "box", np.random.default_rng(3))
    found = sp.certify(f, xs, ys)
    assert np.all(xs[found.support_x == sp.Support.ZERO] == 0.0)
    assert np.count_nonzero(found.support_x) > 4
    plain = sp.certify(sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), np.eye(2)), [1.0, 0.0], [0.0, 0.0])
    assert plain.support_x is None
    assert plain.certificate.distance > 1.0


def test_claims_are_examined():
    wrong = sp.Smooth(lambda x: 0.5 * x - 1.0, mu=1.0, L=2.0)
    with pytest.raises(sp.AssumptionError, match="mu"):
        sp.certify(sp.Saddle(wrong, sp.Quadratic(1.0), np.eye(2)), np.ones(2), np.zeros(2))


@pytest.mark.parametrize(
    ("x", "sentence"), [([1.0], "x has 1"), (["a", "b"], "x"), ([[1.0, 2.0]], "x"), (None, "x"), ([math.nan, 0.0], "x")]
)
def test_no_vector_is_refused(x, sentence):
    f = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), np.eye(2))
    with pytest.raises(sp.ProblemError, match=sentence):
        sp.certify(f, x, [0.0, 0.0])


def test_no_problem_and_no_projection_are_refused():
    with pytest.raises(sp.ProblemError, match="expected a Saddle"):
        sp.certify(3, [1.0], [1.0])
    own = sp.Simple(prox=lambda v, t: np.maximum(v, 0.0), value=lambda x: 0.0 if x.min() >= 0.0 else math.inf)
    f = sp.Saddle(sp.Quadratic(1.0) + own, sp.Quadratic(1.0), np.eye(2))
    with pytest.raises(sp.ProblemError, match="x is not in the domain of Simple, which has no projection"):
        sp.certify(f, [-1.0, 1.0], [0.0, 0.0])


@pytest.mark.slow
def test_the_command_certifies_a_file(run):
    assert run("solve", "problem.toml", "--tol", "1e-10", "--out", "answer.npz")[0] == 0
    code, out, _ = run("certify", "problem.toml", "answer.npz", "--tol", "1e-8")
    assert code == 0
    assert "the certified distance is at most 1e-08" in out
    with np.load("answer.npz") as found:
        np.savez("moved.npz", x=found["x"] + 0.1, y=found["y"])
    code, out, _ = run("certify", "problem.toml", "moved.npz", "--json")
    found = json.loads(out)
    assert code == 1
    assert found["reached"] is False
    assert 0.1 * math.sqrt(2.0) < found["distance"] < 1.0
    assert run("certify", "problem.toml", "moved.npz", "--gap", "1.0")[0] == 0
    np.savez("half.npz", x=np.zeros(2))
    code, _, err = run("certify", "problem.toml", "half.npz")
    assert code == 2
    assert "y" in err
