"""Runs on disk: written atomically, without pickle, and refused in a sentence where they do not fit."""

from saddlepoint.solving.checkpoint.checkpointer import Checkpointer, NoCheckpoint, Packed, RunFile
from saddlepoint.solving.checkpoint.file import older
from saddlepoint.solving.checkpoint.file_errors import is_caused_by_file
from saddlepoint.solving.checkpoint.signals import sigterm_raises

__all__ = ["Checkpointer", "NoCheckpoint", "Packed", "RunFile", "is_caused_by_file", "older", "sigterm_raises"]
