"""Count the calls of a method on the chain that is hardest for first-order methods, and the rounds it forces."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.methods.base import Method
from saddlepoint.methods.registry import make_method, methods
from saddlepoint.problems.generators import chain, chain_solution
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.interruption import uninterrupted
from saddlepoint.solving.result import Result, Status
from saddlepoint.solving.solve import solve
from saddlepoint.theory.lower import forced_rounds, tail_rounds

Point = tuple[float, float, float]  # kx, ky, coupling
LONGEST = 100_000  # most variables of a chain that is solved; longer ones are taken as infinite


class Measurement(NamedTuple):
    """The work of one run. ``calls`` counts the busiest of the four oracles."""

    method: str
    kx: float
    ky: float
    coupling: float
    solved: bool  # whether the true distance, which is known here, was reduced as asked
    calls: int
    gradients: int  # gradients of g and h together
    products: int  # products with A and A' together
    seconds: float
    forced: int  # the rounds that this chain forces on every method


class HardChain(NamedTuple):
    """The chain for three numbers, with its solution."""

    f: Saddle
    x: Array
    y: Array

    @property
    def norm(self) -> float:
        """|(x*, y*)|, the distance from which the methods start."""
        return math.hypot(norm(self.x), norm(self.y))


def chain_length(kx: float, ky: float, coupling: float, tol: float) -> int:
    """The number of variables for which the last entries of the solution are well below ``tol``."""
    return 20 + math.ceil(1.5 * forced_rounds(kx, ky, coupling, tol))


@lru_cache(maxsize=64)
def hard_chain(kx: float, ky: float, coupling: float, tol: float) -> HardChain:
    """A chain that is long enough for the accuracy ``tol``."""
    n = chain_length(kx, ky, coupling, tol)
    return HardChain(chain(n, kx, ky, coupling), *chain_solution(n, kx, ky, coupling))


def forced_on_chain(kx: float, ky: float, coupling: float, tol: float) -> int:
    """The rounds without which no method reduces the distance to ``tol`` times its start on this chain."""
    n = chain_length(kx, ky, coupling, tol)
    if n > LONGEST:
        return forced_rounds(kx, ky, coupling, tol)
    x, y = chain_solution(n, kx, ky, coupling)
    return tail_rounds(x, y, tol * math.hypot(norm(x), norm(y)))


def measure(
    method: str | Method, kx: float, ky: float, coupling: float, tol: float, max_seconds: float = 60.0
) -> Measurement:
    """Run ``method`` on the chain until the distance |(x,y)-(x*,y*)| is ``tol`` times its start.

    The run ends by the true distance, as in the lower bound; with a certificate every method would need more calls. The
    distance is known wherever a certificate is taken. Between the last two, its logarithm is taken as linear.

    Raises:
        KeyboardInterrupt: Ctrl-C ended the run.
    """
    made = make_method(method) if isinstance(method, str) else method
    problem = hard_chain(kx, ky, coupling, tol)
    target = tol * problem.norm

    seen: list[tuple[float, dict[str, int]]] = []

    def watch(result: Result) -> None:
        seen.append((math.hypot(norm(result.x - problem.x), norm(result.y - problem.y)), dict(result.calls)))
        if seen[-1][0] <= target:
            raise StopIteration

    options: dict[str, Any] = {"max_seconds": max_seconds, "callback": watch, "history": False}
    result = uninterrupted(solve(problem.f, method=made, tol=target, **options))
    calls = calls_until(target, seen) if result.status is Status.STOPPED else result.calls
    return Measurement(
        method if isinstance(method, str) else method.label,
        kx,
        ky,
        coupling,
        result.status in (Status.SOLVED, Status.STOPPED),
        max(calls.values()),
        calls["grad_g"] + calls["grad_h"],
        calls["A"] + calls["At"],
        result.seconds,
        tail_rounds(problem.x, problem.y, target),
    )


def calls_until(target: float, seen: list[tuple[float, dict[str, int]]]) -> dict[str, int]:
    """The calls after which the distance was ``target``, between the last two that were seen."""
    (last, after), (first, before) = seen[-1], seen[-2] if len(seen) > 1 else (math.inf, seen[-1][1])
    share = math.log(first / target) / math.log(first / last) if last > 0.0 and first < math.inf else 1.0
    return {name: before[name] + math.ceil(share * (after[name] - before[name])) for name in after}


def measure_along(
    method: str, points: Iterable[Point], tol: float, max_seconds: float, tell: Callable[[Measurement], None]
) -> list[Measurement]:
    """Run ``method`` at one point after the other, and stop after the first run that takes too long."""
    runs: list[Measurement] = []
    for kx, ky, coupling in points:
        runs.append(measure(method, kx, ky, coupling, tol, max_seconds))
        tell(runs[-1])
        if not runs[-1].solved:
            break
    return runs


def gradient_methods() -> list[str]:
    """The registered methods that need no prox and work for any g and h, and have a bound with strong convexity."""
    return [info.name for info in methods() if info.oracle == "gradients" and make_method(info.name).needs.strong]


def chain_methods() -> list[str]:
    """The registered methods that can run on the chain: they need gradients, or quadratic functions."""
    return [*gradient_methods(), *(info.name for info in methods() if info.oracle == "quadratic")]
