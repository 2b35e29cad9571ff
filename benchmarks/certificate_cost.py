"""What a certificate costs and how tight it is: ordinary arithmetic, and products in about twice the digits.

Milliseconds are CPU time of the process, with one thread.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
import scipy.sparse as sps
from timing import cpu_seconds

import saddlepoint as sp
from saddlepoint.uses.batch import Batch


def matrices(quick: bool) -> Iterator[tuple[str, object]]:
    """The kinds of A, with names."""
    rng = np.random.default_rng(0)
    for m, n in ((60, 40), (1000, 1000), (4000, 2000))[: 2 if quick else 3]:
        yield f"dense {m} x {n}", rng.standard_normal((m, n))
    yield "dense float32 1000 x 1000", rng.standard_normal((1000, 1000)).astype(np.float32)
    rows = 10_000 if quick else 300_000
    yield (
        f"sparse {rows} x {rows // 2}, 10 a row",
        sps.random_array((rows, rows // 2), density=20 / rows, rng=rng).tocsr(),
    )
    yield f"one sparse row of {rows} equal entries", sps.csr_array(np.full((1, rows), 0.1))
    yield "200 blocks of 20 x 20", rng.standard_normal((200, 20, 20))


def problem(A: object) -> sp.Saddle:
    """Strongly convex quadratics around A, with functions of mu = 1."""
    rng = np.random.default_rng(1)
    if getattr(A, "ndim", 2) == 3:
        B, m, _ = A.shape  # type: ignore[attr-defined]
        return Batch(sp.Quadratic(1.0, rng.standard_normal(B * m)), sp.Quadratic(1.0), A).problem
    m, _ = A.shape  # type: ignore[attr-defined]
    return sp.Saddle(sp.Quadratic(1.0, rng.standard_normal(m)), sp.Quadratic(1.0), A)


def main(quick: bool = False) -> str:
    """The table, as Markdown. The point is the most accurate one that `solve` finds; Numba, if it pays, is loaded."""
    lines = [
        "| A | ordinary (ms) | twice the digits (ms) | ratio | distance proven | with twice the digits |",
        "|---|---|---|---|---|---|",
    ]
    for name, A in matrices(quick):
        f = problem(A)
        found = sp.solve(f, tol=1e-300, max_calls=3000, max_seconds=60.0)
        point = found.x, found.y
        plain = f.certificate(*point, tol=math.inf)
        for _ in range(40):  # after a few products Numba is loaded, which takes as long as they did
            compensated = f.certificate(*point, tol=0.0)
        repeats = 3 if quick else 20
        ordinary, _ = cpu_seconds(partial(f.certificate, *point, math.inf), repeats)
        twice, _ = cpu_seconds(partial(f.certificate, *point, 0.0), repeats)
        lines.append(
            f"| {name} | {1e3 * ordinary:.3g} | {1e3 * twice:.3g} | {twice / ordinary:.1f} | {plain.distance:.1e} "
            f"| {compensated.distance:.1e} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    print(main("--quick" in sys.argv))
