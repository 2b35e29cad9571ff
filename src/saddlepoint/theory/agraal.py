"""aGRAAL: the energy that falls in each step, for strongly monotone fields with simple terms.

Lengths are those in which the field is 1-strongly monotone: |z|^2 = mu_x |x|^2 + mu_y |y|^2. The proof is that of
Malitsky, "Golden ratio algorithms for variational inequalities", Math. Prog. 2020, for the adaptive method; strong
monotonicity adds the first term of ``agraal_decrease``, and the simple terms are the function g of that paper.
"""

from __future__ import annotations

PHI = 1.5  # the constant phi of the method, which may be from 1 to the golden ratio 1.618


def agraal_energy(t: float, average: float, step: float) -> float:
    """The energy phi/(phi - 1) |zb_k - z*|^2 + t_{k-1}/2 |z_k - z_{k-1}|^2.

    Args:
        t: t_{k-1}.
        average: |zb_k - z*|^2, for the average zb_k of the points.
        step: |z_k - z_{k-1}|^2.
    """
    return PHI / (PHI - 1.0) * average + 0.5 * t * step


def agraal_decrease(s: float, t: float, error: float, lag: float) -> float:
    """The energy falls by at least 2 s_k |z_k - z*|^2 + t_k |z_k - zb_k|^2 in step k.

    Args:
        s, t: s_k and t_k.
        error: |z_k - z*|^2.
        lag: |z_k - zb_k|^2.
    """
    return 2.0 * s * error + t * lag
