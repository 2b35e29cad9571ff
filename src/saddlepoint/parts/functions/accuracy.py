"""How accurately gradients are computed: what the caller says, and what sums of functions inherit.

A ``Smooth`` has three attributes about this. ``accuracy`` is a number a, for |computed - grad| <= a (|grad| + L |x|);
it is NaN if nothing was said, and then two units of rounding are assumed. ``rounding`` maps x to bounds on the errors
of the entries that are proven in addition, or is None. ``compensated`` maps x to the gradient as a sum high + low of
two vectors, by compensated arithmetic, with bounds on the errors of the entries, or is None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, is_array, namespace
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.jax_program import JaxProgram
from saddlepoint.ground.validation import as_number, short_repr

if TYPE_CHECKING:
    from saddlepoint.parts.functions.smooth import Smooth

Rounding: TypeAlias = Callable[[Array], Array]  # x -> bounds on the errors of the entries of the gradient
Rough: TypeAlias = Callable[[float, float, int], float]  # (|x|, |gradient|, entries) -> a bound on their norm
# x -> high and low part of the gradient, and bounds on the errors of the entries
CompensatedGradient: TypeAlias = Callable[[Array], tuple[Array, Array, Array]]

ASSUMED = 2.0  # units of rounding that are assumed of a gradient about which nothing was said
EXPECTED = "a number from 0 to 1, or a function x -> bounds on the errors of the entries of the gradient"


class StatedBounds:
    """A function x -> bounds on the errors of the gradient, as the caller gave it; its answers are checked."""

    def __init__(self, bounds: Rounding, name: str) -> None:
        self.bounds, self.name = bounds, name

    def __call__(self, x: Array) -> Array:
        """The bounds at x, or a ProblemError if they are not an array like x without negative entries."""
        found = self.bounds(x)
        if not is_array(found) or found.shape != x.shape:
            raise ProblemError(
                f"accuracy of {self.name} returned {short_repr(found)} for a point of shape {tuple(x.shape)}; "
                "expected an array of that shape, a bound for each entry of the gradient"
            )
        if bool(namespace(found).any(found < 0.0)):
            raise ProblemError(f"accuracy of {self.name} returned a negative bound; expected numbers >= 0")
        return found


class ProvenBounds(JaxProgram):
    """Bounds on the errors of the entries of a gradient, perhaps with a rough bound on their size.

    Args:
        bounds: x -> the bounds, one for each entry.
        rough: (|x|, |gradient at x|, number of entries) -> at least the norm of the bounds at x, for x in float64
            (``rough_rounding.py``).
    """

    def __init__(self, bounds: Rounding, rough: Rough | None = None) -> None:
        super().__init__(bounds)
        self.rough = rough

    def __reduce__(self) -> Any:
        return ProvenBounds, (self.function, self.rough)


def as_program(bounds: Rounding | None) -> Rounding | None:
    """Bounds that are proven, as one program of JAX; those that a caller stated are not touched."""
    return bounds if bounds is None or isinstance(bounds, StatedBounds | JaxProgram) else ProvenBounds(bounds)


def as_accuracy(accuracy: Any, name: str) -> tuple[float, Rounding | None]:
    """The argument ``accuracy`` as the attributes ``accuracy`` and ``rounding``."""
    if accuracy is None:
        return math.nan, None
    if callable(accuracy):
        return 0.0, StatedBounds(accuracy, name)
    a = as_number(accuracy, f"accuracy of {name}", EXPECTED)
    if not 0.0 <= a <= 1.0:
        raise ProblemError(f"accuracy of {name} is {a:.6g}; expected {EXPECTED}")
    return a, None


def known_rounding(
    rounding: Rounding | None = None, compensated: CompensatedGradient | None = None, rough: Rough | None = None
) -> dict[str, Any]:
    """The arguments of ``Smooth`` for bounds that cover the whole error of a gradient; none if there are no bounds."""
    if rounding is None:
        return {}
    return {"accuracy": 0.0, "rounding": ProvenBounds(rounding, rough), "compensated": compensated}


def gradient_error(f: Smooth, x: Array, p: Array, sizes: Callable[[Array], Any]) -> Any:
    """A bound on the size of p - grad f(x), where p is the gradient as computed (see ``Smooth.gradient_error``)."""
    with np.errstate(all="ignore"):
        rounding = 0.0 if f.rounding is None else sizes(f.rounding(x))
        return error_from_sizes(f, f.L, max(eps_of(x), eps_of(p)), rounding, sizes(p), sizes(x))


def error_from_sizes(f: Smooth, L: Any, eps: float, rounding: Any, p: Any, x: Any) -> Any:
    """The bound of ``gradient_error``, from the sizes of the bounds on the entries, of p and of x.

    Args:
        f: the function.
        L: its smoothness; in a batch, that of each block.
        eps: the machine epsilon of x or p, whichever is the larger.
        rounding, p, x: the sizes; in a batch, those of each block. The caller silences warnings about overflow.
    """
    error = rounding
    if f.accuracy != 0.0:  # NaN if nothing was said
        a = ASSUMED * eps if math.isnan(f.accuracy) else f.accuracy
        # From |p - grad| <= a (|grad| + L |x|) and |grad| <= |p| + |p - grad|; a = 1 says nothing.
        error = error + (a / (1.0 - a) if a < 1.0 else math.inf) * (p + L * x)
    return np.where(np.isnan(error), math.inf, error) if is_array(error) else unbounded_if_nan(float(error))


def unbounded_if_nan(error: float) -> float:
    """The error, or infinity if it is NaN: what cannot be computed is not bounded."""
    return math.inf if math.isnan(error) else error


def stated(f: Smooth, *arrays: Array) -> float:
    """The number ``accuracy`` of f, or what is assumed for the array of the lowest precision if it was not said."""
    return assumed(*arrays) if math.isnan(f.accuracy) else f.accuracy


def assumed(*arrays: Array) -> float:
    """The accuracy that is assumed where nothing was said, for the array of the lowest precision."""
    return ASSUMED * max(map(eps_of, arrays))


def stated_errors(f: Smooth, x: Array) -> Array:
    """A vector whose length bounds the error of the gradient at x, for a function with a number ``accuracy``.

    With the gradient p as computed, its entries are multiples of |p_i| + L |x_i|: vectors u and v without negative
    entries have |u| + |v| <= sqrt(2) |u + v|.
    """
    xp, p, a = namespace(x), f.grad(x), f.accuracy
    factor = 1.5 * a / (1.0 - a) if a < 1.0 else math.inf
    errors: Array = factor * (xp.abs(p) + f.L * xp.abs(x))
    return errors


def accuracy_of_sum(f: Smooth, g: Smooth) -> float:
    """The number ``accuracy`` of f + g, or NaN if that of f or g was not said (see ``SumRounding``)."""
    if f.accuracy == 0.0 or g.accuracy == 0.0:
        return f.accuracy + g.accuracy
    if math.isnan(f.accuracy + g.accuracy):
        return math.nan
    a = max(f.accuracy, g.accuracy)
    return min(a * (1.0 + a) / (1.0 - a), 1.0) if a < 1.0 else 1.0


def require_L(f: Smooth) -> None:
    """Raise a ProblemError if an accuracy is stated of f, which is relative to L |x|, and L is not known."""
    if f.accuracy > 0.0 and math.isnan(f.L):
        raise ProblemError(
            f"accuracy of {type(f).__name__} is {f.accuracy:g}, relative to |grad| + L |x|, but L is not known; "
            "expected L as well where the function is part of another one"
        )


def rounding_of_sum(f: Smooth, g: Smooth) -> Rounding | None:
    """Bounds on the errors of grad f + grad g beyond those that ``accuracy_of_sum`` accounts for."""
    if math.isnan(f.accuracy + g.accuracy):
        require_L(f)
        require_L(g)
    if f.rounding is None and g.rounding is None and math.isnan(f.accuracy) and math.isnan(g.accuracy):
        return None  # the sum of two black boxes is a black box
    return SumRounding(f, g)


class SumRounding:
    """Bounds on the errors of the entries of grad f + grad g.

    The error is at most that of f, that of g, and eps |grad f + grad g| for the addition. If f has an accuracy a, its
    error contains a |grad f| <= a |grad f + grad g| + a |grad g|: the first term is part of the accuracy of the sum,
    and the second one is added here. If both have one, a is the larger one, q is the computed gradient of g, and
    a |grad f| + a |grad g| <= a |grad f + grad g| + 2 a |grad g| with |grad g| <= (|q| + a L |x|)/(1 - a); the terms
    with |grad f + grad g| and L |x| are at most those of the accuracy a (1 + a)/(1 - a).

    If nothing was said of one of them, nothing is known of the accuracy of the sum, for which a = two units of rounding
    is assumed, and what was stated of the other one is added here as a whole. Bounds that come from an accuracy have
    the length of the error; single entries of the error may exceed them.
    """

    def __init__(self, f: Smooth, g: Smooth) -> None:
        self.f, self.g = f, g

    def __call__(self, x: Array) -> Array:
        """The bounds at x."""
        f, g = (self.g, self.f) if self.f.accuracy == 0.0 else (self.f, self.g)  # g has a proof, if one of them has
        is_unknown = math.isnan(f.accuracy + g.accuracy)
        xp, q = namespace(x), g.grad(x)
        own = [h.rounding(x) for h in (f, g) if h.rounding is not None]
        bound: Array = own[0] + own[1] if len(own) == 2 else own[0] if own else 0.0 * xp.abs(q)
        for h in (f, g):
            if is_unknown and h.accuracy > 0.0:
                bound = bound + stated_errors(h, x)
        if f.accuracy != 0.0:
            a = assumed(x, q) if is_unknown else max(f.accuracy, g.accuracy)
            factor = (1.0 if g.accuracy == 0.0 else 2.0) * a / (1.0 - a) if a < 1.0 else math.inf
            bound = bound + factor * (xp.abs(q) + bound)
        if not is_unknown:  # otherwise the assumption is about the sum, addition included
            bound = bound + eps_of(x) * xp.abs(f.grad(x) + q)
        return bound
