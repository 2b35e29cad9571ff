"""Problems about which something that the caller says is wrong; the solution of the problem that was meant is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

import saddlepoint as sp
from saddlepoint.solving.checkpoint.file import Content, read, write

from . import functions
from .draws import Case, between, function, made, matrix, quadratic, separable, sizes
from .exact import Exact
from .functions import Part
from .numbers import Array
from .presented import Product

LIMIT = 1 << 30  # bytes of a checkpoint


def meant(rng: Generator, most: int = 10) -> tuple[Part, Part, Array]:
    """The problem that the caller means."""
    m, n = sizes(rng, most)
    return function(rng, m), function(rng, n), matrix(rng, m, n, between(rng, -2, 1.5))


def warm(case: Case, rng: Generator) -> Case:
    """The case, sometimes with a start where a first-order method has stopped, on the problem that was meant."""
    if rng.random() < 0.5:
        true = sp.Saddle(case.exact.g.own().smooth, case.exact.h.own().smooth, case.exact.dense)
        method = str(rng.choice(["extragradient", "condat-vu", "lpd-gs"]))
        try:
            result = sp.solve(true, method=method, max_calls=int(rng.integers(20, 300)), tol=5e-324)
            case.start = np.array(result.x), np.array(result.y)
        except (sp.AssumptionError, sp.ProblemError):
            pass
    return case


def mu(rng: Generator) -> Case:
    """A strong convexity that is too large, by a factor of 1.3 to 1000."""
    g, h, A = meant(rng)
    factor = between(rng, 0.1, 3)
    which = rng.integers(3)
    parts = []
    for part, wrong in ((g, which != 1), (h, which != 0)):
        f = part.smooth
        parts.append(part.own(mu=min(factor * f.mu, f.L)) if wrong else part.own())
    return warm(made(parts[0], parts[1], A, claim="mu"), rng)


def mu_slow(rng: Generator) -> Case:
    """A mu ten times too large, and a start on the slowest direction: only along it the curvature is small."""
    m = int(rng.integers(2, 12))
    spectrum = np.geomspace(between(rng, -5, -1), 1.0, m)
    base = functions.Quadratic(spectrum, rng.standard_normal(m))
    factor = min(between(rng, 0.5, 2), 1.0 / spectrum[0])
    g = base.own(mu=factor * spectrum[0])
    h = quadratic(rng, int(rng.integers(1, 4)), 3.0)
    A = matrix(rng, m, len(h.linear), 0.01)  # type: ignore[attr-defined]
    case = made(g, h, A, claim="mu")
    xs, ys, _ = case.exact.solution
    x = xs.astype(float)
    x[0] += between(rng, -8, 0)
    case.start = x, ys.astype(float)
    return case


def mu_of_quadratic(rng: Generator) -> Case:
    """A ready quadratic function with a mu that the caller gives, too large."""
    m, n = sizes(rng, 8)
    base, h = quadratic(rng, m, between(rng, 0.5, 3)), quadratic(rng, n)
    factor = min(between(rng, 0.1, 2), base.smooth.L / base.smooth.mu)
    smooth = sp.Quadratic(base.P, base.b, mu=factor * base.smooth.mu)  # type: ignore[attr-defined]
    return warm(made(functions.As(base, smooth), h, matrix(rng, m, n, between(rng, -2, 1)), claim="mu"), rng)


def mu_in_domain(rng: Generator) -> Case:
    """A mu that is too large, of a gradient that is NaN or raises where a coordinate is negative."""
    m, n = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    spectrum = np.geomspace(between(rng, -3, -1), 1.0, m)
    raises = rng.random() < 0.5
    base = functions.Quadratic(spectrum, -spectrum * (1.0 + rng.random(m)))

    def grad(x: Array) -> Array:
        if (x <= 0.0).any():
            if raises:
                raise FloatingPointError("the function is defined for positive x")
            return np.full(x.shape, np.nan)
        return base.floats(x)

    factor = min(between(rng, 0.5, 2), 0.999 / spectrum[0]) if m > 1 else between(rng, 0.3, 1.5)
    g = base.own(grad=grad, mu=factor * spectrum[0], L=max(1.0, factor * spectrum[0]))
    h = quadratic(rng, n, 3.0, 1.0, 0.01)
    case = made(g, h, 0.001 * matrix(rng, m, n, 1.0), claim="mu", own_errors=(FloatingPointError,))
    case.start = np.ones(m), np.zeros(n)
    return case


def smoothness(rng: Generator) -> Case:
    """An L that is too small."""
    g, h, A = meant(rng)
    f = g.smooth
    return made(g.own(L=max(f.L / between(rng, 0.1, 2), f.mu)), h.own(), A, claim="L")


class Wrong(Product):
    """An operator whose transpose is another matrix."""

    def __init__(self, A: Array, At: Array) -> None:
        super().__init__(A)
        self.At = At

    @property
    def T(self) -> Wrong:
        """What is said to be the transpose."""
        return Wrong(self.At, self.A)


def transpose(rng: Generator) -> Case:
    """A product with A' that is wrong in one entry, one sign, one row, or by a factor."""
    g, h, A = meant(rng)
    At = A.T.copy()
    i, j = rng.integers(At.shape[0]), rng.integers(At.shape[1])
    match rng.integers(4):
        case 0:
            At[i, j] += between(rng, -5, 0) * np.abs(A).max()
        case 1:
            At[i, j] *= -1.0
        case 2:
            At[i] = 0.0
        case _:
            At *= 1.0 + between(rng, -5, 0)
    if rng.random() < 0.5:
        g, h = g.own(), h.own()
    exact = Exact(g, h, A)
    true = sp.Saddle(g.smooth, h.smooth, A)
    case = Case(true, exact, claim="A'")

    def build() -> sp.Saddle:
        return sp.Saddle(g.smooth, h.smooth, Wrong(A, At))

    case.build = build
    return case


def gradient(rng: Generator) -> Case:
    """Something that is not the gradient: a sign, an asymmetric Jacobian, a function that is not convex, a buffer."""
    g, h, A = meant(rng)
    n = A.shape[0]
    k = int(rng.integers(n))
    L = g.smooth.L
    pick = int(rng.integers(5))
    if pick == 1 and n == 1:
        pick = 0
    K = rng.standard_normal((n, n))
    K = K - K.T
    K *= between(rng, -2.5, 0) * L / max(float(np.linalg.norm(K, 2)), 1e-300)
    v = rng.standard_normal(n)
    v /= np.linalg.norm(v)
    size = between(rng, 0.1, 1)
    buffer = np.zeros(n)

    def wrong(x: Array) -> Array:
        p = np.array(g.floats(x))
        match pick:
            case 0:
                p[k] *= -1.0
            case 1:
                p += K @ x
            case 2:
                p -= size * L * (v @ x) * v
            case 3:
                buffer[:] = p
                return buffer
            case _:
                x *= 1.0 - 1e-3
        return p

    return made(g.own(grad=wrong), h.own() if rng.random() < 0.5 else h, A, claim="gradient")


def noise(rng: Generator) -> Case:
    """Gradients with errors of 1e-9 to 1e-4, random or not, relative or not, said to be exact or not said."""
    g, h, A = meant(rng)
    level, relative, drawn = between(rng, -9, -4), rng.random() < 0.5, rng.random() < 0.5
    own = np.random.default_rng(int(rng.integers(2**31)))

    def noisy(x: Array) -> Array:
        p = g.floats(x)
        e = own.standard_normal(p.size) if drawn else np.sin(1e13 * x + 1e11 * np.roll(x, 1) + np.arange(p.size))
        return p + level * (p * e if relative else e * max(1.0, g.smooth.L))

    said = {} if rng.random() < 0.7 else {"accuracy": float(rng.choice([1e-16, 1e-12]))}
    return made(g.own(grad=noisy, **said), h, A, claim="noise", noisy=True)


# Steps of differences up to a factor, as functions of the point.
STEPS: tuple[Callable[[Array], Array], ...] = (
    np.ones_like,
    np.abs,
    lambda x: np.maximum(1.0, np.abs(x)),
    lambda x: 1.0 + np.abs(x),
    lambda x: np.full(x.size, 1.0 + np.linalg.norm(x)),
    lambda x: np.full(x.size, np.linalg.norm(x)),
    lambda x: np.hypot(1.0, x),
    lambda x: np.copysign(np.sqrt(1.0 + np.abs(x)), x),
    lambda x: 2.0 ** np.arange(x.size) / (1.0 + np.arange(x.size) ** 2),
)


def differences(rng: Generator) -> Case:
    """Gradients by forward or central differences of values, with steps of several kinds; no value is given."""
    g, h, A = meant(rng, 6)
    step, is_forward, usual = between(rng, -9, -3), rng.random() < 0.7, STEPS[rng.integers(len(STEPS))]
    as_taken, share = rng.random() < 0.3, float(rng.choice([1.0, 1.0, 0.5]))
    value: Any = g.smooth.value

    def quotients(x: Array) -> Array:
        sizes = step * usual(x)
        sizes = np.where(sizes != 0.0, sizes, step)
        ends = x + np.diag(sizes)
        starts = np.tile(x, (x.size, 1)) if is_forward else x - np.diag(sizes)
        taken = np.diag(ends - starts) if as_taken else sizes if is_forward else 2.0 * sizes
        found = np.array([value(end) - value(start) for end, start in zip(ends, starts, strict=True)]) / taken
        return found if share == 1.0 else share * found + (1.0 - share) * g.floats(x)  # one of two parts is exact

    return made(g.own(grad=quotients), h, A, claim="differences", noisy=True)


def rounded(rng: Generator) -> Case:
    """Gradients that are constant in small regions: rounded coarsely, or kept in a cache of rounded points."""
    g, h, A = meant(rng, 8)
    grain, pick = between(rng, -9, -0.5), int(rng.integers(3))
    kept: dict[bytes, Array] = {}

    def coarse(x: Array) -> Array:
        cells = np.round(x / grain)
        match pick:
            case 0:
                return g.floats(grain * cells)
            case 1:
                unit = grain * max(1.0, g.smooth.L)
                return unit * np.round(g.floats(x) / unit)
            case _:
                return np.array(kept.setdefault(cells.tobytes(), g.floats(x)))

    return made(g.own(grad=coarse), h, A, claim="noise", noisy=True)


def memory(rng: Generator) -> Case:
    """Gradients that depend on the calls before: their error drifts away from 0, or they lag behind the point."""
    g, h, A = meant(rng, 8)
    level, pace, drifts = between(rng, -9, -2), between(rng, 0, 3.5), rng.random() < 0.5
    direction = max(1.0, g.smooth.L) * rng.standard_normal(A.shape[0])

    def build() -> sp.Saddle:
        state: dict[str, Any] = {"calls": 0, "last": np.zeros(A.shape[0])}

        def remembering(x: Array) -> Array:
            state["calls"] += 1
            behind, state["last"] = state["last"] - x, np.array(x)
            if drifts:
                return g.floats(x) + level * np.sin(state["calls"] / pace) * direction
            return g.floats(x + level * behind)

        return sp.Saddle(g.own(grad=remembering).smooth, h.smooth, A)

    case = made(g.own(), h, A, claim="memory", noisy=True)
    case.build = build  # each run begins with an empty memory
    return case


def callbacks(rng: Generator) -> Case:
    """A callback that writes into the point, as far as it can."""
    g, h, A = meant(rng)
    if rng.random() < 0.5:
        g, h = g.own(), h.own()

    def write_into_point(result: Any) -> None:
        for v in (result.x, result.y):
            if isinstance(v, np.ndarray):
                v.flags.writeable = True
                v[:] = 0.5 * v + 1.0

    return made(g, h, A, claim="state", options={"callback": write_into_point})


def prox(rng: Generator) -> Case:
    """A prox, Hessian or claim of linearity that contradicts the gradient."""
    m, n = sizes(rng, 8)
    g, h = separable(rng, m, between(rng, -2, 0)), separable(rng, n, between(rng, -2, 0))
    f = g.smooth
    factor = between(rng, -1, 1)
    pick = rng.integers(3)
    if pick == 0 and f.has_prox:
        wrong = f.replace(prox=lambda v, t: f.prox(v, factor * t), trusted=False)
    elif pick == 1 and f.hessian is not None:
        wrong = f.replace(hessian=lambda x: factor * f.hessian(x), trusted=False)
    else:
        wrong = sp.Smooth(f.grad, mu=f.mu, L=f.L, quadratic=True)
        h = quadratic(rng, n)
    return made(functions.As(g, wrong), h, matrix(rng, m, n, between(rng, -1, 1)), claim="prox")


FALSE_CLAIMS: dict[str, Callable[[Generator], Case]] = {
    "false claim: mu": mu,
    "false claim: mu, slow start": mu_slow,
    "false claim: mu of Quadratic": mu_of_quadratic,
    "false claim: mu in a domain": mu_in_domain,
    "false claim: L": smoothness,
    "false claim: A'": transpose,
    "false claim: gradient": gradient,
    "false claim: noise": noise,
    "false claim: rounded gradients": rounded,
    "false claim: differences of values": differences,
    "false claim: memory": memory,
    "false claim: callback": callbacks,
    "false claim: prox": prox,
}


# -- forged files ------------------------------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all numbers, words and empty parts of something that JSON knows."""
    if isinstance(value, dict) and value:
        return [leaf for key, part in value.items() for leaf in leaves(part, (*path, key))]
    if isinstance(value, list) and value:
        return [leaf for k, part in enumerate(value) for leaf in leaves(part, (*path, k))]
    return [path]


def forge(path: Path, rng: Generator) -> str:
    """Change a few values of a checkpoint, and make its sum fit again; what was changed, in words."""
    values, arrays = read(path, LIMIT)
    values = json.loads(json.dumps(values))
    run = {key: values[key] for key in ("run", "method_state", "waiting")}
    found = leaves(run)
    changed = []
    for _ in range(int(rng.integers(1, 4))):
        if arrays and rng.random() < 0.3:
            k = int(rng.integers(len(arrays)))
            array = np.array(arrays[k])
            if array.dtype.kind == "f" and array.size:
                array.reshape(-1)[int(rng.integers(array.size))] = rng.choice([0.0, 1e9, -1.0, np.nan, 1e-300])
                arrays[k] = array
                changed.append(f"array {k}")
            continue
        leaf = found[int(rng.integers(len(found)))]
        at = run
        for key in leaf[:-1]:
            at = at[key]
        old = at[leaf[-1]]
        if isinstance(old, bool):
            new: Any = not old
        elif isinstance(old, int):
            new = int(rng.choice([0, 1, -1, 10**6, old + 1]))
        elif isinstance(old, float):
            new = float(rng.choice([0.0, 1e9, 1e-9, -1.0, 1e300]))
        elif isinstance(old, str):
            new = str(rng.choice(["", "x", "g", "inf", "1e9", "mu"]))
        else:
            new = [None, 0, 1.0, "", [], {}, True][int(rng.integers(7))]
        at[leaf[-1]] = new
        changed.append(f"{'.'.join(map(str, leaf))}: {old!r} -> {new!r}"[:120])
    values.update(run)
    write(path, Content(values, arrays), LIMIT)
    return "; ".join(changed)
