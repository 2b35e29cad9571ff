"""What a set of strategies must offer, and checks of the sets that a caller gave."""

from __future__ import annotations

from typing import Any, Protocol

from scipy.sparse import csr_array

from saddlepoint.apps.polytope import Polytope
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError

METHODS = ("best", "best_bound", "nearest", "rounding", "start", "violation")  # what Strategies have beside constraints


class Strategies(Protocol):
    """A player's set of strategies {v >= 0 : E v = e}: a ``Polytope``, or a set with a cheaper best response."""

    @property
    def constraints(self) -> tuple[csr_array, Array]:
        """E and e."""

    @property
    def start(self) -> Array:
        """A strategy to start from."""

    def best(self, weights: Array) -> tuple[float, Array]:
        """The largest <weights, v> over the strategies v, and a v that attains it."""

    def best_bound(self, weights: Array, errors: Array) -> float:
        """A proven upper bound on the largest <w, v>, for all w with |w - weights| <= errors."""

    def rounding(self, vector: Array) -> Array:
        """Bounds on the entries of vector - v, for the strategy v that the vector stands for."""

    def nearest(self, vector: Array) -> Array:
        """A strategy close to a vector that nearly is one."""

    def violation(self, vector: Array) -> float:
        """The largest error in E v = e and v >= 0."""


def as_strategies(given: Any, name: str, size: int) -> Strategies:
    """The strategies that were given as a matrix and a vector, or as an object with the methods of ``Strategies``."""
    if isinstance(given, tuple) and len(given) == 2:
        return Polytope(*given, name, size)
    if not hasattr(given, "constraints"):
        raise ProblemError(f"the constraints {name} are a {type(given).__name__}; expected a pair of matrix and vector")
    missing = [method for method in METHODS if not hasattr(given, method)]
    if missing:
        raise ProblemError(
            f"the constraints {name} are a {type(given).__name__} without {missing[0]}; expected a pair of matrix and "
            "vector, or an object with the methods of Strategies"
        )
    strategies: Strategies = given
    if strategies.constraints[0].shape[1] != size:
        raise ProblemError(f"{name} has {strategies.constraints[0].shape[1]} variables; expected {size}")
    return strategies
