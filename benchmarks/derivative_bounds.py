"""Proven bounds on the errors of derivatives beside the truth: are they above it, and how far?

    python benchmarks/derivative_bounds.py [--draws 1000] [--seed N] [--write]

Every draw is a problem with smooth functions and simple terms of both players, some with ill-conditioned data, data of
large or small scale, float32, or a bound that is next to an entry of the solution. It is solved to a tolerance that is
drawn too. The truth is computed in 50 digits: Newton's method on the face of the solution, whose conditions (signs of
multipliers, entries within their bounds) are checked in these digits, then the linear system there.
"""

from __future__ import annotations

import argparse
import time
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np

import saddlepoint as sp

PAGE = Path(__file__).parent / "results" / "derivative_bounds.md"
FUNCTIONS = ("quadratic", "logistic", "log-cosh", "log-sum-exp", "own")
TERMS = ("none", "l1", "box", "simplex", "hyperplane", "ball", "norm", "l1 and box")
DIGITS = 50  # decimal digits of the truth

number: Any = np.frompyfunc(Decimal, 1, 1)
exp: Any = np.frompyfunc(Decimal.exp, 1, 1)
ZERO: Any = Decimal(0)
ONE: Any = Decimal(1)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent of the entries."""
    e = exp(2 * x)
    return (e - 1) / (e + 1)


def zeros(*shape: int) -> Any:
    """An array of zeros in many digits."""
    return number(np.zeros(shape))


class Smooth:
    """A function of the package, and its gradient and Hessian in many digits."""

    def __init__(self, kind: str, n: int, rng: np.random.Generator, dtype: Any, scale: float) -> None:
        rows = int(rng.integers(1, 12))
        spread = 10.0 ** rng.uniform(-1.5, 1.5, n) if rng.random() < 0.3 else np.ones(n)
        D = (scale * spread * rng.standard_normal((rows, n))).astype(dtype)
        t = rng.standard_normal(rows).astype(dtype)
        l2 = float(np.float32(10.0 ** rng.uniform(-3.0, 0.5)))
        labels = np.sign(rng.standard_normal(rows)).astype(dtype)
        self.kind, self.l2, self.tau = kind, number(l2), number(0.5)
        self.D, self.t, self.labels = (number(part.astype(np.float64)) for part in (D, t, labels))
        if kind == "quadratic":
            P = (D.T @ D + np.asarray(l2, dtype) * np.eye(n, dtype=dtype)).astype(dtype)
            P, b = 0.5 * (P + P.T), (scale * rng.standard_normal(n)).astype(dtype)
            self.P, self.b = number(P.astype(np.float64)), number(b.astype(np.float64))
            self.f: Any = sp.Quadratic(P, b)
        elif kind == "logistic":
            self.f = sp.Logistic(D, labels, l2)
        elif kind == "log-cosh":
            self.f = sp.LogCosh(D, t, l2)
        elif kind == "log-sum-exp":
            self.f = sp.LogSumExp(D, t, l2, tau=0.5)
        else:
            c = np.asarray(l2, dtype)
            self.f = sp.Smooth(
                lambda x: c * x + np.tanh(x),
                mu=l2,
                L=1.0 + l2,
                hvp=lambda x, u: c * u + (1.0 - np.tanh(x) ** 2) * u,
                hessian_lipschitz=0.77,
                accuracy=1e-5 if dtype is np.float32 else 1e-14,
            )

    def at(self, x: Any) -> tuple[Any, Any]:
        """The gradient and the Hessian at x."""
        n = len(x)
        eye = number(np.eye(n))
        if self.kind == "quadratic":
            return self.P @ x + self.b, self.P
        if self.kind == "own":
            s = tanh(x)
            return self.l2 * x + s, (self.l2 + 1 - s * s)[:, None] * eye
        r = self.D @ x - (0 if self.kind == "logistic" else self.t)
        rows = len(r)
        if self.kind == "log-sum-exp":
            p = exp((r - max(r)) / self.tau)
            p = p / p.sum()
            mean = self.D.T @ p
            H = (self.D.T * p) @ self.D - np.outer(mean, mean)
            return mean + self.l2 * x, H / self.tau + self.l2 * eye
        if self.kind == "logistic":
            s = 1 / (1 + exp(self.labels * r))
            slope, curve = -self.labels * s, s * (1 - s)
        else:
            slope = tanh(r)
            curve = 1 - slope * slope
        return self.D.T @ slope / rows + self.l2 * x, (self.D.T * curve) @ self.D / rows + self.l2 * eye


class Term:
    """A simple term, and its equations on the face of a solution in many digits."""

    def __init__(self, kind: str, n: int, rng: np.random.Generator) -> None:
        self.kind, self.n = kind, n
        self.size = float(np.float32(10.0 ** rng.uniform(-1.5, 0.0)))
        self.other = float(np.float32(10.0 ** rng.uniform(-1.5, 0.0)))
        self.lower, self.upper = -self.size * np.ones(n), self.size * np.ones(n)
        self.a = np.float32(rng.standard_normal(n)).astype(np.float64)

    def move_next_to(self, x: Any, gap: float) -> None:
        """Let a bound be next to an entry of x."""
        i = int(np.argmax(np.abs(x)))
        if self.kind == "box" and x[i] != 0.0:
            self.upper[i] = float(np.float32(abs(x[i]) * (1.0 + gap)))
            self.lower[i] = -self.upper[i]
        if self.kind == "ball" and np.linalg.norm(x) > 0.0:
            self.size = float(np.float32(np.linalg.norm(x) * (1.0 + gap)))

    @property
    def p(self) -> Any:
        """The term of the package; None if there is none."""
        choices: dict[str, Any] = {
            "none": lambda: None,
            "l1": lambda: sp.L1(0.3 * self.other),
            "box": lambda: sp.Box(self.lower, self.upper),
            "l1 and box": lambda: sp.L1(0.3 * self.other) + sp.Box(self.lower, self.upper),
            "simplex": lambda: sp.Simplex(self.size),
            "hyperplane": lambda: sp.Hyperplane(self.a, self.size),
            "ball": lambda: sp.Ball(self.size),
            "norm": lambda: sp.Norm2(0.3 * self.other),
        }
        return choices[self.kind]()

    def face(self, x: np.ndarray) -> Any:
        """The face of an accurate point: a pattern that ``System`` takes for that of the solution, and verifies."""
        near = 1e-9 * (1.0 + np.abs(x))
        if self.kind in ("l1", "box", "l1 and box"):
            zero = (np.abs(x) <= near) & ("l1" in self.kind)
            low, high = ((np.abs(x - end) <= near) & ("box" in self.kind) for end in (self.lower, self.upper))
            return np.where(zero, 0, np.where(low, -2, np.where(high, 2, 1)))
        if self.kind == "simplex":
            return x > near
        if self.kind == "ball":
            return bool(np.linalg.norm(x) >= self.size * (1.0 - 1e-9))
        if self.kind == "norm":
            return bool(np.linalg.norm(x) > 1e-9)
        return None


class UndecidedError(Exception):
    """The pattern is not that of the solution, or the solution is at a kink."""


class Side:
    """One player: unknowns (x, multiplier), their equations, and the checks of the face."""

    def __init__(self, smooth: Smooth, term: Term, x: np.ndarray) -> None:
        self.smooth, self.term, self.n = smooth, term, len(x)
        self.face = term.face(x)
        kind = term.kind
        on_plane = kind in ("simplex", "hyperplane") or (kind == "ball" and self.face)
        self.extra = 1 if on_plane else 0
        self.weight = number(0.3 * term.other)

    def equations(self, z: Any, pull: Any) -> tuple[Any, Any, Any]:
        """Residuals, their Jacobian with respect to z = (x, multiplier), and which rows depend on the other player.

        Args:
            z: the unknowns.
            pull: A y, or -A' x.
        """
        n, kind, face = self.n, self.term.kind, self.face
        x = z[:n]
        slope, H = self.smooth.at(x)
        w = slope + pull
        R, J = np.array(list(w) + [ZERO] * self.extra), zeros(n + self.extra, n + self.extra)
        J[:n, :n] = H
        rows = np.ones(n, dtype=bool)
        fixed: dict[int, Any] = {}
        if kind in ("l1", "box", "l1 and box"):
            for i in range(n):
                if face[i] == 1:
                    R[i] += (self.weight if x[i] > 0 else -self.weight) if "l1" in kind else 0
                else:
                    fixed[i] = {0: ZERO, -2: number(self.term.lower)[i], 2: number(self.term.upper)[i]}[int(face[i])]
        if kind in ("simplex", "hyperplane"):
            a = number(np.ones(n)) if kind == "simplex" else number(self.term.a)
            R[:n] = R[:n] + z[n] * a
            R[n] = sum(a[i] * x[i] for i in range(n)) - number(self.term.size)
            J[:n, n], J[n, :n] = a, a
            if kind == "simplex":
                fixed = {i: ZERO for i in range(n) if not face[i]}
        if kind == "ball" and face:
            R[:n] = R[:n] + z[n] * x
            R[n] = (x @ x - number(self.term.size) ** 2) / 2
            J[:n, :n] = J[:n, :n] + z[n] * number(np.eye(n))
            J[:n, n], J[n, :n] = x, x
        if kind == "norm":
            if face:
                size = (x @ x).sqrt()
                R[:n] = R[:n] + self.weight * x / size
                J[:n, :n] = J[:n, :n] + self.weight / size * (number(np.eye(n)) - np.outer(x, x) / size**2)
            else:
                fixed = dict.fromkeys(range(n), ZERO)
        for i, value in fixed.items():
            R[i], rows[i] = x[i] - value, False
            J[i, :] = zeros(n + self.extra)
            J[i, i] = ONE
        self.fixed = fixed
        return R, J, rows

    def verify(self, z: Any, pull: Any) -> None:
        """Raise ``UndecidedError`` unless the conditions of the face hold strictly."""
        n, kind, face, small = self.n, self.term.kind, self.face, Decimal(10) ** -25
        x, w = z[:n], self.smooth.at(z[:n])[0] + pull
        good = True
        if kind in ("l1", "box", "l1 and box"):
            c = self.weight if "l1" in kind else ZERO
            low, high = number(self.term.lower), number(self.term.upper)
            for i in range(n):
                inside = "box" not in kind or low[i] + small < x[i] < high[i] - small
                if face[i] == 1:
                    good &= bool(inside and ("l1" not in kind or abs(x[i]) > small))
                elif face[i] == 0:
                    good &= bool(abs(w[i]) < c - small and inside)
                else:
                    good &= bool(-w[i] * (1 if face[i] == 2 else -1) > c + small)
        if kind == "simplex":
            good &= all(x[i] > small if face[i] else w[i] + z[n] > small for i in range(n))
        if kind == "ball":
            good &= bool(z[n] > small if face else x @ x < number(self.term.size) ** 2 - small)
        if kind == "norm":
            good &= bool(x @ x > small if face else w @ w < self.weight**2 - small)
        if not good:
            raise UndecidedError


class Problem:
    """A problem that is drawn, as one of the package and in many digits."""

    def __init__(self, rng: np.random.Generator) -> None:
        m, n = (int(k) for k in rng.integers(1, 6, 2))
        dtype: Any = np.float32 if rng.random() < 0.2 else np.float64
        scale = float(10.0 ** rng.choice([0, 0, 0, -2, 2]))
        self.kinds = [str(rng.choice(FUNCTIONS)) for _ in range(2)]
        self.names = [str(rng.choice(TERMS)) for _ in range(2)]
        if dtype is np.float32:
            self.kinds = ["log-cosh" if kind in ("quadratic", "own") else kind for kind in self.kinds]
        self.smooth = [Smooth(kind, size, rng, dtype, scale) for kind, size in zip(self.kinds, (m, n), strict=True)]
        self.terms = [Term(name, size, rng) for name, size in zip(self.names, (m, n), strict=True)]
        self.A = (10.0 ** rng.uniform(-1.0, 1.0) * rng.standard_normal((m, n))).astype(dtype)
        self.dA = rng.standard_normal((m, n)).astype(dtype)
        self.v = [rng.standard_normal(size).astype(dtype) for size in (m, n)]
        self.dtype, self.scale = dtype, scale
        if rng.random() < 0.4:
            point = sp.solve(self.f, tol=1e-8, max_calls=3000)
            for term, x in zip(self.terms, (point.x, point.y), strict=True):
                term.move_next_to(x, float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-7.0, -1.0)))

    @property
    def f(self) -> sp.Saddle:
        """The problem of the package."""
        g, h = (s.f if t.p is None else s.f + t.p for s, t in zip(self.smooth, self.terms, strict=True))
        return sp.Saddle(g, h, self.A)

    def truth(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any, Any]:
        """The solution, the Jacobian of its equations, and the two players, from an accurate point."""
        sides = [Side(s, t, z) for s, t, z in zip(self.smooth, self.terms, (x, y), strict=True)]
        A = number(self.A.astype(np.float64))
        sizes = [side.n + side.extra for side in sides]
        z = [
            np.concatenate([number(p.astype(np.float64)), zeros(side.extra)])
            for p, side in zip((x, y), sides, strict=True)
        ]
        m, n = sides[0].n, sides[1].n
        for side, part, pull in zip(sides, z, (A @ z[1][:n], -(A.T @ z[0][:m])), strict=True):
            if side.extra:  # the multiplier by least squares
                R, J, rows = side.equations(part, pull)
                a = np.where(rows, J[: side.n, side.n], ZERO)
                part[side.n] = -(a @ R[: side.n]) / (a @ a)
        for _ in range(12):
            pulls = A @ z[1][:n], -(A.T @ z[0][:m])
            parts = [side.equations(part, pull) for side, part, pull in zip(sides, z, pulls, strict=True)]
            K = zeros(sum(sizes), sum(sizes))
            K[: sizes[0], : sizes[0]], K[sizes[0] :, sizes[0] :] = parts[0][1], parts[1][1]
            K[:m, sizes[0] : sizes[0] + n] = np.where(parts[0][2][:, None], A, ZERO)
            K[sizes[0] : sizes[0] + n, :m] = np.where(parts[1][2][:, None], -A.T, ZERO)
            R = np.concatenate([parts[0][0], parts[1][0]])
            size = max(abs(r) for r in R)
            if size < Decimal(10) ** (10 - DIGITS):
                break
            step = solution(K, R)
            z = [z[0] - step[: sizes[0]], z[1] - step[sizes[0] :]]
        else:
            raise UndecidedError
        for side, part, pull in zip(sides, z, pulls, strict=True):
            side.verify(part, pull)
        return z, K, (sides, sizes)


def solution(K: Any, b: Any) -> Any:
    """The solution of a linear system in many digits."""
    M, n = np.column_stack([K, b]), len(b)
    for k in range(n):
        pivot = k + max(range(n - k), key=lambda i: abs(M[k + i, k]))
        M[[k, pivot]] = M[[pivot, k]]
        for i in range(k + 1, n):
            if M[i, k] != 0:
                M[i, k:] = M[i, k:] - M[i, k] / M[k, k] * M[k, k:]
    x = zeros(n)
    for k in reversed(range(n)):
        x[k] = (M[k, n] - M[k, k + 1 : n] @ x[k + 1 :]) / M[k, k] if k + 1 < n else M[k, n] / M[k, k]
    return x


def distance(a: Any, b: Any) -> float:
    """|a - b| in many digits, as a number of float64."""
    difference = number(np.asarray(a, dtype=np.float64).reshape(-1)) - np.asarray(b).reshape(-1)
    return float(sum((d * d for d in difference), ZERO).sqrt())


def judge(seed: int) -> dict[str, Any]:
    """One draw: the errors of a vjp and of a jvp, and their bounds."""
    with localcontext() as context:
        context.prec = DIGITS
        return _judge(seed)


def _judge(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    problem = Problem(rng)
    f = problem.f
    found: dict[str, Any] = {"seed": seed, "kinds": problem.kinds, "terms": problem.names}
    sharp = sp.solve(f, tol=1e-11 if problem.dtype is np.float64 else 1e-4, max_calls=3000)
    tol = float(10.0 ** rng.uniform(-8.0, -1.0))
    rough = sp.solve(f, tol=tol, max_calls=3000)
    try:
        z, K, (sides, sizes) = problem.truth(sharp.x, sharp.y)
    except (UndecidedError, ArithmeticError):
        return found | {"skipped": True}
    m, n = sides[0].n, sides[1].n
    dA = number(problem.dA.astype(np.float64))
    x, y = z[0][:m], z[1][:n]
    # The transposed system. A fixed entry has the equation x = const, whose multiplier balances that entry of v.
    v = np.concatenate(
        [np.concatenate([number(p.astype(np.float64)), zeros(s.extra)]) for p, s in zip(problem.v, sides, strict=True)]
    )
    lam = solution(K.T, v)
    u = [lam[: sizes[0]][:m], lam[sizes[0] :][:n]]
    for side, part in zip(sides, u, strict=True):
        for i in side.fixed:
            part[i] = ZERO
    change = [dA @ y, -(dA.T @ x)]
    for side, part in zip(sides, change, strict=True):
        for i in side.fixed:
            part[i] = ZERO
    right = np.concatenate([np.concatenate([part, zeros(s.extra)]) for part, s in zip(change, sides, strict=True)])
    dz = solution(K, -right)
    for result in (rough, sharp):
        if not np.isfinite(result.certificate.distance):
            continue
        vjp, jvp = result.vjp(*problem.v), result.jvp(A=problem.dA)
        exact_A = np.outer(x, u[1]) - np.outer(u[0], y)
        for name, error, bound in (
            ("vjp", distance(vjp.ux, u[0]) + distance(vjp.uy, u[1]), vjp.bound),
            ("A", distance(vjp.A, exact_A), vjp.bound_A),
            ("jvp", distance(jvp.x, dz[: sizes[0]][:m]) + distance(jvp.y, dz[sizes[0] :][:n]), jvp.bound),
        ):
            found.setdefault("pairs", []).append((name, error, bound))
    return found


class Row:
    """Counts for one simple term."""

    def __init__(self) -> None:
        self.problems = self.unknown = self.false = 0
        self.ratios: list[float] = []

    def add(self, pairs: list[tuple[str, float, float]]) -> None:
        """Add the errors and bounds of a problem."""
        self.problems += 1
        for _, error, bound in pairs:
            self.unknown += bound == np.inf
            self.false += error > bound
            if error > 0.0 and bound < np.inf:
                self.ratios.append(bound / error)

    def __str__(self) -> str:
        least, middle = (f"{q(self.ratios):.2g}" if self.ratios else "" for q in (np.min, np.median))
        return f"{self.problems} | {len(self.ratios)} | {self.unknown} | {self.false} | {least} | {middle}"


def main() -> None:
    """Draw, judge, print the page; write it if asked to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = {name: Row() for name in TERMS}
    skipped = false = 0
    for seed in range(options.seed, options.seed + options.draws):
        found = judge(seed)
        skipped += "skipped" in found
        for name in set(found["terms"]) if "skipped" not in found else ():
            rows[name].add(found.get("pairs", []))
        for what, error, bound in found.get("pairs", []):
            if error > bound:
                false += 1
                print(f"false: seed {seed}, {found}: {what} {error} > {bound}", flush=True)
    table = "\n".join(f"| {name} | {row} |" for name, row in rows.items())
    text = TEXT.format(seed=options.seed, draws=options.draws, skipped=skipped, false=false, table=table)
    print(text)
    if options.write:
        PAGE.write_text(text)


TEXT = """# Bounds on the errors of derivatives, beside the truth

By `python benchmarks/derivative_bounds.py --write`: {draws} problems, drawn afresh with the seeds from {seed} on; the
drawing rule is in the file. Functions of both players are quadratic, logistic, log-cosh, log-sum-exp or given by a
gradient and `hvp`; a part of them has ill-conditioned data, data of scale 0.01 or 100, or float32, or a bound that
differs from an entry of the solution by 1e-7 to 0.1 of it. Each problem is solved twice, to a tolerance between 1e-8
and 0.1 and to a small one. For both the adjoint vectors, the gradient with respect to A and the derivative along a
change of A are compared with those at the solution in 50 digits.

**False bounds: {false}.** {skipped} problems were left out, because the face of their solution could not be verified.

| term | problems | finite bounds | infinite bounds | false bounds | least bound/error | median bound/error |
|---|---|---|---|---|---|---|
{table}

A problem with different terms of its players is counted in both lines. Finite bounds are counted where the error is not
exactly 0. An infinite bound says that a coordinate is undecided at this tolerance, and `why` says so.
"""


if __name__ == "__main__":
    main()
