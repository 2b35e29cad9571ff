"""Problems with wrong constants, gradients or products, whose true solution is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from reference import saddle_point

import saddlepoint as sp
from saddlepoint.parts.coupling import Norm
from saddlepoint.problems.generators import random_logistic, random_quadratic

M, N = 24, 18


class Given(sp.Coupling):
    """A with products of its own and, if one is given, a norm that is believed."""

    def __init__(self, A, At=None, norm=None):
        self.A, self.At, self.claim = A, A.T if At is None else At, norm
        self.shape, self.dtype = A.shape, A.dtype

    def mul(self, y):
        return self.A @ y

    def tmul(self, x):
        return self.At @ x

    def _transpose(self):
        return type(self)(self.At, self.A, self.claim)


class GivenNorm(Given):
    @property
    def norm_estimate(self):
        return Norm(0.0, self.claim, 0.0, 0)


def _diagonal() -> sp.Saddle:
    rng = np.random.default_rng(5)
    A = rng.standard_normal((M, N))
    g = sp.Quadratic(rng.permutation(np.geomspace(0.02, 1.0, M)), rng.standard_normal(M))
    return sp.Saddle(g, sp.Quadratic(np.geomspace(0.02, 1.0, N), rng.standard_normal(N)), A / np.linalg.norm(A, 2))


def _log_cosh() -> sp.Saddle:
    rng = np.random.default_rng(8)
    D, E, A = (rng.standard_normal(shape) for shape in ((60, M), (50, N), (M, N)))
    g, h = sp.LogCosh(D, 2.0 * rng.standard_normal(60), 0.05), sp.LogCosh(E, rng.standard_normal(50), 0.1)
    return sp.Saddle(g, h, A / np.linalg.norm(A, 2))


PROBLEMS: dict[str, Callable[[], sp.Saddle]] = {
    "quadratic": lambda: random_quadratic(M, N, 100, 50, 20, seed=1),
    "diagonal": _diagonal,
    "logistic": lambda: random_logistic(M, N, 60, 60, 10, seed=6),
    "log-cosh": _log_cosh,
}


@cache
def problem(name: str) -> tuple[sp.Saddle, np.ndarray, np.ndarray]:
    """The correct problem and its saddle point."""
    f = PROBLEMS[name]()
    return (f, *saddle_point(f))


def box(q: sp.Smooth, plain: bool, grad=None, mu=None, L=None) -> sp.Smooth:
    """q as a black box with the wrong parts that are given and, unless plain, with the true prox and Hessian."""
    extra = {} if plain else {"prox": q.prox if q.has_prox else None, "quadratic": q.quadratic, "hessian": q.hessian}
    return sp.Smooth(grad or q.grad, mu=q.mu if mu is None else mu, L=q.L if L is None else L, **extra)


def small_L(factor):
    return lambda f, plain: sp.Saddle(box(f.g, plain, L=max(f.L_x / factor, f.mu_x)), box(f.h, plain), f.A)


def large_mu(factor):
    return lambda f, plain: sp.Saddle(box(f.g, plain, mu=min(f.mu_x * factor, f.L_x)), box(f.h, plain), f.A)


def large_mu_of_h(factor):
    return lambda f, plain: sp.Saddle(box(f.g, plain), box(f.h, plain, mu=min(f.mu_y * factor, f.L_y)), f.A)


def small_norm(factor):
    def wrong(f, plain):
        A = np.array(f.A.A)
        return sp.Saddle(box(f.g, plain), box(f.h, plain), GivenNorm(A, norm=np.linalg.norm(A, 2) / factor))

    return wrong


def wrong_gradient(change):
    return lambda f, plain: sp.Saddle(box(f.g, plain, grad=change(f.g)), box(f.h, plain), f.A)


def wrong_transpose(change):
    def wrong(f, plain):
        A = np.array(f.A.A)
        At = A.T.copy()
        change(At)
        return sp.Saddle(box(f.g, plain), box(f.h, plain), Given(A, At))

    return wrong


def one_sign(q):
    def grad(x):
        p = np.array(q.grad(x))
        p[3] *= -1.0
        return p

    return grad


def asymmetric(size):
    def change(q):
        K = np.random.default_rng(9).standard_normal((M, M))
        K = K - K.T
        K *= size * q.L / np.linalg.norm(K, 2)
        return lambda x: q.grad(x) + K @ x

    return change


def noisy(kind, level=1e-6):
    """A gradient with noise of this size in every entry: random or not, relative to the entry or not."""

    def change(q):
        rng = np.random.default_rng(11)

        def grad(x):
            p = q.grad(x)
            e = rng.standard_normal(M) if "random" in kind else np.sin(1e9 * x + 1e7 * np.roll(x, 1) + np.arange(M))
            return p + level * (p * e if "relative" in kind else e)

        return grad

    return change


def not_convex(q):
    v = np.random.default_rng(2).standard_normal(M)
    v /= np.linalg.norm(v)
    return lambda x: q.grad(x) - 1.2 * q.L * (v @ x) * v


def ripples(q):
    """The gradient of a function that is convex in some places only."""
    return lambda x: q.grad(x) - 3.0 * q.mu * np.sin(x)


def sign_in_one_entry(At):
    At[2, 3] *= -1.0


def one_row(At):
    At[:, 4] = At[:, 5]


def scaled(At):
    At *= 1.01


VIOLATIONS: dict[str, Callable[[sp.Saddle, bool], sp.Saddle]] = {
    **{f"L / {k}": small_L(k) for k in (2, 10, 100)},
    **{f"mu * {k}": large_mu(k) for k in (2, 10, 100)},
    **{f"mu of h * {k}": large_mu_of_h(k) for k in (2, 10, 100)},
    **{f"norm / {k}": small_norm(k) for k in (2, 10, 100)},
    "a sign": wrong_gradient(one_sign),
    "asymmetric": wrong_gradient(asymmetric(0.3)),
    "slightly asymmetric": wrong_gradient(asymmetric(0.01)),
    "a sign in A'": wrong_transpose(sign_in_one_entry),
    "a row of A'": wrong_transpose(one_row),
    "A' scaled": wrong_transpose(scaled),
    **{
        kind: wrong_gradient(noisy(kind))
        for kind in ("random noise", "noise", "relative random noise", "relative noise")
    },
    "not convex": wrong_gradient(not_convex),
    "ripples": wrong_gradient(ripples),
}
