"""Arrays from which mu of a function was computed, and whether they were written into afterwards.

The data of a function are not copied. Where the caller writes into them, the gradient is that of the new data, but mu
is still that of the old ones, and a certificate would be false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling import Coupling, DenseCoupling, SparseCoupling

if TYPE_CHECKING:
    from saddlepoint.parts.functions.smooth import Smooth

SHORT = 1 << 14  # most bytes of arrays of which a checksum is computed, which takes longer for long ones
MOST = 1 << 20  # most entries that are read; of larger arrays, every second, third, ... entry is


class SourceData:
    """An array, and a mark that changes when it is written into.

    Args:
        name: what the caller calls the array, such as "P of Quadratic".
        entries: the array.
    """

    def __init__(self, name: str, entries: Any) -> None:
        self.name, self.entries, self.mark = name, entries, _mark(entries)

    @property
    def is_changed(self) -> bool:
        """Whether the array was written into; of large arrays, a part of the entries shows it."""
        return _mark(self.entries) != self.mark


def source_data(name: str, data: Any) -> tuple[SourceData, ...]:
    """The array behind ``data``, a matrix or an array, if a change of it can be seen."""
    entries = data.A if isinstance(data, DenseCoupling | SparseCoupling) else data
    entries = entries.data if issparse(entries) else entries
    if isinstance(entries, Coupling) or _mark(entries) is None:
        return ()
    return (SourceData(name, entries),)


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
    """A number that changes with an array: the sum of its bits as integers, a checksum, or a tensor's own counter."""
    if isinstance(entries, np.ndarray):
        if entries.dtype not in (np.float32, np.float64):
            return None
        if entries.nbytes <= SHORT and entries.flags.c_contiguous:
            return crc32(entries.data)
        step = 1 + entries.size // MOST
        is_flat = entries.flags.c_contiguous or entries.flags.f_contiguous
        part = entries.ravel(order="K")[::step] if is_flat else entries[::step]
        return int(np.add.reduce(part.view(f"u{entries.itemsize}"), axis=None, dtype=np.uint64))
    try:
        return getattr(entries, "_version", None)
    except RuntimeError:  # a tensor that was made in inference mode
        return None
