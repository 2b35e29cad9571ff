"""Example problems: random ones with given condition numbers, the chain of the lower bound, and the demo."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_banded
from scipy.sparse import diags_array, eye_array

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_count, as_number, positive
from saddlepoint.parts.functions import LogCosh, Logistic, Quadratic
from saddlepoint.problems.saddle import Saddle


def random_quadratic(
    m: int, n: int, kx: float, ky: float, coupling: float, *, L_x: float = 1.0, L_y: float = 1.0, seed: int = 0
) -> Saddle:
    """Dense quadratic g and h with logarithmically spaced eigenvalues, and a dense Gaussian A.

    Args:
        m, n: the numbers of variables of x and y.
        kx, ky: the condition numbers.
        coupling: |A|/sqrt(mu_x mu_y).
        L_x, L_y: the largest eigenvalues.
        seed: the seed of the random numbers.

    Example:
        >>> from saddlepoint.problems.generators import random_quadratic
        >>> f = random_quadratic(4, 3, kx=10.0, ky=5.0, coupling=2.0)
        >>> f.shape, round(f.kappa_x, 3), round(f.kappa_y, 3)
        ((4, 3), 10.0, 5.0)
    """
    _check(m=m, n=n, kx=kx, ky=ky, coupling=coupling, L_x=L_x, L_y=L_y, seed=seed)
    rng = np.random.default_rng(seed)
    norm = coupling * math.sqrt(L_x / kx) * math.sqrt(L_y / ky)
    g = Quadratic(_spd(rng, m, L_x / kx, L_x), rng.standard_normal(m))
    h = Quadratic(_spd(rng, n, L_y / ky, L_y), rng.standard_normal(n))
    return Saddle(g, h, _gaussian(rng, m, n, norm))


def random_logistic(
    m: int, n: int, kx: float, ky: float, coupling: float, *, L_x: float = 1.0, L_y: float = 1.0, seed: int = 0
) -> Saddle:
    """A logistic risk for x and a log-cosh risk for y, both of dense data, so that no prox is cheap.

    The arguments are those of ``random_quadratic``; L_x and L_y are the smoothness constants.
    """
    _check(m=m, n=n, kx=kx, ky=ky, coupling=coupling, L_x=L_x, L_y=L_y, seed=seed)
    rng = np.random.default_rng(seed)
    norm = coupling * math.sqrt(L_x / kx) * math.sqrt(L_y / ky)
    # The curvature of the losses is at most 1/4 and 1: |D|^2/(4 N) + l2 = L_x and |E|^2/N + l2 = L_y.
    D = _gaussian(rng, 2 * m, m, math.sqrt(4 * 2 * m * (L_x - L_x / kx)))
    E = _gaussian(rng, 2 * n, n, math.sqrt(2 * n * (L_y - L_y / ky)))
    labels = np.where(rng.random(2 * m) < 0.5, -1.0, 1.0)
    g = Logistic(D, labels, L_x / kx)
    h = LogCosh(E, 3.0 * rng.standard_normal(2 * n), L_y / ky)
    return Saddle(g, h, _gaussian(rng, m, n, norm))


def chain(n: int, kx: float, ky: float, coupling: float, *, L_x: float = 1.0, L_y: float = 1.0) -> Saddle:
    """The chain on which first-order methods are slowest (see ``theory.lower``).

    With D the bidiagonal difference matrix, g = x'((L_x - mu_x)/4 D D' + mu_x)x/2 - x_1,
    h = y'((L_y - mu_y)/4 D'D + mu_y)y/2 and A = |A|/2 D. Each query can make one more coordinate of an iterate nonzero.
    Zhang, Hong and Zhang, "On lower iteration complexity bounds for the convex concave saddle point problems", Math.
    Prog. 2022.

    Args:
        n: the numbers of variables of x and of y.
        kx, ky: the condition numbers; the linear term acts on x, so the chain is hardest with kx >= ky.
        coupling: |A|/sqrt(mu_x mu_y), in the limit of large n.
        L_x, L_y: bounds on the eigenvalues, in the same limit.
    """
    _check(n=n, kx=kx, ky=ky, coupling=coupling, L_x=L_x, L_y=L_y)
    mu_x, mu_y = L_x / kx, L_y / ky
    D = diags_array([np.ones(n), -np.ones(n)], offsets=[0, -1], shape=(n, n), format="csr")
    first = np.zeros(n)
    first[0] = -1.0
    P = 0.25 * (L_x - mu_x) * (D @ D.T) + mu_x * eye_array(n)
    Q = 0.25 * (L_y - mu_y) * (D.T @ D) + mu_y * eye_array(n)
    A = 0.5 * coupling * math.sqrt(mu_x * mu_y) * D
    return Saddle(Quadratic(P.tocsr(), first, mu=mu_x, L=L_x), Quadratic(Q.tocsr(), mu=mu_y, L=L_y), A)


def chain_solution(
    n: int, kx: float, ky: float, coupling: float, *, L_x: float = 1.0, L_y: float = 1.0
) -> tuple[Array, Array]:
    """The saddle point (x*, y*) of ``chain``, to rounding, in O(n).

    Eliminating y gives [(bx S + mu_x)(by S + mu_y) + |A|^2/4 S] x* = (by S + mu_y) e_1, S = D D', bx = (L_x - mu_x)/4,
    by = (L_y - mu_y)/4. That multiplies the condition numbers; here the field itself is solved, in the order
    x_1, y_1, x_2, y_2, ..., in which it has two diagonals on either side.
    """
    _check(n=n, kx=kx, ky=ky, coupling=coupling, L_x=L_x, L_y=L_y)
    mu_x, mu_y = L_x / kx, L_y / ky
    bx, by, a = 0.25 * (L_x - mu_x), 0.25 * (L_y - mu_y), 0.5 * coupling * math.sqrt(mu_x * mu_y)
    bands = np.zeros((5, 2 * n))  # bands[2 + i - j, j] is the entry (i, j)
    bands[[0, 4], 0::2], bands[[0, 4], 1::2] = -bx, -by
    bands[2, 0::2], bands[2, 1::2] = 2.0 * bx + mu_x, 2.0 * by + mu_y
    bands[2, 0], bands[2, -1] = bx + mu_x, by + mu_y
    bands[1], bands[3] = a, -a  # A above and below x, -A' on either side of y
    force = np.zeros(2 * n)
    force[0] = 1.0
    z = solve_banded((2, 2), bands, force)
    return z[0::2].copy(), z[1::2].copy()


def demo() -> Saddle:
    """The default example: a learner against an adversary, unbalanced, not quadratic, without a cheap prox.

    The variables x are the weights of a regularised logistic regression on 1000 samples of 400 features of decreasing
    size. The variables y shift the features, at a smooth cost that is better conditioned.
    """
    rng = np.random.default_rng(7)
    m, n = 400, 300
    D = rng.standard_normal((1000, m)) / np.sqrt(np.arange(1, m + 1))
    labels = np.where(D @ rng.standard_normal(m) + 0.5 * rng.standard_normal(1000) > 0, 1.0, -1.0)
    E = rng.standard_normal((2 * n, n))
    g = Logistic(D, labels, 1e-4)
    h = LogCosh(E, rng.standard_normal(2 * n), 0.1)
    return Saddle(g, h, _gaussian(rng, m, n, 0.5))


def _check(**given: float) -> None:
    """Raise a ProblemError for constants that no problem can have."""
    for name, value in given.items():
        if name in ("m", "n", "seed"):
            as_count(value, name, 0 if name == "seed" else 1)
        elif name == "coupling":
            if not 0.0 <= as_number(value, name) < math.inf:
                raise ProblemError(f"coupling is {value}; expected a finite number that is not negative")
        elif positive(value, name) < 1.0 and name in ("kx", "ky"):
            raise ProblemError(f"{name} is {value}; expected a number >= 1, because L is not below mu")


def _spd(rng: np.random.Generator, n: int, low: float, high: float) -> Array:
    """A random symmetric matrix with eigenvalues from low to high."""
    basis, _ = np.linalg.qr(rng.standard_normal((n, n)))
    values = np.geomspace(low, high, n)
    matrix = (basis * values) @ basis.T
    return np.asarray(0.5 * (matrix + matrix.T))


def _gaussian(rng: np.random.Generator, m: int, n: int, norm: float) -> Array:
    A = rng.standard_normal((m, n))
    return np.asarray(A * (norm / np.linalg.norm(A, 2)))
