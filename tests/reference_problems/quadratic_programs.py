"""Quadratic programs of Hock and Schittkowski, Maros and Meszaros, and of the tests of OSQP, SCS and Clarabel.

The optima of the Maros-Meszaros set are those of its report (I. Maros and C. Meszaros, A repository of convex quadratic
programming problems, Optim. Methods Softw. 1999); the problems of Hock and Schittkowski are defined in their book (Test
examples for nonlinear programming codes, Springer 1981), the others in CUTE's files of the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import random as sparse_random

import saddlepoint as sp
from reference_problems.entry import DIRECT, GAME, PROXIMAL, Case, Found, Outside, alone
from reference_problems.polyhedra import minimum, polyhedron
from saddlepoint.apps.proximal import proximal_point

INF = np.inf
REPORT = "optimum in the report of the set"


class Program(NamedTuple):
    """min 1/2 x'Px + q'x + c subject to low <= x <= high and lower <= A x <= upper."""

    P: np.ndarray
    q: np.ndarray
    c: float
    low: np.ndarray
    high: np.ndarray
    A: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def objective(self) -> sp.Smooth:
        """As a function of the library; the constant is left out."""
        return sp.Quadratic(self.P, self.q)

    def by_game(self, box: float = INF, tol: float = 1e-8) -> Found:
        """Through ``ConstrainedGame``, |x_i| <= box being added where x_i is not bounded below."""
        low = np.where(np.isfinite(self.low), self.low, -box)
        high = np.where(np.isfinite(self.low), self.high, np.minimum(self.high, box))
        found = minimum(self.objective(), polyhedron(low, high, self.A, self.lower, self.upper), tol)
        return found._replace(value=found.value + self.c)

    def by_multipliers(self, tol: float = 1e-9) -> Found:
        """Through ``proximal_point``: min_x max_y g(x) + <x, A'y> - b'y, for equations alone."""
        g = self.objective()
        weights = (0.0 if g.mu > 1e-9 * g.L else 1e-3 * g.L, 1e-3)
        g = sp.Quadratic(self.P, self.q, mu=g.mu if not weights[0] else 0.0)
        found = proximal_point(g, sp.Quadratic(0.0, self.upper), self.A.T, tol=tol, weights=weights, method="direct")
        return Found(found.x, found.y, g(found.x) + self.c, found.solved)

    def by_clarabel(self) -> float:
        """The optimum, by CVXPY and Clarabel."""
        import cvxpy as cp

        x = cp.Variable(self.q.size)
        constraints = [
            part
            for lower, inside, upper in ((self.low, x, self.high), (self.lower, self.A @ x, self.upper))
            for keep, part in (
                (np.isfinite(lower), inside[np.isfinite(lower)] >= lower[np.isfinite(lower)]),
                (np.isfinite(upper), inside[np.isfinite(upper)] <= upper[np.isfinite(upper)]),
            )
            if keep.any()
        ]
        problem = cp.Problem(cp.Minimize(0.5 * cp.quad_form(x, cp.psd_wrap(self.P)) + self.q @ x), constraints)
        return float(problem.solve(solver=cp.CLARABEL)) + self.c


def program(P, q=None, c=0.0, low=-INF, high=INF, A=None, lower=-INF, upper=INF) -> Program:
    """With defaults, and numbers in the place of vectors."""
    P = np.asarray(P, float)
    n = P.shape[0]
    A = np.zeros((0, n)) if A is None else np.asarray(A, float)
    full = lambda v, size: np.broadcast_to(np.asarray(v, float), size).copy()  # noqa: E731
    m = A.shape[0]
    return Program(
        np.diag(P) if P.ndim == 1 else P,
        full(0.0 if q is None else q, n),
        c,
        full(low, n),
        full(high, n),
        A,
        full(lower, m),
        full(upper, m),
    )


def squares(D, d, **rest) -> Program:
    """|D x - d|^2."""
    D, d = np.asarray(D, float), np.asarray(d, float)
    return program(2.0 * D.T @ D, -2.0 * D.T @ d, float(d @ d), **rest)


# -- Hock and Schittkowski -------------------------------------------------------------------------------------------

HS21 = program([0.02, 2.0], c=-100.0, low=[2, -50], high=50.0, A=[[10, -1]], lower=10.0)
HS35 = program([[4, 2, 2], [2, 4, 0], [2, 0, 2]], [-8, -6, -4], 9.0, low=0.0, A=[[1, 1, 2]], upper=3.0)
HS35MOD = HS35._replace(low=np.array([0, 0.5, 0]), high=np.array([INF, 0.5, INF]))
HS76 = program(
    [[2, 0, -1, 0], [0, 1, 0, 0], [-1, 0, 2, 1], [0, 0, 1, 1]], [-1, -3, 1, -1], low=0.0,
    A=[[1, 2, 1, 1], [3, 1, 2, -1], [0, 1, 4, 0]], lower=[-INF, -INF, 1.5], upper=[5, 4, INF],
)  # fmt: skip
LINKS = [[1, 3, 0, 0, 0], [0, 0, 1, 1, -2], [0, 1, 0, 0, -1]]  # of HS51, HS52 and HS53


def chain(first: float) -> list[list[float]]:
    """The rows (first x1 - x2, x2 + x3, x4, x5)."""
    return [[first, -1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]


HS51 = squares(chain(1), [0, 2, 1, 1], A=LINKS, lower=[4, 0, 0], upper=[4, 0, 0])
HS52 = squares(chain(4), [0, 2, 1, 1], A=LINKS, lower=0.0, upper=0.0)
HS53 = squares(chain(1), [0, 2, 1, 1], A=LINKS, lower=0.0, upper=0.0, low=-10.0, high=10.0)
HS268 = squares(
    [[-74, 80, 18, -11, -4], [14, -69, 21, 28, 0], [66, -72, -5, 7, 1], [-12, 66, -30, -23, 3], [3, 8, -7, -4, 1],
     [4, -12, 4, 4, 0]],
    [51, -61, -56, 69, 10, -12],
    A=[[-1, -1, -1, -1, -1], [10, 10, -3, 5, 4], [-8, 1, -2, -5, 3], [8, -1, 2, 5, -3], [-4, -2, 3, -5, 1]],
    lower=[-5, 20, -40, 11, -30],
)  # fmt: skip


def hs118() -> Program:
    """Five periods of three variables; each is close to the one before, and each period has to sum to enough."""
    steps = np.eye(15)[3:] - np.eye(15)[:-3]
    sums = np.kron(np.eye(5), np.ones(3))
    return program(
        np.tile([2e-4, 2e-4, 3e-4], 5),
        np.tile([2.3, 1.7, 2.2], 5),
        low=[8, 43, 3] + 12 * [0],
        high=[21, 57, 16] + 4 * [90, 120, 60],
        A=np.vstack([steps, sums]),
        lower=12 * [-7] + [60, 50, 70, 85, 100],
        upper=4 * [6, 7, 6] + 5 * [INF],
    )


# -- Maros and Meszaros: those given by a formula --------------------------------------------------------------------


def genhs28(n: int = 10) -> Program:
    """sum (x_i + x_{i+1})^2 subject to x_i + 2 x_{i+1} + 3 x_{i+2} = 1."""
    eye = np.eye(n)
    A = eye[:-2] + 2 * eye[1:-1] + 3 * eye[2:]
    return squares(eye[:-1] + eye[1:], np.zeros(n - 1), A=A, lower=1.0, upper=1.0)


def cvxqp(m: int, n: int = 100) -> Program:
    """sum i/2 (x_i + x_j + x_k)^2, j = 2i and k = 3i in a ring, subject to m equations of the same kind."""
    i = np.arange(1, n + 1)
    ring = lambda step: np.eye(n)[(step * i - 1) % n]  # noqa: E731 - row i picks out x_{step i}
    D = ring(1) + ring(2) + ring(3)
    A = (ring(1) + 2 * ring(4) + 3 * ring(5))[:m]
    return program(D.T @ (i[:, None] * D), low=0.1, high=10.0, A=A, lower=6.0, upper=6.0)


def liswet1(n: int) -> Program:
    """The convex sequence nearest to sqrt(t_i) + sin(i)/10."""
    t, eye = np.arange(n + 2) / (n + 1), np.eye(n + 2)
    c = np.sqrt(t) + 0.1 * np.sin(np.arange(1, n + 3))
    return program(np.ones(n + 2), -c, 0.5 * float(c @ c), A=eye[:-2] - 2 * eye[1:-1] + eye[2:], lower=0.0)


TAME = program([[1, -1], [-1, 1]], low=0.0, A=[[1, 1]], lower=1.0, upper=1.0)
ZECEVIC2 = program([0.0, 4.0], [-2, -3], low=0.0, high=10.0, A=[[1, 1], [1, 4]], upper=[2, 4])
QPTEST = program(
    [[8, 2], [2, 10]], [1.5, -2], low=0.0, high=[20, INF], A=[[2, 1], [-1, 2]], lower=[2, -INF], upper=[INF, 6]
)

# -- OSQP, SCS and Clarabel ------------------------------------------------------------------------------------------


def osqp_basic(q=(3.0, 4.0), lower=-INF, upper=(0.0, 0.0, -15.0, 100.0, 80.0)) -> Program:
    """11/2 x1^2 + q'x; the first two rows are bounds."""
    A = [[-1, -3], [2, 5], [3, 4]]
    return program([11.0, 0.0], q, low=[-upper[0], -upper[1]], high=-lower, A=A, lower=lower, upper=upper[2:])


def osqp_unconstrained() -> Program:
    """``test_polish_unconstrained``: a random diagonal of 30."""
    random = np.random.RandomState(4)
    return program(random.rand(30) + 0.2, random.randn(30))


def osqp_random() -> Program:
    """``test_polish_random``: 30 variables, 50 rows with two ends."""
    random = np.random.RandomState(6)
    D = sparse_random(30, 30, random_state=random)
    q, A = random.randn(30), random.randn(50, 30)
    return program((D.T @ D).toarray(), q, A=A, lower=-3 + random.randn(50), upper=3 + random.randn(50))


CLARABEL_QP = program([[4, 1], [1, 2]], [1, 1], low=0.0, high=0.7, A=[[1, 1]], lower=1.0, upper=1.0)
CLARABEL_EQUATIONS = program(np.ones(3), A=[[0, 1, 1], [0, 1, -1]], lower=[2, 0], upper=[2, 0])
CLARABEL_LP = program(np.zeros(3), [3, -2, 1], low=-0.5, high=0.5)
CLARABEL_FREE = program(np.ones(3), [1, 2, -3])
CLARABEL_INFEASIBLE = {
    "test_qp_primal_infeasible": program(
        [[4, 1], [1, 2]], [1, 1], low=0.0, high=0.7, A=[[1, 1], [1, 1]], lower=[1, -INF], upper=[INF, -1]
    ),
    "test_eq_constrained_primal_infeasible": program(
        np.ones(3), low=-10.0, high=10.0, A=[[0, 1, 1], [0, 1, -1], [1, 2, -1], [2, -1, 3]], lower=1.0, upper=1.0
    ),
    "test_lp_primal_infeasible": program(np.zeros(3), [3, -2, 1], low=[0.5, -0.5, -0.5], high=[-0.5, 0.5, 0.5]),
}
SCS_QUAD = program([1.2345], [-1.0], low=0.0, high=1.0)
SCS_BASIC = program([0.0], [-1.0], low=0.0, high=1.0)


# -- the list --------------------------------------------------------------------------------------------------------


def constant(value: float) -> Callable[[], float]:
    """A function that returns a known optimum."""
    return lambda: value


def cases() -> Iterator[Case]:
    """All programs of this file that the library can solve."""
    for name, problem, value, x in (
        ("HS21", HS21, -99.96, [2, 0]),
        ("HS35", HS35, 1 / 9, [4 / 3, 7 / 9, 4 / 9]),
        ("HS35MOD", HS35MOD, 0.25, None),
        ("HS53", HS53, 176 / 43, np.array([-33, 11, 27, -5, 11]) / 43),
        ("HS76", HS76, -4.681818182, np.array([3, 23, 0, 6]) / 11),
        ("HS118", hs118(), 664.82045, [8, 49, 3, 1, 56, 0, 1, 63, 6, 3, 70, 12, 5, 77, 18]),
        ("TAME", TAME, 0.0, [0.5, 0.5]),
        ("ZECEVIC2", ZECEVIC2, -4.125, [1.75, 0.25]),
        ("QPTEST", QPTEST, 4.371875, None),
        ("CVXQP1_S", cvxqp(50), 11590.718, None),
        ("CVXQP2_S", cvxqp(25), 8120.9405, None),
        ("CVXQP3_S", cvxqp(75), 11943.432, None),
    ):
        tol = 1e-7 * max(1.0, abs(value))
        run = lambda problem=problem, tol=tol: problem.by_game(tol=tol)  # noqa: E731
        yield Case(f"Maros-Meszaros {name}", shape(problem), GAME, "", run, constant(value), REPORT, x, 1e-7)
    yield Case(
        "Maros-Meszaros HS268, S268", shape(HS268), GAME, "|x_i| <= 10 added, not active",
        lambda: HS268.by_game(10.0, 1e-5), constant(0.0), "Hock and Schittkowski (the report: 5.7e-7)",
        [1, 2, -1, 3, -4],
    )  # fmt: skip
    yield Case(
        "Maros-Meszaros LISWET1", shape(liswet1(30)), GAME, "N = 30 instead of 10 000; |x_i| <= 2 added, not active",
        lambda: liswet1(30).by_game(2.0, 1e-6), liswet1(30).by_clarabel, "recomputed by Clarabel",
    )  # fmt: skip
    for name, problem, value, x in (
        ("HS51", HS51, 0.0, np.ones(5)),
        ("HS52", HS52, 1859 / 349, np.array([-33, 11, 180, -158, 11]) / 349),
        ("GENHS28", genhs28(), 0.92717369, None),
    ):
        run = lambda problem=problem: problem.by_multipliers()  # noqa: E731
        yield Case(f"Maros-Meszaros {name}", shape(problem), PROXIMAL, "", run, constant(value), REPORT, x, 1e-7)

    infinite = "-1e6 is taken for -infinity"
    for name, problem, change, x in (
        ("test_basic_QP", osqp_basic(), infinite, [0, 5]),
        ("test_update_q", osqp_basic(q=(10.0, 20.0)), infinite, [0, 5]),
        ("test_update_l", osqp_basic(lower=-50.0), "", [0, 5]),
        ("test_update_u", osqp_basic(upper=5 * (1000.0,)), infinite, None),
        ("test_update_bounds", osqp_basic(lower=-100.0, upper=5 * (1000.0,)), "", None),
    ):
        yield Case(
            f"OSQP {name}", shape(problem), GAME, change, lambda problem=problem: problem.by_game(tol=1e-6),
            problem.by_clarabel, "recomputed by Clarabel", x,
        )  # fmt: skip
    yield Case(
        "OSQP test_polish_unconstrained", shape(osqp_unconstrained()), DIRECT, "",
        lambda: alone(osqp_unconstrained().objective(), np.zeros(30)), lambda: -0.5 * osqp_closed()[1], "closed form",
        osqp_closed()[0],
    )  # fmt: skip
    yield Case(
        "OSQP test_polish_random", shape(osqp_random()), GAME, "|x_i| <= 10 added, not active",
        lambda: osqp_random().by_game(10.0, 1e-6), osqp_random().by_clarabel, "recomputed by Clarabel",
    )  # fmt: skip
    for name, problem, value, x in (
        ("Clarabel test_qp_feasible", CLARABEL_QP, 1.88, [0.3, 0.7]),
        ("Clarabel test_lp_feasible", CLARABEL_LP, -3.0, [-0.5, 0.5, -0.5]),
        ("SCS test_scs_quad", SCS_QUAD, -0.5 / 1.2345, [1 / 1.2345]),
        ("SCS test_problems, linear cone", SCS_BASIC, -1.0, [1.0]),
    ):
        run = lambda problem=problem: problem.by_game()  # noqa: E731
        origin = "closed form" if name == "SCS test_scs_quad" else "asserted there"
        yield Case(name, shape(problem), GAME, "", run, constant(value), origin, x)
    yield Case(
        "Clarabel test_unconstrained_feasible", shape(CLARABEL_FREE), DIRECT, "",
        lambda: alone(CLARABEL_FREE.objective(), np.zeros(3)), constant(-7.0), "asserted there", [-1, -2, 3],
    )  # fmt: skip
    yield Case(
        "Clarabel test_eq_constrained_feasible", shape(CLARABEL_EQUATIONS), PROXIMAL, "",
        CLARABEL_EQUATIONS.by_multipliers, constant(1.0), "asserted there", [0, 1, 1],
    )  # fmt: skip


def osqp_closed() -> tuple[np.ndarray, float]:
    """x and q'P^-1 q of ``test_polish_unconstrained``."""
    problem = osqp_unconstrained()
    x = -problem.q / np.diag(problem.P)
    return x, float(-problem.q @ x)


def shape(problem: Program) -> str:
    """Size, curvature and kinds of constraints of a program, in words."""
    m, n = problem.A.shape
    rank = np.linalg.matrix_rank(problem.P)
    curved = "strongly convex" if rank == n else f"rank {rank}" if rank else "linear"
    equations = int((problem.lower == problem.upper).sum())
    parts = [f"variables: {n}", curved]
    if equations:
        parts.append(f"equations: {equations}")
    if m - equations:
        parts.append(f"inequalities: {m - equations}")
    if np.isfinite(problem.low).any() or np.isfinite(problem.high).any():
        parts.append("bounds")
    return ", ".join(parts)


OUTSIDE = (
    Outside(
        "Maros-Meszaros, the other 120",
        "convex quadratic programs",
        "not tried: they are given by data files, which are not here, or by formulas at sizes of 10 000 and more, "
        "beyond what the Newton steps of `ConstrainedGame` factorise; LISWET1 is slow from N = 100 on",
    ),
    Outside(
        "Clarabel, OSQP: dual infeasible ones",
        "unbounded below",
        "there is no saddle point; `ConstrainedGame` proves nothing on unbounded sets, and has no certificate of it",
    ),
    Outside("OSQP test_non_convex", "P not positive semidefinite", "not convex; `Quadratic` refuses such a P"),
    Outside(
        "SCS, Clarabel: second-order, exponential, power and semidefinite cones",
        "conic programs",
        "not polyhedra: there is no app for other cones",
    ),
)
