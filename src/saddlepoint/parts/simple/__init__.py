"""Simple functions: norms and constraints with a cheap prox, alone or added to a smooth function."""

from saddlepoint.parts.simple.ball import Ball
from saddlepoint.parts.simple.base import Pairing, Simple, Support
from saddlepoint.parts.simple.blocks import Blocks
from saddlepoint.parts.simple.from_operator import as_simple
from saddlepoint.parts.simple.group_balls import GroupBalls
from saddlepoint.parts.simple.groups import Groups, Norm2
from saddlepoint.parts.simple.hyperplane import Hyperplane
from saddlepoint.parts.simple.l1_box import L1, Box, L1Box, NonNegative
from saddlepoint.parts.simple.nuclear import Nuclear
from saddlepoint.parts.simple.simplex import Simplex

__all__ = [
    "L1",
    "Ball",
    "Blocks",
    "Box",
    "GroupBalls",
    "Groups",
    "Hyperplane",
    "L1Box",
    "NonNegative",
    "Norm2",
    "Nuclear",
    "Pairing",
    "Simple",
    "Simplex",
    "Support",
    "as_simple",
]
