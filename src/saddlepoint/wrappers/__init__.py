"""Methods that take a method: ``Catalyst(DIPPA())`` and ``Anderson(LPDGS())`` are two."""

from saddlepoint.wrappers.anderson import Anderson
from saddlepoint.wrappers.catalyst import Catalyst
from saddlepoint.wrappers.restarted import Restarted

__all__ = ["Anderson", "Catalyst", "Restarted"]
