"""A matrix A that stays on disk and is read in blocks: .npy, Zarr, HDF5, Parquet, Matrix Market, and folders of them.

Files are read as numbers only; nothing is unpickled or executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.coupling.streamed import MEMORY_LIMIT, Block, RawStore, Store, streamed, streamed_map
from saddlepoint.parts.coupling.streamed.store import Read, State, check_dtype, check_shape
from saddlepoint.problems.files.arrays import HEADER, LimitedReader, npy_header, split_reference
from saddlepoint.problems.files.chunked_stores import ZarrStore, hdf5_store, zarr_store
from saddlepoint.problems.files.matrix_market import matrix_market_bytes, matrix_market_header, read_matrix_market
from saddlepoint.problems.files.parquet_store import ParquetStore
from saddlepoint.problems.files.reading import Memory, as_path, file_size

HDF5 = (".h5", ".hdf5", ".he5", ".nc")
PARQUET = (".parquet", ".pq")
MATRIX_MARKET = (".mtx", ".mm")
ENDINGS = (".npy", ".zarr", *HDF5, *PARQUET, *MATRIX_MARKET)
NUMBERED = re.compile(r"(\D*)(\d+)(.*)")  # the name of a file with a number, such as part-007.npy


def stream(source: Any, memory_limit: int | str = MEMORY_LIMIT, *, norm: float | None = None) -> Coupling:
    """A coupling whose A stays on disk and is read block of rows by block of rows, once for both products.

    Args:
        source: a ``.npy``, ``.parquet`` or ``.mtx`` file; a ``.zarr`` folder or ``.h5`` file, followed by ``:name``
            for one array of several; a folder of ``.npy``, ``.parquet`` or ``.mtx`` files, each with some of the rows,
            in the order of the numbers in their names; a ``np.memmap``, a Zarr array or an HDF5 dataset.
        memory_limit: bytes, or a size such as "2GB", that the blocks of A and the vectors of a run may take together.
            Blocks that fit stay in memory.
        norm: an upper bound on |A|, if one is known: estimating it takes about a dozen passes.

    Example:
        >>> import numpy as np, saddlepoint as sp, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> np.save(f"{folder.name}/A.npy", np.ones((300, 20)))
        >>> A = sp.stream(f"{folder.name}/A.npy", memory_limit="64MB")
        >>> A, A.mul(np.ones(20))[:2]
        (StreamedCoupling(300 x 20, float64), array([20., 20.]))
        >>> folder.cleanup()
    """
    if isinstance(source, Coupling):
        raise ProblemError("the source is a coupling already; expected a file, a folder, or an array on disk")
    if isinstance(source, np.memmap):
        found = streamed_map(source, "the mapped array", memory_limit, norm)
        if found is None:
            raise ProblemError(
                "the mapped array is not a whole matrix of float32 or float64 in its file; expected one in rows or in "
                "columns, not mapped with mode 'c'"
            )
        return found
    library = type(source).__module__.partition(".")[0]
    if library == "zarr":
        return streamed(ZarrStore(source), memory_limit, norm)
    if library == "h5py":
        source.file.flush()
        return streamed(hdf5_store(Path(source.file.filename), source.name), memory_limit, norm)
    if not isinstance(source, str | Path):
        raise ProblemError(f"the source is {short_repr(source)}; expected a file, a folder, or an array on disk")
    path, part = split_reference(str(as_path(source)), Path())
    store, by_columns = open_store(path, part)
    return streamed(store, memory_limit, norm, by_columns)


def open_store(path: Path, part: str | None = None) -> tuple[Store, bool]:
    """The store at ``path``, and whether its rows are the columns of A; a ProblemError names the file."""
    suffix = path.suffix.lower()
    if suffix == ".zarr":
        return zarr_store(path, part), False
    if suffix in HDF5:
        return hdf5_store(path, part), False
    if part is not None:
        raise ProblemError(f"{path} holds one array; drop ':{part}'")
    if path.is_dir():
        return FolderStore(path), False
    if suffix == ".npy":
        return npy_store(path)
    if suffix in PARQUET:
        return ParquetStore(path), False
    if suffix in MATRIX_MARKET:
        return MatrixMarketStore(path), False
    if not path.exists():
        raise ProblemError(f"file {path} does not exist")
    raise ProblemError(f"{path} cannot be streamed; expected {', '.join(ENDINGS)}, or a folder of such files")


def stored_reference(reference: str, folder: Path, room: float) -> bool:
    """Whether a reference names a folder, a Zarr, HDF5 or Parquet file, or a .npy file of more than ``room`` bytes."""
    path, _ = split_reference(reference, folder)
    suffix = path.suffix.lower()
    try:
        large = suffix == ".npy" and path.stat().st_size > room
        return large or suffix in (".zarr", *HDF5, *PARQUET) or path.is_dir()
    except (OSError, ValueError):  # reading it will raise an error that says why
        return False


def npy_store(path: Path) -> tuple[RawStore, bool]:
    """The store of a .npy file, which is stored by rows or by columns."""
    size = file_size(path)
    with LimitedReader(path, HEADER) as file:
        shape, dtype, by_columns = npy_header(file, str(path))
        offset = file.tell()
    m, n = check_shape(shape, str(path))
    dtype = check_dtype(dtype, str(path))
    if size != offset + m * n * dtype.itemsize:
        raise ProblemError(
            f"{path} declares {m * n * dtype.itemsize} bytes of data (shape {shape}) but holds {size - offset}"
        )
    return RawStore(path, offset, (n, m) if by_columns else (m, n), dtype), by_columns


class MatrixMarketStore(Store):
    """A Matrix Market file. It is a text, so it is read as a whole, which is slow."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        file_size(path)
        self.state = State.of(path)
        self.header = matrix_market_header(path)
        self.shape = check_shape((self.header.rows, self.header.columns), self.name)
        self.dtype = np.dtype(np.float64)

    def blocks(self, size: int) -> list[Block]:
        """One block for the whole file."""
        m, n = self.shape
        held = 8 * m * n if self.header.layout == "array" else 12 * self.header.entries + 4 * m
        read = matrix_market_bytes(self.header)
        return [Block(0, m, self.state.size, 2 * read if self.header.layout == "array" else read, held)]

    @contextmanager
    def opened(self) -> Iterator[Read]:
        """A reader that keeps no file open between two blocks."""
        self.state.check(self.path, self.name)
        yield self._read
        self.state.check(self.path, self.name)

    def _read(self, block: Block, into: Array | None) -> Any:
        try:
            rows = read_matrix_market(self.path, self.state.size, Memory(max(1, block.memory)))
        except OSError as error:
            raise ProblemError(f"{self.name} cannot be read: {error.strerror or error}") from None
        return np.ascontiguousarray(rows) if isinstance(rows, np.ndarray) else rows


class FolderStore(Store):
    """Files of one kind in a folder, each with some of the rows, in the order of the numbers in their names."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.parts: list[Store] = []
        files = _files(path)
        for file in files:
            store, by_columns = open_store(file)
            if by_columns:
                raise ProblemError(f"{file} is stored by columns; expected rows: np.save(np.ascontiguousarray(block))")
            first = self.parts[0] if self.parts else store
            if store.shape[1] != first.shape[1]:
                raise ProblemError(
                    f"{file} has {store.shape[1]} columns, and {files[0]} has {first.shape[1]}; all must agree"
                )
            if store.dtype != first.dtype:
                raise ProblemError(
                    f"{file} is of {store.dtype}, and {files[0]} of {first.dtype}; all must be of one type"
                )
            self.parts.append(store)
        self.shape = sum(part.shape[0] for part in self.parts), self.parts[0].shape[1]
        self.dtype = self.parts[0].dtype
        self.reuses, self.expansion = self.parts[0].reuses, self.parts[0].expansion

    def blocks(self, size: int) -> list[Block]:
        """The blocks of the files, one file after the other."""
        blocks: list[Block] = []
        for k, part in enumerate(self.parts):
            above = blocks[-1].last if blocks else 0
            blocks += [b._replace(first=above + b.first, last=above + b.last, source=(k, b)) for b in part.blocks(size)]
        return blocks

    @contextmanager
    def opened(self) -> Iterator[Read]:
        """A reader that has one file open at a time."""
        with ExitStack() as stack:
            current: tuple[int, Any] = (-1, None)

            def read(block: Block, into: Array | None) -> Any:
                nonlocal current
                k, within = block.source
                if current[0] != k:
                    stack.pop_all().close()
                    current = k, stack.enter_context(self.parts[k].opened())
                return current[1](within, into)

            yield read


def _files(folder: Path) -> list[Path]:
    """The files in a folder, in order. Names that begin with a dot or an underscore are ignored."""
    try:
        found = [path for path in folder.iterdir() if not path.name.startswith((".", "_"))]
    except OSError as error:
        raise ProblemError(f"{folder} cannot be read: {error.strerror or error}") from None
    kinds = {path.suffix.lower() for path in found}
    if not found:
        raise ProblemError(f"{folder} is empty; expected files with some rows of A each: .npy, .parquet or .mtx")
    if len(kinds) > 1 or not kinds <= {".npy", *PARQUET, *MATRIX_MARKET}:
        endings = ", ".join(sorted(kind or "none" for kind in kinds)[:5])
        raise ProblemError(f"{folder} has files that end in {endings}; expected blocks of .npy, .parquet or .mtx alone")
    names = {path: NUMBERED.fullmatch(path.name) for path in found}
    numbered = [match for match in names.values() if match is not None]
    if len(numbered) == len(found) and len({(match[1], match[3]) for match in numbered}) == 1:
        _check_gaps(folder, {int(match[2]): match[0] for match in numbered}, numbered[0])
    return sorted(found, key=lambda path: [(int(d or 0), t) for t, d in re.findall(r"(\D*)(\d*)", path.name)])


def _check_gaps(folder: Path, there: dict[int, str], like: re.Match[str]) -> None:
    """Raise a ProblemError if a number from 0 or 1 up to the last one is missing."""
    first, last = min(there), max(there)
    missing = next((k for k in range(min(first, 1), last) if k not in there), None)
    if missing is not None:
        name = f"{like[1]}{missing:0{len(like[2])}}{like[3]}"
        raise ProblemError(f"{folder} has {there[last]} but not {name}: a block is missing; expected all of them")
