"""Problems of other projects: DSP's saddle problems, quadratic programs of solvers, PEPit's worst functions."""

import math
from pathlib import Path

import numpy as np
import pytest
from reference_problems import quadratic_programs, saddle_programs, worst_cases
from reference_problems.entry import DIRECT
from reference_problems.polyhedra import game

import saddlepoint as sp

PAGE = Path(__file__).parent.parent / "docs" / "others.md"
CASES = [*saddle_programs.cases(), *quadratic_programs.cases()]
OUTSIDE = [*saddle_programs.OUTSIDE, *quadratic_programs.OUTSIDE, *worst_cases.OUTSIDE]
quiet = pytest.mark.filterwarnings("ignore")  # cvxpy and its solvers warn


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("case", CASES, ids=[f"{case.source}: {case.problem}" for case in CASES])
def test_the_answers_agree(case):
    found, value = case.ours(), case.theirs()
    assert found.solved
    assert found.value == pytest.approx(value, abs=case.tol * (1 + abs(value)))
    if case.x is not None:
        assert found.x == pytest.approx(np.asarray(case.x, float), abs=math.sqrt(case.tol) * (1 + np.abs(case.x).max()))


@pytest.mark.parametrize("name", quadratic_programs.CLARABEL_INFEASIBLE)
def test_infeasible_programs_are_refused_with_a_proof(name):
    program = quadratic_programs.CLARABEL_INFEASIBLE[name]
    with pytest.raises(sp.InfeasibleError, match="has no solution") as error:
        program.by_game()
    assert np.abs(error.value.certificate).max() > 0


def test_a_nonconvex_program_is_refused():
    with pytest.raises(sp.ProblemError):
        sp.Quadratic([[2.0, 5.0], [5.0, 1.0]])  # from test_non_convex of OSQP


@pytest.mark.slow
def test_a_negative_value_on_a_cone_that_is_cut_off_is_an_arbitrage():
    """DSP's example: a price that may move by 0.1 leaves an arbitrage, one that may move by 1 does not."""
    assert saddle_programs.arbitrage(0.1).value < -0.07
    assert saddle_programs.arbitrage(1.0).value == pytest.approx(0.0, abs=1e-8)


# -- PEPit -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worst():
    pytest.importorskip("PEPit")
    return worst_cases.worst_functions()


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("example", worst_cases.EXAMPLES, ids=lambda example: example.name)
def test_worst_functions_of_pepit_are_minimised(example, worst):
    tau, function, minimum, minimiser, start = worst[example.name]
    assert tau == pytest.approx(example.quoted, rel=1e-5)
    result = sp.solve(sp.Saddle(function, sp.Quadratic(1.0), np.zeros((start.size, 1))), start, tol=1e-8)
    assert result.solved
    assert np.linalg.norm(result.x - minimiser) <= math.sqrt(worst_cases.SDP)
    assert function(result.x) == pytest.approx(minimum, abs=worst_cases.SDP)
    assert np.linalg.norm(start - minimiser) > 0.1  # the start is not the solution already


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("rate", worst_cases.RATES, ids=lambda rate: rate.source)
def test_methods_that_are_the_same_do_as_pepit_says(rate, worst):
    ours = rate.ours()
    assert ours <= rate.quoted * (1 + 1e-4)
    if rate.attained:
        assert ours == pytest.approx(rate.quoted, rel=1e-4)


@pytest.mark.slow
@quiet
def test_the_rebuilt_functions_are_in_the_class(worst):
    """The gradient is that of the value, and every two gradients keep Lemma `smooth`."""
    random = np.random.default_rng(0)
    for _, f, _, _, start in worst.values():
        for _ in range(20):
            x, y = random.standard_normal((2, start.size))
            dx, dg = x - y, f.grad(x) - f.grad(y)
            bound = f.L * f.mu / (f.L + f.mu) * dx @ dx + dg @ dg / (f.L + f.mu)
            assert dg @ dx >= bound - 1e-7
            v = 1e-5 * y
            assert (f(x + v) - f(x - v)) / 2e-5 == pytest.approx(f.grad(x) @ y, abs=1e-5 * (1 + abs(f.grad(x) @ y)))


# -- DSP itself ------------------------------------------------------------------------------------------------------


@quiet
def test_dsp_itself_agrees():
    """The programs of DSP itself on the data of the two examples, where it is installed."""
    dsp = pytest.importorskip("dsp", reason="dsp-cvxpy is not installed; it works with CVXPY up to 1.7 only")
    cp = pytest.importorskip("cvxpy")
    model = saddle_programs.FACTORS
    n, s = model.mu.size, np.sqrt(np.diag(model.S))
    w, delta = cp.Variable(n, nonneg=True), dsp.LocalVariable(n)
    moved, change = dsp.LocalVariable((n, n), PSD=True), dsp.LocalVariable((n, n))
    utility = w @ model.mu + dsp.saddle_inner(delta, w) - dsp.saddle_quad_form(w, moved)
    inside = [cp.abs(delta) <= model.rho, moved == model.S + change, cp.abs(change) <= model.eta * np.outer(s, s)]
    problem = cp.Problem(cp.Maximize(dsp.saddle_min(utility, inside)), [cp.sum(w) == 1])
    problem.solve(solver=cp.CLARABEL)
    assert model.solve().value == pytest.approx(problem.value, abs=1e-5)

    machine = saddle_programs.CLASSIFIER
    m, n = machine.a.shape
    t, weights = cp.Variable(n), cp.Variable(m, nonneg=True)
    rows, lower, upper = machine.weights()
    loss = cp.pos(1 - cp.multiply(machine.b, machine.a @ t))
    objective = dsp.MinimizeMaximize(dsp.saddle_inner(loss, weights) + machine.eta * cp.sum_squares(t))
    problem = dsp.SaddlePointProblem(objective, [rows @ weights >= lower, rows @ weights <= upper])
    problem.solve(solver=cp.CLARABEL)
    assert machine.solve().value == pytest.approx(problem.value, abs=1e-5)

    C = np.array([[1.0, 2.0], [3.0, 1.0]])
    x, y = cp.Variable(2, nonneg=True), cp.Variable(2, nonneg=True)
    problem = dsp.SaddlePointProblem(dsp.MinimizeMaximize(dsp.inner(x, C @ y)), [cp.sum(x) == 1, cp.sum(y) == 1])
    problem.solve(solver=cp.CLARABEL)
    found = game(C, saddle_programs.simplex(2), saddle_programs.simplex(2))
    assert found.value == pytest.approx(problem.value, abs=1e-6)
    assert found.x == pytest.approx(x.value, abs=1e-5)


# -- the documentation page ------------------------------------------------------------------------------------------


def test_the_page_lists_everything():
    page = PAGE.read_text()
    for entry in (*CASES, *worst_cases.cases(), *worst_cases.RATES, *OUTSIDE):
        assert entry.source in page
    fits = [case.through for case in CASES]
    assert fits.count(DIRECT) == 4  # the rest are not smooth and strongly convex as they stand
