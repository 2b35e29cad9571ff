"""When a run is written to disk, and what is read when it is called again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.methods.base import Method
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.checkpoint.fit import Identity
from saddlepoint.solving.checkpoint.store import Content, older, read, write
from saddlepoint.solving.checkpoint.values import Classes, Packer, Unpacker, known_classes
from saddlepoint.solving.provenance import described

VECTORS = 10_000  # of the problem's size that a checkpoint may hold,
SLACK = 1 << 26  # and bytes of anything else


class LoadedRun(NamedTuple):
    """A run that was read: where it stands, the history, and the state of its method, still packed."""

    standing: Any
    history: Array
    state: Any
    arrays: list[Array]


class Checkpointer:
    """Writes a run to one file, and finds what an earlier one wrote there.

    Attributes:
        lost: why the last checkpoint could not be written; empty if it was.
    """

    def __init__(self, path: Path, every: float, f: Saddle, asked: str | Method, storage: str | None) -> None:
        self.path, self.every, self.space, self.clock = path, every, f.space, f.clock
        self.once: Callable[[Callable[[], Any]], Any] = _call if f.A.engine is None else f.A.engine.once
        self.limit = SLACK + VECTORS * 8 * sum(f.shape)
        self.classes: Classes = known_classes(asked)
        label, options = (asked, None) if isinstance(asked, str) else (asked.label, described(asked))
        self.identity = Identity.of(f, label, options, storage)
        self.written: Any = None  # the last that was
        self.due_at = 0.0
        self.lost = ""

    def find(self) -> LoadedRun | None:
        """The run to go on with, or None if there is no file; one that does not fit is refused."""
        old = older(self.path)
        there = self.once(lambda: [path for path in (self.path, old) if path.exists()])
        if not there:
            return None
        try:
            found = self._read(there[0])  # a process may be killed between two names
        except ProblemError as error:
            raise ProblemError(f"{error}; {self._offer(old)}") from None
        self.written, self.due_at = found.standing, self.clock() + self.every
        return found

    def _offer(self, old: Path) -> str:
        try:
            self._read(old)
        except ProblemError:
            return "delete it to begin anew, or name another file"
        return f"but {old} is whole and fits: rename it to {self.path.name} to go on from there"

    def _read(self, path: Path) -> LoadedRun:
        told, arrays = self.once(lambda: read(path, self.limit))
        try:
            self.identity.refuse_unlike(told["identity"], str(path))
            standing = self._unpacker(arrays, None).unpack(told["standing"])
            if not hasattr(standing, "_fields"):
                raise ValueError("it does not say where the run stands")
            return LoadedRun(standing, self._unpacker(arrays, None).unpack(told["history"]), told["state"], arrays)
        except ProblemError:
            raise
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise ProblemError(f"{path} is not a checkpoint of this program: {_first_line(error)}") from None

    def state(self, saved: LoadedRun, fresh: Callable[[], Any]) -> Any:
        """The state of the method; what a file cannot hold is taken from a fresh one."""
        try:
            state = self._unpacker(saved.arrays, fresh).unpack(saved.state)
            if state is not None and not all(hasattr(state, name) for name in ("x", "y")):
                raise ValueError("there is no point in it")
            return state
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise ProblemError(f"{self.path} holds no state of this method: {_first_line(error)}") from None

    def _unpacker(self, arrays: list[Array], fresh: Callable[[], Any] | None) -> Unpacker:
        return Unpacker(self.classes, arrays, self.space, self.limit, fresh)

    @property
    def due(self) -> bool:
        """Whether the time has come to write."""
        return self.clock() >= self.due_at

    def check(self, state: Any) -> None:
        """Refuse, early, a state that cannot be written."""
        Packer(self.classes).pack(state)

    def write(self, standing: Any, state: Any, history: Array) -> None:
        """Write, unless that is written already. What the disk refuses is lost, and what is there is kept."""
        if standing is self.written:
            return
        packer = Packer(self.classes)
        told = {
            "identity": self.identity.told(),
            "standing": packer.pack(standing),
            "history": packer.pack(history),
            "state": packer.pack(state),
        }
        first = self.due_at == 0.0
        try:
            self.once(lambda: write(self.path, Content(told, packer.arrays), self.limit))
            self.written, self.lost = standing, ""
        except OSError as error:
            reason = error.strerror or str(error)
            if first:
                raise ProblemError(f"the checkpoint {self.path} cannot be written: {reason}; name another") from None
            if not self.lost:
                warnings.warn(
                    f"a checkpoint was lost: {self.path} cannot be written ({reason}); the run goes on",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self.lost = reason
        finally:
            self.due_at = self.clock() + self.every


def _call(function: Callable[[], Any]) -> Any:
    return function()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
