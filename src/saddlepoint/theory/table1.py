"""Table 1 of the paper: gradient complexities, without logarithms, as functions of the three numbers that matter.

kx = L_x/mu_x, ky = L_y/mu_y and c = |A|/sqrt(mu_x mu_y). Where the paper writes L_x = L_y, |A| and mu separately, its
rescaling to L_x = L_y = 1 gives mu_x = 1/kx, mu_y = 1/ky, |A| = c/sqrt(kx ky).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple


def gradient_order(kx: float, ky: float, c: float) -> float:
    """Extragradient and OGDA: |A|/mu_x + |A|/mu_y + kx + ky (Nesterov and Scrimali 2006, Mokhtari et al. 2019)."""
    return c * math.sqrt(kx / ky) + c * math.sqrt(ky / kx) + kx + ky


def minimax_appa_order(kx: float, ky: float, c: float) -> float:
    """Minimax-APPA: |A|/sqrt(mu_x mu_y) + sqrt(kx ky) (Lin, Jin and Jordan 2020)."""
    return c + math.sqrt(kx * ky)


def best_response_order(kx: float, ky: float, c: float) -> float:
    """Proximal best response and Catalyst-AIPFB: sqrt(|A| L/(mu_x mu_y)) + sqrt(kx + ky), L = max(|A|, L_x).

    Wang and Li 2020; Theorem `catalyst-aipfb`.
    """
    return math.sqrt(c * max(c, math.sqrt(kx * ky))) + math.sqrt(kx + ky)


def catalyst_dippa_order(kx: float, ky: float, c: float) -> float:
    """Theorem `dippa`: |A|/sqrt(mu_x mu_y) + (kx ky (kx + ky))^(1/4)."""
    return c + math.pow(kx * ky * (kx + ky), 0.25)


def dippa_order(kx: float, ky: float, c: float) -> float:
    """Theorem `dippa:0` at kappa = max(kx, ky): sqrt(kappa) (|A|/sqrt(L mu) + kappa^(1/4))."""
    kappa = max(kx, ky)
    return math.sqrt(kappa) * (c / math.pow(kx * ky, 0.25) + math.pow(kappa, 0.25))


def aipfb_order(kx: float, ky: float, c: float) -> float:
    """Theorem `aipfb`: c + sqrt(c (kx + ky)) + sqrt(kx + ky)."""
    return c + math.sqrt(c * (kx + ky)) + math.sqrt(kx + ky)


def lower_order(kx: float, ky: float, c: float) -> float:
    """The lower bound: |A|/sqrt(mu_x mu_y) + sqrt(kx + ky) (Ibrahim et al. 2019, Zhang et al. 2019)."""
    return c + math.sqrt(kx + ky)


class Row(NamedTuple):
    """One row of Table 1; ``key`` is the registered name of the method where there is one."""

    key: str
    title: str
    formula: str
    order: Callable[[float, float, float], float]


_BEST_RESPONSE = "sqrt(|A| L/(mu_x mu_y)) + sqrt(kx + ky)"

TABLE1 = (
    Row("gradient", "Nesterov 2006, Mokhtari et al. 2019", "|A|/mu_x + |A|/mu_y + kx + ky", gradient_order),
    Row("minimax-appa", "Lin et al. 2020", "|A|/sqrt(mu_x mu_y) + sqrt(kx ky)", minimax_appa_order),
    Row("pbr", "Wang and Li 2020", _BEST_RESPONSE, best_response_order),
    Row("catalyst-aipfb", "Chambolle and Pock 2011, inexact", _BEST_RESPONSE, best_response_order),
    Row(
        "catalyst-dippa",
        "Xie, Han and Zhang 2021",
        "|A|/sqrt(mu_x mu_y) + (kx ky (kx + ky))^(1/4)",
        catalyst_dippa_order,
    ),
    Row("lower bound", "Ibrahim et al. 2019, Zhang et al. 2019", "|A|/sqrt(mu_x mu_y) + sqrt(kx + ky)", lower_order),
)

# What the paper proves besides the table, for the methods that Catalyst wraps.
BALANCED = (
    Row("aipfb", "Theorem aipfb", "c + sqrt(c (kx + ky)) + sqrt(kx + ky)", aipfb_order),
    Row("dippa", "Theorem dippa:0", "sqrt(k) (|A|/sqrt(L mu) + k^(1/4)), k = max(kx, ky)", dippa_order),
)


def regime(kx: float, ky: float, c: float) -> str:
    """The paper's three regimes: weak, intermediate or strong coupling.

    Weak below |A| = sqrt(L_x mu_y + L_y mu_x), where DIPPA's bound is no better than its rivals'; strong above
    |A| = (L_x L_y (L_x mu_y + L_y mu_x))^(1/4), where it meets the lower bound.
    """
    if c <= math.sqrt(kx + ky):
        return "weak"
    return "strong" if c >= math.pow(kx * ky * (kx + ky), 0.25) else "intermediate"
