"""When a run is written to disk, and what is read when the same call is made again."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from saddlepoint.ground.arrays import Array, is_array
from saddlepoint.ground.errors import ProblemError, first_line
from saddlepoint.ground.states import arrays
from saddlepoint.methods.base import Method
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.checkpoint.claims import check_claims
from saddlepoint.solving.checkpoint.file import Content, is_checkpoint, older, read, write
from saddlepoint.solving.checkpoint.identity import Identity
from saddlepoint.solving.checkpoint.structure import check_structure
from saddlepoint.solving.checkpoint.values import Classes, Packer, Unpacker, known_classes
from saddlepoint.solving.provenance import described
from saddlepoint.solving.state import RunState, ScheduleState

VECTORS = 10_000  # most vectors of the size of the problem in a checkpoint
OTHER_BYTES = 1 << 26  # most bytes of everything else in a checkpoint


class Packed(NamedTuple):
    """The state of a method as the file has it; what the file cannot hold is taken from a fresh one."""

    content: Any
    arrays: list[Array]


class Checkpointer(ABC):
    """What a run does with its state between two steps."""

    lost = ""  # why the last checkpoint could not be written; empty if it was
    name = ""  # of the file; empty if there is none

    @abstractmethod
    def load(self, state: RunState) -> RunState:
        """The run to go on with: an earlier one if there is a file, or else the given one."""

    @abstractmethod
    def note(self, snapshot: Callable[[], RunState]) -> None:
        """The run is between two steps, where a snapshot of it can be taken."""

    @abstractmethod
    def write(self) -> None:
        """Bring the last snapshot to the disk."""

    @abstractmethod
    def method_state(self, packed: Packed, fresh: Callable[[], Any]) -> Any:
        """The state of a method that was loaded; ``fresh`` makes a new one like it."""


class NoCheckpoint(Checkpointer):
    """Nothing is written, and nothing was."""

    def load(self, state: RunState) -> RunState:
        """The given run."""
        return state

    def note(self, snapshot: Callable[[], RunState]) -> None:
        """Take no snapshot."""

    def write(self) -> None:
        """Write nothing."""

    def method_state(self, packed: Packed, fresh: Callable[[], Any]) -> Any:
        """A new state: none was loaded."""
        return fresh()


class RunFile(Checkpointer):
    """Writes a run to one file, and finds what an earlier one wrote there.

    Args:
        path: the file.
        every: seconds between two checkpoints.
        f: the problem.
        asked: the method that was asked for; or "auto".
        storage: the precision of a copy of A that was asked for.
    """

    def __init__(self, path: Path, every: float, f: Saddle, asked: str | Method, storage: str | None) -> None:
        self.path, self.every, self.f = path, every, f
        self.limit = OTHER_BYTES + VECTORS * 8 * sum(f.shape)
        self.classes: Classes = known_classes(asked)
        label, options = (asked, None) if isinstance(asked, str) else (asked.label, described(asked))
        self.identity = Identity.of(f, label, options, storage)
        self.due_at = 0.0  # when the next checkpoint is due, by the clock of the runtime; 0 before the first one
        self.latest: RunState | None = None  # the last snapshot
        self.written: RunState | None = None  # the last snapshot that is on the disk

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the file."""
        return str(self.path)

    # -- reading -------------------------------------------------------------------------------------------------------

    def load(self, state: RunState) -> RunState:
        """The run in the file, continued with the tolerance of ``state``; one that does not fit is refused."""
        old = older(self.path)  # the only one there is if a process was killed between two renamings
        there = self.f.A.runtime.once(lambda: self.path if self.path.exists() else old if is_checkpoint(old) else None)
        if there is None:
            return state
        try:
            found = self._read(there, state)
        except ProblemError as error:
            raise ProblemError(f"{error}; {self._offer(old, state)}") from None
        self.due_at = self.f.A.runtime.clock() + self.every
        if found.target != state.target:
            found.schedule.budget = float("inf")
        found.target = state.target
        found.session.resumed += 1
        self.latest = self.written = found
        return found.snapshot()

    def _offer(self, old: Path, state: RunState) -> str:
        try:
            self._read(old, state)
        except ProblemError:
            return "delete it to begin anew, or name another file"
        return f"but {old} is whole and fits: rename it to {self.path.name} to go on from there"

    def _read(self, path: Path, like: RunState) -> RunState:
        content, vectors = self.f.A.runtime.once(lambda: read(path, self.limit))
        try:
            self.identity.refuse_unlike(content["identity"], str(path))
            state: RunState = self._unpacker(vectors, None).unpack(content["run"])
            check_structure(state, like, self.identity.shape, f"{path} is damaged: the run")
            state.schedule.methods = state.schedule.methods or like.schedule.methods
            check_claims(state, like, self.f)
            packed = [None if item is None else Packed(item, vectors) for item in content["waiting"]]
            race = zip(state.schedule.race, packed, strict=True)
            state.schedule.race = [racer._replace(state=waiting) for racer, waiting in race]
            state.method_state = None if content["method_state"] is None else Packed(content["method_state"], vectors)
            return state
        except Exception as error:  # forged content can make anything fail
            raise _refusal(path, "is not a checkpoint of this program", error) from None

    def method_state(self, packed: Packed, fresh: Callable[[], Any]) -> Any:
        """The state of a method in the file; what a file cannot hold is taken from a fresh one."""
        like = fresh()
        try:
            state = self._unpacker(packed.arrays, lambda: like).unpack(packed.content)
            if not all(is_array(getattr(state, name, None)) for name in ("x", "y")):
                raise ValueError("there is no point in it")
            sizes = (*self.identity.shape, *(array.shape[0] for array in arrays(like)))
            check_structure(state, like, sizes, f"{self.path} holds no state of this method: it")
            return state
        except Exception as error:
            raise _refusal(self.path, "holds no state of this method", error) from None

    def _unpacker(self, arrays: list[Array], fresh: Callable[[], Any] | None) -> Unpacker:
        return Unpacker(self.classes, arrays, self.f.space, self.limit, fresh)

    # -- writing -------------------------------------------------------------------------------------------------------

    def note(self, snapshot: Callable[[], RunState]) -> None:
        """Take a snapshot, and write it if ``every`` seconds have passed. A state that cannot be written is refused."""
        began = self.latest is None or self.latest.method_state is None
        self.latest = snapshot()
        if began and self.latest.method_state is not None:
            Packer(self.classes).pack(self.latest.method_state)
        if self.f.A.runtime.clock() >= self.due_at:
            self.write()

    def write(self) -> None:
        """Write the last snapshot, unless that is done. If it cannot be written, the file that is there is kept."""
        state = self.latest
        if state is None or state is self.written:
            return
        packer, race = Packer(self.classes), state.schedule.race
        content = {
            "identity": self.identity.to_json(),
            "run": packer.pack(replace(state, method_state=None, schedule=self._schedule(state))),
            "method_state": packer.pack(state.method_state),
            "waiting": [packer.pack(racer.state) for racer in race],
        }
        first = self.due_at == 0.0
        try:
            self.f.A.runtime.once(lambda: write(self.path, Content(content, packer.arrays), self.limit))
            self.written, self.lost = state, ""
        except OSError as error:
            self._refused(error.strerror or str(error), first)
        finally:
            self.due_at = self.f.A.runtime.clock() + self.every

    def _schedule(self, state: RunState) -> ScheduleState:
        """The schedule, without the method if it was asked for: whoever reads the file asks for it again.

        The states of methods are written apart, because reading them takes a fresh state of the method.
        """
        asked_for = self.identity.options is not None
        race = [racer._replace(state=None) for racer in state.schedule.race]
        return replace(state.schedule, race=race, methods=() if asked_for else state.schedule.methods)

    def _refused(self, reason: str, first: bool) -> None:
        if first:
            raise ProblemError(f"the checkpoint {self.path} cannot be written: {reason}; name another") from None
        if not self.lost:
            warnings.warn(
                f"a checkpoint was lost: {self.path} cannot be written ({reason}); the run goes on",
                RuntimeWarning,
                stacklevel=2,
            )
        self.lost = reason


def _refusal(path: Path, complaint: str, error: Exception) -> ProblemError:
    """The error that names the file, for anything that went wrong with its content."""
    named = isinstance(error, ProblemError) and str(path) in str(error)
    return ProblemError(str(error) if named else f"{path} {complaint}: {first_line(error)}")
