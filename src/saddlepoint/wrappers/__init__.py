"""Methods that take a method: ``Catalyst(DIPPA())`` is one."""

from saddlepoint.wrappers.catalyst import Catalyst

__all__ = ["Catalyst"]
