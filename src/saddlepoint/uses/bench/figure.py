"""The data of Figure 1: bounds against |A| for fixed condition numbers, and the calls of real runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.registry import method_names
from saddlepoint.theory.table1 import best_response_order, catalyst_dippa_order, lower_order
from saddlepoint.uses.bench.measure import Measurement, forced_on_chain, measure_along

# The methods that are drawn by default: one of every kind, so that the picture stays readable.
METHODS = ("extragradient", "catalyst-aipfb", "catalyst-dippa", "dippa", "apdg", "lpd", "lpd-gs", "lpd-slide")


class FigureData(NamedTuple):
    """The data of Figure 1. The bounds are orders times log(1/tol); |A| is in units of L_x = L_y."""

    kx: float
    ky: float
    tol: float
    norms: Array
    bounds: dict[str, Array]
    forced: Array  # the rounds that the chain forces on every method, at the norms
    runs: tuple[Measurement, ...]

    def norm_of(self, coupling: float) -> float:
        """|A|/L of a coupling condition number."""
        return coupling / math.sqrt(self.kx * self.ky)

    def to_dict(self) -> dict[str, Any]:
        """The data as plain values, as ``--json`` prints them."""
        return {
            "kx": self.kx,
            "ky": self.ky,
            "tol": self.tol,
            "norms": self.norms.tolist(),
            "bounds": {name: bound.tolist() for name, bound in self.bounds.items()},
            "forced": self.forced.tolist(),
            "runs": [run._asdict() | {"norm": self.norm_of(run.coupling)} for run in self.runs],
        }


def figure_data(
    kx: float = 1000.0,
    ky: float = 30.0,
    tol: float = 1e-6,
    methods: Iterable[str] | None = None,
    points: int = 8,
    max_seconds: float = 10.0,
    tell: Callable[[Measurement], None] = lambda _: None,
) -> FigureData:
    """The bounds on a fine grid of |A|, and runs of the methods on ``points`` of them (0 for the bounds alone).

    A method that takes too long at one coupling is left out at the larger ones.
    """
    scale = math.sqrt(kx * ky)
    couplings = np.geomspace(0.3, 3.0 * scale, 120)
    bounds = {
        "Wang and Li 2020, Catalyst-AIPFB": best_response_order,
        "this paper (Catalyst-DIPPA)": catalyst_dippa_order,
        "lower bound": lower_order,
    }
    nats = math.log(1.0 / tol)
    curves = {name: nats * np.array([order(kx, ky, c) for c in couplings]) for name, order in bounds.items()}
    forced = np.array([forced_on_chain(kx, ky, float(c), tol) for c in couplings])
    names = [name for name in METHODS if name in method_names()] if methods is None else list(methods)
    along = [(kx, ky, float(c)) for c in np.geomspace(0.5, 2.5 * scale, points)]
    runs = [run for name in names for run in measure_along(name, along, tol, max_seconds, tell)]
    return FigureData(kx, ky, tol, couplings / scale, curves, forced, tuple(runs))
