"""A in shards of rows, on one machine or many: one seam, and an engine on each side of it."""

from saddlepoint.parts.sharded.coupling import ShardedCoupling
from saddlepoint.parts.sharded.engine import Engine, ShardsLost
from saddlepoint.parts.sharded.local import LocalEngine
from saddlepoint.parts.sharded.vectors import Sharded

__all__ = ["Engine", "LocalEngine", "Sharded", "ShardedCoupling", "ShardsLost"]
