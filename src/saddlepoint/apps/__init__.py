"""Applications: each turns the data of its field into a saddle problem, solves it, and returns a certified answer.

The estimators need scikit-learn, which is imported when one of them is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from saddlepoint.ground.errors import ProblemError

if TYPE_CHECKING:
    from saddlepoint.apps.auc import AUCClassifier
    from saddlepoint.apps.constrained_game import ConstrainedGame
    from saddlepoint.apps.constrained_huber import ConstrainedHuber
    from saddlepoint.apps.coupled_costs import CoupledCosts
    from saddlepoint.apps.equality_constrained import EqualityConstrained
    from saddlepoint.apps.extensive_game import ExtensiveGame
    from saddlepoint.apps.fair import FairClassifier
    from saddlepoint.apps.group_dro import GroupDROClassifier, GroupDRORegressor
    from saddlepoint.apps.matrix_game import MatrixGame
    from saddlepoint.apps.policy import PolicyEvaluation
    from saddlepoint.apps.programs.program import QuadraticProgram
    from saddlepoint.apps.risk import RiskClassifier, RiskRegressor
    from saddlepoint.apps.robust_least_squares import RobustLeastSquares
    from saddlepoint.apps.structure import Fused, Graph, Groups, Norms, Squares
    from saddlepoint.apps.total_variation import TotalVariation
    from saddlepoint.apps.wasserstein import WassersteinClassifier

_HOMES = {
    "AUCClassifier": "auc",
    "ConstrainedGame": "constrained_game",
    "ConstrainedHuber": "constrained_huber",
    "CoupledCosts": "coupled_costs",
    "EqualityConstrained": "equality_constrained",
    "ExtensiveGame": "extensive_game",
    "FairClassifier": "fair",
    "Fused": "structure",
    "Graph": "structure",
    "GroupDROClassifier": "group_dro",
    "GroupDRORegressor": "group_dro",
    "Groups": "structure",
    "MatrixGame": "matrix_game",
    "Norms": "structure",
    "PolicyEvaluation": "policy",
    "QuadraticProgram": "programs.program",
    "RiskClassifier": "risk",
    "RiskRegressor": "risk",
    "RobustLeastSquares": "robust_least_squares",
    "Squares": "structure",
    "TotalVariation": "total_variation",
    "WassersteinClassifier": "wasserstein",
}

__all__ = [
    "AUCClassifier",
    "ConstrainedGame",
    "ConstrainedHuber",
    "CoupledCosts",
    "EqualityConstrained",
    "ExtensiveGame",
    "FairClassifier",
    "Fused",
    "Graph",
    "GroupDROClassifier",
    "GroupDRORegressor",
    "Groups",
    "MatrixGame",
    "Norms",
    "PolicyEvaluation",
    "QuadraticProgram",
    "RiskClassifier",
    "RiskRegressor",
    "RobustLeastSquares",
    "Squares",
    "TotalVariation",
    "WassersteinClassifier",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise ProblemError(f"{name} needs scikit-learn; pip install 'saddlepoint[sklearn]'") from None


def __dir__() -> list[str]:
    return sorted(__all__)
