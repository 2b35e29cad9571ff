"""One file a method; importing the package registers them all."""

from saddlepoint.methods.ag_eg import AGEG
from saddlepoint.methods.ag_og import AGOG
from saddlepoint.methods.agd import AGD
from saddlepoint.methods.agraal import AGRAAL
from saddlepoint.methods.aipfb import AIPFB
from saddlepoint.methods.apd import APD
from saddlepoint.methods.apdg import APDG
from saddlepoint.methods.apfb import APFB
from saddlepoint.methods.base import Method, Needs, State
from saddlepoint.methods.condat_vu import CondatVu
from saddlepoint.methods.dippa import DIPPA
from saddlepoint.methods.direct import Direct
from saddlepoint.methods.dppa import DPPA
from saddlepoint.methods.extragradient import Extragradient
from saddlepoint.methods.imex import IMEX
from saddlepoint.methods.jst import JST
from saddlepoint.methods.krylov import Krylov
from saddlepoint.methods.lpd import LPD
from saddlepoint.methods.lpd_gs import LPDGS
from saddlepoint.methods.lpd_slide import LPDSlide
from saddlepoint.methods.minimax_appa import MinimaxAPPA
from saddlepoint.methods.newton import Newton
from saddlepoint.methods.ogda import OGDA
from saddlepoint.methods.pbr import PBR
from saddlepoint.methods.registry import make_method, method_names, methods, register, register_as
from saddlepoint.methods.rhss import RHSS
from saddlepoint.methods.sliding import Sliding

__all__ = [
    "AGD",
    "AGEG",
    "AGOG",
    "AGRAAL",
    "AIPFB",
    "APD",
    "APDG",
    "APFB",
    "DIPPA",
    "DPPA",
    "IMEX",
    "JST",
    "LPD",
    "LPDGS",
    "OGDA",
    "PBR",
    "RHSS",
    "CondatVu",
    "Direct",
    "Extragradient",
    "Krylov",
    "LPDSlide",
    "Method",
    "MinimaxAPPA",
    "Needs",
    "Newton",
    "Sliding",
    "State",
    "make_method",
    "method_names",
    "methods",
    "register",
    "register_as",
]
