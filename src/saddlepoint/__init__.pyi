# The public names, for type checkers and editors; __init__.py loads them when they are used.
from saddlepoint import apps, theory
from saddlepoint.ground.errors import AssumptionError, InfeasibleError, ProblemError
from saddlepoint.methods import AGD, Method, Needs, State, classes, make_method, methods, register
from saddlepoint.methods.classes import *  # noqa: F403
from saddlepoint.parts.coupling import Coupling, as_coupling
from saddlepoint.parts.coupling.complex_view import complex_view, real_view
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
from saddlepoint.parts.simple import (
    L1,
    Ball,
    Blocks,
    Box,
    GroupBalls,
    Groups,
    Hyperplane,
    NonNegative,
    Norm2,
    Nuclear,
    Simple,
    Simplex,
    Support,
    as_simple,
)
from saddlepoint.problems.certify import CertifiedPoint
from saddlepoint.problems.check import check
from saddlepoint.problems.files.stores import stream
from saddlepoint.problems.findings import Finding, Report
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import History, Record, Result, Status
from saddlepoint.solving.result_file import load_result
from saddlepoint.solving.solve import solve
from saddlepoint.theory.certificate import Certificate
from saddlepoint.uses import model
from saddlepoint.uses.batch import Batch, solve_many
from saddlepoint.uses.certify import certify
from saddlepoint.uses.estimators import CertifiedEstimator
from saddlepoint.uses.from_cvxpy import from_cvxpy
from saddlepoint.uses.layer import Layer, layer
from saddlepoint.uses.path import SolutionPath, path
from saddlepoint.uses.prediction import Prediction, predict
from saddlepoint.uses.prepared import Prepared, prepare

__version__: str

__all__ = [
    "AGD",
    "L1",
    "AssumptionError",
    "Ball",
    "Batch",
    "Blocks",
    "Box",
    "Certificate",
    "CertifiedEstimator",
    "CertifiedPoint",
    "Coupling",
    "Entropy",
    "Finding",
    "GroupBalls",
    "GroupHuber",
    "Groups",
    "History",
    "Huber",
    "Hyperplane",
    "InfeasibleError",
    "Layer",
    "LeastSquares",
    "LogCosh",
    "LogSumExp",
    "Logistic",
    "Method",
    "Needs",
    "NonNegative",
    "Norm2",
    "Nuclear",
    "Prediction",
    "Prepared",
    "ProblemError",
    "Quadratic",
    "Record",
    "Report",
    "Result",
    "Saddle",
    "Simple",
    "Simplex",
    "Smooth",
    "SmoothedHinge",
    "SolutionPath",
    "State",
    "Status",
    "Support",
    "apps",
    "as_coupling",
    "as_simple",
    "certify",
    "check",
    "complex_view",
    "from_cvxpy",
    "layer",
    "load_result",
    "make_method",
    "methods",
    "model",
    "path",
    "predict",
    "prepare",
    "real_view",
    "register",
    "solve",
    "solve_many",
    "stream",
    "theory",
]
__all__ += classes.__all__
