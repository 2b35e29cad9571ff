r"""Restarted: any method, restarted whenever its residual has fallen far enough.

Recursion:  run the method from (x, y); check the residual of its point in the steps 4, 5, ..., each 15 % later than the
            one before; when it is at most 0.3 of the residual at the start, start again from there. The residual
            is the length of the field, to which simple terms add their best subgradients.
Guarantee:  where the residual |F| after k steps is at most C |z_0 - z*|/k^p for convex functions, with some p > 0,
            strong convexity makes this linear: |z_0 - z*| is at most |F(z_0)|/mu, so that 0.3 of the residual at the
            start is left after (C/(0.3 mu))^(1/p) steps. mu need not be known.
Reference:  B. O'Donoghue and E. Candes, Adaptive restart for accelerated gradient schemes, Found. Comput. Math. 2015;
            H. Lu and J. Yang, A practical and optimal first-order method for large-scale convex quadratic programming,
            Math. Prog. 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.apd import APD, residual
from saddlepoint.methods.base import Needs, float_option
from saddlepoint.methods.optimality import optimality
from saddlepoint.methods.registry import register_expression
from saddlepoint.methods.wrappers.base import FIRST_CHECK, Wrapper, next_check
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import joint_order


class RestartedState(NamedTuple):
    """The point, the state of the inner method, and the progress of its run."""

    x: Array
    y: Array
    inner: Any
    k: int  # number of steps since the last restart
    next_check: int  # the step at which the residual is checked next
    residual: float  # the residual at the last restart


@dataclass(frozen=True)
class Restarted(Wrapper):
    """Restarts by residual around another method."""

    fall: float = float_option(0.3, "the share of the residual at which a run ends", 0.0, 1.0)

    own_works: ClassVar[tuple[str, ...]] = ("odonoghue2015", "lu2025")

    @property
    def label(self) -> str:
        """The name "rapd" for APD with its defaults; otherwise "restarted-" and the name of the inner method."""
        return "rapd" if self.inner == APD() else super().label

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """The needs of the inner method, and strong convexity, with which the residual is measured."""
        return replace(self.method.needs, strong=True)

    def init(self, f: Saddle, x: Array, y: Array) -> RestartedState:
        """The start; one query for the residual."""
        return self.begin(f, x, y, self.residual(f, x, y))

    def residual(self, f: Saddle, x: Array, y: Array) -> float:
        """The residual at (x, y); one query."""
        Rx, Ry, _ = optimality(f, x, y, *f.field(x, y))
        return residual(f, Rx, Ry)

    def begin(self, f: Saddle, x: Array, y: Array, start: float) -> RestartedState:
        """The state after a restart at (x, y)."""
        return RestartedState(x, y, self.method.init(f, x, y), 0, FIRST_CHECK, start)

    def step(self, f: Saddle, s: RestartedState) -> RestartedState:
        """The state after one step of the inner method; a check of the residual costs one query more."""
        inner = self.method.step(f, s.inner)
        k, check = s.k + 1, s.next_check
        if k == check:
            found = self.residual(f, inner.x, inner.y)
            if found <= self.fall * s.residual:
                return self.begin(f, inner.x, inner.y, found)
            check = next_check(k)
        return RestartedState(inner.x, inner.y, inner, k, check, s.residual)


register_expression("rapd", Restarted, APD, Complexity("sqrt(k) + c", joint_order))
