"""Distances where one of the two functions is convex and no more, and A moves every vector of its side.

If mu_y = 0, the distance to the saddle point is bounded all the same where g is strongly convex and smooth, neither
side has a simple term, and |A y| >= sigma |y| with sigma > 0: ``theory.equations.equations_distances`` has the theorem.
sigma is proven here by a factorisation of A. Where it is mu_x that is 0, the sides change places.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import dense, to_host
from saddlepoint.ground.definite import smallest_singular_value
from saddlepoint.parts.functions import Smooth
from saddlepoint.theory.certificate import Certificate
from saddlepoint.theory.equations import equations_distances, equations_saddle_certificate

if TYPE_CHECKING:
    from saddlepoint.problems.saddle import Saddle

SIDE = 1000  # most variables of the side whose mu is 0 for which sigma is proven
ENTRIES = 1_000_000  # most entries of A for which sigma is proven


class OneSided(NamedTuple):
    """What the theorem needs of a problem one of whose sides is strongly convex.

    Attributes:
        mu, L: of the function of that side.
        sigma: a proven bound with |A y| >= sigma |y|, where y is the other side (|A'x| >= sigma |x| where it is x).
        of_x: whether x is the strongly convex side.
        assumes: what a distance rests on beside arithmetic and mu, in sentences.
    """

    mu: float
    L: float
    sigma: float
    of_x: bool
    assumes: tuple[str, ...]

    def certificate(self, found: Certificate, errors: tuple[float, float]) -> Certificate:
        """The certificate by the theorem instead of ``found``; ``errors`` are the rounding errors of Fx and Fy."""
        if not self.of_x:
            exchanged = self._replace(of_x=True).certificate(found.of_exchanged_players, errors[::-1])
            return exchanged.of_exchanged_players
        noise = found.noise_x, found.noise_y
        return equations_saddle_certificate(self.mu, self.L, self.sigma, found.Fx, found.Fy, *errors, *noise)

    def distances(self, Fx: float, Fy: float) -> tuple[float, float]:
        """Bounds on |x - x*| and |y - y*| where the two parts of the field have these lengths."""
        if self.of_x:
            return equations_distances(self.mu, self.L, self.sigma, Fx, Fy)
        return equations_distances(self.mu, self.L, self.sigma, Fy, Fx)[::-1]


def one_sided(f: Saddle) -> OneSided | None:
    """What the theorem needs; None where the problem is of another kind, or sigma or L are not known."""
    if not is_one_sided(f) or obstacle(f):
        return None
    of_x = f.mu_x > 0.0
    name, strong = ("g", f.g) if of_x else ("h", f.h)
    L, assumed = proven_smoothness(strong, name)
    return OneSided(strong.mu, L, _sigma(f), of_x, assumed)


def is_one_sided(f: Saddle) -> bool:
    """Whether one mu is 0 and the other one is not, and there is no simple term."""
    return f.blocks == 1 and not f.has_simple and ((f.mu_x == 0.0 < f.mu_y) or (f.mu_y == 0.0 < f.mu_x))


def obstacle(f: Saddle) -> str:
    """What the theorem lacks for such a problem, and what to do about it, in words; empty if it lacks nothing."""
    of_x = f.mu_x > 0.0
    name, L, (m, n) = ("g", f.g.L, f.shape) if of_x else ("h", f.h.L, f.shape[::-1])
    lines = "columns" if of_x else "rows"
    if name in f.estimated or not math.isfinite(L):
        return f"the smoothness L of {name} is not known: give it"
    if n > m:
        return f"the {n} {lines} of A cannot be independent, since they have {m} entries"
    if not _is_known(f) and (not f.A.has_entries or f.space.of_x.is_sharded or n > SIDE or m * n > ENTRIES):
        return (
            f"the {lines} of A are proven to be independent only where A is one array or SciPy sparse array with "
            f"at most {SIDE} of them and {ENTRIES:,} entries".replace(",", " ")
            + "; EqualityConstrained takes sigma= for larger ones"
        )
    return "" if _sigma(f) > 0.0 else f"the {lines} of A are not proven to be independent"


def _is_known(f: Saddle) -> bool:
    """Whether sigma of A is known; A may be a coupling that forwards to the one of which it is known."""
    known = None if f.known_sigma is None else f.known_sigma[0]
    return known is not None and (known is f.A or known is getattr(f.A, "A", None))


def _sigma(f: Saddle) -> float:
    """The proven sigma, 0 if there is none; it is kept for copies of the problem with the same A."""
    if f.known_sigma is None or not _is_known(f):
        M = f.A.matrix()
        M = (dense(M) if f.space.is_numpy else to_host(M)).astype(np.float64)
        f.known_sigma = f.A, smallest_singular_value(M.T if f.mu_x > 0.0 else M)
    return f.known_sigma[1]


def proven_smoothness(g: Smooth, name: str = "g") -> tuple[float, tuple[str, ...]]:
    """L of a function and, if it is not proven, a sentence that says so."""
    L = g.proven_L
    return (max(L, g.mu), ()) if L is not None else (g.L, (f"The smoothness L of {name} is at most {g.L:.6g}.",))
