"""Second derivatives of functions: the quadratic function u -> <u, H(x) u>/2, and how much H changes near x.

Derivatives of a saddle point are solutions of problems with such functions in the place of g and h.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array, is_array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.functions.autodiff import differentiated_gradient

if TYPE_CHECKING:
    from saddlepoint.parts.functions.smooth import Smooth

UP = 1.0 + 2.0**-45  # factor that exceeds the relative rounding of a product of a few numbers


class CheckedHessian:
    """A Hessian that a caller wrote: its answers must be square matrices with a row for each variable.

    Args:
        hessian: x -> the matrix.
        name: the class of the function, for the error.
    """

    def __init__(self, hessian: Callable[[Array], Any], name: str) -> None:
        self.hessian, self.name = hessian, name

    def __call__(self, x: Array) -> Any:
        """The matrix at x; a ProblemError if it is none, or of another shape."""
        H, n = self.hessian(x), int(x.shape[0])
        if not (is_array(H) or issparse(H)) or tuple(H.shape) != (n, n):
            found = f"an array of shape {tuple(H.shape)}" if is_array(H) or issparse(H) else short_repr(H)
            raise ProblemError(
                f"hessian of {self.name} returned {found} for {n} variables; expected a {n} x {n} array, or a SciPy "
                "sparse array (scipy.sparse.diags_array(d) for a diagonal d)"
            )
        return H

    def __eq__(self, other: object) -> bool:
        """Whether the other one is the same function, with these checks or without."""
        return bool(self.hessian == (other.hessian if isinstance(other, CheckedHessian) else other))

    def __hash__(self) -> int:
        return hash(self.hessian)


class CheckedProduct:
    """The function u -> H(x) u by the ``hvp`` that a caller gave: its answers must be vectors like u."""

    def __init__(self, hvp: Callable[[Array, Array], Array], x: Array) -> None:
        self.hvp, self.x = hvp, x

    def __call__(self, u: Array) -> Array:
        """The product with u; a ProblemError if it is no vector like u."""
        product = self.hvp(self.x, u)
        if getattr(product, "shape", None) != u.shape:
            raise ProblemError(
                f"hvp of Smooth returned {short_repr(product)} for a vector of shape {tuple(u.shape)}; expected the "
                "product of the Hessian with it, an array of the same shape"
            )
        return product


def as_hessian(hessian: Callable[[Array], Any] | None, name: str, trusted: bool) -> Callable[[Array], Any] | None:
    """The Hessian of a function, whose answers are checked unless they are those of this library."""
    if hessian is None or trusted or isinstance(hessian, CheckedHessian):
        return hessian
    return CheckedHessian(hessian, name)


def quadratic_model(f: Smooth, x: Array) -> Smooth:
    """The function u -> <u, H u>/2, where H is the Hessian of f at x; a simple term of f is left out.

    The products with H come from a ready-made function, from ``hvp`` or ``hessian`` of the function, or from automatic
    differentiation of its gradient by PyTorch or JAX. A ProblemError says so if there is none of these.
    """
    f = f.without_term
    if f.second_order is not None:
        return f.second_order(x)
    hessian = None
    if f.hvp is not None:
        times: Callable[[Array], Array] = CheckedProduct(f.hvp, x)
    elif f.quadratic:
        times, hessian = Difference(f.grad, f.grad(0.0 * x)), f.hessian
    elif f.hessian is not None:
        H = f.hessian(x)
        times, hessian = partial(_product, H), partial(constant_matrix, H)
    else:
        found = differentiated_gradient(f.grad, x)
        if found is None:
            raise ProblemError(
                f"the second derivatives of {f!r} are not known: it is given by its gradient alone, which cannot be "
                "differentiated automatically. Give hvp= or hessian= to Smooth, or write its gradient in PyTorch or JAX"
            )
        times = found
    return f.replace(
        grad=times,
        value=None,
        prox=None,
        hessian=hessian,
        hvp=None,
        hessian_lipschitz=0.0,
        second_order=None,
        restrict=None,
        quadratic=True,
        domain=False,
        trusted=f.trusted,
    )


def hessian_change(f: Smooth, x: Array, u: Array, reach: float) -> float:
    """A bound on |(H(x') - H(x)) u| for all x' up to this distance from x, H the Hessian; infinite if none is known."""
    f = f.without_term
    if f.quadratic or f.hessian_lipschitz == 0.0:
        return 0.0
    if f.hessian_lipschitz is None:
        return math.inf
    if callable(f.hessian_lipschitz):
        found = f.hessian_lipschitz(x, u, reach)
        try:
            bound = float(found)
        except (TypeError, ValueError):
            bound = -1.0
        if bound < 0.0:
            raise ProblemError(
                f"hessian_lipschitz of {type(f).__name__} returned {short_repr(found)}; expected a number that is not "
                "negative, a bound on the change of H u"
            )
        return bound
    length = norm(u)
    return 0.0 if length == 0.0 else UP * f.hessian_lipschitz * reach * length


def model_of_sum(f: Smooth, g: Smooth, x: Array) -> Smooth:
    """The quadratic model of f + g."""
    return quadratic_model(f, x) + quadratic_model(g, x)


def steepness(f: Smooth) -> float:
    """The bound of the smoothness of f that proofs take: a proven one, or L as the caller gave it."""
    L = f.proven_L
    return f.L if L is None else L


def proven_L_of_sum(f: Smooth, g: Smooth) -> float | None:
    """A proven bound of the smoothness of f + g; None if there is none of f or of g."""
    a, b = f.proven_L, g.proven_L
    return None if a is None or b is None else UP * (a + b)


def proven_L_of(f: Smooth, factor: float = 1.0, more: float = 0.0) -> float | None:
    """A proven bound of the smoothness of a function whose curvatures are at most ``factor`` times those of f, plus
    ``more``; None if there is none of f.
    """
    L = f.proven_L
    return None if L is None else UP * (factor * L + more)


def change_of_sum(f: Smooth, g: Smooth, x: Array, u: Array, reach: float) -> float:
    """The bound on the change of the Hessian of f + g."""
    return UP * (hessian_change(f, x, u, reach) + hessian_change(g, x, u, reach))


class Difference:
    """The function u -> grad(u) - constant."""

    def __init__(self, grad: Callable[[Array], Array], constant: Array) -> None:
        self.grad, self.constant = grad, constant

    def __call__(self, u: Array) -> Array:
        """The difference at u."""
        return self.grad(u) - self.constant


def _product(H: Any, u: Array) -> Array:
    found: Array = H @ u
    return found


def constant_matrix(H: Any, u: Array) -> Any:
    """The matrix H, whatever u is; a quadratic function has such a Hessian."""
    return H
