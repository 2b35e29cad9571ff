"""Everything that a caller of `solve` asked for, checked before anything is computed."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from saddlepoint.ground.arrays import Array, common_space, copied
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_callback, as_flag, as_number, as_vector, positive, short_repr
from saddlepoint.methods.base import Method
from saddlepoint.methods.registry import method_or_auto
from saddlepoint.methods.wrappers.refined import Refined
from saddlepoint.parts.coupling.low_precision import check_storage
from saddlepoint.problems.oracle import ORACLES, call_limits
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.checkpoint.file import refuse_other_files
from saddlepoint.solving.result import Result
from saddlepoint.solving.target import Target

REACTIONS = ("raise", "adapt")  # to a constant that the run refutes
BESIDE = 48  # vectors like (x, y) that a run takes at most, beside the past steps that its method keeps
EXTREME = 1e152  # condition numbers beyond this have squares that are no floating-point numbers


class CallTimes(NamedTuple):
    """When the call began, and when it is to end."""

    began: float  # by time.perf_counter()
    deadline: float | None  # by the clock of the problem; None without a limit


class StorageOptions(NamedTuple):
    """How the copy of A that the method reads is stored, and the most vectors like (x, y); None where not asked for."""

    precision: str | None
    memory: int | None

    def applied(self, method: Method) -> Method:
        """The method on such a copy, with such a memory."""
        if self.memory is not None:
            method = method.within(self.memory - BESIDE)
        return method if self.precision is None else Refined(method, self.precision)


@dataclass(frozen=True)
class SolveOptions:
    """The arguments of `solve`, checked; `checked` makes them."""

    target: Target
    method: Method | None  # None for auto
    costs: dict[str, float] | None  # of a call, by oracle; None to have them measured
    limits: dict[str, float]  # calls, by oracle
    times: CallTimes
    callback: Callable[[Result], object] | None
    progress: bool
    history: bool
    storage: StorageOptions
    adapt: bool  # correct a constant that the run refutes, instead of raising
    checkpoint: Path | None
    checkpoint_every: float

    @classmethod
    def checked(
        cls,
        f: Any,
        *,
        target: Target,
        method: Any,
        costs: Any,
        max_calls: Any,
        max_seconds: Any,
        callback: Any,
        progress: Any,
        history: Any,
        storage: Any,
        on_violation: Any,
        checkpoint: Any,
        checkpoint_every: Any,
        memory: Any = None,
    ) -> SolveOptions:
        """The options, or a ProblemError that says what is wrong with one of them."""
        began = time.perf_counter()
        if not isinstance(f, Saddle):
            raise ProblemError(f"f is a {type(f).__name__}; expected a Saddle(g, h, A)")
        if not isinstance(on_violation, str) or on_violation not in REACTIONS:
            raise ProblemError(f"on_violation is {short_repr(on_violation)}; expected one of {', '.join(REACTIONS)}")
        if storage is not None:
            check_storage(f.A, storage)
        limit = None if max_seconds is None else positive(max_seconds, "max_seconds")
        room = StorageOptions(storage, None if memory is None else as_vectors(memory))
        given = method_or_auto(method)
        return cls(
            target=target,
            method=None if given is None else room.applied(given),
            costs=None if costs is None else as_costs(costs),
            limits=call_limits(max_calls),
            times=CallTimes(began, None if limit is None else f.clock() + limit),
            callback=as_callback(callback, "a Result"),
            progress=as_flag(progress, "progress"),
            history=as_flag(history, "history"),
            storage=room,
            adapt=on_violation == "adapt",
            checkpoint=None if checkpoint is None else as_checkpoint(f, checkpoint),
            checkpoint_every=as_seconds(checkpoint_every, "checkpoint_every"),
        )

    @property
    def asked(self) -> str | Method:
        """The method as the caller asked for it."""
        return "auto" if self.method is None else self.method


def as_vectors(memory: Any) -> int:
    """A number of vectors with which a run can do."""
    if isinstance(memory, bool) or not isinstance(memory, int) or memory <= BESIDE:
        raise ProblemError(
            f"memory is {short_repr(memory)}; expected a whole number of vectors above {BESIDE}, which a run needs "
            "beside the steps that a method remembers"
        )
    return memory


def as_costs(costs: Any) -> dict[str, float]:
    """What a call of each oracle costs, in any unit; 1 where left out."""
    if not isinstance(costs, Mapping):
        raise ProblemError(
            f"costs is {short_repr(costs)}; expected a dict by oracle, such as {{'grad_g': 10.0, 'A': 1.0}}"
        )
    full = dict.fromkeys(ORACLES, 1.0)
    for name, cost in costs.items():
        if name not in full:
            raise ProblemError(f"costs names the oracle {short_repr(name)}; expected one of {', '.join(sorted(full))}")
        full[name] = positive(cost, f"costs of {name}")
    return full


def as_file_name(path: Any, name: str) -> Path:
    """A file name, in a folder that exists."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str) or "\0" in os.fspath(path):
        raise ProblemError(f"{name} is {short_repr(path)}; expected a file name")
    found = Path(os.path.realpath(path))
    try:
        if found.is_dir():
            raise ProblemError(f"{name} is {found}, which is a folder; expected a file name")
        if not found.parent.is_dir():
            raise ProblemError(f"{name} is in the folder {found.parent}, which does not exist; make it first")
    except OSError as error:
        raise ProblemError(f"{name} is {short_repr(str(path))}: {error.strerror or error}") from None
    return found


def as_checkpoint(f: Saddle, path: Any) -> Path:
    """The name of a file for checkpoints, which holds one if it is there already."""
    found = as_file_name(path, "checkpoint")
    f.A.runtime.once(lambda: refuse_other_files(found))
    return found


def as_seconds(value: Any, name: str) -> float:
    """Seconds between two events, 0 for as often as can be."""
    number = as_number(value, name, "seconds, 0 or more")
    if not number >= 0.0:
        raise ProblemError(f"{name} is {number}; expected seconds, 0 or more")
    return number


def starting_point(f: Saddle, x0: Any, y0: Any) -> tuple[Array, Array]:
    """The starting point: as given, in the problem's dtype, or zero."""
    given = ((x0, "x0", f.shape[0], f.space.of_x), (y0, "y0", f.shape[1], f.space.of_y))
    starts = [None if value is None else as_vector(value, name, size) for value, name, size, _ in given]
    for (_, name, _, _), point in zip(given, starts, strict=True):
        common_space({"the problem": f.space, name: point})
    x, y = (
        space.zeros(size) if point is None else space.placed(copied(point))
        for (_, _, size, space), point in zip(given, starts, strict=True)
    )
    return x, y


def check_condition(f: Saddle) -> None:
    """Refuse a problem whose condition numbers are beyond any arithmetic."""
    for name, number in zip(("L_x/mu_x", "L_y/mu_y", "|A|/sqrt(mu_x mu_y)"), f.numbers, strict=True):
        if number > EXTREME and (number < math.inf or f.mu > 0.0):  # infinite without strong convexity
            raise ProblemError(
                f"{name} is {number:.3g}, and no method can do anything with that in floating-point numbers; "
                "give a larger mu, or add a multiple of |.|^2 to g or h"
            )
