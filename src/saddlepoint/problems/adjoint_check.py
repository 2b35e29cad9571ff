"""Checks of A during a run: products with A are compared with products with A', and with the norm |A|.

A comparison costs a few inner products. It is made at each of the first 64 products and at every eighth one after that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from saddlepoint.ground.arrays import Array, eps_of
from saddlepoint.ground.errors import AssumptionError, NotFinite, ProblemError
from saddlepoint.ground.linalg import inner, lengths, norm
from saddlepoint.parts.coupling import Coupling, Norm
from saddlepoint.parts.coupling.adjoint import ADJOINT, PRODUCTS, wrong_transpose
from saddlepoint.problems.gradient_check import ALL, EVERY
from saddlepoint.problems.gradient_proofs import Note

SLACK = 1.01  # factor by which |A| may exceed its quick estimate; steps of methods have as much room


class AdjointCheck:
    """Compares products with A and with A': <x, A y> = <A'x, y>, and |A y| <= |A| |y| where |A| was given."""

    def __init__(self, A: Coupling, note: Note) -> None:
        self.A, self.note = A, note
        kind = type(A)
        self.claimed = kind.norm_estimate is not Coupling.norm_estimate or kind.norm is not Coupling.norm
        self.seen = {"A": 0, "At": 0}
        self.last: dict[str, tuple[Array, Array]] = {}

    def see(self, name: str, v: Array, product: Array) -> None:
        """Note a product of A ("A") or A' ("At") with v, and raise AssumptionError if something is wrong with it."""
        self.seen[name] += 1
        if self.seen[name] > ALL and self.seen[name] % EVERY:
            return
        if name in self.last and product is self.last[name][1]:
            raise ProblemError(f"{_side(name)} returned the same array twice; return a new one each time")
        other = self.last.get("At" if name == "A" else "A")
        if other is not None:
            self.compare(*((v, product, *other) if name == "A" else (*other, v, product)))
        if self.claimed and norm(product) > (1.0 + ADJOINT * eps_of(product)) * self.A.norm * norm(v):
            raise self.small_norm(norm(product) / norm(v), self.estimate())
        self.last[name] = v, product

    def memory(self) -> dict[str, Any]:
        """How many products were seen and the vectors of the last ones, for a checkpoint."""
        return {"seen": dict(self.seen), "last": {name: v for name, (v, _) in self.last.items()}}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Take over the memory of an earlier session. A file proves nothing, so the products are computed again."""
        self.seen = dict(memory["seen"])
        for name, v in memory["last"].items():
            with suppress(Exception):
                self.last[name] = v, self.A.mul(v) if name == "A" else self.A.tmul(v)
                self.note(name, 1)

    def compare(self, y: Array, Ay: Array, x: Array, Atx: Array) -> None:
        """Raise AssumptionError unless <x, A y> = <A'x, y>, up to the rounding that products with A and A' show."""
        left, right = inner(x, Ay), inner(Atx, y)
        size = max(self.A.norm * norm(y) * norm(x), norm(Ay) * norm(x), norm(Atx) * norm(y))
        eps = max(map(eps_of, (y, Ay, x, Atx)))
        if not (abs(left - right) > ADJOINT * eps * size and math.isfinite(size)):
            return
        for name in ("A", "At"):
            self.note(name, PRODUCTS)
        wrong = wrong_transpose(self.A.mul, self.A.tmul, y, Ay, x, Atx, self.A.norm)
        if wrong:
            raise AssumptionError("A", "transpose", left, right, wrong)

    def check_norm(self) -> None:
        """Raise AssumptionError if |A| is larger than the norm that was given."""
        estimate = self.estimate()
        if estimate.lower > (1.0 + ADJOINT * self.A.space.eps) * self.A.norm:
            raise self.small_norm(estimate.lower, estimate)

    def estimate(self) -> Norm:
        """An estimate of |A| from products, which does not use the norm that was given."""
        estimate = self.A.estimated_norm()
        for name in ("A", "At"):
            self.note(name, estimate.products)
        return estimate

    def small_norm(self, seen: float, estimate: Norm) -> AssumptionError:
        """The error for a norm of A that was given too small: |A| is at least ``seen``."""
        given = self.A.norm
        return AssumptionError(
            "A",
            "norm",
            given,
            seen,
            f"|A| is too small: {given:.6g} was given, but products show |A| >= {seen:.6g}; "
            f"give {estimate.upper:.6g}, an upper estimate, or leave it out to have it estimated",
            estimate.upper,
        )


def check_estimate(A: Coupling, v: Array, product: Array, note: Note) -> None:
    """Raise AssumptionError if a product with v, by A or A', shows that |A| is larger than it was estimated."""
    size, length = lengths([product, v])
    if SLACK * A.norm * length < size < math.inf:  # a product that overflows shows nothing
        raise larger_norm(A, size / length, note)


def larger_norm(A: Coupling, seen: float, note: Note) -> AssumptionError:
    """The error that replaces a quick estimate of |A|, which is at least ``seen``, by an upper bound."""
    try:
        estimate = A.estimated_norm()
    except ProblemError:  # products that were finite before overflow in this precision
        raise NotFinite from None
    for name in ("A", "At"):
        note(name, estimate.products)
    value = max(estimate.upper, SLACK * seen)
    return AssumptionError(
        "A", "norm", A.norm, seen, f"|A| was estimated as {A.norm:.6g}, and products show |A| >= {seen:.6g}", value
    )


def _side(name: str) -> str:
    return "A @ y" if name == "A" else "A.T @ x"
