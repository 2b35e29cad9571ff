"""True problems of many kinds, drawn at random, with their solutions in high precision.

A kind is a function of a random generator that returns a ``Case``. What is drawn is a rule (sizes, scales, functions),
so that another seed gives other problems of the same kind.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import saddlepoint as sp

from . import exact as ex
from .exact import Array, Exact, Part

DELTAS = (0.01, 0.3, 1.0, 5.0)


@dataclass
class Case:
    """A problem for the library and its solution.

    Attributes:
        f: the problem, as the library gets it.
        exact: the problem in decimal arithmetic.
        lie: what is wrong about ``f``; empty if nothing is.
        start: a starting point; None for zero.
        own_errors: exceptions that the caller's functions raise, which the library passes on.
        noisy: whether the gradients are computed with less accuracy than they seem to have.
        rows: the matrix A as rows of numbers, for files and shards; None if it is none.
        many: problems of the same shape and kind, with their solutions, to be solved together.
        options: further options of ``solve``.
        slow: whether runs take so long that few cases of this kind are drawn.
        nearby: whether points near the solution can be made from it.
        build: makes the problem, if that may already find what is wrong with it; ``f`` is then the one that was meant.
    """

    f: sp.Saddle
    exact: Exact
    lie: str = ""
    start: tuple[Array, Array] | None = None
    own_errors: tuple[type[BaseException], ...] = ()
    noisy: bool = False
    rows: Array = None
    many: list[tuple[sp.Saddle, Exact]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    slow: bool = False
    build: Callable[[], sp.Saddle] | None = None
    nearby: bool = True

    def __post_init__(self) -> None:
        self.exact.ask = self._guesses

    def _guesses(self) -> Iterator[tuple[Array, Array]]:
        """Answers of the library as starts of Newton's method, which finds out how good they are."""
        for method in ("auto", "newton"):
            with contextlib.suppress(Exception):
                result = sp.solve(self.f, method=method, tol=1e-12, max_seconds=0.5)
                if np.isfinite(result.x).all() and np.isfinite(result.y).all():
                    yield result.x, result.y


def sizes(rng: Generator, most: int = 12) -> tuple[int, int]:
    """Numbers of variables: mostly a few, sometimes one."""
    m, n = (int(rng.integers(1, most + 1)) for _ in range(2))
    return m, n


def between(rng: Generator, low: float, high: float) -> float:
    """A number between 10^low and 10^high, equally likely in each decade."""
    return float(10.0 ** rng.uniform(low, high))


# -- functions ---------------------------------------------------------------------------------------------------------


def quadratic(rng: Generator, n: int, kappa: float = 30.0, scale: float = 1.0, b: float = 1.0) -> Part:
    """A quadratic function; its matrix is a number, a diagonal, dense or sparse."""
    form = rng.integers(3)
    spectrum = scale * np.geomspace(1.0 / kappa, 1.0, n)
    linear = b * rng.standard_normal(n)
    if form == 0 or n == 1:
        return ex.Quadratic(rng.permutation(spectrum), linear)
    if form == 1:
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        P = (Q * spectrum) @ Q.T
        return ex.Quadratic(0.5 * (P + P.T), linear)
    off = 0.2 * np.sqrt(spectrum[1:] * spectrum[:-1])
    return ex.Quadratic(sparse.csr_array(sparse.diags_array([off, spectrum, off], offsets=[-1, 0, 1])), linear)


def data(rng: Generator, n: int, scale: float = 1.0, mean: float = 0.0) -> Array:
    """Samples: rows of n normal numbers, around a mean."""
    rows = int(rng.integers(max(n // 2, 1), 2 * n + 6))
    D = scale * rng.standard_normal((rows, n)) + mean
    return sparse.csr_array(np.where(rng.random(D.shape) < 0.5, D, 0.0)) if rng.random() < 0.2 else D


def risk(rng: Generator, n: int, l2: float, scale: float = 1.0, mean: float = 0.0) -> Part:
    """One of the losses with data."""
    D = data(rng, n, scale, mean)
    rows = D.shape[0]
    signs, t = rng.choice([-1.0, 1.0], rows), rng.standard_normal(rows)
    match rng.integers(5):
        case 0:
            return ex.Risk(ex.SQUARE, sp.LeastSquares(D, t, l2), D, t, l2)
        case 1:
            return ex.Risk(ex.LOGISTIC, sp.Logistic(D, signs, l2), D, None, l2, signs)
        case 2:
            width = float(rng.choice(DELTAS))
            return ex.Risk(ex.hinge(width), sp.SmoothedHinge(D, signs, l2, width), D, None, l2, signs)
        case 3:
            delta = float(rng.choice(DELTAS))
            return ex.Risk(ex.huber(delta), sp.Huber(D, t, l2, delta), D, t, l2)
        case _:
            return ex.Risk(ex.LOGCOSH, sp.LogCosh(D, t, l2), D, t, l2)


def separable(rng: Generator, n: int, l2: float) -> Part:
    """Huber, log-cosh or entropy of single coordinates."""
    t = 2.0 * rng.standard_normal(n)
    match rng.integers(3):
        case 0:
            delta = float(rng.choice(DELTAS))
            return ex.Risk(ex.huber(delta), sp.Huber(None, t, l2, delta), None, t, l2, mean=False, size=n)
        case 1:
            return ex.Risk(ex.LOGCOSH, sp.LogCosh(None, t, l2), None, t, l2, mean=False, size=n)
        case _:
            return ex.entropy(n, between(rng, -3, -0.5), between(rng, 0, 1))


def other(rng: Generator, n: int, l2: float) -> Part:
    """Log-sum-exp of data, or norms of groups."""
    if rng.random() < 0.5:
        D = rng.standard_normal((int(rng.integers(1, 2 * n + 4)), n))
        return ex.LogSumExp(D, rng.standard_normal(D.shape[0]), l2, between(rng, -1.5, 0.5))
    return ex.GroupHuber(rng.integers(0, 3, n), between(rng, -1, 1), between(rng, -2, 0), l2)


def function(rng: Generator, n: int, l2: float | None = None) -> Part:
    """Any ready function, or a sum of multiples of two."""
    l2 = between(rng, -2.5, 0) if l2 is None else l2
    pick = rng.random()
    if pick < 0.25:
        return quadratic(rng, n, between(rng, 0.01, 3), between(rng, -1, 1))
    if pick < 0.5:
        return risk(rng, n, l2)
    if pick < 0.7:
        return separable(rng, n, l2)
    if pick < 0.85:
        return other(rng, n, l2)
    weights = [between(rng, -1, 1), 1.0]
    return ex.Total(weights, [function(rng, n, l2), quadratic(rng, n)])


def matrix(rng: Generator, m: int, n: int, norm: float) -> Array:
    """A random matrix of about this norm."""
    A = rng.standard_normal((m, n))
    return A * (norm / np.linalg.norm(A, 2))


def made(g: Part, h: Part, A: Array, given: Any = None, **more: Any) -> Case:
    """The case of these parts; ``given`` is A as the library gets it, if that is not ``A`` itself."""
    return Case(sp.Saddle(g.smooth, h.smooth, A if given is None else given), Exact(g, h, A), rows=A, **more)


# -- kinds of true problems --------------------------------------------------------------------------------------------


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
        base = ex.Risk(ex.huber(delta), sp.Huber(None, t, l2, delta), None, t, l2, mean=False, size=k)
        slope = delta * sign + l2 * point + product
        parts.append(ex.Total([1.0, 1.0], [base, ex.Quadratic(np.full(k, 0.0), -slope)]))
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
        g = ex.LogSumExp(D, scale * rng.standard_normal(m + 3), l2, between(rng, -2, 0))
    h = function(rng, n)
    if rng.random() < 0.5:
        t = scale * rng.standard_normal(n)
        h = ex.Risk(ex.LOGCOSH, sp.LogCosh(None, t, l2), None, t, l2, mean=False, size=n)
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
            base = ex.Risk(ex.LOGCOSH, sp.LogCosh(D, t, l2 / ux / ux), D, t, l2 / ux / ux)
            return ex.Total([uf], [base])
        case 2:
            delta, t, l2 = ux * float(rng.choice(DELTAS)), ux * rng.standard_normal(n), between(rng, -2, 0)
            base = ex.Risk(ex.huber(delta), sp.Huber(None, t, l2, delta), None, t, l2, mean=False, size=n)
            return ex.Total([uf / ux / ux], [base])
        case _:
            l2 = uf / ux / ux * between(rng, -2, 0)
            return ex.GroupHuber(rng.integers(0, 3, n), uf / ux, 0.1 * ux, l2)


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
    g: Part = ex.Quadratic(spectrum, np.sqrt(spectrum) * rng.standard_normal(m))
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
    reduced = ex.Quadratic(q, d)
    h: sp.Smooth = sp.Quadratic(np.repeat(q, counts), np.repeat(d, counts))
    part: Part = ex.As(reduced, h)
    if rng.random() < 0.3:
        l2 = between(rng, -1, 1)
        part = ex.Risk(ex.LOGCOSH, None, None, d, l2, mean=False, size=kinds)
        part.smooth = sp.LogCosh(None, np.repeat(d, counts), l2)
    g = quadratic(rng, m, 10.0, between(rng, 0, 3), between(rng, 0, 3))
    if rng.random() < 0.3:
        Q, b = np.repeat(q, counts), np.repeat(d, counts)
        part = ex.As(reduced, sp.Smooth(lambda y: Q * y + b, mu=float(q.min()), L=float(q.max())))
    given = sparse.csr_array(A) if rng.random() < 0.6 else A
    exact = Exact(g, part, columns, counts_y=counts)
    turned = rng.random() < 0.3
    if turned:
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
        g: Part = ex.Risk(ex.SQUARE, sp.LeastSquares(given, all_t, l2), D, t, l2, counts=counts)
    else:
        smooth = sp.Logistic(given, all_signs, l2)
        g = ex.Risk(ex.LOGISTIC, smooth, D, None, l2, signs, counts=counts)
    if rng.random() < 0.3:
        tau = between(rng, -1, 0)
        g = ex.Risk(ex.huber(0.5), sp.Huber(given, all_t, l2, 0.5), D, t, l2, counts=counts)
        del tau
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
            return ex.Quadratic(P, rng.standard_normal(k).astype(np.float32))
        D, t = rng.standard_normal((k + 3, k)).astype(np.float32), rng.standard_normal(k + 3).astype(np.float32)
        signs = rng.choice([-1.0, 1.0], k + 3).astype(np.float32)
        match rng.integers(3):
            case 0:
                return ex.Risk(ex.SQUARE, sp.LeastSquares(D, t, l2), D, t, l2)
            case 1:
                return ex.Risk(ex.LOGISTIC, sp.Logistic(D, signs, l2), D, None, l2, signs)
            case _:
                return ex.Risk(ex.huber(0.5), sp.Huber(D, t, l2, 0.5), D, t, l2)

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


class Centred(LinearOperator):  # type: ignore[misc]
    """The operator A - 1 mean', which is never formed."""

    def __init__(self, A: Array) -> None:
        self.A, self.mean = A, np.asarray(A.mean(axis=0)).ravel()
        super().__init__(np.dtype(float), A.shape)

    def _matvec(self, y: Array) -> Array:
        return self.A @ y.ravel() - self.mean @ y.ravel()

    def _rmatvec(self, x: Array) -> Array:
        return self.A.T @ x.ravel() - x.sum() * self.mean


class Product:
    """An object with ``@`` and ``.T`` and nothing else."""

    def __init__(self, A: Array) -> None:
        self.A, self.shape = A, A.shape

    def __matmul__(self, y: Array) -> Array:
        return self.A @ y

    @property
    def T(self) -> Product:
        """The transpose."""
        return Product(self.A.T)


def operators(rng: Generator) -> Case:
    """A as an operator, as an object, implicitly centred, or in a rare sparse format."""
    m, n = sizes(rng, 10)
    A = matrix(rng, m, n, between(rng, -1, 1))
    g, h = function(rng, m), function(rng, n)
    match rng.integers(6):
        case 0:
            given: Any = aslinearoperator(A)
        case 1:
            given = Product(A)
        case 2:
            A = A + between(rng, 0, 6)
            operator = Centred(A)
            mean = ex.decimals(operator.mean)
            entries = ex.decimals(A) - mean[None, :]
            return Case(sp.Saddle(g.smooth, h.smooth, operator), Exact(g, h, entries))
        case 3:
            A = np.where(rng.random(A.shape) < 0.5, A, 0.0)
            given = getattr(sparse, str(rng.choice(["coo_array", "csc_array", "lil_array", "dok_array"])))(A)
        case 4:  # unsorted, with every entry in two parts
            half = sparse.coo_array(A)
            order = rng.permutation(2 * half.nnz)
            row, column = (np.concatenate([i, i])[order] for i in half.coords)
            by_row = np.argsort(row, kind="stable")
            ends = np.searchsorted(row[by_row], np.arange(m + 1))
            values = 0.5 * np.concatenate([half.data, half.data])[order][by_row]
            given = sparse.csr_array((values, column[by_row], ends), shape=(m, n))
            if rng.random() < 0.5:
                for part in (given.data, given.indices, given.indptr):
                    part.flags.writeable = False
        case _:
            wide = np.zeros((2 * m, 3 * n))
            wide[::2, ::3] = A
            given = wide[::2, ::3]
            given.flags.writeable = False
    return made(g, h, A, given)


def domains(rng: Generator) -> Case:
    """A gradient that is NaN, or raises, where a coordinate is negative; the solution has positive coordinates."""
    m, n = sizes(rng, 4)
    mu, k = between(rng, -1, 0), between(rng, -1, 0.5)
    A = 0.1 * matrix(rng, m, n, 1.0)
    c = mu + 1.0 + rng.random(m)
    raises = rng.random() < 0.5

    def grad(x: Array) -> Array:
        if raises and (x < 0.0).any():
            raise FloatingPointError("the function is defined for positive x")
        with np.errstate(all="ignore"):
            return np.where(x >= 0.0, mu * x + k * np.log1p(np.maximum(x, 0.0)) - c, np.nan)

    kk, mm = Decimal(k), Decimal(mu)
    g = ex.Separable(
        sp.Smooth(grad, mu=mu, L=mu + k),
        lambda x: mm * x + kk * (1 + max(x, Decimal(0))).ln(),
        lambda x: mm + kk / (1 + max(x, Decimal(0))),
        None,
        -ex.decimals(c),
        mu,
        mu + k,
    )
    h = quadratic(rng, n, 5.0, 1.0, 0.1)
    start = np.ones(m), np.zeros(n)
    return made(g, h, A, start=start, own_errors=(FloatingPointError,), noisy=True)


def bent(rng: Generator) -> Case:
    """The function mu y - c + mu tanh(y) of one's own, which bends over a length of one, with strong coupling."""
    m, n = int(rng.integers(5, 30)), int(rng.integers(5, 30))
    mu = between(rng, -4, -1)
    c = rng.standard_normal(n)
    sharp = between(rng, -1, 1.5)
    D, s = Decimal(mu), Decimal(sharp)
    h = ex.Separable(
        sp.Smooth(lambda y: mu * y - c + mu * np.tanh(sharp * y), mu=mu, L=mu + mu * sharp),
        lambda y: D * y + D * ex.tanh(s * y),
        lambda y: D + D * s * (1 - ex.tanh(s * y) ** 2),
        None,
        -ex.decimals(c),
        mu,
        mu + mu * sharp,
    )
    g: Part = risk(rng, m, mu)
    if rng.random() < 0.6:
        g = g.own()
    return made(g, h, matrix(rng, m, n, 1.0))


def flat_direction(rng: Generator) -> Case:
    """A matrix P of 1550 to 2500 variables with one nearly flat direction, which random vectors hardly see."""
    size = int(rng.integers(1550, 2500))
    start = np.random.default_rng(0).standard_normal(size)
    i, j = (int(k) for k in rng.choice(size, 2, replace=False))
    v = np.array([start[j], -start[i]]) / math.hypot(start[i], start[j])
    share = 1.0 - between(rng, -5, -2)
    block = np.eye(2) - share * np.outer(v, v)
    block[1, 0] = block[0, 1]
    P = sparse.eye_array(size, format="lil")
    P[i, i], P[i, j], P[j, i], P[j, j] = block[0, 0], block[0, 1], block[1, 0], block[1, 1]
    n = int(rng.integers(1, 4))
    columns = 0.1 * rng.standard_normal((2, n))
    A = sparse.lil_array((size, n))
    A[i], A[j] = columns[0], columns[1]
    b = np.zeros(size)
    b[[i, j]] = rng.standard_normal(2)
    h = quadratic(rng, n)
    f = sp.Saddle(sp.Quadratic(P.tocsr(), b), h.smooth, sparse.csr_array(A))
    inner = Exact(ex.Quadratic(block, b[[i, j]]), h, columns)
    return Case(f, Embedded(inner, np.array([i, j])), slow=True, nearby=False)


class Embedded(Exact):
    """A problem in which only some of the variables x matter; the others are zero at the solution."""

    def __init__(self, inner: Exact, where: Array) -> None:
        self.inner, self.where = inner, where

    def errors(self, x: Array, y: Array) -> tuple[Decimal, Decimal]:
        """The errors of the variables that matter, and the length of the others."""
        dx, dy = self.inner.errors(np.asarray(x)[self.where], y)
        rest = np.delete(np.asarray(x), self.where)
        away = ex.length(ex.decimals(rest[rest != 0.0]))
        return (dx * dx + away * away).sqrt(), dy

    def gap(self, x: Array, y: Array) -> Decimal | None:
        """Not computed."""
        return None

    def size(self) -> float:
        """The length of the solution."""
        return self.inner.size()


def combinations(rng: Generator) -> Case:
    """Multiples of sums of multiples, own and ready functions together, smaller constants than the true ones, -A'."""
    m, n = sizes(rng, 6)

    def combined(size: int) -> Part:
        base, more = function(rng, size), function(rng, size)
        if rng.random() < 0.4:
            base = base.own()
        inner = ex.Total([1.0, between(rng, -2, 2)], [base, more])
        outer = ex.Total([between(rng, -3, 3), 1.0], [inner, quadratic(rng, size)])
        if rng.random() < 0.3:
            f = outer.smooth
            return ex.As(outer, f.replace(mu=f.mu * rng.uniform(0.1, 1.0), L=f.L * (1.0 + rng.random())))
        return outer

    g, h, A = combined(m), combined(n), matrix(rng, m, n, between(rng, -2, 2))
    return made(h, g, -A.T) if rng.random() < 0.3 else made(g, h, A)


def jax(rng: Generator) -> Case:
    """Arrays of JAX, in float64 and float32, in units of 1e-60 to 1e60."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    narrow = rng.random() < 0.3
    dtype = np.float32 if narrow else np.float64
    m, n = 4, 3
    e = int(rng.integers(-8, 9) if narrow else rng.integers(-200, 201) * (rng.random() < 0.5))
    unit = math.ldexp(1.0, e)
    A = (unit * matrix(rng, m, n, between(rng, -1, 1))).astype(dtype)
    P, Q, b, d = (unit * v for v in (rng.uniform(0.1, 1, m), rng.uniform(0.1, 1, n), *map(rng.standard_normal, (m, n))))
    g = _on_jax(ex.Quadratic(P.astype(dtype), b.astype(dtype)), jnp)
    h = _on_jax(ex.Quadratic(Q.astype(dtype), d.astype(dtype)), jnp)
    case = Case(sp.Saddle(g.smooth, h.smooth, jnp.asarray(A)), Exact(g, h, A))
    case.rows = None
    return case


def _on_jax(part: ex.Quadratic, jnp: Any) -> Part:
    return ex.As(part, sp.Quadratic(jnp.asarray(part.P), jnp.asarray(part.b)))


def together(rng: Generator) -> Case:
    """Several problems of one shape, with constants and units of their own, for batches."""
    m, n, count = int(rng.integers(1, 7)), int(rng.integers(1, 7)), int(rng.integers(2, 9))
    rows = m + int(rng.integers(1, 4))
    kind_x, kind_y = rng.integers(5, size=2)
    delta = float(rng.choice(DELTAS))
    unlike = rng.random() < 0.6
    far = rng.random() < 0.3
    problems = []
    for _ in range(count):
        s, u = (between(rng, -3, 3) if unlike else 1.0 for _ in range(2))
        if far:
            s, u = (s * math.ldexp(1.0, int(e)) for e in rng.integers(-280, 281, 2))
        g = _like(rng, int(kind_x), m, rows, delta, s if kind_x != 4 else 1.0)
        h = _like(rng, int(kind_y), n, rows, delta, u if kind_y != 4 else 1.0)
        norm = math.sqrt(g.smooth.mu) * math.sqrt(h.smooth.mu) * between(rng, -1, 1)
        A = matrix(rng, m, n, 1.0) * norm
        problems.append((sp.Saddle(g.smooth, h.smooth, A), Exact(g, h, A)))
    return Case(*problems[0], many=problems)


def _like(rng: Generator, kind: int, n: int, rows: int, delta: float, scale: float) -> Part:
    """A function of this kind, with data of this shape, times scale if that leaves it of this kind."""
    l2 = scale * between(rng, -1, 0)
    if kind == 0:
        return ex.Quadratic(scale * rng.uniform(0.1, 1.0, n), scale * rng.standard_normal(n))
    root = math.sqrt(scale)
    D, t, signs = root * rng.standard_normal((rows, n)), root * rng.standard_normal(rows), rng.choice([-1.0, 1.0], rows)
    match kind:
        case 1:
            return ex.Risk(ex.SQUARE, sp.LeastSquares(D, t, l2), D, t, l2)
        case 2:
            return ex.Risk(ex.LOGISTIC, sp.Logistic(D, signs, l2), D, None, l2, signs)
        case 3:
            return ex.Risk(ex.huber(delta), sp.Huber(D, t, l2, delta), D, t, l2)
        case _:
            t = rng.standard_normal(n)
            return ex.Risk(ex.LOGCOSH, sp.LogCosh(None, t, l2), None, t, l2, mean=False, size=n)


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
}
