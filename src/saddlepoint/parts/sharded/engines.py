"""Engines by name, for the command line. Whatever is started for an engine is ended with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import AssumptionError, ProblemError
from saddlepoint.ground.validation import did_you_mean, short_repr
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.coupling.streamed import StoredRows
from saddlepoint.parts.coupling.streamed.store import State
from saddlepoint.parts.sharded.coupling import ShardedCoupling
from saddlepoint.parts.sharded.engine import Engine
from saddlepoint.parts.sharded.local import LocalEngine, even_bounds

ENGINES = ("local", "dask", "mpi")
SHARD_BYTES = 1 << 26  # approximate bytes of a shard of A with the dask engine
LEAST_SHARDS = 16  # least number of shards with the dask engine, if A has as many rows


@dataclass
class EngineSession:
    """An engine that was chosen by name, before and after it gets its matrix.

    Attributes:
        build: creates the engine of a matrix; None if A is not split into shards.
        leader: whether this process prints and writes files; other processes run the same solve silently.
        dashboard: the address of Dask's page about the workers, once they are there, or "".
        raise_everywhere: raises an error message of one process on all processes; None if there is only one process.
        engine: the engine, once it is created.
        started: whether the creation of the engine has begun, from where on the engine itself shares errors.
    """

    build: Callable[[Any], Engine] | None = None
    leader: bool = True
    dashboard: str = ""
    raise_everywhere: Callable[[str], None] | None = None
    engine: Engine | None = None
    started: bool = False

    def split(self, A: Any) -> Coupling:
        """Create the engine of A, and return A as a coupling over its shards."""
        assert self.build is not None
        shape = np.shape(A)
        if len(shape) != 2 or 0 in shape:
            raise ProblemError(f"A has shape {shape}; expected a matrix with at least one row and one column")
        self.started = True
        self.engine = self.build(A if issparse(A) or hasattr(A, "dtype") else np.asarray(A, dtype=float))
        return ShardedCoupling(self.engine)

    @contextmanager
    def errors_shared(self) -> Iterator[None]:
        """Within this context, a ProblemError of one process before the engine exists is raised on all processes."""
        try:
            yield
        except ProblemError as error:
            if self.raise_everywhere is not None and not self.started:
                self.raise_everywhere(str(error))
            raise


@contextmanager
def open_engine(
    kind: str, workers: int | None = None, scheduler: str | None = None, certificates: tuple[Any, ...] = ()
) -> Iterator[EngineSession]:
    """An engine by name; it is closed when the context ends.

    Args:
        kind: "local", "dask" or "mpi".
        workers: number of threads (local) or of worker processes (dask); mpiexec sets the number of MPI ranks.
        scheduler: the address of a Dask scheduler; by default workers are started on this machine.
        certificates: three PEM files for a tls:// address: of the authority, the own certificate, and its key.
    """
    if kind not in ENGINES:
        raise ProblemError(
            f"engine is {short_repr(kind)}; expected one of {', '.join(ENGINES)}{did_you_mean(kind, ENGINES)}"
        )
    if certificates and len(certificates) != 3:
        raise ProblemError("a tls:// scheduler needs three files: --tls-ca, --tls-cert and --tls-key")
    build = {"local": _local, "dask": _dask, "mpi": _mpi}[kind]
    with build(workers, scheduler, certificates) as session:
        if kind != "dask" and (scheduler is not None or certificates):
            raise ProblemError(f"a scheduler was given with the engine {kind}; expected --engine dask with it")
        try:
            yield session
        finally:
            if session.engine is not None:
                session.engine.close()


@contextmanager
def _local(workers: int | None, *_: Any) -> Iterator[EngineSession]:
    if workers is None:
        yield EngineSession()
    else:
        yield EngineSession(lambda A: LocalEngine(A[:] if isinstance(A, StoredRows) else A, workers=workers))


@contextmanager
def _mpi(workers: int | None, *_: Any) -> Iterator[EngineSession]:
    from saddlepoint.parts.sharded.mpi import MPIEngine, raise_on_all_ranks, world

    comm = world()
    rank, stderr = comm.Get_rank(), sys.stderr
    if rank > 0:
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    if workers is not None:
        raise ProblemError("the mpi engine has as many workers as mpiexec starts: mpiexec -n 4 saddlepoint solve ...")
    try:
        yield EngineSession(
            lambda A: MPIEngine(A, comm), rank == 0, raise_everywhere=lambda message: raise_on_all_ranks(comm, message)
        )
    except (ProblemError, AssumptionError):  # all ranks raise these together
        raise
    except Exception as error:  # perhaps on this rank only, for which the others would wait without end
        if comm.Get_size() == 1:
            raise
        message = " ".join(str(error).split())
        print(f"error: rank {rank} failed, {type(error).__name__}: {message}", file=stderr, flush=True)
        comm.Abort(3)


@contextmanager
def _dask(workers: int | None, scheduler: str | None, certificates: tuple[Any, ...]) -> Iterator[EngineSession]:
    from saddlepoint.parts.sharded import dask_cluster as clusters
    from saddlepoint.parts.sharded.dask import DaskEngine
    from saddlepoint.parts.sharded.dask_array import rows_from, rows_of

    security = clusters.certificates(*certificates) if certificates else None
    with ExitStack() as opened:  # workers are started only when A has been read, so that errors come at once

        def build(A: Any) -> Engine:
            cluster = opened.enter_context(clusters.connect(scheduler, workers, security))
            session.dashboard = cluster.dashboard
            m, n = A.shape
            if not isinstance(A, StoredRows | np.memmap):
                size = A.nnz * (A.dtype.itemsize + 4) if issparse(A) else A.nbytes
                return DaskEngine(rows_of(A, even_bounds(m, dask_shards(m, size))), cluster)
            wanted = dask_shards(m, A.nbytes)
            if isinstance(A, StoredRows):
                return DaskEngine(rows_from(A.read, A.bounds(wanted), n, A.dtype), cluster)
            return DaskEngine(rows_from(NpyRows(Path(str(A.filename))), even_bounds(m, wanted), n, A.dtype), cluster)

        session = EngineSession(build)
        yield session


def dask_shards(rows: int, size: int) -> int:
    """The number of shards of a matrix of ``rows`` rows and ``size`` bytes, with the dask engine."""
    return min(rows, max(LEAST_SHARDS, -(-size // SHARD_BYTES)))


class NpyRows:
    """Reads rows of a .npy file in the process that calls it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, start: int, stop: int) -> Array:
        """The rows from ``start`` to ``stop``."""
        State.of(self.path)  # raises an error if it is a pipe, from which reading could take forever
        try:
            return np.array(np.load(self.path, mmap_mode="r")[start:stop])
        except (OSError, ValueError) as error:
            raise ProblemError(
                f"rows {start} to {stop} of {self.path} cannot be read: {' '.join(str(error).split())}"
            ) from None
