"""The explorer: an HTML page with the bounds of every method for given numbers, by the formulas of `theory`."""

from __future__ import annotations

import math
import re
from html import escape, unescape
from typing import Any, NamedTuple

from saddlepoint import __version__
from saddlepoint.methods.registry import make_method, promised_rows
from saddlepoint.solving.recommendation import recommend
from saddlepoint.theory.lower import chain_N, forced_rounds
from saddlepoint.theory.table1 import LOWER_BOUND, TABLE1, THEOREMS, Row, catalyst_dippa_order, lower_order, regime
from saddlepoint.uses.bench.figure import METHODS
from saddlepoint.uses.pages.formulas import as_html
from saddlepoint.uses.pages.javascript import javascript
from saddlepoint.uses.pages.page import asset, page

# -- further formulas of the page --------------------------------------------------------------------------------------


def coupling_of(norm: float, kx: float, ky: float) -> float:
    """c = |A|/sqrt(mu_x mu_y) where |A| is ``norm`` times L = sqrt(L_x L_y)."""
    return norm * math.sqrt(kx) * math.sqrt(ky)


def norm_of(c: float, kx: float, ky: float) -> float:
    """|A|/L of a coupling condition number."""
    return c / math.sqrt(kx) / math.sqrt(ky)


def weak_until(kx: float, ky: float) -> float:
    """The c up to which coupling is weak."""
    return lower_order(kx, ky, 0.0)


def strong_from(kx: float, ky: float) -> float:
    """The c from which coupling is strong, if it is not below ``weak_until``."""
    return catalyst_dippa_order(kx, ky, 0.0)


def promised(order: float, tol: float) -> float:
    """The calls that shrink the distance by ``tol``, up to constants."""
    return order * math.log(1.0 / tol)


def total_cost(of_g: float, of_h: float, products: float, grad_g: float, grad_h: float, product: float) -> float:
    """The cost of so many gradients of g and of h and products with each of A and A', from the price of one each."""
    return of_g * grad_g + of_h * grad_h + products * (product + product)


def least_cost(rounds: float, grad_g: float, grad_h: float, product: float) -> float:
    """The least cost of a method that needs so many rounds, in whatever order it makes its calls.

    A call reaches at most one more coordinate (``theory.calls_reach``), so there are at least as many calls as rounds.
    """
    return rounds * min(grad_g, grad_h, product)


# The functions that the script of the page calls.
FORMULAS = (coupling_of, norm_of, weak_until, strong_from, promised, total_cost, least_cost,
            chain_N, forced_rounds, regime, recommend)  # fmt: skip

# -- controls ----------------------------------------------------------------------------------------------------------


class Control(NamedTuple):
    """A logarithmic slider from ``low`` to ``high``, with a field for any number from ``least`` to ``most``."""

    key: str
    symbol: str
    label: str
    value: float
    low: float
    high: float
    least: float
    most: float


EXTREME = 1e15  # largest number that a field accepts
PROBLEM = (  # the controls of the problem
    Control("kx", "κ_x", "L_x/μ_x, conditioning of g", 1000.0, 1.0, 1e8, 1.0, EXTREME),
    Control("ky", "κ_y", "L_y/μ_y, conditioning of h", 30.0, 1.0, 1e8, 1.0, EXTREME),
    Control("norm", "|A|/L", "coupling, L = √(L_x L_y)", 0.3, 1e-4, 1e3, 0.0, EXTREME),
    Control("tol", "tol", "factor on the distance", 1e-6, 1e-1, 1e-15, 1e-300, 0.999),
)
COSTS = (  # the controls of the costs of oracles
    Control("g", "∇g", "a gradient of g", 1.0, 1e-2, 1e4, 1e-9, 1e9),
    Control("h", "∇h", "a gradient of h", 1.0, 1e-2, 1e4, 1e-9, 1e9),
    Control("A", "A y, A′x", "a product with A or A′", 1.0, 1e-2, 1e4, 1e-9, 1e9),
)
# A field without a slider: |A| in other units.
COUPLING = Control("c", "c", "|A|/√(μ_x μ_y)", 0.0, 0.0, 0.0, 0.0, EXTREME)

REGIMES = {
    "weak": "Wang and Li's bound and Catalyst-AIPFB's are the paper's smallest",
    "intermediate": "Catalyst-DIPPA's bound is the paper's smallest",
    "strong": "Catalyst-DIPPA's bound meets the lower bound",
}

RATIO = "|A|/sqrt(L_x L_y)"  # as reasons for a recommendation have it


def explorer_page() -> str:
    """The explorer as one HTML page."""
    body = asset("explorer.html")
    for name, text in (
        ("problem", "".join(map(_markup, PROBLEM))),
        ("costs", "".join(map(_markup, COSTS))),
        ("version", escape(__version__)),
    ):
        body = body.replace(f"<!-- {name} -->", text)
    body = re.sub(r"<!-- formula: (.+?) -->", lambda found: as_html(unescape(found[1])), body)
    rows = explorer_rows()
    named = [order for row in rows for order in row.complexity[1:] if order is not None]
    data = {
        "controls": [control._asdict() for control in (*PROBLEM, *COSTS, COUPLING)],
        "rows": [_entry(row) for row in rows],
        "shown": [*METHODS, _identity(rows[-1])],
        "regimes": REGIMES,
        "ratio": {"text": RATIO, "formula": as_html(RATIO)},
    }
    code = javascript("THEORY", *named, *FORMULAS)
    return page("saddlepoint explorer", body, [code, "explorer.js"], data, ["explorer.css"])


def explorer_rows() -> list[Row]:
    """Table 1 as printed, then every method whose promise differs from what is printed there, then the lower bound."""
    printed = {(row.key, row.order) for row in TABLE1}
    return [*TABLE1, *(row for row in promised_rows() if (row.key, row.order) not in printed)]


def _best(row: Row) -> bool:
    """Whether the row has the best bound known for its method."""
    return (row.key, row.order) in {(one.key, one.order) for one in promised_rows()}


def _identity(row: Row) -> str:
    return row.key.replace(" ", "-") + ("" if _best(row) else "-table-1")


def _entry(row: Row) -> dict[str, Any]:
    lower, best, complexity = row.key == LOWER_BOUND, _best(row), row.complexity
    method = None if lower else make_method(row.key)
    source = "Table 1" if row in TABLE1 else "the paper" if method and "xie2021" in method.works else "since"
    orders = {"grad_g": complexity.grad_g, "grad_h": complexity.grad_h, "products": complexity.products}
    return {
        "id": _identity(row),
        "name": row.key if best else f"{row.key}, Table 1",
        "method": None if lower else row.key,
        "title": row.title,
        "formula": as_html(row.formula),
        "source": source,
        "theorem": f"Theorem {THEOREMS[row.key]}" if row.key in THEOREMS else None,
        "best": best and not lower,
        "forced": lower and best,
        "quadratic": method is not None and method.needs.quadratic,
        "order": row.order.__name__,
    } | {name: None if order is None else order.__name__ for name, order in orders.items()}


def _markup(control: Control) -> str:
    """The markup of a field and a slider; the coupling has a second field."""
    key = control.key
    slider = f'<input id="{key}-slider" type="range" min="0" step="1" aria-labelledby="{key}-label">'
    second = _field(COUPLING) if key == "norm" else ""
    return f'<div class="control">{_field(control)}{slider}{second}</div>'


def _field(control: Control) -> str:
    """The markup of a label, a field and a place for error messages."""
    key, name = control.key, f'<b>{_pretty(control.symbol)}</b> <span class="faint">{_pretty(control.label)}</span>'
    return (
        f'<div class="given"><label id="{key}-label" for="{key}-field">{name}</label>'
        f'<input id="{key}-field" inputmode="decimal" autocomplete="off" spellcheck="false" '
        f'aria-describedby="{key}-wrong"></div><p class="wrong" id="{key}-wrong" role="alert"></p>'
    )


def _pretty(text: str) -> str:
    """The text as markup, in which the letter after an underscore is a subscript."""
    parts = escape(text).split("_")
    return parts[0] + "".join(f"<sub>{part[0]}</sub>{part[1:]}" for part in parts[1:])
