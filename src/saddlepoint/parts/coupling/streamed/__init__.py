"""A that is larger than memory: it is read from disk block by block, in one pass for both products."""

from saddlepoint.parts.coupling.streamed.budget import MEMORY_LIMIT, as_bytes, format_bytes
from saddlepoint.parts.coupling.streamed.coupling import StreamedCoupling, streamed, streamed_map
from saddlepoint.parts.coupling.streamed.reading import Reading
from saddlepoint.parts.coupling.streamed.rows import StoredRows
from saddlepoint.parts.coupling.streamed.store import Block, RawStore, Store

__all__ = [
    "MEMORY_LIMIT",
    "Block",
    "RawStore",
    "Reading",
    "Store",
    "StoredRows",
    "StreamedCoupling",
    "as_bytes",
    "format_bytes",
    "streamed",
    "streamed_map",
]
