"""How a run ended, in one sentence that says what to try if it is not solved."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from saddlepoint.ground.arrays import Space
from saddlepoint.solving.result import Status
from saddlepoint.solving.target import Target
from saddlepoint.theory.certificate import Certificate


class Worth(Enum):
    """What the certified numbers of a run are worth."""

    PROVEN = auto()
    UNEXAMINED = auto()  # proven if what is claimed is true, which was not examined
    ESTIMATED = auto()  # they contain an estimate, so that they prove nothing
    NOTHING = auto()  # mu is unknown


class Ending(NamedTuple):
    """What a sentence about the end of a run needs to know; by default nothing happened that it has to mention."""

    certificate: Certificate
    worth: Worth  # what the certified numbers are worth
    target: Target
    reached: float  # the certified number that was asked for
    space: Space
    exhausted: tuple[str, float] = ("", 0.0)  # an oracle whose calls are used up, and how many they were
    at_rounding_floor: bool = False  # the accuracy reached is that of the arithmetic
    noise: str = ""  # what is noisy about the gradients, if they are
    signal: str = ""  # the signal that ended the run, if one did
    file: str = ""  # a checkpoint to go on from, if there is one
    has_gone_on: bool = False  # whether this run began from what that file said
    notes: tuple[str, ...] = ()  # what else there is to say


def sentence(status: Status, ending: Ending) -> str:
    """What happened and, if it is not solved, what to try."""
    residual, tol, reached = ending.certificate.residual, ending.target.most, ending.reached
    what, argument = ending.target.what, ending.target.argument
    where = _where(ending)
    oracle, limit = ending.exhausted
    onward = f"call again to go on from {ending.file}" if ending.file else "go on from x, y by passing them as x0, y0"
    either = "and" if ending.file else "or"
    who = f"{ending.signal} came " if ending.signal else ""
    said = {
        Status.SOLVED: f"certified {what} {reached:.3g} <= {argument} {tol:.3g}",
        Status.UNCERTIFIED: f"residual {residual:.3g} <= tol {tol:.3g}, but no distance is certified: mu is unknown; "
        "give mu to Smooth to have a proof"
        if ending.worth is Worth.NOTHING
        else f"the {what} is estimated to be {reached:.3g} <= {argument} {tol:.3g}, but nothing is certified",
        Status.OUT_OF_CALLS: f"{where} the {limit:.0f} calls of {oracle} are spent; raise max_calls {either} {onward}",
        Status.OUT_OF_TIME: f"{where} the time is up; raise max_seconds {either} {onward}",
        Status.INTERRUPTED: f"{who}{where}; {onward}",
        Status.STOPPED: where,
        Status.STALLED: f"{where} {_obstacle(ending)}",
        Status.DIVERGED: f"{where} the iterates left the finite numbers; sp.check examines mu, L and the gradients, "
        "and if it finds nothing wrong, try another method (sp.predict compares them) or other units of the variables",
        Status.RUNNING: where,
    }[status]
    noise = "" if status in (Status.SOLVED, Status.STALLED) else ending.noise
    broke_off = ending.has_gone_on and status in (Status.STALLED, Status.DIVERGED)
    source = f"the run went on from {ending.file}; delete it to begin anew" if broke_off else ""
    notes = "; ".join(note for note in (*ending.notes, noise, source) if note)
    return f"{said} ({notes})" if notes else said


def _where(ending: Ending) -> str:
    """How far the run has come, and what that is worth."""
    what, reached = ending.target.what, ending.reached
    if ending.worth is Worth.NOTHING:
        return f"at a residual of {ending.certificate.residual:.3g}"
    if ending.worth is Worth.ESTIMATED:
        return f"at an estimated {what} of {reached:.3g}"
    if ending.worth is Worth.UNEXAMINED:
        return f"at a {what} of {reached:.3g}, if the claims in certificate.assumes are true, which were not examined,"
    return f"at a certified {what} of {reached:.3g}"


def _obstacle(ending: Ending) -> str:
    """Why a run stalled, and what to try."""
    if ending.noise:
        return f"there is no more to gain: {ending.noise}; make it exact or raise {ending.target.argument}"
    if not ending.at_rounding_floor:
        return "there was no progress for long; try another method (sp.predict compares them)"
    advice = "use float64" if ending.space.eps > ending.space.wide.eps else f"raise {ending.target.argument}"
    return f"the precision of {str(ending.space.dtype).rpartition('.')[2]} allows no more; {advice}"
