r"""The distance of x where y is not strongly concave, from the face on which the solution is proven to be.

Let h be linear plus a simple term of single coordinates, such as a box, so that mu_y = 0. The duality gap G proves
|x - x*| <= sqrt(2 G/mu_x), which rounding keeps above about 1e-8. Suppose that it is also proven that y* has the
entries of y outside of some coordinates U, and that in some coordinates S the simple term p of x has a gradient which
changes by at most P |x - x*| between x and x* (see ``problems.support``). With d = x - x* and e = y - y*, which is zero
outside of U, and with the residuals Rx of (x, y) and Ry of the coordinates U,

    mu_x |d|^2  <=  <Rx, d> + <Ry, e>,       |A_SU e|  <=  |Rx| + (L_x + P) |d|,

the first because subgradients of the simple terms are monotone. This is what ``theory.equations`` needs: if sigma > 0
is the smallest singular value of A_SU, it bounds |d|. No root is taken there. An l1 norm has P = 0 where x and x* have
the same sign, and w |x_G| has P = w/(|x_G| - |d|), because |a/|a| - b/|b|| <= |a - b|/min(|a|, |b|).

If coordinates of U have equal columns in A_SU and equal residuals, as samples that occur twice have, then both
inequalities contain the sum of their entries of e alone. One coordinate then stands for all of them.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.definite import smallest_singular_value
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.coupling import Coupling, DenseCoupling, SparseCoupling
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple import L1, Box, Groups, L1Box, NonNegative, Norm2, Simple
from saddlepoint.parts.simple.base import Support
from saddlepoint.problems.residuals import Lengths, Query
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.support import support_by_query
from saddlepoint.theory.certificate import Certificate
from saddlepoint.theory.equations import equations_bound

MOST = 2000  # the most coordinates of U, because all singular values of A_SU are needed
EPS = float(np.finfo(np.float64).eps)
UP = 1.0 + 1e-9  # factor that exceeds the relative rounding of sums of bounds
KNOWN = (L1Box, L1, Box, NonNegative, Groups, Norm2)  # simple terms of x whose faces are used


def distance_on_face(f: Saddle, x: Array, y: Array, proof: Certificate) -> float:
    """A proven bound on |x - x*|; infinite where the face of the solution is not known well enough.

    Args:
        f: a problem in arrays of NumPy, with an L1Box as the simple term of y; that of x is an L1Box, Groups or none.
        x, y: a point.
        proof: its certificate.
    """
    if not _is_suitable(f):
        return math.inf
    query = f.gradients_and_products(x, y)
    return distance_by_query(f, query, f.residuals(query), proof)


def distance_by_query(f: Saddle, query: Query, residuals: Lengths, proof: Certificate) -> float:
    """The bound of ``distance_on_face`` where the query at (x, y) and its residuals are known."""
    if not _is_suitable(f):
        return math.inf
    x, y = query.x, query.y
    of_x, of_y = support_by_query(f, query, residuals, proof)
    assert of_y is not None
    S = np.flatnonzero(np.ones(x.shape[0], bool) if of_x is None else of_x == Support.OFF)
    U = np.flatnonzero(_free(f.h, y, of_y))
    if U.size > MOST:
        return math.inf
    sigma, several = _smallest(f.A, S, U), U[:0]
    if sigma <= 0.0:
        U, several = _representatives(f, x, S, U)
        sigma = _smallest(f.A, S, U)
    if sigma <= 0.0:
        return math.inf
    L = f.L_x + _curvature(f.g.simple, x, proof.distance_x)
    _, _, error_x, error_y = residuals
    (noise_x, noise_y), everything = f.noise, np.arange(x.shape[0])
    r = _residual(f.g, query.x, query.gx + query.Ay, everything) + float(error_x) + noise_x
    q = _residual(f.h, query.y, query.hy - query.Atx, U, several) + float(error_y) + noise_y if U.size else 0.0
    return equations_bound(f.mu_x, L, sigma, r, q)


def _smallest(A: Coupling, S: Array, U: Array) -> float:
    """A lower bound of the smallest singular value of A_SU: 1 if U is empty, and at most 0 if nothing is known."""
    if not 0 < U.size <= S.size:
        return float(U.size == 0)
    return smallest_singular_value(_part(A, S, U)) - _matrix_error(A)


def _representatives(f: Saddle, x: Array, S: Array, U: Array) -> tuple[Array, Array]:
    """One coordinate for all those of U that have equal columns and residuals, and those that stand for several.

    With a linear h, residuals are equal where columns are equal in the rows in which x is not zero, and the entries of
    h's vector are. A subgradient of the simple term is then chosen as zero, which it can be in coordinates without an
    l1 norm.
    """
    exact = isinstance(f.h.without_term, Quadratic) and f.h.L == 0.0 and _matrix_error(f.A) == 0.0
    assert isinstance(f.h.simple, L1Box)
    if not exact or f.h.simple.weight.everywhere(f.shape[1])[U].any():
        return U, U[:0]
    slopes = f.h.without_term.grad(np.zeros(f.shape[1]))[U]
    columns = _part(f.A, np.union1d(S, np.flatnonzero(x)), U)
    _, first, count = np.unique(np.column_stack((columns, slopes)), axis=0, return_index=True, return_counts=True)
    return U[first], U[first[count > 1]]


def _curvature(p: Simple | None, x: Array, reach: float) -> float:
    """A bound P for the coordinates that are proven to be off the kinks, if |x - x*| is at most ``reach``."""
    if not isinstance(p, Groups):
        return 0.0
    sizes = p.partition.norms(x) * (1.0 - 2.0 * p.partition.rounding(x))
    weights = p.balls.radii.everywhere(sizes.shape[0])
    off = (sizes > reach) & (weights > 0.0)
    return float(np.max(weights[off] / (sizes[off] - reach), initial=0.0)) * (1.0 + 8.0 * EPS)


def _residual(f: Smooth, x: Array, w: Array, chosen: Array, without: Array | None = None) -> float:
    """A bound on the length of w plus a subgradient of the simple term, in some coordinates, but for the error of w.

    The subgradient is zero in the coordinates ``without``.
    """
    s, error = _subgradient(f.simple, x, -w)
    if without is not None:
        s[without] = 0.0
    w, s = w[chosen], s[chosen]
    R = w + s
    return norm(R) * (1.0 + (chosen.size + 4) * EPS) + 4.0 * EPS * (norm(w) + norm(s)) + error


def _subgradient(p: Simple | None, x: Array, s: Array) -> tuple[Array, float]:
    """A subgradient of p at x near s, and a bound on its error."""
    if p is None:
        return np.zeros_like(s), 0.0
    if isinstance(p, L1Box):
        return p.subgradient(x, s), 0.0
    assert isinstance(p, Groups)
    sizes = p.partition.norms(x)
    factor = p.balls.radii.everywhere(sizes.shape[0]) / np.where(sizes > 0.0, sizes, 1.0)
    off, slopes = p.partition.spread(sizes, x) > 0.0, p.partition.scaled(x, factor)
    return np.where(off, slopes, p.dual_point(s)), UP * (2.0 * p.partition.rounding(x) + 8.0 * EPS) * norm(slopes)


def _free(f: Smooth, x: Array, support: Array) -> Array:
    """Where the solution is not proven to have the entry of x."""
    assert isinstance(f.simple, L1Box)
    n = x.shape[0]
    places = {
        Support.ZERO: 0.0,
        Support.LOWER: f.simple.lower.everywhere(n),
        Support.UPPER: f.simple.upper.everywhere(n),
    }
    known = np.zeros(n, bool)
    for kind, place in places.items():
        known |= (support == kind) & (x == place)
    return ~known


def _is_suitable(f: Saddle) -> bool:
    terms = isinstance(f.h.simple, L1Box) and (f.g.simple is None or type(f.g.simple) in KNOWN)
    known = f.mu_x > 0.0 and math.isfinite(f.L_x) and not f.estimated
    return terms and known and f.space.is_numpy and isinstance(_given(f.A), DenseCoupling | SparseCoupling)


def _given(A: Coupling) -> Coupling:
    """The matrix as it was computed, for a coupling that adds bounds on its errors."""
    inner = getattr(A, "A", None)
    return inner if isinstance(inner, Coupling) and hasattr(A, "error") else A


def _matrix_error(A: Coupling) -> float:
    """A bound on the norm of the error of A."""
    error = getattr(A, "error", None)
    return 0.0 if error is None else UP * norm(np.asarray(error @ np.ones(A.shape[1])))


def _part(A: Coupling, S: Array, U: Array) -> Array:
    """The transpose of A_SU as a dense array."""
    part = _given(A).matrix()[:, U]
    part = part.toarray() if issparse(part) else np.asarray(part)
    return np.ascontiguousarray(part[S].T)
