"""A matrix in a Parquet file, with a column for each column of A or with the nonzero entries of A."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError, first_line
from saddlepoint.parts.coupling.streamed import Block, Store
from saddlepoint.parts.coupling.streamed.store import Read, State, check_dtype, check_shape
from saddlepoint.problems.files.chunked_stores import DECODED, import_optional, unreadable_block
from saddlepoint.problems.files.reading import file_size

SPARSE_COLUMNS = ("row", "column", "value")
SPARSE_ENTRY = 64  # bytes of memory for an entry while it is put into its row


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
        parquet = import_optional("pyarrow.parquet", self.name)
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
            raise unreadable_block(self.name, block, error) from None
        return rows

    def _entries(self, i: Array, j: Array, values: Array) -> Any:
        for name, place, size in (("row", i, self.shape[0]), ("column", j, self.shape[1])):
            if place.dtype.kind not in "iu":
                raise ProblemError(f"{self.name} has a column {name!r} of {place.dtype}; expected integers")
            if len(place) and (place.min() < 0 or place.max() >= size):
                raise ProblemError(f"{self.name} has an entry outside its shape {self.shape} in its column {name!r}")
        return csr_array((values, (i, j)), shape=self.shape)
