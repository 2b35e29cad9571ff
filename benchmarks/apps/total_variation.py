"""Total variation: CPU seconds to a proven error, beside Clarabel on the conic program."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from timing import cpu_seconds

from saddlepoint.apps import TotalVariation
from saddlepoint.ground.arrays import Array

cp: Any = import_module("cvxpy")
NAME = "total variation"


def rows(quick: bool) -> Iterator[list[str]]:
    """Application, task, solver, seconds, accuracy."""
    n = 32 if quick else 64
    image, weight = noisy(n), 0.15
    task = f"denoising {n} x {n}"
    for rms in (1e-2, 1e-4):
        seconds, found = cpu_seconds(partial(TotalVariation(image, weight).solve, rms=rms))
        yield [NAME, task, "saddlepoint", f"{seconds:.3g}", f"proven rms error {found.rms:.0e}"]
    seconds, x = cpu_seconds(partial(clarabel, image, weight), 1)
    apart = np.sqrt(np.mean((x - found.image) ** 2))
    yield [NAME, task, "Clarabel (CVXPY)", f"{seconds:.3g}", f"rms {apart:.0e} from ours"]


def noisy(n: int) -> Array:
    """A disc on two regions, with noise."""
    row, column = np.mgrid[:n, :n] / n
    picture = np.where(row + 0.5 * column > 0.8, 0.9, 0.2)
    picture = np.where((row - 0.35) ** 2 + (column - 0.4) ** 2 < 0.05, 0.5 + 0.5 * column, picture)
    return np.asarray(picture + 0.15 * np.random.default_rng(0).standard_normal((n, n)))


def clarabel(image: Array, weight: float) -> Array:
    """The same problem as a second-order cone program."""
    x = cp.Variable(image.shape)
    down = cp.vstack([x[1:] - x[:-1], np.zeros((1, image.shape[1]))])
    right = cp.hstack([x[:, 1:] - x[:, :-1], np.zeros((image.shape[0], 1))])
    both = cp.vstack([cp.vec(down, order="C"), cp.vec(right, order="C")])
    variation = cp.sum(cp.norm(both, 2, axis=0))
    cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x - image) + weight * variation)).solve(solver="CLARABEL")
    return np.asarray(x.value)
