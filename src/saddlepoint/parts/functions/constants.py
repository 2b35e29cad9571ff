"""Constants mu and L of the ready-made functions. Every mu is proven; L of a large matrix is an estimate by Lanczos.

Steps of methods depend on L. Where a proof needs a bound of the smoothness, it takes one that is proven as well, which
is larger than the estimate for large matrices (``Smooth.proven_L``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import (
    Array,
    Space,
    all_finite,
    copied,
    dense,
    eps_of,
    is_array,
    is_jax,
    namespace,
    to_host,
)
from saddlepoint.ground.definite import ALL_EIGENVALUES, Ends, eigenvalue_ends, largest_eigenvalue_bound
from saddlepoint.ground.definite_factors import IndefiniteError, TooLargeError
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.gershgorin import UNIT, gershgorin, symmetric_part
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.recording import is_recording
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.spectrum import largest_eigenvalue
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.coupling import ArrayCoupling, Coupling, DenseCoupling
from saddlepoint.parts.functions.probes import changed_argument, differ
from saddlepoint.parts.functions.smooth import Gradient

DENSE = ALL_EIGENVALUES  # largest size of a matrix of which all eigenvalues are computed
WIDE = 500  # up to this many rows, the eigenvalues of a matrix with more columns than rows are computed
ROUNDING = 32 * float(np.finfo(np.float64).eps)  # usual relative error of a computed largest eigenvalue
MARGIN = 1.1  # factor on the quick estimate of the norm of a matrix, which errs by a few percent
STARTS, STEPS = 4, 12  # points around which L of a black box is estimated, and steps of power iteration at each of them


def eigenvalue_bounds(P: Coupling, mu: float | None = None, L: float | None = None) -> tuple[float, float]:
    """Numbers (mu, L) with mu <= lambda_min and lambda_max <= L for a positive semidefinite P; given ones are kept.

    mu is proven (``ground/definite.py``). If P is symmetric only up to rounding, it is a bound for (P + P')/2, on which
    the monotonicity of x -> P x depends. It is slightly negative if lambda_min is zero or cannot be told from zero.
    L is proven too with up to DENSE rows; else it is that of Lanczos with a margin.
    """
    if is_recording():
        low, top = recorded_ends(P.matrix())
        return low if mu is None else mu, top if L is None else L
    n = P.shape[0]
    high = math.nan
    if mu is None:
        mu, high = _proven_ends(P)
    if L is None:
        L = high if high >= 0.0 else largest_eigenvalue(P.mul, n, space=P.space).upper
        if not high >= 0.0 and P.has_entries:  # a random start may be orthogonal to the direction that matters
            L = max(L, 1.05 * float(np.max(P.row_lengths())))
    return mu, max(L, mu)


def _proven_ends(P: Coupling) -> Ends:
    matrix = _on_host(P.matrix())
    if not abs(matrix).max() > 0.0:
        return Ends(0.0, 0.0)  # what is proven of this matrix is slightly off
    try:
        return eigenvalue_ends(matrix)
    except IndefiniteError as error:
        known = "" if math.isnan(error.found) else f": its smallest eigenvalue is at most {error.found:.6g}"
        raise ProblemError(f"P is not positive semidefinite{known}") from None
    except TooLargeError:
        raise ProblemError(
            f"mu of P, a matrix with {P.shape[0]} rows, could not be proven, because its factorisation would take too "
            "long; give mu=, a number that no eigenvalue of P is below"
        ) from None


def _square(number: float) -> float:
    """The square, infinite where it overflows; ``**`` would raise an exception."""
    return number * number


def eigenvalue_ceiling(P: Coupling) -> float:
    """A proven upper bound of the largest eigenvalue of a symmetric P of any size.

    With more than DENSE rows it is by Gershgorin's theorem, and may be far above: for a dense matrix by a factor of the
    order of sqrt(n).
    """
    matrix = _on_host(P.matrix())
    if P.shape[0] <= DENSE:
        return largest_eigenvalue_bound(dense(matrix))
    with np.errstate(all="ignore"):
        given = symmetric_part(-matrix)
        rows = -gershgorin(given) * given.unit
    return min(math.nextafter(rows, math.inf), P.norm_ceiling())


def gram_bounds(D: Coupling) -> tuple[float, float, float]:
    """Bounds on the smallest and largest eigenvalue of D'D, and a proven upper bound; the lower one is proven.

    The last one is infinite where the entries of D are not known. Of large data it is the square of the Frobenius norm.
    """
    rows, columns = D.shape
    if is_recording():
        low, top = recorded_ends(D.matrix(), gram=True)
        return low if columns <= rows else 0.0, top, top
    if isinstance(D, DenseCoupling) and columns > rows > WIDE:  # the smallest eigenvalue is 0
        return 0.0, _square(MARGIN * D.norm), _gram_ceiling(D)
    if isinstance(D, DenseCoupling | ArrayCoupling) and min(rows, columns) <= DENSE:
        gram, terms = _gram(D, columns <= rows)
        try:
            ends = _gram_ends(_on_host(gram), terms)
        except RuntimeError:  # a matrix that cannot be copied to the host: only the trivial lower bound is proven
            return 0.0, _square(D.estimated_norm().upper), _gram_ceiling(D)
        return (max(ends.low, 0.0) if columns <= rows else 0.0), ends.high, ends.high
    if D.space.of_x.is_sharded and columns <= DENSE:  # this takes one round, in which only the Gram matrix is sent
        unit = 1.0 if D.dtype == np.float64 else 2.0**29  # D'D was summed up in the dtype of D
        terms = int(min(rows * unit, 2.0**60))
        ends = _gram_ends(_on_host(D.gram()), terms)
        return max(ends.low, 0.0), ends.high, ends.high if ends.low > -math.inf else math.inf
    return 0.0, _square(D.estimated_norm().upper), _gram_ceiling(D)


@np.errstate(over="ignore")
def _gram_ceiling(D: Coupling) -> float:
    """The square of a bound of |D|, such as the Frobenius norm; infinite if the entries of D are not known."""
    return _square(D.norm_ceiling())


def proven_smoothness(D: Coupling | None, gram: float, curvature: float, l2: float) -> float | None:
    """A bound of the smoothness of mean_i loss(d_i'x) + l2/2 |x|^2, by one of the eigenvalues of D'D; None if D has no
    entries that are known. Without D the losses are those of the coordinates, and added up.
    """
    if gram == math.inf or (D is not None and not D.has_entries):
        return None
    return (1.0 + 8.0 * UNIT) * (l2 + curvature * gram / (1 if D is None else D.shape[0]))


def recorded_ends(M: Any, gram: bool = False) -> tuple[Any, Any]:
    """The smallest and the largest eigenvalue of M, or of M'M, as numbers of JAX; NaN in other libraries.

    The smallest one is lowered by more than the usual rounding error of eigenvalues.
    """
    if not is_jax(namespace(M)):
        return math.nan, math.nan
    from jax import numpy as jnp
    from jax.lax import stop_gradient

    M = stop_gradient(M)
    square = (M.T @ M if M.shape[1] <= M.shape[0] else M @ M.T) if gram else 0.5 * (M + M.T)
    found = jnp.linalg.eigvalsh(square)
    slack = 4.0 * square.shape[0] * eps_of(square) * found[-1]
    return jnp.maximum(found[0] - slack, 0.0), found[-1] + slack


def _gram(D: Any, by_columns: bool) -> tuple[Any, int]:
    """D'D, or DD', in float64, and the number of roundings of an entry.

    Long sums are taken in parts, whose sums are then added up: the square root as many roundings are enough.
    """
    A = D.space.wide.cast(D.A if by_columns else D.A.T)
    if "float64" not in str(A.dtype):
        A = np.asarray(to_host(A), dtype=np.float64)
    terms = A.shape[0]
    step = max(256, math.isqrt(terms))
    parts = [A[i : min(i + step, terms), :] for i in range(0, terms, step)]
    with np.errstate(over="ignore", invalid="ignore"):
        gram = parts[0].T @ parts[0]
        for part in parts[1:]:
            gram = gram + part.T @ part
    if not all_finite(gram):
        raise ProblemError("the entries of D are so large that D'D overflows; scale D (and x with it)")
    return gram, step + -(-terms // step)


def _gram_ends(gram: Array, terms: int) -> Ends:
    """The ends of the eigenvalues of a Gram matrix whose entries were computed with this number of roundings.

    Its entries (i, j) are wrong by at most gamma |d_i||d_j| with the columns d of D, and |d_i|^2 is about gram_ii.
    """
    growth = gamma(terms + 1, UNIT)
    if not growth < 0.1:  # nothing is proven about sums that are so long
        return Ends(-math.inf, float(np.linalg.norm(gram, 2)))
    error = 2.0 * growth * gram.shape[0] * np.asarray(gram.diagonal(), dtype=np.float64)
    return eigenvalue_ends(gram, error)


def _on_host(matrix: Any) -> Any:
    """A matrix of any library as a NumPy array or a SciPy sparse array."""
    return matrix if issparse(matrix) else to_host(matrix)


def estimate_smoothness(grad: Gradient, n: int, space: Space, *, name: str = "the function") -> tuple[float, int]:
    """An estimate of L of a black box, and the gradient calls it took.

    It is twice the largest quotient |grad(x) - grad(z)|/|x - z| that power iteration finds around a few random points.
    It is not a bound: the run checks it, and no certificate depends on it.
    """
    rng = np.random.default_rng(0)
    largest, calls = 0.0, 0
    for start in range(STARTS):
        x = space.zeros(n) if start == 0 else space.cast(rng.standard_normal(n))
        given = copied(x)
        base = grad(given)
        if not is_array(base) or base.shape != x.shape:
            raise ProblemError(
                f"the gradient of {name} returned {short_repr(base)} for a point of shape {tuple(x.shape)}; "
                "expected an array of the same shape"
            )
        if differ(given, x):
            raise changed_argument(name)
        direction = space.cast(rng.standard_normal(n))
        length = (1.0 + norm(x)) * space.eps**0.33
        for _ in range(STEPS):
            direction = direction * (length / norm(direction))
            change = grad(x + direction) - base
            calls += 1
            largest = max(largest, norm(change) / length)
            if not norm(change) > 0.0:
                break
            direction = change
        calls += 1
    if not (np.isfinite(largest) and largest > 0.0):
        raise ProblemError(f"the gradient gave a smoothness of {largest}; give L, or correct the gradient")
    return 2.0 * largest, calls
