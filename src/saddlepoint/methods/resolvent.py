"""DIPPA's second proximal step: ways to find (x, y) with x + a A y = p and y - a A' x = q.

In the paper's terms it is the saddle point of |x - p|^2/(2a) + <x, A y> - |y - q|^2/(2a). With
M = [[I, a A], [-a A', I]] it is the linear system M (x, y) = (p, q), and |M^-1| <= 1.

Each way starts from a point (x, y) whose products a A y and a A' x are known, and returns the new point with its
residual (p, q) - M (x, y). The residual gives the products at the new point at no extra cost:
a A y = p - x - rx and a A' x = y - q + ry.

Simple terms join this step: then it is to find (x, y) and subgradients s and r of the terms there with
x + a (A y + s) = p and y - a (A' x - r) = q, which ``by_proximal_apfb`` does. The residual is what is missing in these
two equations.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from saddlepoint.ground.arrays import Array, eps_of
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.parts.coupling import Coupling, jax_cg
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.apfb import apfb_steps, floored, proximal_apfb_steps
from saddlepoint.theory.dippa import cg_steps

SMALL = 64  # smaller dimension of A up to which A is factorised
REFRESH = 16  # number of steps after which A y and A' x are computed anew, so that rounding errors do not add up
HARDEST = 1e17  # factor by which no residual can be reduced further, because of rounding


class Solution(NamedTuple):
    """A point and its residual (p, q) - M (x, y), where 0.0 means the zero vector; and the steps taken on a GPU."""

    x: Array
    y: Array
    rx: Array | float
    ry: Array | float
    steps: int = 0


class Start(NamedTuple):
    """A point and its products a A y and a A' x."""

    x: Array
    y: Array
    aAy: Array
    aAtx: Array


def _mirrored(start: Start) -> Start:
    """The start with the players exchanged: A becomes A', and a becomes -a."""
    return Start(start.y, start.x, -start.aAtx, -start.aAy)


def by_factor(A: Coupling, p: Array, q: Array, a: float, start: Start) -> Solution:
    """Solve by a factorisation of I + a^2 A'A, which the coupling keeps, and one product each way.

    The unknown is the change from the start. The factorisation squares A, and its errors are relative to that change.
    """
    if A.shape[0] < A.shape[1]:
        y, x, ry, rx, _ = by_factor(A.T, q, p, -a, _mirrored(start))
        return Solution(x, y, rx, ry)
    x, y = p - start.aAy, start.y
    dy = A.normal_solver(a)(q - y + a * A.tmul(x))
    return Solution(x - a * A.mul(dy), y + dy, 0.0, 0.0)


def by_cg(
    A: Coupling,
    p: Array,
    q: Array,
    a: float,
    start: Start,
    tol: float = 0.0,
    steps: int | None = None,
    relative: float = 0.0,
    origin: tuple[Array, Array] | None = None,
    sure: int = 0,
) -> Solution:
    """Conjugate gradients on the smaller of I + a^2 A'A and I + a^2 A A', until the residual is at most tol.

    With x = p - a A y eliminated the system is (I + a^2 A'A) y = q + a A' p. It takes one product with A' at the
    start and one product each way in a step; exactly ``steps`` steps if given. With an ``origin`` the residual may
    also be ``relative`` times the distance from the origin. On a GPU, at least ``sure`` steps are taken then, because
    no numbers are asked for before.
    """
    if A.shape[0] < A.shape[1]:
        other = None if origin is None else (origin[1], origin[0])
        found = by_cg(A.T, q, p, -a, _mirrored(start), tol, steps, relative, other, sure)
        return Solution(found.y, found.x, found.ry, found.rx, found.steps)
    x, y = p - start.aAy, start.y
    r = q - y + a * A.tmul(x)
    if tol == 0.0 and steps is None and origin is not None:
        vectors = _on_device(a, x, y, r, origin)
        if vectors is not None:
            return _with_few_waits(A, vectors, relative, sure)
    d, rr = r, inner(r, r)
    if steps is None:
        steps = cg_steps(a * A.norm, math.sqrt(rr) / tol if tol > 0.0 else HARDEST) if tol + relative > 0.0 else 0
    for _ in range(steps):
        if rr <= tol * tol:
            break
        if origin is not None:
            dx, dy = x - origin[0], y - origin[1]
            if rr <= relative * relative * (inner(dx, dx) + inner(dy, dy)):
                break
        t, u = A.through(d)
        Md = d + (a * a) * u
        curvature = inner(d, Md)
        if curvature == 0.0:  # the residual is so small that its square underflows
            break
        step = rr / curvature
        x, y, r = x - (a * step) * t, y + step * d, r - step * Md
        before, rr = rr, inner(r, r)
        d = r + (rr / before) * d
    return Solution(x, y, 0.0, r)


def _on_device(a: float, x: Array, y: Array, r: Array, origin: tuple[Array, Array]) -> Any:
    """The vectors of a run where a step takes few kernels: PyTorch on an NVIDIA GPU, and JAX; None elsewhere."""
    if getattr(x, "is_cuda", False):
        from saddlepoint.parts.coupling import triton_cg

        if triton_cg.Vectors.can_hold(x, y, r, *origin):
            return triton_cg.Vectors(a, x, y, r, origin)
    if jax_cg.Vectors.can_hold(x, y, r, *origin):
        return jax_cg.Vectors(a, x, y, r, origin)
    return None


def _with_few_waits(A: Coupling, vectors: Any, relative: float, sure: int) -> Solution:
    """The same until the residual is ``relative`` times the distance from the origin.

    The first ``sure`` steps are taken without a wait for the GPU, and each later one after a wait.
    """
    most = cg_steps(vectors.a * A.norm, HARDEST)
    for k in range(most):
        if k >= sure:
            numbers = vectors.read()
            if numbers.curvature == 0.0 or not numbers.rr > relative * relative * numbers.moved:
                break
        vectors.step(*A.through(vectors.d))
    else:
        k = most
    return Solution(vectors.x, vectors.y, 0.0, vectors.r, k)


def by_apfb(A: Coupling, p: Array, q: Array, a: float, start: Start, tol: float, steps: int | None = None) -> Solution:
    """Algorithm APFB, the paper's choice, until the residual is at most tol; exactly ``steps`` steps if given.

    Here gamma = sigma = 1/|A| and both proximal operators are affine, so that a step is one call of ``through``:
    x_k = e + s A y_k, and A' x_k = A'(s A y_k + e) is what the next step extrapolates.
    """
    nu = floored(a * A.norm)
    c, theta = 1.0 / nu, nu / (1.0 + nu)  # c = gamma/a = sigma/a
    x, y, aAtx = start.x, start.y, start.aAtx
    before = aAtx
    rx, ry = p - x - start.aAy, q - y + aAtx
    residual = math.hypot(norm(rx), norm(ry))
    if steps is None:
        steps = apfb_steps(nu, (1.0 + nu * nu) * (residual / tol) * (residual / tol)) if tol > 0.0 else 0
    for _ in range(steps):
        if residual <= tol:
            break
        y = (1.0 / (1.0 + c)) * (y + c * (q + aAtx + theta * (aAtx - before)))
        e, s = (1.0 / (1.0 + c)) * (x + c * p), -c * a / (1.0 + c)
        Ay, Atx = A.through(y, s, e)
        x, before, aAtx = e + s * Ay, aAtx, a * Atx
        rx, ry = p - x - a * Ay, q - y + aAtx
        residual = math.hypot(norm(rx), norm(ry))
    return Solution(x, y, rx, ry)


def by_proximal_apfb(
    f: Saddle,
    p: Array,
    q: Array,
    a: float,
    start: tuple[Array, Array],
    tol: float = 0.0,
    steps: int | None = None,
    relative: float = 0.0,
    origin: tuple[Array, Array] | None = None,
) -> Solution:
    """Algorithm APFB with the prox of the simple terms of f, until the residual is at most tol.

    It takes exactly ``steps`` steps if given. With an ``origin`` the residual may also be ``relative`` times the
    distance from the origin. The subgradients are those of the two proximal steps: x = prox_{t p}(u) has the
    subgradient (u - x)/t. A step costs one product each way, and the start one product with A'.
    """
    nu = floored(a * f.norm)
    c, theta = 1.0 / nu, nu / (1.0 + nu)  # c = gamma/a = sigma/a
    b = 1.0 / (1.0 + c)
    t = a * c * b
    (x, y), rx, ry = start, 0.0 * p, 0.0 * q
    aAtx = a * f.A.tmul(x)
    before = aAtx
    least = 4.0 * eps_of(p) * (1.0 + nu) * math.hypot(norm(p), norm(q))  # about the rounding of a residual
    most = 1 if steps is None else steps
    k = 0
    while k < most:
        v = b * (y + c * (q + aAtx + theta * (aAtx - before)))
        y = f.h.simple_prox(v, t)
        aAy = a * f.A.mul(y)
        u = b * (x + c * (p - aAy))
        x = f.g.simple_prox(u, t)
        before, aAtx = aAtx, a * f.A.tmul(x)
        rx, ry = p - x - aAy - (1.0 + nu) * (u - x), q - y + aAtx - (1.0 + nu) * (v - y)
        k += 1
        if steps is not None:
            continue
        residual = math.hypot(norm(rx), norm(ry))
        allowed = tol if origin is None else max(tol, relative * math.hypot(norm(x - origin[0]), norm(y - origin[1])))
        allowed = max(allowed, least)
        if residual <= allowed:
            break
        if k == 1 and tol + relative > 0.0:
            most = 1 + proximal_apfb_steps(nu, residual / tol if tol > 0.0 else HARDEST)
    return Solution(x, y, rx, ry)
