"""Linear and quadratic programs for ``programs.py``: known small ones, and drawn ones of several sizes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, hstack, kron, vstack
from scipy.sparse import random as sparse_random

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
known: Any = import_module("reference_problems.quadratic_programs")
INF = np.inf
Random = np.random.Generator


class Program(NamedTuple):
    """A name, and the arguments of ``QuadraticProgram``."""

    name: str
    P: Any
    q: Any
    A: Any
    lower: Any
    upper: Any
    x_lower: Any
    x_upper: Any


def small() -> Iterator[Program]:
    """Programs of books and of the tests of other projects."""
    A = np.array([[0.25, -60.0, -0.04, 9.0], [0.5, -90.0, -0.02, 3.0], [0.0, 0.0, 1.0, 0.0]])
    q = np.array([-0.75, 150.0, -0.02, 6.0])
    yield Program("Beale", None, q, A, np.full(3, -INF), np.array([0.0, 0.0, 1.0]), np.zeros(4), np.full(4, INF))
    n = 8
    cube = np.eye(n) + 2.0 * np.tril(10.0 ** (np.arange(n)[:, None] - np.arange(n)), -1)
    q = -(10.0 ** np.arange(n - 1, -1, -1))
    yield Program(
        "Klee and Minty, 8", None, q, cube, np.full(n, -INF), 100.0 ** np.arange(n), np.zeros(n), np.full(n, INF)
    )
    for name, given in (("HS76", known.HS76), ("HS268", known.HS268), ("HS118", known.hs118())):
        yield Program(name, given.P, given.q, given.A, given.lower, given.upper, given.low, given.high)


def transport(random: Random, a: int, b: int) -> Program:
    """Optimal transport between whole numbers of goods, at random costs."""
    A = csr_array(vstack([kron(eye_array(a), np.ones((1, b))), kron(np.ones((1, a)), eye_array(b))]))
    supply = random.integers(1, 1000, a).astype(float)
    demand = random.multinomial(int(supply.sum()), np.ones(b) / b).astype(float)
    ends, n = np.append(supply, demand), a * b
    return Program(f"transport {a} x {b}", None, random.random(n), A, ends, ends, np.zeros(n), np.full(n, INF))


def assignment(random: Random, a: int) -> Program:
    """Assignment: every vertex is degenerate."""
    found = transport(random, a, a)
    ones = np.ones(2 * a)
    return found._replace(name=f"assignment {a}", lower=ones, upper=ones)


def dense(random: Random, m: int, n: int) -> Program:
    """A dense linear program in standard form, of which half of the variables are zero at the solution."""
    A = random.standard_normal((m, n))
    x = random.random(n) * (random.permutation(n) < m)
    q = A.T @ random.standard_normal(m) + random.random(n) * (x == 0.0)
    b = A @ x
    return Program(f"dense {m} x {n}", None, q, A, b, b, np.zeros(n), np.full(n, INF))


def sparse(random: Random, m: int, n: int) -> Program:
    """A sparse linear program with ranges and bounds."""
    A = csr_array(sparse_random(m, n, density=min(1.0, 5.0 / m), random_state=random))
    inside = A @ random.random(n)
    return Program(
        f"sparse {m} x {n}", None, random.standard_normal(n), A, inside - random.random(m), inside + 0.1, np.zeros(n),
        np.ones(n),
    )  # fmt: skip


def deviations(random: Random, rows: int, features: int) -> Program:
    """Least absolute deviations: free variables."""
    D, t = random.standard_normal((rows, features)), random.standard_normal(rows)
    A = csr_array(vstack([hstack([csr_array(D), -eye_array(rows)]), hstack([csr_array(-D), -eye_array(rows)])]))
    q = np.append(np.zeros(features), np.ones(rows))
    n = features + rows
    ends = np.full(2 * rows, -INF), np.append(t, -t), np.full(n, -INF), np.full(n, INF)
    return Program(f"absolute deviations {rows} x {features}", None, q, A, *ends)


def badly_scaled(random: Random, m: int, n: int) -> Program:
    """A dense linear program with rows and columns of sizes from 1e-4 to 1e4."""
    given = dense(random, m, n)
    rows, columns = 10.0 ** random.uniform(-4, 4, m), 10.0 ** random.uniform(-4, 4, n)
    A, x = rows[:, None] * given.A * columns, np.where(random.permutation(n) < m, random.random(n), 0.0) / columns
    b = A @ x
    return given._replace(name=f"badly scaled {m} x {n}", q=given.q * columns, A=A, lower=b, upper=b)


def portfolio(random: Random, assets: int, factors: int) -> Program:
    """Markowitz' portfolio with a factor model: z = F'x, and the variance is |z|^2 + x'Dx."""
    F = random.standard_normal((assets, factors)) * (random.random((assets, factors)) < 0.5)
    d = random.random(assets) * np.sqrt(factors)
    returns = 3.0 + 9.0 * random.random(assets)
    P = csr_array(diags_array(np.append(d, np.ones(factors))))
    A = csr_array(
        vstack(
            [
                hstack([csr_array(F.T), -eye_array(factors)]),
                csr_array(np.append(np.ones(assets), np.zeros(factors))[None]),
            ]
        )
    )
    ends = np.append(np.zeros(factors), 1.0)
    low = np.append(np.zeros(assets), np.full(factors, -INF))
    q = np.append(-0.1 * returns, np.zeros(factors))
    return Program(f"portfolio {assets}, {factors} factors", P, q, A, ends, ends, low, np.full(assets + factors, INF))


def nonnegative_squares(random: Random, rows: int, features: int) -> Program:
    """Least squares with bounds."""
    D, t = random.standard_normal((rows, features)), random.standard_normal(rows)
    P = D.T @ D / rows
    return Program(
        f"bounded least squares {rows} x {features}", 0.5 * (P + P.T), -D.T @ t / rows, np.ones((1, features)),
        np.array([-INF]), np.array([1.0]), np.zeros(features), np.ones(features),
    )  # fmt: skip


def without_solution(random: Random) -> Iterator[Program]:
    """An infeasible program and an unbounded one."""
    given = sparse(random, 60, 100)
    contradiction = csr_array(given.A.sum(axis=0)[None])
    A = csr_array(vstack([given.A, contradiction]))
    least = float(given.upper.sum()) + 1.0
    yield given._replace(
        name="infeasible 61 x 100", A=A, lower=np.append(given.lower, least), upper=np.append(given.upper, INF)
    )
    given = transport(random, 10, 10)
    yield given._replace(name="unbounded 20 x 100", q=given.q - 1.0, lower=given.lower, upper=np.full(20, INF))


def programs(random: Random, quick: bool) -> Iterator[Program]:
    """All programs of the table."""
    yield from small()
    yield transport(random, 10, 10)
    yield assignment(random, 20)
    yield deviations(random, 100, 5)
    yield badly_scaled(random, 30, 60)
    yield portfolio(random, 100, 10)
    yield nonnegative_squares(random, 200, 50)
    if not quick:
        yield transport(random, 30, 30)
        yield transport(random, 100, 100)
        yield dense(random, 100, 200)
        yield dense(random, 300, 600)
        yield sparse(random, 1000, 2000)
        yield portfolio(random, 1000, 30)
