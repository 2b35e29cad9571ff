r"""The proximal point method with inexact steps, for fields that are monotone and no more.

Let F be a monotone field (subgradients of simple terms included) with a zero z*, W a positive diagonal matrix,
|z|^2 = <W z, z>, and |r|_*^2 = <r, W^-1 r>. The outer step k, with the centre c_k and the weight t_k > 0, ends at a
point z_k with

    r_k in F(z_k) + t_k W (z_k - c_k),   |r_k|_* <= sigma t_k |z_k - c_k|,   c_{k+1} = z_k - W^-1 r_k/t_k.

Then v_k = t_k W (c_k - c_{k+1}) is in F(z_k), so that <v_k, z_k - z*> >= 0, and

    |c_{k+1} - z*|^2 = |c_k - z*|^2 - 2 <W (c_k - c_{k+1}), z_k - z*> - |z_k - c_k|^2 + |z_k - c_{k+1}|^2
                    <= |c_k - z*|^2 - (1 - sigma^2) |z_k - c_k|^2.

With |v_k|_* <= (1 + sigma) t_k |z_k - c_k| the sum over all steps bounds the smallest residual. If subgradients are
exact up to e only, 2 e/t_k is added to the sum, and |r_k|_*^2/t_k + 2 e <= sigma^2 t_k |z_k - c_k|^2 takes its place.

Reference: M. V. Solodov and B. F. Svaiter, A hybrid approximate extragradient-proximal point algorithm using the
enlargement of a maximal monotone operator, Set-Valued Anal. 1999.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from saddlepoint.theory.gradient import field_lipschitz
from saddlepoint.theory.lpd import lpd_gs_steps

ROUNDING = 1e-12  # relative amount by which a number of steps may exceed a whole number by rounding


def proximal_bound(sigma: float, weights: Iterable[float]) -> float:
    """The smallest residual |v_k|_* of outer steps with these weights t_k is at most this times |c_0 - z*|.

    Example:
        >>> from saddlepoint.theory import proximal_bound
        >>> proximal_bound(0.0, [1.0] * 4), proximal_bound(0.6, [0.5, 0.25])
        (0.5, 0.4472135954999579)
    """
    total = sum(1.0 / t**2 for t in weights)
    return math.sqrt((1.0 + sigma) / ((1.0 - sigma) * total)) if total > 0.0 else math.inf


def proximal_steps(sigma: float, t: float, residual: float, distance: float) -> int:
    """Outer steps with the weight t after which a residual is sure to be at most ``residual``, from this distance.

    Example:
        >>> from saddlepoint.theory import proximal_steps
        >>> proximal_steps(0.0, 0.1, 1e-2, 1.0)
        100
    """
    steps = (1.0 + sigma) / (1.0 - sigma) * (t * distance / residual) ** 2
    return math.ceil(steps * (1.0 - ROUNDING))


def proximal_rate(sigma: float, t: float, sharpness: float) -> float:
    """The factor by which an outer step reduces the distance of c_k to the zeros of a sharp field.

    The field is sharp if |v|_* >= a dist(z) for every v in F(z), with the ``sharpness`` a > 0. The distance of c_{k+1}
    is then at most C |z_k - c_k| with C = sigma + (1 + sigma) t/a, and its square falls by (1 - sigma^2) |z_k - c_k|^2.
    The smaller the weight t, the faster.

    Example:
        >>> from saddlepoint.theory import proximal_rate
        >>> round(proximal_rate(0.0, 1.0, 1.0), 4), round(proximal_rate(0.0, 0.01, 1.0), 4)
        (0.7071, 0.01)
    """
    C = sigma + (1.0 + sigma) * t / sharpness
    return 1.0 / math.sqrt(1.0 + (1.0 - sigma**2) / C**2)


def proximal_inner_steps(kx: float, ky: float, c: float, sigma: float, share: float = 1.0) -> int:
    """Steps of LPD-GS from the centre after which an outer step without simple terms is sure to be accurate enough.

    Let d be the distance to the solution of the outer step, weighted with its mu, which is d0 at the centre. The
    residual is at most l d/sqrt(share), and the move at least sqrt(share) d0 - d, so that
    d <= share sigma d0/(l + sqrt(share) sigma) is enough.

    Args:
        kx, ky, c: the condition numbers of the problem of the outer step.
        sigma: the error that is allowed, as a share of the move.
        share: the least share of mu of the outer problem that comes from the added quadratic terms; 1 where mu was 0.
    """
    least = share * sigma / (field_lipschitz(kx, ky, c) + math.sqrt(share) * sigma)
    return lpd_gs_steps(kx, ky, c, least**2)
