"""Problems with simple terms: certificates above the truth, solutions of all methods, refusals in words."""

import math
from fractions import Fraction

import numpy as np
import pytest
from known_problems import TERMS, distance, in_normal_form, known_problem

import saddlepoint as sp
from saddlepoint.methods.needs import missing
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.problems.oracle import Meter, metered
from saddlepoint.problems.transforms import rescaled
from saddlepoint.solving.target import Target
from saddlepoint.theory import certificate_from_residuals


@pytest.mark.parametrize("kind_y", TERMS)
@pytest.mark.parametrize("kind_x", TERMS)
def test_certificates_are_above_the_truth_everywhere(kind_x, kind_y):
    rng = np.random.default_rng([*kind_x.encode(), *kind_y.encode()])
    for _ in range(4):
        f, xs, ys = known_problem(kind_x, kind_y, rng)
        for size in (0.0, 1e-13, 1e-9, 1e-4, 1.0):
            x, y = f.project(xs + size * rng.standard_normal(8), ys + size * rng.standard_normal(6))
            proof, true = f.certificate(x, y), distance(x - xs, y - ys)
            assert true <= proof.distance < math.inf
            assert distance(x - xs, []) <= proof.distance_x
            assert distance([], y - ys) <= proof.distance_y
            if size == 0.0:
                assert proof.distance <= 1e-12


@pytest.mark.parametrize("weight", [0.3, 7e-7, 3e6])
@pytest.mark.parametrize("kind_y", TERMS)
def test_certificates_of_multiples_have_no_floor(kind_y, weight):
    """The gap of a multiple is a multiple of the gap; computed from rounded multiples it would be of the order eps."""
    rng = np.random.default_rng([5, *kind_y.encode()])
    for kind_x in ("l1", kind_y):
        f, xs, ys = known_problem(kind_x, kind_y, rng)
        many = sp.Saddle(weight * f.g, weight * f.h, weight * f.A.matrix())
        for size in (0.0, 1e-9, 1e-3):
            x, y = f.project(xs + size * rng.standard_normal(8), ys + size * rng.standard_normal(6))
            proof, known = many.certificate(x, y), f.certificate(x, y)
            assert distance(x - xs, y - ys) <= proof.distance
            assert proof.distance <= max(2.0 * known.distance, 2e-12)


PAIRS = [("l1", "box"), ("simplex", "simplex"), ("l1 and box", "nonnegative")]
SINGLE_LOOP = ["condat-vu", "lpd", "lpd-gs", "jst", "ogda", "extragradient", "agraal", "rapd"]
ANDERSON = ["anderson-condat-vu", "anderson-lpd-gs"]
NESTED = ["aipfb", "dppa", "dippa", "catalyst-aipfb", "catalyst-dippa", "sliding", "lpd-slide"]
WITHOUT_MU = ["pdhg", "halpern-pdhg", "preconditioned-halpern-pdhg", "proximal-anderson-condat-vu"]
EVERY = [*SINGLE_LOOP, *ANDERSON, *NESTED, *WITHOUT_MU]


@pytest.mark.slow
@pytest.mark.parametrize(("kind_x", "kind_y"), PAIRS)
@pytest.mark.parametrize("method", ["auto", *EVERY])
def test_methods_find_the_saddle_point(method, kind_x, kind_y):
    f, xs, ys = known_problem(kind_x, kind_y, np.random.default_rng(5))
    result = sp.solve(f, method=method, tol=1e-9)
    assert result.solved
    assert distance(result.x - xs, result.y - ys) <= result.certificate.distance <= 1e-9


def test_methods_refuse_simple_terms_unless_they_are_tested_here():
    f, _, _ = known_problem("l1", "box", np.random.default_rng(4))
    able = {info.name for info in sp.methods() if not missing(sp.make_method(info.name), f)}
    assert able == {*EVERY, "apfb"}  # the prox of a diagonal quadratic function with these terms is known


def test_the_prox_of_a_sum_is_known_where_it_follows():
    """Whatever happened to the function since, u = prox(v, t) solves grad f(u) + s + (u - v)/t = 0."""
    rng, t = np.random.default_rng(2), 0.3
    v, P = 4.0 * rng.standard_normal(6), rng.uniform(0.5, 4.0, 6)
    simplex = sp.Quadratic(2.0, rng.standard_normal(6)) + sp.Simplex()
    pieces = sp.Quadratic(P, rng.standard_normal(6)) + sp.L1(0.3) + sp.Box(-0.5, 0.5)
    meter = Meter()
    for g in (simplex, pieces):
        f = sp.Saddle(g, sp.Quadratic(1.0), np.eye(6))
        for phi in (g, 3.0 * g, anchored(g, 0.7, v), rescaled(f, 2.0, 1.0).problem.g, metered(f, meter).g):
            u = phi.whole_prox(v, t)
            again = phi.simple_prox(u - 0.1 * (phi.grad(u) + (u - v) / t), 0.1)
            np.testing.assert_allclose(again, u, atol=1e-12)
    assert meter.calls["prox_g"] == 2
    full = sp.Quadratic(np.diag(P)) + sp.L1(0.3)
    assert not full.has_whole_prox
    with pytest.raises(sp.ProblemError, match=r"with the simple term L1\(0.3\) is not known; give prox_of_sum="):
        sp.solve(sp.Saddle(full, sp.Quadratic(1.0), np.eye(6)), method="apfb")


@pytest.mark.parametrize("method", [sp.DIPPA("paper"), sp.AIPFB("paper"), sp.APFB()], ids=lambda method: method.label)
def test_declared_costs_with_terms_are_the_measured_ones(method):
    f, _, _, x, y = in_normal_form(method, "l1", "box")
    meter = Meter()
    counted = metered(f, meter)
    state = method.init(counted, x, y)
    before = dict(meter.calls)
    method.step(counted, state)
    spent = {name: count - before[name] for name, count in meter.calls.items()}
    assert {name: count for name, count in spent.items() if count} == {k: c for k, c in method.cost(f).items() if c}


def test_linear_solvers_of_the_coupling_step_refuse_terms():
    f, _, _ = known_problem("l1", "box", np.random.default_rng(4))
    for method in (sp.DIPPA(coupling="cg"), sp.LPDSlide(coupling="factor")):
        with pytest.raises(sp.ProblemError, match="without simple terms"):
            sp.solve(f, method=method)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_anderson_is_fast_although_coordinates_come_to_their_bounds(seed):
    """The sweep alone takes about 6900 steps. Mixed points outside the domain, and steps that were taken before a
    coordinate came to its bound, would slow Anderson down.
    """
    rng = np.random.default_rng(seed)
    m, n = 30, 40
    P, Q = (rng.permutation(np.geomspace(1.0, 300.0, k)) for k in (m, n))
    g = sp.Quadratic(P, 50.0 * rng.standard_normal(m)) + sp.NonNegative()
    h = sp.Quadratic(Q, 50.0 * rng.standard_normal(n)) + sp.Box(-0.5, 0.5)
    A = rng.standard_normal((m, n))
    f = sp.Saddle(g, h, 5.0 / np.linalg.norm(A, 2) * A)
    assert sp.solve(f, method="anderson-condat-vu", tol=1e-8, max_calls=300).solved


@pytest.mark.parametrize(
    ("p", "x", "faces"),
    [
        (sp.L1(2.0), [0.0, 1.0], [1, 0]),
        (sp.Box(-1.0, 1.0), [-1.0, 0.0, 1.0], [2, 0, 4]),
        (sp.NonNegative(), [0.0, 3.0], [2, 0]),
        (sp.L1(1.0) + sp.Box(-2.0, 2.0), [-2.0, 0.0, 2.0, 1.0], [2, 1, 4, 0]),
        (sp.Simplex(), [0.0, 1.0], [1, 0]),
        (sp.Blocks({range(2): sp.Simplex(), range(2, 4): sp.Box(0.0, 1.0)}), [0.0, 1.0, 1.0, 0.5], [1, 0, 4, 0]),
        ((sp.Quadratic(1.0) + sp.Box(-1.0, 1.0)).simple, [-1.0, 0.5], [2, 0]),
    ],
    ids=repr,
)
def test_faces_tell_kinks_and_bounds(p, x, faces):
    assert p.faces(np.array(x)).tolist() == faces
    f = sp.Saddle(sp.Quadratic(1.0) + p, sp.Quadratic(1.0), np.eye(len(x)))
    view = rescaled(f, 4.0, 1.0)
    u, _ = view.to(np.array(x), np.zeros(len(x)))
    assert view.problem.g.simple.faces(u).tolist() == faces


def test_predictions_use_relative_distances_before_they_are_proven():
    """A relative distance is proven once the distance is below |x| + |y|; turns of methods depend on it before."""
    f, xs, ys = known_problem("l1", "box", np.random.default_rng(5))
    target = Target("rtol", 1e-8)
    far = f.certificate(*f.project(xs + 10.0, ys - 10.0))
    near = f.certificate(*f.project(xs + 1e-9, ys))
    assert target.reached(far, xs, ys) == math.inf
    assert target.estimate(far, xs, ys) == pytest.approx(2.0 * far.distance / distance(xs, ys))
    assert target.estimate(near, xs, ys) == pytest.approx(target.reached(near, xs, ys))


def test_functions_that_the_caller_wrote_are_certified_from_values():
    f, xs, ys = known_problem("l1", "box", np.random.default_rng(3))
    own = sp.Simple(
        prox=lambda v, t: np.sign(v) * np.maximum(np.abs(v) - 2.0 * t, 0.0), value=lambda x: 2.0 * np.abs(x).sum()
    )
    g = f.g.replace(simple=own)
    result = sp.solve(sp.Saddle(g, f.h, f.A), tol=1e-5)
    assert result.solved
    assert distance(result.x - xs, result.y - ys) <= result.certificate.distance
    assert any("prox" in sentence for sentence in result.certificate.assumes)


def test_a_start_outside_the_domain_is_projected():
    f, xs, _ = known_problem("simplex", "box", np.random.default_rng(4))
    result = sp.solve(f, 100.0 * np.ones(8), -50.0 * np.ones(6), tol=1e-8)
    assert result.solved
    assert math.isclose(result.x.sum(), 4.0, rel_tol=1e-14)
    assert result.x.min() >= 0.0
    assert np.abs(result.x - xs).max() <= 1e-8


def test_methods_that_cannot_take_simple_terms_say_so():
    f, _, _ = known_problem("l1", "box", np.random.default_rng(4))
    with pytest.raises(
        sp.ProblemError, match=r"krylov needs .*without simple terms, but g has the simple term L1\(2\)"
    ):
        sp.solve(f, method="krylov")


def test_terms_are_added_and_kept_with_the_function():
    g = sp.Quadratic(1.0) + sp.L1(0.5)
    both = g + sp.Box(0.0, 1.0)
    assert repr(both.simple) == "L1(0.5) + Box(0, 1)"
    assert repr((sp.L1(0.5) + sp.Quadratic(1.0)).simple) == "L1(0.5)"
    assert repr((g + sp.Quadratic(2.0)).simple) == "L1(0.5)"
    tripled = 3.0 * g
    v = np.array([3.0, -0.5])
    np.testing.assert_allclose(tripled.simple_prox(v, 0.1), sp.L1(1.5).prox(v, 0.1))
    with pytest.raises(sp.ProblemError, match="function of 3 coordinates"):
        sp.Saddle(sp.Quadratic(1.0) + sp.L1([1.0, 2.0, 3.0]), sp.Quadratic(1.0), np.eye(2))


def test_a_batch_solves_problems_with_terms_one_by_one():
    problems = [known_problem("l1", "box", np.random.default_rng(seed))[0] for seed in (1, 2)]
    assert all(result.solved for result in sp.solve_many(problems, tol=1e-7))


def test_the_certificate_with_an_excess_is_the_formula():
    """distance = sqrt((1/mu_x + 1/mu_y) 2 G), where G is half the weighted squares of the residuals plus the excess."""
    proof = certificate_from_residuals(2.0, 0.5, Rx=0.3, Ry=0.1, excess=0.07)
    gap = 0.3**2 / 4.0 + 0.1**2 / 1.0 + 0.07
    assert proof.gap == pytest.approx(gap, rel=1e-12)
    assert proof.distance == pytest.approx(math.sqrt((0.5 + 2.0) * 2.0 * gap), rel=1e-12)
    assert proof.distance_x == pytest.approx(math.sqrt(2.0 * gap / 2.0), rel=1e-12)


def test_without_mu_the_gap_and_the_other_distance_are_proven():
    proof = certificate_from_residuals(0.0, 0.5, Rx=0.0, Ry=0.1, excess=0.07, diameters=(2.0, math.inf))
    gap = 0.1**2 + 0.07
    assert proof.gap == pytest.approx(gap, rel=1e-12)
    assert proof.distance_y == pytest.approx(math.sqrt(2.0 * gap / 0.5), rel=1e-12)
    assert proof.distance_x == proof.distance == math.inf
    noisy = certificate_from_residuals(0.0, 0.5, Rx=0.0, Ry=0.1, slack_x=0.01, excess=0.07, diameters=(2.0, math.inf))
    assert noisy.gap == pytest.approx(gap + 0.02, rel=1e-12)
    unbounded = certificate_from_residuals(0.0, 0.5, Rx=0.0, Ry=0.1, slack_x=0.01)
    assert unbounded.gap == math.inf


# -- without strong convexity -----------------------------------------------------------------------------------------


def test_an_exact_game_is_solved_to_a_proven_gap():
    """Both functions are simple, so that mu is 0 on both sides; the gap is the exploitability, known exactly."""
    A = np.random.default_rng(2).integers(-5, 6, (12, 9)).astype(float)
    result = sp.solve(sp.Saddle(sp.Simplex(), sp.Simplex(), A), gap=1e-7)
    assert result.solved
    assert "certified duality gap" in result.message
    x, y = ([Fraction(float(v)) for v in vector] for vector in (result.x, result.y))
    columns = [sum(a * int(b) for a, b in zip(x, column, strict=True)) / sum(x) for column in A.T]
    rows = [sum(a * int(b) for a, b in zip(y, row, strict=True)) / sum(y) for row in A]
    assert 0 <= max(columns) - min(rows) <= result.certificate.gap <= 1e-7
    assert result.certificate.distance == math.inf


def test_the_distance_of_a_strongly_convex_side_is_proven():
    """Total variation in one dimension: min_x |x - b|^2/2 + max over |y| <= 1 of <D x, y>."""
    rng = np.random.default_rng(6)
    b = np.repeat([0.0, 3.0, -1.0], 8) + 0.1 * rng.standard_normal(24)
    D = np.diff(np.eye(24), axis=0).T
    f = sp.Saddle(sp.Quadratic(1.0, -b), sp.Box(-1.0, 1.0), D)
    result = sp.solve(f, gap=1e-10)
    tight = sp.solve(f, gap=1e-17, max_calls=20_000)
    proof = result.certificate
    assert result.solved
    assert proof.distance_y == math.inf
    assert np.linalg.norm(result.x - tight.x) <= proof.distance_x + tight.certificate.distance_x
    assert proof.distance_x == pytest.approx(math.sqrt(2.0 * proof.gap), rel=1e-9)


def test_a_distance_that_nobody_can_prove_is_refused():
    f = sp.Saddle(sp.Simplex(), sp.Quadratic(1.0), np.eye(3))
    with pytest.raises(sp.ProblemError, match=r"g is not strongly convex \(mu = 0\).* ask for the duality gap"):
        sp.solve(f)
    with pytest.raises(sp.ProblemError, match=r"lpd-gs needs a positive mu of g, which is 0; use .* pdhg"):
        sp.solve(f, gap=1e-3, method="lpd-gs")
    unbounded = sp.Saddle(sp.NonNegative(), sp.Quadratic(1.0), np.eye(3))
    with pytest.raises(sp.ProblemError, match=r"its variables are not bounded.*Box"):
        sp.solve(unbounded, gap=1e-3)


def test_a_relative_distance_is_proven():
    f, xs, ys = known_problem("l1", "box", np.random.default_rng(3))
    result = sp.solve(f, rtol=1e-8)
    assert result.solved
    assert "relative distance" in result.message
    assert distance(result.x - xs, result.y - ys) <= 1e-8 * distance(xs, ys)
    assert sp.solve(f, rtol=1e-3).iterations < result.iterations  # a larger rtol ends the run earlier


def test_the_gap_of_a_strongly_convex_problem_can_be_asked_for():
    f, _, _ = known_problem("simplex", "l1", np.random.default_rng(3))
    result = sp.solve(f, gap=1e-6)
    assert result.solved
    assert result.certificate.gap <= 1e-6


def test_a_run_for_a_gap_goes_on_from_its_checkpoint(tmp_path):
    A = np.random.default_rng(2).standard_normal((12, 9))
    f, file = sp.Saddle(sp.Simplex(), sp.Simplex(), A), tmp_path / "run"
    whole = sp.solve(f, gap=1e-8)
    part = sp.solve(f, gap=1e-8, max_calls=50, checkpoint=file)
    assert not part.solved
    on = sp.solve(f, gap=1e-8, checkpoint=file)
    np.testing.assert_array_equal(on.x, whole.x)
    result = tmp_path / "result.npz"
    on.save(result)
    assert sp.load_result(result).solved


def test_a_gap_below_the_precision_ends_in_a_stall():
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), np.random.default_rng(0).standard_normal((8, 6)))
    result = sp.solve(f, gap=1e-30, max_calls=200_000)
    assert result.status == "stalled"
    assert "the precision of float64 allows no more; raise gap" in result.message
    assert result.certificate.gap <= 1e-13
    assert "certificate  gap <= " in repr(result)


@pytest.mark.parametrize("method", ["auto", "pdhg"])
def test_linear_functions_without_a_coupling_are_solved_at_a_vertex(method):
    """L, mu and |A| are all 0; the solution is a vertex."""
    f = sp.Saddle(sp.Quadratic(0.0, [2.0, 1.0]) + sp.Simplex(), sp.Box(-1.0, 1.0), np.zeros((2, 3)))
    assert sp.check(f).ok
    result = sp.solve(f, gap=1e-12, method=method)
    assert result.solved
    np.testing.assert_allclose(result.x, [0.0, 1.0], atol=1e-12)


def test_targets_that_underflow_end_in_a_sentence():
    f = sp.Saddle(sp.Quadratic(1.0, [1e-30, 2e-30]) + sp.L1(1e-31), sp.Quadratic(1.0, [1e-30, 0.0]), np.eye(2))
    for target in ({"rtol": 1e-300}, {"gap": 5e-324}):
        result = sp.solve(f, max_calls=100, **target)
        assert result.status in ("stalled", "out_of_calls", "solved")


@pytest.mark.parametrize(
    "ball", [sp.GroupBalls([0, 0, 1, 1, 2, 2], 5.0), sp.Ball(math.sqrt(75.0))], ids=["groups", "one"]
)
def test_a_point_on_a_sphere_that_nothing_pushes_outwards_is_certified_to_rounding(ball):
    """The multiplier is zero, and rounding decides on the direction of the computed one."""
    rng = np.random.default_rng(0)
    ys = np.array([3.0, 4.0, 4.0, -3.0, -5.0, 0.0])
    A = rng.integers(-3, 4, (4, 6)) / 7.0
    xs = rng.standard_normal(4)
    g, h = sp.Quadratic(3.0, -(3.0 * xs + A @ ys)), sp.Quadratic(7.0, A.T @ xs - 7.0 * ys)
    f = sp.Saddle(g, h + ball, A)
    for _ in range(20):
        x, y = f.project(xs, ys * (1.0 + 4e-16 * rng.standard_normal(6)))
        assert f.certificate(x, y).distance <= 1e-11


@pytest.mark.parametrize("kind", [*TERMS, "blocks"])
def test_moves_along_a_face_are_an_orthogonal_projection_onto_it(kind):
    """Small moves along the face keep the point on it; what is left out is orthogonal to it."""
    rng = np.random.default_rng(3)
    p = sp.Blocks({range(4): sp.Simplex(), range(5, 8): sp.L1(0.5)}) if kind == "blocks" else TERMS[kind]()
    x = p.prox(2.0 * rng.standard_normal(8), 0.7)
    moves = rng.standard_normal((3, 8))
    along = p.along_face(x, moves)
    np.testing.assert_allclose(p.along_face(x, along[1]), along[1], atol=1e-14)
    assert abs(np.vdot(along, moves - along)) <= 1e-13
    near = x + 1e-6 * along[0]
    np.testing.assert_array_equal(p.faces(near), p.faces(x))
    np.testing.assert_allclose(p.project(near), near, atol=1e-15)


def test_anderson_combines_earlier_steps_as_they_would_be_on_the_present_face():
    """Where only x has a term, a step on a smaller face is the projection of the step, so that nothing is lost."""
    method = sp.Anderson(sp.CondatVu(), window=100)
    rng = np.random.default_rng(3)
    m, n = 9, 6
    f = sp.Saddle(
        sp.Quadratic(1.0, rng.standard_normal(m)) + sp.L1(0.3), sp.Quadratic(1.0), rng.standard_normal((m, n))
    )
    state = method.init(f, 3.0 * rng.standard_normal(m), rng.standard_normal(n))
    faces = []
    for _ in range(8):
        state = method.step(f, state)
        faces.append(f.g.simple.faces(state.x).tolist())
    assert len({tuple(face) for face in faces}) > 1
    dR, dT = state.memory.changes.matrix, state.memory.outputs.matrix
    free = np.r_[np.array(faces[-1]) == 0.0, np.ones(len(dR[0]) - m, dtype=bool)]
    on_face = (dT * free - (dT - dR))[:, : m + n]
    np.testing.assert_allclose(state.memory.products, on_face @ on_face.T, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(state.memory.toward[:, 0], on_face @ state.memory.r[: m + n], rtol=1e-9, atol=1e-15)


def test_anderson_needs_few_rounds_for_costs_on_probabilities():
    """The sweep alone takes about 350 rounds; dropping the steps of earlier faces would take about 140."""
    rng = np.random.default_rng(8)
    rounds = []
    for _ in range(5):
        A = rng.standard_normal((60, 60))
        costs = [sp.Quadratic(float(np.linalg.norm(A, 2)) / 20.0) + sp.Simplex() for _ in range(2)]
        result = sp.solve(sp.Saddle(*costs, A), rtol=1e-8, method="anderson-condat-vu")
        assert result.solved
        rounds.append(result.calls["A"])
    assert sorted(rounds)[2] <= 110
