"""Regularised risks: an average of losses of D x, plus l2/2 |x|^2.

Each loss is one convex function of one variable. Without data D the loss acts on the coordinates of x themselves and
is summed instead of averaged; the function is then separable and its prox is cheap.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import diags_array, issparse

from saddlepoint.ground.arrays import Array, common_space, eps_of, is_array, is_constant, namespace, space_of
from saddlepoint.ground.compensated import Sum
from saddlepoint.ground.diagonal import diagonal_matrix
from saddlepoint.ground.directed import add_down, mul_down
from saddlepoint.ground.elementwise import cast_like, clip
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.recording import is_recording
from saddlepoint.ground.rounding import ELEMENTARY, flushed, underflow
from saddlepoint.ground.validation import as_offset
from saddlepoint.parts.coupling import Coupling, DenseCoupling, SparseCoupling
from saddlepoint.parts.functions.accuracy import CompensatedGradient, Rough, Rounding, known_rounding
from saddlepoint.parts.functions.compensated import (
    divided,
    exactly,
    product,
    rounded,
    total,
    two_product,
    widened,
)
from saddlepoint.parts.functions.constants import gram_bounds, proven_smoothness
from saddlepoint.parts.functions.given_constants import as_nonnegative
from saddlepoint.parts.functions.given_data import as_data, part_of_offset, size_of_offset
from saddlepoint.parts.functions.product_rounding import absolute, is_bounded, number_error, ridge_rounding
from saddlepoint.parts.functions.rough_rounding import RoughRisk, gammas
from saddlepoint.parts.functions.second_order import UP
from saddlepoint.parts.functions.smooth import Smooth, plus_identity
from saddlepoint.parts.functions.source_data import source_data

# Attributes that the losses of some rows do not take over: the oracles and constants of the whole risk, and D.
NOT_OF_LOSSES = {*vars(Smooth(abs, mu=None, L=None)), "D", "_ends", "largest_gram", "_kept"}


class Risk(Smooth):
    """mean_i loss(d_i'x - t_i) + l2/2 |x|^2, or sum_i loss(x_i - t_i) + l2/2 |x|^2 when D is None.

    A subclass defines the loss and its first two derivatives, applied to arrays: ``_loss``, ``_slope`` and
    ``_second_derivative``. They are methods and not closures, so that the function can be sent to another process. With
    D = None a subclass may have ``_separable_prox`` and ``_restrict``. Its parameters are attributes that it sets
    before it calls this constructor; those with an entry for every row of D are named in ``_by_row``.

    Args:
        D: the data, one row d_i a sample: an array, a SciPy sparse array or an operator; None for the identity.
        t: the targets, a number or a vector; zero if None.
        l2: the factor of |x|^2/2, not negative.
        curvature: bounds on the second derivative of the loss.
        quadratic: whether the loss is quadratic.
    """

    _by_row: ClassVar[tuple[str, ...]] = ("t", "labels")
    slope_units: ClassVar[float | None] = None  # how accurate ``_slope`` is: ``units`` of ``RoughRisk``, if known
    _separable_prox: Any = None
    _restrict: Any = None
    _rough_kept: RoughRisk | None = None
    _kept: tuple[Array, Array, Array] | None = None  # a point, its residuals, and D'slope/N

    def __init__(self, D: Any, t: Any, l2: float, *, curvature: tuple[float, float], quadratic: bool = False) -> None:
        name = type(self).__name__
        self.l2 = l2 = as_nonnegative(l2, f"l2 of {name}")
        self.D: Coupling | None = as_data(D, name)
        rows = None if self.D is None else self.D.shape[0]
        self.t: float | Array | None = None if t is None else as_offset(t, f"t of {name}", rows)
        self.curvature, self.quadratic = curvature, quadratic
        self._ends = (1.0, 1.0, 1.0) if self.D is None else gram_bounds(self.D)
        self.largest_gram = self._ends[2] if self.D is None or self.D.has_entries else self._ends[1]
        self._assemble()
        if curvature[0] > 0.0 and self.D is not None and not is_recording():
            self.sources = source_data(f"D of {name}", self.D)

    def with_l2(self, l2: float) -> Risk:
        """This function with another l2; D and what was computed for it are shared.

        Example:
            >>> import saddlepoint as sp
            >>> sp.LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0]).with_l2(0.5)
            LeastSquares(n=2, mu=1, L=2.5)
        """
        other = copy(self)
        other.l2 = as_nonnegative(l2, f"l2 of {type(self).__name__}")
        other._assemble()
        return other

    def with_columns(self, columns: Array) -> Risk:
        """This function of the weights of some columns of D, the others being zero; D is an array or a sparse array.

        Eigenvalues of D'D bound those of its principal submatrices, so that no constant is computed again.

        Args:
            columns: the numbers of the columns.

        Example:
            >>> import numpy as np, saddlepoint as sp
            >>> sp.LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0]).with_columns(np.array([0]))
            LeastSquares(n=1, mu=0.5, L=2)
        """
        assert self.D is not None
        part = self.D.matrix()[:, columns]
        return self.with_data(SparseCoupling(part) if issparse(part) else DenseCoupling(part))

    def with_data(self, D: Coupling | None, **offsets: Any) -> Risk:
        """This function with other data, by which its constants are true as well: they are not computed again."""
        other = copy(self)
        vars(other).update(offsets, D=D, _kept=None)
        other._assemble()
        return other

    @property
    def data_norm(self) -> float:
        """An upper bound or estimate of |D|."""
        return math.sqrt(self._ends[1])

    @property
    def proven_L(self) -> float | None:
        """L by a proven bound of the eigenvalues of D'D; None if there is none."""
        return proven_smoothness(self.D, self.largest_gram, self.curvature[1], self.l2)

    def gradient_from(self, Dx: Array, x: Array) -> Array:
        """The gradient at x, where the product D x is known."""
        assert self.D is not None
        slope = self._slope(Dx if self.t is None else Dx - self.t)
        found: Array = self.D.tmul(slope) * (1.0 / self.D.shape[0]) + self.l2 * x
        return found

    def _assemble(self) -> None:
        """Call the constructor of ``Smooth``, with methods of this object as the oracles."""
        self._rough_kept = None
        name, l2, curvature, gram = type(self).__name__, self.l2, self.curvature, self._ends
        scale = 1.0 if self.D is None else 1.0 / self.D.shape[0]
        mu = add_down(l2, mul_down(scale, mul_down(curvature[0], gram[0])))
        elsewhere = None
        if self.D is not None:
            of_Dx = Smooth(
                self._gradient,
                mu=0.0,
                L=curvature[1],
                value=self._value,
                quadratic=self.quadratic,
                restrict=self._losses,
                **known_rounding(*(self._rounding, self._compensated) if self._bounds_slopes() else ()),
            )
            elsewhere = self.D.of_rows(of_Dx, scale=scale, l2=l2, curvature=curvature, gram=gram)
        super().__init__(
            self._gradient if elsewhere is None else elsewhere.grad,
            mu=mu,
            L=larger(mu, l2 + scale * curvature[1] * gram[1]),
            value=self._value if elsewhere is None else elsewhere.value,
            prox=self._separable_prox if self.D is None else None,
            dim=self.D.shape[1] if self.D is not None else size_of_offset(self.t),
            space=common_space(
                {
                    f"D of {name}": None if self.D is None else self.D.space.of_y,
                    f"t of {name}": None if isinstance(self.t, float) else self.t,
                }
            ),
            quadratic=self.quadratic,
            restrict=self._restrict if self.D is None else None,
            hessian=self._hessian if self.D is None or isinstance(self.D, DenseCoupling | SparseCoupling) else None,
            hessian_lipschitz=0.0 if self.quadratic else self._hessian_change,
            second_order=self._quadratic_model if elsewhere is None else None,
            trusted=True,
            **(known_rounding(*self._known_rounding()) if elsewhere is None else elsewhere.arithmetic),
        )

    def _loss(self, r: Array) -> Array:
        raise NotImplementedError

    def _slope(self, r: Array) -> Array:
        raise NotImplementedError

    def _second_derivative(self, r: Array) -> Array:
        raise NotImplementedError

    def _second_derivative_change(self, r: Array, e: Array) -> Array:
        """Bounds on the changes of ``_second_derivative`` where the residuals change by at most e.

        It is what the range of the second derivative allows, unless a subclass knows more.
        """
        return 0.0 * e + (self.curvature[1] - self.curvature[0])

    def _slope_error(self, r: Array, e: Array) -> Array:
        """Bounds on the errors of ``_slope(r)`` as the slope at the true residual, which differs from r by at most e.

        A subclass without this method has no bounds on the errors of its gradient.
        """
        raise NotImplementedError

    def _losses(self, rows: slice) -> Smooth:
        """The sum of the losses of some rows, as a function of the entries of D x that belong to them."""
        own = object.__new__(type(self))
        parameters = {name: value for name, value in vars(self).items() if name not in NOT_OF_LOSSES}
        sliced = {name: part_of_offset(parameters[name], rows) for name in self._by_row if name in parameters}
        vars(own).update({**parameters, **sliced, "D": None, "l2": 0.0})
        return Smooth(
            own._gradient, mu=0.0, L=self.curvature[1], value=own._value, **known_rounding(*own._known_rounding())
        )

    def _residual(self, x: Array) -> Array:
        Dx = x if self.D is None else self.D.mul(x)
        return Dx if self.t is None else Dx - self.t

    def _gradient(self, x: Array) -> Array:
        r = self._residual(x)
        slope = self._slope(r)
        if self.D is not None:
            slope = self.D.tmul(slope) * (1.0 / self.D.shape[0])
            if is_constant(x):
                self._kept = x, r, slope
        return slope + self.l2 * x

    def _products(self, x: Array) -> tuple[Array, Array | None]:
        """The residuals at x, and the gradient without the term l2 x if ``_gradient`` has just computed it there."""
        kept, self._kept = self._kept, None
        return kept[1:] if kept is not None and kept[0] is x else (self._residual(x), None)

    def _bounds_slopes(self) -> bool:
        return type(self)._slope_error is not Risk._slope_error

    def _known_rounding(self) -> tuple[Rounding, CompensatedGradient, Rough | None] | tuple[()]:
        if not self._bounds_slopes() or not is_bounded(self.D):
            return ()
        has_norm = self.D is None or isinstance(self.D, DenseCoupling | SparseCoupling)
        return self._rounding, self._compensated, self._rough if has_norm and self.slope_units is not None else None

    def _rounding(self, x: Array) -> Array:
        """Bounds on the errors of the entries of the gradient.

        The residual r = D x - t has the error e of the product and eps |r| of the subtraction; ``_slope_error`` turns
        it into an error d of the slopes s. Then D's has the error of that product and |D|'d. The factor 1/N, l2 and
        the two products with them are rounded, and the sum.
        """
        xp, eps, D = namespace(x), eps_of(x), self.D
        r, product = self._products(x)
        e = 0.0 * xp.abs(r) if D is None else absolute(D).errors(x)
        if self.t is not None:
            e = e + eps * xp.abs(r) + flushed(r) + number_error(self.t, eps)
        slope, bound = self._slope(r), self._slope_error(r, e)
        if D is not None:
            scale, transpose = 1.0 / D.shape[0], absolute(D.T)
            bound = scale * transpose.errors(slope, bound)
            slope = D.tmul(slope) * scale if product is None else product
            bound = bound + 2.0 * eps * xp.abs(slope) + underflow(slope)
        return bound if self.l2 == 0.0 else bound + ridge_rounding(slope, self.l2, x)

    def _rough(self, length: float, size: float, n: int) -> float:
        """A bound on the norm of ``_rounding(x)`` for x of n entries with |x| = length."""
        if self._rough_kept is None or self._rough_kept.columns != n:
            assert self.slope_units is not None
            rows, columns = (n, n) if self.D is None else self.D.shape
            offset = (
                0.0 if self.t is None else math.sqrt(rows) * abs(self.t) if isinstance(self.t, float) else norm(self.t)
            )
            self._rough_kept = RoughRisk(
                1.0 if self.D is None else self.D.norm_ceiling(),
                *((0.0, 0.0) if self.D is None else gammas(self.D)),
                rows,
                columns,
                offset,
                norm(self._slope(np.zeros(rows))),
                self.curvature[1],
                self.slope_units,
                1.0 if self.D is None else 1.0 / rows,
                self.l2,
            )
        return self._rough_kept(length)

    def _compensated(self, x: Array) -> Sum:
        """The gradient with sums in about twice the digits; the ordinary one where D has no such products."""
        wide, D = widened(x), self.D
        r = None if wide is None else exactly(wide) if D is None else product(D, exactly(wide))
        if r is not None and wide is not None:
            slope = self._compensated_slope(r if self.t is None else total(r, exactly(-cast_like(self.t, r.hi))))
            found = slope if D is None else product(D.T, slope)
            if found is not None:
                found = found if D is None else divided(found, float(D.shape[0]))
                return total(found, two_product(wide, self.l2)) if self.l2 > 0.0 else found
        return Sum(self._gradient(x), 0.0 * x, self._rounding(x))

    def _compensated_slope(self, r: Sum) -> Sum:
        """The slopes at the residuals r, as accurately as ``_slope`` computes them."""
        high, error = rounded(r)
        slope = self._slope(high)
        return Sum(slope, 0.0 * slope, self._slope_error(high, error))

    def _weights(self, x: Array) -> Any:
        """The second derivatives of the losses at x."""
        return self._second_derivative(self._residual(x))

    def _quadratic_model(self, x: Array) -> Smooth:
        return WeightedSquares(self, self._weights(x))

    def _hessian_change(self, x: Array, u: Array, reach: float) -> float:
        """A bound on |(H(x') - H(x)) u| for |x' - x| <= reach, and for H(x) as computed.

        Residuals change by at most |d_i| reach, and second derivatives of the losses by at most c_i. With b_i = c_i
        |<d_i, u>|, the change is |D'b|/N at most, hence at most |D||b|/N and the sum of the |d_i| b_i/N.
        """
        xp, D, r = namespace(x), self.D, self._residual(x)
        if D is None:
            e, s = reach + 2.0 * eps_of(x) * xp.abs(x), u
        else:
            rows = D.row_lengths()
            lengths: Any = cast_like(space_of(x).cast(np.asarray(rows)), x) if is_array(rows) else rows
            e, s = lengths * (reach + 0.0 * r), D.mul(u)
            if is_bounded(D):
                e, s = e + absolute(D).errors(x), xp.abs(s) + absolute(D).errors(u)
        e = UP * (e + 2.0 * eps_of(x) * xp.abs(r))
        own = 4.0 * ELEMENTARY * eps_of(x) * self.curvature[1]  # rounding of the second derivatives
        most = self.curvature[1] - self.curvature[0]
        b = (clip(self._second_derivative_change(r, e), 0.0, most) + own) * xp.abs(s)
        if D is None:
            return UP * norm(b)
        return UP * min(math.sqrt(self.largest_gram) * norm(b), float(xp.sum(lengths * b))) / int(D.shape[0])

    def _hessian(self, x: Array) -> Any:
        second = self._second_derivative(self._residual(x))
        if self.D is None:
            return diagonal_matrix(second + self.l2)
        D = self.D.matrix()
        if issparse(D):
            return plus_identity((1.0 / D.shape[0]) * (D.T @ (diags_array(second) @ D)), self.l2)
        root = np.sqrt(second)[:, None] * D  # NumPy computes only one half of the symmetric product root'root
        return plus_identity((1.0 / D.shape[0]) * (root.T @ root), self.l2)

    def _value(self, x: Array) -> float:
        losses = self._loss(self._residual(x))
        total = float(namespace(losses).sum(losses))
        return (total if self.D is None else total / self.D.shape[0]) + 0.5 * self.l2 * inner(x, x)


class WeightedSquares(Risk):
    """mean_i weight_i (d_i'u)^2/2 + l2/2 |u|^2: the quadratic model of a risk.

    Args:
        of: the risk.
        weights: the second derivatives of its losses, or one number for all.
    """

    def __init__(self, of: Risk, weights: Any) -> None:
        self.D, self.t, self.l2, self.curvature, self.largest_gram = of.D, None, of.l2, of.curvature, of.largest_gram
        self.weights = weights
        Smooth.__init__(
            self,
            self._gradient,
            mu=of.mu,
            L=of.L,
            value=self._value,
            dim=of.dim,
            space=of.space,
            quadratic=True,
            hessian=None if of.hessian is None else self._hessian,
            hessian_lipschitz=0.0,
            second_order=self._same,
            trusted=True,
            **known_rounding(*self._known_rounding()),
        )

    def _same(self, x: Array) -> Smooth:
        return self

    def _like(self, r: Array) -> Any:
        return self.weights if isinstance(self.weights, float) else cast_like(self.weights, r)

    def _loss(self, r: Array) -> Array:
        losses: Array = 0.5 * self._like(r) * r * r
        return losses

    def _slope(self, r: Array) -> Array:
        slope: Array = self._like(r) * r
        return slope

    def _second_derivative(self, r: Array) -> Array:
        second: Array = self._like(r) + 0.0 * r
        return second

    def _slope_error(self, r: Array, e: Array) -> Array:
        """The error of the residual times the weight; the weight in the dtype of r and the product are rounded."""
        xp = namespace(r)
        bound: Array = self._like(r) * e * (1.0 + 2.0 * eps_of(r)) + 2.0 * eps_of(r) * xp.abs(self._slope(r))
        return bound + underflow(r)


def larger(a: float, b: float) -> float:
    """The larger number; within ``recording()``, where numbers may be symbols, the second one."""
    return b if is_recording() else max(a, b)
