"""Problems that are drawn, their saddle points, and the derivatives of these in 50 digits.

Newton's method finds the saddle point on its face. The conditions of the face (signs of multipliers, entries within
their bounds) are verified in these digits, and the derivatives solve linear systems there.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from exact_functions import FUNCTIONS, Function
from exact_terms import TERMS, Fixed, Term, fix
from many_digits import DIGITS, ZERO, digits, solution, zeros

import saddlepoint as sp

STEPS = 12  # of Newton's method, at most
FLOAT64_ONLY = ("quadratic", "own")  # functions that are not drawn with data of float32


class UndecidedError(Exception):
    """The face is not that of the solution, or the solution is at a kink."""


class Player:
    """One player: the unknowns (x, multiplier) and their equations on the face of an accurate point."""

    def __init__(self, function: Function, term: Term, x: np.ndarray) -> None:
        self.function, self.term, self.n = function, term, len(x)
        term.take_face(x)
        self.size = self.n + term.multipliers
        self.fixed: Fixed = {}

    def extended(self, vector: Any) -> Any:
        """A vector of x, and zeros for the multipliers."""
        return np.concatenate([vector, zeros(self.size - self.n)])

    def free(self, values: Any) -> Any:
        """An array with zeros in the place of the entries, or rows, of the fixed coordinates."""
        is_free = np.array([i not in self.fixed for i in range(self.n)])
        return np.where(is_free.reshape(-1, *[1] * (values.ndim - 1)), values, ZERO)

    def equations(self, z: Any, pull: Any) -> tuple[Any, Any]:
        """Residuals, and their Jacobian with respect to z = (x, multiplier).

        Args:
            z: the unknowns.
            pull: A y, or -A' x.
        """
        x = z[: self.n]
        slope, H = self.function.at(x)
        R, J = self.extended(slope + pull), zeros(self.size, self.size)
        J[: self.n, : self.n] = H
        self.fixed = self.term.add(x, self.multiplier(z), R, J)
        fix(self.fixed, x, R, J)
        return R, J

    def multiplier(self, z: Any) -> Any:
        """The multiplier among the unknowns; 0 if there is none."""
        return z[self.n] if self.size > self.n else ZERO

    def begin(self, x: np.ndarray, pull: Any) -> Any:
        """The unknowns at x, where the multiplier is that of least squares."""
        z = self.extended(digits(x))
        if self.size > self.n:
            R, J = self.equations(z, pull)
            a = self.free(J[: self.n, self.n])
            z[self.n] = -(a @ R[: self.n]) / (a @ a)
        return z

    def verify(self, z: Any, pull: Any) -> None:
        """Raise ``UndecidedError`` unless the conditions of the face hold strictly."""
        x = z[: self.n]
        if not self.term.holds(x, self.multiplier(z), self.function.at(x)[0] + pull):
            raise UndecidedError


class Truth(NamedTuple):
    """The saddle point and its derivatives, in many digits.

    Attributes:
        x, y: the saddle point.
        ux, uy: the adjoint vectors.
        dx, dy: the derivatives along a change of A.
    """

    x: Any
    y: Any
    ux: Any
    uy: Any
    dx: Any
    dy: Any

    @property
    def A(self) -> Any:
        """The gradient with respect to A."""
        return np.outer(self.x, self.uy) - np.outer(self.ux, self.y)


class Problem:
    """A problem, with a change of A and with the vectors of which the products with the solution are differentiated."""

    def __init__(self, rng: np.random.Generator) -> None:
        m, n = (int(k) for k in rng.integers(1, 6, 2))
        self.dtype: Any = np.float32 if rng.random() < 0.2 else np.float64
        scale = float(10.0 ** rng.choice([0, 0, 0, -2, 2]))
        self.kinds = [str(rng.choice(list(FUNCTIONS))) for _ in range(2)]
        self.names = [str(rng.choice(list(TERMS))) for _ in range(2)]
        if self.dtype is np.float32:
            self.kinds = ["log-cosh" if kind in FLOAT64_ONLY else kind for kind in self.kinds]
        kinds, names = zip(self.kinds, (m, n), strict=True), zip(self.names, (m, n), strict=True)
        self.functions = [FUNCTIONS[kind](size, rng, self.dtype, scale) for kind, size in kinds]
        self.terms = [TERMS[name](size, rng) for name, size in names]
        self.A = (10.0 ** rng.uniform(-1.0, 1.0) * rng.standard_normal((m, n))).astype(self.dtype)
        self.dA = rng.standard_normal((m, n)).astype(self.dtype)
        self.v = [rng.standard_normal(size).astype(self.dtype) for size in (m, n)]
        if rng.random() < 0.4:
            point = sp.solve(self.f, tol=1e-8, max_calls=3000)
            for term, x in zip(self.terms, (point.x, point.y), strict=True):
                term.move_next_to(x, float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-7.0, -1.0)))

    @property
    def f(self) -> sp.Saddle:
        """The problem of the package."""
        sides = zip(self.functions, self.terms, strict=True)
        g, h = (part.f if term.term is None else part.f + term.term for part, term in sides)
        return sp.Saddle(g, h, self.A)

    def truth(self, x: np.ndarray, y: np.ndarray) -> Truth:
        """The truth, from an accurate point; ``UndecidedError`` if its face is not that of the saddle point."""
        players = [Player(*parts) for parts in zip(self.functions, self.terms, (x, y), strict=True)]
        z, K = self.newton(players, x, y)
        (m, n), dA = self.A.shape, digits(self.dA)
        X, Y = z[0][:m], z[1][:n]
        # The transposed system. A fixed entry has the equation x = const, whose multiplier balances that entry of v.
        v = np.concatenate([player.extended(digits(part)) for player, part in zip(players, self.v, strict=True)])
        adjoint = apart(solution(K.T, v), players)
        changes = [player.free(part) for player, part in zip(players, (dA @ Y, -(dA.T @ X)), strict=True)]
        right = np.concatenate([player.extended(part) for player, part in zip(players, changes, strict=True)])
        dx, dy = apart(solution(K, -right), players)
        ux, uy = (player.free(part) for player, part in zip(players, adjoint, strict=True))
        return Truth(X, Y, ux, uy, dx, dy)

    def newton(self, players: list[Player], x: np.ndarray, y: np.ndarray) -> tuple[list[Any], Any]:
        """The unknowns of both players at the saddle point, and the Jacobian of their equations there."""
        A, (m, n) = digits(self.A), self.A.shape
        first, _ = (player.size for player in players)
        pulls = A @ digits(y), -(A.T @ digits(x))
        z = [player.begin(point, pull) for player, point, pull in zip(players, (x, y), pulls, strict=True)]
        for _ in range(STEPS):
            pulls = A @ z[1][:n], -(A.T @ z[0][:m])
            (Rx, Jx), (Ry, Jy) = (player.equations(*of) for player, *of in zip(players, z, pulls, strict=True))
            K = np.block([[Jx, zeros(len(Rx), len(Ry))], [zeros(len(Ry), len(Rx)), Jy]])
            K[:m, first : first + n] = players[0].free(A)
            K[first : first + n, :m] = players[1].free(-A.T)
            R = np.concatenate([Rx, Ry])
            if max(abs(r) for r in R) < Decimal(10) ** (10 - DIGITS):
                break
            step = solution(K, R)
            z = [z[0] - step[:first], z[1] - step[first:]]
        else:
            raise UndecidedError
        for player, part, pull in zip(players, z, pulls, strict=True):
            player.verify(part, pull)
        return z, K


def apart(vector: Any, players: list[Player]) -> tuple[Any, Any]:
    """The parts of a vector that belong to x and to y, without those of multipliers."""
    one, other = players
    return vector[: one.size][: one.n], vector[one.size :][: other.n]
