"""A rough estimate of the work that the factorisation of a sparse symmetric matrix takes, before it is begun."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from saddlepoint.ground.arrays import Array

HUBS = 10.0  # rows with more than this many times sqrt(n) entries are eliminated last
LEAVES = 50  # rounds in which rows with one neighbour are eliminated first


def factor_work(S: Any) -> float:
    """About the number of multiplications of a factorisation of a sparse symmetric matrix; rather more than less.

    Rows with one neighbour are eliminated first and cost nothing. Rows with very many entries are eliminated last. For
    the others, an ordering with a small bandwidth is found, and the envelope is taken to fill up.

    Example:
        >>> from saddlepoint.ground.fill_in import factor_work
        >>> from scipy.sparse import eye_array
        >>> factor_work(eye_array(1000)) < 10_000
        True
    """
    graph = csr_array(S)
    n = graph.shape[0]
    counts = np.diff(graph.indptr)
    hubs = counts > HUBS * np.sqrt(n)
    rest = _without_leaves(_part(graph, ~hubs))
    size = float(hubs.sum())
    work = _envelope_work(rest) + size * size * (n + size) + graph.nnz
    return float(work)


def _part(graph: csr_array, kept: Array) -> csr_array:
    """The rows and columns of a mask."""
    return graph if bool(kept.all()) else csr_array(graph[kept][:, kept])


def _without_leaves(graph: csr_array) -> csr_array:
    """The matrix without rows that have one neighbour, and without those that have one after that, and so on."""
    for _ in range(LEAVES):
        kept = np.diff(graph.indptr) > 2  # a diagonal entry, and two neighbours at least
        if bool(kept.all()) or not bool(kept.any()):
            break
        graph = _part(graph, kept)
    return graph


def _envelope_work(graph: csr_array) -> float:
    """The sum of the squares of the bandwidths of all rows, in an ordering that makes the bandwidths small."""
    n = graph.shape[0]
    if n == 0 or graph.nnz == 0:
        return 0.0
    order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    first = np.arange(n)
    np.minimum.at(first, place[rows], place[graph.indices])
    widths = (np.arange(n) - first).astype(np.float64)
    return float(widths.dot(widths) + n)
