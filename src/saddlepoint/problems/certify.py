r"""``sp.certify``: what is proven about a point, whoever has computed it.

Two points are certified, and the one with the smaller bound is returned: the given point, and the point after one
prox step from there (see ``problems.prox_step``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import AssumptionError, ProblemError
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple.base import Simple
from saddlepoint.problems.audit import Audit
from saddlepoint.problems.corrections import corrected
from saddlepoint.problems.oracle import Meter
from saddlepoint.problems.prox_check import check_first_prox
from saddlepoint.problems.prox_step import Point, certificate_after, prox_step
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.support import proven_support
from saddlepoint.theory.certificate import Certificate

CORRECTIONS = 4  # how often a constant that is wrong by very little is corrected


@dataclass(frozen=True)
class CertifiedPoint:
    """A point and what is proven about it; ``sp.certify`` makes it.

    Attributes:
        x, y: the point that the certificate is about.
        certificate: its certificate.
        outside_x, outside_y: how far the given point was from the domain, to which it was projected; 0 if inside.
        stepped: whether (x, y) is the point after one prox step from the given one.
        support_x, support_y: what is proven about each coordinate of the saddle point, as in ``Result``.
    """

    x: Array
    y: Array
    certificate: Certificate
    outside_x: float = 0.0
    outside_y: float = 0.0
    stepped: bool = False
    support_x: Array | None = None
    support_y: Array | None = None

    @property
    def distance(self) -> float:
        """A bound on |x - x*| + |y - y*|."""
        return self.certificate.distance

    @property
    def distance_x(self) -> float:
        """A bound on |x - x*|."""
        return self.certificate.distance_x

    @property
    def distance_y(self) -> float:
        """A bound on |y - y*|."""
        return self.certificate.distance_y

    @property
    def gap(self) -> float:
        """A bound on the duality gap."""
        return self.certificate.gap

    def __repr__(self) -> str:
        moved = [
            f"{name} was {far:.3g} outside of its domain, and was projected"
            for name, far in (("x", self.outside_x), ("y", self.outside_y))
            if far > 0.0
        ]
        stepped = ["after one prox step"] if self.stepped else []
        return f"CertifiedPoint({'; '.join([self.certificate.words(), *moved, *stepped])})"


def certify_point(f: Saddle, x: Any, y: Any) -> CertifiedPoint:
    """What is proven about the point (x, y), whoever has computed it.

    A point outside the domain of a simple term is projected onto it first. With simple terms, the point after one prox
    step is certified, too, and the point with the smaller bound is returned. What is claimed of g, h and A is examined
    as by ``solve`` before a run is called solved.

    Args:
        f: the problem.
        x, y: the point.

    Raises:
        ProblemError: x or y is no vector of the problem.
        AssumptionError: the examination proved mu or L of g or h wrong, or another claim about the problem.

    Example:
        >>> import saddlepoint as sp
        >>> sp.certify(sp.Saddle(sp.Quadratic(1.0) + sp.Box(0, 1), sp.Quadratic(1.0), [[1.0]]), [-1.0], [0.0])
        CertifiedPoint(|x-x*| + |y-y*| <= 0, duality gap <= 0; x was 1 outside of its domain, and was projected)
    """
    f.refuse_changes()
    for _ in range(CORRECTIONS):
        try:
            return _certified(f, x, y)
        except AssumptionError as error:
            if not error.is_slight or error.suggested is None:
                raise
            f = corrected(f, error.function, error.constant, error.suggested)
    return _certified(f, x, y)


def _certified(f: Saddle, x: Any, y: Any) -> CertifiedPoint:
    """The same with the constants as they are given."""
    wide = f.space.wide
    (m, n), audit = f.shape, Audit(f, Meter())
    x, outside_x = _inside(f.g, wide.of_x.cast(f.as_point(x, "x", m)), "x")
    y, outside_y = _inside(f.h, wide.of_y.cast(f.as_point(y, "y", n)), "y")
    check_first_prox("g", f.g, x)
    check_first_prox("h", f.h, y)
    proof, stepped = _examined(audit, (x, y)), False
    if f.has_simple:
        after, terms = prox_step(audit.seen, x, y, wide)
        if audit.needed:
            audit.noise.measure(*after)
        audit.seen.noise = audit.noise.allowance
        other = certificate_after(audit.seen, after, terms)
        if (other.distance, other.gap) < (proof.distance, proof.gap):
            (x, y), proof, stepped = after, other, True
    proof = audit.proof(proof)
    return CertifiedPoint(x, y, proof, outside_x, outside_y, stepped, *proven_support(f, x, y, proof))


def _inside(f: Smooth, x: Array, name: str) -> tuple[Array, float]:
    """The point, or its projection if it is outside the domain of the simple term, and how far it was outside."""
    p: Simple | None = f.simple
    if p is None or p.is_inside(x):
        return x, 0.0
    far = p.outside(x)
    x = p.project(x)
    if not p.is_inside(x):
        raise ProblemError(
            f"{name} is not in the domain of {p!r}, which has no projection; give project= to Simple, or a point of "
            "the domain"
        )
    return x, far


def _examined(audit: Audit, point: Point) -> Certificate:
    """The certificate of the point, after an examination of what is claimed."""
    proof = audit.certificate(*point)
    audit.keep(another=True)
    if audit.needed and math.isfinite(proof.residual):
        audit.examine(*point)
        if audit.noise.stale:
            proof = audit.certificate(*point)
    return proof
