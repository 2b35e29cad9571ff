"""Expressions of variables: affine ones, and objectives as sums of terms.

An affine expression is a linear map of the variables plus a constant. An objective is a sum of multiples of convex
functions of affine expressions, of bilinear terms, and of one affine expression with one entry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, issparse, kron

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.simple.base import Simple
from saddlepoint.uses.model.constraints import at_most, compared
from saddlepoint.uses.model.maps import as_constant, as_matrix, is_identity, plus, reciprocal, times
from saddlepoint.uses.model.operators import AffineOperators, ObjectiveOperators
from saddlepoint.uses.model.terms import Bilinear, Term, inside, owners, sum_text


class Affine(AffineOperators):
    """An affine expression of variables: for each variable a linear map, and a constant.

    Attributes:
        shape: the shape of the expression.
        maps: for each variable the matrix, or the operator, by which its entries enter, in the order of C.
        constant: the constant part, as a vector.
        text: what the expression is called in messages.
    """

    def __init__(self, shape: tuple[int, ...], maps: Mapping[Variable, Any], constant: Array, text: str) -> None:
        self.shape, self.maps, self.constant, self.text = shape, dict(maps), constant, text

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    @property
    def variables(self) -> list[Variable]:
        """The variables in the expression."""
        return list(self.maps)

    @property
    def bare(self) -> Variable | None:
        """The variable, if the expression is nothing but one whole variable; else None."""
        if len(self.maps) != 1 or self.constant.any():
            return None
        (variable, matrix) = next(iter(self.maps.items()))
        return variable if is_identity(matrix) else None

    def value(self, values: Mapping[Variable, Array]) -> Array:
        """The expression for these values of the variables, in its shape."""
        found = self.constant.copy()
        for variable, matrix in self.maps.items():
            found = found + matrix @ np.asarray(values[variable], dtype=np.float64).ravel()
        return np.asarray(found).reshape(self.shape)

    # -- sums and multiples --------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        other = as_affine(other)
        if not isinstance(other, Affine):
            return NotImplemented
        one, two = _same_shape(self, other)
        maps = dict(one.maps)
        for variable, matrix in two.maps.items():
            maps[variable] = plus(maps[variable], matrix) if variable in maps else matrix
        return Affine(one.shape, maps, one.constant + two.constant, sum_text(self, other))

    __radd__ = __add__

    def __neg__(self) -> Affine:
        return self._scaled(-1.0, f"-{inside(self.text)}")

    def __sub__(self, other: Any) -> Any:
        other = as_affine(other)
        if not isinstance(other, Affine):
            return NotImplemented if not hasattr(other, "__neg__") else (self + (-other))
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, factor: Any) -> Any:
        if isinstance(factor, Affine) or hasattr(factor, "terms"):
            raise ProblemError(
                f"({self.text}) * ({getattr(factor, 'text', factor)}) is a product of two expressions; write x @ A @ y "
                "for a bilinear term, sum_squares(...) for squares, and quad_form(x, P) for quadratic forms"
            )
        numbers = as_constant(factor, f"the factor of {self.text}")
        if numbers.ndim == 0:
            return self._scaled(float(numbers), f"{float(numbers):g} * {inside(self.text)}")
        try:
            shape = np.broadcast_shapes(numbers.shape, self.shape)
        except ValueError:
            raise ProblemError(
                f"the factor of {self.text} has the shape {numbers.shape}; expected {self.shape}, or a number"
            ) from None
        scale = diags_array(np.broadcast_to(numbers, shape).ravel(), format="csr")
        return _broadcast(self, shape).mapped(scale, shape, f"array * {inside(self.text)}")

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> Any:
        return self * reciprocal(number, self.text)

    def _scaled(self, factor: float, text: str) -> Affine:
        if not self.maps and self.size == 1:
            text = f"{factor * float(self.constant[0]):g}"
        return Affine(self.shape, {v: factor * M for v, M in self.maps.items()}, factor * self.constant, text)

    def mapped(self, matrix: Any, shape: tuple[int, ...], text: str) -> Affine:
        """The matrix times the entries of this expression, with this shape and text."""
        maps = {v: matrix if is_identity(M) else times(matrix, M) for v, M in self.maps.items()}
        return Affine(shape, maps, np.asarray(matrix @ self.constant), text)

    # -- products with matrices ----------------------------------------------------------------------------------------

    def __rmatmul__(self, matrix: Any) -> Affine:
        if isinstance(matrix, Objective):
            raise ProblemError(
                f"({matrix.text}) @ ({self.text}) is a product of more than two expressions; expected bilinear terms "
                "x @ A @ y"
            )
        M = as_matrix(matrix, self.text)
        if self.shape == () or M.shape[1] != self.shape[0]:
            raise ProblemError(
                f"a {M.shape[0]} x {M.shape[1]} matrix cannot be multiplied by {self.text}, which has the shape "
                f"{self.shape}; expected {M.shape[1]} rows"
            )
        text = f"{'matrix' if np.ndim(matrix) == 2 else 'vector'} @ {inside(self.text)}"
        rows = M if len(self.shape) == 1 else csr_array(kron(M, eye_array(self.shape[1])))
        return self.mapped(rows, (M.shape[0],)[: np.ndim(matrix) - 1] + self.shape[1:], text)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Affine):
            if len(self.shape) > 1 or len(other.shape) > 1:
                raise ProblemError(
                    f"({self.text}) @ ({other.text}): the shapes are {self.shape} and {other.shape}, and the product "
                    "of two matrices of variables is a matrix of bilinear terms; write inner(X, Y) for the sum of the "
                    "products of their entries, and inner(X, B @ Y @ C) with matrices of numbers B and C"
                )
            return inner(self, other)
        if np.ndim(other) == 1:
            vector = as_constant(other, f"the vector beside {self.text}")
            if self.shape[-1:] != vector.shape:
                raise ProblemError(
                    f"{self.text} @ vector: the shapes are {self.shape} and {vector.shape}; expected a vector of "
                    f"{self.shape[-1] if self.shape else 1} numbers"
                )
            rows = (
                csr_array(kron(eye_array(self.shape[0]), vector[None, :])) if len(self.shape) == 2 else vector[None, :]
            )
            return self.mapped(rows, self.shape[:-1], f"{inside(self.text)} @ vector")
        M = as_matrix(other, self.text)
        if self.shape == () or self.shape[-1] != M.shape[0]:
            raise ProblemError(
                f"{self.text}, which has the shape {self.shape}, cannot be multiplied by a {M.shape[0]} x {M.shape[1]} "
                f"matrix; expected one with {self.shape[-1] if self.shape else 1} rows"
            )
        if len(self.shape) == 1:
            return self.mapped(M.T, (M.shape[1],), f"{inside(self.text)} @ matrix")
        rows = self.shape[0]
        text = f"{inside(self.text)} @ matrix"
        return self.mapped(csr_array(kron(eye_array(rows), M.T)), (rows, M.shape[1]), text)

    # -- parts and shapes ----------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Affine:
        try:
            index = np.arange(self.size).reshape(self.shape)[key]
        except IndexError as error:
            raise ProblemError(f"{self.text} has the shape {self.shape}: {error}") from None
        return self._taken(np.asarray(index), f"{inside(self.text)}[...]")

    @property
    def T(self) -> Affine:
        """The transpose of a matrix."""
        return self._taken(np.arange(self.size).reshape(self.shape).T, f"{inside(self.text)}.T")

    def reshape(self, *shape: Any) -> Affine:
        """The entries in another shape, in the order of C."""
        index = np.arange(self.size).reshape(*shape)
        return Affine(index.shape, self.maps, self.constant, self.text)

    def ravel(self) -> Affine:
        """The entries as a vector, in the order of C."""
        return self.reshape(-1)

    def sum(self, axis: int | None = None) -> Affine:
        """The sum of all entries, or along an axis."""
        if axis is None:
            return self.mapped(np.ones((1, self.size)), (), f"sum({self.text})")
        index = np.moveaxis(np.arange(self.size).reshape(self.shape), axis, -1)
        rows = np.repeat(np.arange(math.prod(index.shape[:-1])), index.shape[-1])
        ones = csr_array((np.ones(self.size), (rows, index.ravel())))
        return self.mapped(ones, index.shape[:-1], f"sum({self.text}, axis={axis})")

    def _taken(self, index: Array, text: str) -> Affine:
        chosen = csr_array((np.ones(index.size), (np.arange(index.size), index.ravel())), shape=(index.size, self.size))
        return self.mapped(chosen, index.shape, text)

    # -- constraints ---------------------------------------------------------------------------------------------------

    def __le__(self, other: Any) -> Any:
        return compared(self, as_affine(other), "<=")

    def __ge__(self, other: Any) -> Any:
        return compared(self, as_affine(other), ">=")

    def __eq__(self, other: Any) -> Any:
        return compared(self, as_affine(other), "==")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{self.text} (affine, shape {self.shape})"


class Variable(Affine):
    """A variable of the minimiser or of the maximiser; ``minimiser`` and ``maximiser`` make them.

    Attributes:
        player: "minimiser" or "maximiser".
        name: what it is called in messages and answers.
        within: a simple function of its entries, such as a constraint; None if it is free.
    """

    def __init__(self, shape: tuple[int, ...], name: str, player: str, within: Simple | None = None) -> None:
        self.player, self.name, self.within = player, name, within
        size = math.prod(shape)
        super().__init__(shape, {self: eye_array(size, format="csr")}, np.zeros(size), name)

    def __repr__(self) -> str:
        term = "" if self.within is None else f", within {self.within!r}"
        return f"{self.name} (variable of the {self.player}, shape {self.shape}{term})"


class Objective(ObjectiveOperators):
    """A sum of terms, bilinear terms and one affine expression; atoms and sums of them make it.

    Attributes:
        terms: the convex and concave functions.
        pairs: the bilinear terms.
        linear: an affine expression with one entry.
    """

    def __init__(self, terms: list[Term], pairs: list[Bilinear] | None = None, linear: Affine | None = None) -> None:
        self.terms, self.pairs = terms, pairs or []
        self.linear = Affine((), {}, np.zeros(1), "0") if linear is None else linear

    def __add__(self, other: Any) -> Any:
        found = as_objective(other)
        if found is None:
            return NotImplemented
        return Objective(self.terms + found.terms, self.pairs + found.pairs, self.linear + found.linear)

    __radd__ = __add__

    def __neg__(self) -> Objective:
        return self * -1.0

    def __sub__(self, other: Any) -> Any:
        found = as_objective(other)
        return NotImplemented if found is None else self + (-found)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, factor: Any) -> Objective:
        if isinstance(factor, Affine | Objective) or np.ndim(factor) != 0:
            raise ProblemError(
                f"({self.text}) * ({_text(factor)}) is not allowed; an objective can be multiplied by a number only"
            )
        c = float(as_constant(factor, f"the factor of {self.text}"))
        terms = [Term(c * t.factor, t.kind, t.of, t.data) for t in self.terms]
        return Objective(terms, [Bilinear(c * p.left, p.right) for p in self.pairs], c * self.linear)

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> Objective:
        return self * reciprocal(number, self.text)

    # -- constraints ---------------------------------------------------------------------------------------------------

    def __le__(self, bound: Any) -> Any:
        return at_most(self, as_affine(bound), f"{self.text} <= {_text(bound)}")

    def __ge__(self, bound: Any) -> Any:
        return at_most(-self, -as_affine(bound), f"{self.text} >= {_text(bound)}")

    @property
    def text(self) -> str:
        """What the objective is called in messages."""
        parts = [t.text for t in self.terms] + [p.text for p in self.pairs]
        if self.linear.maps or self.linear.constant.any() or not parts:
            parts.append(self.linear.text.removeprefix("0 + "))
        return parts[0] + "".join(f" - {p[1:]}" if p.startswith("-") else f" + {p}" for p in parts[1:])

    def __repr__(self) -> str:
        return self.text


def inner(left: Any, right: Any) -> Any:
    """The inner product of two expressions of one shape: of the minimiser and of the maximiser, or with a constant.

    Example:
        >>> import saddlepoint as sp
        >>> x, y = sp.model.minimiser((2, 2), "X"), sp.model.maximiser((2, 2), "Y")
        >>> sp.model.inner(x, y)
        X @ Y
    """
    one, two = as_affine(left), as_affine(right)
    for e in (one, two):
        if not isinstance(e, Affine):
            raise ProblemError(f"{short_repr(e)} is no affine expression; expected variables, or linear maps of them")
    if one.shape != two.shape:
        raise ProblemError(
            f"inner({one.text}, {two.text}): the shapes are {one.shape} and {two.shape}; expected expressions of one "
            "shape"
        )
    one, two = one.ravel(), two.ravel()
    if not one.maps or not two.maps:
        constant, e = (one, two) if not one.maps else (two, one)
        return e.mapped(constant.constant[None, :], (), f"{e.text} @ vector")
    players = [sorted({v.player for v in e.maps}) for e in (one, two)]
    if len(players[0]) > 1 or len(players[1]) > 1 or players[0] == players[1]:
        raise ProblemError(
            f"{one.text} @ {two.text} is no bilinear term of the two players: {owners(one, two)}. Expected "
            "an expression of the minimiser times one of the maximiser; squares are sum_squares(...) or quad_form(x, P)"
        )
    if players[0] == ["maximiser"]:
        one, two = two, one
    return Objective([], [Bilinear(one, two)])


def as_objective(thing: Any) -> Objective | None:
    """The thing as an objective: a number or an expression with one entry is one; None if it is something else."""
    if isinstance(thing, Objective):
        return thing
    e = as_affine(thing)
    if not isinstance(e, Affine):
        return None
    if e.size != 1:
        raise ProblemError(
            f"{e.text} has the shape {e.shape}, but an objective is one number; did you mean a sum, a norm or "
            "sum_squares of it?"
        )
    return Objective([], [], e.reshape(()))


def as_affine(thing: Any) -> Any:
    """An affine expression; constants become expressions without variables, and other things are returned."""
    if isinstance(thing, Affine) or hasattr(thing, "terms"):
        return thing
    if isinstance(thing, int | float | np.number | np.ndarray | list) or issparse(thing) or hasattr(thing, "to_numpy"):
        numbers = as_constant(thing, "a constant")
        return Affine(numbers.shape, {}, numbers.ravel(), f"{float(numbers):g}" if numbers.ndim == 0 else "array")
    return thing


def _text(thing: Any) -> str:
    return thing.text if isinstance(thing, Affine | Objective) else short_repr(thing)


def _same_shape(one: Affine, two: Affine) -> tuple[Affine, Affine]:
    if one.shape == two.shape:
        return one, two
    try:
        shape = np.broadcast_shapes(one.shape, two.shape)
    except ValueError:
        raise ProblemError(
            f"{one.text} and {two.text} have the shapes {one.shape} and {two.shape}; expected one shape"
        ) from None
    return _broadcast(one, shape), _broadcast(two, shape)


def _broadcast(e: Affine, shape: tuple[int, ...]) -> Affine:
    if e.shape == shape:
        return e
    return e._taken(np.broadcast_to(np.arange(e.size).reshape(e.shape), shape), e.text)
