r"""The certificate: what one query of the oracle proves about the distance to the saddle point.

Let Rx = grad g(x) + A y and Ry = grad h(y) - A' x be the residuals at (x, y). The field is strongly monotone, so that

    mu_x |x - x*|^2 + mu_y |y - y*|^2  <=  <Rx, x - x*> + <Ry, y - y*>  <=  |Rx|^2/mu_x + |Ry|^2/mu_y  =:  W,

the second step by Cauchy and Schwarz in the weighted norm on the left. Hence

    |x - x*|            <=  sqrt(W/mu_x)                  =  hypot(|Rx|/mu_x, |Ry|/sqrt(mu_x mu_y)),
    |y - y*|            <=  sqrt(W/mu_y)                  =  hypot(|Rx|/sqrt(mu_x mu_y), |Ry|/mu_y),
    |x - x*| + |y - y*| <=  sqrt((1/mu_x + 1/mu_y) W)     =  hypot of the two bounds above,
    duality gap         <=  W/2.

Further convex terms, such as constraints or the l1 norm, add a subgradient to each residual and an amount E to the
duality gap (``problems.terms`` has the proof): the gap is at most W/2 + E, and W + 2 E takes the place of W above. If
mu of one side is 0 and its domain has the diameter D, then |R| D takes the place of |R|^2/(2 mu), and the distance of
the other side is still proven.

``certificate_from_residuals`` evaluates these formulas for one problem, and ``certificates_from_residuals`` for the
blocks of a batch. Every ``Certificate`` of the library comes from one of the two, but for those of problems with linear
equations, which have a theorem of their own (``theory.equations``).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeVar

import numpy as np

from saddlepoint.ground.arrays import Array, namespace
from saddlepoint.ground.linalg import norm

EPS = float(np.finfo(np.float64).eps)  # relative spacing of float64 numbers
UP = 1.0 + 8.0 * EPS  # factor that exceeds the relative rounding of every formula below
LEAST = 4.0 * math.ulp(0.0)  # added to positive bounds: exceeds what the formulas below lose by underflow
NORMAL = float(np.finfo(np.float64).tiny)  # smallest mu that is accepted: below it, numbers have fewer digits

NOT_EXAMINED = "not examined"  # words of a sentence in ``assumes`` about a claim that nobody has examined yet
NOTHING_PROVEN = "nothing is proven"  # words of a sentence in ``assumes`` about errors that are estimated or unknown

Number = TypeVar("Number", float, Array)  # one number, or one for each block


class Certificate(NamedTuple):
    """A proof about one point, from one query there in float64.

    All bounds allow for the rounding of the query and for the measured noise of the gradients. They are infinite where
    nothing can be proven.

    Attributes:
        distance: bounds |x - x*| + |y - y*|.
        distance_x: bounds |x - x*|.
        distance_y: bounds |y - y*|.
        gap: bounds the duality gap; where rounding moved the point out of its domain, that of a point in it next to it.
        rounding: the part of ``distance`` that allows for errors of the query, from rounding and from noise.
        Fx: |grad g(x) + A y|, as computed.
        Fy: |grad h(y) - A' x|, as computed.
        noise_x: by how much the gradient of g may be wrong beyond rounding, as measured; 0 if no noise was found.
        noise_y: by how much the gradient of h may be wrong beyond rounding, as measured; 0 if no noise was found.
        assumes: what the proof rests on beside the arithmetic of the query, in sentences; empty if it rests on nothing.
    """

    distance: float
    distance_x: float
    distance_y: float
    gap: float
    rounding: float
    Fx: float
    Fy: float
    noise_x: float
    noise_y: float
    assumes: tuple[str, ...] = ()

    @property
    def residual(self) -> float:
        """|F|, the length of the field."""
        return math.hypot(self.Fx, self.Fy)

    @property
    def is_examined(self) -> bool:
        """Whether all claims that the proof rests on were examined; ``assumes`` names those that were not.

        A run examines them before it is reported as solved, and ``sp.certify`` does; a run that ends before has not.
        """
        return not any(NOT_EXAMINED in sentence for sentence in self.assumes)

    @property
    def is_estimated(self) -> bool:
        """Whether the numbers contain estimated errors or leave out unknown ones, so that they would prove nothing."""
        return any(NOTHING_PROVEN in sentence for sentence in self.assumes)

    @property
    def without_bounds(self) -> Certificate:
        """The same query without a proof, where what it would rest on is an estimate."""
        return self._replace(distance=math.inf, distance_x=math.inf, distance_y=math.inf, gap=math.inf)

    @property
    def of_exchanged_players(self) -> Certificate:
        """The certificate of (y, x), where y minimises and x maximises."""
        return self._replace(
            distance_x=self.distance_y,
            distance_y=self.distance_x,
            Fx=self.Fy,
            Fy=self.Fx,
            noise_x=self.noise_y,
            noise_y=self.noise_x,
        )

    def words(self, gap: str = "duality gap") -> str:
        """The bounds in one line: on both distances together, or on the side where one is known, and on the gap."""
        sides = [("|x-x*| + |y-y*|", self.distance)]
        if self.distance == math.inf > min(self.distance_x, self.distance_y, self.gap):
            sides = [("|x-x*|", self.distance_x), ("|y-y*|", self.distance_y)]
            sides = [(what, bound) for what, bound in sides if bound < math.inf]
        return ", ".join(f"{what} <= {bound:.3g}" for what, bound in [*sides, (gap, self.gap)])

    def __repr__(self) -> str:
        return f"Certificate({self.words()}{'' if self.is_examined else '; claims not examined'})"


# The certificate of a point that has not been queried: nothing is proven about it.
NO_CERTIFICATE = Certificate(
    distance=math.inf,
    distance_x=math.inf,
    distance_y=math.inf,
    gap=math.inf,
    rounding=math.inf,
    Fx=math.inf,
    Fy=math.inf,
    noise_x=0.0,
    noise_y=0.0,
)


class BlockCertificates(NamedTuple):
    """The certificates of many independent problems: the fields of ``Certificate``, with one entry per problem."""

    distance: Array
    distance_x: Array
    distance_y: Array
    gap: Array
    rounding: Array
    Fx: Array
    Fy: Array
    noise_x: Array
    noise_y: Array

    def each(self) -> list[Certificate]:
        """One certificate per problem."""
        rows: list[list[Any]] = np.stack(self, axis=1).tolist()
        return [Certificate(*row) for row in rows]

    def smaller(self, other: BlockCertificates) -> BlockCertificates:
        """For each problem, the certificate with the smaller distance: this one or the other one."""
        keep = self.distance <= other.distance
        return BlockCertificates(*(np.where(keep, a, b) for a, b in zip(self, other, strict=True)))

    def worst(self) -> Certificate:
        """The largest of each bound, which holds for every problem.

        ``rounding`` is that of the problem with the largest distance; Fx and Fy are the lengths of all residuals
        together; the noise is the largest one.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            Fx, Fy = norm(self.Fx), norm(self.Fy)
        return Certificate(
            distance=float(np.max(self.distance)),
            distance_x=float(np.max(self.distance_x)),
            distance_y=float(np.max(self.distance_y)),
            gap=float(np.max(self.gap)),
            rounding=float(self.rounding[int(np.argmax(self.distance))]),
            Fx=Fx,
            Fy=Fy,
            noise_x=float(np.max(self.noise_x)),
            noise_y=float(np.max(self.noise_y)),
        )


def rounding_decides(distance: Number, rounding: Number, tol: float | None = None) -> bool:
    """Whether a certified distance could be on the other side of tol if its rounding errors were smaller.

    Args:
        distance: the certified distance; of a batch, those of all problems.
        rounding: the part of it that allows for rounding errors, without noise.
        tol: what the distance is compared with. Without it: whether more than half of the distance is due to rounding.

    Example:
        >>> from saddlepoint.theory import rounding_decides
        >>> rounding_decides(3e-9, 1e-9, tol=2e-9), rounding_decides(3e-9, 1e-9, tol=1e-6), rounding_decides(3e-9, 2e-9)
        (True, False, True)
    """
    wanted = 0.0 if tol is None else tol
    could = (distance > wanted) & (wanted >= distance - 2.0 * rounding)
    return could if isinstance(could, bool) else bool(np.any(could))


def certificate_from_residuals(
    mu_x: float,
    mu_y: float,
    Rx: float,
    Ry: float,
    slack_x: float = 0.0,
    slack_y: float = 0.0,
    noise_x: float = 0.0,
    noise_y: float = 0.0,
    *,
    excess: float = 0.0,
    diameters: tuple[float, float] = (math.inf, math.inf),
    outside: tuple[float, float] = (0.0, 0.0),
    excess_at_point: float | None = None,
) -> Certificate:
    """The certificate of a point where the residuals have the lengths Rx and Ry.

    A bound is rounded up. It is infinite if a mu is unknown or negative, if it is 0 and the domain is unbounded, or if
    any of the first arguments is not finite. It is zero only if Rx, Ry, slack, noise and excess are all zero.

    Args:
        mu_x, mu_y: the strong convexity of g and of h.
        Rx, Ry: the lengths of the residuals, as computed.
        slack_x, slack_y: bounds on the rounding errors of the two residuals.
        noise_x, noise_y: bounds on the noise of the two gradients.
        excess: what simple terms add to the duality gap of a point at most ``outside`` away.
        diameters: of the domains of x and of y.
        outside: bounds on the distances from x and y to the point that ``excess`` is about.
        excess_at_point: what simple terms add to the duality gap of the point itself; as ``excess``, if left out.

    Example:
        >>> from saddlepoint.theory import certificate_from_residuals
        >>> certificate_from_residuals(1.0, 2.0, Rx=0.0, Ry=1.0)
        Certificate(|x-x*| + |y-y*| <= 0.866, duality gap <= 0.25)
    """
    given = (mu_x, mu_y, Rx, Ry, slack_x, slack_y, noise_x, noise_y)
    mu_x, mu_y, Rx, Ry, slack_x, slack_y, noise_x, noise_y = map(float, given)
    error_x, error_y = slack_x + noise_x, slack_y + noise_y
    finite = math.isfinite(Rx + Ry + error_x + error_y + mu_x + mu_y)
    bounds = (math.inf, math.inf, math.inf, math.inf, math.inf)
    excesses = excess, excess if excess_at_point is None else excess_at_point
    plain = not any(excesses) and not any(outside)
    if finite and min(mu_x, mu_y) >= NORMAL and plain:
        bounds = _bounds(mu_x, mu_y, Rx, Ry, error_x, error_y)
    elif finite and all(mu == 0.0 or mu >= NORMAL for mu in (mu_x, mu_y)):
        bounds = _bounds_with_terms((mu_x, mu_y), (Rx, Ry), (error_x, error_y), excesses, diameters, outside)
    return Certificate(*bounds, Rx, Ry, noise_x, noise_y)


def certificates_from_residuals(
    mu_x: Array,
    mu_y: Array,
    Rx: Array,
    Ry: Array,
    slack_x: Array,
    slack_y: Array,
    noise_x: Array,
    noise_y: Array,
) -> BlockCertificates:
    """The certificates of many problems: an argument has one entry per problem, or is one number for all of them."""
    given = (mu_x, mu_y, Rx, Ry, slack_x, slack_y, noise_x, noise_y)
    mu_x, mu_y, Rx, Ry, slack_x, slack_y, noise_x, noise_y = (np.asarray(value, dtype=np.float64) for value in given)
    with np.errstate(all="ignore"):
        error_x, error_y = slack_x + noise_x, slack_y + noise_y
        finite = np.isfinite(Rx + Ry + error_x + error_y + mu_x + mu_y)
        proven = finite & (np.minimum(mu_x, mu_y) >= NORMAL)
        bounds = _bounds(mu_x, mu_y, Rx, Ry, error_x, error_y)
        proofs = [np.where(proven, bound, math.inf) for bound in bounds]
    return BlockCertificates(*np.broadcast_arrays(*proofs, Rx, Ry, noise_x, noise_y))


def _bounds(
    mu_x: Number, mu_y: Number, Rx: Number, Ry: Number, error_x: Number, error_y: Number
) -> tuple[Number, Number, Number, Number, Number]:
    """The bounds of a ``Certificate`` in the order of its fields, rounded up, for residuals with these errors."""
    most_x, most_y = Rx + error_x, Ry + error_y
    least = LEAST * (most_x + most_y > 0.0)
    distance_x, distance_y = side_bounds(mu_x, mu_y, most_x, most_y)
    distance, gap = _hypot(distance_x, distance_y), gap_bound(mu_x, mu_y, most_x, most_y)
    rounding = UP * distance_bound(mu_x, mu_y, error_x, error_y) + LEAST * (error_x + error_y > 0.0)
    return UP * distance + least, UP * distance_x + least, UP * distance_y + least, UP * gap + least, rounding


def _bounds_with_terms(
    mu: tuple[float, float],
    R: tuple[float, float],
    error: tuple[float, float],
    excesses: tuple[float, float],
    diameters: tuple[float, float],
    outside: tuple[float, float],
) -> tuple[float, float, float, float, float]:
    """The bounds of a ``Certificate`` for a problem with simple terms; with a mu that is 0, distances are infinite."""
    sides = list(zip(mu, R, error, diameters, strict=True))
    decrease = sum(_decrease(m, length + e, diameter) for m, length, e, diameter in sides)
    gap, gap_at_point = (excess + decrease for excess in excesses)
    rounding = sum(_decrease(m, e, diameter) for m, _, e, diameter in sides)
    least = LEAST * (gap + gap_at_point > 0.0)

    of_x, of_y = (_from_gap(m, gap) + away for m, away in zip(mu, outside, strict=True))
    both = math.hypot(*(_from_gap(m, gap) for m in mu)) + sum(outside)
    due = math.hypot(*(_from_gap(m, rounding) for m in mu)) + sum(outside)
    return UP * both + least, UP * of_x + least, UP * of_y + least, UP * gap_at_point + least, UP * due + least


def _decrease(mu: float, residual: float, diameter: float) -> float:
    """The largest value of <r, d> - mu/2 |d|^2 over all r of this length and all d up to the diameter.

    ``LEAST`` is added, because distances are roots of this number, in which what it loses by underflow is not small.
    """
    if residual == 0.0:
        return 0.0
    far = residual * diameter
    return LEAST + (far if mu == 0.0 else min(far, 0.5 * residual / mu * residual))


def distance_from_gap(mu: float, gap: float) -> float:
    """|x - x*| is at most this, for a duality gap of at most ``gap`` and a function of x that is mu-strongly convex.

    The bound is rounded up, and infinite if mu is 0 or unknown. The same holds for y, with the mu of its function.
    """
    return UP * _from_gap(mu, gap) + LEAST * (gap > 0.0) if mu >= NORMAL else math.inf


def _from_gap(mu: float, gap: float) -> float:
    """The bound of ``distance_from_gap`` before it is rounded up; nothing underflows."""
    return math.inf if mu == 0.0 else math.sqrt(2.0 * gap) / math.sqrt(mu)


def _sqrt(a: Number) -> Number:
    if isinstance(a, float):
        return math.sqrt(a)
    root: Number = np.sqrt(a) if isinstance(a, np.ndarray) else namespace(a).sqrt(a)
    return root


def _hypot(a: Number, b: Number) -> Number:
    if isinstance(a, float) and isinstance(b, float):
        return math.hypot(a, b)
    length: Number = (np if isinstance(a, np.ndarray | float) else namespace(a)).hypot(a, b)
    return length


def side_bounds(mu_x: Number, mu_y: Number, Fx: Number, Fy: Number) -> tuple[Number, Number]:
    """|x - x*| and |y - y*| are at most these; nothing is squared, so that no intermediate result overflows."""
    mean = _sqrt(mu_x) * _sqrt(mu_y)
    return _hypot(Fx / mu_x, Fy / mean), _hypot(Fx / mean, Fy / mu_y)


def distance_bound(mu_x: Number, mu_y: Number, Fx: Number, Fy: Number) -> Number:
    """|x - x*| + |y - y*| (Definition 2) is at most this."""
    return _hypot(*side_bounds(mu_x, mu_y, Fx, Fy))


def weighted_bound(mu_x: Number, mu_y: Number, Fx: Number, Fy: Number) -> Number:
    """mu_x |x - x*|^2 + mu_y |y - y*|^2 is at most this, for |Fx|, |Fy| at (x, y)."""
    return Fx / mu_x * Fx + Fy / mu_y * Fy


def gap_bound(mu_x: Number, mu_y: Number, Fx: Number, Fy: Number) -> Number:
    """max_y f(x, .) - min_x f(., y), the duality gap, is at most this."""
    return 0.5 * weighted_bound(mu_x, mu_y, Fx, Fy)


def start_bound(mu_x: float, mu_y: float, Fx: float, Fy: float) -> float:
    """|x - x*|^2 + |y - y*|^2 is at most this; it serves as C_0, which the paper's schedules need."""
    return weighted_bound(mu_x, mu_y, Fx, Fy) / min(mu_x, mu_y)
