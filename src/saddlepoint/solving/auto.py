"""Which method, why, and when to change it.

The choice. Condat-Vu's sweep and the IMEX step, mixed by Anderson, see much more in a problem than its worst case; on
quadratic problems a Krylov method sees all there is. Which of the three needs the fewest calls depends on how strong
the coupling is beside the functions, |A|/sqrt(L_x L_y), and on what a gradient costs beside a product.

The guarantee. None of them has a bound as good as LPD-GS's. So what is still to be done is watched in LPD-GS's
currency, the calls that its theorem needs from the best certified point on: before calls made and calls promised come
to twice the promise at the start, LPD-GS takes over. The next method also gets its turn after a time without progress.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from saddlepoint.methods import DIPPA, IMEX, LPDGS, Anderson, CondatVu, Direct, Krylov, Method, Newton, make_method
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.lower import chain_N

WEAK = 0.5  # |A|/sqrt(L_x L_y) up to which a Krylov method on the field beats one on the sweep,
STRONG = 2.0  # from which solving for the coupling pays, counted sqrt(kx/ky) times if it is
NOTICEABLE = 0.4  # at least;
STRONG_IF_DEAR = 0.2  # and from here where a gradient costs
DEAR = 5.0  # times as much as a product
LARGE = 500  # the larger side from which a problem is not factorised as a whole
MEMORY = 3_000_000  # numbers that Anderson may remember
LEAST = 20  # steps that Anderson remembers, at least,
ROUNDS = 10  # and on shards only where reading them takes as long as this many rounds, at
BANDWIDTH = 5e9  # bytes a second
PATIENCE = 500, 20_000  # calls without progress, at least and at most, until the next method is tried


class Plan(NamedTuple):
    """Methods in the order in which they are tried, and the reason for the first in words."""

    methods: tuple[Method, ...]
    why: str

    @property
    def message(self) -> str:
        """The choice in a sentence."""
        return f"auto chose {self.methods[0].label}: {self.why}" if self.why else ""


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
    uneven = math.sqrt(max(kx, ky) / min(kx, ky))
    sweep, imex = Anderson(CondatVu(), window), Anderson(IMEX(stride_for(strength, uneven)), window)
    quadratic = f.g.quadratic and f.h.quadratic
    small = f.space.is_numpy and f.g.hessian is not None and f.h.hessian is not None and max(f.shape) <= LARGE
    quick: tuple[Method, ...] = (Krylov(),) if quadratic else (Newton(),) if small else ()  # if the first falls behind
    first: Method
    rest: tuple[Method, ...]
    if dear < DEAR and quadratic and small and max(f.shape) <= rounds(f):
        first, rest, reason = Direct(), (Krylov(), LPDGS()), "g and h are quadratic, and their matrices are small"
    else:
        name, reason = recommend(kx, ky, c, dear)
        if name == imex.label:
            first, rest = imex, (*quick, DIPPA(), LPDGS())
        elif quadratic and strength <= WEAK:
            first, rest, reason = Krylov(), (sweep, LPDGS()), "g and h are quadratic"
        else:
            first, rest = sweep, (*quick, LPDGS())
    return Plan((first, *rest), reason)


def on_shards(f: Saddle) -> Plan:
    """The methods where x is spread over shards: a step of LPD-GS is one round, and Anderson adds seven to a sweep.

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


def stride_for(strength: float, uneven: float) -> float:
    """IMEX's stride: short enough to be stable alone, unless solving for the coupling or one player is what costs."""
    if strength >= 15.0 or uneven >= 3.0:
        return 10.0
    return 3.0 if strength >= 5.0 else 1.9


def recommend(kx: float, ky: float, c: float, dear: float = 1.0) -> tuple[str, str]:
    """What ``choose`` takes first when no more is known than the three numbers and a gradient's cost, and why."""
    strength = c / math.sqrt(kx) / math.sqrt(ky)
    if is_strong(kx, ky, c):
        return "anderson-imex", f"the coupling is strong, |A|/sqrt(L_x L_y) = {strength:.3g}"
    if strength >= STRONG_IF_DEAR and dear >= DEAR:
        return "anderson-imex", f"a gradient costs {dear:.3g} products"
    return "anderson-condat-vu", f"the coupling is mild, |A|/sqrt(L_x L_y) = {strength:.3g}"


def gradient_cost(costs: Mapping[str, float] | None) -> float:
    """What a gradient costs, in products; costs that are not given count as 1."""
    full = dict.fromkeys(("grad_g", "grad_h", "A", "At"), 1.0) | dict(costs or {})
    return (full["grad_g"] + full["grad_h"]) / (full["A"] + full["At"])
