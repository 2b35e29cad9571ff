"""Which method comes first by the condition numbers and the costs of the oracles alone, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping

STRONG = 2.0  # |A|/sqrt(L_x L_y) from which solving for the coupling pays; also times sqrt(kx/ky) or its inverse
NOTICEABLE = 1.0  # |A|/sqrt(L_x L_y) from which solving for the coupling may pay because kx and ky differ
EASILY = 50.0  # kx + ky + c up to which it does not pay although kx and ky differ: the sweep needs few steps
STRONG_IF_DEAR = 0.2  # |A|/sqrt(L_x L_y) from which solving for the coupling pays where gradients are expensive
DEAR = 5.0  # cost of a gradient, in products, from which gradients are expensive
WORTH_SEPARATING = 2.0  # estimated saving, as a factor of the cost, from which `separated` is taken


def coupling_strength(kx: float, ky: float, c: float) -> float:
    """The strength of the coupling beside the functions, |A|/sqrt(L_x L_y)."""
    return c / math.sqrt(kx) / math.sqrt(ky)


def is_strong(kx: float, ky: float, c: float) -> bool:
    """Whether solving for the coupling pays: if it is strong, or noticeable and the players unevenly conditioned.

    In the second case it does not where all condition numbers are small, because then few steps of the sweep suffice.
    """
    strength, uneven = coupling_strength(kx, ky, c), math.sqrt(max(kx, ky) / min(kx, ky))
    return strength >= STRONG or (strength >= NOTICEABLE and strength * uneven >= STRONG and kx + ky + c > EASILY)


def recommend(
    kx: float, ky: float, c: float, grad_g: float = 1.0, grad_h: float = 1.0, product: float = 1.0
) -> tuple[str, str]:
    """The name of the method that ``auto`` takes first by these numbers alone, and the reason.

    Args:
        kx, ky, c: the condition numbers of g, of h and of the coupling, |A|/sqrt(mu_x mu_y).
        grad_g, grad_h, product: what a gradient of g, one of h, and a product with A or A' cost, in any unit.
    """
    strength, dear = coupling_strength(kx, ky, c), (grad_g + grad_h) / (product + product)
    saving = separated_saving(kx, ky, c, grad_g, grad_h, product)
    if saving >= WORTH_SEPARATING:
        return "separated", f"it calls the expensive oracles seldom, for about 1/{saving:.3g} of the cost"
    if is_strong(kx, ky, c):
        return "anderson-imex", f"the coupling is strong, |A|/sqrt(L_x L_y) = {strength:.3g}"
    if strength >= STRONG_IF_DEAR and dear >= DEAR:
        return "anderson-imex", f"a gradient costs {dear:.3g} products"
    return "anderson-condat-vu", f"the coupling is mild, |A|/sqrt(L_x L_y) = {strength:.3g}"


def separated_saving(kx: float, ky: float, c: float, grad_g: float, grad_h: float, product: float) -> float:
    """About how many times cheaper `separated` is than Anderson's mixing over the sweep; 0 where nothing is known.

    The counts of calls are rounded from runs on random problems to six digits; of the mixing they are the fewest seen.
    """
    big, small = math.sqrt(max(kx, ky)), math.sqrt(min(kx, ky))
    if c > small:
        return 0.0
    of_big = grad_g if kx >= ky else grad_h
    of_small = grad_h if kx >= ky else grad_g
    separated = 30.0 * big * of_big + 30.0 * small * of_small + (15.0 + 12.0 * c) * (product + product)
    return 2.0 * big * (grad_g + grad_h + product + product) / separated


def oracle_prices(costs: Mapping[str, float] | None) -> tuple[float, float, float]:
    """What a gradient of g, a gradient of h and a product cost; 1 where nothing is said."""
    full = dict.fromkeys(("grad_g", "grad_h", "A", "At"), 1.0) | dict(costs or {})
    return full["grad_g"], full["grad_h"], (full["A"] + full["At"]) / 2.0


def gradient_cost(costs: Mapping[str, float] | None) -> float:
    """What a gradient costs, in products; costs that are not given count as 1."""
    grad_g, grad_h, product = oracle_prices(costs)
    return (grad_g + grad_h) / (product + product)
