r"""Gradients with respect to the parameters of simple terms, such as the weight of an l1 norm or the bounds of a box.

The solution satisfies x = prox(x - t w, t) for every t > 0, with w = grad g(x) + A y, and likewise y. Differentiating
this equation with respect to a parameter theta of p alone shows that the gradient of <v, z*> is

    <lambda, d prox(x - t w, t)/d theta>    with    lambda = u/t + v - J' u,

where u solves the adjoint system on the face of the solution, J is the Jacobian of the field, and the argument of prox
is fixed. The number does not depend on t. A small t keeps entries that are just off a bound off it.
"""

from __future__ import annotations

from typing import Any

from saddlepoint.ground.arrays import concat
from saddlepoint.parts.simple.ball import Ball
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.blocks import Blocks
from saddlepoint.parts.simple.l1_box import L1Box

SMALL = 2.0**-10  # t in units of 1/L


def prox_argument(p: Simple, x: Any, w: Any, t: Any) -> Any:
    """A vector v with prox(v, t) = x, on the face of x, for a solution x.

    Args:
        p: the simple term.
        x: the solution.
        w: the gradient of the smooth function there, with the product with A.
        t: a positive number.
    """
    if isinstance(p, Ball):
        return prox_argument(p.ball, x, w, t)
    if isinstance(p, Blocks):
        parts = p.parts(int(x.shape[0]))
        return concat([prox_argument(part, x[rows], w[rows], t) for rows, part in parts])
    if isinstance(p, L1Box):  # the exact slope of the face: w is rounded
        return x + t * p.subgradient(x, -w)
    return x - t * w
