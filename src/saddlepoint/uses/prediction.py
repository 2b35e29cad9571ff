"""Predict the oracle calls of every method for a problem, by theory alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_number, short_repr
from saddlepoint.methods.registry import make_method, method_names, promised_rows
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.auto import choose
from saddlepoint.solving.recommendation import recommend
from saddlepoint.theory.aipfb import aipfb_K, aipfb_K1, aipfb_K2
from saddlepoint.theory.dippa import dippa_calls
from saddlepoint.theory.lower import chain_N, forced_rounds
from saddlepoint.theory.table1 import Row, regime


@dataclass(frozen=True)
class Promise:
    """One row of a prediction.

    ``grad_g``, ``grad_h`` and ``products`` are calls without logarithms: gradients of g and of h, and products with
    each of A and A'; ``order`` is the largest of them. ``calls`` is order times log(1/tol), the promise up to
    constants; for the lower bound it is the number of rounds that the hardest chain forces. ``worst_case`` are the
    calls of each oracle with every constant of the theorem, for the methods whose inner work the paper fixes.
    """

    method: str
    title: str
    formula: str
    grad_g: float
    grad_h: float
    products: float
    order: float
    calls: float
    worst_case: dict[str, int] | None = None


@dataclass(frozen=True)
class Prediction:
    """Promised oracle calls of every method, the regime, the lower bound, and the method to take.

    ``N`` is the condition number of the class, and ``forced_rounds`` the rounds (one call of each oracle) that the
    hardest problem of the class forces on any first-order method: ``theory.chain_N`` and ``theory.forced_rounds``.
    """

    kx: float
    ky: float
    coupling: float
    tol: float
    regime: str
    N: float
    forced_rounds: int
    recommended: str
    why: str
    rows: tuple[Promise, ...]

    def to_dict(self) -> dict[str, Any]:
        """The prediction as plain values, as ``--json`` prints it."""
        return asdict(self)

    def __repr__(self) -> str:
        c = f"c = |A|/sqrt(mu_x mu_y) = {self.coupling:g}"
        head = f"kx = {self.kx:g}, ky = {self.ky:g}, k = max(kx, ky), {c}: {self.regime} coupling"
        forced = f"N = {self.N:.4g}: the hardest such problem forces {self.forced_rounds} rounds of all four oracles"
        lines = [f"  {row.method:16s} {row.calls:12.4g}  {row.formula}" for row in self.rows]
        return "\n".join([head, forced, f"calls to shrink the distance by {self.tol:g}, up to constants:", *lines,
                          f"recommended: {self.recommended}, because {self.why}"])  # fmt: skip


def predict(
    f: Saddle | Mapping[str, float] | None = None,
    tol: float = 1e-6,
    *,
    kx: float | None = None,
    ky: float | None = None,
    coupling: float | None = None,
) -> Prediction:
    """The oracle calls that theory promises, for a problem or for its three condition numbers.

    With simple terms in the problem, methods that cannot take them are left out. The bounds of the others are the same.

    Args:
        f: a problem, or a mapping with kx, ky and coupling; these can be given as keywords instead.
        tol: the factor by which the distance to the saddle point is to shrink.
        kx, ky: the condition numbers L_x/mu_x and L_y/mu_y.
        coupling: |A|/sqrt(mu_x mu_y).

    Example:
        >>> import saddlepoint as sp
        >>> sp.predict(kx=1e4, ky=1e2, coupling=300, tol=1e-6).recommended
        'anderson-condat-vu'
    """
    given = {"kx": kx, "ky": ky, "coupling": coupling}
    twice = [name for name, number in given.items() if number is not None] if f is not None else []
    if twice:
        raise ProblemError(f"both f and {twice[0]} are given; expected a problem, or its three numbers")
    if isinstance(f, Mapping):
        names = tuple(given)
        for name in f:
            if name not in names:
                raise ProblemError(f"f has the key {short_repr(name)}; expected {', '.join(names)}")
        return predict(None, tol, **f)
    if not (f is None or isinstance(f, Saddle)):
        raise ProblemError(f"f is {short_repr(f)}; expected a Saddle(g, h, A), or kx, ky and coupling by name")
    if f is not None:
        kx, ky, coupling = _numbers_of(f)
    kx, ky = _checked(kx, "kx", 1.0), _checked(ky, "ky", 1.0)
    c, tol = _checked(coupling, "coupling", 0.0), _checked(tol, "tol", 0.0)
    if not 0.0 < tol < 1.0:
        raise ProblemError(f"tol is {tol:g}; expected a number between 0 and 1, a factor on the distance")
    try:
        forced = forced_rounds(kx, ky, c, tol)
        *rows, low = (_promise(row, kx, ky, c, tol) for row in promised_rows() if f is None or _takes_terms(row.key, f))
    except ArithmeticError:
        raise ProblemError(
            f"the promises for kx = {kx:g}, ky = {ky:g}, coupling = {c:g} and tol = {tol:g} are not "
            "finite; give numbers that are less extreme"
        ) from None
    low = replace(low, calls=float(forced))
    N = chain_N(kx, ky, c)
    if f is None:
        name, why = recommend(kx, ky, c)
    else:
        plan = choose(f)
        name, why = plan.methods[0].label, plan.reason
    return Prediction(kx, ky, c, tol, regime(kx, ky, c), N, forced, name, why, (*rows, low))


def _numbers_of(f: Saddle) -> tuple[float, float, float]:
    """The three condition numbers of a problem; a ProblemError where theory promises nothing."""
    for name, mu in (("g", f.mu_x), ("h", f.mu_y)):
        if mu == 0.0:
            target = "gap" if f.one_sided is None else "tol"
            raise ProblemError(
                f"{name} is not strongly convex (mu = 0), and the theorems behind predictions are about strongly "
                f"convex functions; a run of solve with {target}=1e-6 shows what the methods for mu = 0 take"
            )
    if math.isnan(f.kappa_x + f.kappa_y):
        raise ProblemError("mu of g or h is unknown, and without it there is nothing to predict; give mu to Smooth")
    return f.numbers


def _takes_terms(name: str, f: Saddle) -> bool:
    """Whether the method of this name takes the simple terms of the problem; the lower bound is no method."""
    return not f.has_simple or name not in method_names() or not make_method(name).needs.smooth


def _promise(row: Row, kx: float, ky: float, c: float, tol: float) -> Promise:
    order = row.order(kx, ky, c)
    grad_g, grad_h, products = (
        order if fewer is None else fewer(kx, ky, c)
        for fewer in (row.complexity.grad_g, row.complexity.grad_h, row.complexity.products)
    )
    return Promise(
        method=row.key,
        title=row.title,
        formula=row.formula,
        grad_g=grad_g,
        grad_h=grad_h,
        products=products,
        order=order,
        calls=order * math.log(1.0 / tol),
        worst_case=_worst_case(row.key, kx, ky, c, tol),
    )


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
    number = as_number(value, name)
    if not (math.isfinite(number) and number >= low):
        raise ProblemError(f"{name} is {number:g}; expected a finite number >= {low:g}")
    return number
