"""One problem solved again and again with other linear terms: `sp.prepare` against `sp.solve` and OSQP.

`python benchmarks/repeated.py [SEED]` prints microseconds for one update and solution. They are CPU time on one thread,
which is wall-clock time on an idle machine, so that other programs do not count. The problems are drawn afresh, with a
seed from the clock unless one is given, and so are the linear terms. The contestants take turns in one process, in
rounds of a few solutions each; the fastest round counts, because noise can only add time.

The quadratic problems have dense matrices on both sides. OSQP (where it is installed) is given the equivalent problem
min 1/2 x'Px + b'x + 1/2 y'Qy with the constraint Qy = A'x - c, prepared in the same way: it keeps its factorisation, is
updated with the new b, starts from its last answer and stops at residuals of 1e-6. It proves nothing about its answer,
so the column of distances is what the certificate of this library says of the last answer of each contestant. The other
problems have log-cosh and logistic functions that are written by hand; their linear terms change by one part in a
thousand from one problem to the next.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is loaded; threads that wait would count as CPU time

import numpy as np

import saddlepoint as sp

TOL = 1e-6  # certified distance
ROUNDS = 40  # rounds of each contestant
EACH = {"solve": 2, "prepare": 5, "OSQP": 5}  # solutions of a contestant in a round
SIZES = (10, 30, 100)  # variables of each player

Solver = Callable[[Any], tuple[Any, Any]]  # from the linear term b to x and y


def symmetric(n: int, rng: np.random.Generator) -> Any:
    """A random symmetric matrix with eigenvalues from about 0.1 on."""
    B = rng.standard_normal((n, n))
    return B @ B.T / n + 0.1 * np.eye(n)


def quadratic(n: int, rng: np.random.Generator) -> sp.Saddle:
    """A random quadratic problem with dense matrices."""
    g, h = (sp.Quadratic(symmetric(n, rng), rng.standard_normal(n)) for _ in range(2))
    return sp.Saddle(g, h, rng.standard_normal((n, n)) / n**0.5)


def by_hand(n: int, rng: np.random.Generator) -> sp.Saddle:
    """A log-cosh function and a logistic one, written by hand."""
    centre, D = rng.standard_normal(n), rng.standard_normal((2 * n, n))
    labels = np.sign(rng.standard_normal(2 * n))

    def logistic(y: Any) -> Any:
        return -D.T @ (labels / (1.0 + np.exp(labels * (D @ y)))) / (2 * n) + 0.1 * y

    g = sp.Smooth(lambda x: np.tanh(x - centre) + 0.1 * x, mu=0.1, L=1.1)
    h = sp.Smooth(logistic, mu=0.1, L=0.1 + float(np.linalg.norm(D, 2)) ** 2 / (8 * n))
    return sp.Saddle(g, h, rng.standard_normal((n, n)) / n**0.5)


def contestants(f: sp.Saddle) -> Iterator[tuple[str, Solver]]:
    """The ways to solve f with another linear term."""
    prepared = sp.prepare(f, tol=TOL)

    def again(b: Any) -> tuple[Any, Any]:
        return checked(prepared.update(b=b).solve())

    def afresh(b: Any) -> tuple[Any, Any]:
        g = f.g.with_linear(b) if isinstance(f.g, sp.Quadratic) else f.g + sp.Quadratic(0.0, b)
        return checked(sp.solve(sp.Saddle(g, f.h, f.A), tol=TOL))  # which knows mu, L and |A| already

    yield "prepare", again
    yield "solve", afresh
    try:
        osqp: Any = import_module("osqp")
    except ImportError:
        return
    if isinstance(f.g, sp.Quadratic):
        yield "OSQP", by_osqp(osqp, f)


def checked(result: sp.Result) -> tuple[Any, Any]:
    """The point of a result, which must be solved."""
    if not result.solved:
        raise SystemExit(f"not solved: {result}")
    return result.x, result.y


def by_osqp(osqp: Any, f: sp.Saddle) -> Solver:
    """OSQP on the equivalent quadratic program."""
    from scipy import sparse

    assert isinstance(f.g, sp.Quadratic)
    assert isinstance(f.h, sp.Quadratic)
    P, Q, A = f.g.P.matrix(), f.h.P.matrix(), f.A.matrix()  # type: ignore[union-attr]
    m, n = f.shape
    costs = sparse.triu(sparse.block_diag((P, Q)), format="csc")
    linear, equations = np.zeros(m + n), sparse.csc_matrix(np.hstack((A.T, -Q)))
    solver = osqp.OSQP()
    accuracy = {"eps_abs": TOL, "eps_rel": 0.0, "max_iter": 100_000}
    solver.setup(costs, linear, equations, f.h.b, f.h.b, verbose=False, **accuracy)

    def run(b: Any) -> tuple[Any, Any]:
        linear[:m] = b
        solver.update(q=linear)
        z = solver.solve().x
        return z[:m], z[m:]

    return run


def row(name: str, f: sp.Saddle, step: float, rng: np.random.Generator) -> Iterator[str]:
    """The lines of the table for one problem.

    Args:
        name: of the problem.
        f: the problem.
        step: the size of the changes of b, relative to b.
        rng: draws them.
    """
    solvers = dict(contestants(f))
    best: dict[str, float] = {}
    m = f.shape[0]
    b = rng.standard_normal(m)
    for _ in range(ROUNDS):
        for who, solver in solvers.items():
            vectors = b + step * rng.standard_normal((EACH[who], m))
            began = time.process_time()
            for vector in vectors:
                solver(vector)
            best[who] = min(best.get(who, np.inf), (time.process_time() - began) / EACH[who])
    prepared = sp.prepare(f).update(b=b)
    for who, solver in solvers.items():
        distance = prepared.problem.certificate(*solver(b)).distance
        yield f"| {name} | {m} x {f.shape[1]} | {who} | {1e6 * best[who]:.0f} | {distance:.1e} |"


def main() -> None:
    """Print the table."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else int(time.time())
    rng = np.random.default_rng(seed)
    print(f"seed {seed}, tol {TOL:g}\n")
    print("| problem | size | by | µs | certified distance |\n|---|---|---|---:|---:|")
    for name, make, step in (("quadratic", quadratic, 1.0), ("log-cosh and logistic by hand", by_hand, 1e-3)):
        for n in SIZES:
            for line in row(name, make(n, rng), step, rng):
                print(line, flush=True)


if __name__ == "__main__":
    main()
