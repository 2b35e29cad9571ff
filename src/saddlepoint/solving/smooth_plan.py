"""Which methods `auto` tries where g and h are smooth and strongly convex; the reasons are in ``solving.auto``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from saddlepoint.methods import (
    DIPPA,
    IMEX,
    LPDGS,
    Anderson,
    CondatVu,
    Krylov,
    Method,
    Newton,
    Separated,
    make_method,
)
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.factoring import (
    EASY,
    columns,
    eliminates_most,
    gradient_time,
    gram_work,
    has_ready_matrices,
    newton_calls,
    newton_is_soon,
    newton_rounds,
    newton_work,
    rounds,
    unmixed_rate,
    worth_newton,
)
from saddlepoint.solving.plan import Plan, has_room_for_two, mixed_steps
from saddlepoint.solving.race import FIRST_TURN
from saddlepoint.solving.recommendation import DEAR, coupling_strength, gradient_cost, oracle_prices, recommend

WEAK = 0.5  # |A|/sqrt(L_x L_y) up to which a Krylov method takes turns with Anderson's mixing over the sweep, not IMEX
UNIFORM = 2.0  # min(kx, ky) up to which the sweep beats a Krylov method: it nearly eliminates the better side
NOTED = 0.2  # |A|/sqrt(L_x L_y) from which Anderson's mixing over IMEX may be faster than over the sweep
STRONG_ALONE = 1.0  # |A|/sqrt(L_x L_y) from which LPD-GS is hardly ever the fastest
QUICK = 8.0  # rounds that a step of Newton's method takes, at most, where the method is the second to have a turn
SMALL_STEP = 64  # calls of all oracles that a step of Newton's method takes, at most, where the method is the first
INSTANT = 2.3  # rounds in the time of a step of Newton's method up to which the method is the first
NEWTON_STEPS = 12  # steps that Newton's method takes on most problems, at most
FACTORED = 0.05  # share of the likely rounds that a factorisation may count for where Anderson over IMEX is the first
IMPLICIT = 8.0  # products with A, and as many with A', that a step of IMEX takes where IMEX is worth it, at least
LATE_LPD_GS = 128.0  # rounds that each of the other methods has before LPD-GS where Newton's method takes turns as well
LATE_DIPPA = 256.0  # rounds that each of the other methods has before DIPPA where the coupling is strong


@dataclass(frozen=True)
class NewtonEstimate:
    """What steps of Newton's method would take on a problem, beside those of other methods."""

    work: float  # rounds of gradients and products that a step counts for
    calls: int  # calls of all four oracles that a step counts for
    is_soon: bool  # whether the other methods are likely to take more calls than a step
    is_quick: bool  # whether, besides, a step takes few rounds
    is_likely: bool  # whether all steps that most problems need take few calls
    is_instant: bool  # whether a step is known to take hardly more time than a round

    @property
    def is_second(self) -> bool:
        """Whether Newton's method has its first turn right after that of the likeliest method."""
        return self.is_quick or self.is_likely

    @classmethod
    def of(cls, f: Saddle, costs: Mapping[str, float] | None) -> NewtonEstimate | None:
        """The estimate; None where Newton's method has no turn."""
        if not worth_newton(f, costs):
            return None
        timed = costs is None and has_ready_matrices(f)
        is_instant = timed and newton_rounds(f) <= INSTANT
        work, calls = newton_rounds(f) if is_instant else newton_work(f, timed), newton_calls(f)
        if 0.5 * NEWTON_STEPS * work > rounds(f) or (2.0 * columns(f) > rounds(f) and not is_instant):
            return None
        is_soon = newton_is_soon(f)
        is_quick = is_soon and (newton_rounds(f) if timed else work) <= QUICK
        return cls(work, calls, is_soon, is_quick, 0.25 * NEWTON_STEPS * calls <= EASY * rounds(f), is_instant)


@dataclass(frozen=True)
class Facts:
    """What the choice depends on where g and h are smooth and strongly convex."""

    f: Saddle
    costs: Mapping[str, float] | None  # None where the caller has not said what calls cost
    recommended: str  # the method that condition numbers and costs recommend
    reason: str  # why they do
    steps: int  # that Anderson's mixing over the sweep remembers
    newton: NewtonEstimate | None  # None where Newton's method has no turn

    @classmethod
    def of(cls, f: Saddle, costs: Mapping[str, float] | None) -> Facts:
        """The facts about a problem."""
        recommended, reason = recommend(*f.numbers, *oracle_prices(costs))
        return cls(f, costs, recommended, reason, mixed_steps(f), NewtonEstimate.of(f, costs))

    @property
    def sweep(self) -> Method:
        """Anderson's mixing over the sweep of Condat and Vu."""
        return Anderson(CondatVu(), self.steps)

    @property
    def imex(self) -> Method:
        """Anderson's mixing over IMEX."""
        return make_method("anderson-imex", window=mixed_steps(self.f, IMPLICIT))

    @property
    def recommends_imex(self) -> bool:
        """Whether mixing over IMEX is recommended, because the coupling is strong or gradients are expensive."""
        return self.recommended == self.imex.label

    @property
    def newtons(self) -> tuple[Method, ...]:
        """Newton's method, if it has a turn."""
        return () if self.newton is None else (Newton(),)

    @property
    def strength(self) -> float:
        """The strength of the coupling beside the functions, |A|/sqrt(L_x L_y)."""
        return coupling_strength(*self.f.numbers)

    @property
    def gradient_cost(self) -> float:
        """What a gradient costs beside a product, by time where that can be estimated."""
        timed = self.costs is None and has_ready_matrices(self.f)
        return gradient_time(self.f) if timed else gradient_cost(self.costs)


def plan_for_smooth_functions(f: Saddle, costs: Mapping[str, float] | None) -> Plan:
    """The methods by the kind of the functions and the strength of the coupling, and how long their turns are."""
    facts, quadratic = Facts.of(f, costs), f.g.quadratic and f.h.quadratic
    if facts.recommended == "separated" and not (quadratic and facts.strength <= WEAK):
        return with_turns(Plan((Separated(), facts.sweep, *facts.newtons, LPDGS()), facts.reason), facts)
    if quadratic:
        return with_turns(plan_for_quadratic_functions(facts), facts)
    noticeable = facts.strength > NOTED and has_room_for_two(f)
    plan = plan_for_noticeable_coupling(facts) if noticeable else plan_for_weak_coupling(facts)
    if facts.newton is not None and facts.newton.is_instant:
        plan = with_newton_first(plan, "a step takes hardly more time than a round of gradients and products")
    elif newton_is_first(facts):
        plan = with_newton_first(plan, "the larger side is quadratic, and a step counts for few calls")
    return with_turns(plan, facts)


def plan_for_quadratic_functions(facts: Facts) -> Plan:
    """A Krylov method in turns with IMEX, or with the sweep where the coupling is weak."""
    if facts.recommends_imex:
        return Plan((facts.imex, Krylov(), LPDGS()), facts.reason, 2)
    pair: tuple[Method, ...] = Krylov(), facts.sweep
    if facts.strength > WEAK:
        pair = Krylov(), facts.imex
    elif min(facts.f.numbers[:2]) <= UNIFORM:
        pair = facts.sweep, Krylov()
    return Plan((*pair, LPDGS()), "g and h are quadratic", 2)


def plan_for_noticeable_coupling(facts: Facts) -> Plan:
    """IMEX and the sweep in turns, the likelier one first, with Newton's method and, late, with DIPPA."""
    first, second, reason = facts.sweep, facts.imex, facts.reason
    if facts.recommends_imex:
        if facts.gradient_cost < DEAR and begins_with_many_calls(facts):
            reason = f"{reason}, but {facts.imex.label} begins with a factorisation"
        else:
            first, second = facts.imex, facts.sweep
    racing: tuple[Method, ...] = first, second, *facts.newtons
    if facts.newton is not None and facts.newton.is_second:
        racing = first, Newton(), second
    if facts.strength < STRONG_ALONE:
        return Plan((*racing, LPDGS()), reason, 3)
    return Plan((*racing, DIPPA(), LPDGS()), reason, len(racing) + 1, late={DIPPA(): LATE_DIPPA})


def plan_for_weak_coupling(facts: Facts) -> Plan:
    """The sweep in turns with the others; after IMEX in turns with DIPPA, where IMEX is recommended.

    The coupling is weak, or there is no room for two methods with mixing.
    """
    if facts.recommends_imex:
        methods = facts.imex, DIPPA(), facts.sweep, *facts.newtons, LPDGS()
        return Plan(methods, facts.reason, 2, late={DIPPA(): LATE_DIPPA})
    if not has_room_for_two(facts.f):
        return Plan((facts.sweep, *facts.newtons, LPDGS()), facts.reason, 2)
    methods = facts.sweep, *facts.newtons, facts.imex, LPDGS()
    return Plan(methods, facts.reason, len(methods), late={LPDGS(): LATE_LPD_GS} if facts.newtons else {})


def newton_is_first(facts: Facts) -> bool:
    """Whether Newton's method begins: one side is quadratic and far larger, and a step counts for few calls.

    These are few beside the calls that the other methods are likely to take, or no more than those of the
    factorisation with which IMEX would begin.
    """
    f, newton = facts.f, facts.newton
    if newton is None or facts.strength <= NOTED or not eliminates_most(f):
        return False
    if newton.is_soon and newton.calls <= SMALL_STEP:
        return True
    timed = facts.costs is None and has_ready_matrices(f)
    return timed and facts.recommends_imex and is_factorised(facts.imex, f) and columns(f) <= min(f.shape)


def with_newton_first(plan: Plan, reason: str) -> Plan:
    """The plan with Newton's method before all others, with which it takes turns."""
    others = tuple(method for method in plan.methods if method != Newton())
    return plan._replace(methods=(Newton(), *others), turns=max(plan.turns, 3), reason=reason)


def with_turns(plan: Plan, facts: Facts) -> Plan:
    """The plan with what the calls of methods count for, and with the times at which their turns begin."""
    newton, late, first_turn = facts.newton, dict(plan.late), FIRST_TURN
    rates: dict[Method, float] = {}
    if facts.costs is None:
        rates = dict.fromkeys((DIPPA(), LPDGS()), unmixed_rate(facts.f, facts.steps))
    if newton is not None:
        if newton.is_instant:
            first_turn = NEWTON_STEPS * newton.work
        elif newton.is_second:
            both = newton.is_quick and newton.is_likely and not facts.recommends_imex
            first_turn *= 0.25 if both else 0.5
        rates[Newton()] = 4.0 * newton.work / newton.calls
        late[Newton()] = max(0.5 * first_turn, 0.0 if newton.is_soon else 0.5 * newton.work)
    return plan._replace(prices=dict(facts.costs or {}), rates=rates, first_turn=first_turn, late=late)


def is_factorised(method: Method, f: Saddle) -> bool:
    """Whether a method that mixes IMEX factorises A."""
    inner = method.method if isinstance(method, Anderson) else method
    return isinstance(inner, IMEX) and inner.factorised(inner.normal_form(f).problem)


def begins_with_many_calls(facts: Facts) -> bool:
    """Whether mixing over IMEX begins with a factorisation that counts for many calls.

    Many are more than a first turn has, and more than a share of those that the condition numbers suggest.
    """
    work = gram_work(facts.f, timed=facts.costs is None)
    return work > max(FIRST_TURN, FACTORED * rounds(facts.f)) and is_factorised(facts.imex, facts.f)
