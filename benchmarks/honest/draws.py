"""Random functions and matrices, and what a problem of the campaign is: a ``Case``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse

import saddlepoint as sp

from . import functions, losses, sums
from .exact import Exact
from .functions import Part
from .numbers import Array

DELTAS = (0.01, 0.3, 1.0, 5.0)  # where Huber losses become linear, or widths of rounded hinges


@dataclass
class Case:
    """A problem for the library and its solution.

    Attributes:
        f: the problem, as the library gets it.
        exact: the problem in decimal arithmetic.
        claim: what is wrong about ``f``; empty if nothing is.
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
    claim: str = ""
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
        self.exact.further_starts = self._guesses

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
        return functions.Quadratic(rng.permutation(spectrum), linear)
    if form == 1:
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        P = (Q * spectrum) @ Q.T
        return functions.Quadratic(0.5 * (P + P.T), linear)
    off = 0.2 * np.sqrt(spectrum[1:] * spectrum[:-1])
    return functions.Quadratic(sparse.csr_array(sparse.diags_array([off, spectrum, off], offsets=[-1, 0, 1])), linear)


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
            return functions.Risk(losses.SQUARE, sp.LeastSquares(D, t, l2), D, t, l2)
        case 1:
            return functions.Risk(losses.LOGISTIC, sp.Logistic(D, signs, l2), D, None, l2, signs)
        case 2:
            width = float(rng.choice(DELTAS))
            return functions.Risk(losses.hinge(width), sp.SmoothedHinge(D, signs, l2, width), D, None, l2, signs)
        case 3:
            delta = float(rng.choice(DELTAS))
            return functions.Risk(losses.huber(delta), sp.Huber(D, t, l2, delta), D, t, l2)
        case _:
            return functions.Risk(losses.LOGCOSH, sp.LogCosh(D, t, l2), D, t, l2)


def separable(rng: Generator, n: int, l2: float) -> Part:
    """Huber, log-cosh or entropy of single coordinates."""
    t = 2.0 * rng.standard_normal(n)
    match rng.integers(3):
        case 0:
            delta = float(rng.choice(DELTAS))
            return functions.Risk(losses.huber(delta), sp.Huber(None, t, l2, delta), None, t, l2, mean=False, size=n)
        case 1:
            return functions.Risk(losses.LOGCOSH, sp.LogCosh(None, t, l2), None, t, l2, mean=False, size=n)
        case _:
            return sums.entropy(n, between(rng, -3, -0.5), between(rng, 0, 1))


def other(rng: Generator, n: int, l2: float) -> Part:
    """Log-sum-exp of data, or norms of groups."""
    if rng.random() < 0.5:
        D = rng.standard_normal((int(rng.integers(1, 2 * n + 4)), n))
        return functions.LogSumExp(D, rng.standard_normal(D.shape[0]), l2, between(rng, -1.5, 0.5))
    return functions.GroupHuber(rng.integers(0, 3, n), between(rng, -1, 1), between(rng, -2, 0), l2)


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
    return sums.Total(weights, [function(rng, n, l2), quadratic(rng, n)])


def matrix(rng: Generator, m: int, n: int, norm: float) -> Array:
    """A random matrix of about this norm."""
    A = rng.standard_normal((m, n))
    return A * (norm / np.linalg.norm(A, 2))


def made(g: Part, h: Part, A: Array, given: Any = None, **more: Any) -> Case:
    """The case of these parts; ``given`` is A as the library gets it, if that is not ``A`` itself."""
    return Case(sp.Saddle(g.smooth, h.smooth, A if given is None else given), Exact(g, h, A), rows=A, **more)
