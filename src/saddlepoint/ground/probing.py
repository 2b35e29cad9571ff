"""How many products with vectors determine a sparse matrix whose pattern is known.

Columns that have no row in common can share a product (A. Curtis, M. Powell and J. Reid, On the estimation of sparse
Jacobian matrices, IMA Journal of Applied Mathematics 1974).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

MANY = 100_000  # entries from which columns are not put into groups one by one


def products_needed(S: Any) -> int:
    """The number of groups of columns of a SciPy sparse matrix without a common row, found one column after another.

    For a matrix with very many entries, it is a bound: a column of c entries meets at most c (r - 1) other columns if
    no row has more than r entries.

    Example:
        >>> from saddlepoint.ground.probing import products_needed
        >>> from scipy.sparse import diags_array
        >>> products_needed(diags_array([[1.0] * 9, [2.0] * 10, [1.0] * 9], offsets=[-1, 0, 1]))
        3
    """
    rows, n = S.shape
    if S.nnz > MANY:
        S = S if S.format in ("csr", "csc") else S.tocsc()  # a copy in another format would take longer than the counts
        longest = int(np.diff(S.indptr).max()), int(np.bincount(S.indices[: S.nnz]).max())
        of_row, of_column = longest if S.format == "csr" else longest[::-1]
        return min(int(n), 1 + of_column * (of_row - 1))
    by_column = S.tocsc()
    taken = [0] * rows  # the groups with an entry in each row, as bits
    entries, starts = by_column.indices.tolist(), by_column.indptr.tolist()
    groups = 1
    for start, end in pairwise(starts):
        seen = 0
        for row in entries[start:end]:
            seen |= taken[row]
        free = ~seen & (seen + 1)  # the first group that has no entry in these rows
        groups = max(groups, free.bit_length())
        for row in entries[start:end]:
            taken[row] |= free
    return groups
