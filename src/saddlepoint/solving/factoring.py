"""What factorisations of the matrices of a problem would take, in calls and in time, before one is begun."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import block_array, csr_array

from saddlepoint.ground.fill_in import factor_work
from saddlepoint.methods.interior_point import DENSE, InteriorPoint, is_very_sparse
from saddlepoint.methods.needs import missing
from saddlepoint.methods.newton import Newton
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.coupling.dense import DenseCoupling
from saddlepoint.parts.coupling.operator import OperatorCoupling
from saddlepoint.parts.coupling.sparse import SparseCoupling
from saddlepoint.parts.functions import Entropy, Quadratic
from saddlepoint.parts.functions.risk import Risk
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.lower import chain_N

VERY_SPARSE = 50_000  # rows and columns up to which a matrix with few entries in each of them is factorised
LARGE = 3000  # rows from which no dense matrix is factorised
MADE = 5_000_000  # entries up to which a matrix is made by products with an operator
LARGER = 8  # times the variables of the other side that a quadratic side has where Newton's method is likely to be fast
MATRICES = 600  # calls that may count for the matrices of a problem that is factorised
NEWTON = 100  # calls of a step of Newton's method up to which it takes turns with others
NEWTON_ROUNDS = 100.0  # rounds in the time of a step of Newton's method up to which it takes turns, if that is known
# A factorisation of ready quadratic functions takes the place of a good method up to these numbers. Calls are those
# that its matrices count for, in units of the rounds of the good method.
DIRECT_ROUNDS, DIRECT_CALLS = 12.0, 2.5  # rounds in the time of the factorisation, and calls
DIRECT_MEAN, DIRECT_MOST_CALLS = 0.4, 4.0  # geometric mean of time and calls, as a share of the rounds; and calls
NEWTON_PYTHON = 2.0  # rounds that take as long as what a step of Newton's method does in Python
DENSE_FLOPS = 16.0  # multiplications of dense matrices in the time in which one number is read
SPARSE_FLOPS = 8.0  # multiplications of a sparse factorisation, as estimated, in the time in which one number is read
STEP = 300_000  # numbers that could be read from memory while a step of Anderson is prepared in Python
PLAIN_STEP = 100_000  # numbers that could be read from memory while a step without mixing is prepared in Python
WEIGHTED = 2.5  # time of a multiplication in D'WD with data D, over that in a factorisation: rows of D are scaled first
MIXED = 1.5  # times that a step of Anderson's mixing reads its memory, which is half full on average
FILL = 1e7  # multiplications that the product A'A of a sparse A may take
PER_STEP = 9.0  # rounds of a good method for eight digits, where the lower bound for one digit or so is 1
EASY = 0.05  # most problems take at least this share of the calls that their condition numbers suggest
VECTORS = 20.0  # vectors that a step of a good method reads
FLOPS = 4.0  # multiplications of a factorisation in the time in which one number is read


def entries(A: Coupling) -> int:
    """The numbers that a product with A reads; as many as a dense matrix has where nothing is known."""
    return int(A.A.nnz) if isinstance(A, SparseCoupling) else A.shape[0] * A.shape[1]


def is_separable(function: Smooth) -> bool:
    """Whether the Hessian is known to be diagonal."""
    if isinstance(function, Quadratic):
        return not isinstance(function.P, Coupling)
    return isinstance(function, Entropy) or (isinstance(function, Risk) and function.D is None)


def unmixed_rate(f: Saddle, steps: int) -> float:
    """The work of a round of a method without Anderson's mixing, where a round with it is 1.

    It takes less time, by this estimate the square of the rate, where products take less than the mixing of ``steps``
    steps; the calls are the same.
    """
    reading = 2.0 * entries(f.A)
    return math.sqrt((PLAIN_STEP + reading) / (STEP + reading + MIXED * steps * sum(f.shape)))


def products(f: Saddle) -> int:
    """The products with A or A' that count for the matrix A."""
    return min(f.A.products_for_matrix(), f.A.T.products_for_matrix())


def gradients(function: Smooth, size: int) -> int:
    """The gradients that count for the Hessian."""
    if is_separable(function):
        return 1
    hessian = sparse_hessian(function)
    return size if hessian is None else hessian.products_for_matrix()


def sparse_hessian(function: Smooth) -> SparseCoupling | None:
    """The matrix of a quadratic function, if it is sparse."""
    return function.P if isinstance(function, Quadratic) and isinstance(function.P, SparseCoupling) else None


def columns(f: Saddle) -> int:
    """The calls that count for the Hessians and A, of the busiest oracle."""
    return max(products(f), gradients(f.g, f.shape[0]), gradients(f.h, f.shape[1]))


def has_matrices(f: Saddle) -> bool:
    """Whether A is a matrix, and A and the Hessians can be factorised."""
    given = isinstance(f.A, DenseCoupling | SparseCoupling)
    return given and f.g.hessian is not None and f.h.hessian is not None


def makes_matrices(f: Saddle) -> bool:
    """Whether A has products only, but a matrix of them is small enough to be made and factorised with the Hessians."""
    small = isinstance(f.A, OperatorCoupling) and f.shape[0] * f.shape[1] <= MADE
    return small and f.g.hessian is not None and f.h.hessian is not None


def worth_newton(f: Saddle, costs: Mapping[str, float] | None = None) -> bool:
    """Whether steps of Newton's method take little time; where that is not known, whether they take few calls."""
    if missing(Newton(), f) or f.A.runtime.reading or (isinstance(f.A, OperatorCoupling) and not makes_matrices(f)):
        return False
    if costs is None and has_ready_matrices(f):
        return max(f.shape) <= LARGE and newton_rounds(f) <= NEWTON_ROUNDS
    return columns(f) <= NEWTON


def has_ready_matrices(f: Saddle) -> bool:
    """Whether A is a matrix and the Hessians are computed from data, so that their cost can be estimated."""
    return has_matrices(f) and has_ready_functions(f)


def has_ready_functions(f: Saddle) -> bool:
    """Whether the Hessians are computed from data."""
    return all(isinstance(function, Quadratic | Entropy | Risk) for function in (f.g, f.h))


def newton_rounds(f: Saddle) -> float:
    """About the time of a step of Newton's method on ready functions, in rounds of gradients and products.

    A round takes as long as reading A twice, the data twice, given Hessians once, and what is done in Python. Where A
    is an operator, its products may take no time, and its matrix takes as many of them as are counted, two in a round.
    """
    (m, n), separable = f.shape, (is_separable(f.g), is_separable(f.h))
    data = [data_entries(function) for function in (f.g, f.h)]
    given = sum(map(hessian_entries, (f.g, f.h)))
    flops = WEIGHTED * float(data[0] * m + data[1] * n)
    if any(separable):
        kept = min(m, n) if all(separable) else n if separable[0] else m
        flops += entries(f.A) * kept + kept**3 / 3.0
    else:
        flops += m**3 / 3.0 + float(m) * n * (m + n) + n**3 / 3.0
    reading, made = (entries(f.A), 0.0) if has_matrices(f) else (0, 0.5 * products(f))
    return NEWTON_PYTHON + made + flops / DENSE_FLOPS / (STEP + 2.0 * (reading + sum(data)) + given)


def data_entries(function: Smooth) -> int:
    """The numbers in the data of a ready function."""
    return entries(function.D) if isinstance(function, Risk) and function.D is not None else 0


def hessian_entries(function: Smooth) -> int:
    """The numbers in the matrix of a quadratic function; 0 where it is diagonal."""
    return entries(function.P) if isinstance(function, Quadratic) and isinstance(function.P, Coupling) else 0


def gradient_time(f: Saddle) -> float:
    """About the time of the two gradients of ready functions beside that of two products with a matrix A."""
    gradients = sum(2.0 * data_entries(function) + hessian_entries(function) for function in (f.g, f.h))
    return (0.5 * STEP + gradients) / (0.5 * STEP + 2.0 * entries(f.A))


def newton_work(f: Saddle, timed: bool) -> float:
    """The rounds of gradients and products that a step of Newton's method counts for beside other methods.

    These are its calls, or, where its time can be estimated as well, a mean of the rounds by calls of the busiest
    oracle and, with twice the weight, by time: a choice by time alone may take any number of calls.
    """
    calls = 0.25 * newton_calls(f)
    return min(newton_rounds(f) ** (2 / 3) * (1.0 + columns(f)) ** (1 / 3), calls) if timed else calls


def gram_work(f: Saddle, timed: bool) -> float:
    """The rounds of gradients and products that a factorisation of I + A'A or I + AA' counts for.

    These are its calls, or, where A is a matrix and time matters, a mean as for ``newton_work``.
    """
    calls = min(f.shape)
    if not timed or not isinstance(f.A, DenseCoupling | SparseCoupling):
        return float(calls)
    reading = entries(f.A)
    time = 1.0 + (reading * calls + calls**3 / 3.0) / DENSE_FLOPS / (STEP + 2.0 * reading)
    return float(min(time ** (2 / 3) * calls ** (1 / 3), calls))


def newton_is_soon(f: Saddle) -> bool:
    """Whether other methods are likely to take more calls than a step of Newton's method, by kx and ky."""
    kx, ky, _ = f.numbers
    return columns(f) <= EASY * PER_STEP * chain_N(kx, ky, 0.0)


def eliminates_most(f: Saddle) -> bool:
    """Whether one function only is quadratic, and has many times the variables of the other.

    The problem that is left without these is a small one, in which few steps of Newton's method are likely to suffice.
    """
    (m, n), (g, h) = f.shape, (f.g.quadratic, f.h.quadratic)
    return (g and not h and m >= LARGER * n) or (h and not g and n >= LARGER * m)


def newton_calls(f: Saddle) -> int:
    """The calls of all four oracles together that are counted for a step of Newton's method."""
    return 4 + gradients(f.g, f.shape[0]) + gradients(f.h, f.shape[1]) + products(f)


def worth_factorising(f: Saddle) -> bool:
    """Whether a factorisation of a quadratic problem takes less time and fewer calls than a good method may need.

    Where its time can be estimated, it may take more of the one if it takes as many times less of the other.
    """
    if not (has_matrices(f) or makes_matrices(f)):
        return False
    if has_ready_functions(f) and max(f.shape) <= LARGE:
        time, calls, likely = newton_rounds(f), columns(f), rounds(f)
        if time <= DIRECT_ROUNDS and calls <= DIRECT_CALLS * likely:
            return True
        if math.sqrt(time * calls) <= DIRECT_MEAN * likely and calls <= DIRECT_MOST_CALLS * likely:
            return True
    if columns(f) > min(rounds(f), MATRICES):
        return False
    reading = entries(f.A) if has_matrices(f) else 0  # products that are not known may take no time
    affordable = rounds(f) * (STEP + 2.0 * reading + VECTORS * sum(f.shape))
    return dense_work(f) / FLOPS <= affordable or sparse_work(f) / SPARSE_FLOPS <= affordable


def dense_work(f: Saddle) -> float:
    """About the multiplications of a factorisation of dense matrices; infinite if one is too large for that."""
    (m, n), known = f.shape, (is_separable(f.g), is_separable(f.h))
    if any(known):
        kept = min(m, n) if all(known) else n if known[0] else m
        return 2.0 * entries(f.A) * kept + kept**3 / 3.0 if kept <= LARGE else math.inf
    return (m + n) ** 3 / 3.0 if max(m, n) <= LARGE else math.inf


def sparse_work(f: Saddle) -> float:
    """About the multiplications of a factorisation of sparse matrices; infinite if one is dense."""
    (m, n), known = f.shape, (is_separable(f.g), is_separable(f.h))
    P, Q = sparse_hessian(f.g), sparse_hessian(f.h)
    if not isinstance(f.A, SparseCoupling) or not ((known[0] or P) and (known[1] or Q)):
        return math.inf
    A = pattern(f.A)
    if P is not None and Q is not None:
        return factor_work(block_array([[pattern(P), A], [A.T, pattern(Q)]], format="csr"))
    eliminated, other = (A, Q) if known[0] and (n <= m or not known[1]) else (csr_array(A.T), P)
    if float(np.square(np.diff(eliminated.indptr), dtype=float).sum()) > FILL:
        return math.inf
    S = eliminated.T @ eliminated
    return factor_work(S if other is None else S + pattern(other))


def pattern(A: SparseCoupling) -> Any:
    """Ones where a sparse coupling has entries."""
    rows = csr_array(A.A)
    return csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)


def rounds(f: Saddle) -> float:
    """About the rounds of a good method for eight digits, if the problem is as hard as its constants."""
    return PER_STEP * chain_N(*f.numbers)


def worth_interior_point(f: Saddle) -> bool:
    """Whether the interior-point method can run, and its 10 to 20 factorisations take less than first-order steps."""
    if missing(InteriorPoint(), f) or f.A.runtime.reading or not has_matrices(f):
        return False
    if isinstance(f.A, SparseCoupling) and is_very_sparse(f.A.A):
        return sum(f.shape) <= VERY_SPARSE
    (m, n), separable = f.shape, (is_separable(f.g) or f.g.L == 0.0, is_separable(f.h) or f.h.L == 0.0)
    factored = min(m, n) if all(separable) else n if separable[0] else m if separable[1] else max(m, n)
    return factored <= LARGE and m * n <= DENSE
