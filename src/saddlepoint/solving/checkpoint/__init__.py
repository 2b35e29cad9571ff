"""Runs on disk: written atomically, without pickle, and refused in a sentence where they do not fit."""

from saddlepoint.solving.checkpoint.blame import state_is_to_blame
from saddlepoint.solving.checkpoint.checkpointer import Checkpointer, NoCheckpoint, Packed, RunFile
from saddlepoint.solving.checkpoint.file import older
from saddlepoint.solving.checkpoint.signals import sigterm_raises

__all__ = ["Checkpointer", "NoCheckpoint", "Packed", "RunFile", "older", "sigterm_raises", "state_is_to_blame"]
