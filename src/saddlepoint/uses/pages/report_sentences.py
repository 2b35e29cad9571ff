"""Numbers and sentences about results, for the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from saddlepoint.solving.result import Result
from saddlepoint.theory.certificate import Certificate
from saddlepoint.uses.pages.report_table import format_number

ACCURACY = {  # what is proven of an answer, by the argument of solve
    "tol": "to be within {} of the saddle point",
    "rtol": "to be within {} times |x*| + |y*| of the saddle point",
    "gap": "to have a duality gap of at most {}",
}
ORACLES = {"grad_g": "∇g", "grad_h": "∇h", "A": "A", "At": "A′"}


def as_float(value: Any) -> float:
    """A value from a file as a number; NaN if it is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def calls(result: Result) -> dict[str, int]:
    """The calls of each oracle; 0 where the file does not have them."""
    counts = {name: as_float(result.calls.get(name, 0)) for name in ORACLES}
    return {name: int(count) if math.isfinite(count) else 0 for name, count in counts.items()}


def rounds(result: Result) -> int:
    """The calls of the busiest oracle."""
    return max(calls(result).values())


def tolerance(result: Result) -> float:
    """The tolerance that was asked for; NaN if it is unknown."""
    return as_float(result.provenance.get("tol"))


def target(result: Result) -> str:
    """What the tolerance is about: "tol" for the distance, "rtol" for the relative distance, "gap" for the gap."""
    asked = result.provenance.get("target")
    return asked if isinstance(asked, str) and asked in ACCURACY else "tol"


def constants(result: Result) -> dict[str, float]:
    """mu_x, L_x, mu_y, L_y and |A| as the run knew them; NaN where it did not."""
    stored = result.provenance.get("constants")
    known: Mapping[str, Any] = stored if isinstance(stored, Mapping) else {}
    norm = known.get("norm")
    found = {name: as_float(known.get(name)) for name in ("mu_x", "L_x", "mu_y", "L_y")}
    return found | {"norm": as_float(norm.get("upper")) if isinstance(norm, Mapping) else math.nan}


def closest(results: Mapping[str, Result]) -> str:
    """The run with the smallest certified distance, or gap without one; of equal ones that of the fewest rounds."""

    def order(name: str) -> tuple[float, float, int]:
        certificate = results[name].certificate
        distance = _or_inf(certificate.distance)
        return distance, 0.0 if distance < math.inf else _or_inf(certificate.gap), rounds(results[name])

    return min(results, key=order)


def verdict(results: Mapping[str, Result]) -> str:
    """A sentence that says how the runs ended."""
    if len(results) == 1:
        (result,) = results.values()
        return f"{_began(result)}: {_proven(result)}."
    solved = [name for name, result in results.items() if result.solved]
    if not solved:
        best = closest(results)
        return f"None of the {len(results)} runs is solved. The closest is {best}: {_proven(results[best])}."
    tols = {tolerance(results[name]) for name in solved}
    targets = {target(results[name]) for name in solved}
    within = f"{format_number(max(tols))}" if len(tols) == 1 and not math.isnan(max(tols)) else "its tolerance"
    proof = f"proven {ACCURACY[targets.pop()].format(within) if len(targets) == 1 else 'to be as good as asked for'}"
    if len(solved) == len(results):
        return f"All {len(results)} runs are solved: every answer is {proof}."
    count = f"{len(solved)} of {len(results)} runs {'is' if len(solved) == 1 else 'are'} solved"
    ends = [f"{name} ({result.status})" for name, result in results.items() if not result.solved]
    return f"{count}, with an answer {proof}. Not solved: {', '.join(ends)}."


def _began(result: Result) -> str:
    return "Solved" if result.solved else f"Not solved, {result.status}"


def _proven(result: Result) -> str:
    certificate = result.certificate
    if certificate.distance == math.inf > certificate.gap:
        return f"the duality gap is proven to be at most {format_number(certificate.gap)}{_one_side(certificate)}"
    if not math.isfinite(certificate.distance):
        return f"no distance is certified; the residual |F| is {format_number(certificate.residual)}"
    return (
        f"the answer is proven to be within {format_number(certificate.distance)} of the saddle point, and "
        f"its duality gap to be at most {format_number(certificate.gap)}"
    )


def _one_side(certificate: Certificate) -> str:
    """The distance of the one player whose function is strongly convex, as the end of a sentence."""
    sides = (("x", certificate.distance_x), ("y", certificate.distance_y))
    return "".join(f", and |{z} − {z}*| at most {format_number(of)}" for z, of in sides if math.isfinite(of))


FORMULA = (
    "μ<sub>x</sub>|x − x*|² + μ<sub>y</sub>|y − y*|² &nbsp;≤&nbsp; |F<sub>x</sub>|²/μ<sub>x</sub> + "
    "|F<sub>y</sub>|²/μ<sub>y</sub>"
)
TERMS = (
    "<p>Here F<sub>x</sub> and F<sub>y</sub> contain one more vector for each simple term p: a vector s for which the "
    "conjugate p*(s) is finite. E is the sum of the Fenchel gaps p(x) + p*(s) − ⟨s, x⟩, which are not negative, and "
    "zero where s is a subgradient of p at x.</p>"
)


def proof(result: Result) -> Sequence[str]:
    """Paragraphs of markup that say what the certificate proves, and why."""
    certificate, known = result.certificate, constants(result)
    fx, fy = format_number(certificate.Fx), format_number(certificate.Fy)
    if certificate.distance == math.inf > certificate.gap:
        return [
            f'<p class="claim">duality gap ≤ <strong>{format_number(certificate.gap)}</strong>'
            f"{_one_side(certificate)}</p>",
            f"<p>No distance of both x and y is certified, because {_why_none(result, known)}. The gap is "
            "max<sub>y′</sub> f(x, y′) − min<sub>x′</sub> f(x′, y), which is zero at saddle points and nowhere else. "
            "The proof needs one query at the returned point: the functions are bounded by their tangents there, and "
            "the variables of such a player are bounded.</p>",
        ]
    if not math.isfinite(certificate.distance):
        return [
            f"<p>No distance is certified, because {_why_none(result, known)}. What is known of the returned point is "
            f"its residual: |F| = {format_number(certificate.residual)}, and F is zero at the "
            "saddle point and nowhere else.</p>"
        ]
    mu, terms = "", bool(result.provenance.get("simple"))
    if math.isfinite(known["mu_x"] + known["mu_y"]):
        mu = f", μ<sub>x</sub> = {format_number(known['mu_x'])} and μ<sub>y</sub> = {format_number(known['mu_y'])}"
    return [
        f'<p class="claim">|x − x*| + |y − y*| ≤ <strong>{format_number(certificate.distance)}</strong>, duality gap ≤ '
        f"<strong>{format_number(certificate.gap)}</strong></p>",
        f"<p>Separately, |x − x*| ≤ {format_number(certificate.distance_x)} and "
        f"|y − y*| ≤ {format_number(certificate.distance_y)}.</p>",
        "<p>The proof needs one query at the returned point. In float64 it gave "
        f"F<sub>x</sub> = ∇g(x) + A y with |F<sub>x</sub>| = {fx} and F<sub>y</sub> = ∇h(y) − A′x with "
        f"|F<sub>y</sub>| = {fy}. As g and h are strongly convex{mu},</p>",
        f'<p class="formula">{FORMULA}{" + 2 E" if terms else ""}.</p>',
        TERMS if terms else "",
        "<p>By Cauchy and Schwarz the distance is at most √(1/μ<sub>x</sub> + 1/μ<sub>y</sub>) times the root of the "
        "right-hand side, and the duality gap at most half of that side. Of the distance, "
        f"{format_number(certificate.rounding)} allows for {_errors(certificate)}.</p>",
    ]


def _errors(certificate: Certificate) -> str:
    """The errors of a query that the certificate allows for."""
    noise = [("g", certificate.noise_x), ("h", certificate.noise_y)]
    found = [f"{format_number(level)} in the gradient of {name}" for name, level in noise if level > 0.0]
    measured = f" and for noise, measured as up to {' and '.join(found)}" if found else ""
    return f"the rounding of the query itself{measured}"


def _why_none(result: Result, known: Mapping[str, float]) -> str:
    if not math.isfinite(result.certificate.residual):
        return "F is not finite there"
    unknown = [function for function, mu in (("g", "mu_x"), ("h", "mu_y")) if math.isnan(known[mu])]
    if unknown:
        return f"the strong convexity of {' and '.join(unknown)} is not known"
    flat = [function for function, mu in (("g", "mu_x"), ("h", "mu_y")) if known[mu] == 0.0]
    if flat:
        return f"{' and '.join(flat)} {'is' if len(flat) == 1 else 'are'} not strongly convex (μ = 0)"
    return "the run computed no certificate"


def _or_inf(value: float) -> float:
    return math.inf if math.isnan(value) else value
