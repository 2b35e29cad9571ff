"""Linear dependence of floating-point vectors, decided in exact arithmetic.

Floating-point numbers are integers times powers of two, so that elimination without fractions decides whether a row is
exactly a combination of others. Data of whole numbers often have such rows.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import qr

from saddlepoint.ground.arrays import Array

WORK = 1 << 18  # most rows times squared columns that are tried, which takes about a second
BITS = 1 << 10  # most bits of an integer entry


def spanning_rows(M: Array, summands: int = 1) -> Array | None:
    """The numbers of independent rows of M of which all rows are exactly combinations.

    They are independent without the last entry of each row, too. None if there are no such rows, or if that would take
    long to find.

    Args:
        M: the matrix.
        summands: how many columns at the end stand for one: their exact sum is the last entry of a row.

    Example:
        >>> import numpy as np
        >>> from saddlepoint.ground.exact_rank import spanning_rows
        >>> spanning_rows(np.array([[1.0, 2.0, 3.0], [0.5, 1.0, 1.5], [1.0, 0.0, 0.0]])).tolist()
        [0, 2]
        >>> spanning_rows(np.array([[1.0, 2.0, 3.0], [0.5, 1.0, 1.0]])) is None  # the last entries do not fit
        True
    """
    rows, columns = M.shape[0], M.shape[1] - summands + 1
    if rows * columns**2 > WORK or columns < 2 or not np.isfinite(M).all():
        return None
    entries = _as_integers(M, summands)
    if entries is None:
        return None
    order = qr(M[:, : columns - 1].T, mode="r", pivoting=True)[1]  # far from dependent rows come first
    kept: list[int] = []
    pivots: list[tuple[int, list[int]]] = []
    for i in order.tolist():
        row = entries[i]
        for place, pivot in pivots:
            if row[place]:
                row = _primitive([pivot[place] * a - row[place] * b for a, b in zip(row, pivot, strict=True)])
        place = next((k for k, a in enumerate(row) if a), columns)
        if place == columns - 1 or max(map(int.bit_length, row)) > BITS:
            return None
        if place < columns:
            kept.append(i)
            pivots.append((place, row))
    return np.sort(np.array(kept, dtype=np.intp))


def _as_integers(M: Array, summands: int) -> list[list[int]] | None:
    """The entries as integers: each column is multiplied by a power of two, which changes no dependence of rows."""
    rows, columns = M.shape[0], M.T.tolist()
    found = []
    for parts in [*([column] for column in columns[:-summands]), columns[-summands:]]:
        pairs = [a.as_integer_ratio() for part in parts for a in part]
        scale = max(denominator for _, denominator in pairs)
        if scale.bit_length() > BITS:
            return None
        numbers = [numerator * (scale // denominator) for numerator, denominator in pairs]
        found.append([sum(numbers[i::rows]) for i in range(rows)])
    return [list(row) for row in zip(*found, strict=True)]


def _primitive(row: list[int]) -> list[int]:
    """The row without the common divisor of its entries."""
    divisor = math.gcd(*row)
    return [a // divisor for a in row] if divisor > 1 else row
