"""Measures a contestant: counted oracles, a clock that stops while points are certified, and certificates."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.certificate import distance_bound

from .clock import now

ORACLES = ("grad_g", "grad_h", "A", "At")


class Finished(Exception):  # noqa: N818 - ends a contestant's run from inside its own call of an oracle
    """Raised when the highest accuracy is certified, or the time limit is reached."""


@dataclass
class Outcome:
    """One run of one contestant with one setting; accuracies and distances are relative to |(x*, y*)|."""

    instance: str
    contestant: str
    setting: dict[str, Any]
    status: str = ""
    # by accuracy: rounds, gradients, products and seconds
    reached: dict[str, dict[str, float]] = field(default_factory=dict)
    certified: float = math.inf
    true: float | None = None
    seconds: float = 0.0
    calls: dict[str, int] = field(default_factory=dict)
    curve: list[tuple[float, int, float]] = field(default_factory=list)  # (seconds, rounds, certified distance)

    def to_dict(self, points: int) -> dict[str, Any]:
        """The outcome in plain values, with at most ``points`` points of the curve."""
        summary = asdict(self)
        keep = set(np.linspace(0, len(self.curve) - 1, points).astype(int).tolist())
        kept = [point for i, point in enumerate(self.curve) if i in keep]
        summary["curve"] = [(float(f"{s:.4g}"), int(k), float(f"{d:.4g}")) for s, k, d in kept]
        return summary


def costs(calls: dict[str, int], seconds: float) -> dict[str, float]:
    """Rounds (the busiest oracle), gradients, products and seconds."""
    return {
        "rounds": max(calls[name] for name in ORACLES),
        "gradients": calls["grad_g"] + calls["grad_h"],
        "products": calls["A"] + calls["At"],
        "seconds": seconds,
    }


class Recorder:
    """The problem with counted oracles, for a peer. Certifying a point is not timed."""

    def __init__(self, f: Saddle, scale: float, accuracies: tuple[float, ...], limit: float, outcome: Outcome) -> None:
        self.f, self.scale, self.limit, self.outcome = f, scale, limit, outcome
        self.open = sorted(accuracies, reverse=True)
        self.calls = dict.fromkeys(ORACLES, 0)
        self.best: tuple[Array, Array] | None = None
        self.best_bound = math.inf
        self.restart_clock()

    def restart_clock(self) -> None:
        """Start the clock again: compilation and factorisations that the peer would keep are not timed."""
        self.started, self.certifying = now(), 0.0

    @property
    def seconds(self) -> float:
        """Time of the contestant alone."""
        return now() - self.started - self.certifying

    # -- counted oracles ---------------------------------------------------------------------------------------------

    def field(self, z: Array) -> Array:
        """F(x, y) of z = (x, y), which is one round. Certificates need F alone, so the point is recorded as well."""
        m = self.f.shape[0]
        x, y = z[:m], z[m:]
        self.count(grad_g=1, grad_h=1, A=1, At=1)
        Fx, Fy = self.f.field(x, y)
        self.record(x, y, norm(Fx), norm(Fy))
        return np.concatenate([Fx, Fy])

    def count(self, **calls: int) -> None:
        """Count calls by oracle."""
        for name, times in calls.items():
            self.calls[name] += times

    # -- certificates -------------------------------------------------------------------------------------------------

    def certify_point(self, x: Array, y: Array) -> None:
        """Certify a point that the peer returns."""
        began = now()
        certificate = self.f.certificate(x, y)
        self.certifying += now() - began
        self.record(x, y, certificate.Fx, certificate.Fy)

    def record(self, x: Array, y: Array, Fx: float, Fy: float) -> None:
        """Record the distance that |F| proves; end the run at the highest accuracy or at the time limit."""
        seconds, began = self.seconds, now()
        bound = distance_bound(self.f.mu_x, self.f.mu_y, Fx, Fy) / self.scale
        if bound < 0.97 * self.best_bound:
            self.best, self.best_bound = (x.copy(), y.copy()), bound
            self.outcome.curve.append((seconds, max(self.calls.values()), bound))
            while self.open and bound <= self.open[0] and self.certified <= self.open[0]:
                self.outcome.reached[f"{self.open.pop(0):g}"] = costs(self.calls, seconds)
        self.certifying += now() - began
        if not self.open:
            raise Finished("certified")
        if seconds > self.limit:
            raise Finished("out of time")

    @property
    def certified(self) -> float:
        """The certificate of the best point, allowance for rounding included, relative to |(x*, y*)|."""
        return math.inf if self.best is None else self.f.certificate(*self.best).distance / self.scale

    def close(self, status: str, solution: Array | None) -> None:
        """Complete the outcome at the end of the run."""
        outcome = self.outcome
        outcome.status, outcome.seconds, outcome.calls = status, self.seconds, dict(self.calls)
        outcome.certified = self.certified
        if solution is not None and self.best is not None:
            outcome.true = norm(np.concatenate(self.best) - solution) / self.scale
