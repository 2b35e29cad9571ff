"""Arrays from files: .npy, .npz (sparse ones too), Matrix Market and LIBSVM.

Nothing is unpickled, and sizes are checked before anything is read.

A reference is a path, followed by ``:name`` for one array of several: ``data.npz:A``, ``train.libsvm:labels``.
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from array import array as packed
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError, first_line
from saddlepoint.ground.validation import did_you_mean, short_repr
from saddlepoint.problems.files.matrix_market import read_matrix_market
from saddlepoint.problems.files.reading import MEMORY_LIMIT, Memory, file_size
from saddlepoint.problems.files.sparse_npz import is_sparse_npz, read_sparse_npz

LIBSVM_PARTS = ("features", "labels")
LIBSVM_ENTRY, LIBSVM_ROW = 32, 24  # bytes of memory for an entry and for a row while a LIBSVM file is read
LINE = 24  # bytes of memory for a character of the line that is being read
HEADER = 1 << 20  # most bytes that are read at once of the header of a .npy file, or of the directory of a .npz file
DIRECTORY = 20  # bytes of memory for a byte of the directory of a .npz file
TEXT = 64  # most bytes of a text in a .npz file


def read_array(reference: str, folder: Path, memory: Memory | int = MEMORY_LIMIT, mapped: bool = False) -> Any:
    """The array (or sparse array) that ``reference`` names, relative to ``folder``; a ProblemError names the file.

    ``memory`` is a limit in bytes, or a ``Memory`` that is shared with other arrays. With ``mapped``, a .npy file of
    float32 or float64 is not read, but mapped into memory.
    """
    memory = memory if isinstance(memory, Memory) else Memory(memory)
    try:
        path, part = split_reference(reference, folder)
        suffix = path.suffix.lower()
        size = file_size(path)
        if suffix == ".npy":
            _refuse_part(path, part)
            with LimitedReader(path, HEADER) as file:
                if mapped:
                    return _mapped_npy(file, size, path)
                return _read_npy(file, size, str(path), memory)
        if suffix == ".npz":
            return _read_npz(path, part, memory)
        if suffix in (".mtx", ".mm"):
            _refuse_part(path, part)
            return read_matrix_market(path, size, memory)
        if suffix in (".libsvm", ".svm", ".svmlight"):
            return _read_libsvm(path, part, memory)
    except OSError as error:
        raise ProblemError(f"{short_repr(reference)} cannot be read: {error.strerror or error}") from None
    raise ProblemError(f"{path} has an unknown ending; expected .npy, .npz, .mtx, .libsvm or .svm")


class LimitedReader(io.BufferedReader):
    """A file of which at most ``most`` bytes are read at once; a damaged file may declare any size."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(io.FileIO(path))
        self.path, self.most = path, most

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as usual; raise a ProblemError if ``size`` is larger than ``most``."""
        if size is not None and size > self.most:
            raise ProblemError(f"{self.path} is damaged: it declares {size} bytes; expected at most {self.most}")
        return super().read(size)


def split_reference(reference: str, folder: Path) -> tuple[Path, str | None]:
    """The path and the part of a reference; text after the last colon is a part unless a file has the whole name."""
    whole = folder / reference
    head, colon, tail = reference.rpartition(":")
    if not colon or whole.exists() or not head:
        return whole, None
    return folder / head, tail


def _refuse_part(path: Path, part: str | None) -> None:
    if part is not None:
        raise ProblemError(f"{path} holds one array; drop ':{part}'")


def _read_npy(file: IO[bytes], size: int, what: str, memory: Memory) -> Array:
    """The array of a .npy stream of ``size`` bytes, whose header is compared with that size first."""
    shape, dtype, _ = npy_header(file, what)
    if dtype.hasobject:
        raise ProblemError(f"{what} holds pickled Python objects, which are never loaded; save plain numbers instead")
    if dtype.kind not in "fiub":
        raise ProblemError(f"{what} has dtype {dtype}; expected real numbers")
    declared = math.prod(shape) * dtype.itemsize
    converted = 0 if dtype in (np.float32, np.float64) else math.prod(shape) * 8
    memory.take(declared + converted, f"{what} of shape {short_repr(shape)}")
    if declared != size - file.tell():
        raise ProblemError(
            f"{what} declares {declared} bytes of data (shape {short_repr(shape)}) but holds {size - file.tell()}"
        )
    file.seek(0)
    try:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
    except ValueError as error:  # the array has too many dimensions
        raise ProblemError(f"{what} is not a valid .npy file: {first_line(error)}") from None


def _mapped_npy(file: IO[bytes], size: int, path: Path) -> Array:
    """A .npy file as a memory map, after its header has been compared with its size."""
    shape, dtype, _ = npy_header(file, str(path))
    if dtype not in (np.float32, np.float64):
        raise ProblemError(f"{path} has dtype {dtype}; expected float32 or float64, so that it can be read in parts")
    declared = math.prod(shape) * dtype.itemsize
    if declared != size - file.tell():
        raise ProblemError(
            f"{path} declares {declared} bytes of data (shape {short_repr(shape)}) but holds {size - file.tell()}"
        )
    return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))


def npy_header(file: IO[bytes], what: str) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    """Shape and dtype of a .npy stream, and whether it is stored by columns; the stream is then at its first number.

    Raises a ProblemError, which names the file as ``what``, if the header is not valid.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy warns of headers from Python 2, whose meaning it guesses
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0), (3, 0)):
                raise ValueError(f"its version is {version}")
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, by_columns, dtype = read(file)
    except (OSError, ProblemError):
        raise
    except Exception as error:  # NumPy's parser raises many kinds of errors on damaged headers
        raise ProblemError(f"{what} is not a valid .npy file: {first_line(error)}") from None
    return shape, dtype, by_columns


def _read_npz(path: Path, part: str | None, memory: Memory) -> Any:
    """One array of a .npz file, or the sparse matrix that it holds as a whole."""
    try:
        with (
            LimitedReader(path, max(HEADER, memory.room // DIRECTORY)) as file,
            zipfile.ZipFile(file) as archive,
        ):
            members = Members(path, archive, memory)
            if part is None and is_sparse_npz(members.names):
                return read_sparse_npz(str(path), members.text("format"), members.array, memory)
            if part is None and len(members.names) == 1:
                part = members.names[0]
            if part is None:
                raise ProblemError(f"{path} holds several arrays; name one as FILE:NAME; it has {members.listed}")
            return members.array(part)
    except (OSError, ProblemError):
        raise
    except Exception as error:  # zipfile and zlib raise many kinds of errors on damaged files
        raise ProblemError(f"{path} is not a valid .npz file, or damaged: {first_line(error)}") from None


class Members:
    """The arrays of a .npz file, by name."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, memory: Memory) -> None:
        self.path, self.archive, self.memory = path, archive, memory
        self.names = [" ".join(name.removesuffix(".npy").split()) for name in archive.namelist()]  # each on one line

    @property
    def listed(self) -> str:
        """The first names, for error messages."""
        return ", ".join(self.names[:20]) or "none"

    def array(self, name: str) -> Array:
        """An array of real numbers."""
        with self._opened(name) as (member, size):
            return _read_npy(member, size, f"{self.path}:{name}", self.memory)

    def text(self, name: str) -> str:
        """A short text, which NumPy stores as an array without dimensions."""
        what = f"{self.path}:{name}"
        with self._opened(name) as (member, size):
            shape, dtype, _ = npy_header(member, what)
            if shape != () or dtype.kind not in "SU" or dtype.itemsize > TEXT or size - member.tell() != dtype.itemsize:
                raise ProblemError(f"{what} is of {dtype} and shape {short_repr(shape)}; expected a short text")
            found = np.frombuffer(member.read(dtype.itemsize), dtype)[0]
        return found.decode("ascii", "replace") if isinstance(found, bytes) else str(found)

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        """A member of the archive as a file, and its size."""
        if name not in self.names:
            near = did_you_mean(name, self.names)
            raise ProblemError(f"{self.path} has no array {name!r}; it has {self.listed}{near}")
        if self.names.count(name) > 1:
            raise ProblemError(f"{self.path} holds {name!r} {self.names.count(name)} times; expected distinct names")
        info = self.archive.infolist()[self.names.index(name)]
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ProblemError(f"{self.path}:{name} is compressed in a way that NumPy does not write; save it again")
        with self.archive.open(info) as member:
            yield member, info.file_size


def _read_libsvm(path: Path, part: str | None, memory: Memory) -> Any:
    """The features or labels of a LIBSVM file: lines of ``label index:value ...`` with indices from 1."""
    if part not in LIBSVM_PARTS:
        raise ProblemError(f"{path} holds features and labels; name one as FILE:features or FILE:labels")
    labels, values, columns, rows = packed("d"), packed("d"), packed("q"), packed("q", [0])
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        number = 0
        while line := file.readline(memory.room // LINE + 1):
            number += 1
            if len(line) * LINE > memory.room:
                raise ProblemError(
                    f"{path}, line {number}: this needs more than what is left of the memory limit; raise it"
                )
            words = line.partition("#")[0].split()
            if not words:
                continue
            memory.take(LIBSVM_ROW + LIBSVM_ENTRY * (len(words) - 1), f"{path} up to line {number}")
            try:
                labels.append(float(words[0]))
                for word in words[1:]:
                    index, value = word.split(":")
                    if index != "qid":
                        columns.append(int(index) - 1)
                        values.append(float(value))
            except (ValueError, OverflowError):
                raise ProblemError(f"{path}, line {number}: expected 'label index:value ...'") from None
            here = columns[rows[-1] :]
            rows.append(len(values))
            if min(here, default=0) < 0:
                raise ProblemError(f"{path}, line {number}: an index is below 1")
            if len(set(here)) < len(here):
                raise ProblemError(f"{path}, line {number}: an index appears twice; expected distinct ones")
    if not labels:
        raise ProblemError(f"{path} holds no samples")
    if part == "labels":
        return np.array(labels)
    width = max(columns, default=0) + 1
    memory.take(8 * width, f"{path} with {width} features")
    return csr_array((np.array(values), np.array(columns), np.array(rows)), shape=(len(labels), width))
