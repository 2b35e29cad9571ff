r"""Total variation: images and signals with few edges, from noisy, blurred or incomplete ones.

Problem:    min_x 1/2 |B x - b|^2 + ridge/2 |x - m|^2 + l1 |x|_1 + weight sum_p |(K x)_p|, lower <= x <= upper, where
            (K x)_p has the differences of pixel p to its next neighbours in all directions and all channels.
            B is the identity (denoising), a mask (inpainting) or any linear operator (deblurring, tomography).
Saddle:     weight |z| = max <z, y> over |y| <= weight, hence min_x max_y g(x) + <x, K'y> over |y_p| <= weight, with all
            other terms as g, and A = K'. y is not strongly concave; x is strongly convex with mu = 1 for denoising and
            mu = ridge otherwise.
Guarantee:  the proven duality gap G bounds the error of x: |x - x*| <= sqrt(2 G/mu). Its root mean square over the
            pixels is what ``solve`` is asked for.
Reference:  L. Rudin, S. Osher and E. Fatemi, Nonlinear total variation based noise removal algorithms, Physica D 1992;
            A. Chambolle and T. Pock, A first-order primal-dual algorithm for convex problems with applications to
            imaging, J. Math. Imaging Vision 2011.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, kron, vstack

from saddlepoint.apps.total_variation_start import dual_gradient, one_dimension
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.ground.validation import as_count, as_flag, as_float_array, as_number, positive, short_repr
from saddlepoint.methods.registry import method_or_auto
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.functions import LeastSquares, Quadratic, Smooth
from saddlepoint.parts.simple import GroupBalls, L1Box
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve

DEFAULT_RMS = 1e-3  # root mean square error to prove if none is given, relative to the range of the known pixels


@dataclass(frozen=True)
class TotalVariationResult:
    """An image, and a proof of its accuracy.

    Attributes:
        image: the solution, in the shape of the unknown image.
        rms: a proven bound on the root mean square of image - exact solution, over all entries.
        gap: a proven bound on the duality gap, in units of the objective.
        solved: whether rms is at most what was asked for.
        message: how the run ended, in a sentence.
        seconds: the time it took.
        result: the run of ``solve`` that certified it; its y is the dual field, one direction after the other.
    """

    image: Array
    rms: float
    gap: float
    solved: bool
    message: str
    seconds: float
    result: Result

    def __repr__(self) -> str:
        lines = [
            f"{'solved' if self.solved else 'not solved'}: {self.message}",
            f"  rms error  <= {self.rms:.3g}",
            f"  gap        <= {self.gap:.3g}",
            f"  image      {' x '.join(map(str, self.image.shape))}, {self.seconds:.3g} s",
        ]
        return "\n".join(lines)


class TotalVariation:
    """An image or a signal x with few edges: 1/2 |B x - image|^2 + weight TV(x), and optional further terms.

    Args:
        image: what was measured: an array of one, two, three or more dimensions.
        weight: the weight of the total variation, positive.
        operator: B, as an array, a SciPy sparse array, a LinearOperator or an operator of PyLops; it acts on the image
            as one long vector, in C order. None is the identity.
        mask: True where the image is known, in its shape; the other pixels are filled in. Not with ``operator``.
        ridge: the multiple of |x - m|^2/2, where m is the mean of the known pixels (0 with ``operator``). It is
            needed, and must be positive, with ``operator`` or ``mask``: it is what proves the error of all pixels.
        shape: the shape of the unknown image, if an operator maps between images of different shapes.
        channel_axis: the axis of the channels of a colour image, whose edges are then in the same places; None for a
            grey one.
        isotropic: whether the length of (K x)_p is Euclidean; otherwise it is the sum of the absolute differences.
        l1: the multiple of |x|_1: the sparse fused lasso.
        lower, upper: bounds on all pixels.

    Attributes:
        problem: the ``Saddle`` problem.
        mu: the strong convexity in x.
        shape: the shape of the unknown image.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> signal = np.array([0.1, -0.1, 0.0, 1.1, 0.9, 1.0])
        >>> found = sp.apps.TotalVariation(signal, weight=0.15).solve(rms=1e-6)
        >>> found.image.round(4), found.solved
        (array([0.05, 0.05, 0.05, 0.95, 0.95, 0.95]), True)
    """

    def __init__(
        self,
        image: Any,
        weight: float,
        *,
        operator: Any = None,
        mask: Any = None,
        ridge: float | None = None,
        shape: tuple[int, ...] | None = None,
        channel_axis: int | None = None,
        isotropic: bool = True,
        l1: float = 0.0,
        lower: float = -math.inf,
        upper: float = math.inf,
    ) -> None:
        b, known = _as_image(image, mask)
        if operator is not None and mask is not None:
            raise ProblemError("both operator and mask are given; expected one of them (a mask can be part of B)")
        if shape is not None and operator is None:
            raise ProblemError("shape is given without an operator; expected None, because the image has its shape")
        self.weight = positive(weight, "weight")
        self.shape: tuple[int, ...] = b.shape if shape is None else _as_shape(shape)
        self.channel_axis = None if channel_axis is None else _as_axis(channel_axis, len(self.shape))
        order = list(range(len(self.shape)))
        if self.channel_axis is not None:
            order.insert(0, order.pop(self.channel_axis))
        self._order = order  # channels first
        self._moved = tuple(self.shape[i] for i in order)
        self._spatial = self._moved if self.channel_axis is None else self._moved[1:]
        self.isotropic, self.l1 = as_flag(isotropic, "isotropic"), as_number(l1, "l1")
        lower, upper = as_number(lower, "lower"), as_number(upper, "upper")
        self._known: Array | None = None
        g = self._data(b, known, operator, ridge)
        self.mu, self._range = g.mu, float(np.ptp(b if known is None else b[known]))
        self._term = L1Box(self.l1, lower, upper) if self.l1 != 0.0 or (lower, upper) != (-math.inf, math.inf) else None
        if not self._spatial or max(self._spatial) < 2:
            raise ProblemError(f"the image has the shape {self.shape}; expected two pixels or more in one direction")
        K = _difference_matrix(self._moved, self._spatial)
        pixels = math.prod(self._spatial)
        ball = GroupBalls(shape=(K.shape[0] // pixels, pixels), radius=self.weight)
        q = ball if self.isotropic else L1Box(0.0, -self.weight, self.weight)
        self.problem = Saddle(g if self._term is None else g + self._term, q, csr_array(K.T))

    def solve(
        self, *, rms: float | None = None, max_seconds: float | None = None, progress: bool = False, **options: Any
    ) -> TotalVariationResult:
        """The image with a proven root mean square error of at most ``rms``.

        Args:
            rms: in units of the image; None is 1e-3 times the range of the known pixels.
            max_seconds: wall-clock limit.
            progress: show a progress bar.
            options: further options of ``solve``, such as ``method``.
        """
        limit = TimeLimit(max_seconds)
        method_or_auto(options.get("method", "auto"))  # a ProblemError if there is none, before a start is computed
        goal = DEFAULT_RMS * (self._range or 1.0) if rms is None else positive(rms, "rms")
        n = math.prod(self.shape)
        gap = 0.5 * self.mu * n * goal * goal * (1.0 - 1e-12)  # a little less, for the rounding of the root below
        start = self._start(gap, limit.left) if self._known is not None else (None, None)
        result = solve(self.problem, *start, gap=gap, max_seconds=limit.left, progress=progress, **options)
        proven = result.certificate.distance_x / math.sqrt(n) * (1.0 + 1e-15)
        solved = proven <= goal
        reached = f"proven root mean square error {proven:.3g}"
        message = f"{reached} <= {goal:.3g}" if solved else f"{reached} > {goal:.3g}; {result.message}"
        moved = np.reshape(result.x, self._moved)
        image = np.ascontiguousarray(np.transpose(moved, np.argsort(self._order)))
        return TotalVariationResult(image, proven, result.certificate.gap, solved, message, limit.spent, result)

    def _start(self, gap: float, max_seconds: float | None) -> tuple[Array, Array]:
        """A good start for denoising, where x follows from y."""
        assert self._known is not None
        b = np.reshape(self._known, (-1, *self._spatial))
        if b.shape[0] == 1 and len(self._spatial) == 1 and self._term is None:
            x = one_dimension(self._known, self.weight)
            y = np.append(np.cumsum((x - self._known)[:-1]), 0.0)
            return x, np.clip(y, -self.weight, self.weight)
        return dual_gradient(b, self.weight, self.isotropic, self._term, gap, max_seconds)

    def _data(self, b: Array, known: Array | None, operator: Any, ridge: float | None) -> Smooth:
        """1/2 |B x - b|^2 + ridge/2 |x - m|^2 as a function of the vector of all entries, channels first."""
        if operator is None and known is None:
            self._known = self._vector(b)
            if ridge is not None:
                raise ProblemError("ridge is given for denoising; expected None, because the data term has mu = 1")
            return Quadratic(1.0, -self._known)
        if ridge is None:
            raise ProblemError(
                "ridge is missing; with an operator or a mask, give the multiple of |x - m|^2/2, a positive number: "
                "without it nothing proves the error of all pixels. 1e-3 is a common choice"
            )
        ridge = positive(ridge, "ridge")
        if known is not None:
            m = float(b[known].mean())
            weights = self._vector(known.astype(np.float64))
            return Quadratic(weights + ridge, -self._vector(b) - ridge * m)
        B = as_coupling(operator, "operator")
        if B.shape != (b.size, math.prod(self.shape)):
            raise ProblemError(
                f"operator has the shape {B.shape}; expected {b.size} x {math.prod(self.shape)}, a row for each entry "
                "of the given image and a column for each of the unknown one"
            )
        if self.channel_axis not in (None, 0):
            raise ProblemError("with an operator the channels must be the first axis; use channel_axis=0")
        return float(b.size) * LeastSquares(B, b.ravel()) + Quadratic(ridge)

    def _vector(self, image: Array) -> Array:
        """All entries, channels first."""
        return np.ascontiguousarray(np.transpose(image, self._order)).ravel()


def _as_image(image: Any, mask: Any) -> tuple[Array, Array | None]:
    """The image, and where it is known; with a mask, it is 0 elsewhere."""
    b = as_float_array(np.asarray(image) if hasattr(image, "__array__") else image, "image").astype(np.float64)
    if b.ndim == 0 or b.size == 0:
        raise ProblemError(f"image has shape {b.shape}; expected at least one pixel in at least one dimension")
    known = None if mask is None else _as_mask(mask, b.shape)
    if known is not None:
        b = np.where(known, b, 0.0)
    if not np.isfinite(b).all():
        raise ProblemError("image holds numbers that are not finite; fill them in with mask=np.isfinite(image)")
    return b, known


def _as_mask(mask: Any, shape: tuple[int, ...]) -> Array:
    given = as_float_array(np.asarray(mask) if hasattr(mask, "__array__") else mask, "mask")
    try:
        known = np.broadcast_to(given != 0.0, shape)
    except ValueError:
        raise ProblemError(f"mask has shape {given.shape}; expected that of the image, {shape}") from None
    if not known.any():
        raise ProblemError("mask is False everywhere; expected at least one pixel that is known")
    return known


def _as_shape(shape: Any) -> tuple[int, ...]:
    if not np.iterable(shape):
        raise ProblemError(f"shape is {short_repr(shape)}; expected a tuple of sizes, one for each dimension")
    return tuple(as_count(size, f"shape[{i}]") for i, size in enumerate(shape))


def _as_axis(axis: Any, dimensions: int) -> int:
    """The number of an axis, from 0 on; a negative one counts from the last axis."""
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer) or not -dimensions <= axis < dimensions:
        raise ProblemError(
            f"channel_axis is {short_repr(axis)}; expected an axis of the image, from {-dimensions} to "
            f"{dimensions - 1}, or None"
        )
    return int(axis) % dimensions


def _difference_matrix(moved: tuple[int, ...], spatial: tuple[int, ...]) -> Any:
    """K: for each direction and each channel, the differences of neighbours; zero at the last pixel of a line."""
    channels = math.prod(moved) // math.prod(spatial)
    blocks = []
    for axis, size in enumerate(spatial):
        ones = np.append(np.ones(size - 1), 0.0)
        D = diags_array([-ones, ones[:-1]], offsets=[0, 1], shape=(size, size))
        before, after = channels * math.prod(spatial[:axis]), math.prod(spatial[axis + 1 :])
        blocks.append(kron(kron(eye_array(before), D), eye_array(after)))
    K = csr_array(vstack(blocks))
    K.eliminate_zeros()
    return K
