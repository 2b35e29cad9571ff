"""A that stays on disk and is read in blocks: .npy, Zarr, HDF5, Parquet, Matrix Market, and folders of such files.

Files are read as numbers only; nothing is unpickled or executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError, first_line
from saddlepoint.ground.validation import did_you_mean, short_repr
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.coupling.streamed import MEMORY_LIMIT, Block, RawStore, Store, streamed, streamed_map
from saddlepoint.parts.coupling.streamed.store import Read, State, check_dtype, check_shape
from saddlepoint.problems.files.arrays import HEADER, Cautious, npy_header, split_reference
from saddlepoint.problems.files.matrix_market import matrix_market_bytes, matrix_market_header, read_matrix_market
from saddlepoint.problems.files.reading import Memory, as_path, file_size
from saddlepoint.problems.files.special import check_folder, check_sources

HDF5 = (".h5", ".hdf5", ".he5", ".nc")
PARQUET = (".parquet", ".pq")
MATRIX_MARKET = (".mtx", ".mm")
ENDINGS = (".npy", ".zarr", *HDF5, *PARQUET, *MATRIX_MARKET)
SPARSE_COLUMNS = ("row", "column", "value")
DECODED = 3  # memory that decoding compressed rows takes, in units of the memory of the rows
SPARSE_ENTRY = 64  # bytes of memory for an entry while it is put into its row
NUMBERED = re.compile(r"(\D*)(\d+)(.*)")


def stream(source: Any, memory_limit: int | str = MEMORY_LIMIT, *, norm: float | None = None) -> Coupling:
    """A coupling whose A stays on disk and is read block of rows by block of rows, once for both products.

    Args:
        source: a ``.npy``, ``.parquet`` or ``.mtx`` file; a ``.zarr`` folder or ``.h5`` file, followed by ``:name``
            for one array of several; a folder of ``.npy``, ``.parquet`` or ``.mtx`` files, each with some of the rows,
            in the order of the numbers in their names; a ``np.memmap``, a Zarr array or an HDF5 dataset.
        memory_limit: bytes, or a size such as "2GB", that the blocks of A and the vectors of a run may take together.
            Blocks that fit stay in memory.
        norm: an upper bound on |A|, if one is known: estimating it takes some dozen passes.

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
        return streamed(_hdf5(Path(source.file.filename), source.name), memory_limit, norm)
    if not isinstance(source, str | Path):
        raise ProblemError(f"the source is {short_repr(source)}; expected a file, a folder, or an array on disk")
    path, part = split_reference(str(as_path(source)), Path())
    store, by_columns = open_store(path, part)
    return streamed(store, memory_limit, norm, by_columns)


def open_store(path: Path, part: str | None = None) -> tuple[Store, bool]:
    """The store at ``path``, and whether its rows are the columns of A; a ProblemError names the file."""
    suffix = path.suffix.lower()
    if suffix == ".zarr":
        return _zarr(path, part), False
    if suffix in HDF5:
        return _hdf5(path, part), False
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
    """Whether a reference is to a folder, Zarr, HDF5 or Parquet, or to a .npy file of more than ``room`` bytes."""
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
    with Cautious(path, HEADER) as file:
        shape, dtype, by_columns = npy_header(file, str(path))
        offset = file.tell()
    m, n = check_shape(shape, str(path))
    dtype = check_dtype(dtype, str(path))
    if size != offset + m * n * dtype.itemsize:
        raise ProblemError(
            f"{path} declares {m * n * dtype.itemsize} bytes of data (shape {shape}) but holds {size - offset}"
        )
    return RawStore(path, offset, (n, m) if by_columns else (m, n), dtype), by_columns


def _needed(library: str, what: str) -> Any:
    try:
        return import_module(library)
    except ImportError:
        package = library.partition(".")[0]
        raise ProblemError(f"{what} needs {package}: pip install 'saddlepoint[data]'") from None


# -- Zarr and HDF5 -----------------------------------------------------------------------------------------------------


class ArrayStore(Store):
    """An array of a library that reads rows in whole chunks."""

    expansion = DECODED
    chunk = 1  # number of rows that are stored together

    def blocks(self, size: int) -> list[Block]:
        """Blocks of whole chunks, each of which takes about ``size`` bytes to read."""
        m, row = self.shape[0], self.row_bytes
        rows = max(1, size // (DECODED * row * self.chunk)) * self.chunk
        ends = [(i, min(i + rows, m)) for i in range(0, m, rows)]
        return [Block(i, j, (j - i) * row, DECODED * (j - i) * row, (j - i) * row) for i, j in ends]


class ZarrStore(ArrayStore):
    """A Zarr array. A chunk that is missing consists of the fill value, as in Zarr itself."""

    def __init__(self, array: Any) -> None:
        if not hasattr(array, "chunks"):
            listed = ", ".join(sorted(array.array_keys())[:20]) or "none"
            raise ProblemError(f"{_zarr_name(array)} is a Zarr group; name one of its arrays: {listed}")
        self.array, self.name = array, _zarr_name(array)
        self.folder = _zarr_folder(array)
        self.shape, self.dtype = check_shape(array.shape, self.name), check_dtype(array.dtype, self.name)
        self.chunk = int(array.chunks[0])
        if "pickle" in str(array.metadata.to_dict()).lower():  # such a codec would execute code from the chunks
            raise ProblemError(f"{self.name} is stored by pickle, which is never loaded; save plain numbers instead")

    @contextmanager
    def opened(self) -> Iterator[Read]:
        """A reader that keeps no file open between two blocks."""
        if self.folder is not None:
            try:
                check_folder(self.folder)
            except OSError as error:
                raise ProblemError(f"{self.name} cannot be read: {error.strerror or error}") from None
        yield self._read

    def _read(self, block: Block, into: Array | None) -> Array:
        try:
            rows = np.ascontiguousarray(self.array[block.rows])
        except Exception as error:  # damaged chunks raise many kinds of errors
            raise _unreadable(self.name, block, error) from None
        if rows.shape != (block.last - block.first, self.shape[1]) or rows.dtype != self.dtype:
            raise ProblemError(f"{self.name} has changed while it was in use; leave it alone until the run is over")
        return rows


def _zarr_name(array: Any) -> str:
    return str(getattr(array, "store_path", "the Zarr array")).removeprefix("file://")


def _zarr_folder(array: Any) -> Path | None:
    """The folder of an array; None if it is not in a folder of this machine."""
    root = getattr(getattr(array, "store", None), "root", None)
    if not isinstance(root, Path):
        return None
    folder = root / str(array.path)
    return folder if folder.is_dir() else None


def _zarr(path: Path, part: str | None) -> Store:
    zarr = _needed("zarr", f"{path}")
    if not path.is_dir():
        raise ProblemError(f"{path} is not a Zarr folder" if path.exists() else f"folder {path} does not exist")
    try:
        check_folder(path)
        return ZarrStore(zarr.open(str(path), path=part or "", mode="r"))
    except ProblemError:
        raise
    except Exception as error:
        raise ProblemError(f"{path}{f':{part}' if part else ''} is not a Zarr array: {first_line(error)}") from None


class HDF5Store(ArrayStore):
    """An HDF5 dataset in chunks, or in several files."""

    reuses = True

    def __init__(self, path: Path, dataset: Any) -> None:
        self.path, self.dataset, self.name = path, dataset.name, f"{path}:{dataset.name}"
        self.shape, self.dtype = check_shape(dataset.shape, self.name), check_dtype(dataset.dtype, self.name)
        self.chunk = int(dataset.chunks[0]) if dataset.chunks else 1
        self.state = State.of(path)

    @contextmanager
    def opened(self) -> Iterator[Read]:
        """A reader with an open file of its own."""
        self.state.check(self.path, self.name)
        with _hdf5_file(self.path) as file:
            dataset = file[self.dataset]
            check_sources(self.path, dataset)
            yield partial(self._read, dataset)
        self.state.check(self.path, self.name)

    def _read(self, dataset: Any, block: Block, into: Array | None) -> Array:
        rows, n = block.last - block.first, self.shape[1]
        flat = np.empty(rows * n, self.dtype) if into is None else into[: rows * n]
        whole = flat.reshape(rows, n)
        try:
            dataset.read_direct(whole, np.s_[block.first : block.last])
        except Exception as error:
            raise _unreadable(self.name, block, error) from None
        return whole


def _hdf5_file(path: Path) -> Any:
    h5py = _needed("h5py", f"{path}")
    try:
        return h5py.File(path, "r")
    except Exception as error:
        raise ProblemError(f"{path} is not an HDF5 file that can be read: {first_line(error)}") from None


def _hdf5(path: Path, part: str | None) -> Store:
    """The store of a dataset; one that is neither compressed nor in chunks is read without the library."""
    file_size(path)
    with _hdf5_file(path) as file:
        names: list[str] = []
        file.visititems(lambda name, item: names.append(name) if hasattr(item, "chunks") else None)
        if part is None and len(names) == 1:
            part = names[0]
        if part is None or part.strip("/") not in names:
            asked = f"has no dataset {part!r}" if part else "holds several datasets; name one as FILE:NAME"
            raise ProblemError(
                f"{path} {asked}; it has {', '.join(names[:20]) or 'none'}{did_you_mean(part or '', names)}"
            )
        dataset = file[part]
        check_sources(path, dataset)
        store = HDF5Store(path, dataset)
        offset = dataset.id.get_offset()
        if dataset.chunks is None and offset is not None and not dataset.external and not dataset.is_virtual:
            return RawStore(path, offset, store.shape, store.dtype, store.name)
        return store


# -- Parquet and Matrix Market -----------------------------------------------------------------------------------------


class ParquetStore(Store):
    """A Parquet file, either with a column for each column of A, or with the nonzero entries of A in three columns.

    The first kind is read in groups of rows. The columns of the second kind are called row, column and value, indices
    count from 0, and the metadata of the schema hold the shape, as "shape": "300 20".
    """

    expansion = DECODED

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        file_size(path)
        self.state = State.of(path)
        with self._file() as file:
            schema, meta = file.schema_arrow, file.metadata
            self.sparse = tuple(schema.names) == SPARSE_COLUMNS
            kinds = {str(kind) for kind in (schema.types[2:] if self.sparse else schema.types)}
            stated = (schema.metadata or {}).get(b"shape", b"").decode(errors="replace")
            groups = [meta.row_group(k) for k in range(meta.num_row_groups)]
            self.groups = [(group.num_rows, group.total_byte_size) for group in groups]
        if len(kinds) > 1:
            raise ProblemError(f"{path} has columns of different types, {', '.join(sorted(kinds))}; expected one type")
        found = next(iter(kinds), "none").replace("double", "float64")
        self.dtype = check_dtype("float32" if found == "float" else found, self.name)
        self.entries = sum(rows for rows, _ in self.groups)
        if self.sparse:
            match = re.fullmatch(r"\s*(\d{1,18})\s+(\d{1,18})\s*", stated)
            if match is None:
                raise ProblemError(
                    f'{path} holds entries; expected their matrix\'s shape in the metadata, as "shape": "300 20"'
                )
            shape = int(match[1]), int(match[2])
        else:
            shape = self.entries, len(schema.names)
        self.shape = check_shape(shape, self.name)

    def _file(self) -> Any:
        parquet = _needed("pyarrow.parquet", self.name)
        try:
            return parquet.ParquetFile(self.path)
        except Exception as error:
            raise ProblemError(f"{self.path} is not a Parquet file that can be read: {first_line(error)}") from None

    def blocks(self, size: int) -> list[Block]:
        """Blocks of groups of rows that take about ``size`` bytes to read; one block for a file with entries."""
        m, row = self.shape[0], self.row_bytes
        if self.sparse:
            held = (self.dtype.itemsize + 4) * self.entries + 4 * m
            return [Block(0, m, self.state.size, SPARSE_ENTRY * self.entries + 16 * m, held, None)]
        blocks: list[Block] = []
        first = taken = 0
        group: list[int] = []
        for k, (rows, stored) in enumerate(self.groups):
            group, taken = [*group, k], taken + stored
            last = sum(self.groups[i][0] for i in group) + first
            full = (last - first + (self.groups[k + 1][0] if k + 1 < len(self.groups) else m)) * row * DECODED > size
            if rows and (full or k + 1 == len(self.groups)):
                held = (last - first) * row
                blocks.append(Block(first, last, taken, DECODED * held, held, group))
                first, taken, group = last, 0, []
        return blocks

    @contextmanager
    def opened(self) -> Iterator[Read]:
        """A reader with an open file of its own."""
        self.state.check(self.path, self.name)
        with self._file() as file:
            yield partial(self._read, file)
        self.state.check(self.path, self.name)

    def _read(self, file: Any, block: Block, into: Array | None) -> Any:
        try:
            table = file.read() if block.source is None else file.read_row_groups(block.source)
            if any(column.null_count for column in table.columns):
                raise ProblemError(f"{self.name} has entries that are missing; expected a number in all of them")
            if self.sparse:
                rows = self._entries(*(column.to_numpy() for column in table.columns))
            else:
                (batch,) = table.combine_chunks().to_batches()
                rows = np.array(batch.to_tensor(row_major=True).to_numpy())  # a copy: pyarrow can release its own
                del batch
            del table
            import_module("pyarrow").default_memory_pool().release_unused()
        except ProblemError:
            raise
        except Exception as error:
            raise _unreadable(self.name, block, error) from None
        return rows

    def _entries(self, i: Array, j: Array, values: Array) -> Any:
        for name, place, size in (("row", i, self.shape[0]), ("column", j, self.shape[1])):
            if place.dtype.kind not in "iu":
                raise ProblemError(f"{self.name} has a column {name!r} of {place.dtype}; expected integers")
            if len(place) and (place.min() < 0 or place.max() >= size):
                raise ProblemError(f"{self.name} has an entry outside its shape {self.shape} in its column {name!r}")
        return csr_array((values, (i, j)), shape=self.shape)


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


# -- folders -----------------------------------------------------------------------------------------------------------


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


def _unreadable(name: str, block: Block, error: BaseException) -> ProblemError:
    return ProblemError(f"rows {block.first} to {block.last - 1} of {name} cannot be read: {first_line(error)}")
