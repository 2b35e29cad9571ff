"""Which methods `auto` tries, in which order, and why.

Anderson mixing of the Condat-Vu sweep or of the IMEX step needs far fewer calls on everyday problems than their worst
case says, and on quadratic problems a Krylov method needs fewer still. Which of the three comes first depends on the
strength of the coupling beside the functions, |A|/sqrt(L_x L_y), and on the cost of a gradient beside that of a
product. Where one oracle costs far more than another and the coupling is weak, `separated` comes first, which calls
each oracle at its own rate. None of these has a bound as good as that of LPD-GS, which is therefore the last method of
every plan; ``solving.schedule`` decides when to change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from saddlepoint.methods import (
    DIPPA,
    LPDGS,
    Anderson,
    CondatVu,
    Direct,
    Krylov,
    Method,
    Newton,
    Separated,
    make_method,
)
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.lower import chain_N

WEAK = 0.5  # |A|/sqrt(L_x L_y) up to which a Krylov method on the field beats Anderson's mixing over the sweep
STRONG = 2.0  # |A|/sqrt(L_x L_y) from which solving for the coupling pays; also times sqrt(kx/ky) or its inverse
NOTICEABLE = 0.4  # least |A|/sqrt(L_x L_y) at which that product counts
STRONG_IF_DEAR = 0.2  # |A|/sqrt(L_x L_y) from which solving for the coupling pays where gradients are expensive
DEAR = 5.0  # cost of a gradient, in products, from which gradients are expensive
WORTH_SEPARATING = 2.0  # estimated saving, as a factor of the cost, from which `separated` is taken
LARGE = 500  # variables of the larger side from which a problem is not factorised as a whole
MEMORY = 3_000_000  # numbers that Anderson may remember
LEAST = 20  # steps that Anderson remembers, at least
ROUNDS = 10  # rounds of an engine; Anderson is used on shards where reading A takes longer than these
BANDWIDTH = 5e9  # bytes a second at which a worker reads its shard


class Plan(NamedTuple):
    """Methods in the order in which they are tried, and the reason for the first in words."""

    methods: tuple[Method, ...]
    reason: str

    @property
    def message(self) -> str:
        """The choice in a sentence."""
        return f"auto chose {self.methods[0].label}: {self.reason}" if self.reason else ""


def choose(f: Saddle, costs: Mapping[str, float] | None = None) -> Plan:
    """The methods for this problem.

    Args:
        f: the problem.
        costs: what a call of ``grad_g``, ``grad_h``, ``A`` and ``At`` costs, in any unit; 1 where left out.
    """
    unknown = [name for name, function in (("g", f.g), ("h", f.h)) if math.isnan(function.mu)]
    if unknown:
        return Plan((make_method("rapd"),), f"mu of {' and '.join(unknown)} is unknown")
    if f.space.of_x.is_sharded:
        return on_shards(f)
    kx, ky, c = f.numbers
    strength, dear = c / math.sqrt(kx) / math.sqrt(ky), gradient_cost(costs)
    window = int(min(100, max(LEAST, MEMORY / (2 * sum(f.shape)))))
    sweep, imex = Anderson(CondatVu(), window), make_method("anderson-imex", window=window)
    quadratic = f.g.quadratic and f.h.quadratic
    small = f.space.is_numpy and f.g.hessian is not None and f.h.hessian is not None and max(f.shape) <= LARGE
    quick: tuple[Method, ...] = (Krylov(),) if quadratic else (Newton(),) if small else ()  # if the first falls behind
    first: Method
    rest: tuple[Method, ...]
    if dear < DEAR and quadratic and small and max(f.shape) <= rounds(f):
        first, rest, reason = Direct(), (Krylov(), LPDGS()), "g and h are quadratic, and their matrices are small"
    else:
        name, reason = recommend(kx, ky, c, *oracle_prices(costs))
        if name == imex.label:
            first, rest = imex, (*quick, DIPPA(), LPDGS())
        elif quadratic and strength <= WEAK:
            first, rest, reason = Krylov(), (sweep, LPDGS()), "g and h are quadratic"
        elif name == "separated":
            first, rest = Separated(), (sweep, *quick, LPDGS())
        else:
            first, rest = sweep, (*quick, LPDGS())
    return Plan((first, *rest), reason)


def on_shards(f: Saddle) -> Plan:
    """The methods where x is spread over shards: a step of LPD-GS is one round, and Anderson adds four to a sweep.

    These are worth it where reading A takes longer than the rounds. That depends on nothing but A and the kind of
    engine, so the choice repeats. Anderson's memory takes no more than half the room of A.
    """
    runtime, (m, n) = f.A.runtime, f.shape
    window = min(LEAST, n // 4)
    reading = m * n * f.A.dtype.itemsize / runtime.shards / BANDWIDTH
    if window < 5 or reading < ROUNDS * runtime.latency:
        return Plan((LPDGS(),), "x is spread over shards, and its steps take the fewest rounds")
    sweep = Anderson(CondatVu(), window)
    return Plan((sweep, LPDGS()), "x is spread over shards, and to read them takes longer than the rounds")


def is_strong(kx: float, ky: float, c: float) -> bool:
    """Whether solving for the coupling pays: if it is strong, or noticeable and the players unevenly conditioned."""
    strength, uneven = c / math.sqrt(kx) / math.sqrt(ky), math.sqrt(max(kx, ky) / min(kx, ky))
    return strength >= STRONG or (strength >= NOTICEABLE and strength * uneven >= STRONG)


def rounds(f: Saddle) -> float:
    """About the rounds of a good method for eight digits, if the problem is as hard as its constants."""
    return 9.0 * chain_N(*f.numbers)


def recommend(
    kx: float, ky: float, c: float, grad_g: float = 1.0, grad_h: float = 1.0, product: float = 1.0
) -> tuple[str, str]:
    """What ``choose`` takes first when no more is known than the three numbers and what a call costs, and why.

    Args:
        kx, ky, c: the three numbers.
        grad_g, grad_h, product: what a gradient of g, one of h, and a product with A or A' cost, in any unit.
    """
    strength, dear = c / math.sqrt(kx) / math.sqrt(ky), (grad_g + grad_h) / (product + product)
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
    full = dict.fromkeys(("grad_g", "grad_h", "A", "At"), 1.0) | dict(costs or {})
    return (full["grad_g"] + full["grad_h"]) / (full["A"] + full["At"])
