"""Copies of a coupling in a lower precision, which read fewer bytes per product."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, Space
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import power_of_two
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.coupling.array import ArrayCoupling
from saddlepoint.parts.coupling.base import Coupling, Norm
from saddlepoint.parts.coupling.dense import DenseCoupling
from saddlepoint.parts.coupling.forwarding import ForwardingCoupling
from saddlepoint.parts.coupling.sparse import SparseCoupling

ROUNDING = {"float32": 2.0**-24, "bfloat16": 2.0**-9}  # relative rounding error of an entry, by storage
UNSCALED = 2.0**40  # largest |A|, and inverse of the smallest one, for which the copy is not scaled


class LowPrecisionCoupling(Coupling):
    """A copy S of a coupling in a lower precision, which takes and returns vectors in the original precision.

    Args:
        S: the copy.
        space: library, dtype and device of the vectors that it takes and returns.
        work: the same with the dtype in which S computes.
        norm: bounds on |S|.
        scale: a power of two; S is the copy divided by it, where entries of the copy could overflow or underflow.
    """

    trusted = True

    def __init__(self, S: Coupling, space: Space, work: Space, norm: Norm, scale: float = 1.0) -> None:
        self.S, self._space, self.work, self._norm, self.scale = S, space, work, norm, scale
        self.shape, self.dtype = S.shape, space.dtype
        self.fused, self.fused_compiled = S.fused, S.fused_compiled

    @property
    def space(self) -> Space:
        """Library, dtype and device of the original coupling."""
        return self._space

    @property
    def norm_estimate(self) -> Norm:
        """Bounds on |S|, derived from those of the original coupling."""
        return self._norm

    def mul(self, y: Array) -> Array:
        """S y."""
        return self._back(self.S.mul(self.work.cast(y)))

    def tmul(self, x: Array) -> Array:
        """S' x."""
        return self._back(self.S.tmul(self.work.cast(x)))

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(S y, S' x)."""
        Sy, Stx = self.S.both(self.work.cast(x), self.work.cast(y))
        return self._back(Sy), self._back(Stx)

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, S'(s t + e)) with t = S y."""
        if self.scale != 1.0:
            return super().through(y, s, e)
        t, u = self.S.through(self.work.cast(y), s, None if e is None else self.work.cast(e))
        return self.space.cast(t), self.space.cast(u)

    def _back(self, product: Array) -> Array:
        """A product in the original precision and scale."""
        wide = self.space.cast(product)
        return wide if self.scale == 1.0 else self.scale * wide

    def unscaled(self) -> LowPrecisionCoupling:
        """The copy divided by ``scale``, whose products take and return numbers of ordinary size."""
        n, c = self._norm, 1.0 / self.scale
        return LowPrecisionCoupling(
            self.S, self.space, self.work, Norm(c * n.lower, c * n.upper, n.failure, n.products)
        )

    def _transpose(self) -> Coupling:
        return LowPrecisionCoupling(self.S.T, self.space, self.work, self._norm, self.scale)


def check_storage(A: Coupling, storage: Any) -> None:
    """Raise a ProblemError unless ``low_precision(A, storage)`` exists; nothing is copied."""
    if not isinstance(storage, str) or storage not in ROUNDING:
        raise ProblemError(f"storage is {short_repr(storage)}; expected {' or '.join(ROUNDING)}")
    if ROUNDING[storage] <= 0.5 * A.space.eps:
        raise ProblemError(f"storage is {storage}, and A is {A.space}; expected a lower precision than A's")
    if not isinstance(A, ArrayCoupling | DenseCoupling | SparseCoupling):
        raise ProblemError(
            f"storage needs the entries of A, and A is of the class {type(A).__name__}; leave storage out"
        )
    if storage == "bfloat16" and isinstance(A, DenseCoupling | SparseCoupling):
        raise ProblemError("storage is bfloat16, which NumPy does not have; use float32, or PyTorch or JAX arrays")
    if not hasattr(A.space.xp, storage):
        raise ProblemError(f"storage is {storage}, which {A.space} does not have; use float32")


def low_precision(A: Coupling, storage: str) -> Coupling:
    """A copy of A in ``storage`` ("float32" or "bfloat16"); A keeps it for the next call.

    A wrapper of another coupling (counted, scaled, in other units) is put around the copy of that coupling.
    """
    if isinstance(A, ForwardingCoupling):
        return A.around(low_precision(A.A, storage))
    kept: dict[str, Coupling] = A.__dict__.setdefault("_low_precision", {})
    if storage not in kept:
        check_storage(A, storage)
        kept[storage] = _copy(A, storage)
    return kept[storage]


def _copy(A: Any, storage: str) -> LowPrecisionCoupling:
    xp = A.space.xp
    norm = A.norm_estimate
    is_usual = norm.upper == 0.0 or 1.0 / UNSCALED <= norm.upper <= UNSCALED
    scale = 1.0 if is_usual else power_of_two(norm.upper)
    entries = A.A if scale == 1.0 else A.A * (1.0 / scale)
    S: Coupling = type(A)(entries.astype(storage) if xp is np else xp.astype(entries, getattr(xp, storage)))
    growth = 1.0 + ROUNDING[storage] * math.sqrt(min(A.shape))  # |A - S| <= ROUNDING times the Frobenius norm of A
    bounds = Norm(norm.lower / growth, norm.upper * growth, norm.failure, 0)
    return LowPrecisionCoupling(S, A.space, A.space._replace(dtype=_float32(xp)), bounds, scale)


def _float32(xp: Any) -> Any:
    return np.dtype(np.float32) if xp is np else xp.float32
