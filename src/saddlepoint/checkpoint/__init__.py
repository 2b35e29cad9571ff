"""Runs on disk: written atomically, without pickle, and refused in a sentence where they do not fit."""

from saddlepoint.checkpoint.keeper import Keeper, Saved
from saddlepoint.checkpoint.signals import sigterm_raises
from saddlepoint.checkpoint.store import older

__all__ = ["Keeper", "Saved", "older", "sigterm_raises"]
