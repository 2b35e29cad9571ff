"""Runs on disk: written atomically, without pickle, and refused in a sentence where they do not fit."""

from saddlepoint.solving.checkpoint.keeper import Checkpointer, LoadedRun
from saddlepoint.solving.checkpoint.signals import sigterm_raises
from saddlepoint.solving.checkpoint.store import older

__all__ = ["Checkpointer", "LoadedRun", "older", "sigterm_raises"]
