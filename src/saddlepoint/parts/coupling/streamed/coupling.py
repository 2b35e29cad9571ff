"""The coupling whose A is on disk: all products with a block are computed while it is in memory."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse, vstack

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import Accumulator, Sum
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm, power_of_two
from saddlepoint.ground.spectrum import Eigenvalue, largest_of_starts
from saddlepoint.ground.validation import positive
from saddlepoint.parts.coupling.base import Coupling, Norm, raised_lengths, scale_from_columns
from saddlepoint.parts.coupling.dense import DenseCoupling
from saddlepoint.parts.coupling.runtime import Runtime
from saddlepoint.parts.coupling.sparse import SparseCoupling
from saddlepoint.parts.coupling.streamed.budget import MEMORY_LIMIT, as_bytes, format_bytes, plan
from saddlepoint.parts.coupling.streamed.reading import Reading, read_blocks
from saddlepoint.parts.coupling.streamed.store import Block, RawStore, Store
from saddlepoint.parts.coupling.transpose import TransposeByProducts

STARTS = 8  # number of start vectors of the estimate of |A|: in a pass, eight cost hardly more than one
MARGIN = 0.1  # relative accuracy of the estimate of |A|^2; with eight starts a third of the passes suffices
FUSE_BYTES = 1 << 20  # bytes of a block from which one pass through memory is faster than two products


class Lengths(NamedTuple):
    """Norms of the columns and of the rows of A."""

    columns: Array
    rows: Array


class StreamedCoupling(Coupling):
    """An m x n matrix on disk, read in blocks of rows; while one block is multiplied, the next is read.

    ``mul``, ``tmul``, ``both`` and ``through`` take one pass over the store each. Blocks are added up in order, so the
    same store and memory limit give the same bits. The first pass also checks that all entries are finite and computes
    the norms of rows and columns.

    Args:
        store: reads the rows of A.
        memory_limit: bytes that blocks and vectors may take together. Blocks that fit stay in memory.
        norm: an upper bound on |A|, if one is known. It saves the passes of the estimate.
    """

    def __init__(self, store: Store, memory_limit: int = MEMORY_LIMIT, norm: float | None = None) -> None:
        self.store, self.plan = store, plan(store, memory_limit)
        self.shape, self.dtype, self.has_entries = store.shape, store.dtype, True
        self.fused = True
        self.given_norm = None if norm is None else positive(norm, "norm")
        self.trusted = norm is None  # a norm that the caller gave is compared with the products
        self.reading = Reading()
        self.runtime = Runtime(self.reading)
        self._resident: dict[int, Any] = {}
        self._spare: list[Array] = []
        self._lengths: Lengths | None = None

    # -- products ------------------------------------------------------------------------------------------------------

    def mul(self, y: Array) -> Array:
        """A y."""
        t, _ = self._vectors(y=y)

        def multiply(rows: slice, A: Coupling) -> None:
            t[rows] = A.mul(y)

        self._pass(multiply)
        return t

    def tmul(self, x: Array) -> Array:
        """A' x."""
        _, u = self._vectors(x=x)

        def multiply(rows: slice, A: Coupling) -> None:
            np.add(u, A.tmul(x[rows]), out=u)

        self._pass(multiply)
        return u

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(A y, A' x)."""
        t, u = self._vectors(x=x, y=y)

        def multiply(rows: slice, A: Coupling) -> None:
            t[rows], part = A.both(x[rows], y)
            np.add(u, part, out=u)

        self._pass(multiply)
        return t, u

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, A'(s t + e)) with t = A y."""
        t, u = self._vectors(y=y) if e is None else self._vectors(x=e, y=y)

        def multiply(rows: slice, A: Coupling) -> None:
            t[rows], part = A.through(y, s, None if e is None else e[rows])
            np.add(u, part, out=u)

        self._pass(multiply)
        return t, u

    def _vectors(self, x: Array | None = None, y: Array | None = None) -> tuple[Array, Array]:
        """Zero vectors for A y and A' x; raises a ValueError if x or y has the wrong length."""
        for v, size in ((x, self.shape[0]), (y, self.shape[1])):
            if v is not None and v.shape != (size,):
                raise ValueError(f"a vector of shape {v.shape} was given to {self!r}; expected ({size},)")
        kind = np.result_type(self.dtype, *(v.dtype for v in (x, y) if v is not None))
        return np.zeros(self.shape[0], kind), np.zeros(self.shape[1], kind)

    def _pass(self, work: Callable[[slice, Coupling], None]) -> None:
        """Call ``work`` with every block; the first pass also inspects the entries."""
        lengths = None
        if self._lengths is None:
            lengths = Lengths(np.zeros(self.shape[1]), np.zeros(self.shape[0]))
        with closing(read_blocks(self.store, self.plan, self._resident, self._spare, self.reading)) as blocks:
            for block, rows in blocks:
                A = _block_coupling(rows)
                if lengths is not None:
                    self._inspect(block, A, lengths)
                work(block.rows, A)
                A.__dict__.pop("T", None)  # break the A/A.T reference cycle so that the block is freed now
                del A, rows
        if lengths is not None:
            self._lengths = lengths

    def _inspect(self, block: Block, A: DenseCoupling | SparseCoupling, lengths: Lengths) -> None:
        """Add the norms of a block to ``lengths``; raise a ProblemError if an entry is not finite."""
        with np.errstate(all="ignore"):
            columns, rows = A.column_norms, A.T.column_norms  # type: ignore[attr-defined]
        if not (np.isfinite(columns).all() and np.isfinite(rows).all()):
            matrix: Any = A.matrix()
            matrix = matrix.tocoo() if issparse(matrix) else matrix
            entries = matrix.data if issparse(matrix) else matrix
            wrong = np.argwhere(~np.isfinite(entries))
            if len(wrong):
                at = wrong[0]
                i, j = (matrix.row[at[0]], matrix.col[at[0]]) if issparse(matrix) else at
                raise ProblemError(
                    f"{self.store.name} has a {entries[tuple(at)]} in row {block.first + i}, column {j}; "
                    "all entries must be finite"
                )
        np.hypot(lengths.columns, columns, out=lengths.columns)
        lengths.rows[block.rows] = rows

    @property
    def lengths(self) -> Lengths:
        """Norms of columns and rows; this takes a pass if there was none before."""
        if self._lengths is None:
            self._pass(lambda rows, A: None)
        assert self._lengths is not None
        return self._lengths

    def _transpose(self) -> Coupling:
        return StreamedTranspose(self)

    # -- the norm ------------------------------------------------------------------------------------------------------

    @cached_property
    def norm_estimate(self) -> Norm:
        """The bound of the caller, or bounds by Lanczos from several starts at once, in about a dozen passes."""
        return self.estimated_norm() if self.given_norm is None else Norm(0.0, self.given_norm, 0.0, 0)

    def _gram_eigenvalue(self, quick: bool = False) -> tuple[float, Eigenvalue]:
        size, space = norm(self.lengths.columns), self.space
        most = space.largest**0.2
        unit = 1.0 if 1.0 / most <= size <= most or size == 0.0 else power_of_two(size, space.exponent)
        return unit, largest_of_starts(lambda V: self._gram_product(V, unit), self.shape[1], STARTS, space, MARGIN)

    def _gram_product(self, V: Array, unit: float) -> Array:
        """A'A V/unit^2 for several columns V, in one pass."""
        product = np.zeros_like(V)

        def multiply(rows: slice, A: Coupling) -> None:
            matrix = A.matrix()
            np.add(product, matrix.T @ ((matrix @ V) * (1.0 / unit)), out=product)

        V = V * (1.0 / unit)
        self._pass(multiply)
        return product

    def norm_ceiling(self) -> float:
        """The Frobenius norm, rounded up."""
        return norm(self.lengths.columns) * (1.0 + 1e-14 * math.sqrt(math.prod(self.shape)))  # Frobenius

    def rounding_scale(self, y: Array) -> float:
        """A bound from the norms of the columns of A."""
        return scale_from_columns(self.lengths.columns, y)

    def row_lengths(self) -> Array:
        """The lengths of the rows, rounded up."""
        return raised_lengths(self.lengths.rows, self.shape[1])

    def compensated_mul(self, y: Array) -> Sum:
        """A y in about twice the digits, in one pass."""
        hi, lo, error = np.zeros((3, self.shape[0]))

        def multiply(rows: slice, A: Coupling) -> None:
            part = A.compensated_mul(y)
            assert part is not None
            hi[rows], lo[rows], error[rows] = part

        self._pass(multiply)
        return Sum(hi, lo, error)

    def compensated_tmul(self, x: Array) -> Sum:
        """A' x in about twice the digits, in one pass."""
        total = Accumulator(np.zeros(self.shape[1]))

        def multiply(rows: slice, A: Coupling) -> None:
            part = A.T.compensated_mul(x[rows])
            assert part is not None
            total.add_sum(part)

        self._pass(multiply)
        return total.total()

    # -- A as a matrix, if it fits the memory --------------------------------------------------------------------------

    def matrix(self) -> Any:
        """A itself, if it fits the memory."""
        self.check_room(2 * sum(block.held for block in self.plan.blocks), "A itself")
        return self.some_rows(0, self.shape[0])

    def some_rows(self, first: int, last: int) -> Any:
        """The rows of whole blocks, in memory."""
        parts: list[Any] = []

        def take(rows: slice, A: Coupling) -> None:
            if first <= rows.start < last:
                parts.append(A.matrix().copy())

        self._pass(take)
        return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)

    def gram(self) -> Array:
        """A'A in one pass, if it fits the memory."""
        n = self.shape[1]
        self.check_room(3 * n * n * self.dtype.itemsize, f"the {n} x {n} matrix A'A and its factor")
        total = np.zeros((n, n), self.dtype)

        def add(rows: slice, A: Coupling) -> None:
            part = A.gram()
            np.add(total, part.toarray() if issparse(part) else part, out=total)

        self._pass(add)
        return total

    @property
    def room(self) -> int:
        """Bytes of the memory limit that are left for matrices of the methods."""
        return self.plan.free - sum(self.plan.blocks[k].held for k in self.plan.keep)

    def check_room(self, needed: int, what: str) -> None:
        """Raise a ProblemError unless ``needed`` bytes are left for ``what``."""
        if needed > self.room:
            raise ProblemError(
                f"{what} would take {format_bytes(needed)} where memory_limit leaves {format_bytes(self.room)}; "
                "raise it, or choose a method that needs products only, such as lpd-gs"
            )

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_resident": {}, "_spare": []}  # blocks are not pickled, but read again


class StreamedTranspose(TransposeByProducts):
    """The transpose of a coupling on disk. ``both`` takes one pass, ``through`` two: it needs all of A' x first."""

    of: StreamedCoupling

    def _gram_eigenvalue(self, quick: bool = False) -> tuple[float, Eigenvalue]:
        return self.of._gram_eigenvalue(quick)

    def rounding_scale(self, y: Array) -> float:
        """A bound from the norms of the rows of A."""
        return scale_from_columns(self.of.lengths.rows, y)

    def row_lengths(self) -> Array:
        """The lengths of the columns of A, rounded up."""
        return raised_lengths(self.of.lengths.columns, self.shape[1])

    def compensated_mul(self, y: Array) -> Sum:
        """A' y in about twice the digits, in one pass."""
        return self.of.compensated_tmul(y)

    def matrix(self) -> Any:
        """A', if it fits the memory."""
        return self.of.matrix().T

    def gram(self) -> Array:
        """A A', if it fits the memory: in each pass, all blocks are multiplied with a group of rows that is held."""
        A, m = self.of, self.of.shape[0]
        left = A.room - 3 * m * m * A.dtype.itemsize
        A.check_room(3 * m * m * A.dtype.itemsize, f"the {m} x {m} matrix A A' and its factor")
        total = np.zeros((m, m), A.dtype)
        groups = _groups(A.plan.blocks, max(left, 0))
        for first, last in groups:
            held = A.some_rows(first, last)

            def add(rows: slice, block: Coupling, first: int = first, last: int = last, held: Any = held) -> None:
                part = block.matrix() @ held.T
                total[rows, first:last] = part.toarray() if issparse(part) else part

            A._pass(add)
        return total


def _groups(blocks: list[Block], room: int) -> list[tuple[int, int]]:
    """Groups of consecutive rows of whole blocks that fit the room twice, since concatenating them copies them."""
    groups: list[tuple[int, int]] = []
    taken = 0
    for block in blocks:
        taken += 2 * block.held
        if groups and taken <= room:
            groups[-1] = groups[-1][0], block.last
        else:
            groups.append((block.first, block.last))
            taken = 2 * block.held
    return groups


def _block_coupling(rows: Any) -> DenseCoupling | SparseCoupling:
    return SparseCoupling(rows) if issparse(rows) else DenseCoupling(rows, FUSE_BYTES)


def streamed(
    store: Store, memory_limit: int | str = MEMORY_LIMIT, norm: float | None = None, by_columns: bool = False
) -> Coupling:
    """The coupling of a store, or its transpose where the rows of the store are the columns of A."""
    coupling = StreamedCoupling(store, as_bytes(memory_limit), norm)
    return coupling.T if by_columns else coupling


def streamed_map(
    A: np.memmap[Any, Any], name: str, memory_limit: int | str = MEMORY_LIMIT, norm: float | None = None
) -> Coupling | None:
    """The coupling that reads the file of a mapped array; None if the file does not hold the array as it is."""
    whole = A.flags.c_contiguous or A.flags.f_contiguous
    held = getattr(A, "_mmap", None)
    if not whole or A.ndim != 2 or A.dtype not in (np.float32, np.float64) or A.filename is None or held is None:
        return None
    if A.mode == "c" or not A.size:  # with mode 'c', changes are only in memory
        return None
    start = A.offset - A.offset % mmap.ALLOCATIONGRANULARITY
    offset = start + A.ctypes.data - np.frombuffer(held, np.uint8).ctypes.data
    rows = A if A.flags.c_contiguous else A.T
    store = RawStore(Path(A.filename), offset, (rows.shape[0], rows.shape[1]), rows.dtype, f"{name} ({A.filename})")
    return streamed(store, memory_limit, norm, by_columns=not A.flags.c_contiguous)
