"""One rank of an MPI job; tests/test_mpi.py starts it with mpiexec.

Usage: python on_ranks.py FOLDER cli ARGUMENTS...   the command line, with the pid of every rank in FOLDER
       python on_ranks.py FOLDER commands JSON      several command lines one after the other
       python on_ranks.py FOLDER SCENARIO...        scenarios of this file, one after the other

With the last two, rank 0 prints what was found as JSON: a list for the commands, a dictionary for the scenarios.
"""

import contextlib
import io
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

import saddlepoint as sp
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.sharded import ShardedCoupling, mpi

COMM = MPI.COMM_WORLD
RANK = COMM.Get_rank()
M, N = 90, 11


def problem(part=None, y=None):
    rng = np.random.default_rng(1)
    A, b, c, d = rng.standard_normal((M, N)) / 3.0, rng.standard_normal(M), rng.standard_normal(N), np.linspace(1, 4, M)
    engine = mpi.MPIEngine(A)
    whole = sp.Quadratic(d, b)
    g = sp.Smooth(whole.grad, mu=1.0, L=4.0, restrict=part or whole.restrict, trusted=True)
    return sp.Saddle(g, sp.Quadratic(1.0, c if y is None else y(c)), ShardedCoupling(engine)), engine


def solved(**options):
    f, engine = problem()
    before = engine.rounds, engine.sent
    steps = sp.solve(f, method="condat-vu", tol=1e-8, **options)
    return {
        "x": [value.hex() for value in steps.x],
        "y": [value.hex() for value in steps.y],
        "status": str(steps.status),
        "iterations": steps.iterations,
        "certificates": steps.monitor_calls,
        "rounds": engine.rounds - before[0],
        "gathered": engine.gathered,
    }


def steps():
    """Count what ten steps send between the ranks."""
    f, engine = problem()
    method = sp.make_method("lpd-gs")
    f.norm  # noqa: B018 - estimated before the steps
    state = method.init(f, f.space.of_x.zeros(M), np.zeros(N))
    reduced, allreduce = [], engine._allreduce
    engine._allreduce = lambda buffer, *op: (reduced.append(buffer.size), allreduce(buffer, *op))
    before = engine.rounds, engine.sent
    for _ in range(10):
        state = method.step(f, state)
    return {
        "rounds": engine.rounds - before[0],
        "numbers": (engine.sent - before[1]) / 8,
        "allreduces": len(reduced),
        "pieces": sum(map(len, engine.pieces)),
        "largest": f.space.of_x.xp.max(state.x),
    }


def unordered():
    """The sums are taken in any order."""
    ordered, mpi.ORDERED = mpi.ORDERED, 0
    found = solved() | {"norm": norm(problem()[0].space.of_x.cast(1e-200 * np.arange(M)))}
    mpi.ORDERED = ordered
    return found


def one_rank_fails():
    """A gradient on rank 1 raises; the run ends on all ranks."""
    calls = []

    def part(rows):
        def grad(x):
            calls.append(rows)
            if RANK == 1 and len(calls) > 40:
                raise ArithmeticError("the disk is gone")
            return x

        return sp.Smooth(grad, mu=1.0, L=4.0)

    try:
        sp.solve(problem(part)[0], method="condat-vu", tol=1e-9)
    except (ArithmeticError, RuntimeError) as error:
        return {"error": COMM.allgather(f"{type(error).__name__}: {error}"), "result": error.result is not None}


def ranks_disagree():
    """Rank 1 has another h, and so another y."""
    try:
        sp.solve(problem(y=lambda c: c * (1.0 + 1e-9 * RANK))[0], method="condat-vu")
    except sp.ProblemError as error:
        return {"error": str(error)}


def clocks_differ():
    """The clock of rank 1 is an hour ahead; the clock of rank 0 decides."""
    clock = time.perf_counter
    if RANK == 1:
        time.perf_counter = lambda: clock() + 3600.0
    found = solved(max_seconds=100.0)
    time.perf_counter = clock
    return found


def command(arguments):
    """Run the command line, and return the exit code, the standard output and the standard error of every rank."""
    from saddlepoint.commands import main as command_line

    sys.argv = ["saddlepoint", *arguments]
    out, err, code = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command_line()
        except SystemExit as end:
            code = end.code
    return COMM.allgather((code, out.getvalue(), err.getvalue()))


def main():
    folder, first, *arguments = sys.argv[1:]
    if first == "cli":
        from saddlepoint.commands import main as command_line

        Path(folder, f"pid-{RANK}").write_text(str(os.getpid()))
        sys.argv = ["saddlepoint", *arguments]
        command_line()
    if first == "commands":
        found = [command(words) for words in json.loads(arguments[0])]
    else:
        found = {scenario: globals()[scenario]() for scenario in (first, *arguments)}
    if RANK == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
