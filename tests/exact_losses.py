"""The exact solution of a linear model with a piecewise linear loss, in fractions, from a point near it.

min_w (1/N) sum_i max_y [y r_i - epsilon |y|] + l2/2 |w|^2 + l1 |w|_1, with r = D w - t and lower <= y_i <= upper.
A point near the solution says on which faces w and y are. There the conditions of the solution are linear equations,
which are solved in fractions; then all inequalities are tested. If they hold, the solution is the exact one.
"""

from fractions import Fraction

import numpy as np
from exact import solved


def exact_weights(D, t, lower, upper, epsilon, l2, l1, free, w, y):
    """The exact weights as fractions, or None if the faces of (w, y) are not those of the solution.

    Args:
        D, t: lists of fractions.
        lower, upper: for each sample, as floats.
        epsilon, l2, l1: floats.
        free: the weights that take no part in l1.
        w, y: a point near the solution.
    """
    N, n = len(D), len(D[0])
    rho, weight = Fraction(l2) * N, Fraction(l1) * N
    epsilon = Fraction(epsilon)
    lower, upper = [Fraction(float(v)) for v in lower], [Fraction(float(v)) for v in upper]
    S = [j for j in range(n) if w[j] != 0.0]
    side = [int(np.sign(v)) for v in w]
    values, F = [], []
    for i in range(N):
        place = Fraction(float(y[i]))
        near = [v for v in (lower[i], upper[i], Fraction(0)) if v != 0 or epsilon > 0 or v in (lower[i], upper[i])]
        at = next((v for v in near if abs(place - v) <= Fraction(1, 10**9)), None)
        values.append(at)
        if at is None:
            F.append(i)
    signs = [0 if v is None else (v > 0) - (v < 0) for v in values]
    for i in F:
        signs[i] = 1 if y[i] > 0 else -1
    # The unknowns are w_S and y_F.
    rows, right = [], []
    for j in S:
        rows.append([rho if j == k else Fraction(0) for k in S] + [D[i][j] for i in F])
        known = sum(values[i] * D[i][j] for i in range(N) if values[i] is not None)
        right.append(-known - (0 if j in free else weight * side[j]))
    for i in F:
        rows.append([D[i][j] for j in S] + [Fraction(0)] * len(F))
        right.append(t[i] + epsilon * signs[i])
    both = solved(rows, right)
    if both is None:
        return None
    exact, ys = [Fraction(0)] * n, list(values)
    for k, j in enumerate(S):
        exact[j] = both[k]
    for k, i in enumerate(F):
        ys[i] = both[len(S) + k]
    return exact if is_solution(D, t, lower, upper, epsilon, rho, weight, free, exact, ys) else None


def is_solution(D, t, lower, upper, epsilon, rho, weight, free, w, y):
    """Whether the conditions of the solution hold, exactly."""
    for j in range(len(w)):
        slope = rho * w[j] + sum(y[i] * D[i][j] for i in range(len(y)))
        size = 0 if j in free else weight
        if not (slope == -size * ((w[j] > 0) - (w[j] < 0)) if w[j] != 0 else abs(slope) <= size):
            return False
    for i in range(len(y)):
        r = sum(D[i][j] * w[j] for j in range(len(w))) - t[i]
        if not lower[i] <= y[i] <= upper[i]:
            return False
        to_left = epsilon if y[i] > 0 else -epsilon  # the slopes of epsilon |y|
        to_right = epsilon if y[i] >= 0 else -epsilon
        if (y[i] > lower[i] and r < to_left) or (y[i] < upper[i] and r > to_right):
            return False
    return True
