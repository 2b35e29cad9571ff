"""What theory promises for a problem before anything is run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from saddlepoint.errors import ProblemError
from saddlepoint.problem import Saddle
from saddlepoint.theory.aipfb import aipfb_K, aipfb_K1, aipfb_K2
from saddlepoint.theory.dippa import dippa_calls
from saddlepoint.theory.table1 import BALANCED, TABLE1, regime


@dataclass(frozen=True)
class Promise:
    """One row of a prediction.

    ``order`` is the complexity without logarithms; ``calls`` is order times log(1/tol), the promise up to constants.
    ``worst_case`` are the calls of each oracle with every constant of the theorem, for the methods whose inner work the
    paper fixes.
    """

    method: str
    title: str
    formula: str
    order: float
    calls: float
    worst_case: dict[str, int] | None = None


@dataclass(frozen=True)
class Prediction:
    """Promised oracle calls of every row of Table 1, the regime, and the method to take."""

    kx: float
    ky: float
    coupling: float
    tol: float
    regime: str
    recommended: str
    rows: tuple[Promise, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``--json`` prints them."""
        return asdict(self)

    def __repr__(self) -> str:
        head = f"kx = {self.kx:g}, ky = {self.ky:g}, |A|/sqrt(mu_x mu_y) = {self.coupling:g}: {self.regime} coupling"
        lines = [f"  {row.method:16s} {row.calls:12.4g}  {row.formula}" for row in self.rows]
        return "\n".join([head, f"calls to shrink the distance by {self.tol:g}, up to constants:", *lines,
                          f"recommended: {self.recommended}"])  # fmt: skip


def predict(
    f: Saddle | Mapping[str, float] | None = None,
    tol: float = 1e-6,
    *,
    kx: float | None = None,
    ky: float | None = None,
    coupling: float | None = None,
) -> Prediction:
    """What theory promises, for a problem or for its three numbers.

    Args:
        f: a problem; or the three numbers by name, here or as keywords.
        tol: the factor by which the distance to the saddle point is to shrink.
        kx, ky: the condition numbers L_x/mu_x and L_y/mu_y.
        coupling: |A|/sqrt(mu_x mu_y).

    Example:
        >>> import saddlepoint as sp
        >>> sp.predict(kx=1e4, ky=1e2, coupling=300, tol=1e-6).recommended
        'catalyst-dippa'
    """
    if isinstance(f, Mapping):
        return predict(None, tol, **f)
    if f is not None:
        kx, ky, coupling = f.kappa_x, f.kappa_y, f.coupling
    kx, ky = _checked(kx, "kx", 1.0), _checked(ky, "ky", 1.0)
    c, tol = _checked(coupling, "coupling", 0.0), _checked(tol, "tol", 0.0)
    if not 0.0 < tol < 1.0:
        raise ProblemError(f"tol is {tol:g}; expected a number between 0 and 1, a factor on the distance")
    rows = tuple(
        Promise(
            method=row.key,
            title=row.title,
            formula=row.formula,
            order=row.order(kx, ky, c),
            calls=row.order(kx, ky, c) * math.log(1.0 / tol),
            worst_case=_worst_case(row.key, kx, ky, c, tol),
        )
        for row in (*TABLE1[:-1], *BALANCED, TABLE1[-1])
    )
    return Prediction(kx, ky, c, tol, regime(kx, ky, c), recommend(kx, ky, c), rows)


# The constants that the orders hide, relative to DIPPA's, as `saddlepoint table` and `make bench` show them roughly.
CONSTANTS = {"dippa": 1.0, "aipfb": 1.5, "catalyst-dippa": 3.0, "catalyst-aipfb": 4.5}


def recommend(kx: float, ky: float, c: float) -> str:
    """The method of the paper with the smallest promise, once the constants it hides are allowed for."""
    rows = [row for row in (*BALANCED, *TABLE1) if row.key in CONSTANTS]
    return min(rows, key=lambda row: CONSTANTS[row.key] * row.order(kx, ky, c)).key


def _worst_case(key: str, kx: float, ky: float, c: float, tol: float) -> dict[str, int] | None:
    if key == "dippa":
        return dippa_calls(max(kx, ky), c / (kx * ky) ** 0.25, 1.0, tol)._asdict()
    if key == "aipfb":
        K = aipfb_K(c, 1.0, 1.0, 1.0, tol)
        return {"grad_g": K * aipfb_K2(kx, c), "grad_h": K * aipfb_K1(ky, c), "A": K, "At": K}
    return None


def _checked(value: float | None, name: str, low: float) -> float:
    if value is None:
        raise ProblemError(f"{name} is missing; give a problem, or kx, ky and coupling")
    number = float(value)
    if not (math.isfinite(number) and number >= low):
        raise ProblemError(f"{name} is {number:g}; expected a finite number >= {low:g}")
    return number
