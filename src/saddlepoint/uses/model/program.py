"""Linear and quadratic programs among the problems, for ``QuadraticProgram``, which needs no bound on multipliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, issparse, vstack

from saddlepoint.apps.programs.program import QuadraticProgram
from saddlepoint.apps.programs.result import ProgramResult
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.rounding import gamma
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.l1_box import L1Box
from saddlepoint.parts.simple.simplex import Simplex
from saddlepoint.uses.model.atoms import CONVEX
from saddlepoint.uses.model.constraints import Constraint
from saddlepoint.uses.model.expressions import Affine, Objective, Variable
from saddlepoint.uses.model.terms import Term

EPS = float(np.finfo(np.float64).eps)  # twice the largest relative error of one operation
SQUARES = ("sum_squares", "quad_form")
KINKS = ("norm1", "norm_inf", "max_entry", "positive_part")  # terms that linear inequalities can express


class Program(NamedTuple):
    """A program, and where the variables are in it.

    Attributes:
        program: the program, of the variables one after the other and of further ones behind them.
        places: where each variable is.
        rows: which rows each constraint has, and the shape of its expression.
        offset: what is to be added to the value of the program.
        slack: a bound on the rounding error of the offset.
        computed: whether its matrices are products of those of the model.
    """

    program: QuadraticProgram
    places: dict[Variable, slice]
    rows: list[tuple[Constraint, slice]]
    offset: float
    slack: float
    computed: bool

    def values(self, found: ProgramResult) -> dict[Variable, Array]:
        """The values of the variables."""
        return {v: np.asarray(found.x[place]).reshape(v.shape) for v, place in self.places.items()}

    def multipliers(self, found: ProgramResult) -> dict[str, Array]:
        """The multipliers of the constraints by their texts."""
        return {c.text: np.asarray(found.y[rows]).reshape(c.of.shape) for c, rows in self.rows}


class _Builder:
    """Collects rows, bounds and quadratic terms; further variables stand behind those of the caller."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        ends = np.cumsum([v.size for v in variables]).tolist()
        self.places = {v: slice(end - v.size, end) for v, end in zip(variables, ends, strict=True)}
        self.n = int(ends[-1])
        self.P: Any = csr_array((self.n, self.n))
        self.q = np.zeros(self.n)
        self.low, self.high = np.full(self.n, -np.inf), np.full(self.n, np.inf)
        self.more: list[tuple[float, float]] = []  # factors in the objective and lower bounds of further variables
        self.blocks: list[tuple[Any, Any, Array, Array]] = []  # rows of the variables, of further ones, and their ends
        self.count = 0
        self.offset, self.slack, self.computed = 0.0, 0.0, False

    def matrix(self, e: Affine) -> csr_array:
        """The map of an expression from all variables."""
        found = csr_array((e.size, self.n))
        for v, M in e.maps.items():
            place = self.places[v]
            coo = csr_array(M).tocoo()
            shape = (e.size, self.n)
            found = found + csr_array((coo.data, (coo.coords[0], coo.coords[1] + place.start)), shape=shape)
        return found

    def add_rows(self, M: Any, further: Any, lower: Array, upper: Array) -> slice:
        """Rows lower <= M x + further s <= upper."""
        self.blocks.append((M, further, lower, upper))
        self.count += lower.size
        return slice(self.count - lower.size, self.count)

    def new(self, size: int, factor: float, lower: float) -> range:
        """Further variables."""
        self.more += [(factor, lower)] * size
        return range(len(self.more) - size, len(self.more))

    def add_square(self, term: Term) -> None:
        """c e'Pe with e = M x + k adds 2 c M'PM to the matrix and 2 c M'P k to the linear part."""
        e, c = term.of.ravel(), term.factor
        M = self.matrix(e)
        weighted = csr_array(term.data["P"]) @ M if term.kind == "quad_form" else M
        Pk = term.data["P"] @ e.constant if term.kind == "quad_form" else e.constant
        self.P = self.P + (2.0 * c) * (M.T @ weighted)
        self.q = self.q + 2.0 * c * np.asarray(M.T @ Pk)
        self.offset += c * float(e.constant @ Pk)
        sizes = abs(term.data["P"]) @ np.abs(e.constant) if term.kind == "quad_form" else np.abs(e.constant)
        self.slack += gamma(2 * e.size + 8, EPS) * abs(c) * float(np.abs(e.constant) @ sizes)
        self.computed |= e.bare is None

    def add_kink(self, term: Term) -> None:
        """c norm(e) = min c sum(s) over e <= s, and -e <= s where the absolute value counts."""
        e = term.of.ravel()
        M, k = self.matrix(e), e.constant
        entries = term.kind in ("norm1", "positive_part")
        s = self.new(e.size if entries else 1, term.factor, -np.inf if term.kind == "max_entry" else 0.0)
        columns = np.arange(s.start, s.stop) if entries else np.full(e.size, s.start)
        minus = csr_array((-np.ones(e.size), (np.arange(e.size), columns)), shape=(e.size, s.stop))
        free = np.full(e.size, -np.inf)
        self.add_rows(M, minus, free, -k)
        if term.kind in ("norm1", "norm_inf"):
            self.add_rows(-M, minus, free, k)

    def add_constant(self, term: Term) -> None:
        """Add the value of a term of a constant; its error is bounded by that of the same sums of absolute values."""
        e, P = term.of.ravel().constant, term.data.get("P")
        self.offset += term.factor * CONVEX[term.kind](term.of.value({}), term.data)
        size = float(np.abs(e) @ (abs(P) @ np.abs(e))) if P is not None else CONVEX[term.kind](np.abs(e), term.data)
        self.slack += gamma(2 * e.size + 8, EPS) * abs(term.factor) * size

    def program(self) -> QuadraticProgram:
        """The program of everything that was added."""
        n, extra = self.n, len(self.more)
        q = np.concatenate([self.q, [factor for factor, _ in self.more]])
        low = np.concatenate([self.low, [lower for _, lower in self.more]])
        high = np.concatenate([self.high, np.full(extra, np.inf)])
        P = None
        if self.P.nnz:
            symmetric = csr_array(0.5 * (self.P + self.P.T)).tocoo()
            P = csr_array((symmetric.data, symmetric.coords), shape=(n + extra, n + extra))
        if not self.blocks:
            return QuadraticProgram(P, q, x_lower=low, x_upper=high)
        parts = []
        for M, further, _, _ in self.blocks:
            width = 0 if further is None else further.shape[1]
            pieces = [M] + ([further] if width else [])
            pieces += [csr_array((M.shape[0], extra - width))] if extra > width else []
            parts.append(csr_array(hstack(pieces)))
        lower, upper = (np.concatenate([block[i] for block in self.blocks]) for i in (2, 3))
        return QuadraticProgram(P, q, csr_array(vstack(parts)), lower, upper, low, high)


def as_program(
    objective: Objective, constraints: Sequence[Constraint], variables: Sequence[Variable]
) -> Program | None:
    """The problem as a program; None if it is none.

    It is one if all variables are the minimiser's, all terms are squares, quadratic forms, norms that linear
    inequalities describe, or affine, and all constraints are linear.
    """
    maps = [t.of for t in objective.terms] + [c.of for c in constraints] + [objective.linear]
    if any(v.player != "minimiser" or not _is_linear(v.within) for v in variables):
        return None
    if any(not issparse(M) and not isinstance(M, np.ndarray) for e in maps for M in e.maps.values()):
        return None
    if any(t.kind not in SQUARES + KINKS for t in objective.terms):
        return None
    if any(c.kind not in ("==", "<=", "norm_inf") for c in constraints):
        return None
    build = _Builder(variables)
    for v, M in objective.linear.maps.items():
        build.q[build.places[v]] += np.asarray(M.T @ np.ones(1)).ravel()
    build.offset += float(objective.linear.constant[0])
    for term in objective.terms:
        if not term.of.maps:
            build.add_constant(term)
        else:
            (build.add_square if term.kind in SQUARES else build.add_kink)(term)
    _add_simple(build, variables)
    rows = []
    for c in constraints:
        k = c.of.constant
        low = {"==": -k, "<=": np.full(k.size, -np.inf), "norm_inf": -c.bound - k}[c.kind]
        high = c.bound - k if c.kind == "norm_inf" else -k
        rows.append((c, build.add_rows(build.matrix(c.of.ravel()), None, low, high)))
    slack = build.slack + (len(objective.terms) + 2) * EPS * (abs(build.offset) + build.slack)
    return Program(build.program(), build.places, rows, build.offset, slack, build.computed)


def violation(condition: Constraint, values: Mapping[Variable, Array]) -> float:
    """By how much a constraint is violated at most; 0 if it holds."""
    e = condition.of.value(values).ravel()
    if condition.kind == "==":
        return float(np.max(np.abs(e)))
    if condition.kind == "<=":
        return max(float(np.max(e)), 0.0)
    order = {"norm1": 1, "norm2": 2, "norm_inf": np.inf}[condition.kind]
    return max(float(np.linalg.norm(e, order)) - condition.bound, 0.0)


def _is_linear(within: Simple | None) -> bool:
    return within is None or isinstance(within, Simplex) or (isinstance(within, L1Box) and within.weight.most == 0.0)


def _add_simple(build: _Builder, variables: Sequence[Variable]) -> None:
    for v in variables:
        place, p = build.places[v], v.within
        if isinstance(p, Simplex):
            build.low[place] = 0.0
            own = eye_array(build.n, format="csr")[place]
            total = np.array([p.total])
            build.add_rows(csr_array(np.ones((1, v.size)) @ own), None, total, total)
        elif isinstance(p, L1Box):
            build.low[place], build.high[place] = p.lower.everywhere(v.size), p.upper.everywhere(v.size)
