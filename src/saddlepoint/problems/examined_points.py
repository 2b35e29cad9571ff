"""Where a function was examined, so that later runs on it with other linear terms need not examine it again.

A linear term changes neither mu nor L nor any curvature. It does move the solution, so a function counts as examined
only near the points at which its gradients were examined.
"""

from __future__ import annotations

from collections import deque

from saddlepoint.ground.arrays import Array, copied
from saddlepoint.ground.linalg import norm

NEAR = 0.1  # distance from an examined point that counts as examined, in units of ``length_scale`` there
MOST = 16  # points that are remembered


class Examined:
    """The points at which one function was examined, and the noise that was measured there.

    Attributes:
        noise: a bound on the errors of the gradient, as far as they were measured.
        is_noisy: whether this noise is clearly larger than rounding.
    """

    def __init__(self) -> None:
        self.noise, self.is_noisy = 0.0, False
        self._balls: deque[tuple[Array, float]] = deque(maxlen=MOST)

    def add(self, point: Array, length: float, noise: float, is_noisy: bool) -> None:
        """The function was examined at a point with this ``length_scale``, and agrees with its constants there."""
        self._balls.append((copied(point), NEAR * length))
        self.noise, self.is_noisy = max(self.noise, noise), self.is_noisy or is_noisy

    def covers(self, point: Array) -> bool:
        """Whether the function was examined near the point."""
        return any(norm(point - centre) <= radius for centre, radius in self._balls)
