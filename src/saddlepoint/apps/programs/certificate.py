r"""What a point x and multipliers y prove about the optimal value of a linear or quadratic program.

Program:      min f(x) = 1/2 x'Px + q'x subject to l <= A x <= u and x in a box, P >= 0.
Lower bound:  Let d be such that P - diag(d) >= 0. For any c, y and every x = c + t that satisfies the program,

                  f(x)  >=  f(c) - sum_i y_i (s_i - (A c)_i) + sum_j min_t (r_j t_j + d_j/2 t_j^2),

              where s_i is u_i for y_i > 0 and l_i for y_i < 0, r = P c + q + A'y is the reduced cost, and c_j + t_j
              runs through the bounds of x_j. (Convexity gives f(x) >= f(c) + <P c + q, t> + sum d_j t_j^2/2, and the
              rows give <y, A x> <= sum y_i s_i.)
              Where x_j has no bound, d_j = 0 and r_j is not zero, the minimum is minus infinity. Then bounds that the
              rows imply are used, and the row f(x) <= f(a known point), which no optimal point violates; or y and c are
              corrected such that these r_j vanish exactly: an enclosure of the solution of a linear system proves that
              such y and c exist close by, and the bound is evaluated over the enclosure.
Upper bound:  the value of a point that satisfies the program. Rows that are not proven to be satisfied are taken as
              equations, an enclosure proves that a solution of them exists close to x, and all other rows and bounds
              are checked over the enclosure. Equations that follow from others are recognised by exact arithmetic.
References:   A. Neumaier and O. Shcherbina, Safe bounds in linear and mixed-integer linear programming, Math. Prog.
              2004; C. Jansson, Rigorous lower and upper bounds in linear programming, SIAM J. Optim. 2004.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.sparse import csr_array, vstack

from saddlepoint.apps.programs.data import Data
from saddlepoint.apps.programs.implied_bounds import implied_bounds
from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.enclosure import LARGEST, solution_enclosure
from saddlepoint.ground.intervals import Interval, exactly, minus, plus, product, times, total

DEPENDENT = 1e-9  # relative distance to the span of other equations from which an equation counts as dependent
ROUNDS = 4  # times that rows which fail are added to the equations
DENOMINATOR = 1000  # largest denominator of the factors by which an equation follows from others
EXACT_TERMS = 20_000  # most entries of rows that are added up exactly
COLUMNS, MORE = 8, 200  # columns among which those are chosen that solve equations: for each of them, and in addition
OVERFLOW = "the numbers overflow"  # why nothing is proven
ROOM = 1e6  # how far a number without bounds is taken to be able to move, relative to the most that one with bounds can


class Lower(NamedTuple):
    """A proven lower bound of the optimal value; minus infinity with a reason where nothing is proven."""

    value: float
    reason: str = ""


class Upper(NamedTuple):
    """A proven upper bound of the optimal value, and a box that is proven to hold a point which satisfies the program.

    ``value`` is infinite, and ``box`` None, where no such point was proven to exist; then ``reason`` says why.
    """

    value: float
    box: Interval | None = None
    reason: str = ""


# -- the lower bound -------------------------------------------------------------------------------------------------


def lower_bound(data: Data, x: Array, y: Array, upper: float = math.inf) -> Lower:
    """The largest lower bound that x, y and a known upper bound of the optimal value prove."""
    y = np.where(((y > 0.0) & (data.upper == np.inf)) | ((y < 0.0) & (data.lower == -np.inf)), 0.0, y)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return Lower(-math.inf, "the point or the multipliers are not finite")
    box = Interval(data.x_lower, data.x_upper)
    found = _lower(data, exactly(x), exactly(y), box)
    if found.value > -math.inf:
        return found
    smaller = proven_box(data, upper)
    if (smaller.lo > smaller.hi).any():
        return Lower(math.inf, "the rows and bounds contradict each other")
    found = max(found, _lower(data, exactly(x), exactly(y), smaller), key=lambda bound: bound.value)
    if found.value > -math.inf:
        return found
    return max(found, _corrected(data, x, y, smaller), key=lambda bound: bound.value)


def proven_box(data: Data, upper: float = math.inf) -> Interval:
    """Bounds on all optimal points: the given ones, and those that the rows and the objective imply."""
    rows, lower, top = data.rows, data.lower, data.upper
    if upper < math.inf and bool((data.curvature >= 0.0).all()) and data.q.any():
        rows = csr_array(vstack([rows, csr_array(data.q[None, :])]))
        lower, top = np.append(lower, -np.inf), np.append(top, upper)
    return implied_bounds(rows, Interval(lower, top), Interval(data.x_lower, data.x_upper))


def _lower(data: Data, c: Interval, y: Interval, box: Interval, zero: Array | None = None) -> Lower:
    """The lower bound over all c and y of intervals; ``zero`` marks reduced costs that are known to vanish."""
    r = plus(data.gradient(c), product(data.At, y))
    if zero is not None:
        r = Interval(np.where(zero, 0.0, r.lo), np.where(zero, 0.0, r.hi))
    inside = product(data.A, c)
    up = times(Interval(np.maximum(y.lo, 0.0), np.maximum(y.hi, 0.0)), minus(exactly(data.upper), inside))
    low = times(Interval(np.minimum(y.lo, 0.0), np.minimum(y.hi, 0.0)), minus(exactly(data.lower), inside))
    slack = np.concatenate([-up.hi, -low.hi])
    t = minus(box, c)
    linear = times(r, t).lo
    d = data.curvature
    with np.errstate(all="ignore"):
        # For d > 0 the minimum over all t is -r^2/(2 d); for d < 0, d/2 t^2 is least at the end that is farther away.
        most_t = np.maximum(np.abs(t.lo), np.abs(t.hi))
        most_r = np.maximum(np.abs(r.lo), np.abs(r.hi))
        square = np.nextafter(0.5 * np.nextafter(most_r * most_r, np.inf), np.inf)
        convex = np.where(d > 0.0, -np.nextafter(square / d, np.inf), -np.inf)
        convex = np.where(most_r == 0.0, 0.0, np.nextafter(convex, -np.inf))
        concave = np.nextafter(d * np.nextafter(0.5 * np.nextafter(most_t * most_t, np.inf), np.inf), -np.inf)
        terms = np.where(d >= 0.0, np.maximum(linear, convex), linear + concave)
        terms = np.where(d < 0.0, np.nextafter(terms, -np.inf), terms)
    terms = np.where(np.isnan(terms), -np.inf, terms)
    start, _ = data.value(c)
    value, _ = total(exactly(np.concatenate([slack, terms, [start]])))
    return Lower(value, "" if value > -math.inf else _why_unbounded(terms, slack, d))


def _why_unbounded(terms: Array, slack: Array, d: Array) -> str:
    if (slack == -np.inf).any():
        return "a multiplier cannot be told from zero, and its row has no end on that side"
    at = np.flatnonzero(terms == -np.inf)
    if not at.size:
        return OVERFLOW
    if (d[at] < 0.0).any():
        why = "P is positive semidefinite up to rounding only"
        return (
            f"{why}, and variable {at[0]} has no bounds: give bounds on x, or write x'Px = |D x|^2 as |z|^2 with new "
            "variables z and rows z = D x"
        )
    return f"variable {at[0]} has no bound on a side, and its reduced cost cannot be told from zero: give bounds on x"


def _corrected(data: Data, x: Array, y: Array, box: Interval) -> Lower:
    """The lower bound by multipliers close to y for which reduced costs of variables without bounds vanish."""
    r = plus(data.gradient(x), product(data.At, y))
    wrong = _wrong(data, r, box)
    found = _lower(data, exactly(x), exactly(y), box)
    size = float(np.max(np.abs(y), initial=0.0))
    both = np.isfinite(data.lower) & np.isfinite(data.upper)
    room = np.where(both, ROOM * size if size > 0.0 else 1.0, np.abs(y))
    if data.P is not None:  # the point c may be moved as well
        room = np.append(room, 1.0 + np.abs(x))
    for _ in range(ROUNDS):
        at = np.flatnonzero(wrong)
        if not at.size:
            return found
        if at.size > LARGEST:
            return Lower(-math.inf, f"{at.size} variables have no bounds, and their reduced costs are almost zero")
        M = data.At[at] if data.P is None else np.hstack([dense(data.At[at]), dense(data.P[at])])
        moved = _correction(M, minus(exactly(np.zeros(at.size)), r.take(wrong)), room)
        if moved is None:
            return Lower(-math.inf, "no multipliers close by have reduced costs that vanish where x has no bounds")
        m = y.size
        c = exactly(x) if data.P is None else _moved(x, moved.take(slice(m, None)))
        near = _moved(y, moved.take(slice(m)))
        found = _lower(data, c, near, box, wrong)
        if found.value > -math.inf:
            return found
        others = _wrong(data, plus(data.gradient(c), product(data.At, near)), box) & ~wrong
        if not others.any():
            return found
        wrong = wrong | others
    return found


def _wrong(data: Data, r: Interval, box: Interval) -> Array:
    """The variables without a bound on a side to which their reduced cost may push them."""
    pushed = (np.isinf(box.lo) & (r.hi > 0.0)) | (np.isinf(box.hi) & (r.lo < 0.0))
    return np.asarray(pushed & (data.curvature == 0.0))


def _moved(v: Array, by: Interval) -> Interval:
    """The sum of a vector and an interval; coordinates that do not move remain exact."""
    near, still = plus(exactly(v), by), (by.lo == 0.0) & (by.hi == 0.0)
    return Interval(np.where(still, v, near.lo), np.where(still, v, near.hi))


def _correction(M: Any, b: Interval, room: Array) -> Interval | None:
    """An interval that holds a solution z of M z = c for every c of b, z being zero in most coordinates.

    As many columns as rows are chosen. ``room`` says how far each coordinate of z may be from zero; columns with much
    room come first.
    """
    M = dense(M)
    if M.shape[0] > min(LARGEST, M.shape[1]):
        return None
    with np.errstate(all="ignore"):
        weighed = M * np.minimum(room, ROOM * float(np.max(room[np.isfinite(room)], initial=1.0)))
    if not np.isfinite(weighed).all():
        return None
    k = M.shape[0]
    _, order = qr(weighed, mode="r", pivoting=True)
    columns = order[:k]
    found = solution_enclosure(np.ascontiguousarray(M[:, columns]), b)
    if found is None:
        return None
    z = Interval(np.zeros(M.shape[1]), np.zeros(M.shape[1]))
    z.lo[columns], z.hi[columns] = found.lo, found.hi
    return z


# -- the upper bound -------------------------------------------------------------------------------------------------


def feasible_box(data: Data, x: Array, near: float = 0.0) -> Upper:
    """A box around x that is proven to hold a point which satisfies the program, with the largest value in it.

    Variables and rows that are ``near`` to an end, relative to their sizes, are moved to it.
    """
    if not np.isfinite(x).all():
        return Upper(math.inf, None, "the point is not finite")
    x = np.clip(x, data.x_lower, data.x_upper)
    reach = near * (1.0 + np.abs(x))
    x = np.where(x - data.x_lower <= reach, data.x_lower, np.where(data.x_upper - x <= reach, data.x_upper, x))
    box, inside = exactly(x), product(data.A, x)
    failed = (inside.lo < data.lower) | (inside.hi > data.upper)
    failed = _hold_exactly(data, x, failed)
    equations = np.flatnonzero(failed)
    if near > 0.0 and equations.size:
        size = near * (1.0 + abs(data.A) @ np.abs(x))
        close = (np.abs(inside.lo - data.lower) <= size) | (np.abs(inside.hi - data.upper) <= size)
        equations = np.flatnonzero(failed | close)
    for _ in range(ROUNDS):
        if not failed.any():
            return Upper(data.value(box)[1], box)
        found = _solved(data, x, inside, equations)
        if isinstance(found, str):
            return Upper(math.inf, None, found)
        box = found
        over = product(data.A, box)
        failed = (over.lo < data.lower) | (over.hi > data.upper)
        failed[equations] = False
        equations = np.union1d(equations, np.flatnonzero(failed))
    return Upper(math.inf, None, "no point that satisfies all rows was found close by")


def _solved(data: Data, x: Array, inside: Interval, equations: Array) -> Interval | str:
    """A box around x that holds a point where the rows ``equations`` are at their nearest ends; a reason if none."""
    if equations.size > LARGEST:
        return f"{equations.size} rows would have to be solved as equations, which is too many: allow a violation"
    low, high = data.lower[equations], data.upper[equations]
    at = inside.take(equations)
    target = np.where(np.abs(at.centre - low) < np.abs(at.centre - high), low, high)
    room = np.minimum(x - data.x_lower, data.x_upper - x)
    rows = data.rows[equations]
    part = _movable(rows, room)
    E, room_there = rows[:, part].toarray(), room[part]
    with np.errstate(all="ignore"):
        weighed = E * np.minimum(room_there, ROOM * float(np.max(room[np.isfinite(room)], initial=1.0)))
        length = np.sqrt((weighed**2).sum(axis=1))
        scaled = weighed / np.where(length > 0.0, length, 1.0)[:, None]
    if not (np.isfinite(length).all() and np.isfinite(target).all()):
        return OVERFLOW
    R, order = qr(scaled.T, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > DEPENDENT).sum())
    kept, others = order[:rank], order[rank:]
    with np.errstate(all="ignore"):
        guesses = solve_triangular(R[:rank, :rank], R[:rank, rank:]) if rank else np.zeros((0, others.size))
        guesses = guesses * length[others] / length[kept][:, None]
    for i, guess in zip(others.tolist(), guesses.T, strict=True):
        if not _follows(rows, target, kept, i, guess):
            return (
                f"row {equations[i]} is not proven to hold together with the others where only variables between their "
                "bounds change; if it follows from the others, as the last of the row and column sums of a transport "
                "plan does, leave it out"
            )
    found = _correction(E[kept], minus(exactly(target[kept]), at.take(kept)), room_there)
    if found is None:
        return "the equations close to the point are not proven to have a solution"
    moved = Interval(np.zeros(x.size), np.zeros(x.size))
    moved.lo[part], moved.hi[part] = found.lo, found.hi
    box = _moved(x, moved)
    outside = (box.lo < data.x_lower) | (box.hi > data.x_upper)
    if outside.any():
        return f"variable {int(np.flatnonzero(outside)[0])} would leave its bounds to satisfy the rows"
    return box


def _movable(rows: Any, room: Array) -> Array:
    """The columns of some equations that can change most: all of them, or several times as many as there are rows."""
    most = COLUMNS * rows.shape[0] + MORE
    if rows.shape[1] <= most:
        return np.arange(rows.shape[1])
    reach = np.minimum(room, ROOM) * np.asarray(abs(rows).max(axis=0).toarray()).ravel()
    return np.sort(np.argpartition(-reach, most)[:most])


def _follows(rows: Any, target: Array, kept: Array, i: int, guess: Array) -> bool:
    """Whether an equation is a combination of others, by exact arithmetic with factors that are simple fractions.

    ``rows`` is a sparse array, ``kept`` are the numbers of the others and ``guess`` about the factors.
    """
    if not np.isfinite(guess).all():
        return False
    left: dict[int, Fraction] = {}
    right = Fraction(0)
    factors = [Fraction(float(c)).limit_denominator(DENOMINATOR) for c in guess]
    for c, k in [*zip(factors, kept.tolist(), strict=True), (Fraction(-1), i)]:
        if c:
            for j, a in _entries(rows, k):
                left[j] = left.get(j, Fraction(0)) + c * Fraction(a)
            right += c * Fraction(float(target[k]))
    return right == 0 and not any(left.values())


def _entries(rows: Any, i: int) -> list[tuple[int, float]]:
    """The column numbers and entries of a row."""
    part = slice(rows.indptr[i], rows.indptr[i + 1])
    return list(zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True))


def _hold_exactly(data: Data, x: Array, failed: Array) -> Array:
    """The rows among ``failed`` that exact arithmetic does not find to be satisfied at x."""
    at = np.flatnonzero(failed)
    if not at.size or int(np.diff(data.rows.indptr)[at].sum()) > EXACT_TERMS:
        return failed
    values = [Fraction(float(v)) for v in x]
    for i in at.tolist():
        inside = sum((Fraction(a) * values[j] for j, a in _entries(data.rows, i)), Fraction(0))
        failed[i] = not data.lower[i] <= inside <= data.upper[i]
    return failed


def point_in(box: Interval, data: Data) -> Array:
    """A floating-point vector in the middle of a box, within the bounds."""
    return np.clip(np.where(box.lo == box.hi, box.lo, box.centre), data.x_lower, data.x_upper)
