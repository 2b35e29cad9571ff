"""Problems with simple terms: certificates above the truth, methods under their bounds, refusals in words."""

import math
from fractions import Fraction

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.methods.agd import minimise
from saddlepoint.methods.needs import missing
from saddlepoint.methods.wrappers.window import STEADY
from saddlepoint.parts.functions.smooth import anchored
from saddlepoint.problems.oracle import Meter, metered
from saddlepoint.problems.transforms import rescaled
from saddlepoint.solving.target import Target
from saddlepoint.theory import certificate_from_residuals

TERMS = {
    "l1": lambda: sp.L1(2.0),
    "box": lambda: sp.Box(-1.0, 1.0),
    "nonnegative": lambda: sp.NonNegative(),
    "l1 and box": lambda: sp.L1(1.0) + sp.Box(-2.0, 2.0),
    "simplex": lambda: sp.Simplex(4.0),
}


def known_point(kind, n, rng):
    """A point of the domain with some active coordinates, and a subgradient there, both in whole numbers and halves."""
    free = rng.random(n) < 0.5
    x, s = np.zeros(n), np.zeros(n)
    if kind == "l1":
        x[free] = rng.choice([-3.0, -1.0, 0.5, 2.0], free.sum())
        s = np.where(free, 2.0 * np.sign(x), rng.choice([-2.0, -1.5, 0.0, 1.0], n))  # -2 is nearly active
    elif kind == "box":
        x = np.where(free, rng.choice([-0.5, 0.0, 0.5], n), rng.choice([-1.0, 1.0], n))
        s = np.where(free, 0.0, x * rng.choice([0.0, 0.5, 3.0], n))
    elif kind == "nonnegative":
        x = np.where(free, rng.choice([0.5, 1.0, 4.0], n), 0.0)
        s = np.where(free, 0.0, rng.choice([0.0, -0.5, -3.0], n))
    elif kind == "l1 and box":
        x = np.where(free, rng.choice([-1.0, 0.0, 1.5], n), rng.choice([-2.0, 2.0], n))
        s = np.where(
            free,
            np.where(x == 0.0, rng.choice([-1.0, 0.5], n), np.sign(x)),
            np.sign(x) * (1.0 + rng.choice([0.0, 2.0], n)),
        )
    else:
        free[:1] = True
        x[free] = 4.0 / (2.0 ** math.ceil(math.log2(free.sum())))
        x[np.flatnonzero(free)[0]] += 4.0 - x.sum()
        s = np.where(free, 1.0, rng.choice([1.0, 0.5, -2.0], n))
    return x, s


def known_problem(kind_x, kind_y, rng, m=8, n=6):
    """A problem whose data are whole numbers and halves, and its exact saddle point."""
    (x, s), (y, r) = known_point(kind_x, m, rng), known_point(kind_y, n, rng)
    A = rng.integers(-3, 4, (m, n)).astype(float)
    P, Q = rng.integers(1, 9, m).astype(float), rng.integers(1, 9, n).astype(float)
    b, c = -(P * x + A @ y + s), -(Q * y - A.T @ x + r)
    return sp.Saddle(sp.Quadratic(P, b) + TERMS[kind_x](), sp.Quadratic(Q, c) + TERMS[kind_y](), A), x, y


def distance(x, y):
    """An upper and nearly exact value of |x| + |y|, from exact sums of squares."""
    squares = [sum((Fraction(float(a)) ** 2 for a in v), Fraction(0)) for v in (x, y)]
    return sum(math.sqrt(square) for square in squares)


@pytest.mark.parametrize("kind_y", TERMS)
@pytest.mark.parametrize("kind_x", TERMS)
def test_certificates_are_above_the_truth_everywhere(kind_x, kind_y):
    rng = np.random.default_rng(abs(hash((kind_x, kind_y))) % 1000)
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


PAIRS = [("l1", "box"), ("simplex", "simplex"), ("l1 and box", "nonnegative")]
SINGLE_LOOP = ["condat-vu", "lpd", "lpd-gs", "jst", "ogda", "extragradient", "agraal", "rapd"]
ANDERSON = ["anderson-condat-vu", "anderson-lpd-gs"]
NESTED = ["aipfb", "dppa", "dippa", "catalyst-aipfb", "catalyst-dippa", "sliding", "lpd-slide"]
EVERY = [*SINGLE_LOOP, *ANDERSON, *NESTED, "pdhg", "halpern-pdhg", "preconditioned-halpern-pdhg"]
KINDS = [("l1", "box"), ("simplex", "nonnegative")]


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


@pytest.mark.parametrize(
    "method",
    [sp.CondatVu(), sp.LPD(), sp.LPDGS(), sp.JST(), sp.OGDA(), sp.Extragradient(), sp.Sliding()],
    ids=lambda method: method.label,
)
@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
def test_the_theorems_hold_at_every_step(method, kind_x, kind_y):
    """The bounds of the smooth theory hold with simple terms as they stand."""
    rng = np.random.default_rng(7)
    f, xs, ys = known_problem(kind_x, kind_y, rng)
    view = method.normal_form(f)
    problem = view.problem
    x, y = f.project(rng.standard_normal(8), rng.standard_normal(6))
    us, vs = view.to(xs, ys)

    def squared(s):
        return problem.mu_x * np.sum((s.x - us) ** 2) + problem.mu_y * np.sum((s.y - vs) ** 2)

    state = method.init(problem, *view.to(x, y))
    start = squared(state)
    for k in range(1, 200):
        state = method.step(problem, state)
        assert squared(state) <= method.bound(problem, k) * start * (1.0 + 1e-9) + 1e-24


def in_normal_form(method, kind_x, kind_y, seed=7):
    """A problem, its saddle point and a start, in the coordinates that the method wants."""
    rng = np.random.default_rng(seed)
    f, xs, ys = known_problem(kind_x, kind_y, rng)
    view = method.normal_form(f)
    x, y = f.project(rng.standard_normal(8), rng.standard_normal(6))
    return view.problem, *view.to(xs, ys), *view.to(x, y)


def squared(x, y):
    return np.sum(x**2) + np.sum(y**2)


@pytest.mark.parametrize("share", [1.0, 1e-6])
@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
def test_the_theorem_of_lpd_slide_holds_at_every_step(kind_x, kind_y, share):
    """Its inner problems are solved to the accuracy of the theorem, or far better; both have a bound that falls."""
    f, xs, ys, x, y = in_normal_form(sp.LPDSlide(), kind_x, kind_y)
    method = sp.LPDSlide(accuracy=share * theory.lpd_slide_accuracy(f.kappa_x, f.kappa_y))
    state = method.init(f, x, y)
    start = squared(x - xs, y - ys)
    for k in range(1, 60):
        state = method.step(f, state)
        assert squared(state.x - xs, state.y - ys) <= method.bound(f, k) * start + 1e-24
    assert method.bound(f, 60) < 1e-3 * method.bound(f, 1)
    exact = theory.lpd_slide_bound(f.kappa_x, f.kappa_y, 60)
    assert method.bound(f, 60) == pytest.approx(exact, rel=1e-4) if share < 1.0 else method.bound(f, 60) > exact
    assert sp.LPDSlide().bound(f, 1) is None  # nothing is promised for the default


def reflected(f, x, y):
    """The points z* and w* of DPPA and DIPPA, for the saddle point (x, y), and their step alpha."""
    alpha = theory.dppa_alpha(f.L, f.mu)
    return x + alpha * f.g.grad(x), y + alpha * f.h.grad(y), alpha


@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
def test_dppa_contracts_by_its_factor(kind_x, kind_y):
    method = sp.DPPA()
    f, xs, ys, x, y = in_normal_form(method, kind_x, kind_y)
    zs, ws, _ = reflected(f, xs, ys)
    state = method.init(f, x, y)
    for _ in range(60):
        before, state = squared(state.z - zs, state.w - ws), method.step(f, state)
        after = squared(state.z - zs, state.w - ws)
        assert after <= theory.dppa_contraction(f.L / f.mu) * before * (1.0 + 1e-6) + 1e-24


@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
@pytest.mark.parametrize("inner", ["paper", "certified"])
def test_theorem_dippa_out_holds_at_every_step(inner, kind_x, kind_y):
    method = sp.DIPPA(inner)
    f, xs, ys, x, y = in_normal_form(method, kind_x, kind_y)
    kappa, nu = f.L / f.mu, f.norm * theory.dppa_alpha(f.L, f.mu)
    state = method.init(f, x, y)
    start = squared(x - xs, y - ys)
    if inner == "certified":
        assert start <= state.C0
        start = state.C0
    for K in range(1, 4 if inner == "paper" else 40):
        state = method.step(f, state)
        assert squared(state.x - xs, state.y - ys) <= theory.dippa_bound(kappa, nu, K, start, terms=True) + 1e-24


@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
def test_adaptive_dippa_keeps_a_proven_bound_that_falls(kind_x, kind_y):
    method = sp.DIPPA()
    f, xs, ys, x, y = in_normal_form(method, kind_x, kind_y)
    zs, ws, _ = reflected(f, xs, ys)
    state = method.init(f, x, y)
    for _ in range(40):
        assert squared(state.z - zs, state.w - ws) <= state.bound + 1e-24
        before, state = state.bound, method.step(f, state)
        assert state.bound <= (1.0 - theory.dippa_rho(f.L / f.mu)) * before * (1.0 + 1e-9)


def test_the_paper_s_rule_reaches_its_accuracy_in_the_coupling_step():
    """After K2 steps of APFB with prox the residual is what Theorem `dippa-out` needs."""
    method = sp.DIPPA("paper")
    f, xs, ys, x, y = in_normal_form(method, "l1", "box")
    alpha, kappa = theory.dppa_alpha(f.L, f.mu), f.L / f.mu
    state = method.init(f, x, y)
    for k in range(1, 4):
        p, q = (
            2.0 * f.g.without_term.prox(state.z, alpha) - state.z,
            2.0 * f.h.without_term.prox(state.w, alpha) - state.w,
        )
        _, _, rx, ry = method.couple(f, p, q, state)
        level = theory.dippa_level(k, kappa, squared(x - xs, y - ys))
        assert squared(rx, ry) <= theory.dippa_residual(level, kappa)
        state = method.step(f, state)


@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
@pytest.mark.parametrize("inner", ["paper", "certified", "adaptive"])
def test_lemma_aipfb_out_holds_at_every_step(inner, kind_x, kind_y):
    method = sp.AIPFB(inner)
    f, xs, ys, x, y = in_normal_form(method, kind_x, kind_y)
    gamma, sigma, _ = theory.apfb_parameters(f.mu_x, f.mu_y, f.norm)
    A = np.array(f.A.matrix())
    state = method.init(f, x, y)
    start = f.mu_x * np.sum((x - xs) ** 2) + f.mu_y * np.sum((y - ys) ** 2)
    if inner != "paper":
        assert start <= state.C0
        start = state.C0
    for T in range(1, 8 if inner == "paper" else 60):
        last, state = state.x, method.step(f, state)
        dx, dy, step = state.x - xs, state.y - ys, state.x - last
        error = f.mu_x * np.sum(dx**2) + f.mu_y * np.sum(dy**2)
        if inner != "adaptive" and T >= 2:
            assert error <= theory.aipfb_bound(f.coupling, T, start) + 1e-24
        if inner == "adaptive":
            lyapunov = (f.mu_x / 4 + 0.5 / gamma) * np.sum(dx**2) + (0.75 * f.mu_y + 0.5 / sigma) * np.sum(dy**2)
            assert lyapunov + np.sum(step**2) / (2 * gamma) + step @ (A @ dy) <= state.bound + 1e-24


@pytest.mark.parametrize(("kind_x", "kind_y"), [("l1", "box"), ("l1 and box", "nonnegative")])
def test_theorem_apfb_holds_at_every_step(kind_x, kind_y):
    method = sp.APFB()
    f, xs, ys, x, y = in_normal_form(method, kind_x, kind_y)
    state = method.init(f, x, y)
    start = f.mu_x * np.sum((x - xs) ** 2) + f.mu_y * np.sum((y - ys) ** 2)
    for T in range(1, 300):
        state = method.step(f, state)
        error = f.mu_x * np.sum((state.x - xs) ** 2) + f.mu_y * np.sum((state.y - ys) ** 2)
        assert error <= theory.apfb_bound(f.coupling, T, start) + 1e-22


@pytest.mark.parametrize("kind", TERMS)
def test_agd_with_a_term_proves_its_gap(kind):
    rng = np.random.default_rng(11)
    x, s = known_point(kind, 8, rng)
    P = rng.integers(1, 60, 8).astype(float)
    phi = sp.Quadratic(P, -(P * x + s)) + TERMS[kind]()
    for gap in (1e-2, 1e-8):
        u = minimise(phi, 3.0 * rng.standard_normal(8), gap=gap)
        d = u - x
        assert 0.5 * d @ (P * d) + phi.simple.bregman(u, x, s) <= gap * (1.0 + 1e-6)
    with_steps = minimise(phi, x + 1.0, steps=5) - x
    value = 0.5 * with_steps @ (P * with_steps) + phi.simple.bregman(with_steps + x, x, s)
    assert value <= theory.agd_bound(phi.L, phi.mu, 5, 8.0)


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


def test_functions_of_ones_own_are_certified_from_values():
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


def test_terms_add_up_and_travel_with_the_function():
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


def test_halpern_keeps_its_bound_within_an_epoch():
    """The residual of PDHG's step in its own norm is at most |z_0 - z*|/(k + 1), for linear g and h."""
    A = np.random.default_rng(4).standard_normal((7, 5))
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), A)
    best = sp.solve(f, gap=1e-12)
    method = sp.Halpern(sp.PDHG(weight=1.0), enough=0.0, some=0.0, longest=1.0, weighting="fixed")
    tx, ty = theory.pdhg_steps(0.0, 0.0, f.norm, 1.0)

    def length(dx, dy):
        return math.sqrt(dx @ dx / tx - 2.0 * (dx @ (A @ dy)) + dy @ dy / ty)

    state = method.init(f, np.eye(7)[0], np.eye(5)[0])
    start = length(state.x - best.x, state.y - best.y)
    for k in range(300):
        z, state = state.inner, method.step(f, state)
        assert length(state.x - z.x, state.y - z.y) <= theory.halpern_bound(k) * start * (1.0 + 1e-6)
    assert state.k == 300


def test_a_gap_below_the_precision_ends_in_a_stall():
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), np.random.default_rng(0).standard_normal((8, 6)))
    result = sp.solve(f, gap=1e-30, max_calls=200_000)
    assert result.status == "stalled"
    assert "the precision of float64 allows no more; raise gap" in result.message
    assert result.certificate.gap <= 1e-13
    assert "certificate  gap <= " in repr(result)


@pytest.mark.parametrize("method", ["auto", "pdhg"])
def test_linear_functions_without_a_coupling(method):
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


def test_anderson_drops_the_steps_from_earlier_faces():
    """On each face a step is another map; once a few have ended on one face, only these are combined."""
    method = sp.Anderson(sp.CondatVu(), window=100)
    rng = np.random.default_rng(3)
    A = rng.standard_normal((20, 20))
    f = sp.Saddle(sp.Quadratic(0.5) + sp.Simplex(), sp.Quadratic(0.5) + sp.Simplex(), A)
    problem = method.normal_form(f).problem
    state = method.init(problem, *f.project(rng.standard_normal(20), rng.standard_normal(20)))
    changed, longest = False, 0
    for _ in range(60):
        before, state = state, method.step(problem, state)
        assert not len(state.memory.products) or state.memory.changes.count == len(state.memory.products) - 1
        changed |= state.memory.steady < before.memory.steady
        longest = max(longest, state.memory.steady)
        if state.memory.steady >= STEADY:
            assert state.memory.changes.count <= state.memory.steady + 1
    assert changed
    assert longest > STEADY
