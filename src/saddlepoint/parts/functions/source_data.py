"""Arrays of the caller on which a problem rests, and whether they were written into afterwards.

Data are not copied. Where the caller writes into those of a function, the gradient is that of the new data, but mu is
still that of the old ones, and a certificate would be false. Where A is written into, |A| and the bounds on rounding
are those of the old entries, and a certificate of an earlier point of a run is about another problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling import Coupling

if TYPE_CHECKING:
    from saddlepoint.parts.functions.smooth import Smooth

SHORT = 1 << 14  # most bytes of arrays of which a checksum is computed, which takes longer for long ones
# Longer arrays are compared by this number of sums of their entries. It is a prime number, so that entries of the same
# column are in different sums.
WIDTH = 2053
DTYPES = np.float32, np.float64, np.int32, np.int64  # of arrays whose changes are seen
SPARSE = "data", "indices", "indptr"  # the arrays of SciPy's sparse matrices
CHUNK = 1 << 18  # entries of an array with gaps in memory that are copied at a time


class SourceData:
    """An array, and a mark that changes when it is written into.

    Args:
        name: what the caller calls the array, such as "P of Quadratic".
        entries: the array.
    """

    def __init__(self, name: str, entries: Any) -> None:
        self.name, self.entries, self.mark = name, entries, _mark(entries)

    def __getstate__(self) -> tuple[str, Any, bool]:
        return self.name, self.entries, self.is_changed

    def __setstate__(self, state: tuple[str, Any, bool]) -> None:
        """The copy has a mark of its own, because a tensor's counter begins anew."""
        self.name, self.entries, was_changed = state
        self.mark = None if was_changed else _mark(self.entries)

    @property
    def is_changed(self) -> bool:
        """Whether the array was written into."""
        return _mark(self.entries) != self.mark


def source_data(name: str, data: Any) -> tuple[SourceData, ...]:
    """The arrays behind ``data``, a matrix or an array, of which a change can be seen."""
    if isinstance(data, Coupling):
        arrays = data.arrays
    elif issparse(data):
        arrays = tuple(getattr(data, part) for part in SPARSE if hasattr(data, part))
    else:
        arrays = (data,)
    sources = (SourceData(name, array) for array in arrays)
    return tuple(source for source in sources if source.mark is not None)


def sources_of_coupling(A: Coupling) -> tuple[SourceData, ...]:
    """The arrays behind A as they were when this was first asked, if changes of them can be seen."""
    if A.sources is None:
        A.sources = source_data("A", A)
    return A.sources


def refuse_changed_coupling(A: Coupling) -> None:
    """Raise a ProblemError if A was written into since this first looked at it."""
    if A.sources is None:
        sources_of_coupling(A)
    elif any(source.is_changed for source in A.sources):
        raise ProblemError(
            "A was written into after a run or a certificate, and |A| and the bounds on rounding are those of the old "
            "entries; make the problem again, or give it a copy of A"
        )


def refuse_changed_data(*functions: Smooth) -> None:
    """Raise a ProblemError if data of a function were written into after its mu was computed from them."""
    for f in functions:
        for source in f.sources:
            if source.is_changed:
                raise ProblemError(
                    f"{source.name} was written into after the function was made, whose mu = {f.mu:.6g} was computed "
                    "from the old entries; make the function again, or give it a copy"
                )


def _mark(entries: Any) -> int | None:
    """A number that changes with an array: a checksum of its bytes or of sums of its entries, or a tensor's counter.

    The sums are those of the bits as integers, of every entry in one of ``WIDTH`` of them. A change of one entry always
    changes them, and so does an exchange of two, unless they are in the same sum.
    """
    if isinstance(entries, np.ndarray):
        if entries.dtype not in DTYPES:
            return None
        if entries.nbytes <= SHORT and entries.flags.c_contiguous:
            return crc32(entries.data)
        mark = 0
        for part in _parts(entries):
            words = part.view(f"u{part.itemsize}")
            whole = len(words) // WIDTH * WIDTH
            sums = np.add.reduce(words[:whole].reshape(-1, WIDTH), axis=0, dtype=words.dtype)
            mark = crc32(words[whole:].data, crc32(sums.data, mark))
        return mark
    try:
        return getattr(entries, "_version", None)
    except RuntimeError:  # a tensor that was made in inference mode
        return None


def _parts(entries: Any) -> Iterator[Any]:
    """The entries of an array as contiguous vectors, without a copy of the whole."""
    if entries.flags.c_contiguous or entries.flags.f_contiguous:
        yield entries.ravel(order="K")
    else:
        rows = max(1, CHUNK * len(entries) // max(1, entries.size))
        for first in range(0, len(entries), rows):
            yield entries[first : first + rows].ravel()
