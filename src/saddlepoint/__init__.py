"""Certified first-order solvers for min_x max_y g(x) + <x, A y> - h(y).

import saddlepoint as sp

f = sp.Saddle(g, h, A)             # g, h: sp.Smooth or a ready function; A: array, sparse, operator
result = sp.solve(f, tol=1e-8)     # the point, with a proof of how far it is from the solution
"""

from saddlepoint import apps, theory
from saddlepoint.ground.errors import AssumptionError, InfeasibleError, ProblemError
from saddlepoint.methods import (
    AGD,
    AGEG,
    AGOG,
    AGRAAL,
    AIPFB,
    APD,
    APDG,
    APFB,
    DIPPA,
    DPPA,
    IMEX,
    JST,
    LPD,
    LPDGS,
    OGDA,
    PBR,
    RHSS,
    CondatVu,
    Direct,
    Extragradient,
    Krylov,
    LPDSlide,
    Method,
    MinimaxAPPA,
    Newton,
    Sliding,
    State,
    make_method,
    methods,
    register,
)
from saddlepoint.methods.wrappers import Anderson, Catalyst, Restarted
from saddlepoint.parts.coupling import Coupling, as_coupling
from saddlepoint.parts.functions import (
    Entropy,
    GroupHuber,
    Huber,
    LeastSquares,
    LogCosh,
    Logistic,
    LogSumExp,
    Quadratic,
    Smooth,
    SmoothedHinge,
)
from saddlepoint.problems.check import Finding, Report, check
from saddlepoint.problems.files.stores import stream
from saddlepoint.problems.saddle import Certificate, Saddle
from saddlepoint.solving.driver import solve
from saddlepoint.solving.result import History, Record, Result, Status
from saddlepoint.solving.saved import load_result
from saddlepoint.uses.batch import Batch, solve_many
from saddlepoint.uses.prediction import Prediction, predict

__version__ = "0.1.0"

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
    "Anderson",
    "AssumptionError",
    "Batch",
    "Catalyst",
    "Certificate",
    "CondatVu",
    "Coupling",
    "Direct",
    "Entropy",
    "Extragradient",
    "Finding",
    "GroupHuber",
    "History",
    "Huber",
    "InfeasibleError",
    "Krylov",
    "LPDSlide",
    "LeastSquares",
    "LogCosh",
    "LogSumExp",
    "Logistic",
    "Method",
    "MinimaxAPPA",
    "Newton",
    "Prediction",
    "ProblemError",
    "Quadratic",
    "Record",
    "Report",
    "Restarted",
    "Result",
    "Saddle",
    "Sliding",
    "Smooth",
    "SmoothedHinge",
    "State",
    "Status",
    "apps",
    "as_coupling",
    "check",
    "load_result",
    "make_method",
    "methods",
    "predict",
    "register",
    "solve",
    "solve_many",
    "stream",
    "theory",
]
