"""Dask clusters: the one that is there, one at an address, or one of this machine's cores that is started here."""

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

CONNECT = 10.0  # seconds in which a scheduler has to answer

_started: weakref.ref[Cluster] | None = None  # the cluster that was started because there was none
_open: weakref.WeakSet[Cluster] = weakref.WeakSet()


class Cluster:
    """A client of a Dask cluster. What was started or opened for it is closed with it.

    Args:
        client: a ``distributed.Client``.
        owned: what to close, in this order.
    """

    def __init__(self, client: Any, owned: tuple[Any, ...] = ()) -> None:
        self.client = client
        self._close = weakref.finalize(self, _close_all, owned)
        _open.add(self)
        _at_exit()

    @property
    def dashboard(self) -> str:
        """The address of the page on which Dask shows what the workers do."""
        return str(self.client.dashboard_link or "")

    def close(self) -> None:
        """Close what was opened."""
        self._close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(address: str | None = None, workers: int | None = None, security: Any = None) -> Cluster:
    """A cluster of one's own.

    Args:
        address: of a scheduler, ``tcp://host:port`` or ``tls://host:port``. If left out, worker processes are started
            on this machine.
        workers: how many; one a core if left out. At an address, the number to wait for.
        security: a ``distributed.Security`` for ``tls://`` (see ``certificates``).

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
    distributed = library()
    _check_address(address, security)
    _probe(address, security)
    try:
        client = distributed.Client(address, security=security, timeout=CONNECT, set_as_default=False)
    except Exception as error:
        raise _unreachable(address, error) from None
    cluster = Cluster(client, (client,))
    if workers is not None:
        try:
            client.wait_for_workers(workers, timeout=CONNECT)
        except TimeoutError:
            there = len(client.scheduler_info()["workers"])
            cluster.close()
            raise ProblemError(
                f"the scheduler {address} has {there} workers after {CONNECT:.0f} s; expected {workers}: start more "
                "or ask for fewer"
            ) from None
    return cluster


def certificates(ca: Any, cert: Any, key: Any) -> Any:
    """The ``distributed.Security`` of three PEM files: the authority's, one's own certificate, and its key."""
    for name, file in (("the certificate authority", ca), ("the certificate", cert), ("the key", key)):
        if not isinstance(file, str | os.PathLike) or not Path(file).is_file():
            raise ProblemError(f"{name} is {short_repr(file)}, and there is no such file; expected one in PEM format")
    names = {"tls_ca_file": ca, "tls_client_cert": cert, "tls_client_key": key}
    return library().Security(**{name: os.fspath(file) for name, file in names.items()}, require_encryption=True)


def present() -> Cluster:
    """The cluster of the present ``distributed.Client``; if there is none, this process, until nobody needs it."""
    global _started
    distributed = library()
    try:
        client = distributed.default_client()
    except ValueError:
        cluster = None if _started is None else _started()
        if cluster is None or cluster.client.status != "running":
            cluster = _local(processes=False)
            _started = weakref.ref(cluster)
        return cluster
    if client.asynchronous:
        raise ProblemError("the present Dask client is asynchronous; expected one made with asynchronous=False")
    return Cluster(client)


def library() -> Any:
    """The library ``distributed``, or a ProblemError that says how to get it."""
    try:
        import_module("dask.array")
        return import_module("distributed")
    except ImportError:
        raise ProblemError("Dask arrays need dask and distributed: pip install 'saddlepoint[dask]'") from None


def _local(processes: bool, workers: int | None = None) -> Cluster:
    """Workers on this machine: processes, or one that is this process and has a thread for each core."""
    distributed = library()
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


def _probe(address: str, security: Any) -> None:
    """Shake hands once, with a limit: a client waits for ever for a server that does not talk like a scheduler."""
    host, _, port = address.partition("://")[2].rpartition(":")
    try:  # a plain connection first, which fails at once where Dask's own would try again and again
        socket.create_connection((host.strip("[]"), int(port)), CONNECT).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, error) from None
    arguments = {} if security is None else security.get_connection_args("client")
    comm = import_module("distributed.comm")

    async def shake() -> None:
        async with asyncio.timeout(CONNECT):
            (await comm.connect(address, timeout=CONNECT, **arguments)).abort()

    with ThreadPoolExecutor(1) as aside:  # the present thread may run an event loop of its own
        try:
            aside.submit(asyncio.run, shake()).result()
        except Exception as error:
            raise _unreachable(address, error) from None


def _unreachable(address: str, error: Exception) -> ProblemError:
    told = " ".join(str(error).split()) or f"it does not answer within {CONNECT:.0f} s as a scheduler does"
    return ProblemError(f"there is no Dask scheduler at {address}: {told}; check the address, and that it runs")


@cache
def _at_exit() -> None:
    """Close what is open before Dask's own handlers do, who were there first: they would complain about lost data."""

    def close() -> None:
        for cluster in list(_open):
            cluster.close()

    atexit.register(close)


def _close_all(owned: tuple[Any, ...]) -> None:
    """Not from a thread of Dask's own, where the last reference may have been let go: that would wait for itself."""
    for part in owned:
        if threading.current_thread() is threading.main_thread():
            part.close()
        else:
            threading.Thread(target=part.close).start()
