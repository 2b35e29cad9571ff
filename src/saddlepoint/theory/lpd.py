"""The lifted primal-dual methods: LPD, its Gauss-Seidel form LPD-GS, and LPD-slide.

In the lifted problem min_{x,v} max_{y,u} mu_x/2 |x|^2 + ht*(v) + <x, u> + <x, A y> - <v, y> - mu_y/2 |y|^2 - gt*(u),
where gt = g - mu_x/2 |x|^2 and ht = h - mu_y/2 |y|^2, one linear map couples the two players. Its norm, in the metric
of the two functions, is N, which is the constant of the lower bound as well (see ``lower``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.theory.certificate import distance_bound
from saddlepoint.theory.counts import countable
from saddlepoint.theory.gradient import field_lipschitz
from saddlepoint.theory.lower import chain_N

SMALLEST = 1e-3  # least norm that is used, so that steps stay finite where the norm is 0
MARGIN = 1.01  # factor on the norm N; with the factor 1 the proof would bound y but not x


def lifted_rho(N: float) -> float:
    """The root of rho^2 N^2 = 1 + rho: the step that the norm N of the lifted coupling allows."""
    N = max(N, SMALLEST)
    return (1.0 + math.hypot(1.0, 2.0 * N)) / (2.0 * N) / N


def lpd_gs_rho(kx: float, ky: float, c: float) -> float:
    """LPD-GS: the step, from N with a margin of one per cent; theta = 1/(1 + rho)."""
    return lifted_rho(MARGIN * chain_N(kx, ky, c))


def lpd_gs_bound(kx: float, ky: float, c: float, k: int) -> float:
    """LPD-GS, k >= 1: mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 is at most this times its start.

    With B1, B2 the Bregman distances of the blocks Z = (x, v) and W = (y, u), and K the lifted coupling,
    E_k = (1 + r) (B1(Z*, Z_k) + B2(W*, W_{k+1})) - <K(Z_k - Z*), W_{k+1} - W_k> + B2(W_{k+1}, W_k) falls by 1/(1 + r)
    a step. It starts below (1 + r + sqrt(1 + r)) (B1 + B2), and B1 + B2 <= max(kx, ky)/(2 r) times the start; and
    the margin in N keeps a share 1 - 1/MARGIN^2 of it that is |x_k - x*|^2 and |y_k - y*|^2 themselves.
    """
    return lifted_bound(kx, ky, lpd_gs_rho(kx, ky, c), k)


def lifted_bound(kx: float, ky: float, r: float, k: int) -> float:
    """The bound of ``lpd_gs_bound`` for the step r; it is 1 for k = 0."""
    return 1.0 if k == 0 else _lifted_constant(kx, ky, r) * (1.0 + r) ** (1 - k)


def _lifted_constant(kx: float, ky: float, r: float) -> float:
    """The constant before (1 + r)^(1-k) in ``lifted_bound``."""
    return max(kx, ky) * (1.0 + r + math.sqrt(1.0 + r)) / (1.0 - MARGIN**-2)


def lpd_gs_steps(kx: float, ky: float, c: float, reduction: float) -> int:
    """A number of steps k for which ``lpd_gs_bound`` is at most ``reduction``."""
    return _lpd_gs_steps(kx, ky, c, math.log(reduction))


def _lpd_gs_steps(kx: float, ky: float, c: float, log_reduction: float) -> int:
    excess = max(math.log(lpd_gs_bound(kx, ky, c, 1)) - log_reduction, 0.0)
    return 1 + math.ceil(countable(excess / math.log1p(lpd_gs_rho(kx, ky, c))))


def lpd_gs_calls(kx: float, ky: float, c: float, Fx: float, Fy: float, mu_x: float, mu_y: float, tol: float) -> float:
    """LPD-GS: calls of each oracle after which the certified |x - x*| + |y - y*| is sure to be at most ``tol``.

    Args:
        Fx, Fy: the norms of the field at the start, which bound the distance to the solution there.
    """
    start = distance_bound(mu_x, mu_y, Fx, Fy)
    if not 0.0 < start < math.inf:
        return 1.0 if start == 0.0 else math.inf
    # The certificate is at most sqrt(1/mu_x + 1/mu_y) l times the weighted distance, l the Lipschitz constant.
    reduction = math.log(tol) - math.log(field_lipschitz(kx, ky, c)) - math.log(start)
    return 1.0 + _lpd_gs_steps(kx, ky, c, 2.0 * reduction)


class LpdParameters(NamedTuple):
    """The steps mu_x tx and mu_y ty, the weights sx and sy of the new point in w and q, and theta."""

    rx: float
    ry: float
    sx: float
    sy: float
    theta: float


def lpd_parameters(kx: float, ky: float, c: float) -> LpdParameters:
    """LPD: rx = 1/(a + 2 c), ry = 1/(b + 2 c), theta = 1/(1 + 1/(a + b + 2 c)), a = sqrt(kx - 1), b = sqrt(ky - 1).

    sx = 1/a and sy = 1/b, in the limit where kappa = 1 (there w and q do not matter).
    """
    a, b = math.sqrt(max(kx - 1.0, 0.0)), math.sqrt(max(ky - 1.0, 0.0))
    rx, ry = 1.0 / max(a + 2.0 * c, SMALLEST), 1.0 / max(b + 2.0 * c, SMALLEST)
    sx, sy = 1.0 / max(a, SMALLEST), 1.0 / max(b, SMALLEST)
    return LpdParameters(rx, ry, sx, sy, 1.0 / (1.0 + 1.0 / max(a + b + 2.0 * c, SMALLEST)))


def lpd_bound(kx: float, ky: float, c: float, k: int) -> float:
    """LPD: mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 is at most this times its start.

    The theorem bounds (1/rx + 1) mu_x |x_k - x*|^2 + (1/ry + 1) mu_y |y_k - y*|^2 by 2 theta^k times the same at the
    start plus the Bregman distances of the lifted variables, with the factors 1 + 1/sx and 1 + 1/sy.
    """
    p = lpd_parameters(kx, ky, c)
    start = max(1.0 / p.rx + 1.0 + (1.0 + 1.0 / p.sx) * (kx - 1.0), 1.0 / p.ry + 1.0 + (1.0 + 1.0 / p.sy) * (ky - 1.0))
    return 2.0 * start / (1.0 + min(1.0 / p.rx, 1.0 / p.ry)) * p.theta**k


def lpd_slide_rho(kx: float, ky: float) -> float:
    """LPD-slide: the step, from N = sqrt(max(kx, ky) - 1), since the coupling is solved for."""
    return lifted_rho(MARGIN * math.sqrt(max(kx, ky, 1.0) - 1.0))


def lpd_slide_bound(kx: float, ky: float, k: int) -> float:
    """LPD-slide with exact inner solves: the bound of ``lpd_gs_bound``, with the step of LPD-slide."""
    return lifted_bound(kx, ky, lpd_slide_rho(kx, ky), k)


def lpd_slide_accuracy(kx: float, ky: float) -> float:
    """LPD-slide: a residual of the inner problem, relative to the move, with which steps keep about 3/4 of the rate."""
    r = lpd_slide_rho(kx, ky)
    return (1.0 - MARGIN**-2) * (1.0 + r) * min(r, 1.0) / 16.0


def lpd_slide_inexact_bound(kx: float, ky: float, accuracy: float, k: int) -> float:
    """LPD-slide with inner residuals of at most ``accuracy`` times the move: a bound as ``lpd_slide_bound`` is.

    The energy E_k of ``lpd_gs_bound``, with Z = (x, y) and W = (u, v), obeys E_{k+1} <= E_k/(1 + r) + |e| d_{k+1} with
    d_k = |z_k - z*|, where e is the residual times 1 + r, and |e| <= accuracy |z_{k+1} - z_k| <= accuracy (d_{k+1} +
    d_k). Simple terms are closed convex functions of the block Z and change nothing. The margin in N keeps
    d_k^2 <= 2 E_k/(s (1 + r)), s = 1 - 1/MARGIN^2. With eta = accuracy/(s (1 + r)), |e| d_{k+1} is at most
    eta (3 E_{k+1} + E_k), so E_k falls by (1/(1 + r) + eta)/(1 - 3 eta) a step. The bound is infinite if this is not
    below 1.
    """
    r = lpd_slide_rho(kx, ky)
    eta = accuracy / ((1.0 - MARGIN**-2) * (1.0 + r))
    factor = (1.0 / (1.0 + r) + eta) / (1.0 - 3.0 * eta) if 3.0 * eta < 1.0 else math.inf
    if not factor < 1.0:
        return 1.0 if k == 0 else math.inf
    return 1.0 if k == 0 else _lifted_constant(kx, ky, r) * (1.0 + r) * factor**k
