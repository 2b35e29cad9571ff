"""Very small programs are solved by pivots in rational arithmetic, where nothing else decides them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from draws import SEED
from exact_programs import INF, Program, drawn, optimal_value

import saddlepoint as sp
from saddlepoint.apps.programs import pivoting
from saddlepoint.apps.programs.exact import Budget, Exact, TooLongError
from saddlepoint.apps.programs.pivoting import by_pivoting
from saddlepoint.apps.programs.search import ProofSearch

QP = sp.apps.QuadraticProgram


def exactly(program: Program) -> Exact:
    return Exact(QP(*program)._data)


def dot(v, w) -> Fraction:
    return sum((Fraction(float(a)) * b for a, b in zip(v, w, strict=True)), Fraction(0))


@pytest.mark.slow
def test_points_multipliers_and_rays_prove_the_exact_answer():
    kinds = set()
    for i in range(120):
        program = drawn(np.random.default_rng([SEED, i]), quadratic=i % 4 == 3)
        truth = optimal_value(program)
        if truth is None:
            continue
        exact = exactly(program)
        found = by_pivoting(exact)
        assert found.is_ray == isinstance(truth, str)
        kinds.add(truth if isinstance(truth, str) else "optimal")
        if not found.is_ray:
            assert exact.satisfied(found.x)
            assert exact.value(found.x) == truth
            assert exact.bound(found.x, found.y) <= truth
            assert exact.bound(found.x, found.y) == pytest.approx(float(truth), rel=1e-15, abs=1e-300)
            continue
        point = by_pivoting(exact, objective=False)
        assert point.is_ray == (truth == "infeasible")
        if truth == "unbounded":
            assert exact.satisfied(point.x)
            assert dot(program.q, found.x) < 0
            for row, low, high in zip(program.A, program.lower, program.upper, strict=True):
                assert low == -INF or dot(row, found.x) >= 0
                assert high == INF or dot(row, found.x) <= 0
        else:  # with an objective of zero, the bound of the ray itself is positive
            plain = exactly(program._replace(P=None, q=np.zeros_like(program.q)))
            x = [Fraction(float(v)) for v in np.clip(0.0, program.x_lower, program.x_upper)]
            assert plain.bound(x, point.y) > 0.0
    assert kinds == {"optimal", "infeasible", "unbounded"}


def test_singular_quadratic_programs_are_solved():
    """min (x + y)^2/2 - x - y - z over z <= 1: every point with x + y = 1 and z = 1 is optimal."""
    P = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    free = np.full(3, INF)
    program = Program(P, -np.ones(3), np.array([[0.0, 0.0, 1.0]]), np.array([-INF]), np.ones(1), -free, free)
    found = by_pivoting(exactly(program))
    assert exactly(program).value(found.x) == Fraction(-3, 2)
    along = by_pivoting(exactly(program._replace(upper=np.array([INF]))))
    assert along.is_ray
    assert along.x[0] + along.x[1] == 0
    assert along.x[2] > 0


def test_the_simplex_methods_cycle_of_beale_ends():
    A = np.array([[0.25, -60.0, -0.04, 9.0], [0.5, -90.0, -0.02, 3.0], [0.0, 0.0, 1.0, 0.0]])
    q = np.array([-0.75, 150.0, -0.02, 6.0])
    program = Program(None, q, A, np.full(3, -INF), np.array([0.0, 0.0, 1.0]), np.zeros(4), np.full(4, INF))
    assert exactly(program).value(by_pivoting(exactly(program)).x) == optimal_value(program)


def contradicting_by_rounding(random: np.random.Generator) -> Program:
    """Rows of which one is a tenth of another one, but for rounding, and ends that most points just violate."""
    n = int(random.integers(2, 5))
    A = np.round(random.random((2, n)) * 10.0, 2)
    A = np.vstack([A, A[0] * 0.1, 3.3 * A[1]])
    x = np.round(random.random(n), 1)
    b = A @ x
    b[2:] = b[0] * 0.1, 3.3 * b[1]
    upper = np.where(random.random(4) < 0.5, b, INF)
    return Program(None, np.round(random.standard_normal(n), 2), A, b, upper, np.zeros(n), np.full(n, 100.0))


def test_very_small_programs_are_always_decided():
    statuses = set()
    for i in range(40):
        program = contradicting_by_rounding(np.random.default_rng([SEED, i]))
        truth, solver = optimal_value(program), QP(*program)
        found = solver.solve()
        statuses.add(str(found.status))
        assert found.solved
        if isinstance(truth, str):
            assert found.status == truth
            assert solver.proves_infeasible(found.ray)
            assert not solver.proves_infeasible(np.zeros(4))
        else:
            assert found.lower <= truth <= found.upper
    assert statuses == {"optimal", "infeasible"}


def test_pivots_decide_what_the_other_ways_leave_open(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ProofSearch, "_examine", lambda *given: None)  # no proposals at all
    optimal = QP(q=[1.0, 1.0], A=[[1.0, 2.0]], lower=2.0, x_lower=0.0).solve()
    assert optimal.status == "optimal"
    assert optimal.lower == optimal.upper == 1.0
    assert optimal.x.tolist() == [0.0, 1.0]
    solver = QP(q=[-1.0, 0.0], A=[[1.0, -1.0]], upper=1.0, x_lower=0.0)
    unbounded = solver.solve()
    assert unbounded.status == "unbounded"
    assert solver.proves_unbounded(unbounded.ray)
    solver = QP(A=[[1.0, 1.0], [1.0, -1.0]], lower=[3.0, -INF], upper=[INF, 0.0], x_lower=0.0, x_upper=1.0)
    infeasible = solver.solve()
    assert infeasible.status == "infeasible"
    assert solver.proves_infeasible(infeasible.ray)


def test_programs_that_are_too_large_or_take_too_long_are_left_alone(monkeypatch: pytest.MonkeyPatch):
    n = pivoting.UNKNOWNS + 1
    assert by_pivoting(Exact(QP(q=np.ones(n), x_lower=0.0)._data)) is None
    monkeypatch.setattr(pivoting, "WORK", 0)
    program = QP(q=[1.0, 1.0], A=[[1.0, 2.0]], lower=2.0, x_lower=0.0)
    with pytest.raises(TooLongError):
        by_pivoting(Exact(program._data))
    with pytest.raises(TooLongError):
        Budget(0).spend(1, Fraction(1))
    assert program.solve().status == "optimal"
