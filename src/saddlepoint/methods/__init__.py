"""One file a method; importing the package registers them all."""

from saddlepoint.methods import classes
from saddlepoint.methods.agd import AGD
from saddlepoint.methods.base import Method, Needs, State
from saddlepoint.methods.classes import *  # noqa: F403
from saddlepoint.methods.registry import make_method, method_names, methods, register, register_expression

__all__ = [
    "AGD",
    "Method",
    "Needs",
    "State",
    "make_method",
    "method_names",
    "methods",
    "register",
    "register_expression",
]
__all__ += classes.__all__
