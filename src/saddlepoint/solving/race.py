"""Methods in turns: how long a turn is, and whose turn is next.

Which of two good methods is faster shows only while they run. The likelier one begins. A turn goes on while the
method is predicted to end soon, by the fall of its certified distance in the second half of its work, and no other one
is predicted to end much sooner, but not for longer than was predicted. Otherwise the other one has a turn. From then on
the method that is predicted to end first may do twice the work of the others, and turns grow with the work, so that
changes are few and a wrong prediction costs no more than a constant factor.

Work is counted in calls, weighted by what they cost. The calls of Newton's method count for columns of matrices, and
those of methods without mixing take less time than others; where the time can be estimated, the work of a step is
between that by calls and that by time. Work is never measured in seconds, so that the same input takes the same turns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from saddlepoint.methods.base import Method
from saddlepoint.problems.oracle import ORACLES
from saddlepoint.solving.state import Mark, Racer

FIRST_TURN = 64.0  # work of the first turn of the likeliest method; that of the others is half of it
GROWTH = 1.5  # factor by which the work of a method grows in each of its further turns
FAVOUR = 2.0  # times the work of the others that the method which is predicted to end first may do
SOON = 2.0  # a turn goes on while the predicted work is at most this many times the work done
SLACK = 1.25  # times the work predicted at the end of a turn for which it goes on, at most


def work_of(calls: Mapping[str, int], prices: Mapping[str, float]) -> float:
    """The calls as a number of rounds: one call of each oracle is 1."""
    weights = {name: prices.get(name, 1.0) for name in ORACLES}
    return sum(weights[name] * calls[name] for name in ORACLES) / sum(weights.values())


def starters(
    methods: Iterable[Method],
    rates: Mapping[Method, float] | None = None,
    first_turn: float = FIRST_TURN,
    late: Mapping[Method, float] | None = None,
) -> list[Racer]:
    """The methods before their first turns, the likeliest first.

    Args:
        methods: the methods.
        rates: the work of a method for one round of calls, where it is not 1.
        first_turn: the work of the first turn of the first one; the others have their turns from then on.
        late: the work that each of the others has done before a method has its first turn, where that is to be late.
    """
    racers = [Racer(method, rate=(rates or {}).get(method, 1.0)) for method in methods]
    ends = [(late or {}).get(racer.method, 0.5 * first_turn if k else first_turn) for k, racer in enumerate(racers)]
    return [racer._replace(turn_end=end) for racer, end in zip(racers, ends, strict=True)]


def marked(racer: Racer, work: float, distance: float) -> Racer:
    """The racer after a certificate; of the earlier ones, those that a prediction needs are kept."""
    best = min(distance, racer.marks[-1].distance) if racer.marks else distance
    marks = (*racer.marks, Mark(work, best))
    half = 0.5 * (marks[0].work + work)
    before = max(k for k, mark in enumerate(marks) if mark.work <= half)
    return racer._replace(work=work, marks=marks[:1] + marks[max(before, 1) :])


def predicted(racer: Racer, tol: float) -> float:
    """The work that is still to be done, if the distance falls as it did in the second half of the work so far.

    It is no more than what the method has promised. The work until the first certificate does not count: there may be a
    factorisation in it.
    """
    return min(max(racer.rate * racer.promise - racer.work, 0.0), _by_fall(racer, tol))


def _by_fall(racer: Racer, tol: float) -> float:
    if len(racer.marks) < 2:
        return math.inf
    first, last = racer.marks[0], racer.marks[-1]
    half = 0.5 * (first.work + last.work)
    middle = [mark for mark in racer.marks if mark.work <= half][-1]
    if last.distance <= tol:
        return 0.0
    if not last.distance < middle.distance < math.inf:
        return math.inf
    return (last.work - middle.work) * math.log(last.distance / tol) / math.log(middle.distance / last.distance)


def own_work(racer: Racer) -> float:
    """The work since the first certificate."""
    return racer.work - racer.marks[0].work if racer.marks else 0.0


def turn_is_over(race: Sequence[Racer], turn: int, tol: float) -> bool:
    """Whether the method whose turn it is has done its work and is not predicted to end soon, or another one is.

    It is over as well where the method was predicted to have ended by now.
    """
    racer = race[turn]
    done = own_work(racer)
    if done < racer.turn_end:
        return False
    if done >= racer.deadline:
        return True
    left = predicted(racer, tol)
    sooner = min((predicted(other, tol) for k, other in enumerate(race) if k != turn), default=math.inf)
    return left > SOON * done or left > FAVOUR * sooner


def extended(racer: Racer, tol: float) -> Racer:
    """The racer whose turn goes on because it is predicted to end soon: for hardly longer than is predicted now."""
    done = own_work(racer)
    if done < racer.turn_end or racer.deadline < math.inf:
        return racer
    return racer._replace(deadline=done + SLACK * predicted(racer, tol))


def next_turn(race: Sequence[Racer], turn: int, tol: float) -> int:
    """Whose turn is next: of the method with the least work, where the work of the leader counts less."""
    order = range(len(race))
    leader = min(order, key=lambda k: predicted(race[k], tol))

    def share(k: int) -> float:
        least = race[k].turn_end if race[k].work == 0.0 else 0.5 * FIRST_TURN
        done = max(own_work(race[k]), least)
        return done if k == leader else FAVOUR * done

    return min(order, key=lambda k: (share(k), k == turn))


def turn_end(racer: Racer, first: bool) -> float:
    """The own work after which the turn that begins now may end."""
    return max(FIRST_TURN if first else 0.5 * FIRST_TURN, GROWTH * own_work(racer))
