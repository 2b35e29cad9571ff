"""Array files, the first byte choosing the ending: ``python tests/fuzz/array_file.py -runs=100000``."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from harness import LIMIT, fuzz, read

ENDINGS = ("npy", "npz", "mtx", "libsvm")


def _saved(save: object, *arrays: object, **named: object) -> bytes:
    file = io.BytesIO()
    save(file, *arrays, **named)  # type: ignore[operator]
    return file.getvalue()


A = np.arange(6.0).reshape(2, 3)
SEEDS = [
    b"\0" + _saved(np.save, A),
    b"\0" + _saved(np.save, np.asfortranarray(A, dtype=np.int16)),
    b"\1" + _saved(np.savez, A=A, b=np.ones(2)),
    b"\1" + _saved(np.savez_compressed, A=np.zeros((40, 50))),
    b"\2%%MatrixMarket matrix coordinate real general\n% note\n2 3 2\n1 1 1.5\n2 3 -2e-3\n",
    b"\2%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n",
    b"\2%%MatrixMarket matrix array integer general\n2 2\n1\n2\n3\n4\n",
    b"\2%%MatrixMarket matrix array real skew-symmetric\n2 2\n1\n",
    b"\3+1 1:0.5 3:-2e3 # note\n-1 qid:3 2:1\n\n",
]


def check(data: bytes, folder: Path) -> bool:
    """A file with this content is read as an array, or refused."""
    from saddlepoint.problems.files.arrays import read_array

    ending = ENDINGS[data[0] % len(ENDINGS)] if data else "npy"
    (folder / f"A.{ending}").write_bytes(data[1:])
    parts = {"npz": (":A", ""), "libsvm": (":features", ":labels")}.get(ending, ("",))
    return sum(read(lambda part=part: read_array(f"A.{ending}{part}", folder, LIMIT)) for part in parts) > 0


if __name__ == "__main__":
    fuzz(check, lambda: SEEDS)
