r"""Preconditioned: any method, in units for each variable that make the rows and columns of A alike.

Problem:    min_u max_v g(R u) + <u, R A C v> - h(C v), where x = R u and y = C v with diagonal matrices R and C.
Recursion:  that of the wrapped method. R and C come from ten steps of Ruiz' iteration and one of Pock and Chambolle,
            rounded to powers of two.
Guarantee:  that of the wrapped method for the problem in the new units. Certificates are taken in the old ones.
Reference:  D. Ruiz, A scaling algorithm to equilibrate both rows and columns norms in matrices, 2001; T. Pock and A.
            Chambolle, Diagonal preconditioning for first order primal-dual algorithms in convex optimization, ICCV
            2011; D. Applegate et al., Practical large-scale linear programming using primal-dual hybrid gradient,
            NeurIPS 2021.

A variable has a unit of its own if that leaves the prox known and L alone: where its function is linear or a sum over
coordinates, and its simple term is an l1 norm, a box, a simplex, or blocks of these. The other variables of a player
have a common unit. Where the entries of A are not in memory (operators, shards), nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.methods.base import InnerRun
from saddlepoint.methods.registry import register_expression
from saddlepoint.methods.wrappers.base import Wrapper
from saddlepoint.parts.coupling import Coupling, Norm
from saddlepoint.parts.coupling.equilibration import DiagonalCoupling, Scales, equilibrated, has_entries, original
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple.diagonal import diagonal_scales, has_one_scale
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, diagonally_rescaled
from saddlepoint.theory.complexity import Complexity


@dataclass(frozen=True)
class Preconditioned(Wrapper):
    """Diagonal scaling of both players around another method.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> A = np.diag([1e3, 1.0, 1e-3]) @ [[3.0, -1.0], [-1.0, 2.0], [0.5, 0.5]]
        >>> f = sp.Saddle(sp.Box(-1.0, 1.0), sp.Box(-1.0, 1.0), A)
        >>> result = sp.solve(f, np.ones(3), np.ones(2), method=sp.Preconditioned("halpern-pdhg"), gap=1e-9)
        >>> result.solved, result.method
        (True, 'preconditioned-halpern-pdhg')
    """

    own_works: ClassVar[tuple[str, ...]] = ("ruiz2001", "pock2011", "applegate2021")

    def normal_form(self, f: Saddle) -> View:
        """The problem in the new units, and from there in the coordinates of the inner method."""
        if not has_entries(f.A) or self.method.needs.barrier:  # steps with barriers are the same in all units
            return self.method.normal_form(f)
        scales, norm = self.scales(f)
        if bool((scales.rows == 1.0).all() and (scales.columns == 1.0).all()):  # steps need not multiply by them
            return self.method.normal_form(f)
        rows, columns = f.space.of_x.cast(scales.rows), f.space.of_y.cast(scales.columns)
        view = diagonally_rescaled(f, rows, columns, norm)
        return view.then(self.method.normal_form(view.problem))

    def scales(self, f: Saddle) -> tuple[Scales, Norm]:
        """The scales for the problem and bounds on the norm in the new units; they are computed once for an A."""
        A = original(f.A)
        factor = f.norm / A.norm if A.norm > 0.0 else 1.0  # the problem may be in other units already
        key = repr((_kind(f.g), _kind(f.h)))
        kept: dict[str, tuple[Scales, Norm]] = A.__dict__.setdefault("_equilibrated", {})
        if key not in kept:
            kept[key] = _computed(f, A)
        scales, norm = kept[key]
        return scales, norm._replace(lower=factor * norm.lower, upper=factor * norm.upper)

    def init(self, f: Saddle, x: Array, y: Array) -> Any:
        """The state of the inner method at the start."""
        return self.method.init(f, x, y)

    def step(self, f: Saddle, s: Any) -> Any:
        """The state after one step of the inner method."""
        return self.method.step(f, s)

    def cost(self, f: Saddle) -> dict[str, int] | None:
        """The cost of a step of the inner method."""
        return self.method.cost(f)

    def bound(self, f: Saddle, k: int) -> float | None:
        """The bound of the inner method, in the new units."""
        return self.method.bound(f, k)

    def weights(self, f: Saddle) -> dict[str, float]:
        """The weights of the inner method."""
        return self.method.weights(f)

    def inner_run(self, f: Saddle, s: Any) -> InnerRun:
        """The identical steps of the inner method."""
        return self.method.inner_run(f, s)

    def note(self, s: Any) -> str:
        """The remark of the inner method."""
        return self.method.note(s)

    def state_residual(self, s: Any) -> float:
        """The residual of the inner method, in the new units."""
        return self.method.state_residual(s)


def _computed(f: Saddle, A: Coupling) -> tuple[Scales, Norm]:
    together = [not _is_free(g) or has_one_scale(g.simple) for g in (f.g, f.h)]
    if all(together):  # a unit for each player changes nothing
        return Scales(np.ones(A.shape[0]), np.ones(A.shape[1])), A.norm_estimate
    found = equilibrated(A.A, *together)  # type: ignore[attr-defined]
    scales = Scales(*(diagonal_scales(g.simple, v) for g, v in zip((f.g, f.h), found, strict=True)))
    rows, columns = A.space.of_x.cast(scales.rows), A.space.of_y.cast(scales.columns)
    try:
        return scales, DiagonalCoupling(A, rows, columns, A.norm_estimate).estimated_norm()
    except ProblemError:  # products overflow in the new units, where entries are subnormal; the old units stay
        return Scales(np.ones(A.shape[0]), np.ones(A.shape[1])), A.norm_estimate


def _is_free(g: Smooth) -> bool:
    """Whether coordinates may have units of their own without a larger L than that of the function demands."""
    return g.L == 0.0 or g.separable


def _kind(g: Smooth) -> Any:
    return _is_free(g), g.simple


register_expression(
    "preconditioned-halpern-pdhg", Preconditioned, "halpern-pdhg", Complexity("1/gap; linear on sharp problems")
)
