"""A problem that is solved again and again, with other data each time."""

from saddlepoint.uses.prepared.prepared import Prepared, prepare

__all__ = ["Prepared", "prepare"]
