"""PEPit's examples: the worst function that each finds, as a problem to solve.

B. Goujaud et al., PEPit: computer-assisted worst-case analyses of first-order optimization methods in Python, Math.
Prog. Comput. 2024. An example is about a class of functions and a method. Where the class is ours, PEPit is run on the
example as it stands, and the function is rebuilt from the points, gradients and values that its semidefinite program
ends with.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

import saddlepoint as sp
from reference_problems.entry import DIRECT, Case, Outside, alone
from saddlepoint.apps.proximal import proximal_point
from saddlepoint.methods.agd import AGD

SDP = 1e-5  # absolute accuracy of the values that the semidefinite solver returns
NOISE = 1e-3  # smaller coordinates are errors of the semidefinite solver
UNCONSTRAINED = "unconstrained_convex_minimization"


class Interpolant(sp.Smooth):
    """The largest mu-strongly convex, L-smooth function with given points, gradients and values.

    Less mu/2 |x|^2, it is the convex hull of the parabolas b/2 |x - z_i|^2 + d_i that touch it at the points, with
    b = L - mu, the least b/2 |x - sum a_i z_i|^2 + d'a over a in the simplex; its gradient is b (x - sum a_i z_i)
    (A. Taylor, J. Hendrickx and F. Glineur, Math. Prog. 2017). The minimum is taken over all faces of the simplex on
    which the z_i are affinely independent; these suffice.
    """

    def __init__(self, x: np.ndarray, g: np.ndarray, f: np.ndarray, mu: float, L: float) -> None:
        g, f = g - mu * x, f - 0.5 * mu * np.sum(x * x, axis=1)
        self.bend = L - mu
        self.z = x - g / self.bend
        self.d = f - np.sum(g * g, axis=1) / (2.0 * self.bend)
        keep = essential(self.z, self.d)
        self.z, self.d = self.z[keep], self.d[keep]
        faces = [Face.of(self.z, self.d, self.bend, list(face)) for face in subsets(len(keep), x.shape[1] + 1)]
        kept = [face for face in faces if face is not None]
        self.weights, self.weights_at_0, self.away, self.away_at_0 = map(np.array, zip(*kept, strict=True))
        super().__init__(
            lambda x: mu * x + self.bend * self.nearest(x)[0],
            mu=mu,
            L=L,
            value=lambda x: 0.5 * mu * float(x @ x) + self.nearest(x)[1],
            dim=x.shape[1],
        )

    def nearest(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """x - sum a_i z_i, and the minimum: of the face that comes closest to the conditions of optimality."""
        a, away = self.weights @ x + self.weights_at_0, self.away @ x + self.away_at_0
        slopes = self.d - self.bend * (away @ self.z.T)
        error = np.maximum(-a.min(axis=1), np.sum(a * slopes, axis=1) - slopes.min(axis=1))
        best = int(error.argmin())
        return away[best], 0.5 * self.bend * float(away[best] @ away[best]) + float(a[best] @ self.d)


class Face(NamedTuple):
    """The minimum over one face of the simplex: a = weights x + weights_at_0, x - sum a_i z_i = away x + away_at_0."""

    weights: np.ndarray
    weights_at_0: np.ndarray
    away: np.ndarray
    away_at_0: np.ndarray

    @classmethod
    def of(cls, z: np.ndarray, d: np.ndarray, bend: float, face: list[int]) -> Face | None:
        """With a = e_0 + N u, the best u has D'(x - z_0 - D u) = (d - d_0)/bend; None if D is nearly singular."""
        first, rest = face[0], face[1:]
        Q, R = np.linalg.qr((z[rest] - z[first]).T)
        if rest and np.linalg.cond(R) > 1e8:
            return None
        inverse = np.linalg.inv(R)
        shift = inverse.T @ (d[rest] - d[first]) / bend
        N = np.zeros((len(z), len(rest)))
        N[rest, range(len(rest))], N[first] = 1.0, -1.0
        B = N @ inverse
        project = np.eye(z.shape[1]) - Q @ Q.T
        return cls(
            B @ Q.T, np.eye(len(z))[first] - B @ (Q.T @ z[first] + shift), project, Q @ shift - project @ z[first]
        )


def essential(z: np.ndarray, d: np.ndarray) -> list[int]:
    """The points that are not, up to the accuracy of the solver, in the hull of the others: these make thin faces."""
    keep = list(range(len(d)))
    for i in range(len(d)):
        rest = [j for j in keep if j != i]
        if not rest:
            break
        near = np.vstack([z[rest].T, -z[rest].T])
        found = linprog(d[rest], A_ub=near, b_ub=np.r_[z[i], -z[i]] + SDP, A_eq=np.ones((1, len(rest))), b_eq=[1.0])
        if found.status == 0 and found.fun <= d[i] + SDP:
            keep = rest
    return keep


def subsets(k: int, size: int) -> Iterator[tuple[int, ...]]:
    """Of the numbers up to k, those with at most ``size`` members."""
    return itertools.chain.from_iterable(itertools.combinations(range(k), n) for n in range(1, min(k, size) + 1))


class Example(NamedTuple):
    """A file of PEPit's examples with the arguments it is shown with, and the number that its docstring quotes."""

    folder: str
    name: str
    arguments: dict[str, float]
    quoted: float

    @property
    def mu(self) -> float:
        """The mu of the class of functions."""
        return float(self.arguments["mu"])

    @property
    def L(self) -> float:
        """The L of the class of functions."""
        return float(self.arguments["L"])


def example(folder: str, name: str, quoted: float, mu: float = 0.1, L: float = 1.0, **rest: float) -> Example:
    """An example; mu and L default to those that most examples of PEPit have."""
    return Example(folder, name, {"mu": mu, "L": L, **rest}, quoted)


EXAMPLES = (
    example(UNCONSTRAINED, "accelerated_gradient_strongly_convex", 0.347602, n=2),
    example(UNCONSTRAINED, "triple_momentum", 0.238925, n=4),
    example(UNCONSTRAINED, "robust_momentum", 0.528555, lam=0.2),
    example(UNCONSTRAINED, "heavy_ball_momentum", 0.753493, alpha=0.5, beta=math.sqrt(0.95 * 0.5), n=2),
    example(UNCONSTRAINED, "gradient_exact_line_search", 0.448125, n=2),
    example(UNCONSTRAINED, "inexact_gradient_exact_line_search", 0.518917, epsilon=0.1, n=2),
    example(UNCONSTRAINED, "inexact_gradient_descent", 0.518917, epsilon=0.1, n=2),
    example(UNCONSTRAINED, "gradient_descent_silver_stepsize_strongly_convex", 0.22145, L=3.2, n=8),
    example("adaptive_methods", "polyak_steps_in_distance_to_optimum", 0.669421, gamma=2 / 1.1),
    example("adaptive_methods", "polyak_steps_in_function_value", 0.669421, gamma=2 / 1.1),
)


class Worst(NamedTuple):
    """What an example ends with: the number, the function, its minimum and minimiser, and the first point."""

    tau: float
    function: Interpolant
    minimum: float
    minimiser: np.ndarray
    start: np.ndarray


@cache
def worst_functions() -> dict[str, Worst]:
    """Of all examples, by name."""
    return {one.name: worst_function(one) for one in EXAMPLES}


def worst_function(example: Example) -> Worst:
    """Run PEPit, and keep what it leaves."""
    import PEPit

    module = importlib.import_module(f"PEPit.examples.{example.folder}.{example.name}")
    kept: list[Any] = []

    class Kept(PEPit.PEP):
        def __init__(self) -> None:
            super().__init__()
            kept.append(self)

    original, module.PEP = module.PEP, Kept
    try:
        run = getattr(module, f"wc_{example.name}")
        tau, _ = run(**example.arguments, wrapper="cvxpy", solver="CLARABEL", verbose=-1)
    finally:
        module.PEP = original
    (f,) = kept[-1].list_of_functions
    x, g, values = (np.array([triple[i].eval() for triple in f.list_of_points], dtype=float) for i in range(3))
    star, _, least = f.list_of_stationary_points[0]
    real = np.abs(np.vstack([x, g])).max(axis=0) > NOISE
    function = Interpolant(x[:, real], g[:, real], values, example.mu, example.L)
    start = kept[-1].list_of_points[0].eval()
    return Worst(tau, function, float(least.eval()), star.eval()[real], start[real])


def cases() -> Iterator[Case]:
    """The worst functions, each as min g by ``solve``."""
    for one in EXAMPLES:
        worst = lambda name=one.name: worst_functions()[name]  # noqa: E731
        yield Case(
            f"PEPit {one.folder}/{one.name}", f"its worst function, mu = {one.mu:g}, L = {one.L:g}", DIRECT,
            "A = 0, h = y^2/2", lambda worst=worst: alone(worst().function, worst().start),
            lambda worst=worst: worst().minimum, "PEPit's program, solved by Clarabel", None, SDP,
        )  # fmt: skip


# -- methods that are the same here and there ------------------------------------------------------------------------


class Rate(NamedTuple):
    """A number that PEPit quotes for a method of ours, and what ours does on an instance; they agree if attained."""

    source: str
    method: str
    instance: str
    ours: Callable[[], float]
    quoted: float
    attained: bool


def accelerated_gradient() -> float:
    """f(x_2) - f* of AGD on the worst function from its start, where f(x_0) - f* + mu/2 |x_0 - x*|^2 is 1."""
    worst = worst_functions()["accelerated_gradient_strongly_convex"]
    agd, state = AGD(), AGD().init(worst.function, worst.start)
    for _ in range(2):
        state = agd.step(worst.function, state)
    return worst.function(state.x) - worst.minimum


def proximal_steps(alpha: float, n: int) -> float:
    """|z_n - z_{n-1}|^2 of the proximal point method on min max c x (y - 1), c^2 = 1/(alpha^2 (n - 1)), from 0.

    The solution is at a distance of 1, and a step multiplies the error by 1/(1 + i alpha c).
    """
    c = 1.0 / (alpha * math.sqrt(n - 1))
    ends = [
        proximal_point(
            sp.Quadratic(0.0, [-c]), sp.Quadratic(0.0, [0.0]), [[c]], tol=1e-12, weights=(1 / alpha, 1 / alpha),
            shrink=1.0, share=1e-9, method="direct", max_steps=steps,
        )
        for steps in (n, n - 1)
    ]  # fmt: skip
    after, before = (np.r_[end.x, end.y] for end in ends)
    return float(np.sum((after - before) ** 2))


def optimistic_steps(n: int = 5, gamma: float = 0.25) -> float:
    """The largest |z_n - z_{n-1}|^2 of OGDA on c x y, 0 < c <= 1, from a distance of 1; mu is 1e-6."""
    mu, most = 1e-6, 0.0
    for c in np.linspace(0.02, 1.0, 50) * (1.0 - mu):
        f = sp.Saddle(sp.Quadratic(mu), sp.Quadratic(mu), [[c]])
        method = sp.OGDA(eta=gamma * mu)
        state = method.init(f, np.array([0.6]), np.array([0.8]))
        for _ in range(n):
            before, state = state, method.step(f, state)
        most = max(most, float(np.sum((state.x - before.x) ** 2 + (state.y - before.y) ** 2)))
    return most


MONOTONE = "monotone_inclusions_variational_inequalities"
RATES = (
    Rate(
        f"PEPit {UNCONSTRAINED}/accelerated_gradient_strongly_convex", "AGD, 2 steps", "its worst function",
        accelerated_gradient, 0.347602, True,
    ),
    Rate(
        f"PEPit {MONOTONE}/proximal_point", "`proximal_point`, alpha = 2, n = 10",
        "c x (y - 1), c^2 = 1/(alpha^2 (n - 1))", lambda: proximal_steps(2.0, 10), 0.038742, True,
    ),
    Rate(
        "PEPit low_dimensional_worst_cases_scenarios/proximal_point", "`proximal_point`, alpha = 2.2, n = 11",
        "the same", lambda: proximal_steps(2.2, 11), 0.0350494, True,
    ),
    Rate(
        f"PEPit {MONOTONE}/optimistic_gradient", "`ogda`, gamma = 1/4, n = 5", "c x y, the worst of 50 c",
        optimistic_steps, 0.0663141, False,
    ),
)  # fmt: skip

OUTSIDE = (
    Outside(
        f"PEPit {UNCONSTRAINED}/information_theoretic_exact_method, tutorials/gradient_descent_contraction",
        "smooth and strongly convex",
        "the class is ours, but no function is rebuilt: 16 points have too many faces, or no minimiser is among them",
    ),
    Outside(
        f"PEPit {UNCONSTRAINED}, the other 20; potential_functions (3); continuous_time_models (4)",
        "convex with mu = 0, nonsmooth, of quadratic growth, quadratic, by blocks, in continuous time",
        "mu = 0 or no L, or no instance; quadratics with mu > 0 would fit",
    ),
    Outside(
        "PEPit composite_convex_minimization (13), inexact_proximal_methods (3), low_dimensional_worst_cases_scenarios "
        "(the other 8)",
        "a function with a prox beside a smooth one; projections; Frank-Wolfe; Bregman steps; mu = 0",
        "not tried: two functions would have to be rebuilt, one of them as a simple term of one's own",
    ),
    Outside(
        f"PEPit {MONOTONE} (the other 8), fixed_point_problems (5)",
        "monotone, cocoercive and nonexpansive operators",
        "such operators are no saddle fields in general, and the methods are not here",
    ),
    Outside(
        "PEPit nonconvex_optimization (7), stochastic_and_randomized_convex_minimization (6), online_learning (4)",
        "no convexity, sums in random order, regret",
        "problems of other kinds",
    ),
)
