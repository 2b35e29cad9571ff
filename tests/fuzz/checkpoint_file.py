"""Checkpoints, as they are and with a sum that is right whatever they hold.

``python tests/fuzz/checkpoint_file.py -runs=100000``
"""

from __future__ import annotations

import hashlib
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from harness import fuzz, read


def problem() -> Any:
    """The problem that the run is of."""
    import saddlepoint as sp

    return sp.Saddle(sp.Quadratic([1.0, 3.0], [1.0, 1.0]), sp.Quadratic(2.0), [[1.0, 2.0], [0.0, 1.0]])


@cache
def seeds() -> list[bytes]:
    """A checkpoint."""
    import saddlepoint as sp

    path = Path(tempfile.mkdtemp()) / "run.ckpt"
    sp.solve(problem(), method="dippa", tol=1e-12, max_calls=300, checkpoint=path, checkpoint_every=0.0)
    return [path.read_bytes()]


def check(data: bytes, folder: Path) -> bool:
    """A run goes on from a checkpoint with this content, or refuses it; and it is parsed, if its sum is made right."""
    import saddlepoint as sp
    from saddlepoint.solving.checkpoint.file import MAGIC, SUM, older

    path = folder / "run.ckpt"
    older(path).unlink(missing_ok=True)
    path.write_bytes(data)
    resumed = read(lambda: sp.solve(problem(), method="dippa", tol=1e-12, max_calls=300, checkpoint=path))
    body = data[len(MAGIC) + SUM :]
    older(path).unlink(missing_ok=True)
    path.write_bytes(MAGIC + hashlib.sha256(body).digest() + body)
    read(lambda: sp.solve(problem(), method="dippa", tol=1e-12, max_calls=0, checkpoint=path))
    return resumed


if __name__ == "__main__":
    fuzz(check, seeds)
