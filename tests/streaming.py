"""Solves a problem whose file is larger than the memory limit, and prints the memory used; for test_streamed.py.

Usage: python streaming.py FILE LIMIT [GROWTH]. A small solve first loads the libraries and
compiles their loops; then the peak is reset, and the bytes that the large solve adds to it are printed.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import saddlepoint as sp


def memory(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return 1024 * int(line.split()[1])


def solve(path: str, limit: str, **options: object) -> tuple[sp.Coupling, sp.Result]:
    A = sp.stream(path, limit)
    m, n = A.shape
    f = sp.Saddle(sp.Quadratic(1.0, np.ones(m)), sp.Huber(l2=1.0) + sp.Quadratic(1e-3, -np.ones(n)), A)
    return A, sp.solve(f, **options)


def main() -> None:
    path, limit = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/A.npy", np.ones((800, 400)))
        solve(f"{folder}/A.npy", limit)
    if Path(path).suffix != ".npy":
        sp.stream(sys.argv[3], limit).mul(np.ones(sp.stream(sys.argv[3], limit).shape[1]))  # loads the library
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    A, result = solve(path, limit, max_calls=10, tol=1e-9)
    assert result.certificate.distance < np.inf
    print(memory("VmHWM") - before, A.runtime.reading.passes, A.runtime.reading.bytes)


if __name__ == "__main__":
    main()
