"""Small problems in rational arithmetic, in which the numbers of NumPy arrays are exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

Vector = list[Fraction]
Matrix = list[Vector]


def exact(array):
    """A number as a fraction, an array or a list as (lists of) fractions."""
    return [exact(part) for part in array] if np.ndim(array) else Fraction(float(array))


def dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((u * v for u, v in zip(a, b, strict=True) if u and v), Fraction(0))


def times(A: Matrix, x: Vector) -> Vector:
    return [dot(row, x) for row in A]


def transposed(A: Matrix) -> Matrix:
    return [list(column) for column in zip(*A, strict=True)]


def mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def weighted_gram(A: Matrix, weights: Vector, B: Matrix | None = None) -> Matrix:
    """A' diag(weights) B, with B = A if left out."""
    left, right = transposed(A), transposed(A if B is None else B)
    return [[dot([w * u for w, u in zip(weights, a, strict=True)], b) for b in right] for a in left]


def centred_columns(A: Matrix) -> Matrix:
    """A minus the means of its columns."""
    means = [mean(column) for column in zip(*A, strict=True)]
    return [[v - m for v, m in zip(row, means, strict=True)] for row in A]


def solved(A: Matrix, b: Vector) -> Vector | None:
    """The solution of A x = b, by elimination; None if A is singular."""
    n = len(b)
    rows = [[*row, value] for row, value in zip(A, b, strict=True)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(n):
            factor = rows[i][k]
            if i != k and factor != 0:
                rows[i] = [u - factor * v for u, v in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def length(v: Sequence[Fraction]) -> float:
    """|v|, of which the square is exact."""
    square = dot(v, v)
    scale = Fraction(2) ** (2 * ((square.numerator.bit_length() - square.denominator.bit_length()) // 2))
    return math.sqrt(square / scale) * math.sqrt(scale) if square else 0.0


def distance(point, truth: Vector) -> float:
    """The distance of an array of floats from a vector of fractions."""
    return length([u - v for u, v in zip(exact(point), truth, strict=True)])
