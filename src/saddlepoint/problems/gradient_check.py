"""Checks of gradients during a run: they are compared with each other, and with the constants mu and L.

A comparison costs a few inner products. It is made at each of the first 64 gradients, and at every eighth one after
that. Where two gradients contradict mu and L, further gradients decide whether an error is raised
(``gradient_proofs.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, copied, eps_of
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, inners, may_be_on_gpu, norm
from saddlepoint.parts.functions.gradient_noise import NOISE, UNITS
from saddlepoint.parts.functions.probes import (
    changed_argument,
    differ,
    gradient_or_none,
    is_reused,
    writes_into_argument,
)
from saddlepoint.parts.functions.smooth import Gradient, Smooth
from saddlepoint.problems.first_call import check_shape
from saddlepoint.problems.gradient_proofs import GradientProofs, Note
from saddlepoint.problems.refutations import two_answers

ALL = 64  # number of calls at the start of a run of which each one is compared
EVERY = 8  # number of calls from one comparison to the next, after the first ALL calls
COPIED = 4  # number of calls at the start in which a copy of the argument shows whether the gradient changes it
SAFE = 1e-24  # squares from this number to its inverse have neither overflowed nor underflowed
MARGIN = 1e-6  # share of a sum of squares by which it has to be smaller than another one to be so beyond rounding


def stated_error(f: Smooth) -> Callable[..., Any] | None:
    """The bound on the errors of gradients that is stated or proven of f; None if nothing is known of them."""
    return None if math.isnan(f.accuracy) and f.rounding is None else f.gradient_error


class GradientCheck(GradientProofs):
    """Compares the gradients of one function with each other, with mu and with L.

    The arguments are those of ``GradientProofs``.

    Attributes:
        flattest: the smallest curvature between two gradients of the run that is known beyond noise.
        flat: the difference of these two points, or None.
        move: the difference of the last two points, or None.
        first: the first point and its gradient, or None.
    """

    def __init__(
        self, name: str, mu: float, L: float, grad: Gradient, note: Note, stated: Callable[..., Any] | None = None
    ) -> None:
        super().__init__(name, mu, L, grad, note, stated)
        self.seen = 0
        self.x: Array | None = None
        self.p: Array | None = None
        self.flattest = math.inf
        self.flat: Array | None = None
        self.move: Array | None = None
        self.first: tuple[Array, Array] | None = None

    def gradient(self, x: Array) -> Array:
        """The gradient at x; raise ProblemError if it is no vector like x, or one of the first ones changes x.

        Points that a run keeps are read-only. A gradient that fails on one is given a copy: it may need an array that
        can be written into (a buffer of compiled code, for example) without changing it.
        """
        if self.seen >= COPIED:
            try:
                p = self.grad(x)
                check_shape(self.name, p, x)
                return p
            except ProblemError:
                raise
            except ValueError:
                if not isinstance(x, np.ndarray) or x.flags.writeable:
                    raise
        given = copied(x)
        p = self.grad(given)
        check_shape(self.name, p, x)
        if differ(given, x):
            raise changed_argument(self.name)
        return p

    def agrees(self, x: Array, p: Array) -> bool | None:
        """Whether the gradient p at x agrees with the last one at first sight; None if they were not compared.

        If it does, it is finite, which need not be asked then.
        """
        if self.x is None or self.p is None or p is self.p or not self._is_next(self.seen + 1):
            return None
        return self._agree(x, p, self.x, self.p) if isinstance(x, np.ndarray) or may_be_on_gpu(x) else None

    @staticmethod
    def _is_next(number: int) -> bool:
        """Whether the call with this number is compared with the one before."""
        return number <= ALL or number % EVERY == 0

    def see(self, x: Array, p: Array, agrees: bool | None = None) -> None:
        """Note the gradient p at x, and raise AssumptionError if it refutes mu or L.

        ``agrees`` is what the method of that name has returned, if it was asked.
        """
        self.seen += 1
        if not self._is_next(self.seen):
            return
        if p is self.p or is_reused(p, self.p, x):
            raise ProblemError(f"the gradient of {self.name} returned the same array twice; return a new one each time")
        if self.first is None:
            self.first = x, p
        if self.x is not None and self.p is not None and not agrees:
            (self.compare if agrees is None else self._compare_closely)(x, p, self.x, self.p)
        self.x, self.p = x, p

    def known(self, x: Array) -> Array | None:
        """The gradient at x if it is the one that was compared last; None if it is not known."""
        if self.x is None or not hasattr(x, "__setitem__") or differ(self.x, x):  # sharded vectors are not compared
            return None
        return self.p

    def memory(self) -> dict[str, Any]:
        """How many gradients were seen and where the last comparison was made, for a checkpoint."""
        return {"seen": {"x": self.seen}, "last": {} if self.x is None else {"x": self.x}}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Take over the memory of an earlier session. A file proves nothing, so the gradient is computed again."""
        self.seen = memory["seen"]["x"]
        for x in memory["last"].values():
            with suppress(Exception):  # a gradient that is not defined there says nothing
                self.x, self.p = x, self.gradient(x)
                self.note(f"grad_{self.name}", 1)

    def compare(self, x: Array, p: Array, x0: Array, p0: Array) -> None:
        """Raise AssumptionError if these two gradients refute mu or L, beyond all errors that they may have."""
        if not self._agree(x, p, x0, p0):
            self._compare_closely(x, p, x0, p0)

    def _compare_closely(self, x: Array, p: Array, x0: Array, p0: Array) -> None:
        pair = self._pair(x, p, x0, p0)
        allowed = self._assumed(x, p, x0, p0) + 2.0 * self.noise
        if not math.isfinite(pair.length + pair.change + allowed):
            return
        if pair.length == 0.0:
            if pair.change > allowed:
                self._compare_answers(x, p, pair.change)
            return
        self.move = x - x0
        if pair.cross < self.flattest and allowed < 0.1 * max(pair.change, self.mu * pair.length):
            self.flattest, self.flat = pair.cross, self.move
        if not pair.error > allowed or not pair.error > self._rounding(x, p, x0, p0):
            return
        if writes_into_argument(self.grad, x):
            raise changed_argument(self.name)
        proof = self._proven(x0, p0, x, p)
        if proof is None or self._is_staircase(x, p, proof):
            return
        noise = self._measure(x, p)
        if proof.error > 2.0 * NOISE * noise:
            raise self._refutation(proof, x, p, noise)

    def _agree(self, x: Array, p: Array, x0: Array, p0: Array) -> bool:
        """Whether a few inner products already show that these gradients agree with mu and L.

        If they are flatter than any before, the lengths of x and p are needed as well.
        """
        if isinstance(x, np.ndarray):
            dx, dp = x - x0, p - p0
            return self.agrees_by(dx, p, [inner(dx, dx), inner(dx, dp), inner(dp, dp)], x)
        if may_be_on_gpu(x) and p.dtype == x.dtype:
            dx = x - x0
            return self.agrees_by(dx, p, _pair_products(x, p, x0, p0, dx))
        return False

    def agrees_by(self, dx: Array, p: Array, products: list[float], x: Array | None = None) -> bool:
        """The same by the products dx'dx, dx'dp and dp'dp, and by x'x and p'p unless x is given."""
        xx, xp, pp, *squares = products
        size_x, size_p = map(math.sqrt, squares or (math.inf, math.inf))  # not needed yet
        if not (SAFE < xx < 1.0 / SAFE and SAFE < pp < 1.0 / SAFE):
            return False
        flatter = xp < self.flattest * xx
        if flatter and x is not None:
            size_x, size_p = norm(x), norm(p)
        if flatter and not math.isfinite(size_x + size_p):
            return False
        middle, half = 0.5 * (self.L + self.mu), 0.5 * (self.L - self.mu)
        size = pp + middle * middle * xx
        if not size - 2.0 * middle * xp + MARGIN * size <= half * half * xx:
            return False
        self.move = dx
        if flatter:
            length, change = math.sqrt(xx), math.sqrt(pp)
            sizes = 2.0 * size_p + change + self.L * (2.0 * size_x + length)  # at least those of both points together
            if UNITS * eps_of(p) * sizes + 2.0 * self.noise < 0.1 * max(change, self.mu * length):
                self.flattest, self.flat = xp / xx, dx
        return True

    def first_again(self) -> tuple[Array, Array] | None:
        """The gradient at the first point of the run as it is now, and as it was; None if there is none."""
        if self.first is None:
            return None
        x, before = self.first
        p = gradient_or_none(self.grad, copied(x))
        self.note(f"grad_{self.name}", 1)
        return None if p is None else (p, before)

    def refuse_two_answers(self, p: Array, before: Array) -> None:
        """Raise AssumptionError if the gradient at the first point, p as ``first_again`` says, was another one."""
        if self.first is not None and self.are_two_answers(self.first[0], p, before):
            self._compare_answers(self.first[0], p, norm(p - before))

    def are_two_answers(self, x: Array, p: Array, before: Array) -> bool:
        """Whether two gradients at x differ by more than rounding and by more than the noise that is known."""
        return norm(p - before) > self._rounding(x, p, x, before) + 2.0 * self.noise

    def _compare_answers(self, x: Array, p: Array, difference: float) -> None:
        """Raise AssumptionError if two gradients at one point differ by more than noise."""
        if writes_into_argument(self.grad, x):
            raise changed_argument(self.name)
        if difference > 2.0 * NOISE * self._measure(x, p):
            raise two_answers(self.name, difference)


def _pair_products(x: Array, p: Array, x0: Array, p0: Array, dx: Array) -> list[float]:
    """The products dx'dx, dx'dp, dp'dp, x'x and p'p, where dp = p - p0, asked for together."""
    if getattr(x, "is_cuda", False):
        from saddlepoint.parts.coupling.triton_pairs import pair_products

        found = pair_products(x, p, x0, p0)
        if found is not None:
            return [float(number) for number in found]
    products = inners([dx, p - p0, x, p])
    return [float(products[place]) for place in ((0, 0), (0, 1), (1, 1), (2, 2), (3, 3))]
