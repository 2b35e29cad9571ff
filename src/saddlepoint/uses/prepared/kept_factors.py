"""Small quadratic problems with one matrix and many linear terms: factorised once, solved and certified many times."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs
from scipy.sparse import issparse

from saddlepoint.ground.arrays import NUMPY64, Array
from saddlepoint.parts.coupling import DenseCoupling, SparseCoupling
from saddlepoint.parts.functions.product_rounding import HALF
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.affine_field import AffineField
from saddlepoint.theory.certificate import Certificate, certificate_from_residuals, distance_bound, rounding_decides

LARGEST = 1000  # most variables of x and y together
REFINEMENTS = 3  # most solves with the factors before another method is tried


class Solution(NamedTuple):
    """A point, and how it was found."""

    z: Array  # x and y, one after the other
    certificate: Certificate
    steps: int  # solves with the factors
    seconds: float  # time of the steps


class KeptFactors:
    """The problem (P x + A y + b, Q y - A' x + c) = 0 with its matrix factorised, for any b and c.

    It exists for problems in float64 on NumPy whose g and h are ``Quadratic`` with computed mu: nothing about them is
    claimed, so that a certificate rests on arithmetic alone.
    """

    def __init__(self, f: Saddle) -> None:
        P, Q, A = (_dense(M) for M in (_hessian(f, "g"), _hessian(f, "h"), f.A.matrix()))
        m, n = f.shape
        M = np.empty((m + n, m + n))
        M[:m, :m], M[:m, m:], M[m:, :m], M[m:, m:] = P, A, -A.T, Q
        off = np.zeros_like(M)
        off[:m, :m], off[m:, m:] = HALF * np.abs(P - P.T), HALF * np.abs(Q - Q.T)  # the gradients use P and Q as given
        self.mu_x, self.mu_y, self.assumes = f.mu_x, f.mu_y, f.assumes
        self.field = AffineField(M, m, off if off.any() else None)
        self.factors, self.pivots, info = dgetrf(M)
        self.is_regular = info == 0

    @staticmethod
    def fits(f: Saddle) -> bool:
        """Whether the problem is of the kind that this class solves."""
        return (
            type(f.g) is type(f.h) is Quadratic
            and f.g.trusted
            and f.h.trusted
            and isinstance(f.A, DenseCoupling | SparseCoupling)
            and f.space == NUMPY64
            and sum(f.shape) <= LARGEST
        )

    def solve(self, z: Array, q: Array, tol: float) -> Solution | None:
        """A point within tol, by solves that start at z; None if that accuracy is not reached or cannot be shown.

        Args:
            z: x and y, one after the other.
            q: b and c, one after the other.
            tol: the certified distance that is wanted.
        """
        seconds = 0.0
        for steps in range(1, REFINEMENTS + 1):
            began = time.perf_counter()
            change, _ = dgetrs(self.factors, self.pivots, self.field.residual(z, q))
            z = z - change
            seconds += time.perf_counter() - began
            Rx, Ry, error_x, error_y = self.field.lengths(z, q)
            certificate = certificate_from_residuals(self.mu_x, self.mu_y, Rx, Ry, error_x, error_y)
            if certificate.distance <= tol:
                return Solution(z, certificate._replace(assumes=self.assumes), steps, seconds)
            if rounding_decides(certificate.distance, distance_bound(self.mu_x, self.mu_y, error_x, error_y), tol):
                return None  # a certificate by products in about twice the digits may show it
        return None


def _hessian(f: Saddle, name: str) -> Any:
    function, size = getattr(f, name), f.shape[0 if name == "g" else 1]
    return function.hessian(np.zeros(size))


def _dense(M: Any) -> Array:
    return np.asarray(M.toarray() if issparse(M) else M, dtype=np.float64)
