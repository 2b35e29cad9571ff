"""Arrays that are used in unusual ways: true problems in rare kinds of arrays, and memory that is written into."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse

import saddlepoint as sp

from . import functions
from .draws import Case, between, function, made, matrix, quadratic, sizes
from .functions import Part
from .numbers import Array, decimals
from .presented import Product


def _memory_mapped(A: Array) -> Array:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "A.npy"
        np.save(path, A)
        return np.load(path, mmap_mode="r")


# Arrays that hold the same numbers as a given one.
FORMS: tuple[Callable[[Array], Any], ...] = (
    lambda A: np.ma.masked_array(A, mask=False),
    lambda A: A.astype(np.longdouble),
    lambda A: A.astype(A.dtype.newbyteorder()),
    lambda A: A.tolist(),
    lambda A: np.asfortranarray(A)[::-1].copy()[::-1],
    lambda A: np.repeat(A, 2, axis=0)[::2],
    _memory_mapped,
    lambda A: A.astype(np.float16) if (A.astype(np.float16) == A).all() else A,
    lambda A: A.astype(np.int8) if (A.astype(np.int8) == A).all() else A,
)


def unusual_arrays(rng: Generator) -> Case:
    """A, P and b as masked, mapped, long, short, foreign or whole numbers, in any order of memory and of bytes."""
    m, n = sizes(rng, 8)
    whole = rng.random() < 0.5
    P = rng.integers(1, 9, m).astype(float) if whole else rng.uniform(0.1, 3.0, m)
    b = rng.integers(-9, 9, m).astype(float) if whole else rng.standard_normal(m)
    A = rng.integers(-3, 4, (m, n)).astype(float) if whole else matrix(rng, m, n, between(rng, -1, 1))

    def given(v: Array) -> Any:
        return FORMS[rng.integers(len(FORMS))](v)

    g: Part = functions.As(functions.Quadratic(P, b), sp.Quadratic(given(P), given(b)))
    h = function(rng, n)
    if rng.random() < 0.3:
        g = g.own(accuracy=None)
    A_given = given(A) if rng.random() < 0.7 else sparse.csr_array(A.astype(np.float32 if whole else np.longdouble))
    return made(g, h, A, A_given)


def offsets(rng: Generator) -> Case:
    """Gradients of one's own at P (x - c) + b, with c up to 1e12 times as large as the rest; P c may be subtracted."""
    m, n = sizes(rng, 8)
    base, h = quadratic(rng, m, between(rng, 0, 2)), quadratic(rng, n, 10.0)
    c = between(rng, 1, 12) * rng.standard_normal(m)
    P, b = base.P, base.b  # type: ignore[attr-defined]
    dense = decimals(base.dense)  # type: ignore[attr-defined]
    Pc = dense * decimals(c) if dense.ndim == 1 else dense @ decimals(c)
    linear = decimals(b) - Pc
    as_one = rng.random() < 0.5
    d = linear.astype(float)

    def grad(x: Array) -> Array:
        if as_one:
            return (P * x if base.dense.ndim == 1 else P @ x) + d  # type: ignore[attr-defined]
        return (P * (x - c) if base.dense.ndim == 1 else P @ (x - c)) + b  # type: ignore[attr-defined]

    part: Any = functions.Quadratic(P, d)
    if not as_one:
        part.linear = linear
    g = functions.As(part, sp.Smooth(grad, mu=0.999 * base.smooth.mu, L=1.001 * base.smooth.L))
    A = matrix(rng, m, n, between(rng, -2, 1))
    start = (c + rng.standard_normal(m), np.zeros(n)) if rng.random() < 0.5 else None
    return made(g, h, A, start=start)


def own_units(rng: Generator) -> Case:
    """Quadratic functions in which every variable has a unit of its own: condition numbers up to 1e48."""
    m, n = sizes(rng, 6)
    most = int(rng.integers(5, 41))
    S, R = (2.0 ** rng.integers(-most, most + 1, k) for k in (m, n))
    g: Part = functions.Quadratic(S * S * rng.uniform(0.1, 3.0, m), S * rng.standard_normal(m))
    h: Part = functions.Quadratic(R * R * rng.uniform(0.1, 3.0, n), R * rng.standard_normal(n))
    if rng.random() < 0.5:
        g = g.own()
    return made(g, h, S[:, None] * matrix(rng, m, n, between(rng, -1, 1)) * R)


def used_memory(rng: Generator) -> Case:
    """Answers in memory that is used again, answers with masked entries, and functions that write into their argument.

    They are those of a gradient, or of products with A.
    """
    m, n = sizes(rng, 8)
    g, h, A = function(rng, m), function(rng, n), matrix(rng, m, n, between(rng, -2, 1))
    of_gradient, how = rng.random() < 0.5, int(rng.integers(5))
    late = int(rng.choice([0, 0, 7, 30]))

    def changed(answer: Callable[[Array], Array]) -> Callable[[Array], Array]:
        memory: dict[str, Array] = {}
        calls = [0]

        def function(x: Array) -> Array:
            calls[0] += 1
            p = np.array(answer(x))
            if calls[0] <= late:
                return p
            kept = memory.setdefault("kept", np.zeros(2 * p.size))
            match how:
                case 0:
                    kept[: p.size] = p
                    return kept[: p.size]
                case 1:
                    kept[::2] = p
                    return kept[::2]
                case 2:
                    return np.ma.masked_array(p, mask=np.arange(p.size) == p.size - 1)
                case 3:
                    x *= 1.0 - 1e-4
                    return p
                case _:
                    whole = memory.setdefault("whole", np.zeros(p.size))
                    whole[:] = p
                    return whole

        return function

    def build() -> sp.Saddle:
        if of_gradient:
            return sp.Saddle(g.own(grad=changed(g.floats)).smooth, h.smooth, A)
        return sp.Saddle(g.smooth, h.smooth, ChangedProducts(A, changed))

    case = made(g.own() if of_gradient else g, h, A, claim="memory", own_errors=(ValueError,))
    case.build = build
    return case


class ChangedProducts(Product):
    """An operator whose products are changed by a function."""

    def __init__(self, A: Array, changed: Any, transposed: Any = None) -> None:
        super().__init__(A)
        self.changed, self.product = changed, changed(lambda y: A @ y)
        self._T: ChangedProducts | None = transposed

    def __matmul__(self, y: Array) -> Array:
        return self.product(y)

    @property
    def T(self) -> Product:
        """The transpose, which is changed in the same way."""
        if self._T is None:
            self._T = ChangedProducts(self.A.T, self.changed, self)
        return self._T


def changed_data(rng: Generator) -> Case:
    """Data that are written into after the function was made: the problem that is meant is the new one."""
    m, n = sizes(rng, 8)
    new, h = quadratic(rng, m, between(rng, 0, 2)), quadratic(rng, n, 5.0)
    A = matrix(rng, m, n, between(rng, -2, 1))
    factor, wraps = between(rng, 0.1, 3), rng.random() < 0.3
    P: Any = new.P  # type: ignore[attr-defined]
    b = new.b  # type: ignore[attr-defined]

    def build() -> sp.Saddle:
        old = P * factor
        g: sp.Smooth = sp.Quadratic(old, b)
        if wraps:
            g = g + sp.Quadratic(0.0)
        f = sp.Saddle(g, h.smooth, A)
        f.certificate(np.zeros(m), np.zeros(n))
        if sparse.issparse(old):
            old.data[:] = P.data
        else:
            old[:] = P
        return f

    case = made(new, h, A, claim="mu")
    case.build = build
    return case


UNUSUAL: dict[str, Callable[[Generator], Case]] = {
    "unusual arrays": unusual_arrays,
    "large offsets": offsets,
    "units of their own": own_units,
}
MISUSED: dict[str, Callable[[Generator], Case]] = {
    "false claim: answers that are overwritten": used_memory,
    "false claim: data that were changed": changed_data,
}
