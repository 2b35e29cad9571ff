"""The problems of a batch as one problem, whose solution is that of all of them.

The functions are sums over blocks of coordinates, and the coupling has a block of each problem on its diagonal. A
distance that is certified for the whole bounds that of every block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.parts.coupling import Coupling, DenseCoupling
from saddlepoint.parts.functions.block_sum import BlockSum
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.blocks import FREE, Blocks
from saddlepoint.parts.simple.l1_box import L1Box
from saddlepoint.problems.saddle import Saddle

ENTRIES = 20_000_000  # most entries of the matrices of all problems together
ALIKE = 10.0  # how far mu and L of the problems may differ: a method takes the smallest mu and the largest L


def joined(problems: Sequence[Saddle]) -> Saddle | None:
    """The problems of NumPy as one; None if they are too large, too different, or one only.

    Args:
        problems: problems of equal shape.
    """
    first = problems[0]
    (m, n), count = first.shape, len(problems)
    constants = np.array([[f.mu_x, f.L_x, f.mu_y, f.L_y] for f in problems])
    alike = bool(np.all(constants.max(0) <= ALIKE * constants.min(0)))  # False with an unknown constant, NaN
    dense = all(type(f.A) is DenseCoupling and f.shape == (m, n) and f.dtype == first.dtype for f in problems)
    if count == 1 or not (alike and dense) or count * max(m * m, n * n, m * n) > ENTRIES:
        return None
    g = _sum([f.g for f in problems], m, first.dtype)
    h = _sum([f.h for f in problems], n, first.dtype)
    return Saddle(g, h, _diagonal([f.A.matrix() for f in problems]))


def _diagonal(blocks: Sequence[Array]) -> csr_array:
    """The sparse matrix with these matrices of equal shape on its diagonal."""
    stack = np.stack(blocks)
    count, m, n = stack.shape
    columns = np.broadcast_to(np.arange(count * n).reshape(count, 1, n), stack.shape)
    starts = np.arange(0, stack.size + 1, n)
    return csr_array((stack.reshape(-1), columns.reshape(-1), starts), shape=(count * m, count * n))


def _sum(functions: Sequence[Smooth], n: int, dtype: Any) -> Smooth:
    """The function of all blocks."""
    plain = [f.without_term for f in functions]
    total = (
        _quadratic(plain, n, dtype) if all(type(f) is Quadratic for f in plain) else BlockSum(plain, [n] * len(plain))
    )
    terms = [FREE if f.simple is None else f.simple for f in functions]
    return total if all(term is FREE for term in terms) else total + _term(terms, n)


def _dense(M: Any) -> Array:
    matrix: Array = M.toarray() if issparse(M) else M
    return matrix


def _quadratic(functions: Sequence[Smooth], n: int, dtype: Any) -> Smooth:
    """Quadratic functions as one, with a sparse matrix."""
    parts = [f for f in functions if isinstance(f, Quadratic)]
    mu, L, trusted = min(f.mu for f in parts), max(f.L for f in parts), all(f.trusted for f in parts)
    b = np.concatenate([np.full(n, 0.0 if f.b is None else f.b, dtype=dtype) for f in parts])
    if all(isinstance(f.P, float) for f in parts) and len({f.P for f in parts}) == 1:
        return Quadratic(parts[0].P, b, mu=mu, L=L).replace(trusted=trusted)
    if any(isinstance(f.P, Coupling) for f in parts):
        P: Array = _diagonal(
            [
                _dense(f.P.matrix()) if isinstance(f.P, Coupling) else np.diag(np.full(n, f.P, dtype=dtype))
                for f in parts
            ]
        )
    else:
        P = np.concatenate([np.full(n, f.P, dtype=dtype) for f in parts])
    return Quadratic(P, b, mu=mu, L=L).replace(trusted=trusted)


def _term(terms: Sequence[Simple], n: int) -> Simple:
    """The simple term of all blocks."""
    boxes = [term for term in terms if isinstance(term, L1Box)]
    if len(boxes) < len(terms):
        return Blocks([(range(k * n, (k + 1) * n), term) for k, term in enumerate(terms)])
    weight, lower, upper = (
        np.concatenate([getattr(box, name).everywhere(n) for box in boxes]) for name in ("weight", "lower", "upper")
    )
    return L1Box(weight, lower, upper)
