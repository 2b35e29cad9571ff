"""Results read back from the files that ``Result.save`` writes; nothing in them is executed."""

from __future__ import annotations

import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError, first_line
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.simple.base import Support
from saddlepoint.problems.files.arrays import npy_header
from saddlepoint.problems.files.reading import MEMORY_LIMIT
from saddlepoint.solving.result import History, Record, Result, Status
from saddlepoint.solving.target import NAMES, Target
from saddlepoint.theory.certificate import Certificate

KINDS = {"x": "f", "y": "f", "history": "f", "summary": "U"}  # the arrays of a file, and of what they are
SUPPORTS = ("support_x", "support_y")  # arrays that a file may have
TABLES = ("calls", "parameters", "setup_calls", "provenance")  # entries of the summary that are dictionaries


def load_result(path: str | Path, memory_limit: int = MEMORY_LIMIT) -> Result:
    """The result that ``Result.save`` wrote to ``path``; its arrays are NumPy's.

    A file proves nothing: what it says about a distance is the word of whoever wrote it. ``f.certificate(x, y)`` proves
    it again from the problem.

    Args:
        path: the file.
        memory_limit: bytes that the file may have.

    Example:
        >>> import numpy as np, saddlepoint as sp, tempfile, os
        >>> f = sp.Saddle(sp.Quadratic(1.0, [1.0]), sp.Quadratic(1.0), np.eye(1))
        >>> file = os.path.join(tempfile.mkdtemp(), "answer.npz")
        >>> sp.solve(f).save(file)
        >>> sp.load_result(file).solved
        True
    """
    try:
        file = Path(path)
        if not file.is_file():
            raise ProblemError(f"{file} is not a file")
        if file.stat().st_size > memory_limit:
            raise ProblemError(f"{file} has {file.stat().st_size} bytes, above the memory limit of {memory_limit}")
        data = file.read_bytes()
    except TypeError:
        raise ProblemError(f"the path of a result is {short_repr(path)}; expected a file name") from None
    except (OSError, ValueError) as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(f"{short_repr(str(path))} cannot be read: {error}") from None
    try:
        arrays = _arrays(data)
        return _result(arrays, json.loads(str(arrays["summary"])))
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        EOFError,
        RuntimeError,
        zipfile.BadZipFile,
    ) as error:
        raise ProblemError(
            f"{file} is not a result that was saved: {first_line(error)}; expected a file of result.save or solve --out"
        ) from None


def _arrays(data: bytes) -> dict[str, Array]:
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        kept = {f"{name}.npy" for name in SUPPORTS} & set(archive.namelist())
        for name, kind in (KINDS | {name: "i" for name in SUPPORTS if f"{name}.npy" in kept}).items():
            info = archive.getinfo(f"{name}.npy")
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > len(data):
                raise ValueError(f"{name} is packed in another way")
            found[name] = _array(archive.read(info), name, kind)
    return found


def _array(data: bytes, name: str, kind: str) -> Array:
    """One .npy file, whose header is checked against its size before anything is made of it."""
    file = io.BytesIO(data)
    shape, dtype, _ = npy_header(file, name)
    if dtype.kind != kind or dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"{name} has dtype {dtype} and shape {shape} in {len(data)} bytes")
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _certificate(summary: dict[str, Any]) -> Certificate:
    numbers: dict[str, Any] = {name: _bound(summary[name], name) for name in Certificate._fields if name != "assumes"}
    if not isinstance(summary["assumes"], list):
        raise ValueError(f"assumes is {short_repr(summary['assumes'])}")
    return Certificate(**numbers, assumes=tuple(_line(sentence, "assumes") for sentence in summary["assumes"]))


def _bound(value: Any, name: str) -> float:
    """A number from 0 to infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not float(value) >= 0.0:
        raise ValueError(f"{name} is {short_repr(value)}")
    return float(value)


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} is {short_repr(value)}")
    return value


def _line(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {short_repr(value)}")
    return value


def _result(arrays: dict[str, Array], summary: dict[str, Any]) -> Result:
    x, y, history = (arrays[name] for name in ("x", "y", "history"))
    if x.ndim != 1 or y.ndim != 1 or history.shape[1:] != (len(Record._fields),):
        raise ValueError(f"x has shape {x.shape}, y {y.shape} and the history {history.shape}")
    for name in TABLES:
        if not isinstance(summary[name], dict):
            raise ValueError(f"{name} is {short_repr(summary[name])}")
    for name in ("calls", "setup_calls"):
        for oracle, count in summary[name].items():
            _count(count, f"{name} of {oracle}")
    result = Result(
        x=x,
        y=y,
        status=Status(summary["status"]),
        message=_line(summary["message"], "message"),
        certificate=_certificate(summary["certificate"]),
        seconds=_bound(summary["seconds"], "seconds"),
        method_seconds=_bound(summary["method_seconds"], "method_seconds"),
        method=_line(summary["method"], "method"),
        history=History.of(history),
        passes=_count(summary["passes"], "passes"),
        iterations=_count(summary["iterations"], "iterations"),
        monitor_calls=_count(summary["monitor_calls"], "monitor_calls"),
        support_x=_support(arrays, "x"),
        support_y=_support(arrays, "y"),
        **{name: summary[name] for name in TABLES},
    )
    _check_proof(result)
    return result


def _support(arrays: dict[str, Array], side: str) -> Array | None:
    """What is proven about each coordinate of x or y; None if the file does not have it."""
    name, point = f"support_{side}", arrays[side]
    found = arrays.get(name)
    if found is None:
        return None
    if found.dtype != np.int8 or found.shape != point.shape or not np.isin(found, list(Support)).all():
        raise ValueError(f"{name} is not one value of Support for each of the {point.size} coordinates")
    return found


def _reached(result: Result) -> float:
    """The certified number that the run was asked for; infinite if the file names none that there is."""
    target = result.provenance.get("target")
    if target not in NAMES:
        return math.inf
    return Target(str(target), 0.0).reached(result.certificate, result.x, result.y)


def _check_proof(result: Result) -> None:
    """Raise ValueError if the parts of a result contradict each other; whether they are true, a file cannot prove."""
    proof, tol, least = result.certificate, result.provenance.get("tol"), 1.0 - 1e-12
    finite = bool(np.isfinite(result.x).all() and np.isfinite(result.y).all())
    if result.solved and not (finite and isinstance(tol, float) and _reached(result) <= tol):
        raise ValueError(f"it is solved, with a certified distance of {proof.distance:.3g} and tol {short_repr(tol)}")
    if least * max(proof.distance_x, proof.distance_y) > proof.distance or (proof.distance < math.inf and not finite):
        raise ValueError(f"its certified distance is {proof.distance:.3g}, which its other numbers contradict")
