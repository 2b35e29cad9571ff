"""Results that were saved: ``python tests/fuzz/result_file.py -runs=100000``."""

from __future__ import annotations

import io
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from harness import LIMIT, fuzz, read


@cache
def members() -> dict[str, bytes]:
    """The arrays of a result as it is saved, by name."""
    import saddlepoint as sp

    f = sp.Saddle(sp.Quadratic([1.0, 3.0], [1.0, 1.0]), sp.Quadratic(2.0), [[1.0, 2.0], [0.0, 1.0]])
    path = Path(tempfile.mkdtemp()) / "result.npz"
    sp.solve(f, method="dippa", tol=1e-3).save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(arrays: dict[str, bytes]) -> bytes:
    """A file of these members, with sums that are right."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in arrays.items():
            archive.writestr(name, content)
    return file.getvalue()


def seeds() -> list[bytes]:
    """The first byte says which member follows, or that a whole file does."""
    return [bytes([i]) + content for i, content in enumerate(members().values())] + [b"\xff" + packed(members())]


def check(data: bytes, folder: Path) -> bool:
    """A result file with this content, or one member of this content, is read or refused."""
    from saddlepoint import load_result

    names = list(members())
    which, content = (data[0], data[1:]) if data else (255, data)
    path = folder / "result.npz"
    path.write_bytes(packed(members() | {names[which]: content}) if which < len(names) else content)
    return read(lambda: repr(load_result(path, LIMIT)))


if __name__ == "__main__":
    fuzz(check, seeds)
