"""Which method, and why."""

from __future__ import annotations

from saddlepoint.methods.base import Method, make_method
from saddlepoint.prediction import predict
from saddlepoint.problem import Saddle


def choose(f: Saddle, tol: float) -> tuple[Method, str]:
    """The method with the smallest promise for this problem, and the reason in words."""
    if f.norm == 0.0:
        return make_method("aipfb"), "auto chose aipfb: the players are not coupled"
    p = predict(f)
    why = f"kappa_x = {p.kx:.3g}, kappa_y = {p.ky:.3g}, {p.regime} coupling {p.coupling:.3g}"
    return make_method(p.recommended), f"auto chose {p.recommended}: {why}"
