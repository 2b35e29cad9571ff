"""Linear and quadratic programs: intervals that hold the optimal value, and rays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from draws import SEED
from exact_programs import INF, Program, drawn, optimal_value
from program_kinds import KINDS, drawn_kind, is_true
from reference_problems import quadratic_programs
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron, vstack

import saddlepoint as sp
from saddlepoint.apps.programs import evidence, search
from saddlepoint.apps.programs.certificate import Upper, feasible_box, lower_bound
from saddlepoint.apps.programs.curvature import curvature
from saddlepoint.apps.programs.evidence import Evidence
from saddlepoint.apps.programs.exact import Exact, TooLongError
from saddlepoint.apps.programs.first_order import first_order
from saddlepoint.apps.programs.implied_bounds import implied_bounds
from saddlepoint.apps.programs.implied_equations import implied
from saddlepoint.ground.enclosure import solution_enclosure
from saddlepoint.ground.intervals import Interval, exactly, minus, plus, product, times, total

QP = sp.apps.QuadraticProgram


def assert_true(program: Program, truth: Fraction | str, found) -> None:
    """Nothing that the result says is false."""
    if truth == "infeasible":
        assert found.status in ("infeasible", "not proven")
        assert found.upper == INF
    elif truth == "unbounded":
        assert found.status in ("unbounded", "not proven")
        assert found.lower == -INF
    else:
        assert found.lower <= truth <= found.upper
        assert found.status in ("optimal", "not proven")


def compare_with_exact_values(seed: int, count: int) -> tuple[int, int]:
    """How many of the drawn programs are decided, of how many; what is said of them is compared with the truth."""
    decided = asked = 0
    for i in range(count):
        random = np.random.default_rng([seed, i])
        program = drawn(random, quadratic=i % 4 == 3)
        truth = optimal_value(program)
        if truth is None:
            continue
        asked += 1
        solver = QP(*program)
        found = solver.solve()
        assert_true(program, truth, found)
        decided += found.solved
        noise = 10.0 ** random.uniform(-12, 0)  # a point and multipliers that are not optimal are certified too
        x, y = (v + noise * random.standard_normal(v.size) for v in (found.x, found.y))
        certificate = solver.certify(x, y)
        if truth == "infeasible":
            assert certificate.upper == INF
        elif truth == "unbounded":
            assert certificate.lower == -INF
        else:
            assert certificate.lower <= truth <= certificate.upper
    return decided, asked


@pytest.mark.slow
def test_intervals_hold_the_exact_optimal_value():
    decided, asked = compare_with_exact_values(7, 12)
    assert decided >= 0.8 * asked


@pytest.mark.slow
def test_intervals_hold_the_exact_optimal_value_of_many_programs():
    decided, asked = compare_with_exact_values(SEED, 60)
    assert decided >= 0.8 * asked


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_false_is_said_of_programs_of_awkward_kinds(kind):
    decided = 0
    for i in range(8):
        random = np.random.default_rng([SEED, i])
        program, truth = drawn_kind(kind, random)
        solver = QP(*program)
        found = solver.solve()
        assert_true(program, truth, found)
        decided += found.solved
        noise = 10.0 ** random.uniform(-16, 1)
        certificate = solver.certify(*(v + noise * random.standard_normal(v.size) for v in (found.x, found.y)))
        assert is_true(truth, certificate.lower, certificate.upper)
        if found.ray is not None:
            proves = solver.proves_infeasible if found.status == "infeasible" else solver.proves_unbounded
            assert proves(found.ray)
    assert decided >= 7


# -- programs with known answers -------------------------------------------------------------------------------------


def klee_minty(n: int) -> Program:
    """The cube on which Dantzig's rule visits all corners."""
    A = np.eye(n) + 2.0 * np.tril(10.0 ** (np.arange(n)[:, None] - np.arange(n)), -1)
    upper = 100.0 ** np.arange(n)
    q = -(10.0 ** np.arange(n - 1, -1, -1))
    return Program(None, q, A, np.full(n, -INF), upper, np.zeros(n), np.full(n, INF))


BEALE = Program(
    None,
    np.array([-0.75, 150.0, -0.02, 6.0]),
    np.array([[0.25, -60.0, -0.04, 9.0], [0.5, -90.0, -0.02, 3.0], [0.0, 0.0, 1.0, 0.0]]),
    np.full(3, -INF),
    np.array([0.0, 0.0, 1.0]),
    np.zeros(4),
    np.full(4, INF),
)


def test_programs_on_which_the_simplex_method_cycles_or_takes_long_are_solved():
    for program, value in ((BEALE, -0.05), (klee_minty(3), -10000.0), (klee_minty(6), -(100.0**5))):
        found = QP(*program).solve(rtol=1e-9)
        assert found.status == "optimal"
        assert found.lower <= optimal_value(program) <= found.upper
        assert found.upper == pytest.approx(value, rel=1e-8)


NAMES = ("HS21", "HS35", "HS35MOD", "HS51", "HS52", "HS53", "HS76", "HS268")


@pytest.mark.parametrize("name", NAMES)
def test_quadratic_programs_of_hock_and_schittkowski_have_their_published_values(name):
    given = getattr(quadratic_programs, name)
    found = QP(given.P, given.q, given.A, given.lower, given.upper, given.low, given.high).solve(gap=1e-5)
    published = {
        "HS21": -99.96, "HS35": 1 / 9, "HS35MOD": 0.25, "HS51": 0.0, "HS52": 5.32664756, "HS53": 4.09302326,
        "HS76": -4.68181818, "HS268": 0.0,
    }  # fmt: skip
    assert found.status == "optimal"
    assert found.lower - 1e-7 <= published[name] - given.c <= found.upper + 1e-7


def transport(random: np.random.Generator, a: int, b: int, balanced: bool) -> Program:
    """Goods of a places brought to b places, at random costs."""
    A = csr_array(vstack([kron(eye_array(a), np.ones((1, b))), kron(np.ones((1, a)), eye_array(b))]))
    supply = random.integers(1, 100, a)
    demand = random.multinomial(supply.sum() - (0 if balanced else a), np.ones(b) / b)
    lower = np.concatenate([supply if balanced else np.full(a, -INF), demand])
    n = a * b
    return Program(None, random.random(n), A, lower, np.append(supply, demand), np.zeros(n), np.full(n, INF))


@pytest.mark.slow
@pytest.mark.parametrize("balanced", [False, True])
def test_transport_problems_are_solved(balanced):
    program = transport(np.random.default_rng(3), 6, 8, balanced)
    solver = QP(*program)
    found = solver.solve(rtol=1e-8)
    exact = optimal_value(program._replace(A=program.A.toarray()))
    assert found.status == "optimal"
    assert found.lower <= exact <= found.upper
    equal = program.lower == program.upper
    other = linprog(
        program.q, program.A[~equal] if not balanced else None, program.upper[~equal] if not balanced else None,
        program.A[equal], program.upper[equal],
    )  # fmt: skip
    y = np.zeros(equal.size)
    y[equal] = -other.eqlin.marginals
    if not balanced:
        y[~equal] = -other.ineqlin.marginals
    certificate = solver.certify(other.x, y)
    assert certificate.lower <= exact <= certificate.upper
    assert certificate.width <= 1e-10


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [(2, 2), (5, 3), (12, 20), (25, 40)])
@pytest.mark.parametrize("balanced", [False, True])
def test_transport_problems_of_several_sizes_have_the_value_of_the_simplex_method(a, b, balanced):
    program = transport(np.random.default_rng(SEED), a, b, balanced)
    found = QP(*program).solve(rtol=1e-6)
    assert found.status == "optimal", found
    equal = program.lower == program.upper
    other = linprog(
        program.q, program.A[~equal] if not balanced else None, program.upper[~equal] if not balanced else None,
        program.A[equal], program.upper[equal],
    )  # fmt: skip
    assert found.lower - 1e-9 * other.fun <= other.fun <= found.upper + 1e-9 * other.fun


@pytest.mark.slow
def test_equations_that_disagree_by_rounding_are_infeasible_and_can_be_relaxed():
    A, b = np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([0.3, 0.1 + 0.2])
    assert b[0] != b[1]
    exact = QP(q=[1.0, 2.0], A=A, lower=b, upper=b, x_lower=0.0)
    found = exact.solve()
    assert found.status == "infeasible"
    assert found.upper == INF
    assert "A point violates rows and bounds by" in found.message
    enough = float(found.message.partition("feasibility=")[2])
    assert found.violation <= enough <= 1e-14
    assert exact.solve(feasibility=enough).status == "optimal"
    relaxed = exact.solve(feasibility=1e-9)
    assert relaxed.status == "optimal"
    assert relaxed.lower <= 0.3 <= relaxed.upper + 1e-8
    assert relaxed.violation <= 1.01e-9


def test_a_violation_that_is_allowed_is_allowed_where_it_is_smaller_than_rounding():
    solver = QP(q=[1.0], A=[[1.0]], lower=-1e10, upper=3.0, x_lower=1e10, x_upper=2e10)
    relaxed, by = solver._data.relaxed(1e-9), Fraction(1e-9)
    assert Fraction(float(relaxed.lower[0])) <= -Fraction(1e10) - by
    assert Fraction(float(relaxed.x_lower[0])) <= Fraction(1e10) - by
    assert Fraction(float(relaxed.upper[0])) >= 3 + by
    assert Fraction(float(relaxed.x_upper[0])) >= Fraction(2e10) + by
    assert QP(q=[1.0], x_lower=1e10).solve(feasibility=1e-9).lower <= Fraction(1e10) - by


# -- rays ------------------------------------------------------------------------------------------------------------


def nearly_dependent(random: np.random.Generator) -> Program:
    """Equations with decimals, of which the last follows from the others up to rounding."""
    n, k = int(random.integers(2, 6)), int(random.integers(1, 3))
    A, factors = random.integers(0, 10, (k, n)) / 10.0, random.integers(1, 10, k) / random.choice([1.0, 10.0, 3.0])
    b = np.round(A @ (random.integers(0, 4, n) * (random.random(n) < 0.7)), 10)
    A, b = np.vstack([A, np.round(factors @ A, 10)]), np.append(b, np.round(factors @ b, 10))
    above = np.where(random.random(n) < 0.3, 5.0, INF)
    return Program(None, random.integers(0, 5, n).astype(float), A, b, b.copy(), np.zeros(n), above)


def test_equations_that_follow_from_others_up_to_rounding_are_decided_as_they_stand():
    """They leave equations with coefficients of 1e-16, which decide what the program is."""
    solver = QP(None, [1.0, 1.0], [[0.1, 0.2], [0.3, 0.6]], [1.0, 3.0], [1.0, 3.0], 0.0)
    found = solver.solve()
    assert found.status == "infeasible"  # 3 * 0.1 and 3 * 0.2 exceed 0.3 and 0.6, so that x = 0 and its rows are 0
    assert solver.proves_infeasible(found.ray)
    assert not solver.proves_infeasible(np.zeros(2))
    decided = 0
    for seed in range(100, 124):
        program = nearly_dependent(np.random.default_rng(seed))
        truth, solver = optimal_value(program), QP(*program)
        found = solver.solve()
        assert_true(program, truth, found)
        assert found.ray is None or solver.proves_infeasible(found.ray)
        decided += found.solved
    assert decided >= 16


def test_bounds_that_equations_imply_cut_off_no_point():
    random = np.random.default_rng(SEED)
    tightened = 0
    for _ in range(60):
        n = int(random.integers(2, 6))
        x = np.where(random.random(n) < 0.5, 0.0, random.integers(0, 4, n) / 4.0)
        A = random.integers(0, 9, (4, n)) * (random.random((4, n)) < 0.6) / 8.0
        A[3] = A[0] + 2.0 * A[1]
        b = A @ x  # without rounding
        high = np.where(random.random(n) < 0.5, x, INF)
        found = implied(QP(None, np.ones(n), A, b, b, np.zeros(n), high)._data)
        if found is not None:
            assert found.ray is None
            assert (found.data.x_lower <= x).all()
            assert (x <= found.data.x_upper).all()
            tightened += 1
    assert tightened >= 20


def test_small_bounds_beside_large_variables_are_reached():
    """Limits of 1e-4 that add up, and stocks of 1e6: proximal terms must not hold them back."""
    random, k = np.random.default_rng(0), 8
    A, c, b = np.zeros((2 * k, 4 * k)), np.zeros(4 * k), np.zeros(2 * k)
    for i in range(k):
        A[i, 4 * i : 4 * i + 3] = 1.0, 1.0, -1.0
        A[k + i, 4 * i + 3] = 1.0
        A[k + i, 4 * ((i + 1) % k) + 3] = -random.uniform(0.5, 0.9)
        A[k + i, 4 * i + 2] = -random.uniform(1.0, 3.0)
        b[k + i] = random.uniform(1e5, 1e6)
    c[2::4], c[3::4], c[0::4], c[1::4] = (
        random.uniform(1, 20, k),
        random.uniform(0, 1e-3, k),
        -random.uniform(10, 1e3, k),
        1e-5,
    )
    above = np.tile([1e-4, 1e-4, 1.0, INF], k)
    found = QP(None, c, csr_array(A), b, b, np.zeros(4 * k), above).solve(rtol=1e-9)
    expected = linprog(c, A_eq=A, b_eq=b, bounds=np.column_stack([np.zeros(4 * k), above]))
    assert found.status == "optimal"
    assert expected.fun == pytest.approx(0.5 * (found.lower + found.upper), rel=1e-7)


def test_an_infeasible_program_has_a_ray_that_proves_it():
    A = [[1.0, 1.0], [1.0, -1.0]]
    solver = QP(q=[1.0, 1.0], A=A, lower=[3.0, -INF], upper=[INF, 0.0], x_lower=0.0, x_upper=1.0)
    found = solver.solve()
    assert found.status == "infeasible"
    assert (found.lower, found.upper) == (INF, INF)
    assert solver.proves_infeasible(found.ray)
    assert not solver.proves_infeasible(-found.ray)
    assert not QP(A=[[1.0, 1.0]], lower=1.0, x_lower=0.0).proves_infeasible([-1.0])


def test_an_unbounded_program_has_a_ray_that_proves_it():
    solver = QP(P=[[1.0, -1.0], [-1.0, 1.0]], q=[-1.0, 0.5], A=[[1.0, -1.0]], lower=-1.0, upper=1.0)
    found = solver.solve()
    assert found.status == "unbounded"
    assert (found.lower, found.upper) == (-INF, -INF)
    assert solver.proves_unbounded(found.ray)
    assert not solver.proves_unbounded([1.0, 0.0])
    assert not solver.proves_unbounded([-1.0, -1.0])


def test_a_row_of_zeros_that_cannot_hold_is_infeasible():
    found = QP(q=[1.0], A=[[0.0], [1.0]], lower=[3.0, 0.0], upper=[3.0, 1.0]).solve()
    assert found.status == "infeasible"


# -- certificates of any points --------------------------------------------------------------------------------------


def test_claims_that_are_not_true_are_not_confirmed():
    solver = QP(q=[1.0, 1.0], A=[[1.0, 2.0]], lower=2.0, x_lower=0.0)  # the optimal value is 1
    outside = solver.certify([0.0, 0.9], [-0.5])
    assert outside.violation >= 0.2 * (1 - 1e-12)
    assert outside.lower <= 1.0 <= outside.upper
    better = solver.certify([0.0, 1.0], [-0.6])  # multipliers that would prove a value above 1
    assert better.lower <= 1.0 <= better.upper


@pytest.mark.slow
def test_the_first_order_method_proves_the_same():
    program = transport(np.random.default_rng(5), 5, 6, True)
    found = QP(*program).solve(method="first-order")
    assert found.status == "optimal"
    assert found.lower <= optimal_value(program._replace(A=program.A.toarray())) <= found.upper


@pytest.mark.slow
def test_free_variables_need_no_curvature():
    random = np.random.default_rng(1)
    D, t = random.standard_normal((12, 3)), random.standard_normal(12)
    # least absolute deviations: |D x - t| <= r
    A = np.block([[D, -np.eye(12)], [-D, -np.eye(12)]])
    program = Program(
        None, np.append(np.zeros(3), np.ones(12)), A, np.full(24, -INF), np.append(t, -t), np.full(15, -INF),
        np.full(15, INF),
    )  # fmt: skip
    found = QP(*program).solve(rtol=1e-9)
    assert found.status == "optimal"
    assert found.lower <= optimal_value(program) <= found.upper


def test_a_singular_matrix_without_bounds_says_what_to_do():
    D = np.random.default_rng(0).standard_normal((20, 60))
    found = QP(P=D.T @ D, q=np.ones(60), x_lower=0.0).solve()
    assert found.status == "not proven"
    assert found.lower == -INF
    assert "give bounds on x" in found.message
    assert QP(P=D.T @ D, q=np.ones(60), x_lower=0.0, x_upper=10.0).solve(gap=1e-6).status == "optimal"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "all missing"),
        ({"P": [[1.0, 2.0], [2.0, 1.0]]}, "not positive semidefinite"),
        ({"P": [[1.0, 0.0], [1.0, 1.0]]}, "not symmetric"),
        ({"P": [[-1.0]]}, "not positive semidefinite"),
        ({"P": [[0.0, 1.0], [1.0, 1.0]]}, "not positive semidefinite"),
        ({"q": [1.0], "x_lower": 2.0, "x_upper": 1.0}, "no number is between them"),
        ({"q": [1.0], "A": [[1.0, 2.0]]}, "expected some rows x 1"),
        ({"q": [1.0], "x_lower": [np.nan]}, "NaN"),
        ({"q": [1.0], "x_lower": INF}, "x_lower holds inf"),
        ({"q": 1.0}, r"q has the shape \(\); expected a vector, for one variable at least"),
        ({"A": [1.0, 2.0]}, r"A has the shape \(2,\); expected a matrix, for one variable at least"),
        ({"q": [np.inf]}, "must be finite"),
    ],
)
def test_invalid_programs_are_refused(arguments, words):
    with pytest.raises(sp.ProblemError, match=words):
        QP(**arguments)


def test_a_time_limit_replaces_the_default_limit_of_the_first_order_method(monkeypatch):
    monkeypatch.setattr(search, "SECONDS", 1e-9)
    q = np.random.default_rng(0).standard_normal(80)
    program = QP(P=np.eye(80), q=q, A=np.ones((1, 80)), upper=1.0, x_lower=-1.0, x_upper=1.0)
    assert program.solve(method="first-order").status == "not proven"
    assert program.solve(method="first-order", max_seconds=60.0).status == "optimal"


def test_rtol_is_relative_to_the_optimal_value_where_large_terms_cancel():
    """x and y are 1000 and cost 1000 and -999.999, so that the value is 1 and its terms are a million times larger."""
    random = np.random.default_rng(3)
    A = np.vstack([np.append([1.0, -1.0], np.zeros(80)), random.random((40, 82))])
    x = np.append([1000.0, 1000.0], random.random(80))
    q = np.append([1000.0, -999.999], np.zeros(80)) + A[1:].T @ random.random(40) * 1e-3
    lower = A @ x
    upper = np.append(lower[0], np.full(40, INF))
    program = QP(None, q, A, lower, upper, np.zeros(82), np.append([1000.0, 1000.0], np.full(80, INF)))
    coarse, fine = program.solve(rtol=1e-3), program.solve(rtol=1e-7)
    for found, rtol in ((coarse, 1e-3), (fine, 1e-7)):
        assert found.status == "optimal"
        assert found.width <= rtol * min(abs(found.lower), abs(found.upper))
    assert coarse.lower <= fine.upper
    assert fine.lower <= coarse.upper


def test_an_optimal_value_of_zero_is_proven():
    """There rtol is relative to a millionth of the terms that cancel."""
    random = np.random.default_rng(4)
    D = random.standard_normal((30, 70))
    t = D @ np.ones(70)
    P = np.block([[np.zeros((70, 70)), np.zeros((70, 30))], [np.zeros((30, 70)), np.eye(30)]])
    program = QP(P, np.zeros(100), np.hstack([D, -np.eye(30)]), t, t, np.append(np.zeros(70), np.full(30, -10.0)), 10.0)
    found = program.solve()
    assert found.status == "optimal"
    assert found.lower <= 0.0 <= found.upper


def test_bounds_far_beyond_the_rows_do_no_harm():
    """People write them where none is meant; the analytic centre of the bounds is far from all points that matter."""
    decided = 0
    for seed in range(10):
        random = np.random.default_rng(seed)
        m, n = int(random.integers(30, 70)), int(random.integers(35, 60))
        A, x = random.integers(-4, 5, (m, n)).astype(float), random.integers(-2, 4, n).astype(float)
        far = 10.0 ** random.integers(5, 20, (2, n))
        low = np.where(random.random(n) < 0.5, -far[0], np.minimum(x, 0.0))
        high = np.where(random.random(n) < 0.5, far[1], INF)
        y = random.integers(0, 3, m).astype(float)
        lower = np.where(y > 0.0, A @ x, A @ x - 2.0)  # with the multipliers y, x is optimal
        found = QP(None, A.T @ y, A, lower, A @ x + random.integers(0, 3, m), low, high).solve()
        assert found.lower <= (A.T @ y) @ x <= found.upper
        decided += found.solved
    assert decided == 10


def test_invalid_requests_are_refused():
    solver = QP(q=[1.0], x_lower=0.0)
    for arguments, words in (
        ({"gap": 1e-6, "rtol": 1e-6}, "one of them"),
        ({"method": "simplex"}, "expected one of"),
        ({"feasibility": -1.0}, "not negative"),
        ({"gap": 0.0}, "positive"),
    ):
        with pytest.raises(sp.ProblemError, match=words):
            solver.solve(**arguments)


@pytest.mark.slow
def test_out_of_time_is_said():
    program = transport(np.random.default_rng(5), 20, 20, True)
    found = QP(*program).solve(method="first-order", rtol=1e-14, max_seconds=1e-6)
    assert found.status == "not proven"
    assert found.lower <= found.upper


# -- the arithmetic --------------------------------------------------------------------------------------------------


def fractions(v) -> list[Fraction]:
    return [Fraction(float(a)) for a in v]


def test_interval_operations_hold_the_exact_results():
    random = np.random.default_rng(2)
    a, b = (random.standard_normal(50) * 10.0 ** random.integers(-9, 9, 50) for _ in range(2))
    for operation, exact in ((plus, lambda u, v: u + v), (minus, lambda u, v: u - v), (times, lambda u, v: u * v)):
        found = operation(exactly(a), exactly(b))
        for lo, hi, u, v in zip(found.lo, found.hi, fractions(a), fractions(b), strict=True):
            assert lo <= exact(u, v) <= hi
    low, high = total(exactly(a))
    assert low <= sum(fractions(a)) <= high
    A = random.standard_normal((7, 50))
    wide = Interval(a - 0.1, a + 0.1)
    for matrix in (A, csr_array(A)):
        inside, over = product(matrix, a), product(matrix, wide)
        for i in range(7):
            exact_row = sum(u * v for u, v in zip(fractions(A[i]), fractions(a), strict=True))
            assert inside.lo[i] <= exact_row <= inside.hi[i]
            corner = np.where(A[i] > 0, wide.hi, wide.lo)
            assert sum(u * v for u, v in zip(fractions(A[i]), fractions(corner), strict=True)) <= over.hi[i]
    free = times(exactly(np.zeros(1)), Interval(np.array([-INF]), np.array([INF])))
    assert free.lo[0] == free.hi[0] == 0.0


def test_enclosures_hold_the_exact_solution():
    from exact import solved

    random = np.random.default_rng(4)
    for n in (1, 3, 8):
        M, b = random.standard_normal((n, n)), random.standard_normal(n)
        z = solved([fractions(row) for row in M], fractions(b))
        box = solution_enclosure(M, exactly(b))
        assert all(lo <= v <= hi for lo, v, hi in zip(box.lo, z, box.hi, strict=True))
        assert (box.hi - box.lo <= 1e-10 * (1 + np.abs(box.hi))).all()
    assert solution_enclosure(np.ones((2, 2)), exactly(np.ones(2))) is None


def test_curvature_is_a_lower_bound():
    random = np.random.default_rng(6)
    for scale in (1.0, 1e6):
        D = random.standard_normal((8, 5)) * scale ** np.arange(5)
        P = D.T @ D
        d = curvature(P)
        assert np.linalg.eigvalsh((P - np.diag(d)) / np.sqrt(np.outer(P.diagonal(), P.diagonal())))[0] >= -1e-12
        assert (d > 0.0).all()
    assert (curvature(np.diag([1.0, 0.0])) == [1.0, 0.0]).all()


def test_implied_bounds_cut_off_no_point():
    random = np.random.default_rng(8)
    for _ in range(30):
        A = random.integers(-3, 4, (4, 5)).astype(float)
        x = random.integers(-3, 4, 5).astype(float)
        sides = Interval(A @ x - random.choice([0.0, 1.0, INF], 4), A @ x + random.choice([0.0, 1.0], 4))
        box = Interval(np.where(random.random(5) < 0.6, x - 1.0, -INF), np.where(random.random(5) < 0.6, x, INF))
        found = implied_bounds(csr_array(A), sides, box)
        assert (found.lo <= x).all()
        assert (x <= found.hi).all()


def test_bounds_by_rational_arithmetic_and_by_intervals_agree():
    program = transport(np.random.default_rng(9), 3, 4, True)
    data = QP(*program)._data
    found = QP(*program).solve(rtol=1e-12)
    exact = Exact(data)
    point, lower = exact.point(found.x), exact.lower(found.x, found.y)
    assert point.value == optimal_value(program._replace(A=program.A.toarray()))
    assert exact.satisfied(point.x)
    assert lower <= point.value
    assert lower == pytest.approx(float(point.value), rel=1e-12)
    assert lower_bound(data, found.x, found.y, found.upper).value <= point.value
    assert feasible_box(data, found.x).value >= point.value


def test_the_last_way_to_an_exact_point_is_tried_though_the_others_took_too_much_work(monkeypatch: pytest.MonkeyPatch):
    plain = Exact._point

    def only_the_last(self, *given):
        if len(given) < 5:  # one round
            raise TooLongError
        return plain(self, *given)

    program = QP(None, np.ones(3), [[0.1, 0.2, 0.7]], [0.5], [0.5], 0.0)
    exact = Exact(program._data)
    near = np.array([0.5, 1.0, 0.25 / 0.7])
    expected = exact.point(near)
    monkeypatch.setattr(Exact, "_point", only_the_last)
    found = exact.point(near)
    assert found is not None
    assert exact.satisfied(found.x)
    assert found.x == expected.x


# -- limits of time ----------------------------------------------------------------------------------------------------


def test_the_first_order_method_proposes_its_point_when_time_is_over() -> None:
    program = QP(None, [1.0, 2.0, -1.0], [[1.0, 1.0, 1.0]], [1.0], [1.0], np.zeros(3), np.full(3, 5.0))
    hurried, calm = (
        next(first_order(program._data, late=lambda: True)),
        next(first_order(program._data, late=lambda: False)),
    )
    assert np.abs(hurried.x - calm.x).max() > 1e-3  # one step, and two hundred
    assert calm.x == pytest.approx([0.0, 0.0, 1.0], abs=1e-2)


def test_no_exact_elimination_begins_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    add, add_exactly = Evidence.add, Evidence.add_exactly
    monkeypatch.setattr(Evidence, "add", lambda *given: (asked.append("point"), add(*given))[1])
    monkeypatch.setattr(Evidence, "add_exactly", lambda *given: (asked.append("exact"), add_exactly(*given))[1])
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 9))
    b = A @ rng.random(9)
    program = QP(None, A.T @ np.ones(4) + rng.random(9), A, b, b, np.zeros(9), np.full(9, INF))
    for method in ("first-order", "interior"):
        asked.clear()
        program.solve(method=method, rtol=1e-300, max_seconds=1e-9)
        assert asked == ["point"], method
    asked.clear()
    program.solve(method="interior", rtol=1e-300)
    assert "exact" in asked


def test_a_point_is_tried_once_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One attempt to prove that a point satisfies many equations takes seconds."""
    tried = []

    def failing(data, x, near=0.0):
        tried.append(near)
        return Upper(INF, None, "it was not tried")

    monkeypatch.setattr(evidence, "feasible_box", failing)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 9))
    program = QP(None, A.T @ np.ones(4) + rng.random(9), A, A @ rng.random(9), None, np.zeros(9), np.full(9, 5.0))
    program.solve(max_seconds=1e-9)
    assert tried == [0.0]
    tried.clear()
    program.solve(rtol=1e-300)
    assert set(tried) == {0.0, *evidence.NEAR}
