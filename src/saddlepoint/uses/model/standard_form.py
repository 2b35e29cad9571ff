r"""The standard form min_x max_y g(x) + <x, A y> - h(y) of a model, and the way back.

Variables that a smooth term ties together are next to each other, and their terms are one function with a mu of its
own. g is the sum of these functions. Its mu is their smallest one, which is 0 if some variables have no curvature.
Then the gap is proven from the bounds of the variables. Variables that have curvature and no bounds get some that are
proven to hold at the solution:

Let S be all variables with curvature, of both players, and B the others, in a bounded set of diameter D. With the
values of B at the solution held fixed, the variables of S solve a strongly monotone problem. At a point z of the
domain, its residual is at most that at z with any values of B, plus |A| D, and the certificate of z bounds the distance
from z to the solution. A term may tie variables of S to variables of B, as the loss of a linear model with an intercept
does. Then the gradient of their function adds at most its L times the diameter of the latter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.functions.block_sum import BlockSum
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.blocks import Blocks
from saddlepoint.parts.simple.l1_box import Box, L1Box
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.certificate import side_bounds
from saddlepoint.uses.model.expressions import Variable
from saddlepoint.uses.model.lifting import Lifted, NothingProvenError
from saddlepoint.uses.model.maps import is_identity, plus, times
from saddlepoint.uses.model.smooth_terms import tied_function
from saddlepoint.uses.model.terms import Term

SMALL = 10_000  # entries up to which A is stored as a dense matrix
FULL = 0.25  # share of entries that are not zero from which a larger A is stored as a dense matrix
SLACK = 1.01  # factor on proven bounds, beyond all rounding in them


class Tied(NamedTuple):
    """Variables that smooth terms tie together.

    Attributes:
        variables: one after the other.
        function: the sum of their smooth terms.
        alone: the mu of the terms that a variable does not share with others, where that of all terms is zero.
    """

    variables: list[Variable]
    function: Smooth
    alone: dict[Variable, float]

    @property
    def size(self) -> int:
        """The number of entries."""
        return sum(v.size for v in self.variables)

    def strength(self, v: Variable) -> float:
        """The function minus half of this times the squared length of the variable is convex."""
        return self.function.mu if self.function.mu > 0.0 else self.alone.get(v, 0.0)


class Side(NamedTuple):
    """All variables of one player.

    Attributes:
        ties: the groups of variables, one after the other.
        rows: where each variable is in the vector of all of them.
        within: the simple function of each variable.
    """

    ties: list[Tied]
    rows: dict[Variable, slice]
    within: dict[Variable, Simple | None]

    @property
    def size(self) -> int:
        """The number of entries."""
        return sum(tie.size for tie in self.ties)

    @property
    def mu(self) -> float:
        """The strong convexity of the sum of all functions."""
        return min((tie.function.mu for tie in self.ties), default=math.inf)

    def diameter(self, v: Variable) -> float:
        """A bound on the diameter of the domain of a variable."""
        p = self.within[v]
        return math.inf if p is None else p.diameter_in(v.size)

    def weak_diameter(self, tie: Tied) -> float:
        """A bound on the diameter of the domain of those variables of a group that have no curvature."""
        return math.hypot(*(self.diameter(v) for v in tie.variables if not tie.strength(v) > 0.0))

    def function(self) -> Smooth:
        """g or h: the sum of the functions of all groups, plus the simple functions."""
        if not self.ties:
            return Quadratic(1.0)
        smooth = self.ties[0].function
        if len(self.ties) > 1:
            smooth = BlockSum([tie.function for tie in self.ties], [tie.size for tie in self.ties])
        blocks = [(range(rows.start, rows.stop), p) for v, rows in self.rows.items() if (p := self.within[v])]
        if not blocks:
            return smooth
        alone = len(self.rows) == 1
        return smooth + (blocks[0][1] if alone else Blocks(blocks))


class StandardForm(NamedTuple):
    """The problem as a ``Saddle``, and where the variables are.

    Attributes:
        saddle: the problem.
        minimiser, maximiser: the variables of the two players.
        computed: whether a matrix of the problem is a product of matrices of the model.
    """

    saddle: Saddle
    minimiser: Side
    maximiser: Side
    computed: bool

    def split(self, x: Array, y: Array) -> dict[Variable, Array]:
        """The value of each variable, in its shape."""
        found = {}
        for side, vector in ((self.minimiser, x), (self.maximiser, y)):
            for v, rows in side.rows.items():
                found[v] = np.asarray(vector[rows]).reshape(v.shape)
        return found

    def strength(self, v: Variable) -> float:
        """The mu of the group of the variable, or that of the terms of the variable alone."""
        side = self.minimiser if v in self.minimiser.rows else self.maximiser
        return next(tie.strength(v) for tie in side.ties if any(u is v for u in tie.variables))


class UnboundedNormError(ProblemError):
    """A variable that needs a bound has a norm as its simple function, to which none can be added."""


def standard_form(draft: Lifted, may_add: bool = True) -> StandardForm:
    """The problem in standard form, with bounds for all variables that need some.

    Args:
        draft: the problem.
        may_add: whether bounds that hold at the solution may be given to variables that need some.

    Raises:
        ProblemError: a variable has neither curvature nor bounds.
    """
    linear = {v: np.zeros(v.size) for v in draft.variables}
    blocks, computed = _blocks(draft, linear)
    for v, M in draft.linear.maps.items():
        linear[v] = linear[v] + np.asarray(M.T @ np.ones(1)).ravel()
    sides = [_side(draft, player, linear) for player in ("minimiser", "maximiser")]
    A = _joined(blocks, *sides)
    saddle = Saddle(sides[0].function(), sides[1].function(), A)
    if _add_bounds(saddle, sides[0], sides[1], may_add):
        saddle = Saddle(sides[0].function(), sides[1].function(), saddle.A)
    return StandardForm(saddle, sides[0], sides[1], computed)


def _blocks(draft: Lifted, linear: dict[Variable, Array]) -> tuple[dict[tuple[Variable, Variable], Any], bool]:
    """The blocks of A; what constants make of a bilinear term is added to the linear terms."""
    blocks: dict[tuple[Variable, Variable], Any] = {}
    computed = False
    for pair in draft.pairs:
        left, right = pair.left, pair.right
        for v, M in left.maps.items():
            if right.constant.any():
                linear[v] = linear[v] + np.asarray(M.T @ right.constant)
            for u, N in right.maps.items():
                product = N if is_identity(M) else M.T if is_identity(N) else times(M.T, N)
                computed |= not is_identity(M) and not is_identity(N)
                blocks[v, u] = plus(blocks[v, u], product) if (v, u) in blocks else product
        for u, N in right.maps.items():
            if left.constant.any():
                linear[u] = linear[u] + np.asarray(N.T @ left.constant)
    return blocks, computed or any(term.kind == "quad_form" and term.of.bare is None for term in draft.terms)


def _side(draft: Lifted, player: str, linear: dict[Variable, Array]) -> Side:
    own = [v for v in draft.variables if v.player == player]
    terms = [term for term in draft.terms if next(iter(term.of.maps)).player == player]
    sign = 1.0 if player == "minimiser" else -1.0  # the maximiser's function is h, which is subtracted
    ties, rows, end = [], {}, 0
    for variables, some in _ties(own, terms):
        b = sign * np.concatenate([linear[v] for v in variables])
        f = tied_function(some, b, variables)
        ties.append(Tied(variables, f, _alone(f, variables, some)))
        for v in variables:
            rows[v] = slice(end, end + v.size)
            end += v.size
    return Side(ties, rows, {v: draft.within[v] for v in own})


def _alone(f: Smooth, variables: Sequence[Variable], terms: Sequence[Term]) -> dict[Variable, float]:
    """The mu of the terms of each variable alone, if the sum of all terms, which is f, has none.

    A run examines the mu of f only, so that those which are the caller's claims do not count here.
    """
    if f.mu > 0.0 or len(variables) == 1 or not math.isfinite(f.L):
        return {}
    own = {v: tied_function([t for t in terms if t.of.maps.keys() == {v}], np.zeros(v.size), [v]) for v in variables}
    return {v: part.mu for v, part in own.items() if part.mu > 0.0 and part.trusted}


def _ties(variables: Sequence[Variable], terms: Sequence[Term]) -> list[tuple[list[Variable], list[Term]]]:
    """The variables in groups that are tied together by terms, each with its terms."""
    group = {v: i for i, v in enumerate(variables)}
    for term in terms:
        numbers = {group[v] for v in term.of.maps}
        first = min(numbers)
        group = {v: first if i in numbers else i for v, i in group.items()}
    found = []
    for i in sorted(set(group.values())):
        own = [v for v in variables if group[v] == i]
        found.append((own, [term for term in terms if group[next(iter(term.of.maps))] == i]))
    return found


def _joined(blocks: dict[tuple[Variable, Variable], Any], of_x: Side, of_y: Side) -> Any:
    """A as one matrix, dense or sparse, or as one operator if a block is one."""
    m, n = max(of_x.size, 1), max(of_y.size, 1)
    places = [(of_x.rows[v], of_y.rows[u], M) for (v, u), M in blocks.items()]
    if any(isinstance(M, LinearOperator) for _, _, M in places):
        return _operator((m, n), places)
    count = sum(M.nnz if issparse(M) else np.count_nonzero(M) for _, _, M in places)
    if m * n <= SMALL or count > FULL * m * n:
        A = np.zeros((m, n))
        for rows, columns, M in places:
            A[rows, columns] += dense(M)
        return A
    i, j, entries = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for rows, columns, M in places:
        coo = csr_array(M).tocoo()
        i.append(coo.coords[0] + rows.start)
        j.append(coo.coords[1] + columns.start)
        entries.append(coo.data)
    return csr_array((np.concatenate(entries), (np.concatenate(i), np.concatenate(j))), shape=(m, n))


def _operator(shape: tuple[int, int], places: Sequence[tuple[slice, slice, Any]]) -> LinearOperator:
    parts = [(rows, columns, aslinearoperator(M)) for rows, columns, M in places]

    def forward(y: Array) -> Array:
        found = np.zeros(shape[0])
        for rows, columns, M in parts:
            found[rows] += M.matvec(np.asarray(y).ravel()[columns])
        return found

    def backward(x: Array) -> Array:
        found = np.zeros(shape[1])
        for rows, columns, M in parts:
            found[columns] += M.rmatvec(np.asarray(x).ravel()[rows])
        return found

    return LinearOperator(shape, matvec=forward, rmatvec=backward, dtype=np.float64)


# -- bounds ------------------------------------------------------------------------------------------------------------


def _add_bounds(f: Saddle, of_x: Side, of_y: Side, may_add: bool) -> bool:
    """Give bounds to variables that have curvature and need bounds; whether there were any."""
    needed: list[tuple[Side, Variable]] = []
    for side in (of_x, of_y):
        if side.mu > 0.0:
            continue
        for tie in side.ties:
            for v in tie.variables:
                if side.diameter(v) < math.inf:
                    continue
                if not (tie.strength(v) > 0.0 and may_add):
                    raise _unbounded(v)
                needed.append((side, v))
    if not needed:
        return False
    x0, y0 = f.project(np.zeros(f.shape[0]), np.zeros(f.shape[1]))
    radius_x, radius_y = _reach(f, of_x, of_y, x0, y0)
    for side, v in needed:
        radius, start = (radius_x, x0) if side is of_x else (radius_y, y0)
        old = side.within[v]
        if old is not None and not isinstance(old, L1Box):
            raise UnboundedNormError(f"{v.name} needs bounds beside {old!r}; give it some")
        centre = start[side.rows[v]]
        box = Box(centre - radius, centre + radius)
        side.within[v] = box if old is None else old + box
    return True


def _reach(f: Saddle, of_x: Side, of_y: Side, x0: Array, y0: Array) -> tuple[float, float]:
    """Bounds on the distances of the variables with curvature, at the solution, from x0 and y0."""
    Fx, Fy = f.field(x0, y0)
    lengths, strengths, widths = [], [], []
    for side, F, point in ((of_x, Fx, x0), (of_y, Fy, y0)):
        strong = [(v, tie.strength(v)) for tie in side.ties for v in tie.variables if tie.strength(v) > 0.0]
        kept = [F[side.rows[v]] for v, _ in strong]
        kinks = sum(_kink(side.within[v], point[side.rows[v]]) for v, _ in strong)
        shifts = [tie.function.L * side.weak_diameter(tie) for tie in side.ties if tie.alone]
        lengths.append(norm(np.concatenate(kept)) + kinks + math.hypot(*shifts) if kept else 0.0)
        strengths.append(min((mu for _, mu in strong), default=math.inf))
        widths.append(math.hypot(*(side.weak_diameter(tie) for tie in side.ties)))
    ceiling = as_coupling(f.A).norm_ceiling()
    size = ceiling if math.isfinite(ceiling) else 2.0 * f.norm
    of_x_bound, of_y_bound = lengths[0] + size * widths[1], lengths[1] + size * widths[0]
    if math.inf in strengths:  # one player has no variable with curvature
        return SLACK * of_x_bound / strengths[0], SLACK * of_y_bound / strengths[1]
    far_x, far_y = side_bounds(strengths[0], strengths[1], of_x_bound, of_y_bound)
    return SLACK * far_x, SLACK * far_y


def _kink(p: Simple | None, x: Array) -> float:
    """The length of a subgradient of the simple function at a point of its domain, which is 0 for a constraint."""
    return norm(p.weight.everywhere(x.shape[0])) if isinstance(p, L1Box) and x.any() else 0.0


def _unbounded(v: Variable) -> NothingProvenError:
    kind, change = ("convex", "add") if v.player == "minimiser" else ("concave", "subtract")
    return NothingProvenError(
        f"{v.name} has no bounds and the objective is not strongly {kind} in it, so that nothing can be proven about "
        f"the solution, and the problem may be unbounded; give it bounds, for example {v.name} <= 1e3 and {v.name} >= "
        f"-1e3, or {change} a multiple of sum_squares({v.name})"
    )
