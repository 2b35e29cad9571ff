"""Arrays from files: .npy, .npz, Matrix Market and LIBSVM; nothing is unpickled, and sizes are checked before reading.

A reference is a path, with ``:name`` behind it for one array of several: ``data.npz:A``, ``train.libsvm:labels``.
"""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.sparse import csr_array, issparse

from saddlepoint.errors import ProblemError
from saddlepoint.vectors import Array

MEMORY_LIMIT = 4 * 2**30  # bytes that one array may take unless the caller allows more
LIBSVM_PARTS = ("features", "labels")


def read_array(reference: str, folder: Path, memory_limit: int = MEMORY_LIMIT) -> Any:
    """The array (or sparse array) that ``reference`` names, relative to ``folder``; a ProblemError names the file."""
    path, part = _split(reference, folder)
    if not path.exists():
        raise ProblemError(f"file {path} does not exist")
    if not path.is_file():
        raise ProblemError(f"{path} is not a file")
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            _refuse_part(path, part)
            with path.open("rb") as file:
                return _read_npy(file, path.stat().st_size, str(path), memory_limit)
        if suffix == ".npz":
            return _read_npz(path, part, memory_limit)
        if suffix in (".mtx", ".mm"):
            _refuse_part(path, part)
            return _read_matrix_market(path, memory_limit)
        if suffix in (".libsvm", ".svm", ".svmlight"):
            return _read_libsvm(path, part, memory_limit)
    except OSError as error:
        raise ProblemError(f"{path} cannot be read: {error.strerror or error}") from None
    raise ProblemError(f"{path} has an unknown ending; expected .npy, .npz, .mtx, .libsvm or .svm")


def _split(reference: str, folder: Path) -> tuple[Path, str | None]:
    """Path and part: the text behind the last colon is a part only if the whole is not itself a file."""
    whole = folder / reference
    head, colon, tail = reference.rpartition(":")
    if not colon or whole.exists() or not head:
        return whole, None
    return folder / head, tail


def _refuse_part(path: Path, part: str | None) -> None:
    if part is not None:
        raise ProblemError(f"{path} holds one array; drop ':{part}'")


def _check_bytes(count: int, what: str, limit: int) -> None:
    if count > limit:
        raise ProblemError(
            f"{what} needs {count / 2**30:.3g} GiB, above the memory limit of {limit / 2**30:.3g} GiB; "
            "raise the limit if that is intended"
        )


def _read_npy(file: IO[bytes], size: int, what: str, limit: int) -> Array:
    """One .npy stream of ``size`` bytes, its header checked against them first."""
    try:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(file)
    except ValueError as error:
        raise ProblemError(f"{what} is not a valid .npy file: {str(error).splitlines()[0]}") from None
    if dtype.hasobject:
        raise ProblemError(f"{what} holds pickled Python objects, which are never loaded; save plain numbers instead")
    if dtype.kind not in "fiub":
        raise ProblemError(f"{what} has dtype {dtype}; expected real numbers")
    declared = math.prod(shape) * dtype.itemsize
    _check_bytes(declared, f"{what} of shape {shape}", limit)
    if declared != size - file.tell():
        raise ProblemError(f"{what} declares {declared} bytes of data (shape {shape}) but holds {size - file.tell()}")
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _read_npz(path: Path, part: str | None, limit: int) -> Array:
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise ProblemError(f"{path} is not a valid .npz file") from None
    with archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        if part is None and len(names) == 1:
            part = names[0]
        if part is None or part not in names:
            asked = f"has no array {part!r}" if part else "holds several arrays; name one as FILE:NAME"
            raise ProblemError(f"{path} {asked}; it has {', '.join(names) or 'none'}")
        info = archive.getinfo(archive.namelist()[names.index(part)])
        _check_bytes(info.file_size, f"{path}:{part}", limit)
        try:
            with archive.open(info) as file:
                return _read_npy(file, info.file_size, f"{path}:{part}", limit)
        except (zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError) as error:
            raise ProblemError(f"{path}:{part} is damaged: {error}") from None


def _read_matrix_market(path: Path, limit: int) -> Any:
    from scipy.io import mminfo, mmread

    try:
        rows, columns, entries, layout, field, _ = mminfo(str(path))
        if field == "complex":
            raise ProblemError(f"{path} holds complex numbers; expected real ones")
        dense = layout == "array"
        _check_bytes(rows * columns * 8 if dense else 24 * entries + 8 * (rows + columns), str(path), limit)
        if (2 if dense else 4) * entries > path.stat().st_size:
            raise ProblemError(f"{path} declares {entries} entries, more than its {path.stat().st_size} bytes can hold")
        matrix = mmread(str(path), spmatrix=False)
    except (ValueError, OverflowError, TypeError, IndexError, StopIteration) as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(f"{path} is not a valid Matrix Market file: {str(error).splitlines()[0]}") from None
    return csr_array(matrix) if issparse(matrix) else np.asarray(matrix)


def _read_libsvm(path: Path, part: str | None, limit: int) -> Any:
    """Lines of ``label index:value ...`` with indices from 1."""
    if part not in LIBSVM_PARTS:
        raise ProblemError(f"{path} holds features and labels; name one as FILE:features or FILE:labels")
    labels: list[float] = []
    values: list[float] = []
    columns: list[int] = []
    rows = [0]
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            try:
                labels.append(float(words[0]))
                pairs = [word.split(":") for word in words[1:] if not word.startswith("qid:")]
                columns += [int(index) - 1 for index, _ in pairs]
                values += [float(value) for _, value in pairs]
            except ValueError:
                raise ProblemError(f"{path}, line {number}: expected 'label index:value ...'") from None
            rows.append(len(values))
            if columns and min(columns[rows[-2] :], default=0) < 0:
                raise ProblemError(f"{path}, line {number}: an index is below 1")
            _check_bytes(24 * len(values), str(path), limit)
    if not labels:
        raise ProblemError(f"{path} holds no samples")
    if part == "labels":
        return np.array(labels)
    width = max(columns, default=0) + 1
    _check_bytes(8 * width, f"{path} with {width} features", limit)
    return csr_array((np.array(values), np.array(columns, dtype=np.int64), np.array(rows)), shape=(len(labels), width))
