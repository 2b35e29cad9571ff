"""What a run is to prove: a distance to the saddle point, a relative distance, or a duality gap."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.validation import positive
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.strong_convexity import require_bounded, require_distance
from saddlepoint.solving.result import Record
from saddlepoint.theory.certificate import Certificate

LEAST = math.ulp(0.0)  # a distance is asked for that is not 0
UNDERFLOW = 8.0 * LEAST  # more than the lengths of two vectors and their sum lose by underflow
DEFAULT = 1e-6  # certified distance of a run that is asked for nothing else
NAMES = {"tol": "distance", "rtol": "relative distance", "gap": "duality gap"}  # by the argument of solve


class Target(NamedTuple):
    """A certified number and the most that it may be.

    Attributes:
        argument: "tol" for |x-x*| + |y-y*|, "rtol" for that divided by |x*| + |y*|, "gap" for the duality gap.
        most: the run is solved when the certified number is at most this.
    """

    argument: str
    most: float

    @classmethod
    def checked(cls, tol: Any = None, rtol: Any = None, gap: Any = None) -> Target:
        """The target that these arguments of solve ask for; at most one may be given."""
        given = {name: value for name, value in (("tol", tol), ("rtol", rtol), ("gap", gap)) if value is not None}
        if len(given) > 1:
            raise ProblemError(f"{' and '.join(given)} were given; expected one of tol, rtol and gap")
        (name, value) = next(iter(given.items()), ("tol", DEFAULT))
        return cls(name, positive(value, name))

    @property
    def what(self) -> str:
        """What is certified, in words."""
        return NAMES[self.argument]

    def reached(self, certificate: Certificate, x: Array, y: Array) -> float:
        """The number that is to fall below ``most``, at a point with this certificate.

        |x*| + |y*| is at least |x| + |y| minus the certified distance. A distance of 0 is small beside any size, 0 too.
        """
        if self.argument == "gap":
            return certificate.gap
        if self.argument == "tol" or certificate.distance in (0.0, math.inf):
            return certificate.distance
        least = (norm(x) + norm(y)) * (1.0 - 1e-12) - certificate.distance - UNDERFLOW
        return certificate.distance / least if least > 0.0 else math.inf

    def estimate(self, certificate: Certificate, x: Array, y: Array) -> float:
        """The same for predictions: finite where the distance is, although nothing relative may be proven yet."""
        size = norm(x) + norm(y)
        if self.argument != "rtol" or not 0.0 < size < math.inf:
            return self.reached(certificate, x, y)
        return certificate.distance / max(size - certificate.distance, 0.5 * size, LEAST)

    def recorded(self, record: Record) -> float:
        """The certified number in a record of the history; for a relative distance, the distance itself."""
        return record.gap if self.argument == "gap" else record.distance

    def as_distance(self, f: Saddle, x: Array, y: Array) -> float:
        """About the distance that reaches the target from near (x, y), for predictions of calls."""
        if self.argument == "tol":
            return self.most
        if self.argument == "rtol":
            return max(self.most * (norm(x) + norm(y)), LEAST)
        return max(math.sqrt(2.0 * self.most / (f.L + f.norm or 1.0)), LEAST)  # L and |A| may both be 0

    def check(self, f: Saddle) -> None:
        """Raise a ProblemError if nothing of the kind can be proven about the problem."""
        if self.argument == "gap":
            require_bounded(f)
        else:
            require_distance(f)
