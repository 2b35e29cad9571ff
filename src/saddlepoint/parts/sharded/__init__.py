"""A split by rows into shards: the interface of engines, engines of several kinds, and the coupling made of them."""

from typing import Any

from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.coupling.kinds import register_coupling
from saddlepoint.parts.sharded.coupling import ShardedCoupling
from saddlepoint.parts.sharded.engine import Engine, ShardsLost
from saddlepoint.parts.sharded.local import LocalEngine
from saddlepoint.parts.sharded.vectors import Sharded

__all__ = ["Engine", "LocalEngine", "Sharded", "ShardedCoupling", "ShardsLost"]


def _is_dask(A: Any) -> bool:
    return type(A).__module__.partition(".")[0] == "dask"


def _of_dask(A: Any, name: str) -> Coupling:
    from saddlepoint.parts.sharded.dask import dask_coupling

    return dask_coupling(A, name)


register_coupling("dask array", _is_dask, _of_dask)
