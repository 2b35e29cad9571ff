"""Table 1 of the paper as it is printed, the lower bound, and the orders that several methods share.

Every order is a number of calls without logarithms, as a function of kx = L_x/mu_x, ky = L_y/mu_y and
c = |A|/sqrt(mu_x mu_y). Where the paper writes L_x = L_y, |A| and mu separately, its rescaling to L_x = L_y = 1 gives
mu_x = 1/kx, mu_y = 1/ky, |A| = c/sqrt(kx ky). A method names its own order in its attribute ``complexity``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.theory.complexity import Complexity, Order
from saddlepoint.theory.lower import chain_N


def gradient_order(kx: float, ky: float, c: float) -> float:
    """Extragradient and OGDA: |A|/mu_x + |A|/mu_y + kx + ky (Nesterov and Scrimali 2006, Mokhtari et al. 2019)."""
    return c * math.sqrt(kx / ky) + c * math.sqrt(ky / kx) + kx + ky


def minimax_appa_order(kx: float, ky: float, c: float) -> float:
    """Minimax-APPA: |A|/sqrt(mu_x mu_y) + sqrt(kx ky) (Lin, Jin and Jordan 2020)."""
    return c + math.sqrt(kx * ky)


def best_response_order(kx: float, ky: float, c: float) -> float:
    """Proximal best response and Catalyst-AIPFB: sqrt(|A| L/(mu_x mu_y)) + sqrt(kx + ky), L = max(|A|, L_x).

    Wang and Li 2020; Theorem 15 (`catalyst-aipfb`).
    """
    return math.sqrt(c * max(c, math.sqrt(kx * ky))) + math.sqrt(kx + ky)


def catalyst_dippa_order(kx: float, ky: float, c: float) -> float:
    """Theorem 9 (`dippa`): |A|/sqrt(mu_x mu_y) + (kx ky (kx + ky))^(1/4)."""
    return c + math.pow(kx * ky * (kx + ky), 0.25)


def dippa_order(kx: float, ky: float, c: float) -> float:
    """Theorem 8 (`dippa:0`) at kappa = max(kx, ky): sqrt(kappa) (|A|/sqrt(L mu) + kappa^(1/4))."""
    kappa = max(kx, ky)
    return math.sqrt(kappa) * (c / math.pow(kx * ky, 0.25) + math.pow(kappa, 0.25))


def aipfb_order(kx: float, ky: float, c: float) -> float:
    """Theorem 12 (`aipfb`): c + sqrt(c (kx + ky)) + sqrt(kx + ky)."""
    return c + math.sqrt(c * (kx + ky)) + math.sqrt(kx + ky)


def lower_order(kx: float, ky: float, c: float) -> float:
    """The lower bound: |A|/sqrt(mu_x mu_y) + sqrt(kx + ky) (Ibrahim et al. 2019, Zhang et al. 2019)."""
    return c + math.sqrt(kx + ky)


def scaled_gradient_order(kx: float, ky: float, c: float) -> float:
    """Gradient steps in the variables sqrt(mu_x) x, sqrt(mu_y) y: kx + ky + c, never more than the table's order."""
    return kx + ky + c


def agraal_order(kx: float, ky: float, c: float) -> float:
    """aGRAAL, which knows no constant: the Lipschitz constant of the scaled field, max(kx, ky) + c."""
    return max(kx, ky) + c


def separate_order(kx: float, ky: float, c: float) -> float:
    """APDG, Jin, Sidford and Tian: sqrt(kx) + sqrt(ky) + c."""
    return math.sqrt(kx) + math.sqrt(ky) + c


def joint_order(kx: float, ky: float, c: float) -> float:
    """AG-EG, AG-OG, rAPD, and the products of sliding: sqrt(max(kx, ky)) + c."""
    return math.sqrt(max(kx, ky)) + c


def sliding_order(kx: float, ky: float, c: float) -> float:
    """The gradients of sliding, whatever A is: sqrt(max(kx, ky))."""
    return math.sqrt(max(kx, ky))


def lpd_order(kx: float, ky: float, c: float) -> float:
    """LPD: sqrt(kx - 1) + sqrt(ky - 1) + 2 c, but at least 1."""
    return max(1.0, math.sqrt(kx - 1.0) + math.sqrt(ky - 1.0) + 2.0 * c)


def lpd_gs_order(kx: float, ky: float, c: float) -> float:
    """LPD-GS: the condition number N of the lower bound, but at least 1."""
    return max(1.0, chain_N(kx, ky, c))


def forced_order(kx: float, ky: float, c: float) -> float:
    """The lower bound with its constant: N/2 rounds for every factor e of the distance (see ``theory.lower``)."""
    return 0.5 * chain_N(kx, ky, c)


def imex_gradient_order(kx: float, ky: float, c: float) -> float:
    """IMEX: max(kx, ky) gradients."""
    return max(kx, ky)


def imex_order(kx: float, ky: float, c: float) -> float:
    """IMEX: 1 + |A|/L products for each of its gradients, L = sqrt(L_x L_y)."""
    return max(kx, ky) * (1.0 + c / math.sqrt(kx * ky))


class Row(NamedTuple):
    """The calls that theory promises for one method; ``key`` is its registered name."""

    key: str
    title: str
    complexity: Complexity

    @property
    def formula(self) -> str:
        """The number of calls as a formula for people."""
        return self.complexity.formula

    @property
    def order(self) -> Order:
        """The calls of the busiest oracle, as a function of kx, ky and c."""
        assert self.complexity.order is not None
        return self.complexity.order


LOWER_BOUND = "lower bound"  # the name of its row
# The calls that several methods promise: gradient methods in the table, best responses, sliding, and IMEX.
_GRADIENT = Complexity("c sqrt(kx/ky) + c sqrt(ky/kx) + kx + ky", gradient_order)
BEST_RESPONSE = Complexity("sqrt(c max(c, sqrt(kx ky))) + sqrt(kx + ky)", best_response_order)
SLIDING = Complexity("gradients sqrt(k), products sqrt(k) + c", joint_order, sliding_order, sliding_order)
IMPLICIT = Complexity(
    "gradients k, products k (1 + |A|/L)", imex_order, grad_g=imex_gradient_order, grad_h=imex_gradient_order
)

TABLE1 = (  # the rows as printed; the attribute ``complexity`` of a method may be better
    Row("extragradient", "Nesterov and Scrimali 2006", _GRADIENT),
    Row("ogda", "Mokhtari et al. 2019", _GRADIENT),
    Row("minimax-appa", "Lin et al. 2020", Complexity("c + sqrt(kx ky)", minimax_appa_order)),
    Row("pbr", "Wang and Li 2020", BEST_RESPONSE),
    Row("catalyst-aipfb", "Chambolle and Pock 2011, inexact", BEST_RESPONSE),
    Row("catalyst-dippa", "Xie, Han and Zhang 2021", Complexity("c + (kx ky (kx + ky))^(1/4)", catalyst_dippa_order)),
    Row(LOWER_BOUND, "Ibrahim et al. 2019, Zhang et al. 2019", Complexity("c + sqrt(kx + ky)", lower_order)),
)

# The number of the paper's theorem behind the bound of a method. Theorems, lemmas and corollaries of the paper are
# numbered in one sequence, which goes on through its appendices.
THEOREMS = {"dippa": 8, "catalyst-dippa": 9, "aipfb": 12, "catalyst-aipfb": 15}

# The lower bound with its constant.
FORCED = Row(LOWER_BOUND, "Ibrahim et al. 2019, Zhang et al. 2019", Complexity("N/2", forced_order))


def regime(kx: float, ky: float, c: float) -> str:
    """The paper's three regimes: weak, intermediate or strong coupling.

    Coupling is weak below |A| = sqrt(L_x mu_y + L_y mu_x), where DIPPA's bound is no better than earlier ones. It is
    strong above |A| = (L_x L_y (L_x mu_y + L_y mu_x))^(1/4), where DIPPA's bound meets the lower bound.
    """
    if c <= math.sqrt(kx + ky):
        return "weak"
    return "strong" if c >= math.pow(kx * ky * (kx + ky), 0.25) else "intermediate"
