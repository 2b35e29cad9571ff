"""Applications with constraints and nonsmooth terms, whose solutions are planted: total variation, and games."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

import numpy as np
from numpy.random import Generator

import saddlepoint as sp

from .applications import SECONDS, Claim
from .draws import between, sizes
from .numbers import Array, Decimals, decimals, length
from .planted import exact_quadratic, plant, power
from .simple import simplex


def _differences(x: Array) -> Array:
    """The differences of neighbours, zero at the last pixel of a line; the first axis has the directions."""
    found = np.zeros((x.ndim, *x.shape), dtype=x.dtype)
    for axis in range(x.ndim):
        inner = tuple(slice(None, -1) if k == axis else slice(None) for k in range(x.ndim))
        found[axis][inner] = np.diff(x, axis=axis)
    return found


def _adjoint(y: Array) -> Array:
    """The transpose of ``_differences``."""
    found = np.zeros(y.shape[1:], dtype=y.dtype)
    for axis in range(y.shape[0]):
        line = np.moveaxis(y[axis], axis, 0)
        moved = np.moveaxis(found, axis, 0)
        moved[:-1] -= line[:-1]
        moved[1:] += line[:-1]
    return found


def total_variation(rng: Generator) -> Iterator[Claim]:
    """Denoising of a signal, or of an image that changes in one direction: the solution is exact.

    Where the image has an edge, the dual field is the weight along it; elsewhere it is any shorter vector.
    """
    flat = rng.random() < 0.5
    unit, weight = power(rng, 60 if rng.random() < 0.3 else 3), 0.0
    weight = unit * power(rng, 3)
    isotropic = bool(rng.random() < 0.6)
    steps = np.cumsum(rng.choice([0.0, 0.0, 1.0, -2.0, 0.5], int(rng.integers(2, 9))))
    x = unit * np.repeat(steps, rng.integers(1, 4))
    if not flat:
        x = np.tile(x, (int(rng.integers(2, 6)), 1))
    edges = _differences(x)
    y = np.zeros_like(edges)
    if y.shape[0] == 1:
        y[:] = weight * rng.choice([0.0, 0.25, -0.5, 0.75, 1.0], y.shape)
    else:
        y[:] = weight * np.array([3.0, 4.0])[:, None, None] * rng.choice([0.0, 0.0625, -0.125, 0.1875], (1, *x.shape))
    y = np.where(np.any(edges != 0.0, axis=0) & (edges == 0.0), 0.0 if isotropic else y, y)
    y = np.where(edges != 0.0, weight * np.sign(edges), y)
    for axis in range(y.shape[0]):  # no differences at the last pixels
        y[axis][tuple(-1 if k == axis else slice(None) for k in range(x.ndim))] = 0.0
    image = x + _adjoint(y)
    if not np.array_equal(decimals(x) + _adjoint(decimals(y)), decimals(image)):
        return
    found = sp.apps.TotalVariation(image, weight, isotropic=isotropic).solve(
        rms=unit * between(rng, -7, -1), max_seconds=SECONDS
    )

    def objective(z: Decimals) -> Decimal:
        K, rest = _differences(z), (z - decimals(image)).ravel()
        if isotropic:
            variation = sum(length(pixel) for pixel in K.reshape(K.shape[0], -1).T)
        else:
            variation = sum(map(abs, K.ravel()))
        return Decimal(rest @ rest / 2 + Decimal(weight) * variation)

    z, exact = decimals(found.image), decimals(x)
    error = length((z - exact).ravel())
    rms = error / Decimal(x.size).sqrt()
    yield Claim("TotalVariation", "rms", found.rms, rms, found.solved, found.message)
    yield Claim("TotalVariation", "gap", found.gap, objective(z) - objective(exact), found.solved, found.message)
    yield Claim("TotalVariation", "|x - x*|", found.result.certificate.distance_x, error, found.solved, found.message)


def game_with_costs(rng: Generator) -> Iterator[Claim]:
    """A game on probabilities in which both players have quadratic costs: the equilibrium is exact."""
    m, n = sizes(rng, 8)
    unit = power(rng, 40 if rng.random() < 0.3 else 4)
    p, q = simplex(rng, m, 0.25, unit), simplex(rng, n, 0.25, unit)
    A = unit * rng.integers(-3, 4, (m, n)).astype(float)
    case = plant(exact_quadratic(rng, m, 1.0, unit), exact_quadratic(rng, n, 1.0, unit), A, p, q)
    exact = case.exact
    game = sp.apps.MatrixGame(A.T, exact.h.smooth, exact.g.smooth)  # rows belong to y, who maximises
    found = game.solve(tol=unit * between(rng, -10, -2), max_seconds=SECONDS)
    dx, dy = exact.errors(found.column, found.row)
    yield Claim("MatrixGame, costs", "distance", found.distance, dx + dy, found.solved, found.message)
    gap = exact.gap(found.column, found.row)
    if gap is not None:
        yield Claim("MatrixGame, costs", "exploitability", found.exploitability, gap, found.solved, found.message)


NONSMOOTH: dict[str, Callable[[Generator], Iterator[Claim]]] = {
    "application: total variation": total_variation,
    "application: game with costs": game_with_costs,
}
