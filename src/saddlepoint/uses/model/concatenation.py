"""Several expressions as one vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.uses.model.expressions import Affine, as_affine


def concatenate(expressions: Sequence[Any]) -> Affine:
    """The entries of several expressions and numbers as one vector, one expression after the other.

    Example:
        >>> import saddlepoint as sp
        >>> x, t = sp.model.minimiser(2, "x"), sp.model.minimiser((), "t")
        >>> sp.model.concatenate([2.0 * x, t, 1.0])
        concatenate(2 * x, t, 1) (affine, shape (4,))
    """
    if isinstance(expressions, Affine):
        raise ProblemError(f"concatenate was given {expressions.text}; expected a list of expressions")
    parts = [as_affine(thing) for thing in expressions]
    for part in parts:
        if not isinstance(part, Affine):
            raise ProblemError(
                f"{short_repr(part)} is no affine expression; expected variables, or linear maps of them"
            )
    ends = np.cumsum([part.size for part in parts])
    if not parts:
        raise ProblemError("concatenate was given no expressions; expected one at least")
    text = f"concatenate({', '.join(part.text for part in parts)})"
    found = Affine((int(ends[-1]),), {}, np.zeros(ends[-1]), "0")
    for part, end in zip(parts, ends, strict=True):
        rows = np.arange(end - part.size, end)
        places = csr_array((np.ones(part.size), (rows, np.arange(part.size))), shape=(ends[-1], part.size))
        found = found + part.ravel().mapped(places, found.shape, part.text)
    return Affine(found.shape, found.maps, found.constant, text)
