# Written by tools/tables.py.
# ruff: noqa: RUF022

from saddlepoint.methods.adapdm import AdaPDM as AdaPDM
from saddlepoint.methods.ag_eg import AGEG as AGEG
from saddlepoint.methods.ag_og import AGOG as AGOG
from saddlepoint.methods.agraal import AGRAAL as AGRAAL
from saddlepoint.methods.aipfb import AIPFB as AIPFB
from saddlepoint.methods.apd import APD as APD
from saddlepoint.methods.apdg import APDG as APDG
from saddlepoint.methods.apfb import APFB as APFB
from saddlepoint.methods.condat_vu import CondatVu as CondatVu
from saddlepoint.methods.dippa import DIPPA as DIPPA
from saddlepoint.methods.direct import Direct as Direct
from saddlepoint.methods.dppa import DPPA as DPPA
from saddlepoint.methods.extragradient import Extragradient as Extragradient
from saddlepoint.methods.imex import IMEX as IMEX
from saddlepoint.methods.interior_point import InteriorPoint as InteriorPoint
from saddlepoint.methods.jst import JST as JST
from saddlepoint.methods.krylov import Krylov as Krylov
from saddlepoint.methods.lpd import LPD as LPD
from saddlepoint.methods.lpd_gs import LPDGS as LPDGS
from saddlepoint.methods.lpd_slide import LPDSlide as LPDSlide
from saddlepoint.methods.minimax_appa import MinimaxAPPA as MinimaxAPPA
from saddlepoint.methods.newton import Newton as Newton
from saddlepoint.methods.ogda import OGDA as OGDA
from saddlepoint.methods.pbr import PBR as PBR
from saddlepoint.methods.pdhg import PDHG as PDHG
from saddlepoint.methods.rhss import RHSS as RHSS
from saddlepoint.methods.separated import Separated as Separated
from saddlepoint.methods.sliding import Sliding as Sliding
from saddlepoint.methods.wrappers.anderson import Anderson as Anderson
from saddlepoint.methods.wrappers.catalyst import Catalyst as Catalyst
from saddlepoint.methods.wrappers.halpern import Halpern as Halpern
from saddlepoint.methods.wrappers.preconditioned import Preconditioned as Preconditioned
from saddlepoint.methods.wrappers.proximal import Proximal as Proximal
from saddlepoint.methods.wrappers.refined import Refined as Refined
from saddlepoint.methods.wrappers.restarted import Restarted as Restarted

__all__ = [
    "AGEG",
    "AGOG",
    "AGRAAL",
    "AIPFB",
    "APD",
    "APDG",
    "APFB",
    "AdaPDM",
    "Anderson",
    "Catalyst",
    "CondatVu",
    "DIPPA",
    "DPPA",
    "Direct",
    "Extragradient",
    "Halpern",
    "IMEX",
    "InteriorPoint",
    "JST",
    "Krylov",
    "LPD",
    "LPDGS",
    "LPDSlide",
    "MinimaxAPPA",
    "Newton",
    "OGDA",
    "PBR",
    "PDHG",
    "Preconditioned",
    "Proximal",
    "RHSS",
    "Refined",
    "Restarted",
    "Separated",
    "Sliding",
]
