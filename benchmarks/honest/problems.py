"""True problems of many kinds, drawn at random, with their solutions in high precision.

A kind is a function of a random generator that returns a ``Case``. What is drawn is a rule (sizes, scales, functions),
so that another seed gives other problems of the same kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from scipy import sparse

import saddlepoint as sp

from . import functions, losses, sums
from .draws import DELTAS, Case, between, function, made, matrix, quadratic, risk, separable, sizes
from .exact import Exact
from .functions import Part
from .numbers import Array
from .on_jax import jax, jax_mesh
from .presented import bent, combinations, domains, flat_direction, operators, together


def ordinary(rng: Generator) -> Case:
    """Ready functions with condition numbers up to a thousand."""
    m, n = sizes(rng)
    return made(function(rng, m), function(rng, n), matrix(rng, m, n, between(rng, -2, 1.5)))


def own(rng: Generator) -> Case:
    """The same functions, written by the caller, with true constants."""
    m, n = sizes(rng)
    g, h = function(rng, m).own(), function(rng, n)
    return made(g, h.own() if rng.random() < 0.7 else h, matrix(rng, m, n, between(rng, -2, 1.5)))


def kinks(rng: Generator) -> Case:
    """Huber, hinge and group norms, own or ready, whose solution is exactly at a kink."""
    m, n = sizes(rng, 8)
    A = np.round(matrix(rng, m, n, between(rng, -0.5, 0.5)) * 256) / 256
    x, y = (np.round(rng.standard_normal(k) * 16) / 16 for k in (m, n))
    delta, l2 = float(rng.choice([0.125, 0.5, 1.0])), float(2.0 ** -rng.integers(0, 8))
    sign_x, sign_y = rng.choice([-1.0, 0.0, 1.0], m), rng.choice([-1.0, 1.0], n)
    # x_i - t_i is delta, -delta or 0 at the solution: the linear terms are chosen so that the residual is zero there.
    parts = []
    for point, sign, product in ((x, sign_x, A @ y), (y, sign_y, -(A.T @ x))):
        k = point.size
        t = point - delta * sign
        base = functions.Risk(losses.huber(delta), sp.Huber(None, t, l2, delta), None, t, l2, mean=False, size=k)
        slope = delta * sign + l2 * point + product
        parts.append(sums.Total([1.0, 1.0], [base, functions.Quadratic(np.full(k, 0.0), -slope)]))
    for part in parts:
        part.parts[1].mu = 0.0
    g, h = parts[0], parts[1]
    if rng.random() < 0.6:
        return made(g.own(), h.own() if rng.random() < 0.5 else h, A)
    return made(g, h, A)


def saturation(rng: Generator) -> Case:
    """Exponentials of large arguments, and hyperbolic tangents far out."""
    m, n = sizes(rng, 8)
    l2 = between(rng, -4, -1)
    scale = between(rng, 1, 4)
    g = risk(rng, m, l2, scale)
    if rng.random() < 0.3:
        D = scale * rng.standard_normal((m + 3, m))
        g = functions.LogSumExp(D, scale * rng.standard_normal(m + 3), l2, between(rng, -2, 0))
    h = function(rng, n)
    if rng.random() < 0.5:
        t = scale * rng.standard_normal(n)
        h = functions.Risk(losses.LOGCOSH, sp.LogCosh(None, t, l2), None, t, l2, mean=False, size=n)
    if rng.random() < 0.4:
        g, h = g.own(), h.own()
    return made(g, h, matrix(rng, m, n, between(rng, -2, 1)))


def scales(rng: Generator) -> Case:
    """Units of f, x and y from 1e-150 to 1e150."""
    m, n = sizes(rng, 8)
    wide = rng.random() < 0.7
    ef, ea, eb = (int(e) for e in rng.integers(*((-240, 241) if wide else (-40, 41)), 3))
    uf, ux, uy = (math.ldexp(1.0, e) for e in (ef, ea, eb))
    g = _scaled(rng, m, uf, ux)
    h = _scaled(rng, n, uf, uy)
    if rng.random() < 0.3:
        g, h = g.own(), h.own()
    A = matrix(rng, m, n, between(rng, -1, 1)) * (uf / ux / uy)
    return made(g, h, A)


def _scaled(rng: Generator, n: int, uf: float, ux: float) -> Part:
    """A function of u = x/ux, times uf."""
    match rng.integers(4):
        case 0:
            return quadratic(rng, n, 30.0, uf / ux / ux, uf / ux)
        case 1:
            l2 = between(rng, -2, 0)
            D, t = rng.standard_normal((n + 3, n)) / ux, rng.standard_normal(n + 3)
            base = functions.Risk(losses.LOGCOSH, sp.LogCosh(D, t, l2 / ux / ux), D, t, l2 / ux / ux)
            return sums.Total([uf], [base])
        case 2:
            delta, t, l2 = ux * float(rng.choice(DELTAS)), ux * rng.standard_normal(n), between(rng, -2, 0)
            base = functions.Risk(losses.huber(delta), sp.Huber(None, t, l2, delta), None, t, l2, mean=False, size=n)
            return sums.Total([uf / ux / ux], [base])
        case _:
            l2 = uf / ux / ux * between(rng, -2, 0)
            return functions.GroupHuber(rng.integers(0, 3, n), uf / ux, 0.1 * ux, l2)


def ill_conditioned(rng: Generator) -> Case:
    """Condition numbers up to 1e10 and strong coupling."""
    m, n = sizes(rng, 10)
    g = quadratic(rng, m, between(rng, 3, 10), between(rng, -1, 1))
    h = quadratic(rng, n, between(rng, 0, 8)) if rng.random() < 0.5 else function(rng, n, between(rng, -6, -2))
    if rng.random() < 0.4:
        g = g.own()
    return made(g, h, matrix(rng, m, n, between(rng, -3, 3)))


def unequal_variables(rng: Generator) -> Case:
    """Own and ready functions whose variables have curvatures from 1e-6 to 1e6."""
    m, n = sizes(rng, 8)
    spectrum = 10.0 ** rng.uniform(-6, 6, m)
    g: Part = functions.Quadratic(spectrum, np.sqrt(spectrum) * rng.standard_normal(m))
    A = matrix(rng, m, n, 1.0) * np.sqrt(spectrum)[:, None]
    h: Part = separable(rng, n, between(rng, -2, 0))
    if rng.random() < 0.7:
        g, h = g.own(), h.own()
    return made(g, h, A)


def degenerate(rng: Generator) -> Case:
    """No coupling, one variable, one row, one column, a solution of zero, a tiny linear term, subnormal data."""
    m, n = sizes(rng, 6)
    pick = rng.integers(6)
    if pick == 1:
        m, n = 1, 1
    if pick == 2:
        m = 1
    if pick == 3:
        n = 1
    g, h = function(rng, m), function(rng, n)
    A = matrix(rng, m, n, between(rng, -2, 2))
    if pick == 0:
        A = 0.0 * A
    if pick == 4:
        g, h = quadratic(rng, m, b=0.0), quadratic(rng, n, b=0.0)
    if pick == 5:
        tiny = float(rng.choice([1e-308, 5e-324, 1e-315, 1e-300]))
        g, h = quadratic(rng, m, b=tiny), quadratic(rng, n, b=0.0)
        A = A * float(rng.choice([1.0, 1e-308, 1e-200]))
    if rng.random() < 0.3:
        g, h = g.own(), h.own()
    return made(g, h, A)


def large_means(rng: Generator) -> Case:
    """Data around means of 1e3 to 1e8, and linear terms that nearly cancel products."""
    m, n = sizes(rng, 8)
    mean = between(rng, 3, 8) * float(rng.choice([-1.0, 1.0]))
    if rng.random() < 0.6:
        l2 = between(rng, -2, 2)
        g = risk(rng, m, l2, 1.0, mean)
    else:
        # b is huge, and so is A y at the solution
        g = quadratic(rng, m, 10.0, 1.0, abs(mean))
    h = quadratic(rng, n, 10.0, 1.0, abs(mean) if rng.random() < 0.5 else 1.0)
    if rng.random() < 0.3:
        g = g.own()
    return made(g, h, matrix(rng, m, n, between(rng, -1, 2)))


def long_rows(rng: Generator) -> Case:
    """One to three rows of 1e4 to 3e5 entries, of a few different values."""
    m, kinds = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    n = int(between(rng, 4, 5.48))
    counts = rng.multinomial(n - kinds, np.ones(kinds) / kinds) + 1
    size = between(rng, -2, 1)
    columns = size * (rng.random((m, kinds)) + (0.1 if rng.random() < 0.7 else -0.5))
    q, d = between(rng, -1, 1) * np.exp(rng.standard_normal(kinds)), between(rng, -2, 2) * rng.standard_normal(kinds)
    A = np.repeat(columns, counts, axis=1)
    reduced = functions.Quadratic(q, d)
    h: sp.Smooth = sp.Quadratic(np.repeat(q, counts), np.repeat(d, counts))
    part: Part = functions.As(reduced, h)
    if rng.random() < 0.3:
        l2 = between(rng, -1, 1)
        part = functions.Risk(losses.LOGCOSH, None, None, d, l2, mean=False, size=kinds)
        part.smooth = sp.LogCosh(None, np.repeat(d, counts), l2)
    g = quadratic(rng, m, 10.0, between(rng, 0, 3), between(rng, 0, 3))
    if rng.random() < 0.3:
        Q, b = np.repeat(q, counts), np.repeat(d, counts)
        part = functions.As(reduced, sp.Smooth(lambda y: Q * y + b, mu=float(q.min()), L=float(q.max())))
    given = sparse.csr_array(A) if rng.random() < 0.6 else A
    exact = Exact(g, part, columns, counts_y=counts)
    exchanged = rng.random() < 0.3
    if exchanged:
        f = sp.Saddle(part.smooth, g.smooth, -given.T)
        return Case(f, Exact(part, g, -columns.T, counts_x=counts), slow=True)
    return Case(sp.Saddle(g.smooth, part.smooth, given), exact, rows=A, slow=True)


def long_data(rng: Generator) -> Case:
    """Losses of 1e4 to 1e5 samples, of a few different ones."""
    m, n = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    kinds, rows = int(rng.integers(1, 6)), int(between(rng, 4, 5))
    counts = rng.multinomial(rows - kinds, np.ones(kinds) / kinds) + 1
    mean = float(rng.choice([0.0, 1.0, 100.0]))
    D, t, signs = rng.standard_normal((kinds, m)) + mean, rng.standard_normal(kinds), rng.choice([-1.0, 1.0], kinds)
    all_D, all_t, all_signs = (np.repeat(a, counts, axis=0) for a in (D, t, signs))
    l2 = between(rng, -3, 0)
    given = sparse.csr_array(all_D) if rng.random() < 0.4 else all_D
    if rng.random() < 0.5:
        g: Part = functions.Risk(losses.SQUARE, sp.LeastSquares(given, all_t, l2), D, t, l2, counts=counts)
    else:
        smooth = sp.Logistic(given, all_signs, l2)
        g = functions.Risk(losses.LOGISTIC, smooth, D, None, l2, signs, counts=counts)
    if rng.random() < 0.3:
        g = functions.Risk(losses.huber(0.5), sp.Huber(given, all_t, l2, 0.5), D, t, l2, counts=counts)
    h = function(rng, n)
    A = matrix(rng, m, n, between(rng, -2, 1))
    return made(g, h, A, slow=True)


def float32(rng: Generator) -> Case:
    """All data in float32."""
    m, n = sizes(rng, 8)

    def narrow(k: int) -> Part:
        l2 = float(np.float32(between(rng, -2, 0)))
        if rng.random() < 0.5:
            P = rng.uniform(0.1, 2.0, k).astype(np.float32)
            return functions.Quadratic(P, rng.standard_normal(k).astype(np.float32))
        D, t = rng.standard_normal((k + 3, k)).astype(np.float32), rng.standard_normal(k + 3).astype(np.float32)
        signs = rng.choice([-1.0, 1.0], k + 3).astype(np.float32)
        match rng.integers(3):
            case 0:
                return functions.Risk(losses.SQUARE, sp.LeastSquares(D, t, l2), D, t, l2)
            case 1:
                return functions.Risk(losses.LOGISTIC, sp.Logistic(D, signs, l2), D, None, l2, signs)
            case _:
                return functions.Risk(losses.huber(0.5), sp.Huber(D, t, l2, 0.5), D, t, l2)

    A = matrix(rng, m, n, between(rng, -1, 1)).astype(np.float32)
    return made(narrow(m), narrow(n), A)


def float32_code(rng: Generator) -> Case:
    """Float64 problems whose gradients are computed by float32 code."""
    m, n = sizes(rng, 8)
    g, h = function(rng, m), function(rng, n)
    own = g.own(grad=_in_float32(g))
    return made(own, h, matrix(rng, m, n, between(rng, -1, 1)), noisy=True)


def _in_float32(part: Part) -> Callable[[Array], Array]:
    return lambda x: part.floats(x.astype(np.float32).astype(float)).astype(np.float32).astype(float)


TRUE: dict[str, Callable[[Generator], Case]] = {
    "ordinary": ordinary,
    "own functions": own,
    "kinks": kinks,
    "saturation": saturation,
    "extreme scales": scales,
    "ill-conditioned": ill_conditioned,
    "unequal variables": unequal_variables,
    "degenerate": degenerate,
    "large means": large_means,
    "long rows": long_rows,
    "long data": long_data,
    "float32": float32,
    "float32 code": float32_code,
    "operators": operators,
    "domains": domains,
    "bent gradients": bent,
    "flat direction": flat_direction,
    "batches": together,
    "combinations": combinations,
    "JAX": jax,
    "JAX mesh": jax_mesh,
}
