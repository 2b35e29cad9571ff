r"""Recursive Hermitian/skew-Hermitian splitting, RHSS(k), for quadratic g and h.

Problem:    (G + S) z = -b, the condition F(z) = 0 for z = (x, y), where mu_x = mu_y = 1, G = diag(grad^2 g, grad^2 h),
            S = [[0, A], [-A', 0]] and c = |A|.
Recursion:  for (H + S) z = r, H = d I + e G, m = d + e and k levels, with t = (c/m)^(1/k), beta = 1/t^2, eta = t (2 t
            if k = 1) and P = m I + beta H:
            z = z + (eta P + H)^-1 (r - (H + S) z)       by conjugate gradients
            z = z + (eta P + S)^-1 (r - (H + S) z)       a system of the same kind, by k - 1 levels;
            where c <= m/2 instead z = z + H^-1 (r - (H + S) z), which converges by itself.
Guarantee:  a step with exact solves leaves max |eta - lam|/(eta + lam) of the error, lam the eigenvalues of P^-1 H;
            O~(sqrt(c^2 + (kappa_x + kappa_y) (1 + c^(1/k)))) queries for fixed k.
Reference:  Y. Wang and J. Li, Improved algorithms for convex-concave minimax optimization, NeurIPS 2020; Z.-Z. Bai,
            G. H. Golub and M. K. Ng, Hermitian and skew-Hermitian splitting methods, SIAM J. Matrix Anal. Appl. 2003.

A product with a Hessian is the difference of two gradients, of which one is known. The errors of the solves within a
step may be a share of what the step gains. The share is large at first; it is halved, down to what the proof asks for,
whenever a step gains less than half of what it should.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.methods.base import Method, Needs, int_option
from saddlepoint.methods.registry import register
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, unit_strength
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.dippa import cg_steps
from saddlepoint.theory.minimax_appa import reduction
from saddlepoint.theory.rhss import PROVEN, SLACK, HssGoal, rhss_contraction, rhss_goal, rhss_parameters, rhss_steps
from saddlepoint.theory.table1 import lower_order


@dataclass(frozen=True)
class Pair:
    """The vector z = (x, y)."""

    x: Array
    y: Array

    def __add__(self, other: Pair) -> Pair:
        return Pair(self.x + other.x, self.y + other.y)

    def __sub__(self, other: Pair) -> Pair:
        return Pair(self.x - other.x, self.y - other.y)

    def __rmul__(self, factor: float) -> Pair:
        return Pair(factor * self.x, factor * self.y)

    @property
    def size(self) -> float:
        """The norm of z."""
        return math.hypot(norm(self.x), norm(self.y))


class Part(NamedTuple):
    """A part of a solution, with its residual."""

    z: Pair
    Sz: Pair
    left: Pair  # the residual that is left
    weight: float  # the norm of the first half of the step that found it, in which steps are contractions


class RHSSState(NamedTuple):
    """The points x and y, and the data of the inner solves."""

    x: Array
    y: Array
    b: Pair  # the gradients at 0
    weight: float  # the weight of the previous step
    slack: float  # share of a step's gain that the errors of its inner solves may be


@register
@dataclass(frozen=True)
class RHSS(Method):
    """Recursive Hermitian/skew-Hermitian splitting."""

    k: int = int_option(2, "levels of the recursion", 1, 20)

    needs: ClassVar[Needs] = Needs(quadratic=True)
    complexity: ClassVar[Complexity] = Complexity("c + sqrt(kx + ky)", lower_order)
    works: ClassVar[tuple[str, ...]] = ("wang2020", "bai2003")

    def normal_form(self, f: Saddle) -> View:
        """The problem in the variables where mu_x = mu_y = 1."""
        return unit_strength(f)

    def init(self, f: Saddle, x: Array, y: Array) -> RHSSState:
        """The start (x, y), with the gradients at zero."""
        return RHSSState(x, y, Pair(f.g.grad(0.0 * x), f.h.grad(0.0 * y)), math.inf, SLACK)

    def step(self, f: Saddle, s: RHSSState) -> RHSSState:
        """One step on the whole system, from its true residual."""
        Fx, Fy = f.field(s.x, s.y)
        p = self.split(f, s, self.k, 0.0, 1.0, Pair(-1.0 * Fx, -1.0 * Fy))
        rate = 0.5 * (1.0 + self.contraction(f, self.k, 0.0, 1.0))
        slack = s.slack if p.weight <= rate * s.weight else max(0.5 * s.slack, PROVEN)
        return RHSSState(s.x + p.z.x, s.y + p.z.y, s.b, p.weight, slack)

    def split(self, f: Saddle, s: RHSSState, k: int, d: float, e: float, r: Pair) -> Part:
        """One step for (d I + e G + S) z = r from z = 0."""
        goal = rhss_goal(k, d, e, f.coupling, max(f.kappa_x, f.kappa_y), s.slack)
        m, eta, beta, _ = goal
        scale = 1.0 + eta * beta  # eta P + H = eta m I + scale H
        x, qx = conjugate_gradients(f.g, s.b.x, eta * m + scale * d, scale * e, r.x, goal)
        y, qy = conjugate_gradients(f.h, s.b.y, eta * m + scale * d, scale * e, r.y, goal)
        z, q = Pair(x, y), Pair(qx, qy)
        Ay, Atx = f.A.both(x, y)
        Sz = Pair(Ay, -1.0 * Atx)
        left = r - (1.0 / scale) * (r - q - (eta * m) * z) - Sz  # H z follows from (eta P + H) z = r - q
        zz, zr = inner(x, x) + inner(y, y), inner(x, r.x) + inner(y, r.y)
        if eta == 0.0:
            return Part(z, Sz, left, goal.weight(zz, zr))
        p = self.solve(f, s, k - 1, eta * (m + beta * d), eta * beta * e, left, goal.size(zz, zr))
        Hz = (1.0 / beta) * ((1.0 / eta) * (left - p.left - p.Sz) - m * p.z)  # H z follows likewise from (eta P + S) z
        return Part(z + p.z, Sz + p.Sz, left - Hz - p.Sz, goal.weight(zz, zr))

    def solve(self, f: Saddle, s: RHSSState, k: int, d: float, e: float, r: Pair, size: float) -> Part:
        """Take steps for (d I + e G + S) z = r until the residual is at most ``size``, or would be without rounding."""
        total = Part(0.0 * r, 0.0 * r, r, 0.0)
        kappa = max(f.kappa_x, f.kappa_y)
        for _ in range(rhss_steps(self.contraction(f, k, d, e), kappa, reduction(r.size, size))):
            if total.left.size <= size:
                break
            p = self.split(f, s, k, d, e, total.left)
            total = Part(total.z + p.z, total.Sz + p.Sz, p.left, p.weight)
        return total

    def contraction(self, f: Saddle, k: int, d: float, e: float) -> float:
        """The factor by which an exact step reduces the error."""
        return rhss_contraction(k, d, e, f.coupling, max(f.kappa_x, f.kappa_y))

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The constants eta, beta and the contraction on the outermost level."""
        eta, beta = rhss_parameters(self.k, 1.0, f.coupling)
        return {"eta": eta, "beta": beta, "contraction": self.contraction(f, self.k, 0.0, 1.0)}


def conjugate_gradients(f: Smooth, b: Array, d: float, e: float, r: Array, goal: HssGoal) -> tuple[Array, Array]:
    """Solve (d I + e grad^2 f) z = r until the goal is met, or would be without rounding; return z and the residual."""
    z, q, p, qq = 0.0 * r, r, r, inner(r, r)
    spread = e * (f.L - f.mu) / (d + e * f.mu)  # the condition number minus 1
    for _ in range(cg_steps(math.sqrt(spread), 10.0 * (1.0 + spread) / goal.tol)):
        if math.sqrt(qq) <= goal.size(inner(z, z), inner(z, r)):
            break
        Mp = d * p + e * hessian_times(f, b, p)
        curvature = inner(p, Mp)
        if curvature <= 0.0:  # the residual is so small that its square underflows
            break
        step = qq / curvature
        z, q = z + step * p, q - step * Mp
        before, qq = qq, inner(q, q)
        p = q + (qq / before) * p
    return z, q


def hessian_times(f: Smooth, b: Array, v: Array) -> Array:
    """The Hessian of f times v: (grad f(t v) - b)/t with b = grad f(0), and t so large that rounding does no harm."""
    size, offset = norm(v), norm(b)
    t = offset / (f.mu * size) if size > 0.0 and offset > 0.0 else 1.0
    return (1.0 / t) * (f.grad(t * v) - b)
