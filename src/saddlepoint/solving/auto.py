"""Which methods `auto` tries, in which order, which of them take turns, and why.

Anderson mixing of the Condat-Vu sweep or of the IMEX step needs far fewer calls on typical problems than their worst
case says, and on quadratic problems a Krylov method or a factorisation needs less still. Which of them comes first
depends on the strength of the coupling beside the functions, |A|/sqrt(L_x L_y), and on the cost of a gradient beside
that of a product. These numbers do not decide which of two good methods is faster, so the first two or three take
turns (``solving.race``): IMEX and the sweep where the coupling is noticeable, with Newton's method where its steps take
little time, and with DIPPA, late, where it is strong; the sweep, IMEX, LPD-GS, and Newton's method, where it is weak.
Newton's method begins where the data are at hand and so small that its step takes hardly more time than a round.
It begins as well where a side that is quadratic has many times the variables of the other one and its steps count
for few calls, or for no more than the factorisation with which IMEX would begin.
On quadratic problems the Krylov method takes turns with IMEX, or with the sweep where the coupling is weak.
Where one oracle costs far more than another and the coupling is weak, `separated` comes first, which calls each oracle
at its own rate. Without strong convexity the interior-point method comes first where it takes little time, and then
Halpern's iteration of PDHG, with diagonal scaling, in turns with Anderson's mixing; where both are slow, the proximal
point method has turns as well. There Halpern's steps count by the time that is estimated for them beside steps with
mixing: where products are sparse, as those of differences of pixels, mixing takes ten times as long. With strong
convexity none of these has a bound as good as that of LPD-GS, which is therefore the last method of every such plan;
``solving.schedule`` decides when to change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from saddlepoint.methods import (
    LPDGS,
    PDHG,
    Anderson,
    CondatVu,
    Direct,
    Halpern,
    InteriorPoint,
    Krylov,
    Method,
    Preconditioned,
    Proximal,
    make_method,
)
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.factoring import unmixed_rate, worth_factorising, worth_interior_point
from saddlepoint.solving.plan import Plan, mixed_steps
from saddlepoint.solving.race import FIRST_TURN
from saddlepoint.solving.recommendation import DEAR, gradient_cost
from saddlepoint.solving.smooth_plan import plan_for_smooth_functions

LONG = 4.0  # usual turns that the first one has with simple terms: mixing is slow until the right face is found
LATE = 512.0  # rounds that each of the other methods has without strong convexity before the proximal point method
WINDOW = 20  # steps that Anderson remembers on shards, at most
ROUNDS = 10  # Anderson is used on shards where reading A takes longer than this many rounds of an engine
BANDWIDTH = 5e9  # bytes a second at which a worker reads its shard


def choose(f: Saddle, costs: Mapping[str, float] | None = None) -> Plan:
    """The methods for this problem.

    Args:
        f: the problem.
        costs: what a call of ``grad_g``, ``grad_h``, ``A`` and ``At`` costs, in any unit; 1 where left out.
    """
    if math.isnan(f.g.mu) or math.isnan(f.h.mu):
        return plan_without_mu(f)
    if f.mu == 0.0:
        return plan_without_strong_convexity(f, costs)
    if f.space.of_x.is_sharded:
        return plan_on_shards(f)
    if f.has_simple:
        return plan_with_simple_terms(f, costs)
    if f.g.quadratic and f.h.quadratic and gradient_cost(costs) < DEAR and worth_factorising(f):
        return Plan((Direct(), Krylov(), LPDGS()), "g and h are quadratic, and a factorisation takes little")
    return plan_for_smooth_functions(f, costs)


def plan_without_mu(f: Saddle) -> Plan:
    """rAPD, which needs L, but not mu."""
    unknown = [name for name, function in (("g", f.g), ("h", f.h)) if math.isnan(function.mu)]
    return Plan((make_method("rapd"),), f"mu of {' and '.join(unknown)} is unknown")


def plan_without_strong_convexity(f: Saddle, costs: Mapping[str, float] | None) -> Plan:
    """First-order methods in turns, after the interior-point method where its factorisations take little time."""
    flat = [name for name, function in (("g", f.g), ("h", f.h)) if function.mu == 0.0]
    reason = f"{' and '.join(flat)} {'is' if len(flat) == 1 else 'are'} not strongly convex"
    steps = mixed_steps(f)
    first_order = Preconditioned(Halpern(PDHG())), Anderson(PDHG(), steps), Proximal(Anderson(CondatVu(), steps))
    if gradient_cost(costs) < DEAR and worth_interior_point(f):
        return Plan((InteriorPoint(), *first_order), f"{reason}, and factorisations take little")
    rates: dict[Method, float] = {} if costs else {first_order[0]: unmixed_rate(f, steps) ** 2}
    return Plan(first_order, reason, 3, dict(costs or {}), rates, late={first_order[-1]: LATE})


def plan_on_shards(f: Saddle) -> Plan:
    """The methods where x is spread over shards: a step of LPD-GS is one round, and Anderson adds four to a sweep.

    These are worth it where reading A takes longer than the rounds. That depends on nothing but A and the kind of
    engine, so the choice repeats. Anderson's memory takes no more than half the room of A.
    """
    runtime, (m, n) = f.A.runtime, f.shape
    window = min(WINDOW, n // 4)
    reading = m * n * f.A.dtype.itemsize / runtime.shards / BANDWIDTH
    if window < 5 or reading < ROUNDS * runtime.latency:
        return Plan((LPDGS(),), "x is spread over shards, and its steps take the fewest rounds")
    sweep = Anderson(CondatVu(), window)
    return Plan((sweep, LPDGS()), "x is spread over shards, and to read them takes longer than the rounds")


def plan_with_simple_terms(f: Saddle, costs: Mapping[str, float] | None) -> Plan:
    """Anderson's mixing over the sweep, in turns with that over LPD-GS."""
    side = "g" if f.h.simple is None else "h" if f.g.simple is None else "g and h"
    reason = f"{side} has a simple term" if len(side) == 1 else "g and h have simple terms"
    steps = mixed_steps(f)
    methods = Anderson(CondatVu(), steps), Anderson(LPDGS(), steps), LPDGS()
    return Plan(methods, reason, 2, dict(costs or {}), first_turn=LONG * FIRST_TURN)
