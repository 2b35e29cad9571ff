"""Dask clusters: that of the current client, one at an address, or a new one on the cores of this machine."""

from __future__ import annotations

import asyncio
import atexit
import os
import socket
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_count, short_repr

CONNECT_SECONDS = 10.0  # seconds within which a scheduler must answer

_started: weakref.ref[Cluster] | None = None  # the cluster that `current_cluster` has started
_open: weakref.WeakSet[Cluster] = weakref.WeakSet()


class Cluster:
    """A client of a Dask cluster, and whatever must be closed with it.

    Args:
        client: a ``distributed.Client``.
        owned: objects to close with the cluster, in this order.
    """

    def __init__(self, client: Any, owned: tuple[Any, ...] = ()) -> None:
        self.client = client
        self._close = weakref.finalize(self, _close_all, owned)
        _open.add(self)
        _at_exit()

    @property
    def dashboard(self) -> str:
        """The address of Dask's page about the workers, or ""."""
        return str(self.client.dashboard_link or "")

    def close(self) -> None:
        """Close the objects that the cluster owns."""
        self._close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    address: str | None = None, workers: int | None = None, security: Any = None, seconds: float = CONNECT_SECONDS
) -> Cluster:
    """Connect to a scheduler, or start worker processes on this machine.

    Args:
        address: of a scheduler, ``tcp://host:port`` or ``tls://host:port``; None to start workers on this machine.
        workers: number of workers to start, by default one for each core; at an address, the number to wait for.
        security: a ``distributed.Security`` for ``tls://`` (see ``certificates``).
        seconds: time within which the scheduler must answer, and as many workers must have come as were asked for.

    Example:
        >>> from saddlepoint.parts.sharded.dask_cluster import connect
        >>> connect("tcp://somewhere")
        Traceback (most recent call last):
        ...
        saddlepoint.ground.errors.ProblemError: the scheduler's address is 'tcp://somewhere'; expected tcp:...
    """
    workers = None if workers is None else as_count(workers, "workers")
    if address is None:
        return _local(processes=True, workers=workers)
    distributed = import_distributed()
    _check_address(address, security)
    _probe(address, security, seconds)
    try:
        client = distributed.Client(address, security=security, timeout=seconds, set_as_default=False)
    except Exception as error:
        raise _unreachable(address, error, seconds) from None
    cluster = Cluster(client, (client,))
    if workers is not None:
        try:
            client.wait_for_workers(workers, timeout=seconds)
        except TimeoutError:
            count = len(client.scheduler_info()["workers"])
            cluster.close()
            raise ProblemError(
                f"the scheduler {address} has {count} workers after {seconds:.0f} s; expected {workers}: start "
                "more or ask for fewer"
            ) from None
    return cluster


def certificates(ca: Any, cert: Any, key: Any) -> Any:
    """The ``distributed.Security`` of three PEM files: of the authority, the own certificate, and its key."""
    for name, file in (("the certificate authority", ca), ("the certificate", cert), ("the key", key)):
        if not isinstance(file, str | os.PathLike) or not Path(file).is_file():
            raise ProblemError(f"{name} is {short_repr(file)}, and there is no such file; expected one in PEM format")
    names = {"tls_ca_file": ca, "tls_client_cert": cert, "tls_client_key": key}
    return import_distributed().Security(
        **{name: os.fspath(file) for name, file in names.items()}, require_encryption=True
    )


def current_cluster() -> Cluster:
    """The cluster of the current ``distributed.Client``; without one, a cluster in this process.

    The latter is closed when the last engine that uses it is deleted.
    """
    global _started
    distributed = import_distributed()
    try:
        client = distributed.default_client()
    except ValueError:
        cluster = None if _started is None else _started()
        if cluster is None or cluster.client.status != "running":
            cluster = _local(processes=False)
            _started = weakref.ref(cluster)
        return cluster
    if client.asynchronous:
        raise ProblemError("the current Dask client is asynchronous; expected one made with asynchronous=False")
    return Cluster(client)


def import_distributed() -> Any:
    """The library ``distributed``, or a ProblemError that says how to install it."""
    try:
        import_module("dask.array")
        return import_module("distributed")
    except ImportError:
        raise ProblemError("Dask arrays need dask and distributed: pip install 'saddlepoint[dask]'") from None


def _local(processes: bool, workers: int | None = None) -> Cluster:
    """Workers on this machine: processes, or one worker in this process with a thread for each core."""
    distributed = import_distributed()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count, threads = (workers or cores, 1) if processes else (1, cores)
    cluster = distributed.LocalCluster(
        n_workers=count, threads_per_worker=threads, processes=processes, dashboard_address=":0"
    )
    try:
        client = distributed.Client(cluster, set_as_default=False, direct_to_workers=True)
    except BaseException:
        cluster.close()
        raise
    return Cluster(client, (client, cluster))


def _check_address(address: Any, security: Any) -> None:
    scheme, _, place = str(address).partition("://")
    port = place.rpartition(":")[2]
    if not isinstance(address, str) or scheme not in ("tcp", "tls") or not (":" in place and port.isdigit()):
        raise ProblemError(
            f"the scheduler's address is {short_repr(address)}; expected tcp://host:port or tls://host:port, as the "
            "scheduler prints when it starts"
        )
    if scheme == "tls" and security is None:
        raise ProblemError(f"the scheduler {address} needs certificates; give those of its authority and your own")


def _probe(address: str, security: Any, seconds: float) -> None:
    """Connect once, with a time limit: Dask's client waits without end for a server that is no Dask scheduler."""
    host, _, port = address.partition("://")[2].rpartition(":")
    try:  # a plain connection fails at once, where Dask would retry for long
        socket.create_connection((host.strip("[]"), int(port)), seconds).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, error, seconds) from None
    arguments = {} if security is None else security.get_connection_args("client")
    comm = import_module("distributed.comm")

    async def connect_once() -> None:
        async with asyncio.timeout(seconds):
            (await comm.connect(address, timeout=seconds, **arguments)).abort()

    with ThreadPoolExecutor(1) as pool:  # this thread may already run an event loop
        try:
            pool.submit(asyncio.run, connect_once()).result()
        except Exception as error:
            raise _unreachable(address, error, seconds) from None


def _unreachable(address: str, error: Exception, seconds: float) -> ProblemError:
    reason = " ".join(str(error).split()) or f"it does not answer within {seconds:.0f} s as a scheduler does"
    return ProblemError(f"there is no Dask scheduler at {address}: {reason}; check the address, and that it runs")


@cache
def _at_exit() -> None:
    """Close all clusters before Dask's exit handlers run, which would log errors about lost data."""

    def close() -> None:
        for cluster in list(_open):
            cluster.close()

    atexit.register(close)


def _close_all(owned: tuple[Any, ...]) -> None:
    """Close the objects. The last reference may be deleted in a thread of Dask, where closing would deadlock."""
    for part in owned:
        if threading.current_thread() is threading.main_thread():
            part.close()
        else:
            threading.Thread(target=part.close).start()
