"""Which method is running, when it is replaced, and by which.

The methods of a plan are tried in their order. The last of them has a guarantee, that of LPD-GS. What is still to be
done is measured by the calls that its theorem needs from the best certified point on: before the calls made and the
calls promised exceed twice the promise at the start, the next method takes over. It also takes over after many calls
without progress, and when the present method breaks down.
"""

from __future__ import annotations

import math

from saddlepoint.methods.base import Method
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import Status
from saddlepoint.solving.state import ScheduleState
from saddlepoint.theory.certificate import Certificate
from saddlepoint.theory.lower import chain_N
from saddlepoint.theory.lpd import lpd_gs_calls

SWITCH_AFTER = 500, 20_000  # oracle calls without progress: least, most


class SwitchMethod(Exception):  # noqa: N818 - a signal within the run, not an error
    """The present method does worse than the next one of the schedule would."""


class Schedule:
    """Decides about the methods of a run.

    Args:
        f: the problem.
        tol: the distance to be certified.
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
        """How many methods are left to try."""
        return len(self.state.methods) - 1

    def can_replace(self, status: Status) -> bool:
        """Whether another method goes on where the present one ended with this status."""
        return self.fallbacks > 0 and status in (Status.DIVERGED, Status.STALLED)

    def switch(self, reason: str, calls: int) -> None:
        """Replace the present method, for a reason in words, after so many calls of the busiest oracle."""
        before, *after = self.state.methods
        self.state.methods = tuple(after)
        self.state.notes.append(f"{before.label} {reason}, then {self.method.label}")
        self.begin(calls)

    def begin(self, calls: int) -> None:
        """Forget the progress made until now: a method begins after so many calls."""
        self.state.mark, self.state.marked = math.inf, calls

    def begin_with(self, f: Saddle, calls: int) -> None:
        """The constants of the problem were corrected; the promise is another one."""
        self.f, self.state.budget = f, math.inf
        self.begin(calls)

    def promised_calls(self, best: Certificate) -> float:
        """The calls within which LPD-GS is sure to bring the certified distance from here to tol."""
        f = self.f
        return lpd_gs_calls(*f.numbers, best.Fx, best.Fy, f.mu_x, f.mu_y, self.tol)

    def check_progress(self, best: Certificate, calls: int, next_calls: int) -> None:
        """Raise SwitchMethod if the next method should go on.

        Args:
            best: the best certificate so far.
            calls: of the busiest oracle so far.
            next_calls: as many as there may be when this is asked next.
        """
        if self.fallbacks == 0 or math.isnan(self.f.mu_x + self.f.mu_y):
            return
        state, promise = self.state, self.promised_calls(best)
        if state.budget == math.inf:
            state.budget = calls + 2.0 * promise
        if best.distance < state.mark / math.e:
            state.mark, state.marked = best.distance, calls
        patience = max(SWITCH_AFTER[0], 3.0 * chain_N(*self.f.numbers))
        if self.fallbacks > 1:
            patience = min(patience, SWITCH_AFTER[1])
        if next_calls + promise > state.budget or calls - state.marked > patience:
            raise SwitchMethod
