r"""A copy of A in a lower precision for the steps, the true A for the proof.

Problem:    F(x, y) = (grad g(x) + A y, grad h(y) - A' x) = 0 with products of a copy S of A in fewer bits.
Recursion:  (x_{k+1}, y_{k+1}) is nearly the zero of (grad g(x) + S y + a_k, grad h(y) - S' x - b_k), where
            a_k = (A - S) y_k and b_k = (A - S)' x_k come from the true A.
Guarantee:  a round multiplies the distance by |A - S|/sqrt(mu_x mu_y) at most, up to the error at which it ends.
            Certificates are those of the true A. When a round gains too little, A itself takes over.
Reference:  J. Wilkinson, Rounding Errors in Algebraic Processes, 1963; N. Higham and T. Mary, Mixed precision
            algorithms in numerical linear algebra, Acta Numerica 2022.
"""

from __future__ import annotations

import math

from saddlepoint.arrays import Array
from saddlepoint.coupling import ArrayCoupling, Coupling, DenseCoupling, Norm, SparseCoupling
from saddlepoint.errors import ProblemError
from saddlepoint.functions.smooth import tilted
from saddlepoint.problem import Saddle

UNITS = {"float32": 2.0**-24, "bfloat16": 2.0**-9}  # relative rounding of an entry
ENOUGH = 0.01  # a round may end when it has left this share of the certified distance,
PATIENCE = 3  # and ends after so many certificates without progress;
GAIN = 0.5  # one that leaves more than this has stalled


class Stored:
    """The rounds of one run on a copy of A.

    Attributes:
        stalled: whether the lower precision gains nothing any more.
    """

    def __init__(self, f: Saddle, storage: str) -> None:
        self.f, self.storage = f, storage
        self.S = narrowed(f.A, storage)
        self.began = self.least = math.inf  # certified distances at the start of the round, and the least in it
        self.rounds = self.waited = 0
        self.stalled = False

    def problem(self, x: Array, y: Array) -> Saddle:
        """The problem of the round that begins at (x, y)."""
        f = self.f
        (Ay, Atx), (Sy, Stx) = f.A.both(x, y), self.S.both(x, y)
        self.rounds, self.waited = self.rounds + 1, 0
        return Saddle.of(tilted(f.g, Ay - Sy), tilted(f.h, Stx - Atx), self.S, f.space)

    def over(self, distance: float) -> bool:
        """Note a certified distance; whether the round is over."""
        if self.began == math.inf:
            self.began = self.least = distance
        self.waited = 0 if distance < 0.9 * self.least else self.waited + 1
        self.least = min(self.least, distance)
        if self.waited < PATIENCE and self.least > ENOUGH * self.began:
            return False
        self.stalled = self.least > GAIN * self.began
        self.began = self.least
        return True


def narrowed(A: Coupling, storage: str) -> Coupling:
    """A copy of A in ``storage``, which takes and gives vectors of the old dtype."""
    if storage not in UNITS:
        raise ProblemError(f"storage is {storage!r}; expected {' or '.join(UNITS)}")
    if UNITS[storage] <= 0.5 * A.space.eps:
        raise ProblemError(f"storage is {storage}, and A is {A.space}; expected a lower precision than A's")
    if isinstance(A, ArrayCoupling):
        dtype = getattr(A.space.xp, storage, None)
        if dtype is None:
            raise ProblemError(f"storage is {storage}, which {A.space} has not; use float32")
        S: Coupling = type(A)(A.space.xp.astype(A.A, dtype))
    elif isinstance(A, DenseCoupling | SparseCoupling):
        if storage == "bfloat16":
            raise ProblemError("storage is bfloat16, which NumPy has not; use float32, or PyTorch or JAX arrays")
        S = type(A)(A.A.astype(storage))
    else:
        raise ProblemError(f"storage needs the entries of A, and A is a {type(A).__name__}; leave storage out")
    norm = A.norm_estimate
    growth = 1.0 + UNITS[storage] * math.sqrt(min(A.shape))  # |A - S| is at most the unit times the Frobenius norm
    S.__dict__["norm_estimate"] = Norm(norm.lower / growth, norm.upper * growth, norm.failure, 0)
    return S
