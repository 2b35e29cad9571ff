"""Which methods `auto` tries, in which order, which of them take turns, and why.

Anderson mixing of the Condat-Vu sweep or of the IMEX step needs far fewer calls on typical problems than their worst
case says, and on quadratic problems a Krylov method or a factorisation needs less still. Which of them comes first
depends on the strength of the coupling beside the functions, |A|/sqrt(L_x L_y), and on the cost of a gradient beside
that of a product. These numbers do not decide which of two good methods is faster, so the first two or three take
turns (``solving.race``): IMEX and the sweep where the coupling is noticeable, with Newton's method where its steps take
little time, and with DIPPA, late, where it is strong; the sweep, IMEX, LPD-GS, and Newton's method, where it is weak.
On quadratic problems the Krylov method takes turns with IMEX, or with the sweep where the coupling is weak.
Newton's method begins where a side that is quadratic has many times the variables of the other one and its steps count
for few calls, or for no more than the factorisation with which IMEX would begin.
Where one oracle costs far more than another and the coupling is weak, `separated` comes first, which calls each oracle
at its own rate. Without strong convexity the interior-point method comes first where it takes little time, and then
Halpern's iteration of PDHG, with diagonal scaling, in turns with Anderson's mixing; where both are slow, the proximal
point method has turns as well. With strong convexity none of these has a bound as good as that of LPD-GS, which is
therefore the last method of every such plan; ``solving.schedule`` decides when to change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from saddlepoint.methods import (
    DIPPA,
    IMEX,
    LPDGS,
    PDHG,
    Anderson,
    CondatVu,
    Direct,
    Halpern,
    InteriorPoint,
    Krylov,
    Method,
    Newton,
    Preconditioned,
    Proximal,
    Separated,
    make_method,
)
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.factoring import (
    EASY,
    MIXED,
    STEP,
    columns,
    eliminates_most,
    entries,
    gradient_time,
    has_ready_matrices,
    newton_calls,
    newton_is_soon,
    newton_rounds,
    newton_work,
    rounds,
    unmixed_rate,
    worth_factorising,
    worth_interior_point,
    worth_newton,
)
from saddlepoint.solving.race import FIRST_TURN

WEAK = 0.5  # |A|/sqrt(L_x L_y) up to which a Krylov method takes turns with Anderson's mixing over the sweep, not IMEX
UNIFORM = 2.0  # min(kx, ky) up to which the sweep beats a Krylov method: it nearly eliminates the better side
STRONG = 2.0  # |A|/sqrt(L_x L_y) from which solving for the coupling pays; also times sqrt(kx/ky) or its inverse
NOTICEABLE = 1.0  # |A|/sqrt(L_x L_y) from which solving for the coupling may pay because kx and ky differ
EASILY = 50.0  # kx + ky + c up to which it does not pay although kx and ky differ: the sweep needs few steps
NOTED = 0.2  # |A|/sqrt(L_x L_y) from which Anderson's mixing over IMEX may be faster than over the sweep
STRONG_ALONE = 1.0  # |A|/sqrt(L_x L_y) from which LPD-GS is hardly ever the fastest
STRONG_IF_DEAR = 0.2  # |A|/sqrt(L_x L_y) from which solving for the coupling pays where gradients are expensive
DEAR = 5.0  # cost of a gradient, in products, from which gradients are expensive
WORTH_SEPARATING = 2.0  # estimated saving, as a factor of the cost, from which `separated` is taken
LONG = 4.0  # usual turns that the first one has with simple terms: mixing is slow until the right face is found
QUICK = 8.0  # rounds that a step of Newton's method takes, at most, where the method is the second to have a turn
SMALL_STEP = 64  # calls of all oracles that a step of Newton's method takes, at most, where the method is the first
NEWTON_STEPS = 12  # steps that Newton's method takes on most problems, at most
FACTORED = 0.05  # share of the likely rounds that a factorisation may count for where Anderson over IMEX is the first
MEMORY = 3_000_000  # numbers that Anderson may remember
LEAST = 20  # steps that Anderson remembers, at least, if they take no more than MEMORY
FEW = 10  # steps that Anderson remembers, at least, if LEAST take more: reading them takes longer than the products
IMPLICIT = 8.0  # products with A, and as many with A', that a step of IMEX takes where IMEX is worth it, at least
LATE = 512.0  # rounds that each of the other methods has without strong convexity before the proximal point method
LATE_LPD_GS = 128.0  # rounds that each of the other methods has before LPD-GS where Newton's method takes turns as well
LATE_DIPPA = 256.0  # rounds that each of the other methods has before DIPPA where the coupling is strong
ROUNDS = 10  # Anderson is used on shards where reading A takes longer than this many rounds of an engine
BANDWIDTH = 5e9  # bytes a second at which a worker reads its shard


class Plan(NamedTuple):
    """Methods in the order in which they are tried, and the reason for the first in words."""

    methods: tuple[Method, ...]
    reason: str
    turns: int = 1  # how many of the first methods take turns
    prices: Mapping[str, float] = MappingProxyType({})  # what calls cost, by oracle
    rates: Mapping[Method, float] = MappingProxyType({})  # work of a method for one round of calls, where it is not 1
    first_turn: float = FIRST_TURN  # work after which the first turn of the first method may end
    late: Mapping[Method, float] = MappingProxyType({})  # work of the others before the first turn of a method

    @property
    def racing(self) -> tuple[Method, ...]:
        """The methods that take turns; none if there is only one."""
        return self.methods[: self.turns] if self.turns > 1 else ()

    @property
    def in_order(self) -> tuple[Method, ...]:
        """The first method, and those that follow when no method takes turns any more."""
        return (self.methods[0], *self.methods[max(self.turns, 1) :])

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
    if f.mu == 0.0:
        flat = [name for name, function in (("g", f.g), ("h", f.h)) if function.mu == 0.0]
        reason = f"{' and '.join(flat)} {'is' if len(flat) == 1 else 'are'} not strongly convex"
        steps = mixed_steps(f)
        first_order = Preconditioned(Halpern(PDHG())), Anderson(PDHG(), steps), Proximal(Anderson(CondatVu(), steps))
        if gradient_cost(costs) < DEAR and worth_interior_point(f):
            return Plan((InteriorPoint(), *first_order), f"{reason}, and factorisations take little")
        return Plan(first_order, reason, 3, dict(costs or {}), late={first_order[-1]: LATE})
    if f.space.of_x.is_sharded:
        return on_shards(f)
    kx, ky, c = f.numbers
    strength, steps = c / math.sqrt(kx) / math.sqrt(ky), mixed_steps(f)
    methods: tuple[Method, ...]
    if f.has_simple:
        side = "g" if f.h.simple is None else "h" if f.g.simple is None else "g and h"
        reason = f"{side} has a simple term" if len(side) == 1 else "g and h have simple terms"
        methods = Anderson(CondatVu(), steps), Anderson(LPDGS(), steps), LPDGS()
        return Plan(methods, reason, 2, dict(costs or {}), first_turn=LONG * FIRST_TURN)
    sweep, imex = Anderson(CondatVu(), steps), make_method("anderson-imex", window=mixed_steps(f, IMPLICIT))
    quadratic, room = f.g.quadratic and f.h.quadratic, 2 * LEAST * sum(f.shape) <= MEMORY
    if quadratic and gradient_cost(costs) < DEAR and worth_factorising(f):
        return Plan((Direct(), Krylov(), LPDGS()), "g and h are quadratic, and a factorisation takes little")
    name, reason = recommend(kx, ky, c, *oracle_prices(costs))
    late: dict[Method, float] = {}
    newton: tuple[Method, ...] = (Newton(),) if worth_newton(f, costs) else ()
    timed = bool(newton) and costs is None and has_ready_matrices(f)
    of_newton = newton_work(f, timed) if newton else math.inf
    newton = newton if newton and max(0.5 * NEWTON_STEPS * of_newton, 2.0 * columns(f)) <= rounds(f) else ()
    newton_is_early = bool(newton) and newton_is_soon(f)
    newton_is_quick = newton_is_early and (newton_rounds(f) if timed else of_newton) <= QUICK
    newton_is_likely = bool(newton) and 0.25 * NEWTON_STEPS * newton_calls(f) <= EASY * rounds(f)
    newton_is_small = newton_is_early and newton_calls(f) <= SMALL_STEP
    newton_is_small |= timed and name == imex.label and is_factorised(imex, f) and columns(f) <= min(f.shape)
    newton_is_first = bool(newton) and newton_is_small and strength > NOTED and eliminates_most(f)
    if name == "separated" and not (quadratic and strength <= WEAK):
        methods, turns = (Separated(), sweep, *newton, LPDGS()), 1
    elif quadratic:
        reason = reason if name == imex.label else "g and h are quadratic"
        if name == imex.label:
            methods = imex, Krylov()
        elif strength > WEAK:
            methods = Krylov(), imex
        else:
            methods = (sweep, Krylov()) if min(kx, ky) <= UNIFORM else (Krylov(), sweep)
        methods, turns = (*methods, LPDGS()), 2
    elif strength > NOTED and room:
        first, second = (imex, sweep) if name == imex.label else (sweep, imex)
        dear = gradient_time(f) if costs is None and has_ready_matrices(f) else gradient_cost(costs)
        if first is imex and dear < DEAR and begins_with_many_calls(imex, f):
            first, second, reason = sweep, imex, f"{reason}, but {imex.label} begins with a factorisation"
        methods, turns = (first, second, DIPPA(), LPDGS()), 3
        late[DIPPA()] = LATE_DIPPA
        if newton or strength < STRONG_ALONE:
            methods, turns = (first, second, *newton, LPDGS()), 3
        if newton and (newton_is_quick or newton_is_likely):
            methods = (first, *newton, second, LPDGS())
    elif name == imex.label:
        methods, turns, late[DIPPA()] = (imex, DIPPA(), sweep, *newton, LPDGS()), 2, LATE_DIPPA
    elif room:
        methods, turns = (sweep, *newton, imex, LPDGS()), 3 + len(newton)
        if newton:
            late[LPDGS()] = LATE_LPD_GS
    else:
        methods, turns = (sweep, *newton, LPDGS()), 2
    if newton_is_first and name != "separated" and not quadratic:
        methods, turns = (*newton, *(method for method in methods if method not in newton)), max(turns, 3)
        reason = "the larger side is quadratic, and a step counts for few calls"
    rates: dict[Method, float] = dict.fromkeys((DIPPA(), LPDGS()), unmixed_rate(f, steps)) if costs is None else {}
    first_turn = FIRST_TURN
    if newton and (newton_is_quick or newton_is_likely):
        first_turn *= 0.25 if newton_is_quick and newton_is_likely and name != imex.label else 0.5
    if newton:
        rates[Newton()] = 4.0 * of_newton / newton_calls(f)
        late[Newton()] = max(0.5 * first_turn, 0.0 if newton_is_early else 0.5 * of_newton)
    return Plan(methods, reason, turns, dict(costs or {}), rates, first_turn, late)


def mixed_steps(f: Saddle, products: float = 1.0) -> int:
    """How many steps Anderson remembers: fewer where memory is short, or where products take less time than mixing.

    A step of the mixing reads the memory about three times, and on average half of it is filled. The step of the method
    takes this many ``products`` with A and as many with A'.
    """
    size = sum(f.shape)
    traffic = 2.0 * products * (STEP + 2.0 * entries(f.A)) / (MIXED * size)
    least = LEAST if 2 * LEAST * size <= MEMORY else FEW
    return int(min(100.0, max(least, min(traffic, MEMORY / (2 * size)))))


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


def is_factorised(method: Method, f: Saddle) -> bool:
    """Whether a method that mixes IMEX factorises A."""
    inner = method.method if isinstance(method, Anderson) else method
    return isinstance(inner, IMEX) and inner.factorised(inner.normal_form(f).problem)


def begins_with_many_calls(method: Method, f: Saddle) -> bool:
    """Whether a method that mixes IMEX begins with a factorisation that counts for many calls.

    Many are more than a first turn has, and more than a share of those that the condition numbers suggest.
    """
    return min(f.shape) > max(FIRST_TURN, FACTORED * rounds(f)) and is_factorised(method, f)


def is_strong(kx: float, ky: float, c: float) -> bool:
    """Whether solving for the coupling pays: if it is strong, or noticeable and the players unevenly conditioned.

    In the second case it does not where all condition numbers are small, because then few steps of the sweep suffice.
    """
    strength, uneven = c / math.sqrt(kx) / math.sqrt(ky), math.sqrt(max(kx, ky) / min(kx, ky))
    return strength >= STRONG or (strength >= NOTICEABLE and strength * uneven >= STRONG and kx + ky + c > EASILY)


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
    grad_g, grad_h, product = oracle_prices(costs)
    return (grad_g + grad_h) / (product + product)
