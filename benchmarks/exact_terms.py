"""Simple terms that are drawn, and what they add to the equations of a solution on its face, in many digits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from many_digits import ONE, ZERO, digits, identity, number, zeros

import saddlepoint as sp

NEAR = 1e-9  # a coordinate is taken to be at a bound or at zero if it is nearer than this
STRICTLY = Decimal(10) ** -25  # by how much strict inequalities have to hold
Fixed = dict[int, Any]  # the coordinates that are constant on the face, with their values


class Term:
    """No term; the base class of the terms.

    Args:
        n: the number of variables.
        rng: draws the data.
    """

    multipliers = 0  # unknowns beside x on the face

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n = n
        self.size = float(np.float32(10.0 ** rng.uniform(-1.5, 0.0)))
        self.weight = 0.3 * float(np.float32(10.0 ** rng.uniform(-1.5, 0.0)))
        self.a = np.float32(rng.standard_normal(n)).astype(np.float64)
        self.lower, self.upper = -self.size * np.ones(n), self.size * np.ones(n)

    @property
    def term(self) -> sp.Simple | None:
        """The term of the package; None if there is none."""
        return None

    def move_next_to(self, x: np.ndarray, gap: float) -> None:
        """Let a bound be next to an entry of x, if there are bounds."""

    def take_face(self, x: np.ndarray) -> None:
        """Take the face of an accurate point for that of the solution; ``holds`` verifies it."""

    def add(self, x: Any, multiplier: Any, R: Any, J: Any) -> Fixed:
        """Add the subgradient and its derivative to residuals R and their Jacobian J with respect to (x, multiplier).

        The multiplier, if there is one, has the last equation.
        """
        return {}

    def holds(self, x: Any, multiplier: Any, w: Any) -> bool:
        """Whether the conditions of the face hold strictly at x, where the other functions have the gradient w."""
        return True


class L1Box(Term):
    """The l1 norm, a box, or both.

    A coordinate of the face is 0 at zero, -2 and 2 at a lower and an upper bound, and 1 elsewhere.
    """

    has_l1, has_box = True, True

    @property
    def term(self) -> sp.Simple:
        """The term of the package."""
        if not self.has_box:
            return sp.L1(self.weight)
        box = sp.Box(self.lower, self.upper)
        return sp.L1(self.weight) + box if self.has_l1 else box

    def take_face(self, x: np.ndarray) -> None:
        """The coordinates at zero and at the bounds."""
        near = NEAR * (1.0 + np.abs(x))
        zero = (np.abs(x) <= near) & self.has_l1
        low, high = ((np.abs(x - end) <= near) & self.has_box for end in (self.lower, self.upper))
        self.face = np.where(zero, 0, np.where(low, -2, np.where(high, 2, 1)))

    def add(self, x: Any, multiplier: Any, R: Any, J: Any) -> Fixed:
        """The weight with the sign of a coordinate, or the value of one that is fixed."""
        fixed: Fixed = {}
        values = {0: zeros(self.n), -2: digits(self.lower), 2: digits(self.upper)}
        for i, place in enumerate(self.face):
            if place != 1:
                fixed[i] = values[int(place)][i]
            elif self.has_l1:
                R[i] += number(self.weight if x[i] > 0 else -self.weight)
        return fixed

    def holds(self, x: Any, multiplier: Any, w: Any) -> bool:
        """Whether each coordinate is where it is said to be, and its multiplier has the right sign."""
        return all(self._coordinate_holds(i, x[i], w[i]) for i in range(self.n))

    def _coordinate_holds(self, i: int, x: Any, w: Any) -> bool:
        c = number(self.weight) if self.has_l1 else ZERO
        low, high = number(self.lower[i]) + STRICTLY, number(self.upper[i]) - STRICTLY
        inside = not self.has_box or low < x < high
        if self.face[i] == 1:
            return bool(inside and (not self.has_l1 or abs(x) > STRICTLY))
        if self.face[i] == 0:
            return bool(abs(w) < c - STRICTLY and inside)
        return bool((-w if self.face[i] == 2 else w) > c + STRICTLY)


class L1(L1Box):
    """The l1 norm."""

    has_box = False


class Box(L1Box):
    """A box."""

    has_l1 = False

    def move_next_to(self, x: np.ndarray, gap: float) -> None:
        """The bounds of the largest entry are moved."""
        i = int(np.argmax(np.abs(x)))
        if x[i] != 0.0:
            self.upper[i] = float(np.float32(abs(x[i]) * (1.0 + gap)))
            self.lower[i] = -self.upper[i]


class Hyperplane(Term):
    """A linear equation <a, x> = size."""

    multipliers = 1

    @property
    def normal(self) -> Any:
        """The vector a."""
        return self.a

    @property
    def term(self) -> sp.Simple:
        """The term of the package."""
        return sp.Hyperplane(self.a, self.size)

    def add(self, x: Any, multiplier: Any, R: Any, J: Any) -> Fixed:
        """The multiplier times a, and the equation."""
        a, n = digits(self.normal), self.n
        R[:n] = R[:n] + multiplier * a
        R[n] = sum(a[i] * x[i] for i in range(n)) - number(self.size)
        J[:n, n], J[n, :n] = a, a
        return {}


class Simplex(Hyperplane):
    """Nonnegative entries with a given sum. The face says which entries are positive."""

    @property
    def normal(self) -> Any:
        """Ones."""
        return np.ones(self.n)

    @property
    def term(self) -> sp.Simple:
        """The term of the package."""
        return sp.Simplex(self.size)

    def take_face(self, x: np.ndarray) -> None:
        """The entries that are positive."""
        self.face = x > NEAR * (1.0 + np.abs(x))

    def add(self, x: Any, multiplier: Any, R: Any, J: Any) -> Fixed:
        """The equation; the other entries are zero."""
        super().add(x, multiplier, R, J)
        return {i: ZERO for i in range(self.n) if not self.face[i]}

    def holds(self, x: Any, multiplier: Any, w: Any) -> bool:
        """Whether entries are positive, or their multipliers are."""
        return all((x[i] if self.face[i] else w[i] + multiplier) > STRICTLY for i in range(self.n))


class Ball(Term):
    """A Euclidean ball. The face says whether x is on its sphere."""

    on_sphere = False

    @property
    def term(self) -> sp.Simple:
        """The term of the package."""
        return sp.Ball(self.size)

    @property
    def multipliers(self) -> int:  # type: ignore[override]
        """One on the sphere."""
        return int(self.on_sphere)

    def move_next_to(self, x: np.ndarray, gap: float) -> None:
        """The radius is moved."""
        if np.linalg.norm(x) > 0.0:
            self.size = float(np.float32(np.linalg.norm(x) * (1.0 + gap)))

    def take_face(self, x: np.ndarray) -> None:
        """The sphere or the inside."""
        self.on_sphere = bool(np.linalg.norm(x) >= self.size * (1.0 - NEAR))

    def add(self, x: Any, multiplier: Any, R: Any, J: Any) -> Fixed:
        """The multiplier times x, and the equation of the sphere."""
        if self.on_sphere:
            n = self.n
            R[:n] = R[:n] + multiplier * x
            R[n] = (x @ x - number(self.size) ** 2) / 2
            J[:n, :n] = J[:n, :n] + multiplier * identity(n)
            J[:n, n], J[n, :n] = x, x
        return {}

    def holds(self, x: Any, multiplier: Any, w: Any) -> bool:
        """Whether the multiplier is positive, or x inside."""
        return bool(multiplier > STRICTLY if self.on_sphere else x @ x < number(self.size) ** 2 - STRICTLY)


class Norm(Term):
    """The Euclidean norm. The face says whether x is zero."""

    @property
    def term(self) -> sp.Simple:
        """The term of the package."""
        return sp.Norm2(self.weight)

    def take_face(self, x: np.ndarray) -> None:
        """Zero, or not."""
        self.is_zero = bool(np.linalg.norm(x) <= NEAR)

    def add(self, x: Any, multiplier: Any, R: Any, J: Any) -> Fixed:
        """The weight in the direction of x."""
        if self.is_zero:
            return dict.fromkeys(range(self.n), ZERO)
        size, weight = (x @ x).sqrt(), number(self.weight)
        R += weight * x / size
        J += weight / size * (identity(self.n) - np.outer(x, x) / size**2)
        return {}

    def holds(self, x: Any, multiplier: Any, w: Any) -> bool:
        """Whether x is not zero, or is kept there by the weight."""
        return bool(w @ w < number(self.weight) ** 2 - STRICTLY if self.is_zero else x @ x > STRICTLY)


def fix(fixed: Fixed, x: Any, R: Any, J: Any) -> None:
    """Replace the equations of the fixed coordinates by those that fix them."""
    for i, value in fixed.items():
        R[i] = x[i] - value
        J[i, :] = zeros(J.shape[1])
        J[i, i] = ONE


TERMS: dict[str, type[Term]] = {
    "none": Term,
    "l1": L1,
    "box": Box,
    "simplex": Simplex,
    "hyperplane": Hyperplane,
    "ball": Ball,
    "norm": Norm,
    "l1 and box": L1Box,
}
