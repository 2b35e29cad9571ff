"""The ways into the library for problems with simple terms: certificates, ``sp.certify``, and runs for each target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

import saddlepoint as sp

from .draws import Case, between
from .numbers import Array
from .ways_in import Answer, attempt, check, checkpoints, options, problem, rounded, storage, streams, usable

CALLS = 150  # most calls of each oracle in a run
SECONDS = 3.0  # most seconds of a run


def points(case: Case, rng: Generator) -> Iterator[tuple[Array, Array]]:
    """The solution, and points at all distances from it, which may be outside the domains."""
    x, y = rounded(case)
    unit_x, unit_y = (float(np.abs(v).max(initial=0.0)) or 1.0 for v in (x, y))
    yield x, y
    for _ in range(4):
        far = between(rng, -17, 0.5)
        yield tuple(
            (v + far * unit * rng.standard_normal(v.size) * (rng.random(v.size) < 0.7)).astype(v.dtype)
            for v, unit in ((x, unit_x), (y, unit_y))
        )


def certificates(case: Case, rng: Generator) -> Iterator[Answer]:
    """Certificates of points inside the domains."""
    for x, y in points(case, rng):
        try:
            a, b = case.f.project(x, y)
            certificate = case.f.certificate(a, b)
        except Exception as error:
            yield Answer("certificate", case.exact, error=error)
            continue
        yield Answer("certificate", case.exact, a, b, certificate)


def certify(case: Case, rng: Generator) -> Iterator[Answer]:
    """``sp.certify`` of points of other people, inside the domains or not."""
    for x, y in points(case, rng):
        try:
            found = sp.certify(problem(case), x, y)
        except Exception as error:
            yield Answer("certify", case.exact, error=error)
            continue
        a, b = np.asarray(found.x), np.asarray(found.y)
        wrong = support(case, found) if not case.claim else ""
        yield Answer("certify", case.exact, a, b, found.certificate, message=f"stepped {found.stepped}", wrong=wrong)


def support(case: Case, result: Any) -> str:
    """What is proven wrongly about the support of the solution, in words; empty if nothing is."""
    exact: Any = case.exact
    if exact.radius != 0:
        return ""
    for name, term, found in (("x", exact.p, result.support_x), ("y", exact.q, result.support_y)):
        if found is None or term.at is None:
            continue
        seen = np.asarray(found)
        false = (seen != sp.Support.UNDECIDED) & (seen != term.at)
        if false.any():
            k = int(np.flatnonzero(false)[0])
            return f"support_{name}[{k}] is {sp.Support(int(seen[k])).name}, but {name}* = {float(term.x[k])!r}"
    return ""


def solve(case: Case, rng: Generator) -> Iterator[Answer]:
    """Runs for a distance, a relative distance and a gap, by ``auto`` and by other methods."""
    methods, exact = usable(case.f), case.exact
    strong = case.f.mu_x > 0.0 and case.f.mu_y > 0.0
    targets = ["tol", "rtol", "gap"] if strong else ["gap"]
    names = ["auto", *(str(name) for name in rng.choice(methods, 2))]
    if "halpern-pdhg" in methods and rng.random() < 0.3:
        names.append(str(rng.choice(["halpern-pdhg", "pdhg"])))
    for name in names:
        target = targets[int(rng.integers(len(targets)))]
        drawn = options(case, rng) | {"max_calls": CALLS, "max_seconds": SECONDS}
        size = exact.size()
        goal = float(drawn.pop("tol")) / size
        if target == "tol":
            drawn["tol"] = max(goal * size, 5e-324)
        elif target == "rtol":
            drawn["rtol"] = min(max(goal, 1e-300), 0.9)
        else:
            drawn["gap"] = max(goal * gap_unit(case), 5e-324)
        way = f"solve, {'auto' if name == 'auto' else 'by name'}, {target}"
        for found in attempt(way, exact, partial(sp.solve, problem(case), method=name, **drawn)):
            yield found._replace(target=target, wrong=other_claims(case, found, drawn))


def gap_unit(case: Case) -> float:
    """About the size of the values at the solution."""
    exact: Any = case.exact
    x, y = np.abs(exact.p.x), np.abs(exact.q.x)
    return float(x @ (np.abs(exact.dense) @ y + np.abs(exact.p.s)) + y @ np.abs(exact.q.s)) or 1.0


def other_claims(case: Case, found: Answer, drawn: dict[str, Any]) -> str:
    """What a solved run claims beside its certificate, if that is wrong: the target, and the support."""
    if found.error is not None or case.claim:
        return ""
    if found.solved and "rtol" in drawn:
        x, y, radius = case.exact.solution
        size = Decimal(sum(v * v for v in x)).sqrt() + Decimal(sum(v * v for v in y)).sqrt() + 2 * radius
        dx, dy = case.exact.errors(found.x, found.y)
        if dx + dy > Decimal(drawn["rtol"]) * size:
            return f"the relative distance is {float((dx + dy) / size):.6g} > {drawn['rtol']:.6g}"
    return "" if found.result is None else support(case, found.result)


TERM_WAYS: dict[str, tuple[Callable[[Case, Generator], Iterator[Answer]], float]] = {
    "certificate": (certificates, 1.0),
    "certify": (certify, 1.0),
    "solve": (solve, 1.0),
    "storage": (storage, 0.15),
    "stream": (streams, 0.1),
    "checkpoint": (checkpoints, 0.15),
    "check": (check, 0.15),
}
WEAK_WAYS = {key: TERM_WAYS[key] for key in ("certificate", "certify", "solve", "check")}  # where only gaps are proven
FALSE_TERM_WAYS = {"certify": (certify, 1.0), "solve": (solve, 1.0), "check": (check, 0.2)}
