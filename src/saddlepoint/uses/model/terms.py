"""Terms of an objective: multiples of convex functions, and bilinear terms; and what expressions are called."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saddlepoint.uses.model.expressions import Affine


@dataclass(frozen=True, eq=False)
class Term:
    """A multiple of a convex function of an affine expression.

    Attributes:
        factor: the multiple; the term is concave if it is negative.
        kind: the name of the function, as in ``atoms``.
        of: the expression.
        data: what else the function depends on.
    """

    factor: float
    kind: str
    of: Affine
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What the term is called in messages."""
        kind, factor = ("entropy", -self.factor) if self.kind == "negative_entropy" else (self.kind, self.factor)
        size, sign = abs(factor), "-" if factor < 0.0 else ""
        return f"{sign}{'' if size == 1.0 else f'{size:g} * '}{kind}({self.of.text})"


@dataclass(frozen=True, eq=False)
class Bilinear:
    """The inner product of an affine expression of the minimiser and one of the maximiser."""

    left: Affine
    right: Affine

    @property
    def text(self) -> str:
        """What the term is called in messages."""
        return f"{inside(self.left.text)} @ {inside(self.right.text)}"


def inside(text: str) -> str:
    """The text of an expression, in brackets if it is a sum."""
    return f"({text})" if " + " in text or " - " in text else text


def sum_text(one: Affine, two: Affine) -> str:
    """The text of the sum of two expressions."""
    for e, other in ((one, two), (two, one)):
        if not e.maps and not e.constant.any():
            return other.text
    if two.text.startswith("-"):
        return f"{one.text} - {two.text[1:]}"
    return f"{one.text} + {two.text}"


def owners(*expressions: Affine) -> str:
    """Whose the variables in these expressions are, in words."""
    variables = dict.fromkeys(v for e in expressions for v in e.maps)
    return ", ".join(f"{v.name} belongs to the {v.player}" for v in variables)
