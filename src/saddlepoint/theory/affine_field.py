r"""The residual of an affine field, with a proven bound on its rounding errors.

If g and h are quadratic, the field of the problem is F(z) = M z + q with z = (x, y), q = (b, c) and
M = [[P, A], [-A', Q]]. The residual r as computed satisfies, entry by entry and for any order of summation,

    |r - F(z)|  <=  gamma_{N+1} (|M| |z| + |q|)  +  what underflow can change,          N the length of z

(N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1). For small problems, one such
residual takes a fraction of the time of the gradients and products that it consists of.
"""

from __future__ import annotations

import numpy as np

from saddlepoint.ground.arrays import Array, smallest_of
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.theory.certificate import EPS


class AffineField:
    """The field z -> M z + q in float64.

    Args:
        M: the matrix.
        split: the number of variables of x; those of y follow.
        off: bounds on the errors of the entries of M; None if they are exact.

    Example:
        >>> import numpy as np
        >>> from saddlepoint.theory import AffineField
        >>> field = AffineField(np.array([[2.0, 1.0], [-1.0, 1.0]]), split=1)
        >>> Rx, Ry, error_x, error_y = field.lengths(np.array([1.0, 1.0]), np.array([0.0, 2.0]))
        >>> Rx, Ry, 0.0 < error_x < 1e-14
        (3.0, 2.0, True)
    """

    def __init__(self, M: Array, split: int, off: Array | None = None) -> None:
        self.M, self.split, self.off = M, split, off
        self.sizes = np.abs(M)
        N = M.shape[0]
        self.gamma = gamma(N + 2, EPS)
        self.norm_errors = gamma(split + 4, EPS), gamma(N - split + 4, EPS)
        self.lost = (N + 8.0) * N**0.5 * smallest_of(M)

    def residual(self, z: Array, q: Array) -> Array:
        """M z + q, as computed."""
        return self.M @ z + q

    def lengths(self, z: Array, q: Array) -> tuple[float, float, float, float]:
        """The lengths of the residuals of x and of y at z, as computed, and bounds on the errors of the two residuals.

        The bounds are zero only if z and q are zero.
        """
        m, r, sizes = self.split, self.residual(z, q), np.abs(z)
        errors = self.gamma * (self.sizes @ sizes + np.abs(q))
        if self.off is not None:
            errors = errors + self.off @ sizes
        Rx, Ry = norm(r[:m]), norm(r[m:])
        error_x, error_y = norm(errors[:m]), norm(errors[m:])
        lost = self.lost if sizes.any() or q.any() else 0.0
        of_norm_x, of_norm_y = self.norm_errors
        return Rx, Ry, error_x + of_norm_x * Rx + lost, error_y + of_norm_y * Ry + lost
