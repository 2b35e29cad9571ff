"""The functions g and h: any black box with a gradient, and the ready ones."""

from saddlepoint.functions.entropy import Entropy
from saddlepoint.functions.group import GroupHuber
from saddlepoint.functions.logsumexp import LogSumExp
from saddlepoint.functions.quadratic import Quadratic
from saddlepoint.functions.risk import Huber, LeastSquares, LogCosh, Logistic, Risk, SmoothedHinge
from saddlepoint.functions.smooth import Smooth

__all__ = [
    "Entropy",
    "GroupHuber",
    "Huber",
    "LeastSquares",
    "LogCosh",
    "LogSumExp",
    "Logistic",
    "Quadratic",
    "Risk",
    "Smooth",
    "SmoothedHinge",
]
