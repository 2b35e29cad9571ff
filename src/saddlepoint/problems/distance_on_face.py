r"""The distance of x where y is not strongly concave, from the face on which y is.

Let h be convex plus a simple term q of single coordinates, such as a box, so that mu_y = 0. The duality gap G proves
|x - x*| <= sqrt(2 G/mu_x), which rounding keeps above about 1e-8. With d = x - x* and e = y - y*, residuals Rx and Ry
with subgradients of the simple terms, and w = grad h(y) - A'x, monotonicity proves

    mu_x |d|^2  <=  <Rx, d>  +  sum_i Ry_i e_i,

where the subgradient of q in coordinate i may be any one at y_i. Let y_i be at a bound or a kink, and let -w_i be
inside the interval of the subgradients there, at least c_i away from its ends. With the end on the side of e_i as the
subgradient, Ry_i e_i <= -c_i |e_i|. Let F hold the other coordinates. In some coordinates S let the simple term p of x
have a gradient which changes by at most P |d| between x and x*. Let sigma > 0 be the smallest singular value of A_SF
and a_i the length of column i of A. Then

    |A_SF e_F|  <=  |Rx| + (L_x + P) |d| + sum_i a_i |e_i|      with i not in F,
    mu_x |d|^2  <=  |Rx| |d| + |Ry_F|/sigma (|Rx| + (L_x + P) |d|) + sum_i (a_i |Ry_F|/sigma - c_i) |e_i|.

If c_i >= a_i |Ry_F|/sigma for all i, the last sum can be left out, and what is left is the inequality of
``theory.equations``, which bounds |d| without a root. Nothing has to be known of y*. An l1 norm has P = 0 where x and
x* have the same sign, and w |x_G| has P = w/(|x_G| - |d|), because |a/|a| - b/|b|| <= |a - b|/min(|a|, |b|).

Without sigma, |e_F| is at most the diameter of the domain of q in the coordinates F, and the first inequality alone
bounds |d|, with a root.

If coordinates of F have equal columns in A_SF and equal residuals, as samples that occur twice have, then both
inequalities contain the sum of their entries of e alone. One coordinate then stands for all of them. Likewise, if a
column and its residual are the same combination of others, as in data of whole numbers, these stand for it.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.definite import smallest_singular_value
from saddlepoint.ground.exact_rank import spanning_rows
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.coupling import Coupling, DenseCoupling, SparseCoupling
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple import L1, Box, Groups, L1Box, NonNegative, Norm2, Simple
from saddlepoint.parts.simple.base import Support
from saddlepoint.problems.residuals import Lengths, Query
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.certificate import Certificate
from saddlepoint.theory.equations import bounded_multipliers_bound, equations_bound

MOST = 2000  # the most coordinates of F, because all singular values of A_SF are needed
EPS = float(np.finfo(np.float64).eps)
LOOKS = 3  # the most choices of F
UP = 1.0 + 1e-9  # factor that exceeds the relative rounding of sums of bounds
KNOWN = (L1Box, L1, Box, NonNegative, Groups, Norm2)  # simple terms of x whose faces are used


def distance_on_face(f: Saddle, x: Array, y: Array, proof: Certificate, tol: float = 0.0) -> float:
    """A proven bound on |x - x*|; infinite where nothing can be proven.

    Args:
        f: a problem in arrays of NumPy, with an L1Box as the simple term of y; that of x is an L1Box, Groups or none.
        x, y: a point.
        proof: its certificate.
        tol: a distance that is small enough: products in about twice the digits are taken if the bound is larger.
    """
    if not _is_suitable(f):
        return math.inf
    query = f.gradients_and_products(x, y)
    return distance_by_query(f, query, f.residuals(query), proof, tol)


def distance_by_query(f: Saddle, query: Query, residuals: Lengths, proof: Certificate, tol: float = 0.0) -> float:
    """The bound of ``distance_on_face`` where the query at (x, y) and its residuals are known."""
    if not _is_suitable(f):
        return math.inf
    errors = float(residuals[2]) + f.noise[0], float(residuals[3]) + f.noise[1]
    w, v, reach = query.gx + query.Ay, query.hy - query.Atx, proof.distance_x
    for rough in (True, False):
        found = _bound(f, query, w, v, errors, reach, rough)
        if found <= tol:
            return found
    field = f.compensated_field(query)
    if field is None:
        return found
    w, v, error_x, error_y = field
    return min(found, _bound(f, query, w, v, (error_x + f.noise[0], error_y + f.noise[1]), min(found, reach)))


def _bound(
    f: Saddle, query: Query, w: Array, v: Array, errors: tuple[float, float], reach: float, rough: bool = False
) -> float:
    """The bound from the field (w, v) without subgradients, of which the norms of the errors are bounded.

    Args:
        f: the problem.
        query: the query at (x, y).
        w, v: grad g(x) + A y and grad h(y) - A'x, as computed.
        errors: bounds on the norms of their errors.
        reach: a bound on |x - x*|.
        rough: whether the smallest singular value may be a rough one.
    """
    x, y, q = query.x, query.y, f.h.simple
    r = _residual(f.g, x, w, np.arange(x.shape[0])) + errors[0]
    S, L = _off_kinks(f, x, w, reach)
    slack = _slack(q, y, v) - errors[1]
    lengths, free = _column_lengths(f.A), ~(slack > 0.0)
    for _ in range(LOOKS):
        F = np.flatnonzero(free)
        sigma, several = _smallest(f.A, S, F, rough), F[:0]
        if sigma <= 0.0:
            F, several = _representatives(f, x, y, v, S, F)
            sigma = _smallest(f.A, S, F, rough)
        if sigma <= 0.0:
            break
        of_F = _residual(f.h, y, v, F, several) + errors[1] if F.size else 0.0
        more = ~free & ~(slack >= UP * lengths * (of_F / sigma))
        if not more.any():
            return equations_bound(f.mu_x, L, sigma, r, of_F)
        free |= more
    F = np.flatnonzero(~(slack > 0.0))
    return bounded_multipliers_bound(f.mu_x, r, _residual(f.h, y, v, F) + errors[1], _diameter(q, F, y.shape[0]))


def _off_kinks(f: Saddle, x: Array, w: Array, reach: float) -> tuple[Array, float]:
    """The coordinates S where the simple term of x has a gradient if |x - x*| <= ``reach``, and the number L_x + P."""
    p = f.g.simple
    if p is None:
        return np.arange(x.shape[0]), f.L_x
    with np.errstate(all="ignore"):
        found = p.support(x, w, reach, math.inf)
    return np.flatnonzero(found == Support.OFF), f.L_x + _curvature(p, x, reach)


def _slack(q: Simple | None, y: Array, v: Array) -> Array:
    """How far -v is inside the interval of the subgradients of q at y, in each coordinate; 0 where there is only one.

    It is rounded down. Where y is outside of its bounds it is minus infinity.
    """
    assert isinstance(q, L1Box)
    n = y.shape[0]
    weight, lower, upper = q.weight.everywhere(n), q.lower.everywhere(n), q.upper.everywhere(n)
    right = np.where(y >= upper, math.inf, np.where(y < 0.0, -weight, weight))
    left = np.where(y <= lower, -math.inf, np.where(y > 0.0, weight, -weight))
    slack = np.minimum(right + v, -v - left)
    slack -= 4.0 * EPS * (np.abs(v) + weight)
    return np.where((y >= lower) & (y <= upper), slack, -math.inf)


def _column_lengths(A: Coupling) -> Array:
    """Bounds on the lengths of the columns of A."""
    return np.asarray(A.T.row_lengths()) + np.zeros(A.shape[1])


def _smallest(A: Coupling, S: Array, F: Array, rough: bool = False) -> float:
    """A lower bound of the smallest singular value of A_SF: 1 if F is empty, and at most 0 if nothing is known."""
    if not 0 < F.size <= min(S.size, MOST):
        return float(F.size == 0)
    return smallest_singular_value(_part(A, S, F), rough) - _matrix_error(A)


def _representatives(f: Saddle, x: Array, y: Array, v: Array, S: Array, F: Array) -> tuple[Array, Array]:
    """Coordinates that stand for all of F, and those of them that stand for several.

    With a linear h, columns of A with equal entries where x is not zero, and with equal entries of h's vector, have
    equal residuals, and what holds of equal ones holds of exact combinations. The subgradient of the simple term is
    then chosen as ``_slope_of_norm``.
    """
    rows, slope = _exact_rows(f, np.union1d(S, np.flatnonzero(x)), F), _slope_of_norm(f.h.simple, y, v)[F]
    if rows is None:
        return F, F[:0]
    rows = np.column_stack((rows, slope))
    _, first, count = np.unique(rows, axis=0, return_index=True, return_counts=True)
    chosen = spanning_rows(rows[first], summands=2)
    if chosen is None or chosen.size == first.size:
        return F[first], F[first[count > 1]]
    return F[first[chosen]], F[first[chosen]]


def _slope_of_norm(q: Simple | None, y: Array, v: Array) -> Array:
    """The slope of the l1 norm at y, and at its kink the one on the side of -v; it is a subgradient at a bound, too."""
    assert isinstance(q, L1Box)
    return q.weight.everywhere(y.shape[0]) * np.sign(np.where(y == 0.0, -v, y))


def _exact_rows(f: Saddle, S: Array, F: Array) -> Array | None:
    """A matrix whose rows depend on each other exactly as the columns of A_SF with the entries of h below them do.

    Of a matrix with errors, only the caller's data tell. None where nothing is known.
    """
    if _matrix_error(f.A) == 0.0:
        if not isinstance(f.h.without_term, Quadratic) or f.h.L != 0.0:
            return None
        return np.column_stack((_part(f.A, S, F), f.h.without_term.grad(np.zeros(f.shape[1]))[F]))
    of_data = getattr(getattr(f.A, "error", None), "exact_rows", None)
    return None if of_data is None else np.asarray(of_data(F, S))


def _diameter(q: Simple | None, F: Array, n: int) -> float:
    """The diameter of the box in the coordinates F."""
    assert isinstance(q, L1Box)
    return UP * norm(q.upper.everywhere(n)[F] - q.lower.everywhere(n)[F])


def _curvature(p: Simple | None, x: Array, reach: float) -> float:
    """A bound P for the coordinates that are proven to be off the kinks, if |x - x*| is at most ``reach``."""
    if not isinstance(p, Groups):
        return 0.0
    sizes = p.partition.norms(x) * (1.0 - 2.0 * p.partition.rounding(x))
    weights = p.balls.radii.everywhere(sizes.shape[0])
    off = (sizes > reach) & (weights > 0.0)
    return float(np.max(weights[off] / (sizes[off] - reach), initial=0.0)) * (1.0 + 8.0 * EPS)


def _residual(f: Smooth, x: Array, w: Array, chosen: Array, several: Array | None = None) -> float:
    """A bound on the length of w plus a subgradient of the simple term, in some coordinates, but for the error of w.

    The subgradient is that of ``_slope_of_norm`` in the coordinates ``several``.
    """
    s, error = _subgradient(f.simple, x, -w)
    if several is not None and several.size:
        s[several] = _slope_of_norm(f.simple, x, w)[several]
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
    return float(getattr(A, "error_norm", 0.0))


def _part(A: Coupling, S: Array, F: Array) -> Array:
    """The transpose of A_SF as a dense array."""
    part = _given(A).matrix()[:, F]
    part = part.toarray() if issparse(part) else np.asarray(part)
    return np.ascontiguousarray(part[S].T)
