"""True problems that are given to the library in other ways than as arrays and ready functions."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import saddlepoint as sp

from . import functions, losses, numbers, sums
from .draws import DELTAS, Case, between, function, made, matrix, quadratic, risk, sizes
from .exact import Exact
from .functions import Part
from .numbers import Array


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
            mean = numbers.decimals(operator.mean)
            entries = numbers.decimals(A) - mean[None, :]
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
    g = sums.Separable(
        sp.Smooth(grad, mu=mu, L=mu + k),
        lambda x: mm * x + kk * (1 + max(x, Decimal(0))).ln(),
        lambda x: mm + kk / (1 + max(x, Decimal(0))),
        None,
        -numbers.decimals(c),
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
    h = sums.Separable(
        sp.Smooth(lambda y: mu * y - c + mu * np.tanh(sharp * y), mu=mu, L=mu + mu * sharp),
        lambda y: D * y + D * numbers.tanh(s * y),
        lambda y: D + D * s * (1 - numbers.tanh(s * y) ** 2),
        None,
        -numbers.decimals(c),
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
    inner = Exact(functions.Quadratic(block, b[[i, j]]), h, columns)
    return Case(f, Embedded(inner, np.array([i, j])), slow=True, nearby=False)


class Embedded(Exact):
    """A problem in which only some of the variables x matter; the others are zero at the solution."""

    def __init__(self, inner: Exact, where: Array) -> None:
        self.inner, self.where = inner, where

    def errors(self, x: Array, y: Array) -> tuple[Decimal, Decimal]:
        """The errors of the variables that matter, and the length of the others."""
        dx, dy = self.inner.errors(np.asarray(x)[self.where], y)
        rest = np.delete(np.asarray(x), self.where)
        away = numbers.length(numbers.decimals(rest[rest != 0.0]))
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
        inner = sums.Total([1.0, between(rng, -2, 2)], [base, more])
        outer = sums.Total([between(rng, -3, 3), 1.0], [inner, quadratic(rng, size)])
        if rng.random() < 0.3:
            f = outer.smooth
            return functions.As(outer, f.replace(mu=f.mu * rng.uniform(0.1, 1.0), L=f.L * (1.0 + rng.random())))
        return outer

    g, h, A = combined(m), combined(n), matrix(rng, m, n, between(rng, -2, 2))
    return made(h, g, -A.T) if rng.random() < 0.3 else made(g, h, A)


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
        return functions.Quadratic(scale * rng.uniform(0.1, 1.0, n), scale * rng.standard_normal(n))
    root = math.sqrt(scale)
    D, t, signs = root * rng.standard_normal((rows, n)), root * rng.standard_normal(rows), rng.choice([-1.0, 1.0], rows)
    match kind:
        case 1:
            return functions.Risk(losses.SQUARE, sp.LeastSquares(D, t, l2), D, t, l2)
        case 2:
            return functions.Risk(losses.LOGISTIC, sp.Logistic(D, signs, l2), D, None, l2, signs)
        case 3:
            return functions.Risk(losses.huber(delta), sp.Huber(D, t, l2, delta), D, t, l2)
        case _:
            t = rng.standard_normal(n)
            return functions.Risk(losses.LOGCOSH, sp.LogCosh(None, t, l2), None, t, l2, mean=False, size=n)
