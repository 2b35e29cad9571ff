"""Whether products with A and with A' belong to one matrix, for products whose rounding errors are not known.

<x, A y> and <A'x, y> are equal, up to rounding. The rounding of an operator cannot be read off |A|: one that subtracts
two large terms, such as data minus their means, rounds in units of these terms. So it is measured: y is split into
y1 + y2 = y exactly, and A y1 + A y2 - A y, which is zero for a linear A, shows the error of the products.

Where a difference is too small to be called an error, ``adjoint_errors`` says how large it is at a point, so that a
certificate can allow for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, space_of
from saddlepoint.ground.linalg import inner, norm

PARTS = 0.5637, 0.6293, 0.7411, 0.8719, 0.9433  # shares of a vector that is split; from 1/2 to 1 the split is exact
MARGIN = 64.0  # allowed difference of <x, A y> and <A'x, y>, in units of the measured error
USELESS = 1e-3  # relative error of a product from which it is refused, whatever the reason of the error is
PRODUCTS = 2 * len(PARTS)  # products with A, and as many with A', that a measurement takes

ADJOINT = 1e3  # difference of <x, A y> and <A'x, y> from which the products are examined, in units of rounding

PAIRS = 5  # random pairs of vectors that show by how much A'x and A y differ from those of one matrix
CLEARLY = 5.0  # a difference of products is no rounding if it exceeds the rounding that is seen this many times

Product = Callable[[Array], Array]
Both = Callable[[Array, Array], tuple[Array, Array]]  # (x, y) -> (A y, A'x)


def wrong_transpose(mul: Product, tmul: Product, y: Array, Ay: Array, x: Array, Atx: Array, A_norm: float = 0.0) -> str:
    """What is wrong with the products, in words, if <x, A y> and <A'x, y> differ more than rounding explains.

    Empty if nothing is. Call it only where the two seem to differ, because it takes ``PRODUCTS`` more products. Without
    an estimate of |A|, the vectors must be random, so that the products are not small by cancellation.
    """
    difference = abs(inner(x, Ay) - inner(Atx, y))
    error_A, error_At = additivity_error(mul, y, Ay), additivity_error(tmul, x, Atx)
    sizes = max(norm(Ay), A_norm * norm(y)), max(norm(Atx), A_norm * norm(x))
    for name, v, error, size in zip(("A", "A'"), "yx", (error_A, error_At), sizes, strict=True):
        if error > USELESS * size:
            return (
                f"products with {name} are not linear: {name} {v} changes by {error:.3g}, beside products of the size "
                f"{size:.3g}, when {v} is split into two vectors whose products are added; this is noise, a nonlinear "
                "operation, or rounding of terms that are far larger than the product; correct the products"
            )
    allowed = MARGIN * (norm(x) * error_A + norm(y) * error_At)
    if not difference > allowed:
        return ""
    size = max(norm(x) * sizes[0], norm(y) * sizes[1])
    share = difference / size if size > 0.0 else math.inf  # where the array of a product was written into
    return (
        f"A' is not the transpose of A: <x, A y> and <A' x, y> differ by {difference:.3g}, {share:.1g} of "
        f"|A| |x| |y|, and rounding explains {allowed:.1g} at most; correct the product with A or with its transpose"
    )


def adjoint_errors(both: Both, x: Array, y: Array, Ay: Array, Atx: Array) -> tuple[float, float]:
    """By how much the products A y and A'x, as given, seem to be those of different matrices, beyond rounding.

    For the error E'x of A'x and a vector v of independent normal numbers, <x, A v> - <A'x, v> has the standard
    deviation |E'x|; so it is for A y. Rounding errors of the products with v are seen where v is split into two
    vectors. The results are 0 where rounding explains the largest of a few differences.
    """
    rng, found = np.random.default_rng(1), [0.0, 0.0]
    split: tuple[Array, Array] | None = None
    for _ in range(PAIRS):
        u, v = (space_of(z).cast(rng.standard_normal(z.shape[0])) for z in (x, y))
        Av, Atu = both(u, v)
        if split is None:
            parts = both(PARTS[0] * u, PARTS[0] * v), both(u - PARTS[0] * u, v - PARTS[0] * v)
            split = parts[0][0] + parts[1][0] - Av, parts[0][1] + parts[1][1] - Atu
        for k, (z, Bw, w, Bz, wrong) in enumerate(((y, Atu, u, Ay, split[1]), (x, Av, v, Atx, split[0]))):
            difference = abs(inner(z, Bw) - inner(Bz, w))
            rounding = norm(z * wrong) + eps_of(Bw) * (norm(z * Bw) + norm(Bz * w))
            if CLEARLY * rounding < difference < math.inf:
                found[k] = max(found[k], difference)
    return found[0], found[1]


def additivity_error(product: Product, v: Array, of_v: Array, shares: Iterable[float] = PARTS) -> float:
    """The largest |B(c v) + B(v - c v) - B v| for a few numbers c, where ``product`` computes B times a vector.

    c v is rounded, and for 1/2 <= c <= 1 the difference v - c v is exact.
    """
    worst = 0.0
    for share in shares:
        part = share * v
        worst = max(worst, norm(product(part) + product(v - part) - of_v))
    return worst
