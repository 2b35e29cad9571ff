"""The ways into the library: each runs a case and yields the answers, with what was proven about them.

An answer that is an exception is yielded too; ``judge`` says what it means.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

import saddlepoint as sp
from saddlepoint.methods.base import Method
from saddlepoint.methods.needs import missing
from saddlepoint.methods.registry import make_method, method_names
from saddlepoint.parts.sharded import LocalEngine, ShardedCoupling
from saddlepoint.theory.certificate import NO_CERTIFICATE

from .draws import Case, between
from .exact import Exact
from .false_claims import forge
from .numbers import Array

CALLS = 60  # most calls of each oracle in a run
SECONDS = 4.0  # most seconds of a run
FORMATS = ("npy", "npy", "columns", "zarr", "h5", "parquet", "folder")
PACKAGES = {"zarr": "zarr", "h5": "h5py", "parquet": "pyarrow"}  # what formats need, and may not be installed
formats = [form for form in FORMATS if form not in PACKAGES or find_spec(PACKAGES[form])]  # those that are used


class Answer(NamedTuple):
    """What one run returned, or the exception that it raised.

    Attributes:
        way: the way in.
        exact: the problem in decimal arithmetic.
        x, y, certificate, solved, message: of the result.
        error: the exception, or None.
        target: what was asked for: "tol", "rtol" or "gap".
        wrong: what is false about the answer beside its certificate, in words.
        result: the whole result.
    """

    way: str
    exact: Exact
    x: Array = None
    y: Array = None
    certificate: Any = None
    solved: bool = False
    message: str = ""
    error: BaseException | None = None
    target: str = "tol"
    wrong: str = ""
    result: Any = None


def problem(case: Case) -> sp.Saddle:
    """The problem as the library gets it."""
    return case.f if case.build is None else case.build()


def run(case: Case, **drawn: Any) -> Any:
    """The result of ``solve``."""
    return sp.solve(problem(case), **drawn)


def answer(way: str, exact: Exact, result: Any) -> Answer:
    """The answer of a result of ``solve``."""
    x, y = (np.asarray(v) for v in (result.x, result.y))
    return Answer(way, exact, x, y, result.certificate, result.solved, result.message, result=result)


def attempt(way: str, exact: Exact, made: Callable[[], Any]) -> Iterator[Answer]:
    """The answer of a run, or of its exception; one that holds a point is an answer as well."""
    try:
        result = made()
    except Exception as error:
        yield Answer(way, exact, error=error)
        return
    yield answer(way, exact, result)


def usable(f: sp.Saddle) -> list[str]:
    """The methods that have all that they need on this problem."""
    return ["auto", *(name for name in method_names() if not missing(make_method(name), f))]


def rounded(case: Case) -> tuple[Array, Array]:
    """The solution, rounded to the numbers of the problem."""
    exact = case.exact
    xs, ys, _ = exact.solution
    x, y = (np.repeat(v.astype(float), c) for v, c in ((xs, exact.counts_x), (ys, exact.counts_y)))
    return (x.astype(np.float32), y.astype(np.float32)) if case.f.dtype == np.float32 else (x, y)


def options(case: Case, rng: Generator) -> dict[str, Any]:
    """Tolerance, start and limits of a run. A run that starts near the solution may have a small tolerance."""
    size = case.exact.size()
    pick, near = rng.random(), between(rng, -16, -3)
    tight = between(rng, -5, -1) if pick < 0.6 else between(rng, -10, -5) if pick < 0.85 else between(rng, -16, 1)
    start: Any = case.start
    if start is None and pick < 0.25 and case.nearby:
        tight = near * between(rng, -2, 3)
        start = tuple(v * (1 + near * rng.standard_normal(v.size)).astype(v.dtype) for v in rounded(case))
    elif start is None and pick < 0.45 and case.nearby:
        far = between(rng, -3, 6)
        lengths = [float(np.abs(v).max()) or size for v in rounded(case)]
        start = tuple(far * unit * rng.standard_normal(k) for unit, k in zip(lengths, case.f.shape, strict=True))
    tol = 1e-300 if rng.random() < 0.02 else size * tight
    drawn: dict[str, Any] = {"tol": max(tol, 5e-324), "max_calls": CALLS, "max_seconds": SECONDS}
    if start is not None and case.f.space.is_numpy:
        drawn["x0"], drawn["y0"] = start
    return drawn | case.options


# -- the ways in -------------------------------------------------------------------------------------------------------


def certificates(case: Case, rng: Generator) -> Iterator[Answer]:
    """Certificates at the rounded solution, and at points at all distances from it."""
    if not case.nearby:
        return
    exact, (x, y) = case.exact, rounded(case)
    for scale in (0.0, *(between(rng, -17, 0) for _ in range(4))):
        a, b = (v * (1 + scale * rng.standard_normal(v.size)).astype(v.dtype) for v in (x, y))
        try:
            certificate = case.f.certificate(a, b)
        except Exception as error:
            yield Answer("certificate", exact, error=error)
            continue
        yield Answer("certificate", exact, a, b, certificate)


def solve(case: Case, rng: Generator) -> Iterator[Answer]:
    """Runs of ``auto`` and of other methods, perhaps wrapped in a further one."""
    methods = usable(case.f)
    for share in (1.0, 0.5):
        if rng.random() < share:
            drawn = options(case, rng) | {"max_calls": 3 * CALLS}
            yield from attempt("solve, auto", case.exact, partial(run, case, **drawn))
    for name in rng.choice(methods[1:], 2):
        yield from attempt("solve, by name", case.exact, partial(run, case, method=str(name), **options(case, rng)))
    if rng.random() < 0.3:
        inner = str(rng.choice(["lpd-gs", "condat-vu", "extragradient", "imex"]))
        base = make_method(inner)
        wrapped: Method = [
            sp.Catalyst(base),
            sp.Anderson(base, int(rng.integers(1, 8))),
            sp.Restarted(base),
            sp.Anderson(sp.Restarted(base), 3),
            sp.Catalyst(sp.Anderson(base, 4)),
            sp.Restarted(sp.Catalyst(base)),
        ][rng.integers(6)]
        drawn = options(case, rng)
        if not missing(wrapped, case.f):
            yield from attempt("solve, wrapped", case.exact, partial(run, case, method=wrapped, **drawn))
    if rng.random() < 0.15:
        drawn = options(case, rng) | {"on_violation": "adapt"}
        yield from attempt("solve, adapt", case.exact, partial(run, case, **drawn))


class FindingsError(Exception):
    """What ``sp.check`` says is wrong; perhaps only that gradients seem noisy, or computed from large numbers."""

    def __init__(self, findings: tuple[Any, ...]) -> None:
        super().__init__("; ".join(f"{finding.what}: {finding.advice}" for finding in findings))
        self.only_noise = all(
            finding.what.startswith("noise") or finding.found == "rounded as differences" for finding in findings
        )


def check(case: Case, rng: Generator) -> Iterator[Answer]:
    """The examination without a run, near the solution or at zero; what it finds wrong is an accusation."""
    start = rounded(case) if case.nearby and rng.random() < 0.5 else case.start or ()
    exact = case.exact
    try:
        report = sp.check(problem(case), *start, seed=int(rng.integers(1000)))
    except Exception as error:
        yield Answer("check", exact, error=error)
        return
    if report.problems:
        yield Answer("check", exact, error=FindingsError(report.problems))
        return
    x, y = (np.zeros(k) for k in case.f.shape)
    yield Answer("check", exact, x, y, NO_CERTIFICATE, solved=False)


def storage(case: Case, rng: Generator) -> Iterator[Answer]:
    """Runs whose method reads a copy of A in lower precision."""
    if not isinstance(case.rows, np.ndarray) or case.rows.dtype != np.float64:
        return
    drawn = options(case, rng) | {"storage": "float32"}
    name = str(rng.choice(["auto", "lpd-gs", "condat-vu"]))
    yield from attempt("storage", case.exact, lambda: sp.solve(problem(case), method=name, **drawn))


def write(A: Array, folder: Path, form: str, rng: Generator) -> str:
    """A in a file of this form; the name for ``sp.stream``."""
    match form:
        case "npy":
            np.save(folder / "A.npy", A)
            return str(folder / "A.npy")
        case "columns":
            np.save(folder / "A.npy", np.asfortranarray(A))
            return str(folder / "A.npy")
        case "zarr":
            import zarr

            chunks = tuple(max(1, k // 2) for k in A.shape)
            array = zarr.create_array(str(folder / "A.zarr"), shape=A.shape, chunks=chunks, dtype=A.dtype)
            array[:] = A
            return str(folder / "A.zarr")
        case "h5":
            import h5py

            with h5py.File(folder / "A.h5", "w") as file:
                file.create_dataset("A", data=A, chunks=True if rng.random() < 0.5 else None)
            return str(folder / "A.h5") + ":A"
        case "parquet":
            import pyarrow
            import pyarrow.parquet

            table = pyarrow.table({f"c{j}": A[:, j] for j in range(A.shape[1])})
            pyarrow.parquet.write_table(table, folder / "A.parquet")
            return str(folder / "A.parquet")
        case _:
            cut = int(rng.integers(1, A.shape[0])) if A.shape[0] > 1 else 1
            (folder / "A").mkdir()
            for k, rows in enumerate((A[:cut], A[cut:])):
                if len(rows):
                    np.save(folder / "A" / f"part{k}.npy", rows)
            return str(folder / "A")


def streams(case: Case, rng: Generator) -> Iterator[Answer]:
    """Runs whose A is on disk."""
    A = case.rows
    if not isinstance(A, np.ndarray):
        return
    form = str(rng.choice(formats if A.shape[1] < 50 else formats[:3]))
    with tempfile.TemporaryDirectory() as name:
        source = write(A, Path(name), form, rng)

        def read() -> Any:
            f = sp.Saddle(case.f.g, case.f.h, sp.stream(source, "200MB"))
            return sp.solve(f, method=str(rng.choice(["auto", "lpd-gs", "condat-vu"])), **options(case, rng))

        yield from attempt(f"stream, {form}", case.exact, read)


def shards(case: Case, rng: Generator) -> Iterator[Answer]:
    """Runs whose A and x are in shards, if g is a sum over coordinates."""
    A, g = case.rows, case.f.g
    if A is None or g.restrict is None:
        return
    count = int(rng.integers(1, min(A.shape[0], 5) + 1))
    engine = LocalEngine(A, count, workers=int(rng.integers(1, 3)))
    try:
        drawn = options(case, rng)

        def split() -> Any:
            f = sp.Saddle(g, case.f.h, ShardedCoupling(engine))
            return sp.solve(f, method=str(rng.choice(["auto", "lpd-gs", "anderson-condat-vu"])), **drawn)

        yield from attempt("shards", case.exact, split)
    finally:
        engine.close()


def checkpoints(case: Case, rng: Generator) -> Iterator[Answer]:
    """Runs that are stopped, written to disk and continued."""
    drawn = options(case, rng)
    method = str(rng.choice(usable(case.f)))
    with tempfile.TemporaryDirectory() as folder:
        drawn["checkpoint"] = Path(folder) / "run.ckpt"
        first = drawn | {"max_calls": int(rng.integers(1, 40))}
        yield from attempt("checkpoint, stopped", case.exact, lambda: sp.solve(problem(case), method=method, **first))
        again = {key: value for key, value in drawn.items() if key not in ("x0", "y0")}
        yield from attempt("checkpoint, continued", case.exact, lambda: sp.solve(case.f, method=method, **again))


def forged(case: Case, rng: Generator) -> Iterator[Answer]:
    """Runs that go on from a checkpoint in which a few values were changed."""
    drawn = options(case, rng)
    method = str(rng.choice(["auto", *usable(case.f)]))
    with tempfile.TemporaryDirectory() as folder:
        drawn["checkpoint"] = Path(folder) / "run.ckpt"
        first = drawn | {"max_calls": int(rng.integers(2, 60))}
        if rng.random() < 0.3:
            first["on_violation"] = drawn["on_violation"] = "adapt"
        with contextlib.suppress(sp.AssumptionError):
            sp.solve(case.f, method=method, **first)
        if not drawn["checkpoint"].exists():
            return
        words = forge(drawn["checkpoint"], rng)
        for found in attempt("forged checkpoint", case.exact, lambda: sp.solve(case.f, method=method, **drawn)):
            yield found._replace(message=f"{found.message} [{words}]")


def batches(case: Case, rng: Generator) -> Iterator[Answer]:
    """Several problems in one call, and as one batch of the caller's own functions."""
    if not case.many:
        return
    problems, truths = zip(*case.many, strict=True)
    size = float(np.exp(np.mean([np.log(exact.size()) for exact in truths])))
    tol = size * between(rng, -12, -2)
    method = str(rng.choice(["auto", "lpd-gs", "condat-vu", "anderson-imex"]))
    limits: dict[str, Any] = {"max_calls": CALLS, "max_seconds": SECONDS}
    try:
        results = sp.solve_many(problems, tol=tol, method=method, **limits)
    except Exception as error:
        yield Answer("batch", truths[0], error=error)
        return
    for exact, result in zip(truths, results, strict=True):
        yield answer("batch", exact, result)
    m, n = problems[0].shape

    def joined(name: str, size: int) -> sp.Smooth:
        parts = [getattr(f, name) for f in problems]
        grad = lambda v: np.concatenate(  # noqa: E731
            [p.grad(b) for p, b in zip(parts, v.reshape(-1, size), strict=True)]
        )
        return sp.Smooth(grad, mu=min(p.mu for p in parts), L=max(p.L for p in parts))

    constants = [c for f in problems for c in (f.mu_x, f.mu_y)]
    if max(constants) > 1e8 * min(constants):
        return
    try:
        batch = sp.Batch(joined("g", m), joined("h", n), np.stack([exact.dense for exact in truths]))
        results = sp.solve_many(batch, tol=tol, method=method, **limits)
    except Exception as error:
        yield Answer("batch of own functions", truths[0], error=error)
        return
    for exact, result in zip(truths, results, strict=True):
        yield answer("batch of own functions", exact, result)


# Each way with the share of the cases for which it is used.
WAYS_IN: dict[str, tuple[Callable[[Case, Generator], Iterator[Answer]], float]] = {
    "certificate": (certificates, 1.0),
    "solve": (solve, 1.0),
    "batch": (batches, 1.0),
    "storage": (storage, 0.3),
    "stream": (streams, 0.25),
    "shards": (shards, 0.4),
    "checkpoint": (checkpoints, 0.3),
    "check": (check, 0.15),
}

# The same for problems about which something is wrong.
WRONG: dict[str, tuple[Callable[[Case, Generator], Iterator[Answer]], float]] = {
    "solve": (solve, 1.0),
    "storage": (storage, 0.2),
    "stream": (streams, 0.1),
    "shards": (shards, 0.2),
    "checkpoint": (checkpoints, 0.2),
    "check": (check, 0.2),
}
FORGED = {"forged checkpoint": (forged, 1.0)}
