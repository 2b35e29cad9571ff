"""The instances: three families from the library's generators, and the large sparse family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array
from scipy.sparse.linalg import splu, svds

import saddlepoint as sp
from saddlepoint.ground.arrays import Array
from saddlepoint.parts.coupling import DenseCoupling, SparseCoupling
from saddlepoint.problems.generators import chain, random_logistic, random_quadratic

Argmax = Callable[[Array], Array]  # the function s -> argmax_y <s, y> - h(y)


@dataclass(frozen=True)
class Instance:
    """One problem: ``f`` and, where the maximum over y has a direct formula, that maximiser."""

    family: str
    n: int
    kappa: float
    ratio: float  # |A|/L; |A|/mu in the sparse family

    @property
    def name(self) -> str:
        """The name in the tables."""
        if self.family == "sparse":
            return f"sparse 20000 x 15000, |A|/mu = {self.ratio:g}"
        return f"{self.family}, n = {self.n}, kappa = {self.kappa:g}, |A|/L = {self.ratio:g}"

    @property
    def file_stem(self) -> str:
        """The name without blanks."""
        return f"{self.family}-{self.n}-{self.kappa:g}-{self.ratio:g}"

    @property
    def limit(self) -> float:
        """CPU seconds for one run of one contestant."""
        return 200.0 if self.family == "sparse" else 10.0 if self.n <= 200 else 60.0 if self.n == 2000 else 30.0

    @cached_property
    def _made(self) -> tuple[sp.Saddle, Argmax | None]:
        coupling = self.ratio * self.kappa
        match self.family:
            case "quadratic":
                f = random_quadratic(self.n, self.n, self.kappa, self.kappa, coupling, seed=self.n)
            case "logistic":
                f = random_logistic(self.n, self.n, self.kappa, self.kappa, coupling, seed=self.n)
            case "chain":
                f = chain(self.n, self.kappa, self.kappa, coupling)
            case _:
                f, argmax = sparse_family(self.ratio)
                f.norm  # noqa: B018 - estimated once, before any clock runs
                return f, argmax
        f.norm  # noqa: B018
        return f, quadratic_argmax(f.h)

    @property
    def f(self) -> sp.Saddle:
        """The problem, with |A| known: every contestant is given mu, L and |A|."""
        return self._made[0]

    @property
    def argmax(self) -> Argmax | None:
        """The exact maximiser over y, if there is a formula."""
        return self._made[1]


SUITE = [
    Instance("quadratic", 50, 1e2, 1.0),
    Instance("quadratic", 200, 1e2, 0.1),
    Instance("quadratic", 200, 1e4, 0.01),
    Instance("quadratic", 200, 1e4, 1.0),
    Instance("quadratic", 800, 1e2, 10.0),
    Instance("quadratic", 800, 1e4, 0.1),
    Instance("quadratic", 2000, 1e2, 1.0),
    Instance("logistic", 50, 1e2, 1.0),
    Instance("logistic", 200, 1e2, 0.1),
    Instance("logistic", 200, 1e2, 10.0),
    Instance("logistic", 200, 1e4, 0.01),
    Instance("logistic", 200, 1e4, 1.0),
    Instance("logistic", 800, 1e2, 1.0),
    Instance("logistic", 800, 1e4, 0.1),
    Instance("logistic", 2000, 1e2, 1.0),
    Instance("chain", 500, 1e2, 0.1),
    Instance("chain", 3000, 1e2, 1.0),
    Instance("chain", 6000, 1e4, 0.01),
]
SPARSE = [Instance("sparse", 20_000, 0.0, ratio) for ratio in (1e2, 1e3, 1e4)]
SPARSE_D = {1e2: 0.1, 1e3: 1e-3, 1e4: 1e-4}  # d of ``sparse_family``, by its ratio
EXPENSIVE = Instance("chain", 30_000, 1e2, 10.0)


def sparse_family(ratio: float, seed: int = 0) -> tuple[sp.Saddle, Argmax]:
    """g = mean logistic(B x) + mu/2 |x|^2, h = mu/2 |y|^2 - c'y + d sum log cosh y, |A| = 1, mu = 1/ratio.

    B (20 000 samples) and A have 10 normal entries in every row, at random columns. They are scaled by their largest
    singular value, found to machine precision: the largest eigenvalue of B'B/(4 M) is 1 - mu, hence L_g = 1, and
    |A| = 1. All labels are +1: the signs are in B already.
    """
    m, n, samples, mu, d = 20_000, 15_000, 20_000, 1.0 / ratio, SPARSE_D[ratio]
    rng = np.random.default_rng(seed)
    B, A = _ten_a_row(rng, samples, m), _ten_a_row(rng, m, n)
    B = B * (np.sqrt(4.0 * samples * (1.0 - mu)) / _largest_singular_value(B))
    A = A * (1.0 / _largest_singular_value(A))
    c = rng.standard_normal(n)
    g = sp.Logistic(B, np.ones(samples), l2=mu)
    h = d * sp.LogCosh(l2=mu / d) + sp.Quadratic(0.0, -c)
    return sp.Saddle(g, h, A), lambda s: _separable_argmax(s + c, mu, d)


def _ten_a_row(rng: np.random.Generator, rows: int, columns: int) -> csr_array:
    where = np.concatenate([rng.choice(columns, 10, replace=False) for _ in range(rows)])
    return csr_array((rng.standard_normal(10 * rows), where, np.arange(0, 10 * rows + 1, 10)), shape=(rows, columns))


def _largest_singular_value(matrix: csr_array) -> float:
    return float(svds(matrix, k=1, return_singular_vectors=False, rng=np.random.default_rng(0))[0])


def _separable_argmax(r: Array, mu: float, d: float) -> Array:
    """The y with mu y + d tanh y = r, by Newton from below, which is monotone there."""
    size = np.abs(r)
    y = np.maximum(size / (mu + d), (size - d) / mu)
    for _ in range(50):
        th = np.tanh(y)
        step = (size - mu * y - d * th) / (mu + d * (1.0 - th * th))
        y = y + step
        if (step <= 1e-15 * y).all():
            break
    return np.asarray(np.copysign(y, r))


def quadratic_argmax(h: sp.Smooth) -> Argmax | None:
    """The function s -> Q^-1 (s - b), by one factorisation."""
    if not isinstance(h, sp.Quadratic):
        return None
    b = 0.0 if h.b is None else h.b
    if isinstance(h.P, DenseCoupling):
        factor = cho_factor(h.P.A)
        return lambda s: np.asarray(cho_solve(factor, s - b))
    assert isinstance(h.P, SparseCoupling)
    lu = splu(h.P.A.tocsc())
    return lambda s: np.asarray(lu.solve(s - b))
