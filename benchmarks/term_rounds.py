"""Rounds with simple terms, method by method

Rounds that problems with simple terms take to a certified relative distance of 1e-8.

    python benchmarks/term_rounds.py [--draws 3] [--seed N] [--out FILE.md]
    python benchmarks/term_rounds.py --support FILE.svg     # a picture of the proven support, for one elastic net

A round is a gradient of each function and a product with A and with A'. The families are an elastic net against a box,
with three condition numbers, and players with quadratic costs on probabilities, with two strengths of the coupling
c = |A|/sqrt(mu_x mu_y). All functions are written by hand. The seed is the time unless one is given.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import saddlepoint as sp
from saddlepoint.ground.arrays import Array
from saddlepoint.uses.plots.support import plot_support

Rng = np.random.Generator
ACCURACY = 1e-8  # certified distance, relative to the length of the solution
MOST = 20_000  # rounds of one run
METHODS = ("lpd-gs", "condat-vu", "anderson-condat-vu", "auto")


def elastic_net(rng: Rng, kappa: float, coupling: float, m: int = 200, n: int = 100) -> sp.Saddle:
    """Least squares with l2 and l1 terms, against an adversary in a box."""
    D = rng.standard_normal((2 * m, m)) * np.geomspace(1.0, 0.3, m)
    truth = np.where(rng.random(m) < 0.1, rng.standard_normal(m), 0.0)
    P, b = D.T @ D / (2 * m), -D.T @ (D @ truth + 0.1 * rng.standard_normal(2 * m)) / (2 * m)
    values = np.linalg.eigvalsh(P)
    ridge = max((values[-1] - kappa * values[0]) / (kappa - 1.0), 0.0)
    mu, L = (values[0] + ridge) * (1.0 - 1e-9), (values[-1] + ridge) * (1.0 + 1e-9)
    A = rng.standard_normal((m, n))
    A *= coupling * mu / np.linalg.norm(A, 2)
    shift = 0.3 * np.abs(b).mean() * rng.standard_normal(n)
    g = sp.Smooth(lambda x: P @ x + ridge * x + b, mu=mu, L=L) + sp.L1(0.1 * float(np.abs(b).max()))
    return sp.Saddle(g, sp.Smooth(lambda y: mu * y + shift, mu=mu, L=mu) + sp.Box(-1.0, 1.0), A)


def probabilities(rng: Rng, coupling: float, n: int) -> sp.Saddle:
    """A random game with quadratic costs on the probabilities of both players."""
    A = rng.standard_normal((n, n))
    mu = float(np.linalg.norm(A, 2)) / coupling

    def cost(x: Array) -> Array:
        return mu * x

    return sp.Saddle(sp.Smooth(cost, mu=mu, L=mu) + sp.Simplex(), sp.Smooth(cost, mu=mu, L=mu) + sp.Simplex(), A)


FAMILIES: dict[str, Callable[[Rng], sp.Saddle]] = {
    "elastic net against a box, kx 129, c 9": lambda rng: elastic_net(rng, 129.0, 9.0),
    "elastic net against a box, kx 1332, c 100": lambda rng: elastic_net(rng, 1332.0, 100.0),
    "elastic net against a box, kx 12659, c 32": lambda rng: elastic_net(rng, 12659.0, 32.0),
    "costs on probabilities, 60 x 60, c 20": lambda rng: probabilities(rng, 20.0, 60),
    "costs on probabilities, 60 x 60, c 200": lambda rng: probabilities(rng, 200.0, 60),
    "costs on probabilities, 400 x 400, c 20": lambda rng: probabilities(rng, 20.0, 400),
    "costs on probabilities, 400 x 400, c 200": lambda rng: probabilities(rng, 200.0, 400),
}


def rounds(family: str, method: str, seed: int) -> float:
    """The calls of the busiest oracle; infinite if the accuracy was not reached."""
    result = sp.solve(FAMILIES[family](np.random.default_rng(seed)), rtol=ACCURACY, method=method, max_calls=MOST)
    return max(result.calls.values()) if result.solved else math.inf


def main() -> None:
    """Draw, solve, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--seed", type=int, default=None, help="of the first draw; the next ones follow")
    parser.add_argument("--out", default=None, help="file for the page; printed if left out")
    parser.add_argument(
        "--support", default=None, help="file for a picture of the proven support; nothing else is done"
    )
    arguments = parser.parse_args()
    if arguments.support is not None:
        plot_support(
            elastic_net(np.random.default_rng(arguments.seed or 5), 1332.0, 100.0), arguments.support, tol=1e-9
        )
        return
    first = int(time.time()) if arguments.seed is None else arguments.seed
    about = (__doc__ or "").split("\n\n")
    lines = [f"# {about[0]}", "", about[1], "", " ".join(about[3].split()), ""]
    lines += [f"The numbers are medians of {arguments.draws} draws.", ""]
    lines += [f"| problem | {' | '.join(METHODS)} |", "|" + "---|" * (1 + len(METHODS))]
    for family in FAMILIES:
        seeds = range(first, first + arguments.draws)
        medians = [statistics.median(rounds(family, method, seed) for seed in seeds) for method in METHODS]
        lines.append(f"| {family} | {' | '.join(f'{median:.0f}' for median in medians)} |")
        print(lines[-1], flush=True)
    command = f"python benchmarks/term_rounds.py --draws {arguments.draws} --seed {first}"
    lines += ["", f"By `{command}`: Python {platform.python_version()}, NumPy {np.__version__}.", ""]
    if arguments.out is not None:
        with open(arguments.out, "w") as file:
            file.write("\n".join(lines))


if __name__ == "__main__":
    main()
