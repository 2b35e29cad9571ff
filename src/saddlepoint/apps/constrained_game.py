r"""Games with linear constraints, by a proximal augmented Lagrangian.

Problem:    min_x max_y p(x) + <x, A y> - q(y)   subject to  B x = b, x >= 0  and  C y = c, y >= 0,
            with convex smooth costs p and q, which may be missing. Player x minimises and y maximises, as everywhere in
            this library except in ``MatrixGame``, where the row player maximises. The multipliers are l, s of the
            equations and u, v >= 0 of the bounds.
Recursion:  (x_{k+1}, y_{k+1}) is the saddle point, up to a certified distance, of g(x) + <x, A y> - h(y) with
            g(x) = p(x) + r/2 |B x - b + l_k/r|^2 + r/2 |(u_k/r - x)_+|^2 + a/2 |x - x_k|^2,  and h likewise;
            l_{k+1} = l_k + r (B x_{k+1} - b),   u_{k+1} = (u_k - r x_{k+1})_+,   s and v likewise.
            After a cheap subproblem, r grows and a shrinks.
Constants:  mu_x = a + mu_p and L_x = L_p + r (|B|^2 + 1) + a, because the Hessian of g is that of p plus r B'B plus r
            on the coordinates with u_k > r x plus a. The methods need gradients only; a prox of g would be as hard as
            the problem.
Guarantee:  this is the proximal point method for the monotone operator of the optimality conditions, in a metric with
            the weight a for x, y and 1/r for the multipliers. It converges from any start and for any a and r if the
            errors of the steps have a finite sum. For linear games the convergence is linear in the end, and faster for
            larger r and smaller a.
            Two simplices with strongly convex costs need no multipliers: they are one saddle problem with simple terms,
            whose certificate bounds the exploitability and the distance to the equilibrium.
Reference:  R. T. Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm in convex
            programming, Math. Oper. Res. 1976; C. Kanzow and D. Steck, Augmented Lagrangian methods for the solution of
            generalized Nash equilibrium problems, SIAM J. Optim. 2016.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import diags_array

from saddlepoint.apps.augmented_lagrangian import Penalised, Side
from saddlepoint.apps.equilibrium import Equilibrium, Step, steps_of
from saddlepoint.apps.payoffs import Payoffs
from saddlepoint.apps.player_costs import CostSlope, check_cost, cost_at
from saddlepoint.apps.simplex import Simplex
from saddlepoint.apps.strategies import as_strategies
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.ground.validation import as_callback, as_count, as_flag, as_float_array, positive
from saddlepoint.methods import Method
from saddlepoint.methods.registry import method_or_auto
from saddlepoint.parts import simple
from saddlepoint.parts.coupling import DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.parts.functions import Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.interruption import signal_of
from saddlepoint.solving.progress import Progress, make_progress
from saddlepoint.solving.result import Record
from saddlepoint.solving.solve import solve
from saddlepoint.theory.exploitability import UNIT, products_bound

PENALTY = 3.0  # r of the first step, in units where |A| = 1 and strategies have entries of about 1
PROXIMAL_WEIGHT = 0.03  # a of the first step, in the units of PENALTY
GROWTH = 1.4  # factor of r and of 1/a after a cheap subproblem
CHEAP_CALLS = 5  # oracle calls per variable of the larger player up to which a subproblem counts as cheap
STEP_ACCURACY = 0.5  # certified error of a step, relative to the length of the step before
FIRST_ACCURACY = 0.1  # certified error of the first step
NEWTON_VARIABLES = 20_000  # number of variables up to which Newton's method is the default


class ConstrainedGame:
    """min_x max_y p(x) + <x, A y> - q(y) subject to B x = b, x >= 0 and C y = c, y >= 0.

    Player x, who has the rows of A, minimises; y, who has the columns, maximises. (In ``MatrixGame`` it is the other
    way round: there the row player maximises.)

    Args:
        payoff: A; an array or a SciPy sparse array.
        strategies_x, strategies_y: (B, b) and (C, c), or objects with the methods of ``Strategies``.
        cost_x, cost_y: p and q, convex ``Smooth`` functions of x and y; None is no cost.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> payoff = np.array([[2.0, -1.0], [-1.0, 1.0]])
        >>> found = sp.apps.ConstrainedGame.mixed(payoff).solve(tol=1e-8)
        >>> found.solved, found.x.round(4), round(found.value, 6)
        (True, array([0.4, 0.6]), 0.2)
    """

    def __init__(
        self,
        payoff: Any,
        strategies_x: Any,
        strategies_y: Any,
        cost_x: Smooth | None = None,
        cost_y: Smooth | None = None,
    ) -> None:
        A = as_coupling(payoff, "payoff")
        if not isinstance(A, DenseCoupling | SparseCoupling):
            raise ProblemError(f"payoff is a {type(payoff).__name__}; expected an array or a sparse array")
        self._payoffs = Payoffs(A.A.astype(np.float64))
        self.payoff = self._payoffs.matrix
        m, n = self.payoff.shape
        self.strategies_x = as_strategies(strategies_x, "B x = b, x >= 0", m)
        self.strategies_y = as_strategies(strategies_y, "C y = c, y >= 0", n)
        for name, cost, size in (("cost_x", cost_x, m), ("cost_y", cost_y, n)):
            if cost is None:
                continue
            if not isinstance(cost, Smooth):
                raise ProblemError(f"{name} is a {type(cost).__name__}; expected a Smooth function, or None")
            check_cost(cost, name, size)
        self.cost_x, self.cost_y = cost_x, cost_y

    @classmethod
    def mixed(cls, payoff: Any, cost_x: Smooth | None = None, cost_y: Smooth | None = None) -> ConstrainedGame:
        """The game in mixed strategies: x has probabilities of the rows and minimises, y of the columns and maximises.

        Without costs, this is ``MatrixGame(payoff.T)`` with the players exchanged, or ``MatrixGame(-payoff)`` with the
        sign of the value changed.
        """
        m, n = as_coupling(payoff, "payoff").shape
        return cls(payoff, Simplex(m), Simplex(n), cost_x, cost_y)

    def exploitability(self, x: Array, y: Array) -> float:
        """A proven bound on what both players gain together if each changes its strategy alone.

        Without costs this is max_v <x, A v> - min_u <u, A y> over the strategies u and v. With costs, convexity bounds
        the gain of y by the best response to the gradient A'x - grad q(y), and that of x likewise. Everything that
        rounding may hide is added, and best responses are bounded from above, whatever the tolerances of a solver are.
        Where the entries of x sum to 1 only up to rounding, x stands for the strategy next to it. For constraints that
        are given as (B, b), x stands for itself; ``Equilibrium.infeasibility`` is its distance from satisfying them.
        """
        x, y = (_as_point(v, name, size) for v, name, size in zip((x, y), "xy", self.payoff.shape, strict=True))
        change_x, change_y = self.strategies_x.rounding(x), self.strategies_y.rounding(y)
        with np.errstate(all="ignore"):
            wx, wy = -(self.payoff @ y), self._payoffs.transposed @ x
            errors_x, errors_y = (
                products_bound(sizes, v, change)
                for sizes, v, change in zip(self._payoffs.sizes, (y, x), (change_y, change_x), strict=True)
            )
            p, q = CostSlope(self.cost_x, x, change_x), CostSlope(self.cost_y, y, change_y)
            best_x = self.strategies_x.best_bound(wx - p.slope, errors_x + p.errors + UNIT * (abs(wx) + abs(p.slope)))
            best_y = self.strategies_y.best_bound(wy - q.slope, errors_y + q.errors + UNIT * (abs(wy) + abs(q.slope)))
            terms = (best_x, best_y, p.inner, q.inner)  # <x, A y> cancels
            bound = (
                math.fsum(terms) + 2.0 * UNIT * math.fsum(map(abs, terms))
                if all(map(math.isfinite, terms))
                else math.inf
            )
        return max(0.0, bound)

    def value(self, x: Array, y: Array) -> float:
        """p(x) + <x, A y> - q(y); NaN where a cost was given no value."""
        return cost_at(self.cost_x, x) + inner(x, self.payoff @ y) - cost_at(self.cost_y, y)

    def gradients(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The gradients of what the players want to be large: -f in x, f in y."""
        wx, wy = -(self.payoff @ y), self._payoffs.transposed @ x
        return (
            wx if self.cost_x is None else wx - self.cost_x.grad(x),
            wy if self.cost_y is None else wy - self.cost_y.grad(y),
        )

    def solve(
        self,
        *,
        tol: float = 1e-6,
        feasibility: float = 1e-6,
        method: str | Method | None = None,
        max_steps: int = 1000,
        max_calls: int | None = None,
        max_seconds: float | None = None,
        callback: Callable[[Equilibrium], object] | None = None,
        progress: bool = False,
    ) -> Equilibrium:
        """An equilibrium with exploitability and stationarity up to ``tol`` and infeasibility up to ``feasibility``.

        Args:
            tol: in units of the payoff.
            feasibility: relative to the right-hand sides of the constraints, or to 1 where they are smaller.
            method: the method for the subproblems, a registered name or a ``Method``. None takes ``newton`` if the
                costs have Hessians and the game has no more than 20 000 variables, and ``auto`` otherwise. Any gradient
                method works; ``anderson-condat-vu`` is the fastest one on games. Probabilities with strongly convex
                costs are solved without subproblems if ``method`` is None.
            max_steps: outer steps.
            max_calls: calls of each oracle that the method makes at most, over all subproblems.
            max_seconds: wall-clock limit.
            callback: called with the ``Equilibrium`` so far after each step; raise StopIteration to end the run.
            progress: show a progress bar.

        Raises:
            ProblemError: the constraints of a player have no solution.
        """
        tol, feasibility = positive(tol, "tol"), positive(feasibility, "feasibility")
        max_steps = as_count(max_steps, "max_steps", 0)
        max_calls = None if max_calls is None else as_count(max_calls, "max_calls", 0)
        limit, progress = TimeLimit(max_seconds), as_flag(progress, "progress")
        callback = as_callback(callback, "an Equilibrium")
        if method is not None:
            method_or_auto(method)
        if method is None and self._is_strongly_convex_on_simplices():
            found = self._solve_on_simplices(tol, feasibility, max_calls, limit, progress)
            if found.solved or found.interrupted or limit.is_over:
                with contextlib.suppress(StopIteration):
                    if callback is not None:
                        callback(found)
                return found
            max_calls = None if max_calls is None else max(0, max_calls - max(found.calls.values()))
        run = _Run(self, tol, feasibility, self._method() if method is None else method)
        with make_progress(progress, tol, "exploitability") as bar:
            return run.run(max_steps, max_calls, limit, callback, bar)

    def _is_strongly_convex_on_simplices(self) -> bool:
        both = ((self.strategies_x, self.cost_x), (self.strategies_y, self.cost_y))
        return all(isinstance(set_, Simplex) and cost is not None and cost.mu > 0.0 for set_, cost in both)

    def _solve_on_simplices(
        self, tol: float, feasibility: float, max_calls: int | None, limit: TimeLimit, progress: bool
    ) -> Equilibrium:
        """The equilibrium of two players with probabilities and strongly convex costs, by one run of ``solve``.

        The certified distance is sqrt(2 (1/mu_x + 1/mu_y) gap) at most, and this is what ``solve`` is asked for.
        """
        assert self.cost_x is not None
        assert self.cost_y is not None
        f = Saddle(self.cost_x + simple.Simplex(), self.cost_y + simple.Simplex(), self.payoff)
        goal = math.sqrt(2.0 * tol) * math.hypot(1.0 / math.sqrt(f.mu_x), 1.0 / math.sqrt(f.mu_y))
        x, y = self.strategies_x.start, self.strategies_y.start
        limits: dict[str, Any] = {"max_calls": max_calls, "max_seconds": limit.left}
        result = solve(f, x, y, tol=goal, progress=progress, **limits)
        x, y = result.x, result.y
        wx, wy = self.gradients(x, y)
        # The multiplier of the sum is the largest gradient; what the others lack is the multiplier of x >= 0.
        multipliers_x, multipliers_y = ((np.array([float(w.max())]), w.max() - w) for w in (wx, wy))
        infeasibility = max(self.strategies_x.violation(x), self.strategies_y.violation(y))
        gain = min(result.certificate.gap, self.exploitability(x, y))
        solved = gain <= tol and infeasibility <= feasibility
        message = f"exploitability {gain:.3g}, infeasibility {infeasibility:.3g}, {result.iterations} steps"
        return Equilibrium(
            x,
            y,
            self.value(x, y),
            gain,
            infeasibility,
            multipliers_x,
            multipliers_y,
            stationarity=0.0,
            solved=solved,
            message=message if solved else f"{message}; {tol:.3g} was asked for, {result.message}",
            steps=1,
            calls=dict(result.calls),
            seconds=result.seconds,
            distance=result.certificate.distance,
            history=steps_of(result.history),
            interrupted=signal_of(result),
        )

    def subproblem(self) -> Saddle:
        """The first subproblem, in scaled variables: an example of what the methods have to solve."""
        return _Run(self, 1.0, 1.0, "auto").subproblem(PENALTY, PROXIMAL_WEIGHT)

    def _method(self) -> str:
        smooth = all(cost is None or cost.hessian for cost in (self.cost_x, self.cost_y))
        return "newton" if smooth and sum(self.payoff.shape) <= NEWTON_VARIABLES else "auto"


class _Run:
    """One solve in progress."""

    def __init__(self, game: ConstrainedGame, tol: float, feasibility: float, method: str | Method) -> None:
        self.game, self.tol, self.feasibility, self.method = game, tol, feasibility, method
        self.x = Side(game.strategies_x.constraints, game.strategies_x.start)
        self.y = Side(game.strategies_y.constraints, game.strategies_y.start)
        A = diags_array(self.x.d) @ game.payoff @ diags_array(self.y.d)
        unit = as_coupling(A).norm or 1.0
        self.A = as_coupling(A / unit)
        self.x.set_cost(game.cost_x, unit)
        self.y.set_cost(game.cost_y, unit)
        self.calls: Counter[str] = Counter()
        self.history: list[Step] = []

    def subproblem(self, r: float, a: float) -> Saddle:
        """The subproblem with the penalty r and the proximal weight a around the present point."""
        return Saddle(Penalised(self.x, r, a), Penalised(self.y, r, a), self.A)

    def run(
        self,
        max_steps: int,
        max_calls: int | None,
        limit: TimeLimit,
        callback: Callable[[Equilibrium], object] | None,
        bar: Progress,
    ) -> Equilibrium:
        """The outer loop."""
        r, a, accuracy = PENALTY, PROXIMAL_WEIGHT, FIRST_ACCURACY
        best, ending, signal = self.evaluate(), "", ""
        for step in range(1, max_steps + 1):
            calls = None if max_calls is None else max_calls - max(self.calls.values(), default=0)
            if best.solved or ending or limit.is_over or (calls is not None and calls <= 0):
                break
            f = self.subproblem(r, a)
            limits: dict[str, Any] = {"max_calls": calls, "max_seconds": limit.left}
            result = solve(f, self.x.v, self.y.v, method=self.method, tol=accuracy, history=False, **limits)
            self.calls.update(result.calls)
            move = math.hypot(self.x.move(result.x, r), self.y.move(result.y, r))
            now = self.evaluate()
            seconds = limit.spent
            self.history.append(Step(step, max(self.calls.values()), seconds, now.exploitability, now.infeasibility, r))
            bar.update(_record(self.history[-1], self.calls, result.passes))
            best = now if self.error(now) <= self.error(best) else best
            best.steps, best.seconds, best.calls, best.history = step, seconds, dict(self.calls), self.history
            signal = signal_of(result)
            ending = "interrupted at " if signal else ""
            try:
                if callback is not None:
                    callback(best)
            except StopIteration:
                ending = "stopped by the callback at "
            if move > 0.0:
                accuracy = min(accuracy, STEP_ACCURACY * move)
            if max(result.calls.values()) <= CHEAP_CALLS * max(self.A.shape):
                r, a = r * GROWTH, a / GROWTH
        short = "" if best.solved or ending else f"; {self.tol:.3g} was asked for, raise the limits"
        reached = f"exploitability {best.exploitability:.3g}, infeasibility {best.infeasibility:.3g}"
        best.interrupted = signal
        best.message = f"{ending}{reached}, {best.steps} outer steps{short}"
        return best

    def error(self, now: Equilibrium) -> float:
        """The largest error relative to its tolerance: at most 1 if ``now`` is good enough."""
        payoff = max(now.exploitability, now.stationarity)
        return max(payoff / self.tol, now.infeasibility / self.feasibility)

    def evaluate(self) -> Equilibrium:
        """The present point in the units of the game, and how good it is."""
        game = self.game
        (x, multiplier_x, bound_multiplier_x), (y, multiplier_y, bound_multiplier_y) = (
            self.x.original(),
            self.y.original(),
        )
        x, y = game.strategies_x.nearest(x), game.strategies_y.nearest(y)
        wx, wy = game.gradients(x, y)
        stationarity = max(
            float(np.abs(side.d * (w - E.T @ multiplier + bound_multiplier)).max())
            for side, w, (E, _), multiplier, bound_multiplier in (
                (self.x, wx, game.strategies_x.constraints, multiplier_x, bound_multiplier_x),
                (self.y, wy, game.strategies_y.constraints, multiplier_y, bound_multiplier_y),
            )
        )
        infeasibility = max(game.strategies_x.violation(x), game.strategies_y.violation(y))
        exploitability = game.exploitability(x, y)
        found = Equilibrium(
            x,
            y,
            game.value(x, y),
            exploitability,
            infeasibility,
            (multiplier_x, bound_multiplier_x),
            (multiplier_y, bound_multiplier_y),
            stationarity,
            False,
        )
        found.solved = self.error(found) <= 1.0
        return found


def _as_point(v: Any, name: str, size: int) -> Array:
    """A vector of ``size`` numbers, which may be infinite or NaN: nothing is proven about such a point."""
    point = as_float_array(v, name).astype(np.float64)
    if point.shape != (size,):
        raise ProblemError(f"{name} has shape {point.shape}; expected {size} entries")
    return point


def _record(step: Step, calls: Counter[str], passes: int) -> Record:
    error = max(step.exploitability, step.infeasibility)
    return Record(
        step.step, calls["grad_g"], calls["grad_h"], calls["A"], calls["At"], passes, step.seconds, error, error
    )
