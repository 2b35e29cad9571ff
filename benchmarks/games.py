"""Exact games drawn afresh, and game trees: time to a proven exploitability, beside HiGHS and OpenSpiel.

    python benchmarks/games.py [--seed N] [--quick] [--write]
    python benchmarks/games.py --tree "Leduc, 26 cards" [--seconds N] [--only cfr ...] [--kept FILE]
    python benchmarks/games.py --highs "Leduc, 26 cards" [--highs-method highs-ipm] [--seconds N] [--kept FILE]

Matrix games of five kinds are drawn with the seed, which is taken from the clock unless it is given. The goal is an
exploitability of 1e-6 times the largest payoff. Trees are Leduc poker and liar's dice of OpenSpiel; regret matching and
OpenSpiel's solvers, which are compiled, have the same time, and the exploitability is that of exact best responses.
OpenSpiel's strategies are evaluated by the best responses of this library, which need less memory than its own. CFR+
and discounted CFR are also measured as array operations on the sequence form (`benchmarks/regret_peers.py`).
The second command prints the rows of one larger game, and the third one those of HiGHS on its linear program; both
are ended after so many seconds of CPU time, in which building the game does not count. `--kept FILE` keeps the game in
a file, because building the largest one takes minutes. `--write` keeps the part of the page about larger trees, whose
rows are those of the second and third commands.
"""

from __future__ import annotations

import argparse
import math
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import regret_peers
from highs_games import solve_matrix_game, solve_tree
from timing import once

from saddlepoint.apps import ExtensiveGame, MatrixGame
from saddlepoint.apps.sequence_program import sequence_program
from saddlepoint.ground.arrays import Array
from saddlepoint.solving.solve import solve

PAGE = Path(__file__).parent / "results" / "games.md"
LATER = "## Larger trees"  # heading of the part of the page that --write keeps
GOAL = 1e-6  # exploitability, relative to the largest payoff
LIMIT = 600.0  # seconds for HiGHS
INTERRUPT_AFTER = 3.0  # times its CPU time after which a solver of OpenSpiel is interrupted, if it is written in Python
ANSWER_WITHIN = 5.0  # seconds in which the answer of a process that has ended is read
LEDUC = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,raiseSize=2 4,firstPlayer=1 1,maxRaises=2 2,"
    "numSuits={suits},numRanks={ranks},numHoleCards=1,numBoardCards=0 1)"
)  # the bets of Leduc poker with a larger deck
LARGER = {  # games that the page names, and their names in OpenSpiel
    "Leduc, 12 cards": LEDUC.format(suits=2, ranks=6),
    "Leduc, 16 cards": LEDUC.format(suits=2, ranks=8),
    "Leduc, 26 cards": LEDUC.format(suits=2, ranks=13),
    "Leduc, 52 cards": LEDUC.format(suits=4, ranks=13),
}
DRAWS: dict[str, Callable[[Any, int], Array]] = {
    "uniform": lambda rng, n: rng.uniform(-1.0, 1.0, (n, n)),
    "normal": lambda rng, n: rng.standard_normal((n, n)),
    "rank five": lambda rng, n: rng.standard_normal((n, 5)) @ rng.standard_normal((5, n)),
    "5 % not zero": lambda rng, n: rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.05),
    "rows scaled by exp(2 normal)": lambda rng, n: (
        np.exp(2.0 * rng.standard_normal((n, 1))) * rng.standard_normal((n, n))
    ),
}


def matrix_games(rng: Any, sizes: tuple[int, ...], with_highs: int) -> Iterator[str]:
    """One row for each drawn game."""
    for n in sizes:
        for kind, draw in DRAWS.items():
            A = draw(rng, n)
            size = float(np.abs(A).max())
            spent, found = once(partial(MatrixGame(A).solve, tol=GOAL * size))
            beside = f"{once(partial(solve_matrix_game, A))[0].cpu:.2f}" if n <= with_highs else "not run"
            answer = f"{'yes' if found.solved else 'no'} | {found.exploitability / size:.1e}"
            yield f"| {n} x {n} | {kind} | {answer} | {spent.wall:.2f} | {spent.cpu:.2f} | {beside} |"


def end_after(seconds: int) -> None:
    """Carry on in a child process, and say so if it has no answer after so many seconds of CPU time."""
    began, child = time.perf_counter(), os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        return
    status = os.waitpid(child, 0)[1]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if os.WIFSIGNALED(status):
        spent = f"{time.perf_counter() - began:.1f} | {used.ru_utime + used.ru_stime:.1f}"
        print(f"{spent} | no answer, ended by signal {os.WTERMSIG(status)}; {used.ru_maxrss / 2**20:.1f} GiB of memory")
    raise SystemExit(status != 0)


def tree_by_highs(title: str, method: str = "highs", seconds: int | None = None, kept: Path | None = None) -> None:
    """The linear program of the second player, printed with its time; run in a process of its own."""
    game = built(title, kept)
    if seconds is not None:
        end_after(seconds)
    began, cpu = time.perf_counter(), time.process_time()
    found = solve_tree(game, method)
    spent = f"{time.perf_counter() - began:.1f} | {time.process_time() - cpu:.1f}"
    print(f"{spent} | value {found.fun:.7f}" if found.status == 0 else f"{spent} | not solved: {found.message}")


class Highs:
    """HiGHS on a tree, in a process of its own that begins at once.

    Args:
        title: the name of the game in OpenSpiel.
        limit: seconds after which it is ended.
    """

    def __init__(self, title: str, limit: float) -> None:
        self.limit, self.began = limit, time.perf_counter()
        command = [sys.executable, __file__, "--highs", title]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def answer(self) -> str:
        """What it printed, or that it did not end in time."""
        try:
            left = max(self.limit - (time.perf_counter() - self.began), ANSWER_WITHIN)
            return self.process.communicate(timeout=left)[0].strip() or "failed"
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return f"no answer in {self.limit:.0f} s | |"


def tree_rows(
    title: str,
    seconds: float,
    payoff: float,
    factorise: bool,
    only: Sequence[str] = (),
    kept: Path | None = None,
) -> Iterator[str]:
    """Rows of one game tree: this library, and the other solvers with the CPU time of its regret matching."""
    game = built(title, kept)
    name = f"{title}, {sum(game.shape)} sequences"
    if factorise:
        spent, found = once(partial(game.solve, tol=GOAL * payoff, method="interior-point", max_seconds=seconds))
        answer = f"{found.steps} | {found.exploitability:.1e}"
        yield f"| {name} | interior-point | {spent.wall:.1f} | {spent.cpu:.1f} | {answer} |"
        yield halpern_row(name, game, GOAL * payoff, seconds)
    allowed = seconds
    if not only or "cfr" in only:
        stop = until(seconds)
        (wall, allowed), found = once(partial(game.solve, tol=GOAL * payoff, method="cfr", callback=stop))
        yield f"| {name} | cfr | {wall:.1f} | {allowed:.1f} | {found.steps} | {found.exploitability:.1e} |"
    for label, make in PEERS.items():
        large = title in LARGER and "Python" in label  # it builds all states, and needs too much memory
        if not large and (not only or label in only):
            yield peer_row(name, label, make, game, title, allowed)


def halpern_row(name: str, game: ExtensiveGame, tol: float, seconds: float) -> str:
    """The row of a first-order method of ``solve`` on the sequence form, whose equations have multipliers."""
    f, best = sequence_program(game.payoff, game.sequences_x, game.sequences_y), [math.inf]
    over = until(seconds)

    def evaluate(result: Any) -> None:
        plans = (np.asarray(v)[:size] for v, size in zip((result.x, result.y), game.shape, strict=True))
        x, y = (game.strategy(player, plan) for player, plan in zip("xy", plans, strict=True))
        best[0] = min(best[0], game.exploitability(x, y))
        if best[0] <= tol:
            raise StopIteration
        over(result)

    method = "preconditioned-halpern-pdhg"
    spent, found = once(partial(solve, f, method=method, gap=1e-3 * tol, callback=evaluate))
    return f"| {name} | {method} | {spent.wall:.1f} | {spent.cpu:.1f} | {found.iterations} | {best[0]:.1e} |"


def peer_row(
    name: str, label: str, make: Callable[[ExtensiveGame, str], Any], game: ExtensiveGame, title: str, allowed: float
) -> str:
    """The row of another solver, which has so many seconds of CPU time."""
    steps, began, cpu = 0, time.perf_counter(), time.process_time()
    with interrupted(INTERRUPT_AFTER * allowed + 1.0):
        solver = make(game, LARGER.get(title, title))
        began, cpu = time.perf_counter(), time.process_time()  # making it does not count
        step = getattr(solver, "step", None) or solver.evaluate_and_update_policy
        while time.process_time() - cpu < allowed:
            step()
            steps += 1
    spent = f"{time.perf_counter() - began:.1f} | {time.process_time() - cpu:.1f}"
    if steps == 0:
        return f"| {name} | {label} | {spent} | 0 | ended before the first step was done |"
    if isinstance(solver, regret_peers.CFRPlus):
        x, y = solver.strategies
        x, y = game.strategy("x", x), game.strategy("y", y)
    else:
        x, y = regret_peers.strategies_of(probabilities(solver), game)
    return f"| {name} | {label} | {spent} | {steps} | {game.exploitability(x, y):.1e} |"


def built(title: str, kept: Path | None) -> ExtensiveGame:
    """The game, from a file if it was kept in one."""
    if kept is not None and kept.exists():
        game = pickle.loads(kept.read_bytes())
        assert isinstance(game, ExtensiveGame)
        return game
    game = ExtensiveGame.from_openspiel(LARGER.get(title, title), max_nodes=20_000_000)
    if kept is not None:
        kept.write_bytes(pickle.dumps(game))
    return game


class TimeOver(Exception):  # noqa: N818
    """A solver has taken too much CPU time."""


@contextmanager
def interrupted(seconds: float) -> Iterator[None]:
    """End what is done within, if it is written in Python, after so many seconds of CPU time."""

    def stop(*_: Any) -> None:
        raise TimeOver

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with suppress(TimeOver):
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def until(seconds: float) -> Callable[[Any], None]:
    """A callback that ends a run after so many seconds of CPU time from now on."""
    end = time.process_time() + seconds

    def stop(found: Any) -> None:
        if time.process_time() >= end:
            raise StopIteration

    return stop


def compiled_cfr_plus(game: ExtensiveGame, title: str) -> Any:
    """OpenSpiel's CFR+, which is compiled."""
    pyspiel: Any = import_module("pyspiel")
    return pyspiel.CFRPlusSolver(pyspiel.load_game(title))


def discounted(game: ExtensiveGame, title: str) -> Any:
    """OpenSpiel's discounted CFR, which is written in Python."""
    pyspiel: Any = import_module("pyspiel")
    algorithms: Any = import_module("open_spiel.python.algorithms.discounted_cfr")
    return algorithms.DCFRSolver(pyspiel.load_game(title))


PEERS: dict[str, Callable[[ExtensiveGame, str], Any]] = {
    "CFR+ on arrays": lambda game, _: regret_peers.CFRPlus(game),
    "discounted CFR on arrays": lambda game, _: regret_peers.DiscountedCFR(game),
    "OpenSpiel's CFR+ (C++)": compiled_cfr_plus,
    "OpenSpiel's discounted CFR (Python)": discounted,
}


def probabilities(solver: Any) -> Callable[[str], list[float]]:
    """The average policy of a solver of OpenSpiel: from information sets to probabilities of their legal actions."""
    policy = solver.average_policy()
    if hasattr(policy, "action_probability_array"):
        masks = policy.legal_actions_mask
        return lambda name: list(policy.policy_for_key(name)[masks[policy.state_lookup[name]] > 0])
    return lambda name: [chance for _, chance in sorted(policy.get_state_policy(name))]


def page(seed: int, quick: bool) -> str:
    """The page."""
    rng = np.random.default_rng(seed)
    sizes = (100,) if quick else (100, 400, 1000)
    trees: list[tuple[str, float, float, bool]] = [("leduc_poker(suit_isomorphism=true)", 30.0, 13.0, True)]
    if not quick:
        trees += [("liars_dice(dice_sides=5)", 30.0, 1.0, True), ("liars_dice(dice_sides=6)", 90.0, 1.0, False)]
    programs = [(title, Highs(title, 20.0 if quick else LIMIT)) for title, *_ in trees]
    matrix = list(matrix_games(rng, sizes, 100 if quick else 1000))
    rows = [row for tree in trees for row in tree_rows(*tree)]
    rows += [f"| {title} | HiGHS on the linear program | {program.answer()} | |" for title, program in programs]
    return "\n".join(
        [
            "# Games",
            "",
            f"By `python benchmarks/games.py --seed {seed} --write`, on {os.cpu_count()} processors. Wall-clock times",
            "depend on what else the machine does (HiGHS ran beside the other solvers); CPU times hardly do.",
            "",
            f"Matrix games drawn afresh, to a proven exploitability of {GOAL:g} max |A| (`MatrixGame.solve`):",
            "",
            "| size | payoffs | solved | exploitability / max abs(A) | seconds | CPU seconds | HiGHS, CPU seconds |",
            "|---|---|---|---|---|---|---|",
            *matrix,
            "",
            f"Game trees, to {GOAL:g} of the largest payoff (13 in Leduc poker, 1 in liar's dice) or until the time is",
            "over. The exploitability is what best responses of both players gain together, OpenSpiel's `nash_conv`.",
            "`interior-point` factorises matrices. All others take gradients and products alone:",
            "`preconditioned-halpern-pdhg` is `sp.solve` on the sequence form with multipliers, and `cfr` and the",
            "solvers below it, which have its CPU time, take products with A and passes over the two trees. CFR+ and",
            "discounted CFR are measured as OpenSpiel has them, and, as its steps visit each node of the tree, also as",
            "array operations on the sequence form, with the same average strategies (`benchmarks/regret_peers.py`).",
            "",
            "| game | solver | seconds | CPU seconds | steps | exploitability |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def main() -> None:
    """Print the page, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--tree", choices=LARGER, help="print the rows of this game alone")
    parser.add_argument("--only", nargs="+", default=[], metavar="SOLVER", help="solvers of --tree; all by default")
    parser.add_argument("--kept", type=Path, metavar="FILE", help="a file that keeps the game between calls")
    parser.add_argument("--highs", help="solve the linear program of this game by HiGHS")
    parser.add_argument("--highs-method", default="highs", help="a method of scipy.optimize.linprog")
    parser.add_argument("--seconds", type=int, help="CPU seconds after which --tree and --highs are ended")
    given = parser.parse_args()
    if given.highs:
        tree_by_highs(given.highs, given.highs_method, given.seconds, given.kept)
        return
    if given.tree:
        for row in tree_rows(given.tree, given.seconds or LIMIT, 13.0, False, given.only, given.kept):
            print(row, flush=True)
        return
    text = page(given.seed, given.quick)
    print(text)
    if given.write:
        kept = PAGE.read_text().partition(LATER)
        PAGE.write_text(text + ("\n" + kept[1] + kept[2] if kept[1] else ""))


if __name__ == "__main__":
    main()
