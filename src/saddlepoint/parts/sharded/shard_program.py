"""Programs that the shards run, and how their answers are combined.

Each shard has a store, a dict from names to its rows of A, its part of g and its parts of vectors. In a round, every
shard receives the same few vectors of length n (the broadcast) and the same program, runs the program on its store
(``execute``), and answers with a few short arrays. The answers are added up by a binary tree over the shards (``fold``,
``total``). The tree does not depend on which worker holds which shard, so results have the same bits with any number of
workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS, Sum, added
from saddlepoint.parts.functions import compensated
from saddlepoint.parts.functions.product_rounding import absolute

MATRIX = 0  # the name of the rows of A, a ``Coupling``, in the store of every shard
# Bytes of a shard from which reading A once for two products is faster. It is less than for a whole matrix, because
# the other shards of the process have replaced this one in the cache since the last round.
FUSE_BYTES = 1 << 22
Store: TypeAlias = dict[int, Any]  # what a shard holds, by name
Answers: TypeAlias = list[Array]  # the answers of one shard, or their sums over several shards
Piece: TypeAlias = tuple[int, int]  # a node of the tree: the shards k with first <= k < last


class Step(NamedTuple):
    """One step of a program.

    Attributes:
        op: a name in ``STEPS`` or ``REDUCTIONS``.
        out: the name under which the shard stores the vector that the step computes.
        args: names of vectors and functions, numbers, and positions in the broadcast, as ``op`` needs them.
    """

    op: str
    out: int | None
    args: tuple[Any, ...]


class Program(NamedTuple):
    """What every shard does in a round.

    Attributes:
        steps: what to do, in order.
        drop: names that are deleted from the store before the steps.
        temporary: names that are deleted from the store after the steps.
    """

    steps: tuple[Step, ...]
    drop: tuple[int, ...] = ()
    temporary: tuple[int, ...] = ()

    @property
    def reductions(self) -> tuple[str, ...]:
        """How each answer is combined over the shards: a name in ``COMBINED``."""
        return tuple(REDUCTIONS[step.op] for step in self.steps if step.op in REDUCTIONS)


# The operations whose answers leave the shards, and how the answers are combined: a name in ``COMBINED``.
REDUCTIONS = {
    "through": "sum",
    "both": "sum",
    "tmul": "sum",
    "compensated_tmul": "compensated",
    "gram": "sum",
    "dot": "sum",
    "value": "sum",
    "sum_of_term": "sum",
    "squares_of_term": "sum",
    "max": "max",
    "frobenius": "max",
    "risk_rounding": "sum",
    "risk_compensated": "compensated",
}


def execute(program: Program, store: Store, broadcast: Sequence[Array]) -> Answers:
    """Run a program on one shard: the store is changed, and the answers are returned.

    The same program on the same store gives the same bits. A store that was lost can therefore be rebuilt by running
    the same programs again.
    """
    for name in program.drop:
        store.pop(name, None)
    answers: Answers = []
    with np.errstate(all="ignore"):
        for op, out, args in program.steps:
            if op in REDUCTIONS:
                made, answer = REDUCING[op](store, broadcast, *args)
                answers.append(np.atleast_1d(np.asarray(answer)))
            else:
                made = STEPS[op](store, broadcast, *args)
            if out is not None:
                store[out] = made
    for name in program.temporary:
        store.pop(name, None)
    return answers


def _combine(store: Store, _: Sequence[Array], terms: Sequence[tuple[float, int]]) -> Array:
    first, *more = (store[name] if factor == 1.0 else store[name] * factor for factor, name in terms)
    return first + more[0] if more else np.array(first)


def _weighted(store: Store, _: Sequence[Array], terms: Sequence[tuple[float, int]]) -> Array:
    (factor, name), *more = terms
    total: Array = store[name] * factor
    for factor, name in more:
        total += store[name] * factor
    return total


def _fill(store: Store, _: Sequence[Array], value: float, dtype: str) -> Array:
    return np.full(store[MATRIX].shape[0], value, dtype)


def _grad(store: Store, _: Sequence[Array], function: int, x: int) -> Array:
    point = store[x]
    return np.asarray(store[function].grad(point), point.dtype)


def _prox(store: Store, _: Sequence[Array], function: int, v: int, t: float) -> Array:
    point = store[v]
    return np.asarray(store[function].prox(point, t), point.dtype)


def _of_term(
    store: Store, _: Sequence[Array], function: int, what: str, vectors: Sequence[int], t: float | None
) -> Array:
    """The vector that a simple function makes of vectors, and of a number t if it needs one."""
    given = [store[name] for name in vectors]
    return np.asarray(getattr(store[function], what)(*given, *(() if t is None else (t,))), given[-1].dtype)


def _number_of_term(store: Store, function: int, what: str, vectors: Sequence[int]) -> float:
    return float(getattr(store[function], what)(*(store[name] for name in vectors)))


def _compensated(store: Store, _: Sequence[Array], function: int, x: int) -> Array:
    """The rows high, low and error of a gradient in about twice the digits."""
    return np.stack(store[function].compensated(store[x]))


def _compensated_mul(store: Store, given: Sequence[Array], y: int) -> Array:
    """The rows high, low and error of A y in about twice the digits."""
    return np.stack(store[MATRIX].compensated_mul(given[y]))


def _compensated_tmul(store: Store, _: Sequence[Array], x: int) -> tuple[None, Array]:
    """High, low and error of A'x in about twice the digits, one after the other."""
    return None, np.ravel(store[MATRIX].T.compensated_mul(store[x]))


def _rounding(store: Store, _: Sequence[Array], function: int, x: int) -> Array:
    return np.asarray(store[function].rounding(store[x]))


# The operations whose results stay in the shard, with their arguments.
STEPS: dict[str, Callable[..., Array]] = {
    "combine": _combine,  # arguments: one or two pairs (factor, vector); the result is their sum
    "fill": _fill,  # a number, a dtype
    "grad": _grad,  # a function, a vector
    "prox": _prox,  # a function, a vector, a number
    "of_term": _of_term,  # a simple function, the name of its method, vectors, a number or None
    "compensated": _compensated,  # a function, a vector
    "rounding": _rounding,  # a function, a vector; the result bounds the errors of the gradient
    "mul": lambda store, given, y: store[MATRIX].mul(given[y]),  # the position of y in the broadcast
    "weighted": _weighted,  # pairs (factor, vector); the result is their sum
    "over": lambda store, _, a, number: store[a] / number,
    "times": lambda store, _, a, b: store[a] * store[b],
    "abs": lambda store, _, a: np.abs(store[a]),
    "compensated_mul": _compensated_mul,  # the position of y in the broadcast
    "row": lambda store, _, a, k: store[a][k],
    "isfinite": lambda store, _, a: np.isfinite(store[a]).astype(store[a].dtype),
    "cast": lambda store, _, a, dtype: store[a].astype(dtype),
}


def _through(store: Store, given: Sequence[Array], y: int, s: float, e: int | None) -> tuple[Array, Array]:
    pair: tuple[Array, Array] = store[MATRIX].through(given[y], s, None if e is None else store[e])
    return pair


def _both(store: Store, given: Sequence[Array], x: int, y: int) -> tuple[Array, Array]:
    pair: tuple[Array, Array] = store[MATRIX].both(store[x], given[y])
    return pair


def _gram(store: Store, _: Sequence[Array]) -> tuple[None, Array]:
    gram = store[MATRIX].gram()
    return None, gram.toarray() if hasattr(gram, "toarray") else gram


def _risk_rounding(store: Store, given: Sequence[Array], function: int, y: int, shards: int) -> tuple[None, Array]:
    """Bounds on the errors of the entries of A' grad loss(A y), where A are the rows of this shard.

    The errors of A y change the slopes by at most L times as much. ``shards`` more additions follow.
    """
    A, loss, point = store[MATRIX], store[function], given[y]
    t = A.mul(point)
    slope, error = loss.grad(t), loss.rounding(t) + loss.L * absolute(A).errors(point)
    return None, absolute(A.T).errors(slope, error, shards)


def _risk_compensated(
    store: Store, given: Sequence[Array], function: int, y: int, curvature: float | None
) -> tuple[None, Array]:
    """The rows hi, lo and error of A' grad loss(A y) in about twice the digits, where A are the rows of this shard.

    ``curvature`` is the second derivative of the loss if that is a number: then the low digits of A y change the slopes
    by as many times as much. Otherwise they become part of the error, times L.
    """
    A, loss = store[MATRIX], store[function]
    r = A.compensated_mul(np.asarray(given[y], np.float64))
    slope = Sum(*loss.compensated(r.hi))
    if curvature is None:
        slope = slope._replace(error=slope.error + loss.L * (1.0 + EPS) * (np.abs(r.lo) + r.error))
    else:
        slope = compensated.total(slope, compensated.times(Sum(r.lo, 0.0 * r.lo, r.error), curvature))
    found = compensated.product(A.T, slope)
    assert found is not None  # the rows of a shard are an array or a sparse array
    return None, np.ravel(found)


# The operations of ``REDUCTIONS``: each returns a vector that stays in the shard, or None, and the answer.
REDUCING: dict[str, Callable[..., tuple[Array | None, Any]]] = {
    "through": _through,  # the position of y, a number s, a vector e or None: t = A y, and A'(s t + e)
    "both": _both,  # a vector x, the position of y: A y, and A'x
    "tmul": lambda store, _, x: (None, store[MATRIX].tmul(store[x])),
    "compensated_tmul": _compensated_tmul,  # a vector
    "gram": _gram,
    "frobenius": lambda store, _: (None, store[MATRIX].norm_ceiling()),  # a bound on the Frobenius norm of the rows
    "risk_rounding": _risk_rounding,  # a function of A y, the position of y, the number of shards
    "risk_compensated": _risk_compensated,  # a function of A y, the position of y, the curvature of the loss or None
    "dot": lambda store, _, a, b: (None, store[a].dot(store[b])),
    "max": lambda store, _, a: (None, store[a].max()),
    "sum_of_term": lambda store, _, *args: (None, _number_of_term(store, *args)),  # as of_term, without t
    "squares_of_term": lambda store, _, *args: (None, _number_of_term(store, *args) ** 2),
    "value": lambda store, _, function, x: (None, float(store[function](store[x]))),
}
# How the answers of two shards become one.
COMBINED: dict[str, Callable[[Array, Array], Array]] = {
    "sum": lambda a, b: a + b,
    "max": np.maximum,
    "compensated": lambda a, b: np.ravel(added(a.reshape(3, -1), b.reshape(3, -1))),  # sums as rows hi, lo and error
}


def fold(answers: Mapping[int, Answers], reductions: Sequence[str], shards: int) -> dict[Piece, Answers]:
    """The answers of some of the shards, combined as far as the tree allows without the others."""
    pieces: dict[Piece, Answers] = {(k, k + 1): own for k, own in answers.items()}
    _fold(pieces, reductions, 0, shards)
    return pieces


def _fold(pieces: dict[Piece, Answers], reductions: Sequence[str], first: int, last: int) -> None:
    if last - first == 1 or not any(first <= start < last for start, _ in pieces):
        return
    middle = (first + last) // 2
    for half in ((first, middle), (middle, last)):
        _fold(pieces, reductions, *half)
    if (first, middle) in pieces and (middle, last) in pieces:
        left, right = pieces.pop((first, middle)), pieces.pop((middle, last))
        pieces[first, last] = [COMBINED[how](a, b) for a, b, how in zip(left, right, reductions, strict=True)]


def total(pieces: Iterable[Mapping[Piece, Answers]], reductions: Sequence[str], shards: int) -> Answers:
    """The combined answers of all shards, from what each worker has folded."""
    return joined(pieces, reductions, shards)[0, shards]


def joined(pieces: Iterable[Mapping[Piece, Answers]], reductions: Sequence[str], shards: int) -> dict[Piece, Answers]:
    """What several workers have folded, combined as far as the tree allows without the others."""
    every = {piece: answers for some in pieces for piece, answers in some.items()}
    _fold(every, reductions, 0, shards)
    return every


class Shards:
    """Some of the shards in one process: their stores, by the numbers of the shards."""

    def __init__(self, stores: Mapping[int, Store], shards: int) -> None:
        self.stores, self.shards = dict(stores), shards

    def run(self, program: Program, broadcast: Sequence[Array]) -> dict[Piece, Answers]:
        """Run the program on each shard, and fold the answers."""
        answers = {k: execute(program, store, broadcast) for k, store in self.stores.items()}
        return fold(answers, program.reductions, self.shards)
