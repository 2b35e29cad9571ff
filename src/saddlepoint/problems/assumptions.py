"""Checks during a run: gradients are compared with mu and L, products with A' and |A|.

A comparison costs a few dot products; it is made at each of the first 64 calls and at every eighth call after that.
Suspected violations are tested again with more gradients before an error is raised: errors of the gradients, kinks,
saturation and the edge of a domain are no violations. What seems wrong and is not proven is a sentence and no error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, copied, eps_of, smallest_of, space_of
from saddlepoint.ground.errors import AssumptionError, NotFinite, ProblemError
from saddlepoint.ground.linalg import asked_together, host_norm, inner, inners, lengths, norm
from saddlepoint.parts.coupling import Coupling, Norm
from saddlepoint.parts.coupling.adjoint import PRODUCTS, wrong_transpose
from saddlepoint.parts.functions.circulation import Circulation, circulation
from saddlepoint.parts.functions.probes import (
    CLOSER,
    NOISE,
    SYMMETRIC,
    UNITS,
    Curvature,
    Unexaminable,
    changed_argument,
    curvature,
    differ,
    eps_of_code,
    gradient_or_none,
    length_scale,
    noise_level,
    writes_into_argument,
)
from saddlepoint.parts.functions.smooth import Gradient, Smooth
from saddlepoint.problems.first_call import check_shape
from saddlepoint.problems.refutations import L_too_small, mu_too_large, no_gradient, not_both, two_answers
from saddlepoint.theory.smoothness import least_error

ALL = 64  # number of calls at the start of a run of which each one is compared
EVERY = 8  # number of calls from one comparison to the next, after the first ALL calls
COPIED = 4  # number of first calls in which a copy of the argument shows whether the gradient changes it
STEPS = 12  # steps of the search for curvatures, after two gradients have contradicted mu and L
TAME = 1e-24  # squares between this number and its inverse are computed without overflow and underflow
MARGIN = 1e-6  # share of a sum of squares by which it has to be smaller than another one to be so beyond rounding
PIECES = 8  # pieces into which the line between two points is divided when their gradients contradict mu and L
LEVELS = 4  # how often the worst of these pieces is divided again
DOUBTS = 8  # number of such lines without a proof, after which the differences of the run count as noise
FINEST = 1e3  # length down to which steps are searched for, in units of rounding of the point
LINES = 3  # number of random lines on which jumps of a gradient are searched for
DIVISIONS = 40  # most divisions of such a line, each into PIECES; a line near 0 could be divided without end
LONGEST = 0.1  # the last of these lengths, in units of the length of the point
LONGER = 64.0  # factor from one length to the next at which a proof is examined again
SKEW = 1e-4  # largest asymmetry of a Jacobian that counts as symmetric, in units of the largest curvature
LOOPS = tuple(0.1 * 30.0**-k for k in range(6))  # radii of the polygons that show an asymmetry, in units of the length
SIZES = 3  # number of polygons that are to show it; the larger ones may be outside the domain of the gradient
CORNERS = 12, 1024  # corners of these polygons, and most corners of the polygon that proves it
AGREE = 1.25  # largest ratio of the asymmetries that two polygons show if they agree
SLACK = 1.01  # factor by which |A| may exceed its quick estimate; steps of methods have as much room
ADJOINT = 1e3  # largest accepted difference of <x, A y> and <A'x, y>, in units of rounding

Note = Callable[[str, int], None]  # (oracle, calls): counts gradients and products that a test took


class Pair(NamedTuple):
    """The difference dp of two gradients at points that differ by dx.

    Attributes:
        length: |dx|.
        change: |dp|.
        cross: <dp, dx>/|dx|^2, the mean curvature between the points; 0 if the points are the same.
        error: by how much dp must be wrong if mu and L are right, beyond the rounding of norms.
    """

    length: float
    change: float
    cross: float
    error: float

    @classmethod
    def of(cls, dx: Array, dp: Array, mu: float, L: float) -> Pair:
        """The pair of these differences, at any scale, compared with mu and L."""
        length, change = lengths([dx, dp])
        if length == 0.0 or not math.isfinite(length + change):
            return cls(length, change, 0.0, change)
        away = norm(dp - (0.5 * (L + mu)) * dx)
        rounding = dx.shape[0] * eps_of(dp) * (away + 0.5 * (L - mu) * length)  # of the two norms, which are long sums
        error = least_error(away, length, mu, L) - rounding
        if change == 0.0:
            return cls(length, change, 0.0, error)
        small, large = min(length, change), max(length, change)
        if small > 1e-12 and large < 1e12:  # squares and products neither overflow nor underflow in any precision
            return cls(length, change, inner(dp, dx) / (length * length), error)
        return cls(length, change, inner(dp * (1.0 / change), dx * (1.0 / length)) * (change / length), error)

    @property
    def steepness(self) -> float:
        """|dp|/|dx|."""
        return self.change / self.length


def stated_error(f: Smooth) -> Callable[..., Any] | None:
    """The bound on the errors of gradients that the caller has stated with f; None if nothing was said."""
    return None if math.isnan(f.accuracy) else f.gradient_error


class GradientCheck:
    """Compares the gradients of one function with Lemma `smooth`.

    Args:
        name: "g" or "h".
        mu, L: the constants that were given; NaN for an unknown mu.
        grad: the gradient.
        note: counts the gradients that the tests evaluate.
        stated: (x, p) -> a bound on the error of the gradient p at x, if the caller has stated one.

    Attributes:
        noise: bound on the error of a gradient, as far as it was measured.
        eps: the machine epsilon of the precision in which the gradient is computed, once there was a suspicion.
        flattest: the smallest curvature between two gradients of the run that is known beyond noise.
        flat: the difference of these two points, or None.
        move: the difference of the last two points, or None.
        first: the first point and its gradient, or None.
        seems: what seems to be wrong and is not proven, in words; empty if nothing does.
    """

    def __init__(
        self, name: str, mu: float, L: float, grad: Gradient, note: Note, stated: Callable[..., Any] | None = None
    ) -> None:
        self.name, self.mu, self.L = name, 0.0 if math.isnan(mu) else mu, L
        self.grad, self.note, self.stated = grad, note, stated
        self.noise = 0.0
        self.eps = math.nan
        self.seen = 0
        self.doubts = 0
        self.x: Array | None = None
        self.p: Array | None = None
        self.flattest = math.inf
        self.flat: Array | None = None
        self.move: Array | None = None
        self.first: tuple[Array, Array] | None = None
        self.seems = ""

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

        If it does, it is finite: on a GPU this saves the question. NumPy arrays are not compared here.
        """
        if self.x is None or self.p is None or p is self.p or not self._is_next(self.seen + 1):
            return None
        return self._agree(x, p, self.x, self.p) if asked_together(x) else None

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
        if p is self.p:
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
            xx, xp, pp = inner(dx, dx), inner(dx, dp), inner(dp, dp)
            size_x = size_p = math.inf  # not needed yet
        elif asked_together(x) and p.dtype == x.dtype:
            dx = x - x0
            xx, xp, pp, *squares = _pair_products(x, p, x0, p0, dx)
            size_x, size_p = map(math.sqrt, squares)
        else:
            return False
        if not (TAME < xx < 1.0 / TAME and TAME < pp < 1.0 / TAME):
            return False
        flatter = xp < self.flattest * xx
        if flatter and isinstance(x, np.ndarray):
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

    def _pair(self, x: Array, p: Array, x0: Array, p0: Array) -> Pair:
        return Pair.of(x - x0, p - p0, self.mu, self.L)

    def _rounding(self, x: Array, p: Array, x0: Array, p0: Array) -> float:
        """A bound on the error of p - p0: what the caller has stated, or what is assumed."""
        if math.isnan(self.eps):
            self.eps = eps_of_code(self._counted, x, p)
        assumed = max(self.eps / eps_of(p), 1.0) * self._assumed(x, p, x0, p0)
        return assumed if self.stated is None else max(assumed, self.stated(x, p) + self.stated(x0, p0))

    def _counted(self, x: Array) -> Array:
        """The gradient at x, counted as one that a test takes."""
        self.note(f"grad_{self.name}", 1)
        return self.grad(x)

    def _assumed(self, x: Array, p: Array, x0: Array, p0: Array) -> float:
        of_p, of_p0, of_x, of_x0 = lengths([p, p0, x, x0])
        lost = smallest_of(p) * x.shape[0] * (1.0 + self.L)  # by underflow
        return float(UNITS * (eps_of(p) * (of_p + of_p0 + self.L * (of_x + of_x0)) + lost))

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

    def _measure(self, x: Array, p: Array) -> float:
        """The noise of gradients around x, where the gradient is p; it is remembered."""
        try:
            noise = noise_level(self.grad, x, p, length_scale(x, p, self.L), self.L)
        except Unexaminable:
            return 0.0
        self.note(f"grad_{self.name}", noise.calls)
        self.noise = max(self.noise, NOISE * noise.total)
        return noise.total

    def _compare_answers(self, x: Array, p: Array, difference: float) -> None:
        """Raise AssumptionError if two gradients at one point differ by more than noise."""
        if writes_into_argument(self.grad, x):
            raise changed_argument(self.name)
        if difference > 2.0 * NOISE * self._measure(x, p):
            raise two_answers(self.name, difference)

    # -- a proof that mu or L is wrong ---------------------------------------------------------------------------------

    def _proven(self, a: Array, pa: Array, b: Array, pb: Array) -> Pair | None:
        """A pair of points between a and b that refutes mu or L beyond errors of the gradients; None if there is none.

        The line is divided into pieces. If the gradient changes alike on all of them, the whole line is the pair:
        neither noise nor a jump changes a gradient in this way. Otherwise the worst piece is divided again. What noise
        this shows is remembered.
        """
        wobble = 0.0
        for _ in range(LEVELS):
            points, slopes = self._along(a, pa, b, pb)
            if len(slopes) <= PIECES:  # some gradients cannot be evaluated
                break
            changes = [q - p for p, q in pairwise(slopes)]
            wobble = max(norm(q - p) for p, q in pairwise(changes))
            whole = self._pair(b, pb, a, pa)
            if whole.error > 2.0 * wobble + self._rounding(a, pa, b, pb):
                return None if self._is_wave(a, pa, b, pb, whole) else whole
            errors = [
                Pair.of(points[k + 1] - points[k], change, self.mu, self.L).error for k, change in enumerate(changes)
            ]
            k = int(np.argmax(errors))
            a, pa, b, pb = points[k], slopes[k], points[k + 1], slopes[k + 1]
            if not errors[k] > self._rounding(a, pa, b, pb):
                break
        self.doubts += 1
        if self.doubts > DOUBTS:
            wobble = max(wobble, self._pair(b, pb, a, pa).error)
        self.noise = max(self.noise, wobble)
        return None

    def _along(self, a: Array, pa: Array, b: Array, pb: Array) -> tuple[list[Array], list[Array]]:
        """Points that divide the line from a to b into pieces, and their gradients as far as they can be evaluated."""
        points = [a, *(a + (k / PIECES) * (b - a) for k in range(1, PIECES)), b]
        inner_slopes = [gradient_or_none(self.grad, point) for point in points[1:-1]]
        self.note(f"grad_{self.name}", len(inner_slopes))
        return points, [slope for slope in (pa, *inner_slopes, pb) if slope is not None]

    def _is_wave(self, a: Array, pa: Array, b: Array, pb: Array, pair: Pair) -> bool:
        """Whether the pair (a, b) may be part of a wave or of a staircase, which is what coarse noise looks like.

        On longer lines such a pair does not contradict mu and L any more than on the short one. And it does not stand
        alone: where one piece is too flat for mu, another one is too steep for L.
        """
        middle, known = 0.5 * (a + b), pair
        longest = LONGEST * length_scale(a, pa, self.L)
        while True:
            half = 0.5 * LONGER * (b - a)
            left, right = (gradient_or_none(self.grad, end) for end in (middle - half, middle + half))
            self.note(f"grad_{self.name}", 2)
            if left is None or right is None:  # outside the domain
                whole = known
                break
            a, pa, b, pb = middle - half, left, middle + half, right
            whole = self._pair(b, pb, a, pa)
            if not whole.error > 4.0 * known.error:
                break
            if whole.length >= longest:
                return False
            known = whole
        finest = FINEST * eps_of(pa) * norm(middle)
        for _ in range(DIVISIONS):
            if not norm(b - a) > finest:
                break
            points, slopes = self._along(a, pa, b, pb)
            if len(slopes) <= PIECES:
                return False
            ends = list(pairwise(zip(points, slopes, strict=True)))
            pieces = [self._pair(*end, *start) for start, end in ends]
            if pair.cross < self.mu:
                k = int(np.argmax([piece.change for piece in pieces]))
            else:
                k = int(np.argmin([piece.cross for piece in pieces]))
            (a, pa), (b, pb) = ends[k]
        last = self._pair(b, pb, a, pa)
        opposite = last.change > 2.0 * self.L * last.length if pair.cross < self.mu else last.cross < 0.5 * self.mu
        if not opposite or last.error <= self._rounding(a, pa, b, pb):
            return False
        self.noise = max(self.noise, last.error, whole.error, known.error)
        return True

    def _is_staircase(self, x: Array, p: Array, proof: Pair) -> bool:
        """Whether the gradient, p at x, has jumps so large that the errors of the pair ``proof`` are no wonder.

        A gradient that is rounded coarsely is a staircase. Its steps can be longer than the line on which it looks too
        flat for mu, or end with the domain, but along other lines around x it jumps. If the pair is too steep, the
        gradient must also be flat beside its jumps: otherwise L is wrong.
        """
        least = proof.error / (4.0 * math.sqrt(x.shape[0]))  # the smallest jump that matters
        for seed in range(LINES):
            a, pa, b, pb = self._random_line(x, p, seed)
            finest = FINEST * eps_of(p) * max(norm(a), norm(b))
            flat = proof.cross < self.mu
            for _ in range(DIVISIONS):
                points, slopes = self._along(a, pa, b, pb)
                if len(slopes) <= PIECES:
                    break
                ends = list(pairwise(zip(points, slopes, strict=True)))
                pieces = [self._pair(*end, *start) for start, end in ends]
                k = int(np.argmax([piece.change for piece in pieces]))
                (a, pa), (b, pb) = ends[k]
                rounding = self._rounding(a, pa, b, pb)
                flat = flat or any(piece.cross < 0.5 * self.mu and piece.error > rounding for piece in pieces)
                if not pieces[k].change > least + rounding:
                    break
                if not pieces[k].length > finest:
                    if flat:
                        self.noise = max(self.noise, proof.error, math.sqrt(x.shape[0]) * pieces[k].change)
                    return flat
        return False

    def _random_line(self, x: Array, p: Array, seed: int) -> tuple[Array, Array, Array, Array]:
        """The ends of a line through x in a random direction, each with its gradient: as long as the domain allows."""
        draw = np.random.default_rng(seed).standard_normal(x.shape[0])
        step = space_of(x).cast(draw * (length_scale(x, p, self.L) / host_norm(draw)))
        ends = []
        for sign in (-1.0, 1.0):
            points = [x + (sign * closer) * step for closer in CLOSER] + [x]
            slopes = (gradient_or_none(self.grad, point) for point in points)
            ends.append(next(((point, q) for point, q in zip(points, slopes, strict=True) if q is not None), (x, p)))
        self.note(f"grad_{self.name}", 2)
        return *ends[0], *ends[1]

    def _refutation(self, pair: Pair, x: Array, p: Array, noise: float) -> AssumptionError:
        """The error that names what is wrong: convexity, or the one of mu and L that is wrong by the larger factor.

        The pair shows that mu and L cannot both hold. The curvatures around x help to decide which of them is wrong.
        """
        mu, L, name = self.mu, self.L, self.name
        length = length_scale(x, p, L)
        low, high, error = pair.cross, pair.steepness, 0.0
        try:
            local = curvature(self.grad, x, length, STEPS, noise, L=L, p=p)
        except Unexaminable:
            pass
        else:
            self.note(f"grad_{name}", local.calls)
            self.refuse_skew(x, p, length, noise, local)
            low, high, error = local.low, local.high, local.error
        if low + error < 0.0:
            return mu_too_large(name, mu, min(low, pair.cross), low)
        steep = pair.steepness * (pair.steepness / pair.cross) if pair.cross > 0.0 else 0.0
        least, most = min(pair.cross, low + error), max(pair.steepness, steep, high - error)
        if least <= 0.0 or (least < mu and mu / least >= most / L):
            return mu_too_large(name, mu, pair.cross if pair.cross < mu else low, low)
        if most > L:
            return L_too_small(name, L, most, high)
        return not_both(name, mu, L, pair.cross, 1.0, pair.steepness**2)

    # -- a proof that it is no gradient --------------------------------------------------------------------------------

    def refuse_skew(self, x: Array, p: Array, length: float, noise: float, local: Curvature) -> None:
        """Raise AssumptionError if sums around polygons prove that the Jacobian around x is not symmetric.

        The gradient at x is p. Polygons of several sizes must show the same asymmetry: one that comes from errors of
        the gradients or from a function that bends depends on the size. The last polygon has as many corners as a proof
        needs; where that would be too many, ``seems`` says what was found.
        """
        if not _skew(local, noise):
            return
        wrong = 0.5 * self._rounding(x, p, x, p) + NOISE * noise
        few, most = CORNERS

        def around(radius: float, corners: int) -> Circulation | None:
            self.note(f"grad_{self.name}", corners + 1)
            return circulation(self.grad, local.centre, local.plane, radius, corners, (self.mu, self.L), wrong)

        loops: list[tuple[float, Circulation]] = []
        for factor in LOOPS:
            loop = around(factor * length, few)
            if loop is not None and len(loops) < SIZES:
                loops.append((factor * length, loop))
        agreeing = [one for one, other in pairwise(loops) if _agree(one[1].skew, other[1].skew)]
        clear = [
            (radius, loop)
            for radius, loop in agreeing
            if loop.skew > 2.0 * loop.error and loop.skew > SKEW * local.high
        ]
        if not clear:
            return
        radius, loop = max(clear, key=lambda pair: pair[1].skew - pair[1].error)
        needed = max(2 * few, math.ceil(1.2 * few * loop.bound / (loop.skew - loop.error)))
        last = around(radius, min(needed, most))
        if last is not None and last.is_proof:
            raise no_gradient(self.name, last.skew, local.high)
        if last is not None and _agree(last.skew, loop.skew):
            self.seems = (
                f"the gradient of {self.name} seems not to be the gradient of a function: its Jacobian seems not to be "
                f"symmetric, by {last.skew:.2g} beside curvatures up to {local.high:.2g}"
            )


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


def _pair_products(x: Array, p: Array, x0: Array, p0: Array, dx: Array) -> list[float]:
    """The products dx'dx, dx'dp, dp'dp, x'x and p'p, where dp = p - p0, asked for together."""
    if getattr(x, "is_cuda", False):
        from saddlepoint.parts.coupling.triton_pairs import pair_products

        found = pair_products(x, p, x0, p0)
        if found is not None:
            return [float(number) for number in found]
    products = inners([dx, p - p0, x, p])
    return [float(products[place]) for place in ((0, 0), (0, 1), (1, 1), (2, 2), (3, 3))]


def check_estimate(A: Coupling, v: Array, product: Array, note: Note) -> None:
    """Raise AssumptionError if a product with v, by A or A', shows that |A| is larger than it was estimated."""
    size, length = lengths([product, v])
    if SLACK * A.norm * length < size < math.inf:  # a product that overflows shows nothing
        raise larger_norm(A, size / length, note)


def larger_norm(A: Coupling, seen: float, note: Note) -> AssumptionError:
    """The error that replaces a quick estimate of |A|, which is at least ``seen``, by a careful one."""
    try:
        careful = A.estimated_norm()
    except ProblemError:  # products that were finite before overflow in this precision: the numbers are to blame
        raise NotFinite from None
    for name in ("A", "At"):
        note(name, careful.products)
    value = max(careful.upper, SLACK * seen)
    return AssumptionError(
        "A", "norm", A.norm, seen, f"|A| was estimated as {A.norm:.6g}, and products show |A| >= {seen:.6g}", value
    )


def _skew(local: Curvature, noise: float) -> bool:
    """Whether the Jacobian does not look symmetric; with noise, which is known only roughly, the margin is larger."""
    margin = SYMMETRIC if noise == 0.0 else 10.0 * SYMMETRIC
    return local.skew > SKEW * max(abs(local.low), abs(local.high)) + margin * local.error


def _agree(a: float, b: float) -> bool:
    return max(a, b) <= AGREE * min(a, b)


def _side(name: str) -> str:
    return "A @ y" if name == "A" else "A.T @ x"
