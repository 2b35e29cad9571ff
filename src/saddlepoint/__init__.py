"""Certified first-order solvers for min_x max_y g(x) + <x, A y> - h(y).

import saddlepoint as sp

f = sp.Saddle(g, h, A)             # g, h: sp.Smooth or a ready function; A: array, sparse, operator
result = sp.solve(f, tol=1e-8)     # the point, with a proof of how far it is from the solution
"""

from saddlepoint import apps, theory
from saddlepoint.batch import Batch, solve_many
from saddlepoint.check import Finding, Report, check
from saddlepoint.coupling import Coupling, as_coupling
from saddlepoint.driver import solve
from saddlepoint.errors import AssumptionError, InfeasibleError, ProblemError
from saddlepoint.files.stores import stream
from saddlepoint.functions import (
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
from saddlepoint.prediction import Prediction, predict
from saddlepoint.problem import Certificate, Saddle
from saddlepoint.result import History, Record, Result, Status
from saddlepoint.saved import load_result
from saddlepoint.wrappers import Anderson, Catalyst, Restarted

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
