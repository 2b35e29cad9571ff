r"""B independent problems as one saddle problem with a block-diagonal coupling.

Problem:    min_x max_y sum_b g_b(x_b) + <x_b, A_b y_b> - h_b(y_b).
Variables:  x_b = a_b u_b and y_b = c_b v_b, and the b-th term weighted by w_b (which moves no saddle point), with
            w_b = (mu_x + mu_y)/(2 mu_x mu_y),   a_b^2 = 2 mu_y/(mu_x + mu_y),   c_b^2 = 2 mu_x/(mu_x + mu_y)
            for mu_x, mu_y of the b-th problem. Every block then has mu_x = mu_y = 1, so that kappa_x, kappa_y and
            |A|/sqrt(mu_x mu_y) of the whole are the largest of the blocks; no scaling can make them smaller. The sum of
            |u_b - u_b*|^2 + |v_b - v_b*|^2, which a method reduces, weights the blocks as the certified distances do.
Guarantee:  each block has its own certificate, computed in float64 at the point that is returned, with its own mu and
            in the problem's own variables. The certificate of the whole is the worst of them, so that a run continues
            until every block is within tol.

Where all blocks have the same mu_x and the same mu_y the variables stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, Space, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.functions.probes import gradient_or_none
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.strong_convexity import require_strongly_convex
from saddlepoint.theory.certificate import (
    BlockCertificates,
    Certificate,
    certificates_from_residuals,
    distance_bound,
    rounding_decides,
)
from saddlepoint.uses.batch.coupling import BatchedCoupling, batched, block_norms, stacked_couplings
from saddlepoint.uses.batch.functions import stacked, stretched_blocks

CHANGES = 2  # changes of blocks that must each change the gradients of others before a function is refused
REPEATS = 4  # gradients at one point by whose differences the noise of a gradient is judged
NOISIER = 30.0  # differences of gradients count as noise up to this many times those of gradients at one point
MIXED = 1e4  # largest difference that counts as rounding, in units of rounding of the gradient


class Constants(NamedTuple):
    """The constants mu and L of every block, as NumPy vectors."""

    mu_x: Array
    L_x: Array
    mu_y: Array
    L_y: Array


class Batch:
    """B independent problems of m and n variables as one: a ``Saddle`` of B m and B n variables.

    Args:
        g: a ``Smooth`` function of all x_b, one after the other, that is a sum of functions of the x_b; its mu and L
            hold for each of them.
        h: a ``Smooth`` function of all y_b of the same kind.
        A: an array of shape (B, m, n), one coupling for each problem.

    Attributes:
        problem: the whole as a ``Saddle``. Its certificate holds the largest distance and gap of a block, so that
            ``sp.solve(batch.problem, tol=...)`` ends when every block is within tol.
        size: the number B of problems.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> from saddlepoint.uses.batch import Batch, solve_many
        >>> b = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> batch = Batch(sp.Quadratic(1.0, b.reshape(-1)), sp.Quadratic(1.0), np.stack([np.eye(2)] * 3))
        >>> [result.x.round(3).tolist() for result in solve_many(batch)]
        [[-0.5, 0.0], [0.0, -0.5], [-0.5, -0.5]]
    """

    def __init__(self, g: Smooth, h: Smooth, A: Any) -> None:
        raw = Saddle(g, h, batched(A))
        require_strongly_convex(raw)
        if raw.has_simple:
            raise ProblemError(
                "g or h of the batch has a simple term, which a batch cannot have yet; give solve_many a list of "
                "problems, which it solves one by one"
            )
        B = batched(A).blocks
        for name, f, size in (("g", raw.g, raw.shape[0]), ("h", raw.h, raw.shape[1])):
            _check_sum(f, name, size, B, raw.space)
        self._set(raw, Constants(*(np.full(B, c) for c in (raw.mu_x, raw.L_x, raw.mu_y, raw.L_y))))

    @classmethod
    def of(cls, problems: Sequence[Saddle]) -> Batch | None:
        """The problems as one; None if they differ in shape, library, dtype, device or kind, or cannot be stacked."""
        first = problems[0]
        m, n = first.shape
        if any(
            type(f) is not Saddle or f.shape != first.shape or f.space != first.space or f.has_simple or f.mu == 0.0
            for f in problems
        ):
            return None
        A = stacked_couplings([f.A for f in problems], first.space)
        g, h = (stacked([getattr(f, name) for f in problems], size, first.space) for name, size in (("g", m), ("h", n)))
        if A is None or g is None or h is None:
            return None
        self = cls.__new__(cls)
        constants = Constants(*(np.array([getattr(f, c) for f in problems]) for c in Constants._fields))
        self._set(Saddle.of(g, h, A, first.space), constants)
        return self

    def _set(self, raw: Saddle, constants: Constants) -> None:
        assert isinstance(raw.A, BatchedCoupling)
        self.unscaled, self.constants, self.size = _Blocks.around(raw, raw.A, constants), constants, raw.A.blocks
        mu_x, L_x, mu_y, L_y = constants
        self._slopes = (np.ones(self.size), np.ones(self.size))  # w a and w c: from the field of x, y to that of u, v
        self._scales: tuple[Array, Array] | None = None  # a and c for every variable
        problem = raw
        if np.ptp(mu_x) > 0.0 or np.ptp(mu_y) > 0.0:  # never with an unknown mu, which is NaN
            w, a, c = 0.5 / mu_x + 0.5 / mu_y, np.sqrt(2.0 * mu_y / (mu_x + mu_y)), np.sqrt(2.0 * mu_x / (mu_x + mu_y))
            self._slopes = (w * a, w * c)
            m, n = self.shape
            (wx, ax), (wy, cy) = ((self._each(w, k), self._each(scale, k)) for scale, k in ((a, m), (c, n)))
            self._scales = (ax, cy)
            strength = self._each(1.0 / np.sqrt(mu_x * mu_y), 1)
            A = BatchedCoupling(strength[:, None, None] * raw.A.A)
            g = stretched_blocks(raw.g, ax, wx, float(np.max(L_x / mu_x)))
            h = stretched_blocks(raw.h, cy, wy, float(np.max(L_y / mu_y)))
            problem = Saddle.of(g, h, A, raw.space)
        self.problem: Saddle = _Whole.around(self, problem)

    def _each(self, numbers: Array, times: int) -> Array:
        """Repeat the number of each block for each of its variables."""
        return self.unscaled.space.cast(np.repeat(numbers, times))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (m, n) of each problem."""
        return self.unscaled.shape[0] // self.size, self.unscaled.shape[1] // self.size

    def back(self, u: Array, v: Array) -> tuple[Array, Array]:
        """All x_b and all y_b, from the variables of ``problem``."""
        return (u, v) if self._scales is None else (self._scales[0] * u, self._scales[1] * v)

    def split(self, x: Array) -> list[Array]:
        """The list of the x_b from the vector of all of them; it works for the y_b too."""
        xp = self.unscaled.space.xp
        X = xp.reshape(x, (self.size, -1))
        return list(X) if self.unscaled.space.is_numpy else list(xp.unstack(X))

    def certificates(
        self, x: Array, y: Array, noise: tuple[float, float] = (0.0, 0.0), tol: float | None = None
    ) -> list[Certificate]:
        """The certificate of each (x_b, y_b), from one query at all of them.

        Args:
            x, y: all x_b and all y_b.
            noise: by how much the gradients of g and of h may be wrong in a block, in the variables of ``problem``;
                the certificate of a run on ``problem`` has these numbers as ``noise_x`` and ``noise_y``.
            tol: what the distances are compared with (see ``Saddle.certificate``).
        """
        return [proof._replace(assumes=self.unscaled.assumes) for proof in self._proofs(x, y, noise, tol).each()]

    def worst(
        self, x: Array, y: Array, noise: tuple[float, float] = (0.0, 0.0), tol: float | None = None
    ) -> Certificate:
        """A certificate that holds for every block; Fx, Fy and the noise are in the variables of ``problem``."""
        proofs = self._proofs(x, y, noise, tol)
        with np.errstate(over="ignore", invalid="ignore"):
            Fx, Fy = (norm(slope * F) for slope, F in zip(self._slopes, (proofs.Fx, proofs.Fy), strict=True))
        proof = proofs.worst()._replace(Fx=Fx, Fy=Fy, noise_x=noise[0], noise_y=noise[1])
        return proof._replace(assumes=self.unscaled.assumes)

    def _proofs(self, x: Array, y: Array, noise: tuple[float, float], tol: float | None) -> BlockCertificates:
        levels = tuple(level / slope for level, slope in zip(noise, self._slopes, strict=True))
        mu_x, _, mu_y, _ = self.constants
        query = self.unscaled.gradients_and_products(x, y)
        residuals = self.unscaled.residuals(query)
        found = certificates_from_residuals(mu_x, mu_y, *residuals, *levels)
        with np.errstate(all="ignore"):
            rounding = distance_bound(mu_x, mu_y, *residuals[2:])
        if not rounding_decides(found.distance, rounding, tol):
            return found
        compensated = self.unscaled.compensated_residuals(query)
        assert compensated is not None
        return found.smaller(certificates_from_residuals(mu_x, mu_y, *compensated, *levels))


class _Blocks(Saddle):
    """A batch in the problems' own variables: its residuals are measured for each block."""

    constants: Constants

    @classmethod
    def around(cls, f: Saddle, A: BatchedCoupling, constants: Constants) -> _Blocks:
        """The parts of f, with the constants of the blocks."""
        self = cls.__new__(cls)
        self._set(f.g, f.h, A, f.space)
        self.blocks, self.constants, self.estimated = A.blocks, constants, f.estimated
        return self

    def _lengths(
        self, of_x: tuple[Array, ...], of_y: tuple[Array, ...], enough: float = 0.0
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The norms and rounding scales of ``Saddle`` for each block, copied from the device at once."""
        A, transpose = self.A, self.A.T
        assert isinstance(A, BatchedCoupling)
        assert isinstance(transpose, BatchedCoupling)
        vectors = (*of_x, transpose.rounding_terms(of_x[2]), *of_y, A.rounding_terms(of_y[2]))
        lengths = block_norms([self.space.wide.cast(v) for v in vectors], self.blocks)
        (*sizes_x, scale_y), (*sizes_y, scale_x) = lengths[: len(of_x) + 1], lengths[len(of_x) + 1 :]
        return (*sizes_x, scale_x), (*sizes_y, scale_y)

    @property
    def _smoothness(self) -> tuple[Any, Any]:
        return self.constants.L_x, self.constants.L_y


class _Whole(Saddle):
    """A batch in the variables of a run: its certificate is the worst of those of the blocks.

    Each block allows for the noise of the noisiest one. In these variables that adds the same to the certified distance
    of every block.
    """

    batch: Batch

    @classmethod
    def around(cls, batch: Batch, f: Saddle) -> _Whole:
        """The parts of f, with the blocks' certificates."""
        self = cls.__new__(cls)
        self._set(f.g, f.h, f.A, f.space)
        self.batch, self.estimated, self.blocks = batch, f.estimated, batch.size
        return self

    def certificate(self, x: Array, y: Array, tol: float | None = None, gap: float | None = None) -> Certificate:
        """The worst of the blocks."""
        return self.batch.worst(*self.batch.back(x, y), self.noise, tol)

    def block_norms(self, vectors: Sequence[Array]) -> Sequence[Any]:
        """The norms of the blocks of each vector."""
        return list(block_norms([self.space.wide.cast(vector) for vector in vectors], self.blocks))


def _check_sum(f: Smooth, name: str, size: int, blocks: int, space: Space) -> None:
    """Raise an error if f mixes blocks: change every other block, and compare the gradients of the rest.

    Where they differ, another change must show the same, beyond what gradients at one point differ by. Nothing is said
    where gradients cannot be evaluated.
    """
    x, *changes = np.random.default_rng(0).standard_normal((1 + CHANGES, blocks, size // blocks))
    before = _gradient_of(f, x, space)
    if before is None or before.shape != (size,):
        return  # `solve` raises the error about a gradient of the wrong shape
    allowed = MIXED * space.eps * float(np.abs(before).max())
    for k, change in enumerate(changes):
        change[::2] = 0.0
        after = _gradient_of(f, x + change, space)
        if after is None or not _difference(before, after, blocks) > allowed:
            return
        if k == 0:
            again = [_gradient_of(f, x, space) for _ in range(REPEATS)]
            allowed = max(
                allowed, *(NOISIER * _difference(before, other, blocks) for other in again if other is not None)
            )
            if not _difference(before, after, blocks) > allowed:
                return
    raise ProblemError(
        f"{name} mixes the blocks: the gradient in one changes with the variables of another; expected a sum of "
        "functions of one block each"
    )


def _gradient_of(f: Smooth, x: Array, space: Space) -> Array | None:
    """The gradient at a point as a copy, because some gradients write into their argument or into an earlier answer."""
    with np.errstate(all="ignore"):
        p = gradient_or_none(f.grad, f.inside(space.cast(x.reshape(-1).copy())))
    return None if p is None else np.array(to_host(p), np.float64)


def _difference(before: Array, after: Array, blocks: int) -> float:
    """The largest difference of two gradients in the blocks that are never changed."""
    return float(np.abs((after - before).reshape(blocks, -1)[::2]).max())
