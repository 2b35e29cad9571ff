"""Linear and quadratic programs with numbers of extreme sizes: bounds stay true, and nothing ends in an error."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from draws import SEED
from exact_programs import INF, Program, optimal_value
from program_kinds import is_true
from scipy.sparse import csr_array

import saddlepoint as sp
from saddlepoint.apps.programs.certificate import lower_bound
from saddlepoint.apps.programs.curvature import curvature

QP = sp.apps.QuadraticProgram


def test_bounds_hold_where_twice_the_curvature_overflows():
    program = QP(P=[[1e308]], q=[1e153])
    truth = -(Fraction(1e153) ** 2) / (2 * Fraction(1e308))  # about -0.005
    assert program.certify([0.0]).lower <= truth <= program.certify([0.0]).upper
    found = program.solve(gap=1e-6)
    assert found.lower <= truth <= found.upper


def test_bounds_hold_where_half_of_a_negative_curvature_underflows():
    data = QP(P=[[1.0]], q=[0.0], x_lower=-1e150, x_upper=1e150)._data
    data.__dict__["curvature"] = np.array([-5e-324])  # d/2 t^2 is about -2.5e-24 at the bounds
    assert lower_bound(data, np.zeros(1), np.zeros(0)).value <= Fraction(-5e-324) / 2 * Fraction(1e150) ** 2


def test_a_matrix_whose_small_entries_underflow_when_it_is_scaled_is_not_taken_for_semidefinite():
    P = np.zeros((3, 3))
    P[0, 0], P[1:, 1:], P[0, 1] = 2.0**1000, 2.0**-1000, 2.0**-600
    P[1, 0] = P[0, 1]  # along (s, t, -t) the form is P_00 s^2 + 2 P_01 s t, which is negative for some s
    assert not (curvature(P) >= 0.0).all()
    assert QP(P=P, q=np.zeros(3)).certify(np.zeros(3)).lower == -INF
    P[0, 1] = P[1, 0] = 0.0
    assert (curvature(P) >= 0.0).all()


def extreme(random: np.random.Generator) -> Program:
    """A program with up to three rows and variables, whose numbers may have any size that float64 has."""
    n, m = int(random.integers(1, 4)), int(random.integers(1, 4))
    top = int(random.choice([20, 100, 160, 308, 322]))

    def numbers(*shape: int) -> np.ndarray:
        plain = random.integers(-4, 5, shape).astype(float)
        if random.random() < 0.4:
            return plain
        with np.errstate(all="ignore"):
            sizes = 10.0 ** np.minimum(random.integers(-top, top + 1, shape), 307)
            return plain * sizes

    b = numbers(m)
    lower, upper = (np.where(random.random(m) < 0.6, b, end) for end in (-INF, INF))
    x_lower, x_upper = (np.where(random.random(n) < 0.4, s * abs(numbers(n)), s * INF) for s in (-1.0, 1.0))
    diagonal = np.minimum(abs(numbers(n)), 1e308)
    P = np.diag(diagonal) if random.random() < 0.4 and diagonal.all() else None
    return Program(P, numbers(n), numbers(m, n), lower, upper, x_lower, x_upper)


@pytest.mark.slow
def test_intervals_hold_the_exact_optimal_value_whatever_the_sizes_of_the_numbers():
    compared = decided = 0
    for i in range(150):
        random = np.random.default_rng([SEED, i])
        program = extreme(random)
        truth = optimal_value(program)
        if truth is None:
            continue
        solver = QP(*program)
        found = solver.solve()
        if isinstance(truth, str):
            assert found.status in (truth, "not proven")
        else:
            assert found.status in ("optimal", "not proven")
            assert is_true(truth, found.lower, found.upper)
        compared, decided = compared + 1, decided + found.solved
        sizes = random.choice([0.0, 1.0, 1e-300, 1e-160, 1e160], 2)
        x, y = sizes[0] * random.standard_normal(found.x.size), sizes[1] * random.standard_normal(found.y.size)
        for point, multipliers in ((x, y), (np.clip(x + found.x, program.x_lower, program.x_upper), y + found.y)):
            if np.isfinite(point).all() and np.isfinite(multipliers).all():
                certificate = solver.certify(point, multipliers)
                assert is_true(truth, certificate.lower, certificate.upper)
            if np.isfinite(multipliers).all():
                assert truth == "infeasible" or not solver.proves_infeasible(multipliers)
    assert compared >= 100
    assert decided >= 0.8 * compared


def test_integers_that_float64_would_round_are_refused():
    for arguments in (
        {"q": [2**53 + 1]},
        {"A": np.array([[2**53 + 1]])},
        {"A": csr_array(np.array([[2**53 + 1]]))},
        {"P": np.array([[2**60 + 1]])},
        {"q": [1.0], "x_upper": [2**63 - 1]},
    ):
        with pytest.raises(sp.ProblemError, match="which float64 rounds to"):
            QP(**arguments)
    found = QP(q=np.array([2**60]), x_lower=1, x_upper=1).solve()
    assert found.lower <= 2**60 <= found.upper
