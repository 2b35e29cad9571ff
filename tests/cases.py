"""The problems that every method must solve: the kinds of the paper, and difficult special cases."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from reference import saddle_point
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import saddlepoint as sp
from saddlepoint.problems.generators import random_logistic, random_quadratic

M, N = 14, 10


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)


def _diagonal(n: int, mu: float, L: float) -> sp.Quadratic:
    return sp.Quadratic(np.geomspace(mu, L, n), _rng().standard_normal(n))


def _A(m: int = M, n: int = N, norm: float = 1.0) -> np.ndarray:
    A = _rng().standard_normal((m, n))
    return A * (norm / np.linalg.norm(A, 2))


def _with_A(A) -> sp.Saddle:
    m, n = A.shape
    return sp.Saddle(_diagonal(m, 0.05, 1.0), _diagonal(n, 0.05, 1.0), A)


def _black_box() -> sp.Saddle:
    P, Q = np.geomspace(0.1, 1.0, M), np.geomspace(0.05, 1.0, N)
    g = sp.Smooth(lambda x: P * x - 1.0, mu=0.1, L=1.0)
    h = sp.Smooth(lambda y: Q * y + 1.0, mu=0.05, L=1.0)
    return sp.Saddle(g, h, _A())


CASES: dict[str, Callable[[], sp.Saddle]] = {
    "balanced": lambda: random_quadratic(M, N, 50, 50, 20, seed=1),
    "mu_x < mu_y": lambda: random_quadratic(M, N, 400, 10, 15, seed=2),
    "mu_x > mu_y": lambda: random_quadratic(M, N, 8, 500, 15, seed=3),
    "L_x >> L_y": lambda: random_quadratic(M, N, 40, 90, 10, L_x=1e4, L_y=1e-2, seed=4),
    "L_x << L_y": lambda: random_quadratic(M, N, 90, 40, 10, L_x=1e-3, L_y=1e3, seed=5),
    "kappa_x = 1": lambda: sp.Saddle(sp.Quadratic(2.0, np.ones(M)), _diagonal(N, 0.01, 1.0), _A()),
    "kappa_y = 1": lambda: sp.Saddle(_diagonal(M, 0.01, 1.0), sp.Quadratic(2.0, np.ones(N)), _A()),
    "kappa = 1": lambda: sp.Saddle(sp.Quadratic(2.0, np.ones(M)), sp.Quadratic(0.3, np.ones(N)), _A(norm=3.0)),
    "A = 0": lambda: sp.Saddle(_diagonal(M, 0.02, 1.0), _diagonal(N, 0.01, 1.0), np.zeros((M, N))),
    "1 x 1": lambda: sp.Saddle(sp.Quadratic(2.0, [1.0]), sp.Quadratic(3.0, [1.0]), [[5.0]]),
    "tall": lambda: _with_A(_A(60, 2, 2.0)),
    "wide": lambda: _with_A(_A(2, 60, 2.0)),
    "one row": lambda: _with_A(_A(1, 8, 2.0)),
    "rank one": lambda: _with_A(np.outer(np.linspace(-1, 1, M), np.linspace(0.1, 1, N))),
    "tiny A": lambda: _with_A(_A(norm=1e-9)),
    "badly scaled A": lambda: _with_A(np.geomspace(1e-3, 1e1, M)[:, None] * _A() * np.geomspace(1e-2, 1.0, N)),
    "sparse A": lambda: _with_A(sparse.random_array((M, N), density=0.3, rng=_rng(), format="coo")),
    "operator A": lambda: _with_A(aslinearoperator(_A())),
    "logistic": lambda: random_logistic(M, N, 60, 60, 10, seed=6),
    "logistic, mu_x < mu_y": lambda: random_logistic(M, N, 300, 10, 10, seed=7),
    "logistic, mu_x > mu_y": lambda: random_logistic(M, N, 10, 300, 10, L_x=30.0, seed=8),
    "huber": lambda: sp.Saddle(sp.Huber(_A(40, M, 6.0), np.ones(40), 0.02), sp.Huber(l2=0.5, t=np.ones(N)), _A()),
    "log-sum-exp": lambda: sp.Saddle(sp.LogSumExp(_A(30, M, 1.0), l2=0.05), sp.LogCosh(l2=0.3, t=np.ones(N)), _A()),
}
BLACK_BOX = _black_box


@cache
def case(name: str) -> tuple[sp.Saddle, np.ndarray, np.ndarray]:
    """The problem and its saddle point."""
    f = CASES[name]()
    return (f, *saddle_point(f))


def gradient_methods() -> dict[str, sp.Method]:
    """Every registered gradient method, and every rule and coupling solver of DIPPA and AIPFB."""
    registered = {info.name: sp.make_method(info.name) for info in sp.methods() if info.oracle == "gradients"}
    rules = ("paper", "certified", "adaptive")
    dippa = {f"dippa-{r}-{c}": sp.DIPPA(r, c) for r in rules for c in ("apfb", "cg", "factor")}
    aipfb = {f"aipfb-{r}": sp.AIPFB(r) for r in rules}
    catalyst = {f"catalyst-dippa-{r}": sp.Catalyst(sp.DIPPA(r)) for r in rules}
    others = {
        "anderson-imex-factor": sp.Anderson(sp.IMEX(1.0, coupling="factor"), 5),
        "anderson-extragradient": sp.Anderson(sp.Extragradient(), 5),
        "anderson-dippa": sp.Anderson(sp.DIPPA(coupling="cg"), 10),
        "restarted-ag-eg": sp.Restarted(sp.AGEG()),
        "lpd-slide-cg": sp.LPDSlide(coupling="cg"),
        "imex-cg": sp.IMEX(coupling="cg"),
    }
    return registered | dippa | aipfb | catalyst | others


def quadratic_methods() -> dict[str, sp.Method]:
    return {info.name: sp.make_method(info.name) for info in sp.methods() if info.oracle in ("quadratic", "matrices")}


def prox_methods() -> dict[str, sp.Method]:
    made = {info.name: sp.make_method(info.name) for info in sp.methods()}
    registered = {name: method for name, method in made.items() if method.needs.prox_g or method.needs.prox_h}
    return registered | {f"condat-vu-{side}": sp.CondatVu(side) for side in ("x", "y", "both")}


def stuck(self, problem, s):
    """A step of a method that calls the oracles and stays where it is."""
    problem.field(s.x, s.y)
    return s
