"""Engines by their names, for a run that reads A from a file; what was started is ended, whatever happens."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import AssumptionError, ProblemError
from saddlepoint.ground.validation import did_you_mean, short_repr
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.coupling.streamed import StoredRows
from saddlepoint.parts.sharded.coupling import ShardedCoupling
from saddlepoint.parts.sharded.engine import Engine
from saddlepoint.parts.sharded.local import LocalEngine, even_bounds

ENGINES = ("local", "dask", "mpi")
SHARD = 1 << 26  # bytes of A in a shard on Dask, about; but there are at least
LEAST = 16  # shards, if A has as many rows


@dataclass
class Opened:
    """An engine that is ready for a matrix.

    Attributes:
        make: makes the engine of a matrix; None to leave it where it is.
        leader: whether this process is the one that talks; the others run the same solve beside it.
        dashboard: the address of a page that shows what the workers do, if there is one.
        refuse: raises a complaint of any of the processes, on all of them.
        engine: what was made.
    """

    make: Callable[[Any], Engine] | None = None
    leader: bool = True
    dashboard: str = ""
    refuse: Callable[[str], None] | None = None
    engine: Engine | None = None
    entered: bool = False  # all processes have come to the making of the engine

    def split(self, A: Any) -> Coupling:
        """A in shards."""
        assert self.make is not None
        shape = np.shape(A)
        if len(shape) != 2 or 0 in shape:
            raise ProblemError(f"A has shape {shape}; expected a matrix with at least one row and one column")
        self.entered = True
        self.engine = self.make(A)
        return ShardedCoupling(self.engine)

    @contextmanager
    def agreed(self) -> Iterator[None]:
        """What one process alone complains about before the engine is made, all of them do."""
        try:
            yield
        except ProblemError as error:
            if self.refuse is not None and not self.entered:
                self.refuse(str(error))
            raise


@contextmanager
def opened(
    kind: str, workers: int | None = None, scheduler: str | None = None, certificates: tuple[Any, ...] = ()
) -> Iterator[Opened]:
    """An engine by its name, closed at the end.

    Args:
        kind: "local", "dask" or "mpi".
        workers: how many: threads of the local engine, processes of Dask's. MPI has as many as mpiexec starts.
        scheduler: the address of a Dask scheduler; workers are started here if left out.
        certificates: three PEM files for a tls:// address: the authority's, one's own, and its key.
    """
    if kind not in ENGINES:
        raise ProblemError(
            f"engine is {short_repr(kind)}; expected one of {', '.join(ENGINES)}{did_you_mean(kind, ENGINES)}"
        )
    if certificates and len(certificates) != 3:
        raise ProblemError("a tls:// scheduler needs three files: --tls-ca, --tls-cert and --tls-key")
    make = {"local": _local, "dask": _dask, "mpi": _mpi}[kind]
    with make(workers, scheduler, certificates) as ready:
        if kind != "dask" and (scheduler is not None or certificates):
            raise ProblemError(f"a scheduler belongs to the dask engine, and {kind} was asked for; add --engine dask")
        try:
            yield ready
        finally:
            if ready.engine is not None:
                ready.engine.close()


@contextmanager
def _local(workers: int | None, *_: Any) -> Iterator[Opened]:
    if workers is None:
        yield Opened()
    else:
        yield Opened(lambda A: LocalEngine(A[:] if isinstance(A, StoredRows) else A, workers=workers))


@contextmanager
def _mpi(workers: int | None, *_: Any) -> Iterator[Opened]:
    from saddlepoint.parts.sharded.mpi import MPIEngine, agree, world

    comm = world()
    rank, aloud = comm.Get_rank(), sys.stderr
    if rank > 0:
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open to the end
    if workers is not None:
        raise ProblemError("the mpi engine has as many workers as mpiexec starts: mpiexec -n 4 saddlepoint solve ...")
    try:
        yield Opened(lambda A: MPIEngine(A, comm), rank == 0, refuse=lambda wrong: agree(comm, wrong))
    except (ProblemError, AssumptionError):  # which all ranks raise alike
        raise
    except Exception as error:  # perhaps of this rank alone, and the others would wait for it for ever
        if comm.Get_size() == 1:
            raise
        told = " ".join(str(error).split())
        print(f"error: rank {rank} failed, {type(error).__name__}: {told}", file=aloud, flush=True)
        comm.Abort(3)


@contextmanager
def _dask(workers: int | None, scheduler: str | None, certificates: tuple[Any, ...]) -> Iterator[Opened]:
    from saddlepoint.parts.sharded import dask_cluster as clusters
    from saddlepoint.parts.sharded.dask import DaskEngine
    from saddlepoint.parts.sharded.dask_array import rows_from

    security = clusters.certificates(*certificates) if certificates else None
    with clusters.connect(scheduler, workers, security) as cluster:

        def make(A: Any) -> Engine:
            if not isinstance(A, StoredRows | np.memmap):
                raise ProblemError(
                    "the dask engine reads A from files that its workers can open; expected .npy, Zarr, HDF5, Parquet, "
                    "or a folder of such files"
                )
            m, n = A.shape
            wanted = min(m, max(LEAST, -(-A.nbytes // SHARD)))
            if isinstance(A, StoredRows):
                return DaskEngine(rows_from(A.read, A.bounds(wanted), n, A.dtype), cluster)
            return DaskEngine(rows_from(Rows(Path(str(A.filename))), even_bounds(m, wanted), n, A.dtype), cluster)

        yield Opened(make, dashboard=cluster.dashboard)


class Rows:
    """Reads rows of a .npy file, wherever it is called."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, start: int, stop: int) -> Array:
        """These rows."""
        try:
            return np.array(np.load(self.path, mmap_mode="r")[start:stop])
        except (OSError, ValueError) as error:
            raise ProblemError(
                f"rows {start} to {stop} of {self.path} cannot be read: {' '.join(str(error).split())}"
            ) from None
