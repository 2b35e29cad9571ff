"""What is proven about a program: its status, certificate and result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.file_writing import replacing


def interval_width(lower: float, upper: float) -> float:
    """The length of an interval, rounded up; infinite if an end is."""
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return math.inf
    return math.nextafter(upper - lower, math.inf) if upper > lower else 0.0


class ProgramStatus(StrEnum):
    """What is proven about a program."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    UNPROVEN = "not proven"


class ProgramCertificate(NamedTuple):
    """What a point and multipliers prove about the optimal value.

    Attributes:
        lower: the optimal value is at least this; -inf where nothing is proven.
        upper: the optimal value is at most this; inf where no point is proven to satisfy the program.
        violation: a proven bound on the largest violation of a row or bound at the given point.
        why_lower, why_upper: why an end is infinite; empty if it is finite.
    """

    lower: float
    upper: float
    violation: float
    why_lower: str
    why_upper: str

    @property
    def width(self) -> float:
        """The length of the interval."""
        return interval_width(self.lower, self.upper)

    def __repr__(self) -> str:
        text = f"ProgramCertificate({self.lower:.12g} <= optimal value <= {self.upper:.12g}"
        return f"{text}, violation <= {self.violation:.3g})"


@dataclass(frozen=True, eq=False, repr=False)
class ProgramResult:
    """The answer to a program.

    Attributes:
        status: "optimal", "infeasible", "unbounded" or "not proven".
        lower, upper: a proven interval for the optimal value. Both are inf for an infeasible program, and -inf for an
            unbounded one.
        x: a point, and ``violation`` a proven bound on its largest violation of a row or bound. If ``upper`` is
            finite, a point that satisfies the program exactly is proven to exist within rounding errors of x.
        y: multipliers of the rows: P x + q + A'y is the reduced cost; y_i > 0 where the upper end of a row is active.
        ray: for an infeasible program, multipliers that prove it, and for an unbounded one a direction; else None.
        message: what is proven, or what was not, in a sentence.
        steps: steps of the method.
        seconds: the wall-clock time of the call.
    """

    status: ProgramStatus
    lower: float
    upper: float
    x: Array
    y: Array
    violation: float
    ray: Array | None
    message: str
    steps: int
    seconds: float

    @property
    def width(self) -> float:
        """The length of the interval; infinite if an end is."""
        return interval_width(self.lower, self.upper)

    @property
    def solved(self) -> bool:
        """Whether the program is proven to be optimal, infeasible or unbounded."""
        return self.status != ProgramStatus.UNPROVEN

    def to_dict(self) -> dict[str, Any]:
        """All in plain Python values."""
        names = ("lower", "upper", "violation", "message", "steps", "seconds")
        arrays = {name: getattr(self, name) for name in ("x", "y", "ray")}
        return (
            {"status": str(self.status), "solved": self.solved}
            | {name: getattr(self, name) for name in names}
            | {name: None if array is None else array.tolist() for name, array in arrays.items()}
        )

    def save(self, path: str | Path) -> None:
        """Write x, y, the interval and, if there is one, the ray to a .npz file."""
        rays: dict[str, Any] = {} if self.ray is None else {"ray": self.ray}
        with replacing(path) as file:
            np.savez(file, x=self.x, y=self.y, lower=self.lower, upper=self.upper, status=str(self.status), **rays)

    def __repr__(self) -> str:
        lines = [f"{self.status}: {self.message}"]
        if self.status in (ProgramStatus.OPTIMAL, ProgramStatus.UNPROVEN):
            lines.append(f"  optimal value  in [{self.lower:.12g}, {self.upper:.12g}]")
            lines.append(f"  violation of x <= {self.violation:.3g}")
        return "\n".join([*lines, f"  {self.steps} steps, {self.seconds:.3g} s"])
