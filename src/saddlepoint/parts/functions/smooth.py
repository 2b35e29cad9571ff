"""Smooth convex functions, given by a gradient and the constants mu and L."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import eye_array, issparse

from saddlepoint.ground.arrays import Array, Space, common_space, detached
from saddlepoint.ground.directed import add_down
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.recording import is_recording
from saddlepoint.ground.validation import as_count, as_flag
from saddlepoint.parts.functions.accuracy import (
    CompensatedGradient,
    Rounding,
    accuracy_of_sum,
    as_accuracy,
    as_program,
    gradient_error,
    rounding_of_sum,
)
from saddlepoint.parts.functions.affine import affine
from saddlepoint.parts.functions.autodiff import Differentiated
from saddlepoint.parts.functions.compensated import compensated_of_sum
from saddlepoint.parts.functions.given_constants import (
    UNKNOWN,
    as_convexity,
    as_dtype,
    as_lipschitz,
    as_nonnegative,
    known,
    refuse_other_than_functions,
)
from saddlepoint.parts.functions.second_order import as_hessian, change_of_sum, model_of_sum, proven_L_of_sum
from saddlepoint.parts.functions.source_data import SourceData
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.from_operator import HasProx, as_simple

# The arguments of ``Smooth`` below explain what these functions return.
Gradient: TypeAlias = Callable[[Array], Array]
Value: TypeAlias = Callable[[Array], float]
Prox: TypeAlias = Callable[[Array, float], Array]
Hessian: TypeAlias = Callable[[Array], Any]
HessianProduct: TypeAlias = Callable[[Array, Array], Array]
HessianChange: TypeAlias = Callable[[Array, Array, float], float]
Restrict: TypeAlias = Callable[[slice], "Smooth"]

# The arguments of Smooth that are functions.
FUNCTIONS = {"grad", "value", "prox", "hessian", "hvp", "second_order", "restrict"} | {
    *("prox_of_sum", "rounding", "compensated"),
}
CLAIMS = {"grad", "mu", "L"}  # arguments of Smooth to which ``trusted`` refers


class Smooth:
    """A convex function known by its gradient: mu-strongly convex and L-smooth.

    Args:
        grad: x -> gradient at x. It must return a new array at every call and must not change x.
        mu: strong convexity; ``None`` if unknown (it is never guessed, and without it no distance can be certified).
            It may be negative up to L/1000, for functions that are convex only up to rounding.
        L: smoothness, the Lipschitz constant of the gradient; ``None`` to have it estimated from gradients when the
            function enters a ``Saddle`` (the run checks the estimate; certificates use it only for rounding).
        value: x -> value at x. Optional: no method needs it.
        prox: (v, t) -> argmin_u f(u) + |u - v|^2 / (2 t). Optional: only prox methods need it.
        dim: the dimension, if the function fixes it.
        dtype: the dtype of the function's own data, if it has any and they are NumPy arrays.
        space: library, dtype and device of that data, for any library.
        quadratic: True if the gradient is affine, which methods for quadratic problems require.
        hessian: x -> the Hessian at x, an array or a SciPy sparse array. Optional: only methods that factorise need it.
        hvp: (x, u) -> the Hessian at x times u. Optional: only derivatives of the solution need it (``Result.vjp``),
            and they can do with ``hessian``, or with the automatic differentiation of PyTorch and JAX.
        hessian_lipschitz: a number M for which |H(x) - H(x')| <= M |x - x'|, where H is the Hessian; or a function
            (x, u, reach) -> a bound on |(H(x) - H(x')) u| for all x' up to this distance from x. Optional: without
            it, the error of a derivative of the solution is not bounded, unless the function is quadratic.
        second_order: x -> the function u -> <u, H(x) u>/2 as a ``Smooth``. The ready-made functions have it.
        restrict: a slice of coordinates -> the function of these coordinates, if the function is a sum over
            coordinates. Optional: only sharded problems need it.
        trusted: True if mu and L follow from the construction of the function, as those of the ready-made functions do.
            Otherwise they are claims of the caller, which are examined before a run is reported as solved.
        accuracy: how accurately ``grad`` is computed: a number a, for |computed - grad| <= a (|grad| + L |x|), or a
            function x -> bounds on the errors of the entries of the gradient. ``None`` if unknown: then two units of
            rounding are assumed, and noise beyond that is measured.
        rounding: x -> bounds on the errors of the entries that are proven, beside the number ``accuracy``. The
            ready-made functions have them.
        compensated: x -> (high, low, error): the gradient as high + low by compensated arithmetic, and bounds on the
            errors of its entries.
        simple: a ``Simple`` term that is added to the function, such as ``L1(0.1)`` or ``Box(0, 1)``, or an operator of
            pyproximal; ``Smooth + Simple`` makes such a sum. ``grad``, ``mu``, ``L``, ``value`` and everything else
            here is about the smooth function alone, except ``prox_of_sum``.
        prox_of_sum: (v, t) -> argmin_u f(u) + p(u) + |u - v|^2 / (2 t), where p is the simple term. Optional: only
            methods that need the prox of the whole function use it.
        domain: True if the gradient is defined in the domain of the simple term alone. Then it is called nowhere else:
            points outside are projected first, and it is examined only as far as points of the domain show something.
            L must be given.

    Attributes:
        accuracy: the number; NaN if unknown, 0.0 if ``rounding`` bounds the whole error.
        rounding: the function, or None.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> g = sp.Smooth(lambda x: x + np.tanh(x), mu=1.0, L=2.0)
        >>> 3 * g + sp.Quadratic(2.0)
        Smooth(mu=5, L=8)
    """

    __array_ufunc__ = None  # makes NumPy leave np.float64(3) * g to __rmul__
    before_term: Smooth | None = None  # the function without its simple term, if that was added by ``+``
    sources: tuple[SourceData, ...] = ()  # the arrays from which mu was computed
    _proven_L: Callable[[], float | None] | None = None  # computes ``proven_L``, which may take time
    has_observed_mu: bool = False  # whether a run has refuted the mu that was given, and found this one
    examined: Any = None  # the points at which runs have examined it, for later runs (see ``problems.examined_points``)

    def __init__(
        self,
        grad: Gradient,
        *,
        mu: float | None,
        L: float | None,
        value: Value | None = None,
        prox: Prox | None = None,
        dim: int | None = None,
        dtype: Any = None,
        space: Space | None = None,
        quadratic: bool = False,
        hessian: Hessian | None = None,
        hvp: HessianProduct | None = None,
        hessian_lipschitz: float | HessianChange | None = None,
        second_order: Callable[[Array], Smooth] | None = None,
        restrict: Restrict | None = None,
        trusted: bool = False,
        accuracy: float | Rounding | None = None,
        rounding: Rounding | None = None,
        compensated: CompensatedGradient | None = None,
        simple: Simple | HasProx | None = None,
        prox_of_sum: Prox | None = None,
        domain: bool = False,
    ) -> None:
        name = type(self).__name__
        refuse_other_than_functions(
            name,
            grad=grad,
            value=value,
            prox=prox,
            hessian=hessian,
            hvp=hvp,
            second_order=second_order,
            restrict=restrict,
            rounding=rounding,
            compensated=compensated,
            prox_of_sum=prox_of_sum,
        )
        self.grad, self.value = grad, value
        self.has_prox = prox is not None
        self.prox: Prox = partial(_no_prox, type(self).__name__) if prox is None else prox
        # An unknown constant is NaN; so is every sum and product with an unknown constant.
        self.L = math.nan if L is None else as_nonnegative(L, f"L of {name}", UNKNOWN)
        self.mu = math.nan if mu is None else as_convexity(mu, self.L, f"mu of {name}")
        if not is_recording() and self.mu > self.L:
            raise ProblemError(f"L = {self.L:.6g} of {name} is below mu = {self.mu:.6g}; expected mu <= L")
        self.dim = None if dim is None else as_count(dim, f"dim of {name}")
        self.space = Space(np, as_dtype(dtype, name)) if space is None and dtype is not None else space
        self.quadratic = as_flag(quadratic, f"quadratic of {name}")
        self.hessian, self.hvp, self.second_order = as_hessian(hessian, name, trusted), hvp, second_order
        self.hessian_lipschitz = as_lipschitz(hessian_lipschitz, f"hessian_lipschitz of {name}")
        self.restrict = restrict
        self.trusted = as_flag(trusted, f"trusted of {name}")
        self.accuracy, bounds = as_accuracy(accuracy, name)
        if bounds is not None and rounding is not None:
            raise ProblemError(f"{name} was given both rounding and a function as accuracy; expected one of them")
        self.rounding: Rounding | None = as_program(rounding) if bounds is None else bounds
        self.compensated = compensated
        self.simple: Simple | None = None if simple is None else as_simple(simple, f"simple of {name}")
        self.prox_of_sum = prox_of_sum
        self.domain = as_flag(domain, f"domain of {name}")
        self.before_term = None

    @classmethod
    def from_value(
        cls, fun: Callable[[Any], Any], *, mu: float | None, L: float | None, dim: int | None = None
    ) -> Smooth:
        """A function that is given by its value, written in PyTorch or JAX; the library differentiates it.

        Args:
            fun: x -> value at x, of tensors or JAX arrays.
            mu, L, dim: as in the class.
        """
        return Smooth(Differentiated(fun), mu=mu, L=L, value=lambda x: float(detached(fun(x))), dim=dim)

    def replace(self, **changes: Any) -> Smooth:
        """A copy with some of the constructor's arguments changed, and everything else kept.

        ``trusted`` is kept, unless grad, mu or L changes: new ones are claims, unless ``trusted=True`` is given.
        ``accuracy``, ``rounding`` and ``compensated`` are kept, unless grad changes; ``**f.arithmetic`` keeps them for
        a new grad that computes the same numbers.

        The copy of a ready-made function has the same class if no function changes; otherwise it is a plain
        ``Smooth``, because its data may not belong to the new functions. A copy with a new simple term is a plain
        ``Smooth``, too. It has no ``restrict``, its ``prox`` is that of the function without the term, and
        ``prox_of_sum`` that of the function with the term.

        Example:
            >>> import saddlepoint as sp
            >>> sp.Quadratic(2.0).replace(mu=1.0)
            Quadratic(mu=1, L=2)
        """
        kept = {
            "grad": self.grad,
            "mu": known(self.mu),
            "L": known(self.L),
            "value": self.value,
            "prox": self.prox if self.has_prox else None,
            "dim": self.dim,
            "space": None if "dtype" in changes else self.space,
            "quadratic": self.quadratic,
            "hessian": self.hessian,
            "hvp": self.hvp,
            "hessian_lipschitz": self.hessian_lipschitz,
            "second_order": self.second_order,
            "restrict": self.restrict,
            "trusted": self.trusted and CLAIMS.isdisjoint(changes),
            "simple": self.simple,
            "domain": self.domain,
            "prox_of_sum": None if "simple" in changes else self.prox_of_sum,
            **({} if "grad" in changes else self.arithmetic),
        }
        if changes.get("simple") is not None:  # what is known of the function alone is not true of the sum
            changes = {"prox": kept["prox"], "restrict": None} | changes
        if callable(changes.get("accuracy")):
            kept["rounding"] = None  # the function takes its place
        other = copy(self) if FUNCTIONS.isdisjoint(changes) else Smooth.__new__(Smooth)
        Smooth.__init__(other, **(kept | changes))
        other.sources = self.sources if other.trusted else ()
        if other.trusted and "L" not in changes and type(other) is Smooth:
            other._proven_L = partial(getattr, self, "proven_L")
        return other

    @property
    def arithmetic(self) -> dict[str, Any]:
        """The arguments of the constructor that say how accurately the gradient is computed."""
        return {"accuracy": known(self.accuracy), "rounding": self.rounding, "compensated": self.compensated}

    @property
    def proven_L(self) -> float | None:
        """A proven upper bound of the smoothness; None where L is a claim, or where only an estimate is known."""
        return None if self._proven_L is None else self._proven_L()

    @property
    def separable(self) -> bool:
        """Whether the function is known to be a sum of functions of single coordinates."""
        return self.restrict is not None

    def gradient_error(self, x: Array, p: Array, sizes: Callable[[Array], Any] = norm) -> Any:
        """A bound on the size of the error of p, the gradient at x as computed; infinite where nothing can be said.

        It is the size of ``rounding(x)`` plus a (|p| + L |x|) with a = ``accuracy``, or with two units of rounding if
        nothing was said of the accuracy.

        Args:
            x: the point.
            p: ``grad(x)``.
            sizes: a norm; for a batch, a function that returns an array with the norm of each block.

        Example:
            >>> import numpy as np, saddlepoint as sp
            >>> g, x = sp.Quadratic(np.array([1.0, 4.0])), np.array([3.0, 5.0])
            >>> 0.0 < g.gradient_error(x, g.grad(x)) < 1e-13
            True
        """
        return gradient_error(self, x, p, sizes)

    @property
    def dtype(self) -> Any:
        """The dtype of the function's own data; None if it has none."""
        return None if self.space is None else self.space.dtype

    def __call__(self, x: Array) -> float:
        """The value at x, that of a simple term included."""
        if self.value is None:
            raise ProblemError(f"this {type(self).__name__} was given no value; pass value= to have one")
        return self.value(x) if self.simple is None else self.value(x) + self.simple(x)

    def inside(self, x: Array) -> Array:
        """The point at which the gradient may be taken: x, or its projection if the gradient is defined only there."""
        if not self.domain or self.simple is None or self.simple.outside(x) == 0.0:
            return x
        return self.simple.project(x)

    def simple_prox(self, v: Array, t: float) -> Array:
        """The prox of the simple term, argmin_u t p(u) + |u - v|^2/2; v itself if there is no such term."""
        return v if self.simple is None else self.simple.prox(v, t)

    @property
    def has_whole_prox(self) -> bool:
        """Whether the prox of the function together with its simple term is known."""
        return self.has_prox if self.simple is None else self.prox_of_sum is not None

    def whole_prox(self, v: Array, t: float) -> Array:
        """The prox of the function together with its simple term."""
        if self.simple is None:
            return self.prox(v, t)
        return _no_prox(type(self).__name__, v, t) if self.prox_of_sum is None else self.prox_of_sum(v, t)

    @property
    def without_term(self) -> Smooth:
        """The function without its simple term."""
        if self.simple is None:
            return self
        return self.replace(simple=None) if self.before_term is None else self.before_term

    def __add__(self, other: Smooth | Simple | HasProx) -> Smooth:
        if not isinstance(other, Smooth):
            return self._with_simple(as_simple(other)) if isinstance(other, HasProx) else NotImplemented
        f, g = self, other
        if f.simple is not None or g.simple is not None:
            total = f.without_term + g.without_term
            for term in (f.simple, g.simple):
                total = total if term is None else total._with_simple(term)
            return total
        F, G = f.hessian, g.hessian
        restrict_f, restrict_g = f.restrict, g.restrict
        if f.dim is not None and g.dim is not None and f.dim != g.dim:
            raise ProblemError(f"cannot add a function of {f.dim} variables and one of {g.dim}")
        total = Smooth(
            partial(_sum, f.grad, g.grad),
            mu=known(add_down(f.mu, g.mu)),
            L=known(f.L + g.L),
            value=None if f.value is None or g.value is None else partial(_sum, f.value, g.value),
            prox=f._prox_of_sum(g) or g._prox_of_sum(f),
            dim=f.dim if g.dim is None else g.dim,
            space=common_space({"the one function": f, "the other": g}),
            quadratic=f.quadratic and g.quadratic,
            hessian=None if F is None or G is None else partial(_sum, F, G),
            hessian_lipschitz=partial(change_of_sum, f, g),
            second_order=partial(model_of_sum, f, g),
            restrict=None if restrict_f is None or restrict_g is None else partial(_sum, restrict_f, restrict_g),
            trusted=f.trusted and g.trusted,
            domain=f.domain or g.domain,
            accuracy=known(accuracy_of_sum(f, g)),
            rounding=rounding_of_sum(f, g),
            compensated=compensated_of_sum(f, g),
        )
        total.sources = f.sources + g.sources
        total._proven_L = partial(proven_L_of_sum, f, g)
        return total

    def _with_simple(self, term: Simple) -> Smooth:
        """The sum of this function and a simple one, as a plain ``Smooth``."""
        both = term if self.simple is None else self.simple + term
        plain = self if self.before_term is None else self.before_term
        total = plain.replace(simple=both, prox_of_sum=plain._prox_with(both))
        total.before_term = plain
        return total

    __radd__ = __add__

    def __mul__(self, factor: float) -> Smooth:
        c = as_nonnegative(factor, "the factor of a function")
        if not is_recording() and c == 0.0:
            raise ProblemError("a function can only be multiplied by a positive number; got 0")
        return affine(self, weight=c)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        size = f"n={self.dim}, " if self.dim is not None else ""
        mu, L = ("?" if math.isnan(constant) else f"{constant:.6g}" for constant in (self.mu, self.L))
        return f"{type(self).__name__}({size}mu={mu}, L={L})"

    def _prox_of_sum(self, other: Smooth) -> Prox | None:
        """The prox of self + other, where it follows from the prox of other; None elsewhere."""
        return None

    def _prox_with(self, term: Simple) -> Prox | None:
        """The prox of self + term, where it follows from the prox of the term; None elsewhere."""
        return None


def _no_prox(name: str, v: Array, t: float) -> Array:
    """Raise a ProblemError. It is no method: a bound method would keep its object until a garbage collection."""
    raise ProblemError(f"this {name} has no prox; give prox= to Smooth, or use a gradient method")


def _sum(f: Callable[[Any], Any], g: Callable[[Any], Any], x: Any) -> Any:
    """The sum f(x) + g(x). It is not a lambda, so that sums of functions can be sent to other processes."""
    return f(x) + g(x)


def plus_identity(matrix: Any, c: float) -> Any:
    """The matrix plus c I, sparse if the matrix is."""
    n = matrix.shape[0]
    return matrix + (c * eye_array(n) if issparse(matrix) else c * np.eye(n))
