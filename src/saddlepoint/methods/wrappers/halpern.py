r"""Halpern: reflected steps of a method, averaged with an anchor, and restarted.

Problem:    the fixed point of z -> T(z), where T is one step of the wrapped method on its whole state z.
Recursion:  z_{k+1} = (k+1)/(k+2) (2 T(z_k) - z_k) + 1/(k+2) z_0. It is restarted from T(z_k) when the residual
            |T(z_k) - z_k| has fallen to 0.2 of the first of the epoch; when it has fallen to 0.8 of it and begins to
            rise; or when the epoch has 36 % of all steps. At a restart the weight w of PDHG becomes
            sqrt(w |dy|/|dx|), where (dx, dy) is the move from the beginning of the epoch to its end.
Guarantee:  within an epoch the residual is at most |z_0 - z*|/(k+1) (``halpern_bound``) where 2 T - I is nonexpansive,
            as it is for PDHG with linear g and h. On problems that are sharp, such as matrix games and linear programs,
            restarts make this linear.
Reference:  B. Halpern, Fixed points of nonexpanding maps, Bull. AMS 1967; F. Lieder, On the convergence rate of the
            Halpern iteration, Optim. Lett. 2021; H. Lu and J. Yang, Restarted Halpern PDHG for linear programming,
            arXiv 2407.16144, 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.states import arrays, with_arrays
from saddlepoint.methods.base import choice_option, float_option
from saddlepoint.methods.pdhg import PDHG, PDHGState
from saddlepoint.methods.registry import register_expression
from saddlepoint.methods.wrappers.base import Wrapper
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity

LIMITS = 1e-4, 1e4  # least and largest weight, relative to that at the start


class HalpernState(NamedTuple):
    """The point T(z), the state z, the anchor z_0, and the progress of the epoch and of the run."""

    x: Array
    y: Array
    inner: Any
    anchor: Any
    k: int  # number of steps since the last restart
    total: int  # number of steps of the run
    first: float  # residual of the first step of the epoch
    last: float  # residual of the last step


@dataclass(frozen=True)
class Halpern(Wrapper):
    """Halpern's iteration with reflection and restarts."""

    enough: float = float_option(0.2, "share of the first residual at which an epoch ends", 0.0, 1.0)
    some: float = float_option(0.8, "share of the first residual at which it ends when the residual rises", 0.0, 1.0)
    longest: float = float_option(0.36, "longest epoch, as a share of all steps", 0.0, 1.0)
    weighting: str = choice_option("adaptive", "whether restarts change the weight of PDHG", ("adaptive", "fixed"))

    own_works: ClassVar[tuple[str, ...]] = ("halpern1967", "lieder2021", "lu2024")

    def init(self, f: Saddle, x: Array, y: Array) -> HalpernState:
        """The start of the inner method, which is the first anchor."""
        inner = self.method.init(f, x, y)
        return HalpernState(x, y, inner, inner, 0, 0, math.inf, math.inf)

    def step(self, f: Saddle, s: HalpernState) -> HalpernState:
        """The state after one step of the inner method."""
        after = self.method.step(f, s.inner)
        found = length(after, s.inner, self.scales(f, after))
        total, first = s.total + 1, found if s.k == 0 else s.first
        if s.k > 0 and self.is_over(s, found, total):
            anchor = self.reweighted(f, after, s.anchor)
            return HalpernState(after.x, after.y, anchor, anchor, 0, total, found, found)
        states = zip(arrays(after), arrays(s.inner), arrays(s.anchor), strict=True)
        share = (s.k + 1.0) / (s.k + 2.0)
        moved = with_arrays(after, (drawn_back(*vectors, share) for vectors in states))
        return HalpernState(after.x, after.y, moved, s.anchor, s.k + 1, total, first, found)

    def is_over(self, s: HalpernState, found: float, total: int) -> bool:
        """Whether the epoch ends with this residual."""
        fell = found <= self.enough * s.first or (found <= self.some * s.first and found > s.last)
        return fell or s.k >= self.longest * total

    def scales(self, f: Saddle, state: Any) -> tuple[float, float]:
        """The factors of x and y in the norm of the residual."""
        if isinstance(state, PDHGState):
            return math.sqrt(state.weight), 1.0 / math.sqrt(state.weight)
        given = self.method.weights(f)
        return given.get("x", 1.0), given.get("y", 1.0)

    def reweighted(self, f: Saddle, after: Any, anchor: Any) -> Any:
        """The state with a weight for the next epoch that would have balanced the moves of x and of y in this one."""
        if not isinstance(self.method, PDHG) or not isinstance(after, PDHGState) or self.weighting == "fixed":
            return after
        dx, dy = norm(after.x - anchor.x), norm(after.y - anchor.y)
        if not (0.0 < dx < math.inf and 0.0 < dy < math.inf):
            return after
        least, most = (limit * self.method.first_weight(f) for limit in LIMITS)
        return after._replace(weight=min(max(math.sqrt(after.weight * dy / dx), least), most))


def drawn_back(new: Array, old: Array, anchor: Array, share: float) -> Array:
    """The point share (2 new - old) + (1 - share) anchor."""
    z = 2.0 * new
    z -= old
    z -= anchor
    z *= share
    z += anchor
    return z


def length(new: Any, old: Any, scales: tuple[float, float]) -> float:
    """The size of the difference of two states."""
    return math.hypot(scales[0] * norm(new.x - old.x), scales[1] * norm(new.y - old.y))


register_expression("halpern-pdhg", Halpern, PDHG, Complexity("1/gap; linear on sharp problems"))
