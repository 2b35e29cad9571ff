"""Methods that take a method: ``Catalyst(DIPPA())`` and ``Anderson(LPDGS())`` are two."""

from saddlepoint.methods.wrappers.anderson import Anderson
from saddlepoint.methods.wrappers.catalyst import Catalyst
from saddlepoint.methods.wrappers.restarted import Restarted

__all__ = ["Anderson", "Catalyst", "Restarted"]
