"""Curvatures of a function around a point, by Arnoldi's method on differences of gradients.

No claimed constant is used for a conclusion. The point is moved aside by a small random amount first, so that a kink at
the point itself (the solution of a piecewise quadratic problem is often at one) does not disturb the estimate. Where a
gradient cannot be evaluated, because a point is outside its domain, the same is done closer to the point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dsyevd

from saddlepoint.ground.arrays import Array, eps_of, is_jax, namespace, read_numbers, space_of, to_host
from saddlepoint.ground.jax_program import in_one_program
from saddlepoint.ground.linalg import inner, may_be_on_gpu, norm
from saddlepoint.parts.functions.probes import ASIDE, CLOSER, Unexaminable, gradient_or_none, random_directions
from saddlepoint.parts.functions.smooth import Gradient

BASIS = (
    16,
    64,
)  # JAX compiles programs for bases whose number of vectors is a multiple of this, or of this if they are short
SHORT = 1000  # entries up to which vectors of a basis are short
BLOCK = 4096  # columns of the basis of which the products with J are formed at a time
SHORTEST = 1e-300  # length of a step below which differences are not divided by it
KEPT_SHARE = (
    0.7  # share of a vector that is left where subtracting its parts in a basis once is enough (Daniel et al. 1976)
)
DIRECTIONS = 6  # least number of directions from whose differences the errors of gradients are estimated
SYMMETRIC = 10.0  # asymmetry of a Jacobian up to which it counts as symmetric, in units of its error


class Curvature(NamedTuple):
    """Curvatures of a function around a point, along the directions of a Krylov space.

    Attributes:
        low, high: the smallest and the largest curvature found; the true extremes may be smaller and larger.
        flat, steep: the directions, of length 1, in which they were found.
        unit: the coordinate direction that seems to be the flattest; a wrong sign in one entry may show only there.
        skew: the largest |<J u, v> - <u, J v>| of the pairs of orthogonal unit vectors u, v, where J is the Jacobian of
            the gradient, or an upper bound of it if that is within SYMMETRIC times ``error``. It is zero if the
            gradient is that of a function.
        plane: the vectors u and v, if ``skew`` is larger than that.
        centre: the point at which J was taken.
        error: an estimate of the error of each of these numbers.
        wrong: an estimate of the norm of the errors of gradients there. If the gradient is that of a function, J is
            symmetric, and only these errors make its estimate asymmetric. It is infinite with too few directions.
        calls: number of gradients that were evaluated.
    """

    low: float
    high: float
    flat: Array
    steep: Array
    unit: Array
    skew: float
    plane: tuple[Array, Array]
    centre: Array
    error: float
    wrong: float
    calls: int


def curvature(
    grad: Gradient,
    x: Array,
    length: float,
    steps: int,
    noise: float = 0.0,
    seed: int = 0,
    towards: Array | None = None,
    L: float = 0.0,
    p: Array | None = None,
) -> Curvature:
    """Arnoldi's method on differences of gradients around x.

    The Hessenberg matrix of the method is symmetric up to ``error`` if the gradients are those of a function; the
    eigenvalues of its symmetric part are curvatures. Raises Unexaminable where the gradient cannot be evaluated around
    x.

    Args:
        grad: the gradient.
        x: the point.
        length: a length for steps around x.
        steps: the most directions of the Krylov space.
        noise: the norm of the errors of gradients there, as far as it is known.
        seed: of the random direction from which the method starts.
        towards: a vector whose direction is added to the random one.
        L: the smoothness of the function, which helps to choose the length of differences where there is noise.
        p: the gradient at x; it is evaluated if left out.
    """
    offset, q = random_directions(x, seed)
    length_towards = 0.0 if towards is None else norm(towards)
    if towards is not None and 0.0 < length_towards < math.inf:
        leaning = q + towards * (1.0 / length_towards)
        length_leaning = norm(leaning)
        q = leaning * (1.0 / length_leaning) if length_leaning > 0.1 else q
    calls = 0
    if p is None:
        p, calls = gradient_or_none(grad, x), 1
        if p is None:
            raise Unexaminable
    size = norm(p)
    relative = max(eps_of(p), noise / (size + L * length) if noise > 0.0 else 0.0)
    for closer in CLOSER:
        for sign in (1.0, -1.0):
            reach = closer * length
            step = reach * min(math.sqrt(relative), 0.1)
            z = x + (sign * max(ASIDE * reach, min(10.0 * step, 0.1 * reach))) * offset
            found = _arnoldi(grad, z, q, step, steps, eps_of(p) * size + noise, math.sqrt(relative))
            calls += found.calls
            if len(found.basis):
                return _curvature(found, z, calls)
    raise Unexaminable


class _Arnoldi(NamedTuple):
    """What Arnoldi's method has found."""

    basis: Sequence[Array]  # orthonormal vectors: the rows of one array, or a list
    H: Array  # the Hessenberg matrix
    diagonal: Array | None  # estimates of the diagonal of the Jacobian
    error: float  # an estimate of the error of each entry of H
    step: float  # length of the differences
    calls: int


def _arnoldi(grad: Gradient, z: Array, q: Array, step: float, steps: int, wrong: float, relative: float) -> _Arnoldi:
    """Arnoldi's method on (grad(z + step q) - grad(z))/step, or the difference to the other side.

    The gradients have errors up to ``wrong``, and curvatures relative errors up to ``relative``. The basis is empty if
    the gradient cannot be evaluated, or if the step is too short to divide by.
    """
    steps, calls = min(steps, z.shape[0]), 0
    if may_be_on_gpu(z) and step >= SHORTEST:
        found = _arnoldi_on_device(grad, z, q, step, steps, wrong, relative)
        if len(found.basis):
            return found
        calls = found.calls
    base = gradient_or_none(grad, z)
    calls += 1
    H = np.zeros((steps, steps))
    if base is None or step < SHORTEST:
        return _Arnoldi([], H, None, math.inf, step, calls)
    rows = np.empty((steps, z.shape[0])) if isinstance(z, np.ndarray) and z.dtype == np.float64 else None
    basis: list[Array] = []
    diagonal: Any = 0.0  # the sums of q * J q and of q * q
    weight: Any = 0.0
    error, largest = math.inf, 0.0
    for k in range(steps):
        for side in (step, -step):
            calls += 1
            p = gradient_or_none(grad, z + side * q)
            if p is not None:
                break
        if p is None:
            return _Arnoldi([], H, None, math.inf, step, calls)
        w = (p - base) * (1.0 / side)
        if rows is None:
            basis.append(q)
            diagonal, weight = diagonal + q * w, weight + q * q
            w, beta = _orthogonal(w, basis, H[:, k])
            column = H[: k + 1, k].tolist()
        else:
            rows[k] = q
            w, beta, column = _orthogonal_to_rows(w, rows[: k + 1])
            H[: k + 1, k] = column
        if not math.isfinite(beta):
            return _Arnoldi([], H, None, math.inf, step, calls)
        largest = max(largest, *map(abs, column))
        error = wrong / step + relative * largest
        if k + 1 == steps or not beta > 10.0 * error:
            break
        H[k + 1, k] = beta
        largest = max(largest, beta)
        q = w * (1.0 / beta)
    vectors: Any = basis if rows is None else rows[: k + 1]
    H = H[: k + 1, : k + 1]
    if rows is not None:
        diagonal, weight = _products_with_basis(vectors, H, w)
    ratio = to_host(diagonal) / np.maximum(to_host(weight), 1e-300)  # Bekas, Kokiopoulou and Saad 2007
    return _Arnoldi(vectors, H, ratio, error, step, calls)


def _arnoldi_on_device(
    grad: Gradient, z: Array, q: Array, step: float, steps: int, wrong: float, relative: float
) -> _Arnoldi:
    """The same on a GPU, where all numbers are asked for at the end; all steps are taken, and those that count kept.

    The basis is empty if a gradient cannot be evaluated; then numbers are needed on the way.
    """
    xp = namespace(z)
    multiple = (BASIS[z.shape[0] <= SHORT] if steps > BASIS[0] else BASIS[0]) if is_jax(xp) else 1
    compute = in_one_program(xp, _next_direction, 0)
    H, calls = np.zeros((steps, steps)), 1
    basis: list[Array] = []
    products: list[Array] = []  # of the Jacobian with the basis
    columns: list[Array] = []
    try:
        base = grad(z)
        for _ in range(steps):
            calls += 1
            p = grad(z + step * q)
            if p.shape != z.shape:
                return _Arnoldi([], H, None, math.inf, step, calls)
            basis.append(q)
            more = -len(basis) % multiple
            product, q, column = compute(xp, p, base, 1.0 / step, (*basis, *[0.0 * basis[0]] * more))
            products.append(product)
            columns.append(column)
        numbers = read_numbers(xp.concat(columns)).tolist()
    except Exception:  # whatever a gradient raises outside its domain
        return _Arnoldi([], H, None, math.inf, step, calls)
    largest, end = 0.0, 0
    for k in range(steps):
        start, end = end, end + int(columns[k].shape[0])
        parts, square = numbers[start : start + k + 1], numbers[end - 1]
        if not math.isfinite(square):
            return _Arnoldi([], H, None, math.inf, step, calls)
        H[: k + 1, k], beta = parts, math.sqrt(square)
        largest = max(largest, *map(abs, parts))
        error = wrong / step + relative * largest
        if k + 1 == steps or not beta > 10.0 * error:
            break
        H[k + 1, k] = beta
        largest = max(largest, beta)
    Q, JQ = xp.stack(basis[: k + 1]), xp.stack(products[: k + 1])
    weight = xp.sum(Q * Q, axis=0)
    ratio = xp.sum(Q * JQ, axis=0) / xp.where(weight > 0.0, weight, xp.ones_like(weight))
    return _Arnoldi(basis[: k + 1], H[: k + 1, : k + 1], read_numbers(ratio), error, step, calls)


def _next_direction(
    xp: Any, p: Array, base: Array, factor: float, basis: tuple[Array, ...]
) -> tuple[Array, Array, Array]:
    """The product of the Jacobian with the last vector of the basis, the next vector, and the numbers of both."""
    product = (p - base) * factor
    w, numbers = _projected(xp, product, basis)
    beta = xp.sqrt(numbers[-1])
    longer = beta > 0.0
    beta = xp.where(longer, beta, xp.ones_like(beta))
    return product, w / xp.astype(beta, w.dtype), numbers


def _products_with_basis(Q: Array, H: Array, w: Array) -> tuple[Array, Array]:
    """The sums of q * J q and of q * q over the rows q of Q.

    The products J q are combinations of the rows with the columns of H, and the last one has the part w beside that.
    They are formed for some columns of Q at a time, because all of them would take as much memory as Q.
    """
    diagonal, weight = np.empty(w.shape), np.empty(w.shape)
    for start in range(0, w.shape[0], BLOCK):
        part, columns = Q[:, start : start + BLOCK], slice(start, start + BLOCK)
        products = H.T @ part
        products[-1] += w[columns]
        diagonal[columns], weight[columns] = (part * products).sum(axis=0), (part * part).sum(axis=0)
    return diagonal, weight


def _orthogonal(w: Array, basis: list[Array], parts: Array) -> tuple[Array, float]:
    """The vector w minus its parts in the basis, which are added to ``parts``, and the length of what is left.

    This is done twice, because of rounding.
    """
    if may_be_on_gpu(w):
        w, found = _orthogonal_on_device(w, basis)
        parts[: len(basis)] += found[:-1]
        return w, math.sqrt(found[-1]) if 1e-280 < found[-1] < math.inf else norm(w)
    for _ in range(2):
        for i, b in enumerate(basis):
            part = inner(b, w)
            parts[i] += part
            w = w - part * b
    return w, norm(w)


def _orthogonal_on_device(w: Array, basis: list[Array]) -> tuple[Array, Array]:
    """The vector w minus its parts in the basis; and, asked for together, these parts and the square of what is left.

    The sums are computed in float64. The basis is filled up with zeros to one of few sizes, so that JAX compiles few
    programs.
    """
    xp = namespace(w)
    more = -len(basis) % BASIS[0] if is_jax(xp) else 0
    w, found = in_one_program(xp, _projected, 0)(xp, w, (*basis, *[0.0 * basis[0]] * more))
    numbers = to_host(found)
    return w, np.concatenate([numbers[: len(basis)], numbers[-1:]])


def _projected(xp: Any, w: Array, basis: tuple[Array, ...]) -> tuple[Array, Array]:
    dtype = w.dtype
    Q, w = xp.astype(xp.stack(basis), xp.float64), xp.astype(w, xp.float64)
    first = Q @ w
    w = w - first @ Q
    second = Q @ w
    w = w - second @ Q
    return xp.astype(w, dtype), xp.concat([first + second, xp.reshape(w @ w, (1,))])


def _orthogonal_to_rows(w: Array, Q: Array) -> tuple[Array, float, list[float]]:
    """What ``_orthogonal`` returns, where the vectors of the basis are the rows of a matrix, and the parts of w in it.

    The vector w is overwritten. A second time follows if no more than KEPT_SHARE of w is left: otherwise rounding
    errors would grow from vector to vector, until the basis is not orthogonal any more.
    """
    found = Q.dot(w)
    w -= found.dot(Q)
    rest, parts = norm(w), found.tolist()
    if not rest > KEPT_SHARE * math.hypot(rest, *parts):
        more = Q.dot(w)
        w -= more.dot(Q)
        rest, parts = norm(w), (found + more).tolist()
    return w, rest, parts


def _curvature(found: _Arnoldi, z: Array, calls: int) -> Curvature:
    """The curvatures around z from what Arnoldi's method has found there."""
    basis, H = found.basis, found.H
    values, vectors, _ = dsyevd(0.5 * (H + H.T))
    flat, steep = _combined(basis, vectors[:, 0]), _combined(basis, vectors[:, -1])
    skew, plane = norm((H - H.T).ravel()), (flat, steep)  # the Frobenius norm is not smaller than the spectral one
    wrong, count = math.inf, len(basis)
    if count >= DIRECTIONS:  # an entry of H - H' has four errors, each a part of about 1/sqrt(n) of a gradient's error
        wrong = 0.5 * found.step * skew * math.sqrt(z.shape[0] / (count * (count - 1)))
    if skew > SYMMETRIC * found.error:
        left, sizes, right = np.linalg.svd(H - H.T)
        skew, plane = float(sizes[0]), (_combined(basis, left[:, 0]), _combined(basis, right[0]))
    unit = np.zeros(z.shape[0])
    assert found.diagonal is not None
    unit[int(np.argmin(found.diagonal))] = 1.0
    return Curvature(
        low=float(values[0]),
        high=float(values[-1]),
        flat=flat,
        steep=steep,
        unit=space_of(z).cast(unit),
        skew=skew if len(basis) > 1 else 0.0,
        plane=plane,
        centre=z,
        error=found.error,
        wrong=wrong,
        calls=calls,
    )


def _combined(basis: Sequence[Array], weights: Array) -> Array:
    """The combination of the vectors of the basis with these weights, divided by its length."""
    if isinstance(basis[0], np.ndarray) and basis[0].dtype == np.float64:
        mixed: Array = weights.dot(basis if isinstance(basis, np.ndarray) else np.asarray(basis))
        return mixed * (1.0 / norm(mixed))
    if may_be_on_gpu(basis[0]):
        total: Array = space_of(basis[0]).cast(np.asarray(weights)) @ namespace(basis[0]).stack(basis)
    else:
        total = sum((float(w) * b for w, b in zip(weights[1:], basis[1:], strict=True)), float(weights[0]) * basis[0])
    return total * (1.0 / norm(total))
