"""Arrays on disk that are stored in chunks: Zarr and HDF5.

Chunks are read as numbers only; nothing is unpickled or executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError, first_line
from saddlepoint.ground.validation import did_you_mean
from saddlepoint.parts.coupling.streamed import Block, RawStore, Store
from saddlepoint.parts.coupling.streamed.store import Read, State, check_dtype, check_shape
from saddlepoint.problems.files.reading import file_size
from saddlepoint.problems.files.special_files import check_folder, check_sources

DECODED = 3  # memory that decoding compressed rows takes, in units of the memory of the rows


def import_optional(library: str, what: str) -> Any:
    """The library that reads the file ``what``; a ProblemError says how to install it if it is missing."""
    try:
        return import_module(library)
    except ImportError:
        package = library.partition(".")[0]
        raise ProblemError(f"{what} needs {package}: pip install 'saddlepoint[data]'") from None


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
            raise unreadable_block(self.name, block, error) from None
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


def zarr_store(path: Path, part: str | None) -> Store:
    """The store of a Zarr folder, or of its array called ``part``."""
    zarr = import_optional("zarr", f"{path}")
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
            raise unreadable_block(self.name, block, error) from None
        return whole


def _hdf5_file(path: Path) -> Any:
    h5py = import_optional("h5py", f"{path}")
    try:
        return h5py.File(path, "r")
    except Exception as error:
        raise ProblemError(f"{path} is not an HDF5 file that can be read: {first_line(error)}") from None


def hdf5_store(path: Path, part: str | None) -> Store:
    """The store of the dataset called ``part``; one that is neither compressed nor in chunks is read without h5py."""
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


def unreadable_block(name: str, block: Block, error: BaseException) -> ProblemError:
    """The error for rows that cannot be read."""
    return ProblemError(f"rows {block.first} to {block.last - 1} of {name} cannot be read: {first_line(error)}")
