"""The file of a checkpoint: a magic line, a SHA-256 of all that follows, JSON, and the arrays as they lie in memory.

Writing is atomic. The new file is written beside the old one, under a random name, and brought to the disk; then the
old one is renamed to ``.old`` and the new one takes its place. At every instant one of the two is whole. Reading checks
the size of the file before its content, and the sum before anything in it is parsed. The sum finds damage, not forgery.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError, first_line
from saddlepoint.ground.file_writing import replacing
from saddlepoint.solving.checkpoint.values import KINDS

MAGIC = b"saddlepoint checkpoint\n"  # the bytes with which a file begins
SUM, LENGTH = 32, 8  # bytes of the sum, and of the length of the JSON


class Content(NamedTuple):
    """What a file holds: something that JSON knows, and arrays."""

    values: dict[str, Any]
    arrays: list[Array]


def older(path: Path) -> Path:
    """The path of the checkpoint before the last one."""
    return path.with_name(path.name + ".old")


def write(path: Path, content: Content, limit: int) -> None:
    """Replace the file, or leave it alone and raise OSError."""
    pieces = list(_pieces(content))
    size = len(MAGIC) + SUM + sum(map(len, pieces))
    if size > limit:
        raise ProblemError(
            f"a checkpoint would take {size / 2**30:.3g} GiB, above the limit of {limit / 2**30:.3g} GiB for a problem "
            "of this size; let the method remember less, or leave checkpoint out"
        )
    total = hashlib.sha256()
    for piece in pieces:
        total.update(piece)
    old = older(path)
    with replacing(path, old if not old.exists() or is_checkpoint(old) else None) as file:
        for piece in (MAGIC, total.digest(), *pieces):
            file.write(piece)


def is_checkpoint(path: Path) -> bool:
    """Whether a file begins as checkpoints do; another file of such a name is somebody else's."""
    try:
        check_head(path)
    except ProblemError:
        return False
    return True


def check_head(path: Path) -> None:
    """Raise a ProblemError unless a file begins as checkpoints do."""
    try:
        if not path.is_file():
            raise ProblemError(f"{path} is not a file")
        with open(path, "rb") as file:
            head = file.read(len(MAGIC))
    except OSError as error:
        raise _unreadable(path, error) from None
    if head != MAGIC:
        raise ProblemError(f"{path} is not a checkpoint")


def refuse_other_files(path: Path) -> None:
    """Raise a ProblemError if the file that is there is no checkpoint, and none was kept from before."""
    if path.exists() and not is_checkpoint(older(path)):
        try:
            check_head(path)
        except ProblemError as error:
            raise ProblemError(f"{error}; delete it to begin anew, or name another file") from None


def _unreadable(path: Path, error: OSError) -> ProblemError:
    return ProblemError(f"{path} cannot be read: {error.strerror or error}")


def _pieces(content: Content) -> list[bytes]:
    described = [
        {"dtype": array.dtype.str, "shape": list(array.shape), "order": _order(array)} for array in content.arrays
    ]
    text = json.dumps({"values": content.values, "arrays": described}, allow_nan=False).encode()
    return [len(text).to_bytes(LENGTH, "big"), text, *(array.tobytes(_order(array)) for array in content.arrays)]


def _order(array: Array) -> Any:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def read(path: Path, limit: int) -> Content:
    """What the file holds; a ProblemError says what is wrong with it."""
    check_head(path)
    try:
        size = path.stat().st_size
        if size > limit:
            raise ProblemError(
                f"{path} has {size / 2**30:.3g} GiB, above the limit of {limit / 2**30:.3g} GiB for a problem of this "
                "size; it is not a checkpoint of it"
            )
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    body = memoryview(data)[len(MAGIC) + SUM :]
    if hashlib.sha256(body).digest() != data[len(MAGIC) : len(MAGIC) + SUM]:
        raise ProblemError(f"{path} is damaged: it is cut off or its bytes have changed")
    try:
        return _parsed(body)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, AttributeError) as error:
        raise ProblemError(f"{path} is not a checkpoint: {first_line(error)}") from None


def _parsed(body: memoryview) -> Content:
    end = LENGTH + int.from_bytes(body[:LENGTH], "big")
    parts = json.loads(bytes(body[LENGTH:end]))
    arrays = []
    for described in parts["arrays"]:
        dtype, shape = np.dtype(described["dtype"]), [int(n) for n in described["shape"]]
        if dtype.kind not in KINDS or dtype.hasobject or min(shape, default=0) < 0:
            raise ValueError(f"it has an array of {dtype} and shape {shape}")
        count = math.prod(shape)
        part = np.frombuffer(body[end : end + count * dtype.itemsize], dtype, count)
        arrays.append(part.reshape(shape, order=described["order"]).copy(order="K"))
        end += count * dtype.itemsize
    if end != len(body) or not isinstance(parts["values"], dict):
        raise ValueError("its parts do not add up")
    return Content(parts["values"], arrays)
