"""Linear and quadratic programs with numbers of extreme sizes: bounds stay true."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from exact_programs import INF
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
