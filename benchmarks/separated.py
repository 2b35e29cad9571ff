"""What `auto` gains by `separated` where one oracle costs far more than another, on freshly drawn problems.

    python benchmarks/separated.py [SEED] [SECONDS]

A problem is drawn with random condition numbers, coupling, sizes, tolerance and costs of the oracles, and is kept if
`auto` chooses `separated` for it. The costs of two other methods are printed in units of the cost of that run.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

import saddlepoint as sp
from saddlepoint.problems.generators import random_logistic
from saddlepoint.solving.recommendation import recommend

RIVALS = ("anderson-condat-vu", "lpd-gs")


def drawn(rng: np.random.Generator) -> tuple[sp.Saddle, dict[str, float], float] | None:
    """A problem, costs and a tolerance; None if `auto` would not take `separated`."""
    largest = rng.uniform(1.0, 4.5)
    kappas = [10.0**largest, 10.0 ** rng.uniform(0.0, largest)]
    kx, ky = kappas if rng.random() < 0.5 else kappas[::-1]
    c = 10.0 ** rng.uniform(-1.0, 2.0)
    grad_g, grad_h, product = (10.0 ** rng.uniform(0.0, 3.0) if rng.random() < 0.5 else 1.0 for _ in range(3))
    if recommend(kx, ky, c, grad_g, grad_h, product)[0] != "separated":
        return None
    m, n = (int(size) for size in rng.integers(60, 300, 2))
    f = random_logistic(m, n, kx, ky, c, seed=int(rng.integers(10**6)))
    tol = 10.0 ** rng.uniform(-8.0, -4.0) * f.certificate(np.zeros(m), np.zeros(n)).distance
    return f, {"grad_g": grad_g, "grad_h": grad_h, "A": product, "At": product}, tol


def main(seed: int = 7, seconds: float = 120.0) -> None:
    """Draw, run and print until the time is up."""
    rng = np.random.default_rng(seed)
    began, ratios = time.perf_counter(), list[list[float]]()
    while time.perf_counter() - began < seconds:
        found = drawn(rng)
        if found is None:
            continue
        f, costs, tol = found
        results = [sp.solve(f, method=name, costs=costs, tol=tol) for name in ("auto", *RIVALS)]
        own, *others = (sum(costs[name] * result.calls[name] for name in costs) for result in results)
        ratios.append([other / own for other in others])
        words = "  ".join(f"{name} {ratio:6.2f}" for name, ratio in zip(RIVALS, ratios[-1], strict=True))
        print(
            f"kx {f.kappa_x:8.3g}  ky {f.kappa_y:8.3g}  c {f.coupling:6.3g}  {words}  {results[0].method}", flush=True
        )
    for name, column in zip(RIVALS, zip(*ratios, strict=True), strict=True):
        mean = math.exp(sum(map(math.log, column)) / len(column))
        print(f"{name}: {len(column)} problems, mean {mean:.2f}, least {min(column):.2f}, most {max(column):.2f}")


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float), sys.argv[1:], strict=False)))
