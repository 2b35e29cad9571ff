"""The functions g and h: a class for any function with a gradient, and ready-made functions."""

from saddlepoint.parts.functions.entropy import Entropy
from saddlepoint.parts.functions.group import GroupHuber
from saddlepoint.parts.functions.logsumexp import LogSumExp
from saddlepoint.parts.functions.losses import Huber, LeastSquares, LogCosh, Logistic, SmoothedHinge
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.risk import Risk
from saddlepoint.parts.functions.smooth import Smooth

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
