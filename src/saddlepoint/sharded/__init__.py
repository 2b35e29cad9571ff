"""A in shards of rows, on one machine or many: one seam, and an engine on each side of it."""

from saddlepoint.sharded.coupling import ShardedCoupling
from saddlepoint.sharded.local import LocalEngine
from saddlepoint.sharded.seam import Engine, ShardsLost
from saddlepoint.sharded.vectors import Sharded

__all__ = ["Engine", "LocalEngine", "Sharded", "ShardedCoupling", "ShardsLost"]
