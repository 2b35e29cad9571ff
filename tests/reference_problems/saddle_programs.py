"""The saddle problems of DSP's own examples and tests.

P. Schiele, E. Luxenberg and S. Boyd, Disciplined saddle programming, TMLR 2024; the names are those of the tests of
dsp-cvxpy 0.4.2. Two of its examples read data that are not here; they are solved on random data of the same form.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import issparse

import saddlepoint as sp
from reference_problems.entry import DIRECT, GAME, PROXIMAL, Case, Found, alone, continued, direct
from reference_problems.polyhedra import ONE, Polyhedron, game, minimum, polyhedron
from reference_problems.saddle_programs_outside import OUTSIDE
from saddlepoint.apps.proximal import proximal_point

__all__ = ["OUTSIDE", "cases"]

ASSERTED = "asserted there"
SMOOTHED = "parabolas continue {} beyond the set"


def exponential(low: float, high: float) -> sp.Smooth:
    """sum exp(x_i), for x between low and high."""
    return continued(np.exp, np.exp, np.exp, low, high)


def logarithm(low: float, high: float) -> sp.Smooth:
    """-sum log(x_i)."""
    return continued(lambda t: -np.log(t), lambda t: -1.0 / t, lambda t: t**-2.0, low, high)


def root(low: float, high: float) -> sp.Smooth:
    """-sum sqrt(x_i)."""
    return continued(lambda t: -np.sqrt(t), lambda t: -0.5 * t**-0.5, lambda t: 0.25 * t**-1.5, low, high)


def inverse(low: float, high: float) -> sp.Smooth:
    """sum 1/x_i."""
    return continued(lambda t: 1.0 / t, lambda t: -(t**-2.0), lambda t: 2.0 * t**-3.0, low, high)


def linear(*c: float) -> sp.Smooth:
    """c'x."""
    return sp.Quadratic(0.0, list(c))


def box(low: Any, high: Any) -> Polyhedron:
    """low <= x <= high."""
    return polyhedron(low, high)


def simplex(n: int) -> Polyhedron:
    """Probabilities."""
    return polyhedron(np.zeros(n), np.full(n, np.inf), np.ones((1, n)), 1.0, 1.0)


def maximum(q: sp.Smooth, Y: Polyhedron) -> Found:
    """max -q(y) over y in Y."""
    return game(np.zeros((1, Y.low.size)), ONE, Y, None, q)


def by(*parts: tuple[sp.Smooth, int]) -> sp.Smooth:
    """A function of stacked variables: the sum of functions of so many of them each."""
    ends = np.cumsum([0, *(n for _, n in parts)])
    pieces = [(f, slice(a, b)) for (f, _), a, b in zip(parts, ends[:-1], ends[1:], strict=True)]

    def hessian(x: np.ndarray) -> np.ndarray:
        H = np.zeros((ends[-1], ends[-1]))
        for f, part in pieces:
            own = f.hessian(x[part])
            H[part, part] = own.toarray() if issparse(own) else own
        return H

    return sp.Smooth(
        lambda x: np.concatenate([f.grad(x[part]) for f, part in pieces]),
        mu=min(f.mu for f, _ in parts),
        L=max(f.L for f, _ in parts),
        value=lambda x: sum(f(x[part]) for f, part in pieces),
        hessian=hessian,
    )


# -- portfolios, arbitrage, a classifier -----------------------------------------------------------------------------


class Markowitz:
    """max_w min mu'w + delta'w - w'(S + D)w over |delta_i| <= rho and |D_ij| <= eta s_i s_j, s_i^2 = S_ii.

    The worst D for w >= 0 is eta s s', which leaves S + D positive semidefinite; the rest is bilinear in w and delta.
    """

    def __init__(self, mu: Any, S: Any, rho: float, eta: float) -> None:
        self.mu, self.S, self.rho, self.eta = np.asarray(mu), np.asarray(S), rho, eta
        s = np.sqrt(np.diag(self.S))
        self.worst = self.S + eta * np.outer(s, s)

    def solve(self) -> Found:
        """The answer in DSP's sign: the best worst utility."""
        n = self.mu.size
        risk = sp.Quadratic(2.0 * self.worst, -self.mu)
        found = game(-np.eye(n), simplex(n), box(np.full(n, -self.rho), np.full(n, self.rho)), risk)
        return found._replace(value=-found.value)

    def by_clarabel(self) -> float:
        """With delta eliminated as well: -rho, since the weights sum to one."""
        import cvxpy as cp

        w = cp.Variable(self.mu.size, nonneg=True)
        utility = self.mu @ w - self.rho * cp.sum(w) - cp.quad_form(w, cp.psd_wrap(self.worst))
        return float(cp.Problem(cp.Maximize(utility), [cp.sum(w) == 1]).solve(solver=cp.CLARABEL))


def returns() -> np.ndarray:
    """Monthly returns of six factors: 700 months, a common part, and means that differ."""
    random = np.random.RandomState(0)
    common = random.randn(700, 1) * np.array([4.0, 1.5, -0.8, -0.5, -0.9, 0.0])
    own = random.randn(700, 6) * np.array([2.0, 2.5, 2.6, 2.0, 1.7, 0.3])
    return common + own + np.array([0.55, 0.24, 0.27, 0.26, 0.27, 0.37])


FACTORS = Markowitz(returns().mean(axis=0), np.cov(returns(), rowvar=False), 0.2, 0.2)
RISK = Markowitz(np.zeros(2), [[1, -0.3], [-0.3, 2]], 0.0, 0.5)  # delta = 0: the worst-case covariance


def arbitrage(width: float) -> Found:
    """min_x max_p p'x over V x >= 0 and |p - (0.1, 1)| <= width; V x <= 1 is added."""
    V = np.array([[1.5, 0.5], [0.5, 1.5]])
    x = polyhedron([-1.0, -1.0], [1.0, 1.0], V, 0.0, 1.0)
    return game(np.eye(2), x, box([0.1 - width, 1 - width], [0.1 + width, 1 + width]))


class Weighted:
    """min_t max_w sum w_i (1 - b_i a_i't)_+ + eta |t|^2 over weights w in a polyhedron.

    w_i (r)_+ is the largest v_i r with 0 <= v_i <= w_i, so it is min_t max_{v, w} eta |t|^2 + sum v_i (1 - b_i a_i't).
    """

    def __init__(self, seed: int = 0, size: int = 30, features: int = 4) -> None:
        random = np.random.RandomState(seed)
        self.a = np.hstack([random.randint(0, 2, (size, features - 1)).astype(float), np.ones((size, 1))])
        scores = self.a @ random.randn(features) + 0.7 * random.randn(size)
        self.b, self.eta, self.share = np.where(scores > np.median(scores), 1.0, -1.0), 0.1, 0.4

    def weights(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows and ends for w: they sum to 1, the share of positives is given up to 0.05, and classes are uniform."""
        ups = self.b > 0
        equal = []
        for group in (np.flatnonzero(ups), np.flatnonzero(~ups)):
            for i, j in pairwise(group):
                equal.append(np.eye(self.b.size)[i] - np.eye(self.b.size)[j])
        rows = np.vstack([np.ones(self.b.size), ups.astype(float), *equal])
        lower = np.r_[1.0, self.share - 0.05, np.zeros(len(equal))]
        return rows, lower, np.r_[1.0, self.share + 0.05, np.zeros(len(equal))]

    def solve(self) -> Found:
        """t between -20 and 20, which it is."""
        m, n = self.a.shape
        rows, lower, upper = self.weights()
        both = np.vstack([np.hstack([np.zeros_like(rows), rows]), np.hstack([np.eye(m), -np.eye(m)])])
        y = polyhedron(
            np.zeros(2 * m), np.ones(2 * m), both, np.r_[lower, np.full(m, -np.inf)], np.r_[upper, np.zeros(m)]
        )
        A = np.hstack([-(self.b[:, None] * self.a).T, np.zeros((n, m))])
        size, gain = sp.Quadratic(np.full(n, 2 * self.eta)), linear(*(-np.ones(m)), *np.zeros(m))
        return game(A, box(np.full(n, -20.0), np.full(n, 20.0)), y, size, gain, tol=1e-7)

    def by_clarabel(self) -> float:
        """The inner maximum by its dual."""
        import cvxpy as cp

        n = self.a.shape[1]
        rows, lower, upper = self.weights()
        t, up, down = cp.Variable(n), cp.Variable(len(lower), nonneg=True), cp.Variable(len(lower), nonneg=True)
        loss = cp.pos(1 - cp.multiply(self.b, self.a @ t))
        worst = upper @ up - lower @ down
        problem = cp.Problem(cp.Minimize(worst + self.eta * cp.sum_squares(t)), [rows.T @ (up - down) >= loss])
        return float(problem.solve(solver=cp.CLARABEL))


CLASSIFIER = Weighted()


def lagrangian() -> Found:
    """min_x max_y exp(x) + (x - 1) y."""
    g = exponential(-10.0, 2.0)
    found = proximal_point(g, linear(1.0), np.eye(1), weights=(0.0, 1e-2), method="newton")
    return Found(found.x, found.y, g(found.x) + float(found.y[0] * (found.x[0] - 1)), found.solved)


# -- the list --------------------------------------------------------------------------------------------------------


def cases() -> Iterator[Case]:
    """All problems of this file that the library can solve."""
    yield from bilinear()
    yield from one_player()
    yield from functions_of_both()
    yield from without_bounds()
    yield from with_bounds_added()
    yield from examples()


def bilinear() -> Iterator[Case]:
    """A product of the players' variables, and linear functions."""
    C, two = np.array([[1.0, 2.0], [3.0, 1.0]]), ([-1, -1], [1, 1])
    yield Case(
        "DSP README, test_semi_infinite_matrix, both solving tests of test_snippets",
        "x'Cy over two simplices, C = [[1, 2], [3, 1]]", GAME, "",
        lambda: game(C, simplex(2), simplex(2)), lambda: 5 / 3, ASSERTED, [2 / 3, 1 / 3],
    )  # fmt: skip
    yield Case(
        "DSP test_matrix_game_x_Gy", "x'(y + 1/2) over boxes", GAME, "",
        lambda: game(np.eye(2), box(*two), box(*two), linear(0.5, 0.5)), lambda: 0.0, ASSERTED,
    )  # fmt: skip
    yield Case(
        "DSP test_matrix_game_nemirovski_Fx_Gy", "(x + 1/2)'(y + 1/2) over boxes", GAME,
        "the constant 1/2 is added after",
        lambda: plus(game(np.eye(2), box(*two), box(*two), linear(0.5, 0.5), linear(-0.5, -0.5)), 0.5), lambda: 0.0,
        ASSERTED,
    )  # fmt: skip
    yield Case(
        "DSP test_saddle_composition", "x (1 + y), |x| <= 1, -1.2 <= y <= -0.8", GAME, "",
        lambda: game(1.0, box(-1, 1), box(-1.2, -0.8), linear(1.0)), lambda: 0.0, ASSERTED,
    )  # fmt: skip
    yield Case(
        "DSP test_scalar", "x y, |x|, |y| <= 1", GAME, "", lambda: game(1.0, box(-1, 1), box(-1, 1)), lambda: 0.0,
        ASSERTED, [0.0],
    )  # fmt: skip
    yield Case(
        "DSP test_sum", "x + y, |x| <= 1, |y| <= 2", GAME, "A = 0",
        lambda: game(0.0, box(-1, 1), box(-2, 2), linear(1.0), linear(-1.0)), lambda: 1.0, ASSERTED, [-1.0],
    )  # fmt: skip


def one_player() -> Iterator[Case]:
    """One player, whose opponent has one strategy."""
    yield Case(
        "DSP test_variable", "max k, |k| <= 10", GAME, "x has one strategy",
        lambda: maximum(linear(-1.0), box(-10, 10)), lambda: 10.0, ASSERTED,
    )  # fmt: skip
    for name, f, value in (("square", sp.Quadratic([2.0]), 4.0), ("exp", exponential(2.0, 4.0), np.exp(2))):
        yield Case(
            f"DSP test_ax, {name}", f"min {name}(x), 2 <= x <= 4", GAME,
            "y has one strategy" + ("" if name == "square" else "; " + SMOOTHED.format("exp")),
            lambda f=f: minimum(f, box(2.0, 4.0)), lambda value=value: value, ASSERTED, [2.0],
        )  # fmt: skip
    for name, q, value in (
        ("exp", exponential(1.0, 3.0), np.exp(2)), ("1/y", inverse(1.0, 3.0), 0.5), ("y^2", sp.Quadratic([2.0]), 4.0),
        ("-log", logarithm(1.0, 3.0), -np.log(2)),
    ):  # fmt: skip
        yield Case(
            f"DSP test_by, {name}", "-b(y), y = 2", GAME,
            "one of three values of y" + ("" if name == "y^2" else "; " + SMOOTHED.format("b")),
            lambda q=q: maximum(q, box(2.0, 2.0)), lambda value=value: -value, ASSERTED,
        )  # fmt: skip


def functions_of_both() -> Iterator[Case]:
    """Functions of both players, on boxes and polyhedra."""
    yield Case(
        "DSP test_mixed_curvature_affine", "exp(x) + log(y) + x + 2y, x = 0, y = 1", GAME,
        SMOOTHED.format("exp and log"),
        lambda: game(0.0, box(0, 0), box(1, 1), exponential(-1, 1) + linear(1.0), logarithm(0.5, 2) + linear(-2.0)),
        lambda: 3.0, ASSERTED, [0.0],
    )  # fmt: skip
    yield Case(
        "DSP test_stacked_variables", "sum exp(x1) + x2^2 + log(y1) + sum sqrt(y2) over boxes", GAME,
        SMOOTHED.format("each function"),
        lambda: game(
            np.zeros((3, 3)), box([-1, -1, -2], [1, 1, 2]), box([1, 1, 1], [3, 3, 3]),
            by((exponential(-1, 1), 2), (sp.Quadratic([2.0]), 1)), by((logarithm(1, 3), 1), (root(1, 3), 2)),
        ),
        lambda: 2 * np.exp(-1) + np.log(3) + 2 * np.sqrt(3), ASSERTED, [-1, -1, 0],
    )  # fmt: skip
    yield Case(
        "DSP test_Gx_Fy", "exp(x)'log(y), 2 <= x <= 4, 2 <= y <= 3", GAME, "in u = exp(x), v = log(y), where it is u'v",
        lambda: game(np.eye(2), box(2 * [np.exp(2)], 2 * [np.exp(4)]), box(2 * [np.log(2)], 2 * [np.log(3)])),
        lambda: 2 * np.exp(2) * np.log(3), ASSERTED, 2 * [np.exp(2)],
    )  # fmt: skip
    yield Case(
        "DSP test_weighted_sum_exp_with_switching", "-x'exp(y), x = y = 1, n = 4", GAME,
        "in v = exp(y), where it is -x'v",
        lambda: game(-np.eye(4), box(np.ones(4), np.ones(4)), box(np.full(4, np.e), np.full(4, np.e))),
        lambda: -4 * np.e, ASSERTED, np.ones(4),
    )  # fmt: skip
    yield Case(
        "DSP test_partially_constrained", "x'y1 - y2^2, x = y1 = 1", GAME, "|y2| <= 1 added, not active",
        lambda: game(
            np.eye(2, 3), box([1, 1], [1, 1]), box([1, 1, -1], [1, 1, 1]), None, sp.Quadratic([0.0, 0.0, 2.0])
        ),
        lambda: 2.0, ASSERTED, [1, 1],
    )  # fmt: skip
    corner = polyhedron([0, 0], [1, 1], [[1, 1]], -np.inf, 1.0)
    yield Case(
        "DSP test_quasidef_quad_form", "x'x - y'y + 2x'y over x, y >= 0, sum <= 1", GAME, "",
        lambda: game(
            2 * np.eye(2), corner, corner, sp.Quadratic([2.0, 2.0]), sp.Quadratic([2.0, 2.0]),
        ),
        lambda: 0.0, "closed form: x = 0 is best for all y >= 0", [0, 0],
    )  # fmt: skip


def without_bounds() -> Iterator[Case]:
    """Smooth problems without constraints."""
    yield Case(
        "DSP test_unconstrained", "x^2 - y^2", DIRECT, "",
        lambda: direct(sp.Quadratic([2.0]), sp.Quadratic([2.0]), [[0.0]], [1.0]), lambda: 0.0, ASSERTED, [0.0],
    )  # fmt: skip
    yield Case(
        "DSP test_pure_convex, test_pure_concave", "min x^2", DIRECT, "A = 0, h = y^2/2",
        lambda: alone(sp.Quadratic([2.0]), np.ones(1)), lambda: 0.0, ASSERTED, [0.0],
    )  # fmt: skip
    yield Case(
        "DSP test_lagrangian", "exp(x) + (x - 1) y, x >= -10", PROXIMAL,
        "x >= -10, which is not active, left out; parabolas continue exp beyond [-10, 2]",
        lagrangian, lambda: np.e, ASSERTED, [1.0],
    )  # fmt: skip


def with_bounds_added() -> Iterator[Case]:
    """Problems to which bounds are added that are not active."""
    yield Case(
        "DSP test_conj", "min_z max_x z x - x^2/2, z >= 1", GAME, "z <= 5 and |x| <= 5 added, not active",
        lambda: game(1.0, box(1, 5), box(-5, 5), None, sp.Quadratic([1.0])), lambda: 0.5, ASSERTED, [1.0],
    )  # fmt: skip
    yield Case(
        "DSP test_trivial_se", "min exp(x), x >= 1", GAME, "x <= 3 added, not active; " + SMOOTHED.format("exp"),
        lambda: minimum(exponential(1, 3), box(1, 3)), lambda: np.e, ASSERTED, [1.0],
    )  # fmt: skip
    yield Case(
        "DSP test_trivial_se", "max log(y), 0 <= y <= 1", GAME, "y >= 0.1 added, not active; " + SMOOTHED.format("log"),
        lambda: maximum(logarithm(0.1, 1), box(0.1, 1)), lambda: 0.0, ASSERTED,
    )  # fmt: skip
    yield Case(
        "DSP test_saddle_no_constraint", "x'y, x, y >= 0", GAME,
        "x, y <= 1 added: a cone is cut off, which leaves the value 0",
        lambda: game(np.eye(2), box([0, 0], [1, 1]), box([0, 0], [1, 1])), lambda: 0.0, "closed form", [0, 0],
    )  # fmt: skip


def examples() -> Iterator[Case]:
    """Problems of the examples."""
    yield Case(
        "DSP test_worst_case_covariance", "min_v max_S v'Sv over the simplex and |S - S0| <= 0.5 s s'", GAME,
        "S eliminated: for v >= 0 the worst is S0 + 0.5 s s'", lambda: negative(RISK.solve()),
        lambda: -RISK.by_clarabel(), "recomputed by Clarabel; the x is quoted there", [0.70348158, 0.29651842],
    )  # fmt: skip
    yield Case(
        "DSP example test_robust_markowitz", "max_w min mu'w + delta'w - w'(S + D)w", GAME,
        "D eliminated: for w >= 0 the worst is eta s s'; random returns, theirs are in a data file",
        FACTORS.solve, FACTORS.by_clarabel, "recomputed by Clarabel",
    )  # fmt: skip
    yield Case(
        "DSP example test_arbitrage, large perturbation", "min_x max_p p'x, Vx >= 0, |p - p0| <= 1", GAME,
        "Vx <= 1 added: the cone is cut off, which leaves the value 0", lambda: arbitrage(1.0), lambda: 0.0, ASSERTED,
        [0, 0],
    )  # fmt: skip
    yield Case(
        "DSP example test_arbitrage, small perturbation", "the same, |p - p0| <= 0.1", GAME,
        "Vx <= 1 added: a negative value proves that theirs is unbounded", lambda: arbitrage(0.1), arbitrage_value,
        "recomputed by HiGHS",
    )  # fmt: skip
    yield Case(
        "DSP example test_svm", "min_t max_w sum w_i (1 - b_i a_i't)_+ + eta |t|^2", GAME,
        "v_i (1 - b_i a_i't), 0 <= v_i <= w_i, for the hinge; |t_i| <= 20 added, not active; random samples, theirs "
        "are in a data file",
        CLASSIFIER.solve, CLASSIFIER.by_clarabel, "recomputed by Clarabel",
    )  # fmt: skip


def plus(found: Found, constant: float) -> Found:
    """With a constant added to the value."""
    return found._replace(value=found.value + constant)


def negative(found: Found) -> Found:
    """With the opposite sign of the value."""
    return found._replace(value=-found.value)


def arbitrage_value() -> float:
    """min p'x at the worst p, an upper end where x > 0 and a lower end where x < 0: x = plus - minus."""
    from scipy.optimize import linprog

    V, p = np.array([[1.5, 0.5], [0.5, 1.5]]), np.array([0.1, 1.0])
    found = linprog(
        np.r_[p + 0.1, 0.1 - p], A_ub=np.block([[V, -V], [-V, V]]), b_ub=[1, 1, 0, 0], bounds=(0, 1), method="highs"
    )
    return float(found.fun)
