"""Saddle problems as layers: PyTorch and JAX differentiate through their solutions."""

from saddlepoint.uses.layer.layer import Layer, layer

__all__ = ["Layer", "layer"]
