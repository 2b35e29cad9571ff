r"""Which coordinates of the solution are proven to be at a bound or at zero, and which are proven not to be.

Let w = grad g(x) + A y. A certificate bounds |x - x*| by e_x and |y - y*| by e_y, so that

    |w_i - w_i*|  <=  H_i e_x + |A_i| e_y + the error of w_i,

where H_i bounds the Lipschitz constant of the i-th partial derivative of g, and |A_i| is the length of the i-th row of
A. The solution satisfies 0 = w* + s* with a subgradient s* of the simple term at x*. Its entries show where x* is:
an l1 norm with the weight 2 has |s_i*| < 2 only at x_i* = 0. Every simple function has the rule for its own kind.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.parts.functions.partial_slopes import partial_slopes
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.residuals import Lengths, Query
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.certificate import Certificate

UP = 1.0 + 2.0**-45  # factor that exceeds the relative rounding of the bounds below

Supports = tuple[Array | None, Array | None]


def proven_support(f: Saddle, x: Array, y: Array, proof: Certificate) -> Supports:
    """What is proven about the coordinates of the solution, for x and for y: values of ``Support`` in arrays of NumPy.

    It takes one query of the problem. A player without a simple term has None.

    Args:
        f: the problem.
        x, y: a point.
        proof: its certificate.
    """
    if not f.has_simple:
        return None, None
    query = f.gradients_and_products(x, y)
    return support_by_query(f, query, f.residuals(query), proof)


def support_by_query(f: Saddle, query: Query, residuals: Lengths, proof: Certificate) -> Supports:
    """The supports of ``proven_support`` from a query and its residuals; at least one player has a simple term."""
    _, _, error_x, error_y = residuals
    e_x, e_y = proof.distance_x, proof.distance_y
    with np.errstate(all="ignore"):
        of_x = of_y = None
        if f.g.simple is not None:
            reach = _reach(f, "g", e_x) + _product(f.A.row_lengths(), e_y) + float(error_x) + proof.noise_x
            of_x = f.g.simple.support(query.x, query.gx + query.Ay, e_x, UP * reach)
        if f.h.simple is not None:
            reach = _reach(f, "h", e_y) + _product(f.A.T.row_lengths(), e_x) + float(error_y) + proof.noise_y
            of_y = f.h.simple.support(query.y, query.hy - query.Atx, e_y, UP * reach)
    return of_x, of_y


def _reach(f: Saddle, name: str, distance: float) -> Any:
    """Bounds on the changes of the partial derivatives of g or h over this distance; infinite if L is an estimate."""
    function: Smooth = getattr(f, name)
    is_estimated = name in f.estimated or math.isnan(function.L)
    return _product(math.inf if is_estimated else partial_slopes(function), distance)


def _product(slopes: Any, distance: float) -> Any:
    """The product, which is 0 where a slope is 0, even if the distance is infinite."""
    return np.where(np.asarray(slopes) == 0.0, 0.0, np.asarray(slopes) * distance)
