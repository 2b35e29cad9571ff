"""Which method is running, when it is replaced, and by which.

The first methods of a plan may take turns (``solving.race``); the others are tried in their order. The last of them, or
one of those that take turns, has a guarantee, that of LPD-GS. What is still to be done is measured by the calls that
its theorem needs: before the calls made and the calls promised exceed twice the promise at the start, the present
method is given up. It is also given up after many calls without progress, and when it breaks down.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.methods import LPDGS
from saddlepoint.methods.base import Method
from saddlepoint.problems.oracle import CallCounts
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.race import extended, marked, next_turn, starters, turn_end, turn_is_over, work_of
from saddlepoint.solving.result import Status
from saddlepoint.solving.state import Racer, RunState, ScheduleState
from saddlepoint.theory.certificate import Certificate, distance_bound
from saddlepoint.theory.lower import chain_N
from saddlepoint.theory.lpd import lpd_gs_calls

SWITCH_AFTER = 500, 20_000  # oracle calls without progress: least, most
PATIENCE = 3.0  # oracle calls without progress, in units of N of the lower bound, within the limits of SWITCH_AFTER
MUCH_BETTER = 3.0  # a method whose last certified distance is this many times the best one begins anew from there


class SwitchMethod(Exception):  # noqa: N818 - a signal within the run, not an error
    """The present method does worse than the next one of the schedule would."""


class TurnOver(Exception):  # noqa: N818 - a signal within the run, not an error
    """Another method of the race has a turn."""


class RunProgress(NamedTuple):
    """What is certified so far, for decisions about methods.

    Attributes:
        best: the certificate of the best point.
        reached: the certified number that was asked for, at the best point.
        present: the same at the present point, or an estimate where nothing is proven yet.
        distance: about the distance from the saddle point at which the number is small enough.
    """

    best: Certificate
    reached: float
    present: float
    distance: float


class Schedule:
    """Decides about the methods of a run.

    Args:
        f: the problem.
        tol: what the certified number that was asked for may be at most.
        state: the methods and what was noted about the present one.
    """

    def __init__(self, f: Saddle, tol: float, state: ScheduleState) -> None:
        self.f, self.tol, self.state = f, tol, state

    @property
    def method(self) -> Method:
        """The present method."""
        return self.state.methods[0]

    @property
    def fallbacks(self) -> int:
        """How many other methods there are to go on with."""
        return len(self.state.methods) - 1 + max(len(self.state.race) - 1, 0)

    def can_replace(self, status: Status) -> bool:
        """Whether another method goes on where the present one ended with this status."""
        return self.fallbacks > 0 and status in (Status.DIVERGED, Status.STALLED)

    # -- the next method -----------------------------------------------------------------------------------------------

    def switch(self, reason: str, counts: CallCounts, progress: RunProgress) -> Racer:
        """Give up the present method, for a reason in words, and return the next one."""
        state, before = self.state, self.method
        if len(state.race) > 1:
            del state.race[state.turn]
            state.turn = 0
            found = self.begin_turn(counts, progress)
            state.race = state.race if len(state.race) > 1 else []
        else:
            state.race, state.methods = [], state.methods[1:]
            found = Racer(self.method)
        state.notes.append(f"{before.label} {reason}, then {self.method.label}")
        self.begin(counts.busiest)
        return found

    def next_turn(self, run: RunState, progress: RunProgress) -> Racer:
        """Put the present method aside in the state that it has reached, and return the one whose turn is next."""
        state = self.state
        state.race[state.turn] = state.race[state.turn]._replace(units=run.units, state=run.method_state)
        state.turn = next_turn(state.race, state.turn, self.tol)
        if state.race[state.turn].work == 0.0:
            state.notes.append(f"{self.method.label} in turns with {state.race[state.turn].method.label}")
        self.begin(run.counts.busiest)
        return self.begin_turn(run.counts, progress)

    def begin_turn(self, counts: CallCounts, progress: RunProgress) -> Racer:
        """Begin the turn of the method with the number ``turn``, and return it as it was put aside."""
        state, racer = self.state, self.state.race[self.state.turn]
        if isinstance(racer.method, LPDGS):  # it is never begun anew, because its distance falls late
            if racer.state is None:
                racer = racer._replace(promise=racer.work / racer.rate + self.promised_calls(progress))
        elif racer.marks and racer.marks[-1].distance > MUCH_BETTER * progress.reached:
            racer = racer._replace(state=None, marks=())
        state.methods = (racer.method, *state.methods[1:])
        state.others = work_of(counts.calls, state.prices) - racer.work / racer.rate
        state.race[state.turn] = racer._replace(
            state=None, turn_end=turn_end(racer, state.turn == 0), deadline=math.inf
        )
        return racer

    def begin(self, calls: int) -> None:
        """Forget the progress made until now: a method begins after so many calls."""
        self.state.mark, self.state.marked = math.inf, calls

    def begin_with(self, f: Saddle, counts: CallCounts) -> None:
        """The constants of the problem were corrected: the promise is another one, and a race begins anew."""
        state = self.state
        self.f, state.budget = f, math.inf
        state.race = starters([racer.method for racer in state.race], {r.method: r.rate for r in state.race})
        state.others = work_of(counts.calls, state.prices)
        self.begin(counts.busiest)

    # -- progress ------------------------------------------------------------------------------------------------------

    def promised_calls(self, progress: RunProgress) -> float:
        """The calls within which LPD-GS is sure to bring the certified distance to what is needed.

        It begins at the best point, or goes on where it was if it has had a turn. Without strong convexity it promises
        nothing.
        """
        f, best = self.f, progress.best
        if f.mu == 0.0:
            return math.inf
        smooth = distance_bound(f.mu_x, f.mu_y, best.Fx, best.Fy)  # a simple term makes the certified distance larger
        more = best.distance / smooth if f.has_simple and 0.0 < smooth < best.distance < math.inf else 1.0
        anew = lpd_gs_calls(*f.numbers, more * best.Fx, more * best.Fy, f.mu_x, f.mu_y, progress.distance)
        return min([anew, *(racer.promise - racer.work / racer.rate for racer in self.state.race)])

    def check_progress(self, progress: RunProgress, counts: CallCounts, next_calls: int) -> None:
        """Raise SwitchMethod if the present method should be given up, and TurnOver if another one has a turn.

        Args:
            progress: what is certified so far.
            counts: the calls so far.
            next_calls: of the busiest oracle, as many as there may be when this is asked next.
        """
        if self.fallbacks == 0 or math.isnan(self.f.mu_x + self.f.mu_y):
            return
        state, calls = self.state, counts.busiest
        if state.race:
            self.mark(progress.present, counts)
        promise = self.promised_calls(progress)
        if state.budget == math.inf:
            state.budget = calls + 2.0 * promise
        if progress.reached < state.mark / math.e:
            state.mark, state.marked = progress.reached, calls
        hardness = math.inf if self.f.mu == 0.0 else chain_N(*self.f.numbers)
        patience = max(SWITCH_AFTER[0], PATIENCE * hardness)
        if self.fallbacks > 1:
            patience = min(patience, SWITCH_AFTER[1])
        if state.race:
            patience /= state.race[state.turn].rate
        spent = next_calls + promise > state.budget
        if spent or calls - state.marked > patience:
            self.give_up(spent)
        if state.race:
            if turn_is_over(state.race, state.turn, self.tol):
                self.end_turn()
            else:
                state.race[state.turn] = extended(state.race[state.turn], self.tol)

    def mark(self, distance: float, counts: CallCounts) -> None:
        """Note a certificate of the method whose turn it is, with the number that was asked for."""
        state = self.state
        racer = state.race[state.turn]
        work = racer.rate * (work_of(counts.calls, state.prices) - state.others)
        if work > racer.work:  # otherwise it is the certificate of the start
            state.race[state.turn] = marked(racer, work, distance)

    def end_turn(self) -> None:
        """Raise TurnOver, unless the present method is the next one as well."""
        state = self.state
        if next_turn(state.race, state.turn, self.tol) != state.turn:
            raise TurnOver
        racer = state.race[state.turn]
        state.race[state.turn] = racer._replace(turn_end=turn_end(racer, False), deadline=math.inf)

    def give_up(self, spent: bool) -> None:
        """Raise SwitchMethod; but if the present method is the one with the guarantee, let it go on alone.

        If the calls are spent, the plan keeps only the present method and the one with the guarantee.
        """
        state, present = self.state, self.method
        if isinstance(present, LPDGS):
            state.race, state.methods = [], (present,)
            return
        if spent:
            self.keep_guarantee()
        raise SwitchMethod

    def keep_guarantee(self) -> None:
        """Remove all methods but the present one and the one with the guarantee from the plan."""
        state = self.state
        kept = [(k, racer) for k, racer in enumerate(state.race) if k == state.turn or isinstance(racer.method, LPDGS)]
        state.turn = next((new for new, (old, _) in enumerate(kept) if old == state.turn), 0)
        state.race = [racer for _, racer in kept]
        state.methods = (self.method, *state.methods[1:][-1:])
