"""Proofs by further gradients that mu or L is wrong, or that a gradient is not the gradient of any function.

They are asked for after two gradients have contradicted mu and L. Errors of the gradients, kinks, saturation and the
edge of a domain can look like a contradiction and are none. What seems wrong and is not proven is a sentence and no
error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, smallest_of, space_of
from saddlepoint.ground.errors import AssumptionError
from saddlepoint.ground.linalg import host_norm, inner, lengths, norm
from saddlepoint.parts.functions.circulation import Circulation, circulation
from saddlepoint.parts.functions.curvature_estimate import SYMMETRIC, Curvature, curvature
from saddlepoint.parts.functions.gradient_noise import NOISE, UNITS, eps_of_code, noise_level
from saddlepoint.parts.functions.probes import CLOSER, Unexaminable, gradient_or_none, length_scale
from saddlepoint.parts.functions.smooth import Gradient
from saddlepoint.problems.refutations import L_too_small, mu_too_large, no_gradient, not_both
from saddlepoint.theory.smoothness import least_error

STEPS = 12  # steps of the search for curvatures, after two gradients have contradicted mu and L
PIECES = 8  # pieces into which the line between two points is divided when their gradients contradict mu and L
LEVELS = 4  # how often the piece with the clearest contradiction is divided again
DOUBTS = 8  # number of divided lines without a proof, after which the differences of the run count as noise
FINEST = 1e3  # length down to which steps are searched for, in units of rounding of the point
LINES = 3  # number of random lines on which jumps of a gradient are searched for
DIVISIONS = 40  # most divisions of a random line, each into PIECES; a line near 0 could be divided without end
LONGER = 64.0  # factor from one length to the next at which a proof is examined again
LONGEST = 0.1  # the last length at which a proof is examined again, in units of the length of the point
SKEW = 1e-4  # largest asymmetry of a Jacobian that counts as symmetric, in units of the largest curvature
LOOPS = tuple(0.1 * 30.0**-k for k in range(6))  # radii of the polygons that show an asymmetry, in units of the length
SIZES = 3  # number of polygons that are to show an asymmetry; the larger ones may be outside the gradient's domain
CORNERS = 12, 1024  # corners of a polygon that shows an asymmetry, and most corners of the one that proves it
AGREE = 1.25  # largest ratio of the asymmetries that two polygons show if they agree

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


class GradientProofs:
    """The proofs about one gradient, and what they have shown of its errors.

    Args:
        name: "g" or "h".
        mu, L: the constants that were given; NaN for an unknown mu.
        grad: the gradient.
        note: counts the gradients that the proofs evaluate.
        stated: (x, p) -> a bound on the error of the gradient p at x, if the caller has stated one.

    Attributes:
        noise: bound on the error of a gradient, as far as it was measured.
        eps: the machine epsilon of the precision in which the gradient is computed, once there was a suspicion.
        doubts: number of contradictions that were not proven.
        seems: what seems to be wrong and is not proven, in words; empty if nothing does.
    """

    def __init__(
        self, name: str, mu: float, L: float, grad: Gradient, note: Note, stated: Callable[..., Any] | None = None
    ) -> None:
        self.name, self.mu, self.L = name, 0.0 if math.isnan(mu) else mu, L
        self.grad, self.note, self.stated = grad, note, stated
        self.noise = 0.0
        self.eps = math.nan
        self.doubts = 0
        self.seems = ""

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

    def _measure(self, x: Array, p: Array) -> float:
        """The noise of gradients around x, where the gradient is p; it is remembered."""
        try:
            noise = noise_level(self.grad, x, p, length_scale(x, p, self.L), self.L)
        except Unexaminable:
            return 0.0
        self.note(f"grad_{self.name}", noise.calls)
        self.noise = max(self.noise, NOISE * noise.total)
        return noise.total

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
        found = self._longest(a, pa, b, pb, pair)
        if found is None:
            return False
        a, pa, b, pb, errors = found
        finest = FINEST * eps_of(pa) * norm(0.5 * (a + b))
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
        self.noise = max(self.noise, last.error, *errors)
        return True

    def _longest(
        self, a: Array, pa: Array, b: Array, pb: Array, pair: Pair
    ) -> tuple[Array, Array, Array, Array, tuple[float, float]] | None:
        """The ends of a longer line around the same middle, on which the contradiction grows no more.

        With their gradients, and with the contradictions of the last two lines. None if it grows on all lines.
        """
        middle, known = 0.5 * (a + b), pair
        longest = LONGEST * length_scale(a, pa, self.L)
        while True:
            half = 0.5 * LONGER * (b - a)
            left, right = (gradient_or_none(self.grad, end) for end in (middle - half, middle + half))
            self.note(f"grad_{self.name}", 2)
            if left is None or right is None:  # outside the domain
                return a, pa, b, pb, (known.error, known.error)
            a, pa, b, pb = middle - half, left, middle + half, right
            whole = self._pair(b, pb, a, pa)
            if not whole.error > 4.0 * known.error:
                return a, pa, b, pb, (whole.error, known.error)
            if whole.length >= longest:
                return None
            known = whole

    def _is_staircase(self, x: Array, p: Array, proof: Pair) -> bool:
        """Whether the gradient, p at x, has jumps that are large enough to explain the errors of the pair ``proof``.

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


def _skew(local: Curvature, noise: float) -> bool:
    """Whether the Jacobian seems not to be symmetric; with noise, which is known only roughly, the margin is larger."""
    margin = SYMMETRIC if noise == 0.0 else 10.0 * SYMMETRIC
    return local.skew > SKEW * max(abs(local.low), abs(local.high)) + margin * local.error


def _agree(a: float, b: float) -> bool:
    return max(a, b) <= AGREE * min(a, b)
