"""Worker processes, and links with a delay between network namespaces, which benchmarks/scaling.py measures.

A link is a pair of TUN devices, one in this namespace and one in a namespace of its own. A packet that enters one
device leaves the other after a given time; TCP and everything above it are those of the kernel. (The kernel's netem
does the same where it is compiled in.) This needs Linux, root, and `ip`.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from multiprocessing import Process
from pathlib import Path
from typing import Any

import numpy as np

from saddlepoint.parts.coupling import as_coupling

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000  # from linux/if_tun.h
MTU = 60_000  # bytes of the largest packet of a link
BUFFER = 1 << 23  # bytes of socket buffers; with less, long messages over a slow link wait for acknowledgements


def prepared(link: socket.socket) -> socket.socket:
    """The socket, set up for short and for long messages."""
    for name in (32, 33):  # SO_SNDBUFFORCE and SO_RCVBUFFORCE, which Python does not name
        with suppress(OSError):  # only root may do this
            link.setsockopt(socket.SOL_SOCKET, name, BUFFER)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def send(to: socket.socket, what: Any) -> None:
    """Send an array, or bytes."""
    to.sendall(memoryview(what).cast("B"))


def receive(source: socket.socket, size: int) -> bytearray:
    """Receive a number of bytes."""
    buffer = bytearray(size)
    view = memoryview(buffer)
    while len(view):
        view = view[source.recv_into(view) or _lost() :]
    return buffer


def _lost() -> int:
    raise ConnectionError("the other side has gone")


def work(host: str, port: int) -> None:
    """Run a worker, which makes its rows of some matrices and answers requests until the connection is closed."""
    link = prepared(socket.socket())
    link.connect((host, port))
    held: dict[int, Any] = {}
    while True:
        try:
            kind, which, a, b = struct.unpack("<cqqq", receive(link, 25))
        except ConnectionError:
            return
        if kind == b"A":  # make a matrix of a x b random numbers
            held[which] = as_coupling(np.random.default_rng(0).random((a, b))), np.ones(b), np.ones(a)
            send(link, b"!")
        elif kind == b"p":  # answer a ping of a bytes
            send(link, receive(link, a))
        elif kind == b"c":  # a pass over A without communication
            A, y, e = held[which]
            began = time.perf_counter()
            A.through(y, 0.5, e)
            send(link, struct.pack("<d", time.perf_counter() - began))
        else:  # a round: receive y, send A'(A y/2 + e)
            A, _, e = held[which]
            send(link, A.through(np.frombuffer(receive(link, 8 * b)), 0.5, e)[1])


class Team:
    """Some workers, in this namespace or in namespaces of their own."""

    def __init__(self, places: list[tuple[str, list[str]]]) -> None:
        self.processes, self.links = [], []
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        for host, prefix in places:
            with prepared(socket.socket()) as listener:  # accepted sockets inherit its settings
                listener.bind((host, 0))
                listener.listen()
                listener.settimeout(60)
                port = str(listener.getsockname()[1])
                command = [*prefix, sys.executable, str(Path(__file__)), host, port]
                self.processes.append(subprocess.Popen(command, env=environment))
                link = listener.accept()[0]
            link.settimeout(120)
            self.links.append(link)

    def ask(self, kind: bytes, which: int = 0, a: int = 0, b: int = 0) -> None:
        """Send a request to all workers."""
        for link in self.links:
            send(link, struct.pack("<cqqq", kind, which, a, b))

    def share(self, which: int, rows: int, n: int) -> None:
        """Let every worker make its rows of a matrix."""
        self.ask(b"A", which, rows // len(self.links), n)
        for link in self.links:
            receive(link, 1)

    def ping(self, size: int) -> float:
        """The shortest round-trip time in seconds, to one worker after the other."""
        return min(_ping(link, bytes(size)) for link in self.links)

    def passes(self, which: int) -> float:
        """Seconds of a pass over a matrix, with all workers at once and no communication."""
        self.ask(b"c", which)
        return max([float(struct.unpack("<d", receive(link, 8))[0]) for link in self.links])

    def round(self, which: int, y: Any) -> float:
        """Seconds of a round: y goes to all workers, and the parts of A'x come back and are added in a fixed order."""
        began = time.perf_counter()
        for link in self.links:
            send(link, struct.pack("<cqqq", b"r", which, 0, y.size))
            send(link, y)
        total = np.zeros_like(y)
        for link in self.links:
            total += np.frombuffer(receive(link, 8 * y.size))
        return time.perf_counter() - began

    def close(self) -> None:
        """Close the connections, which ends the workers."""
        for link in self.links:
            link.close()
        for process in self.processes:
            process.wait(10)


def _ping(link: socket.socket, data: bytes) -> float:
    began = time.perf_counter()
    send(link, struct.pack("<cqqq", b"p", 0, len(data), 0))
    send(link, data)
    receive(link, len(data))
    return time.perf_counter() - began


@contextmanager
def team(places: list[tuple[str, list[str]]]) -> Iterator[Team]:
    """A context with some workers."""
    found = Team(places)
    try:
        yield found
    finally:
        found.close()


# -- links with a delay ------------------------------------------------------------------------------------------------


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def _tun(name: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return device


def forward(pairs: list[tuple[int, int]], delay: float) -> None:
    """Forward packets from one device of a pair to the other after a delay in seconds."""
    across = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    waiting: list[tuple[float, int, int, bytes]] = []
    number = count()
    while True:
        timeout = None if not waiting else max(0.0, waiting[0][0] - time.perf_counter())
        for device in select.select(list(across), [], [], timeout)[0]:
            packet = os.read(device, MTU + 100)
            heapq.heappush(waiting, (time.perf_counter() + delay, next(number), across[device], packet))
        while waiting and waiting[0][0] <= time.perf_counter():
            os.write(waiting[0][2], heapq.heappop(waiting)[3])


@contextmanager
def namespaces(workers: int, delay: float) -> Iterator[list[tuple[str, list[str]]]]:
    """Namespaces for workers, each at the end of a link with this delay each way."""
    with ExitStack() as stack:
        pairs, places = [], []
        for k in range(workers):
            space, here, there = f"saddle{k}", f"saddle{k}a", f"saddle{k}b"
            _ip("netns", "add", space)
            stack.callback(subprocess.run, ["ip", "netns", "del", space], check=False)
            pair = _tun(here), _tun(there)
            for device in pair:
                stack.callback(os.close, device)
            pairs.append(pair)
            _ip("link", "set", there, "netns", space)
            for prefix, name, address in (([], here, 1), (["netns", "exec", space, "ip"], there, 2)):
                _ip(*prefix, "addr", "add", f"10.99.{k}.{address}/24", "dev", name)
                _ip(*prefix, "link", "set", name, "mtu", str(MTU), "up")
            places.append((f"10.99.{k}.1", ["ip", "netns", "exec", space]))
        process = Process(target=forward, args=(pairs, delay), daemon=True)
        process.start()
        stack.callback(process.join)
        stack.callback(process.kill)
        yield places


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]))
