"""Anderson's mixing as a program without numbers on the host, for GPUs: all of a step's decisions are made there.

So many steps run in one call (``solving.compiled``), where the host would wait for each of them. The recursion and the
safeguard are those of ``anderson``. Of each step the column q of Q is kept, as in ``factored``, and the same
combination v of the differences of T: the residual r - dR c is r - Q Q'r, the next point is T(z) - V Q'r, and no
triangular system is solved. When there are as many columns as there is room for, all are dropped.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from saddlepoint.ground.arrays import Array, namespace, space_of
from saddlepoint.ground.rows import Rows
from saddlepoint.ground.states import arrays, with_arrays
from saddlepoint.methods.wrappers.factored import DEPENDENT, ROUNDED
from saddlepoint.methods.wrappers.flat import added, difference

SHARE = 0.25  # most memory for the columns, as a share of that of A


class DeviceState(NamedTuple):
    """The point z_k, which is a state of the wrapped method, the columns, and the counters of the safeguard.

    Attributes:
        inner: z_k.
        weights: of the arrays of the inner state; 0 for those that lengths ignore.
        Q, V: one row for each column that is kept, and zeros.
        r: the last residual, its entries with a weight.
        last: the state after T of the z before this one.
        best: the state after T of the z with the smallest residual.
        numbers: the smallest |r|, |r| when it had last halved, the number of steps since then, the number of plain
            steps that are still to be taken, that of failures, and that of columns, which is -1 without a residual.
    """

    x: Array
    y: Array
    inner: Any
    weights: tuple[float, ...]
    Q: Array
    V: Array
    r: Array
    last: Any
    best: Any
    numbers: Array


def fits(window: int, entries: int, A: tuple[int, int]) -> bool:
    """Whether the memory for so many columns of a state with so many entries is small beside A."""
    return 2 * window * entries <= SHARE * A[0] * A[1]


def begun(inner: Any, weights: tuple[float, ...], window: int) -> DeviceState:
    """The start of a run."""
    whole, size = difference(inner, inner, weights)
    short, xp = whole[:size], namespace(whole)
    Q, V = (0.0 * Rows.empty(window, vector).buffer for vector in (short, whole))
    numbers = space_of(whole).wide.cast(xp.asarray([math.inf, math.inf, 0.0, 0.0, 0.0, -1.0], device=whole.device))
    return DeviceState(inner.x, inner.y, inner, weights, Q, V, short, inner, inner, numbers)


def next_state(after: Any, s: DeviceState) -> DeviceState:
    """The state after one step, where ``after`` is that of the wrapped method from z_k."""
    xp, size, window = namespace(s.r), s.r.shape[0], s.Q.shape[0]
    smallest, halved, waited, plain, failures, count = (s.numbers[k] for k in range(6))
    r = difference(after, s.inner, s.weights)[0][:size]
    length = _length(xp, r)
    # The safeguard.
    nothing, one = xp.zeros_like(length), xp.ones_like(length)
    better, halves = length < smallest, length <= 0.5 * halved
    smallest = xp.where(better, length, smallest)
    best = _chosen(xp, better, after, s.best)
    halved, waited = xp.where(halves, length, halved), xp.where(halves, nothing, waited + 1.0)
    failures = xp.where(halves, xp.maximum(failures - 1.0, nothing), failures)
    patience = (4.0 * window + 40.0) * 2.0**failures
    failed = (plain == 0.0) & ((length > 2.0 * smallest) | (waited > patience)) | ~xp.isfinite(length)
    # The next column.
    empty, full = count < 0.0, count >= window
    q = r - s.r
    first = s.Q @ q
    q = q - first @ s.Q
    second = s.Q @ q
    q = q - second @ s.Q
    h, distance = first + second, _length(xp, q)
    share = max(DEPENDENT, ROUNDED * space_of(r).eps)
    least = xp.maximum(share * xp.sqrt(distance * distance + _length(xp, h) ** 2), one * (2.0 / space_of(r).largest))
    keeps = (distance > least) & ~(failed | empty | full)
    inverse = xp.astype(xp.where(keeps, one / distance, nothing), r.dtype)
    v = difference(after, s.last, s.weights)[0] - h @ s.V
    place = ((xp.arange(window, device=r.device) == count) & keeps)[:, None]
    kept = ~(failed | full)[None, None]
    Q, V = (
        xp.where(place, (inverse * new)[None, :], xp.where(kept, old, xp.zeros_like(old)))
        for new, old in ((q, s.Q), (v, s.V))
    )
    count = xp.where(failed, -one, xp.where(empty | full, nothing, count + xp.where(keeps, one, nothing)))
    # The next point.
    step = (Q @ r) @ V
    z = added(after, -1.0 * xp.where(plain == 0.0, step, xp.zeros_like(step)), s.weights)
    z = _chosen(xp, failed, best, z)
    plain = xp.where(failed, 2.0**failures, xp.maximum(plain - 1.0, nothing))
    halved, waited = xp.where(failed, smallest, halved), xp.where(failed, nothing, waited)
    failures = xp.where(failed, failures + 1.0, failures)
    numbers = xp.stack([smallest, halved, waited, plain, failures, count])
    return DeviceState(z.x, z.y, z, s.weights, Q, V, r, after, best, numbers)


def _length(xp: Any, a: Array) -> Array:
    wide = xp.astype(a, xp.float64)
    found: Array = xp.sqrt(wide @ wide)
    return found


def _chosen(xp: Any, condition: Array, one: Any, other: Any) -> Any:
    """The one state where the condition is true, else the other one."""
    pairs = zip(arrays(one), arrays(other), strict=True)
    return with_arrays(other, (xp.where(condition, a, b) for a, b in pairs))
