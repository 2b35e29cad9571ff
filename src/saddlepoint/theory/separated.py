"""The separated method: which oracle is called in which loop, the steps of the loops, and the counts."""

from __future__ import annotations

import math

from saddlepoint.theory.lpd import MARGIN, lifted_bound, lifted_rho

SIMILAR = 16.0  # parts whose squared constants differ by no more than this factor share a loop
LONGEST = 1.0  # the longest step r; a longer one would hardly make the outer loop shorter


def explicit_parts(kx: float, ky: float, c: float) -> str:
    """The oracles of the outer loop, where kx >= ky: those with the smaller constants among sqrt(kx), sqrt(ky) and c.

    They are "A", "Ah", "h" or "gh". The other oracles are used to solve a subproblem in every outer step: with "A" one
    of g and h alone, with "Ah" one of g alone, with "h" a saddle problem of g and A, and with "gh" a linear system.
    """
    a, b, s = kx - 1.0, ky - 1.0, c * c
    if s <= b or (b <= 0.0 and s <= a):
        return "A"
    if s <= a:
        return "Ah" if s <= SIMILAR * b else "h"
    return "gh" if a <= SIMILAR * b or b <= 0.0 else "h"


def explicit_N(kx: float, ky: float, c: float) -> float:
    """The norm of the part of the lifted problem's coupling that the outer loop treats explicitly."""
    a, b = math.sqrt(max(kx - 1.0, 0.0)), math.sqrt(max(ky - 1.0, 0.0))
    return {"A": c, "Ah": math.hypot(c, b), "h": b, "gh": max(a, b)}[explicit_parts(kx, ky, c)]


def separated_rho(kx: float, ky: float, c: float) -> float:
    """The step r of the outer loop, the root of r^2 N^2 = 1 + r for its own N."""
    return min(lifted_rho(MARGIN * explicit_N(kx, ky, c)), LONGEST)


def separated_bound(kx: float, ky: float, c: float, k: int) -> float:
    """With exact inner solves mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 is at most this times its start.

    The proof of ``lpd_gs_bound`` holds if the blocks of the lifted problem that are solved for together (x with the
    dual of g, y with the dual of h, or x with y) are taken as one: the coupling that is left between the blocks has the
    norm ``explicit_N``.
    """
    return lifted_bound(kx, ky, separated_rho(kx, ky, c), k)


def separated_gradient_g_order(kx: float, ky: float, c: float) -> float:
    """Gradients of g: sqrt(kx), which is at least 1."""
    return math.sqrt(kx)


def separated_gradient_h_order(kx: float, ky: float, c: float) -> float:
    """Gradients of h: sqrt(ky), which is at least 1."""
    return math.sqrt(ky)


def separated_product_order(kx: float, ky: float, c: float) -> float:
    """Products: c, and one per outer step; the number of outer steps is the smallest of sqrt(kx), sqrt(ky) and c."""
    return max(1.0, c, min(math.sqrt(kx), math.sqrt(ky)))


def separated_order(kx: float, ky: float, c: float) -> float:
    """The largest of the three counts."""
    return max(math.sqrt(kx), math.sqrt(ky), c)


def relative_gradient_steps(kappa: float, accuracy: float) -> int:
    """Steps of AGD after which the gradient is sure to be at most ``accuracy`` times the distance from the start."""
    return 2 + math.ceil(2.0 * math.sqrt(kappa) * math.log(16.0 * kappa / accuracy))
