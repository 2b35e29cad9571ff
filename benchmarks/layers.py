"""Gradients through solutions beside other packages: their errors, whether the package says so, and the time.

    python benchmarks/layers.py

`gradient_problems.py` has the problems with their exact derivatives, `gradient_packages.py` the packages, and
`gradient_times.py` what is timed. Packages that are not installed are left out.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from gradient_packages import DERIVATIVES
from gradient_problems import reference
from gradient_times import PACKAGES, time_and_error

PAGE = Path(__file__).parent / "results" / "layers.md"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}
LIMIT = 100  # seconds of CPU time of one measurement, with imports and compilation
SIZES = (20, 200, 2000)  # variables
BATCH = 100  # problems that are solved in one call
CASES = {  # the problems, and the threads that they are from
    "box QP": "cvxpylayers 67 with a box alone",
    "l1 ball QP": "cvxpylayers 67",
    "spread box QP": "cvxpylayers 70, one step, scales 0.1 and 10",
    "l1 logistic": "cvxpylayers 85, with l2 = 0.01",
    "log barrier": "cvxpylayers 135 in the form of diffcp 57",
    "softmax": "cvxpylayers 145",
    "Sinkhorn's matrix": "cvxpylayers 120, 6 x 6",
}


def measured(*arguments: object) -> Any:
    """The answer of this file in a process of its own, or the reason in words why there is none."""
    done = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | ONE_THREAD,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5)),
    )
    if done.returncode == -signal.SIGXCPU:
        return f"over {LIMIT} s"
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["?"])[-1]
        kind = last.partition(":")[0]
        return "not installed" if kind == "ModuleNotFoundError" else kind
    return json.loads(done.stdout.strip().splitlines()[-1])


def accuracy_row(name: str) -> str:
    """The derivative of a problem, the errors of all packages, and the bound that this one has proven."""
    true, cells = reference(name), []
    for package, derivatives in DERIVATIVES.items():
        answer = measured("accuracy", package, name) if name in derivatives else ""
        cells.append(answer if isinstance(answer, str) else f"{abs(answer[0] - true):.1e}")
        if package == "saddlepoint torch":
            cells.append("" if isinstance(answer, str) else f"{answer[1]:.1e}")
    return f"| {name} ({CASES[name]}) | {true:.6f} | {' | '.join(cells)} |"


def time_row(n: int, batch: int) -> str:
    """Milliseconds of all packages, and the largest error of an entry."""
    answers = [measured("time", package, n, batch) for package in PACKAGES]
    cells = [words if isinstance(words, str) else f"{1e3 * words[0]:.1f} ms, {words[1]:.0e}" for words in answers]
    return f"| {n}, {batch} | {' | '.join(cells)} |"


def main() -> None:
    """Measure everything, and write the page."""
    accuracy = [
        "| problem | derivative | error of saddlepoint | its proven bound | of cvxpylayers | of qpth | of jaxopt |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in CASES:
        accuracy.append(accuracy_row(name))
        print(accuracy[-1], flush=True)
    times = [f"| n, batch | {' | '.join(PACKAGES)} |", "|---|" + "---|" * len(PACKAGES)]
    for n, batch in [(n, 1) for n in SIZES] + [(20, BATCH)]:
        times.append(time_row(n, batch))
        print(times[-1], flush=True)
    PAGE.write_text(TEXT.format(accuracy="\n".join(accuracy), times="\n".join(times)))


TEXT = """# Gradients through solutions, beside other packages

By `python benchmarks/layers.py`, on two shared cores of a virtual machine, each measurement in a process of its own.

## Accuracy

Problems of public threads about wrong gradients. Every package runs with its defaults in float64; the `tol` of
saddlepoint is 1e-6. The reference is a closed formula, or a central difference of Newton's method on the support of
the solution in 40 digits. No other package of the table says anything about the error of its gradient; saddlepoint
returns the bound in the fourth column, which is proven. An empty cell means that the problem was not written for the
package.

{accuracy}

Sinkhorn's matrix has linear equations, which are outside the class of saddlepoint's derivatives: they are eliminated,
with a basis of the matrices whose rows and columns add up to zero. The box of thread 67, |v_i| <= 1, holds in its l1
ball of radius 1 and is left out. Thread 32 of qpth is not among them; qpth is measured on the quadratic programs in
boxes, which it takes.

## Time

A quadratic function of n variables in a box, solved with its gradient with respect to the linear term: milliseconds
of CPU time of a solution and a gradient, with one thread (the least of three after one for warming up, or for
compiling), and the largest error of an entry of the gradient. Batches have one matrix and {batch} linear terms. The
packages stop by rules of their own: saddlepoint when it has proven a distance of 1e-6, the others at their defaults,
jaxopt and optimistix at the tolerances in the file.

{times}

With PyTorch on the CPU saddlepoint runs with NumPy and examines the problem before it calls it solved, which takes most
of the time of small problems; the problems of a batch are solved together. With JAX the layer is one compiled program.
Each number is one measurement on a machine that other work shared, so that only large ratios mean something. The limit
of {limit} seconds of CPU time includes imports and compilation. A wrong gradient that a package returns without a word
shows in the second number of a cell.
""".replace("{batch}", str(BATCH)).replace("{limit}", str(LIMIT))


if __name__ == "__main__":
    if sys.argv[1:2] == ["accuracy"]:
        print(json.dumps(DERIVATIVES[sys.argv[2]][sys.argv[3]]()))
    elif sys.argv[1:2] == ["time"]:
        print(json.dumps(time_and_error(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
    else:
        main()
