"""Which problems are solved together on a CPU.

A run on many problems goes on until the last of them is solved, so that problems of similar condition numbers belong
together. And it reads the matrices of all of them in every step, which takes several times as long if they do not fit
the cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from saddlepoint.parts.coupling import Coupling
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.lower import chain_N

CACHE = 4 << 20  # bytes of the matrices of a group
LEAST = 32  # problems of a group, if there are as many: a step has the overhead of one, however many these are


def groups(problems: Sequence[Saddle]) -> list[list[int]]:
    """The numbers of the problems of each group; one group if the problems are few, small, or not of NumPy."""
    everything = [list(range(len(problems)))]
    if not problems[0].space.is_numpy:
        return everything
    most = max(LEAST, CACHE // max(1, matrix_bytes(problems[0])))
    if len(problems) <= most:
        return everything
    order = np.argsort([hardness(f) for f in problems], kind="stable")
    return [part.tolist() for part in np.array_split(order, math.ceil(len(problems) / most))]


def matrix_bytes(f: Saddle) -> int:
    """The bytes of A and of the matrices of g and h."""
    parts = [f.A, *(getattr(function, name, None) for function in (f.g, f.h) for name in ("D", "P"))]
    return sum(math.prod(part.shape) * part.dtype.itemsize for part in parts if isinstance(part, Coupling))


def hardness(f: Saddle) -> float:
    """About the number of steps of a method, from the constants and a bound on |A| that takes no products."""
    if not f.mu > 0.0:
        return math.inf
    c = f.A.norm_ceiling() / math.sqrt(f.mu_x) / math.sqrt(f.mu_y)
    return chain_N(f.kappa_x, f.kappa_y, c)
