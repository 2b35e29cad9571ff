"""Random problems as black boxes: counts true ones that are reported as wrong, and wrong ones that are found.

``python tests/examination.py 200`` makes 200 problems of each kind and prints a table; ``test_examination.py`` runs
a few. Every problem is built around a saddle point that is chosen first, so that certificates can be compared with it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
from scipy.special import expit, softmax

import saddlepoint as sp

METHODS = ("auto", "lpd-gs", "dippa", "anderson-imex", "extragradient")


class Part:
    """A function with its constants: the sum of a quadratic and of convex terms along some directions."""

    def __init__(self, rng, n, kappa):
        self.n, self.rng = n, rng
        self.L = 10.0 ** rng.uniform(-2, 2)
        self.mu = 0.5 * self.L / kappa
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0] if rng.random() < 0.6 else np.eye(n)
        eigenvalues = np.geomspace(self.mu, max(0.5 * self.L, self.mu), n) if n > 1 else np.array([self.mu])
        self.P = (Q * eigenvalues) @ Q.T
        self.point = rng.standard_normal(n) * 10.0 ** rng.uniform(-2, 2)
        self.terms: Callable = lambda x: 0.0 * x
        self.wrap: Callable = lambda grad: grad

    def along(self, slope, curvature, rows=None):
        """Add w sum_i slope(d_i'x - c_i), with w such that L is right; ``curvature`` is the largest slope of slope."""
        rng, n = self.rng, self.n
        D = rng.standard_normal((rows or n, n))
        w = 0.5 * self.L / (curvature * np.linalg.norm(D, 2) ** 2)
        c = D @ self.point + rng.choice([0.0, 1.0, -1.0, 30.0], D.shape[0])  # at kinks, and far away
        self.terms = lambda x: w * (D.T @ slope(D @ x - c))
        return self

    def raw(self, x):
        return self.P @ x + self.terms(x)


def huber(rng, n, kappa):
    delta = 10.0 ** rng.uniform(-6, 0)
    return Part(rng, n, kappa).along(lambda t: np.clip((t - 1.0) / delta, -1.0, 1.0), 1.0 / delta)


def one_sided(rng, n, kappa):
    return Part(rng, n, kappa).along(lambda t: np.maximum(t, 0.0), 1.0)


def saturated(rng, n, kappa):
    s = 10.0 ** rng.uniform(-5, 2)
    return Part(rng, n, kappa).along(lambda t: np.tanh(t / s), 1.0 / s)


def logistic(rng, n, kappa):
    s = 10.0 ** rng.uniform(-3, 2)
    return Part(rng, n, kappa).along(lambda t: expit(t / s), 0.25 / s)


def log_sum_exp(rng, n, kappa):
    part, tau = Part(rng, n, kappa), 10.0 ** rng.uniform(-5, 0)
    D = rng.standard_normal((2 * n, n))
    w = 0.5 * part.L * tau / np.linalg.norm(D, 2) ** 2
    c = D @ part.point + tau * rng.standard_normal(2 * n)
    part.terms = lambda x: w * (D.T @ softmax((D @ x - c) / tau))
    return part


def quadratic(rng, n, kappa):
    return Part(rng, n, kappa)


def single_precision(rng, n, kappa):
    part = rng.choice([quadratic, saturated, huber])(rng, n, kappa)
    part.wrap = lambda grad: (
        lambda x: grad(x.astype(np.float32).astype(np.float64)).astype(np.float32).astype(np.float64)
    )
    return part


def positive(rng, n, kappa):
    """A gradient that is NaN, or raises, unless x > 0."""
    part = rng.choice([quadratic, saturated, one_sided])(rng, n, kappa)
    part.point = np.abs(part.point) * 10.0 ** rng.uniform(-6, 0, n)
    raises = rng.random() < 0.5

    def wrap(grad):
        def inside(x):
            if (x > 0.0).all():
                return grad(x)
            if raises:
                raise ValueError("outside the domain")
            return np.full(n, np.nan)

        return inside

    part.wrap = wrap
    return part


KINDS = {
    f.__name__: f for f in (quadratic, huber, one_sided, saturated, logistic, log_sum_exp, single_precision, positive)
}


class Case:
    """A problem of two such functions; the constants of one of them may be wrong.

    Args:
        seed: everything about the problem follows from it.
        kind: of the function that is examined, the one of x or the one of y.
        wrong: (part, grad, rng) -> (grad, mu, L), or None.
    """

    def __init__(self, seed, kind, wrong=None):
        rng = np.random.default_rng(seed)
        m, n = (int(k) for k in rng.choice([1, 2, 3, 8, 30, 60], 2))
        if wrong is not None:
            m, n = max(m, 2), max(n, 2)
        kappas = 10.0 ** rng.uniform(0.1 if wrong is None else 1.5, 3, 2)
        self.side = int(rng.integers(2))
        makers = [quadratic, quadratic]
        makers[self.side] = KINDS[kind]
        parts = [make(rng, size, kappa) for make, size, kappa in zip(makers, (m, n), kappas, strict=True)]
        A = rng.standard_normal((m, n))
        A *= 10.0 ** rng.uniform(-1, 1) * np.sqrt(parts[0].L * parts[1].L) / np.linalg.norm(A, 2)
        self.scale = [np.ones(m), np.ones(n)]
        unit = 1.0
        if wrong is None and rng.random() < 0.4:
            self.scale[self.side] = 10.0 ** rng.uniform(-6, 6, (m, n)[self.side])  # badly scaled variables
        elif rng.random() < 0.3:
            unit = 10.0 ** rng.uniform(-100, 100)
            self.scale = [10.0 ** rng.uniform(-40, 40) * s for s in self.scale]
        self.x, self.y = (part.point * s for part, s in zip(parts, self.scale, strict=True))
        shift = [A @ parts[1].point, -A.T @ parts[0].point]
        functions = []
        for k, part in enumerate(parts):
            s, mu, L = self.scale[k], part.mu, part.L
            constant = part.raw(part.point) + shift[k]

            def plain(x, part=part, constant=constant):
                return part.raw(x) - constant

            grad = part.wrap(plain)
            if wrong is not None and k == self.side:
                grad, mu, L = wrong(part, grad, rng)

            def scaled(x, grad=grad, s=s):
                return unit * (grad(x / s) / s)

            functions.append(sp.Smooth(scaled, mu=unit * mu / s.max() ** 2, L=max(unit * L / s.min() ** 2, 1e-300)))
        self.f = sp.Saddle(*functions, unit * A / self.scale[0][:, None] / self.scale[1][None, :])
        self.size = np.linalg.norm(self.x) + np.linalg.norm(self.y)
        self.tol = 10.0 ** rng.uniform(-9, -2) * self.size
        self.method = str(rng.choice(METHODS))
        near = 10.0 ** rng.uniform(-8, 0) if rng.random() < 0.5 else 1.0
        if kind == "positive":
            near = 10.0 ** rng.uniform(-12, -6)
            self.tol = max(self.tol, 1e-4 * self.size)
        noise = rng.choice([0.0, near]) * self.size
        self.start = [
            v * (1.0 + near * rng.uniform(-1, 1, v.size))
            if kind == "positive"
            else v + noise * rng.standard_normal(v.size)
            for v in (self.x, self.y)
        ]
        if rng.random() < 0.3 and kind != "positive":
            self.start = [0.0 * v for v in (self.x, self.y)]

    def outcome(self):
        """How a run ends: reported as wrong, false, solved, doubted, or its status, with what was said."""
        try:
            r = sp.solve(self.f, *self.start, method=self.method, tol=self.tol, max_calls=10000)
        except sp.AssumptionError as error:
            return "reported", str(error)
        except (sp.ProblemError, ValueError) as error:
            return f"{type(error).__name__}", str(error)
        if not r.solved:
            return str(r.status), r.message
        true = np.linalg.norm(r.x - self.x) + np.linalg.norm(r.y - self.y)
        if true > r.certificate.distance + 1e-15 * self.size:
            return "FALSE", f"true {true:.3g}, {r.message}"
        return ("doubted" if "seems" in r.message else "solved"), r.message


# -- wrong claims ------------------------------------------------------------------------------------------------------


def large_mu(part, grad, rng):
    return grad, min(part.mu * 10.0 ** rng.uniform(0.3, 1.5), part.L), part.L


def small_L(part, grad, rng):
    return grad, part.mu, max(part.L / 10.0 ** rng.uniform(0.6, 1.8), part.mu)


def twisted(part, grad, rng):
    K = rng.standard_normal((part.n, part.n))
    K = K - K.T
    K *= 10.0 ** rng.uniform(-2.5, -0.3) * part.L / np.linalg.norm(K, 2)
    return (lambda x: grad(x) + K @ (x - part.point)), part.mu, part.L


def one_sign(part, grad, rng):
    flip = np.ones(part.n)
    flip[int(rng.integers(part.n))] = -1.0
    return (lambda x: flip * grad(x)), part.mu, part.L


def noisy(part, grad, rng):
    level, own = 10.0 ** rng.uniform(-10, -3), np.random.default_rng(0)
    size = np.linalg.norm(grad(part.point)) + part.L * np.linalg.norm(part.point)
    return (lambda x: grad(x) + level * size * own.standard_normal(part.n)), part.mu, part.L


def coarse(part, grad, rng):
    """The gradient at a point that is rounded to few digits."""
    grain = 10.0 ** rng.uniform(-8, -2) * np.linalg.norm(part.point)
    return (lambda x: grad(grain * np.round(x / grain))), part.mu, part.L


def drifting(part, grad, rng):
    calls, level = [0], 10.0 ** rng.uniform(-8, -3)
    size = np.linalg.norm(grad(part.point)) + part.L * np.linalg.norm(part.point)

    def later(x):
        calls[0] += 1
        return grad(x) + level * size * (calls[0] // 40)

    return later, part.mu, part.L


WRONG_CLAIMS = {f.__name__: f for f in (large_mu, small_L, twisted, one_sign, noisy, coarse, drifting)}
CLAIMED_KINDS = ("quadratic", "saturated", "one_sided", "positive")  # kinds of functions that get wrong claims


def campaign(count):
    """Print how the runs end, by kind."""
    for kind in KINDS:
        ends = Counter()
        for seed in range(count):
            end, words = Case(seed, kind).outcome()
            ends[end] += 1
            if end in ("reported", "FALSE", "doubted") or end.endswith("Error"):
                print("   ", kind, seed, end, words[:200], flush=True)
        print(f"true {kind:18}", dict(ends), flush=True)
    for name, claim in WRONG_CLAIMS.items():
        ends = Counter()
        for seed in range(count):
            kind = CLAIMED_KINDS[seed % len(CLAIMED_KINDS)]
            end, words = Case(seed, kind, claim).outcome()
            ends[end] += 1
            if end == "FALSE":
                print("   ", name, kind, seed, end, words[:200], flush=True)
        print(f"wrong {name:18}", dict(ends), flush=True)


if __name__ == "__main__":
    campaign(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
