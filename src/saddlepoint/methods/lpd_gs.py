r"""LPD-GS, the lifted primal-dual method in Gauss-Seidel order, whose bound is the best of all methods here.

Problem:    min_x max_y g(x) + <x, A y> - h(y); gt = g - mu_x/2 |x|^2, ht = h - mu_y/2 |y|^2.
Recursion:  y_{k+1} = (y_k + ty (A' x_k - v_k))/(1 + r),   w_{k+1} = (w_k + r x_k)/(1 + r),  u_{k+1} = grad gt(w_{k+1})
            yb = y_{k+1} + theta (y_{k+1} - y_k),          ub = u_{k+1} + theta (u_{k+1} - u_k)
            x_{k+1} = (x_k - tx (A yb + ub))/(1 + r),      q_{k+1} = (q_k + r yb)/(1 + r),   v_{k+1} = grad ht(q_{k+1}),
            tx = r/mu_x, ty = r/mu_y, theta = 1/(1 + r), r the root of r^2 N^2 = 1 + r,
            N = |[[c, sqrt(ky - 1)], [sqrt(kx - 1), 0]]|, c = |A|/sqrt(mu_x mu_y). With simple terms p and q, x_{k+1}
            is prox_{theta tx p} of the point above, and y_{k+1} is prox_{theta ty q}.
Guarantee:  mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 falls by 1/(1 + r) ~ 1 - 1/N a step, up to a constant
            (``lpd_gs_bound`` has the proof in short). On the chain of the lower bound it is 1 - 2/N; no method does
            better than 1 - 4/N there if it makes its four calls together, or than 1 - 12/N if, as here, a call may use
            the answer of the one before.
Reference:  It is the method of Chambolle and Pock (Math. Prog. 2016) applied to the lifted problem of
            K. Thekumparampil, N. He and S. Oh (AISTATS 2022), with the blocks (x, v) and (y, u) in turn.

The two products of a step are one call of ``through``: a step ends with the A' x that the next one begins with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method, Needs
from saddlepoint.methods.coupled_step import coupled_step
from saddlepoint.methods.lpd import lifted_weights
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.lpd import lpd_gs_bound, lpd_gs_rho
from saddlepoint.theory.table1 import lpd_gs_order


class LPDGSState(NamedTuple):
    """The points x_k and y_k, A' x_k, and the lifted points with their gradients."""

    x: Array
    y: Array
    Atx: Array
    w: Array
    q: Array
    u: Array
    v: Array


@register
@dataclass(frozen=True)
class LPDGS(Method):
    """The lifted primal-dual method, with one block updated after the other."""

    name: ClassVar[str] = "lpd-gs"
    needs: ClassVar[Needs] = Needs(smooth=False)
    complexity: ClassVar[Complexity] = Complexity("N <= sqrt(kx + ky + c^2)", lpd_gs_order)
    works: ClassVar[tuple[str, ...]] = ("chambolle2016", "thekumparampil2022")

    def init(self, f: Saddle, x: Array, y: Array) -> LPDGSState:
        """The start, with w = x and q = y; one gradient of each function and one product."""
        u, v = f.g.grad(x) - f.mu_x * x, f.h.grad(y) - f.mu_y * y
        return LPDGSState(x, y, f.A.tmul(x), x, y, u, v)

    def step(self, f: Saddle, s: LPDGSState) -> LPDGSState:
        """The state after one step: one gradient of each function, one product each way."""
        r = lpd_gs_rho(*f.numbers)
        tx, ty, theta = r / f.mu_x, r / f.mu_y, 1.0 / (1.0 + r)
        y = f.h.simple_prox(theta * (s.y + ty * (s.Atx - s.v)), theta * ty)
        w = theta * (s.w + r * s.x)
        u = f.g.grad(w) - f.mu_x * w
        yb, ub = y + theta * (y - s.y), u + theta * (u - s.u)
        p = theta * (s.x - tx * ub)
        x, Atx = coupled_step(f, p, theta * tx, yb)
        q = theta * (s.q + r * yb)
        v = f.h.grad(q) - f.mu_y * q
        return LPDGSState(x, y, Atx, w, q, u, v)

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one gradient of each function and one product each way."""
        return {"grad_g": 1, "grad_h": 1, "A": 1, "At": 1}

    def bound(self, f: Saddle, k: int) -> float:
        """The squared distance after k steps is at most (1 + r)^-k times a constant."""
        return lpd_gs_bound(*f.numbers, k)

    def weights(self, f: Saddle) -> dict[str, float]:
        """Points are weighted by sqrt(mu), gradients by 1/sqrt(L - mu)."""
        sx, sy, gx, gy = lifted_weights(f)
        return {"x": sx, "y": sy, "w": sx, "q": sy, "u": gx, "v": gy}

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The constants r and theta of the recursion."""
        r = lpd_gs_rho(*f.numbers)
        return {"rho": r, "theta": 1.0 / (1.0 + r)}
