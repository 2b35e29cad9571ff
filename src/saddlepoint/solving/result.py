"""What a solve returns: point, certificate, oracle counts, history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints, overload

import numpy as np

from saddlepoint.ground.arrays import Array, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.file_writing import replacing, write_text
from saddlepoint.ground.plain_json import json_text
from saddlepoint.parts.simple.base import Support
from saddlepoint.theory.certificate import Certificate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from saddlepoint.solving.derivatives import JVP, VJP, Differentiable


def support_counts(found: Array) -> dict[str, int]:
    """How many coordinates there are of each kind, by the names of ``Support`` in small letters."""
    counts = np.bincount(found, minlength=len(Support)).tolist()
    return {kind.name.lower(): counts[kind] for kind in Support}


def support_words(found: Array) -> str:
    """The same as a line of text."""
    words = {"zero": "at zero", "lower": "at their lower bounds", "upper": "at their upper bounds", "off": "off them"}
    counts = support_counts(found)
    proven = [f"{counts[kind]} {word}" for kind, word in words.items() if counts[kind]]
    return ", ".join([*(["proven " + ", ".join(proven)] if proven else []), f"{counts['undecided']} undecided"])


class Status(StrEnum):
    """Why a run ended. ``SOLVED`` is reported only if the certificate meets the tolerance."""

    SOLVED = "solved"
    OUT_OF_CALLS = "out of calls"
    OUT_OF_TIME = "out of time"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped by the callback"
    STALLED = "stalled"
    UNCERTIFIED = "uncertified"
    DIVERGED = "diverged"
    RUNNING = "running"


class Record(NamedTuple):
    """One line of the history, taken with each certificate.

    Its ``seconds`` are wall-clock time, as those of the result: from the beginning of the call on, with certificates
    and with earlier sessions.
    """

    iteration: int
    grad_g: int
    grad_h: int
    A: int
    At: int
    passes: int
    seconds: float
    distance: float
    gap: float


class History(Sequence[Record]):
    """The records of a run, in order; it cannot be changed.

    ``to_pandas()`` gives a frame and ``column(name)`` an array.
    """

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self._records = tuple(records)

    @classmethod
    def of(cls, array: Array) -> History:
        """The history that ``array`` was made of."""
        kinds = get_type_hints(Record).values()
        try:
            return cls([Record(*(kind(cell) for kind, cell in zip(kinds, row, strict=True))) for row in array.tolist()])
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise ProblemError("the history has a row that is no record; expected what a run has written") from None

    @property
    def array(self) -> Array:
        """The records as rows of float64, which holds every count exactly."""
        return np.array(self._records, dtype=np.float64).reshape(len(self), len(Record._fields))

    def column(self, name: str) -> Array:
        """One field of all records."""
        return np.array([getattr(record, name) for record in self._records])

    def to_pandas(self) -> Any:
        """The history as a pandas DataFrame (needs pandas)."""
        import pandas

        return pandas.DataFrame(self._records, columns=list(Record._fields))

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __repr__(self) -> str:
        return f"History({len(self)} records)"


@dataclass(frozen=True, repr=False, eq=False)
class Result:
    """The best certified point of a run.

    Attributes:
        x, y: the point, in the variables and the dtype of the problem.
        status, message: why the run ended, as a word and as a sentence.
        certificate: what is proven about (x, y).
        calls: how often the method called each oracle.
        passes: how often the method read A from end to end.
        iterations: steps of the method.
        seconds: wall-clock time of the whole call: checks of the options, the estimate of |A|, the steps, certificates,
            the examination of the problem, callbacks and checkpoints. With a checkpoint, all sessions are added up.
        method_seconds: the part of it that the steps of the method took, with their gradients and products.
        method: its name; ``parameters`` are its constants as resolved by theory.
        history: one record a certificate.
        monitor_calls: certificates taken, each a query of all four oracles, kept apart from ``calls``.
        setup_calls: what examining the problem took: one gradient of each function at the start, and the estimates of
            |A| and of any L that was not given, which are made once for all runs of a problem; and the examination of
            a constant that seemed to be wrong.
        provenance: versions, machine, problem, method with its options and constants, and the works to cite, in plain
            values.
        support_x, support_y: what is proven about each coordinate of the saddle point, as an int8 array of NumPy with
            values of ``Support``: at its lower or upper bound, zero, off these, or undecided. None for a player without
            a simple term, and in results that a callback is given.
    """

    x: Array
    y: Array
    status: Status
    message: str
    certificate: Certificate
    calls: dict[str, int]
    passes: int
    iterations: int
    seconds: float
    method: str
    parameters: dict[str, float]
    method_seconds: float
    history: History = field(default_factory=History)
    monitor_calls: int = 0
    setup_calls: dict[str, int] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    support_x: Array | None = None
    support_y: Array | None = None
    _derivatives: Differentiable | None = None

    @property
    def solved(self) -> bool:
        """True only when the certificate meets the tolerance."""
        return self.status is Status.SOLVED

    @property
    def all_calls(self) -> dict[str, int]:
        """All calls by oracle: of the method, for certificates, and to examine the problem."""
        return {
            name: count + self.setup_calls.get(name, 0) + (0 if name.startswith("prox") else self.monitor_calls)
            for name, count in self.calls.items()
        }

    def cite(self) -> str:
        """BibTeX of this software and of the works behind the method."""
        return "\n\n".join(self.provenance.get("citations", {}).values())

    def plot(self, path: str | Path | None = None) -> Figure:
        """Certified distance, or duality gap where there is none, against oracle calls (needs matplotlib).

        The picture is saved to ``path`` if that is given.
        """
        from saddlepoint.solving.convergence_plot import plot_convergence

        return plot_convergence({self.method: self}, path)

    def vjp(self, vx: Any = None, vy: Any = None, **options: Any) -> VJP:
        """The gradient of <vx, x*> + <vy, y*> with respect to A, to linear terms, and to any parameter.

        It is the solution of one linear system, which is a saddle problem too, and is solved as one. Its error against
        the derivative at the true saddle point is bounded.

        Args:
            vx, vy: vectors like x and y; zero if left out.
            **options: arguments of ``solve`` for the linear system, such as ``rtol`` or ``method``.

        Returns:
            An object with ``A``, ``bx`` and ``by``, the gradients with respect to A and to linear terms <bx, x> and
            <by, y> of g and h; the adjoint vectors ``ux`` and ``uy``; ``bound``, a proven bound on the error of the
            adjoint vectors; ``why``, which says why the bound is infinite if it is; and ``undecided``, the number of
            coordinates at which a simple term has not been decided.

        Raises:
            ProblemError: nothing is proven about the point, a mu is 0, or second derivatives are not known.

        Example:
            >>> import numpy as np, saddlepoint as sp
            >>> f = sp.Saddle(sp.Quadratic(2.0, [1.0, 0.0]), sp.Quadratic(1.0), np.eye(2))
            >>> u = sp.solve(f, tol=1e-9).vjp(vx=[1.0, 0.0])  # x* = -b/3, since x = -(b + y)/2 and y = x
            >>> u.bx.round(6).tolist(), u.bound < 1e-9
            ([-0.333333, -0.0], True)
        """
        return self.differentiable().vjp(self, vx, vy, options)

    def jvp(self, A: Any = None, bx: Any = None, by: Any = None, *, field: Any = None, **options: Any) -> JVP:
        """The derivative of (x*, y*) along a change of A, of linear terms of g and h, and of the field.

        Args:
            A: the direction of A, a matrix like A.
            bx, by: the directions of linear terms <bx, x> of g and <by, y> of h.
            field: (dFx, dFy), the change of the gradients of g at x* and of h at y* by any other parameter. The bound
                takes these vectors for exact.
            **options: arguments of ``solve`` for the linear system.

        Returns:
            An object with the derivatives ``x`` and ``y``, and ``bound``, ``why`` and ``undecided`` as for ``vjp``.

        Example:
            >>> import numpy as np, saddlepoint as sp
            >>> f = sp.Saddle(sp.Quadratic(2.0, [1.0, 0.0]), sp.Quadratic(1.0), np.eye(2))
            >>> sp.solve(f, tol=1e-9).jvp(bx=[1.0, 0.0]).x.round(6).tolist()
            [-0.333333, 0.0]
        """
        return self.differentiable().jvp(self, A, bx, by, field, options)

    def differentiable(self) -> Differentiable:
        """The solved problem, whose solution can be differentiated; a ProblemError if the result does not hold it."""
        if self._derivatives is None:
            raise ProblemError(
                "this result does not hold its problem, because it was read from a file, sent to another process or "
                "given to a callback; solve the problem again to differentiate its solution"
            )
        return self._derivatives

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_derivatives": None}  # the problem is not sent along

    def to_dict(self, arrays: bool = False) -> dict[str, Any]:
        """The result in plain Python values, as ``--json`` prints it."""
        summary: dict[str, Any] = {
            "solved": self.solved,
            "status": str(self.status),
            "message": self.message,
            "method": self.method,
            "parameters": self.parameters,
            "certificate": self.certificate._asdict()
            | {"residual": self.certificate.residual, "assumes": list(self.certificate.assumes)},
            "calls": self.calls,
            "all_calls": self.all_calls,
            "passes": self.passes,
            "monitor_calls": self.monitor_calls,
            "setup_calls": self.setup_calls,
            "iterations": self.iterations,
            "seconds": self.seconds,
            "method_seconds": self.method_seconds,
            "provenance": self.provenance,
            "support": {
                name: support_counts(found)
                for name, found in (("x", self.support_x), ("y", self.support_y))
                if found is not None
            },
        }
        if arrays:
            summary |= {"x": to_host(self.x).tolist(), "y": to_host(self.y).tolist()}
            for name, found in (("support_x", self.support_x), ("support_y", self.support_y)):
                summary[name] = None if found is None else found.tolist()
        return summary

    def save(self, path: str | Path) -> None:
        """Write the result to a file; if writing fails, the file that was there is kept.

        The ending of the name says how: ".csv" for a table of x and y with a line for each coordinate, ".json" for
        everything but the history in JSON, and any other for x, y, the history and the summary as ``.npz``, which
        ``sp.load_result`` reads. There is no pickle inside, and the name is taken as it is.
        """
        ending = Path(path).suffix.lower()
        if ending in (".csv", ".json"):
            write_text(path, self.csv_text() if ending == ".csv" else json_text(self.to_dict(arrays=True)) + "\n")
            return
        summary = json.dumps(self.to_dict() | {"history_columns": list(Record._fields)})
        arrays: dict[str, Array] = {"x": to_host(self.x), "y": to_host(self.y), "history": self.history.array}
        for name, found in (("support_x", self.support_x), ("support_y", self.support_y)):
            if found is not None:
                arrays[name] = found
        with replacing(path) as file:
            np.savez(file, **arrays, summary=np.array(summary))  # type: ignore[arg-type]

    def csv_text(self) -> str:
        """x and y as a table in CSV: a line ``variable,index,value`` for each coordinate, in full precision."""
        lines = [
            f"{name},{index},{value!r}"
            for name, vector in (("x", self.x), ("y", self.y))
            for index, value in enumerate(to_host(vector).tolist())
        ]
        return "\n".join(["variable,index,value", *lines]) + "\n"

    def __repr__(self) -> str:
        calls = ", ".join(f"{name} {count}" for name, count in self.all_calls.items())
        of_method = ", ".join(map(str, self.calls.values()))
        proof = self.certificate.words(gap="gap")
        if self.certificate.distance == self.certificate.gap == float("inf"):
            proof = f"none; residual |F| = {self.certificate.residual:.3g}"
        lines = [
            f"{self.status}: {self.message}",
            f"  certificate  {proof}{'' if self.certificate.is_examined else '  (its claims were not examined)'}",
            f"  calls        {calls}, all counted  (by the method {of_method})",
            f"  method       {self.method}, {self.iterations} iterations, {self.seconds:.3g} s",
            f"  point        x{self.x.shape}, y{self.y.shape}, {self.x.dtype}",
        ]
        for name, found in (("x", self.support_x), ("y", self.support_y)):
            if found is not None:
                lines.append(f"  support of {name} {support_words(found)}")
        return "\n".join(lines)
