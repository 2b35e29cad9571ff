"""One file a method; importing the package registers them all."""

from saddlepoint.methods.agd import AGD
from saddlepoint.methods.aipfb import AIPFB
from saddlepoint.methods.apfb import APFB
from saddlepoint.methods.base import Method, State, make_method, method_names, methods, register, register_as
from saddlepoint.methods.dippa import DIPPA
from saddlepoint.methods.dppa import DPPA

__all__ = [
    "AGD",
    "AIPFB",
    "APFB",
    "DIPPA",
    "DPPA",
    "Method",
    "State",
    "make_method",
    "method_names",
    "methods",
    "register",
    "register_as",
]
