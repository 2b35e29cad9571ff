"""Certified first-order solvers for min_x max_y g(x) + <x, A y> - h(y).

import saddlepoint as sp

f = sp.Saddle(g, h, A)             # g, h: sp.Smooth or a ready function; A: array, sparse, operator
result = sp.solve(f, tol=1e-8)     # the point, with a proof of how far it is from the solution
"""

from saddlepoint import apps, theory
from saddlepoint.ground.errors import AssumptionError, InfeasibleError, ProblemError
from saddlepoint.methods import AGD, Method, Needs, State, classes, make_method, methods, register
from saddlepoint.methods.classes import *  # noqa: F403
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
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import History, Record, Result, Status
from saddlepoint.solving.result_file import load_result
from saddlepoint.solving.solve import solve
from saddlepoint.theory.certificate import Certificate
from saddlepoint.uses.batch import Batch, solve_many
from saddlepoint.uses.path import SolutionPath, path
from saddlepoint.uses.prediction import Prediction, predict
from saddlepoint.uses.prepared import Prepared, prepare

__version__ = "0.1.0"

__all__ = [
    "AGD",
    "AssumptionError",
    "Batch",
    "Certificate",
    "Coupling",
    "Entropy",
    "Finding",
    "GroupHuber",
    "History",
    "Huber",
    "InfeasibleError",
    "LeastSquares",
    "LogCosh",
    "LogSumExp",
    "Logistic",
    "Method",
    "Needs",
    "Prediction",
    "Prepared",
    "ProblemError",
    "Quadratic",
    "Record",
    "Report",
    "Result",
    "Saddle",
    "Smooth",
    "SmoothedHinge",
    "SolutionPath",
    "State",
    "Status",
    "apps",
    "as_coupling",
    "check",
    "load_result",
    "make_method",
    "methods",
    "path",
    "predict",
    "prepare",
    "register",
    "solve",
    "solve_many",
    "stream",
    "theory",
]
__all__ += classes.__all__
