"""Sums of functions of separate blocks of coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import block_diag, csr_array

from saddlepoint.ground.arrays import Array, common_space, concat
from saddlepoint.ground.compensated import Sum
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.functions.accuracy import require_L, stated_errors
from saddlepoint.parts.functions.compensated import compensated_gradient
from saddlepoint.parts.functions.given_constants import known
from saddlepoint.parts.functions.second_order import hessian_change, quadratic_model
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.functions.zero import Zero
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.blocks import Blocks

UP = 1.0 + 1e-12  # factor that exceeds the relative rounding of a norm of a few numbers


def block_sum(functions: Sequence[Smooth | Simple], sizes: Sequence[int]) -> Smooth:
    """The function f_1(x[:n_1]) + f_2(x[n_1:n_1 + n_2]) + ..., with the simple terms of its parts.

    Its mu is the smallest mu of the parts, and its L the largest L.

    Args:
        functions: the parts; a ``Simple`` one stands for itself plus zero.
        sizes: the number of coordinates of each part.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> from saddlepoint.parts.functions.block_sum import block_sum
        >>> f = block_sum([sp.Quadratic(2.0), sp.Quadratic(1.0) + sp.L1(0.1)], [1, 2])
        >>> f.grad(np.array([1.0, 5.0, 6.0])).tolist(), f.simple
        ([2.0, 5.0, 6.0], Blocks(1:3: L1(0.1)))
    """
    parts: list[Smooth] = []
    terms: list[tuple[range, Simple]] = []
    end = 0
    for i, (f, n) in enumerate(zip(functions, sizes, strict=True)):
        if not isinstance(f, Smooth | Simple):
            raise ProblemError(f"function {i} of the list is {short_repr(f)}; expected a Smooth, such as Quadratic")
        term = f if isinstance(f, Simple) else f.simple
        if isinstance(f, Smooth) and f.dim not in (None, n):
            raise ProblemError(
                f"function {i} of the list has {f.dim} variables, but its block has {n}; they must agree"
            )
        if term is not None:
            term.validate(n, f"block {i}")
            terms.append((range(end, end + n), term))
        parts.append(Zero() if isinstance(f, Simple) else f.without_term)
        end += n
    if len(parts) == 1:
        return parts[0] + terms[0][1] if terms else parts[0]
    smooth = BlockSum(parts, sizes)
    return smooth + Blocks(terms) if terms else smooth


class BlockSum(Smooth):
    """A sum of smooth functions of consecutive blocks of coordinates."""

    def __init__(self, parts: Sequence[Smooth], sizes: Sequence[int]) -> None:
        self.parts = list(parts)
        ends = np.cumsum(sizes).tolist()
        self.rows = [slice(end - n, end) for end, n in zip(ends, sizes, strict=True)]
        accuracy = known(float(np.max([f.accuracy for f in parts])))  # NaN if one of them is
        is_black_box = all(f.rounding is None and math.isnan(f.accuracy) for f in parts)
        for f in parts if accuracy is None else ():
            require_L(f)
        super().__init__(
            self._gradient,
            mu=known(float(np.min([f.mu for f in parts]))),
            L=known(float(np.max([f.L for f in parts]))),
            value=self._value if all(f.value is not None for f in parts) else None,
            prox=self._proximal if all(f.has_prox for f in parts) else None,
            dim=int(sum(sizes)),
            space=common_space({f"part {i}": f for i, f in enumerate(parts)}),
            quadratic=all(f.quadratic for f in parts),
            hessian=self._hessian if all(f.hessian is not None for f in parts) else None,
            hessian_lipschitz=self._change,
            second_order=self._model,
            trusted=all(f.trusted for f in parts),
            accuracy=accuracy,
            rounding=None if is_black_box else self._rounding,
            compensated=self._compensated
            if accuracy == 0.0 and any(f.compensated is not None for f in parts)
            else None,
        )

    @property
    def proven_L(self) -> float | None:
        """The largest of the bounds of the parts; None if there is none of one of them."""
        found = [f.proven_L for f in self.parts]
        return None if None in found else max(L for L in found if L is not None)

    def _on(self, x: Array) -> list[tuple[Smooth, Array]]:
        return [(f, x[rows]) for f, rows in zip(self.parts, self.rows, strict=True)]

    def _gradient(self, x: Array) -> Array:
        return concat(f.grad(part) for f, part in self._on(x))

    def _value(self, x: Array) -> float:
        return sum(f(part) for f, part in self._on(x))

    def _proximal(self, v: Array, t: float) -> Array:
        return concat(f.prox(part, t) for f, part in self._on(v))

    def _rounding(self, x: Array) -> Array:
        """The bounds of the parts, beyond what the accuracy of the whole accounts for."""
        return concat(self._part_rounding(f, part) for f, part in self._on(x))

    def _part_rounding(self, f: Smooth, x: Array) -> Array:
        bound = 0.0 * abs(x) if f.rounding is None else f.rounding(x)
        is_left_out = math.isnan(self.accuracy) and f.accuracy > 0.0
        return bound + stated_errors(f, x) if is_left_out else bound

    def _compensated(self, x: Array) -> Sum:
        """The gradients of the parts in about twice the digits."""
        found = [compensated_gradient(f, part) for f, part in self._on(x)]
        return Sum(concat(s.hi for s in found), concat(s.lo for s in found), concat(s.error for s in found))

    def _model(self, x: Array) -> BlockSum:
        """The quadratic models of the parts."""
        return BlockSum([quadratic_model(f, part) for f, part in self._on(x)], [r.stop - r.start for r in self.rows])

    def _change(self, x: Array, u: Array, reach: float) -> float:
        """The length of the vector of the changes of all parts, each of which may move by the whole distance."""
        changes = [hessian_change(f, part, u[r], reach) for (f, part), r in zip(self._on(x), self.rows, strict=True)]
        return UP * math.hypot(*changes)

    def _hessian(self, x: Array) -> Any:
        blocks: list[Any] = [f.hessian(part) for f, part in self._on(x) if f.hessian is not None]
        return block_diag([csr_array(block) for block in blocks], format="csr")
