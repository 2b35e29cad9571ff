"""The large sparse problem with functions of one's own and with ready ones, beside SciPy's newton_krylov.

    python benchmarks/large_sparse.py [--seeds 10] [--peer-seeds N] [--first N] [--ratio 100 1000 10000]
        [--limit SECONDS] [--out FILE]

g is a mean of logistic losses of 20 000 sparse samples plus mu/2 |x|^2, h = mu/2 |y|^2 - c'y + d sum log cosh y, A is
20 000 x 15 000 with ten entries in a row, |A| = 1 and mu = 1/ratio (``peers.problems.sparse_family``). Both functions
are given as gradients written with NumPy, so that the run examines them, and in a second run as ready ones. A run is
solved when the certified distance is at most 1e-6 times |x| + |y|, and its seconds are those of the whole call.
newton_krylov has no certificate; it is stopped by that of the library, off the clock. The first seed is the date unless
one is given.
"""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from peers.problems import SPARSE_D, sparse_family
from scipy.optimize import newton_krylov
from scipy.special import expit
from timing import Seconds

import saddlepoint as sp

RELATIVE = 1e-6  # certified distance over the length of the solution
LIMIT = 1800.0  # most wall-clock seconds of a run, unless another limit is given
OURS = "auto | method | wall s | CPU s | distance/size"
HEAD = f"| A/mu | seed | {OURS} | ready: {OURS} | newton_krylov wall s | CPU s | distance/size |"


def now() -> Seconds:
    """The two clocks."""
    return Seconds(time.perf_counter(), time.process_time())


def own_problem(ready: sp.Saddle, ratio: float) -> sp.Saddle:
    """The same problem with gradients of one's own."""
    mu, d = 1.0 / ratio, SPARSE_D[ratio]
    B = ready.g.D.A  # type: ignore[attr-defined]
    Bt = B.T.tocsr()
    c = -ready.h.grad(np.zeros(ready.shape[1]))
    weight = 1.0 / B.shape[0]

    def grad_g(x: Any) -> Any:
        return -weight * (Bt @ expit(-(B @ x))) + mu * x

    def grad_h(y: Any) -> Any:
        return mu * y - c + d * np.tanh(y)

    return sp.Saddle(sp.Smooth(grad_g, mu=mu, L=ready.L_x), sp.Smooth(grad_h, mu=mu, L=mu + d), ready.A)


def by_newton_krylov(f: sp.Saddle, distance: Callable[[Any], float], tol: float, limit: float) -> tuple[Seconds, float]:
    """The time until the certified distance is at most tol, and that distance; certificates are off the clock."""
    m, n = f.shape
    began, aside, reached = now(), [Seconds(0.0, 0.0)], [np.inf]

    def certify(z: Any, _: Any) -> None:
        start = now()
        reached[0] = min(reached[0], distance(z))
        end = now()
        aside[0] = Seconds(aside[0].wall + end.wall - start.wall, aside[0].cpu + end.cpu - start.cpu)
        if reached[0] <= tol or end.wall - began.wall > limit:
            raise StopIteration

    def field(z: Any) -> Any:
        return np.concatenate(f.field(z[:m], z[m:]))

    try:
        newton_krylov(field, np.zeros(m + n), f_tol=1e-300, maxiter=10**6, callback=certify)
    except StopIteration:
        pass
    except Exception as error:
        print(f"newton_krylov: {type(error).__name__}: {error}"[:200], flush=True)
    end = now()
    return Seconds(end.wall - began.wall - aside[0].wall, end.cpu - began.cpu - aside[0].cpu), reached[0]


def by_auto(f: sp.Saddle, tol: float, size: float, limit: float) -> str:
    """The cells of a whole call of `solve`."""
    f.norm  # noqa: B018 - estimated once, before any clock runs
    began = now()
    try:
        result = sp.solve(f, tol=tol, max_seconds=limit)
        status, method, distance = str(result.status), result.method, result.certificate.distance
    except sp.AssumptionError as error:
        status, method, distance = f"accused: {error}"[:120], "", np.inf
    end = now()
    return f"{status} | {method} | {end.wall - began.wall:.3g} | {end.cpu - began.cpu:.3g} | {distance / size:.1e}"


def row(ratio: float, seed: int, peer: bool, limit: float = LIMIT) -> str:
    """One line of the table."""
    ready, _ = sparse_family(ratio, seed)
    m, n = ready.shape
    rough = sp.solve(ready, tol=1e-2 * ready.certificate(np.zeros(m), np.zeros(n)).distance, max_seconds=limit)
    size = float(np.linalg.norm(rough.x) + np.linalg.norm(rough.y))
    f, tol = own_problem(ready, ratio), RELATIVE * size
    words = f"| {ratio:g} | {seed} | {by_auto(f, tol, size, limit)} | {by_auto(ready, tol, size, limit)} |"
    if not peer:
        return words + "  |  |  |"
    spent, reached = by_newton_krylov(f, lambda z: ready.certificate(z[:m], z[m:]).distance, tol, limit)
    return f"{words} {spent.wall:.3g} | {spent.cpu:.3g} | {reached / size:.1e} |"


def main() -> None:
    """Read the arguments, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    today = int(datetime.datetime.now(datetime.UTC).date().strftime("%Y%m%d"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--peer-seeds", type=int, default=10, help="seeds with which newton_krylov runs too")
    parser.add_argument("--first", type=int, default=today)
    parser.add_argument("--ratio", type=float, nargs="+", default=[1e2, 1e3, 1e4])
    parser.add_argument("--limit", type=float, default=LIMIT, help="most wall-clock seconds of a run")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = [HEAD, "|" + "---|" * (HEAD.count("|") - 1)]
    print("\n".join(lines), flush=True)
    for k in range(given.seeds):
        for ratio in given.ratio:
            lines.append(row(ratio, given.first + k, k < given.peer_seeds, given.limit))
            print(lines[-1], flush=True)
            if given.out is not None:
                given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
