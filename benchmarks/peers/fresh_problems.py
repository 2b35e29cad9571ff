"""Problems drawn afresh. One seed is one problem, and it is there twice: with ready functions, and written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

import saddlepoint as sp
from saddlepoint.ground.arrays import Array
from saddlepoint.problems.generators import chain, random_logistic, random_quadratic

from .problems import Argmax, Instance, quadratic_argmax

LIMIT = 30.0  # most seconds of one run
FAMILIES = {"quadratic": 0.4, "logistic": 0.4, "chain": 0.2}  # with their probabilities


@dataclass(frozen=True)
class Drawn(Instance):
    """A problem of a seed: m and n variables, condition numbers kappa and kappa_y, and |A|/L = ratio."""

    m: int = 0
    kappa_y: float = 0.0
    seed: int = 0

    @property
    def name(self) -> str:
        """The name in the tables."""
        return (
            f"{self.seed}: {self.family}, {self.m} x {self.n}, kx {self.kappa:.0e}, ky {self.kappa_y:.0e}, "
            f"|A|/L {self.ratio:.1e}"
        )

    @property
    def file_stem(self) -> str:
        """The name of the file of the solution."""
        return f"fresh-{self.seed}"

    @property
    def limit(self) -> float:
        """Seconds for one run of one contestant."""
        return LIMIT

    @cached_property
    def _made(self) -> tuple[sp.Saddle, Argmax | None]:
        f = self.new(ready=True)
        f.norm  # noqa: B018 - the peers are told |A|
        return f, quadratic_argmax(f.h)

    def new(self, *, ready: bool) -> sp.Saddle:
        """The problem as a new object, of which nothing but mu and L is known."""
        coupling = self.ratio * math.sqrt(self.kappa * self.kappa_y)
        make: Callable[..., sp.Saddle] = {"quadratic": random_quadratic, "logistic": random_logistic}.get(
            self.family, chain
        )
        sizes = (self.n,) if make is chain else (self.m, self.n)
        chosen = {} if make is chain else {"seed": self.seed}
        f = make(*sizes, self.kappa, self.kappa_y, coupling, **chosen)
        return f if ready else sp.Saddle(by_hand(f.g), by_hand(f.h), f.A.A)  # type: ignore[attr-defined]


def drawn(seed: int) -> Drawn:
    """The problem of a seed."""
    rng = np.random.default_rng(seed)
    family = str(rng.choice(list(FAMILIES), p=list(FAMILIES.values())))
    m, n = (round(10.0 ** rng.uniform(1.3, 2.9)) for _ in range(2))
    if family == "chain":
        m = n = round(10.0 ** rng.uniform(1.5, 3.7))
    kx, ky = (10.0 ** rng.uniform(0.5, 5.0) for _ in range(2))
    return Drawn(family, n, kx, 10.0 ** rng.uniform(-2.0, 1.5), m, ky, seed)


def by_hand(f: sp.Smooth) -> sp.Smooth:
    """The same function as a user writes it: a gradient in NumPy, mu and L."""
    return sp.Smooth(gradient(f), mu=f.mu, L=f.L)


def gradient(f: Any) -> Callable[[Array], Array]:
    """The gradient of a quadratic function, or of a logistic or log-cosh risk."""
    if isinstance(f, sp.Quadratic):
        P: Any = f.P.A  # type: ignore[union-attr]
        b = np.zeros(P.shape[0]) if f.b is None else f.b
        return lambda x: P @ x + b
    D, rows, l2 = f.D.A, f.D.A.shape[0], f.l2
    if isinstance(f, sp.Logistic):
        s = f.labels
        return lambda x: -D.T @ (s * expit(-s * (D @ x))) / rows + l2 * x
    return lambda x: D.T @ np.tanh(D @ x - f.t) / rows + l2 * x
