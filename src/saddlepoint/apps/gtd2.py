"""GTD2, the stochastic gradient method for policy evaluation, for comparison."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.apps.policy import PolicyEvaluation
from saddlepoint.ground.arrays import Array


def gtd2(task: PolicyEvaluation, *, step: float = 0.5, ratio: float = 1.0, seed: int = 0) -> Iterator[Array]:
    """GTD2 of Sutton et al. (2009), the stochastic gradient method for the same objective.

    theta += a ((p - gamma q) p'w - ridge theta),   w += ratio a ((r - (p - gamma q)'theta - p'w) p - ridge_w w)
    for transitions drawn at random; a = step / max |p|^2 in the first pass, divided by sqrt(k) in the k-th.

    Args:
        task: the transitions.
        step: the step size of the first pass, in units of 1 / max |p|^2.
        ratio: the step size of w relative to that of theta.
        seed: the seed of the random draws.

    Yields:
        theta after every pass of as many draws as there are transitions.
    """
    phi, psi = csr_array(task.phi), csr_array(task.psi)
    rows, rng = phi.shape[0], np.random.default_rng(seed)
    most = rows * float(phi.multiply(phi).sum(axis=1).max())  # the weights in the rows make them short
    theta, w = np.zeros(task.d), np.zeros(task.d)
    for k in count(1):
        a = step / most / k**0.5
        for t in rng.integers(rows, size=rows):
            i, j = (slice(matrix.indptr[t], matrix.indptr[t + 1]) for matrix in (phi, psi))
            p, change, at, to = phi.data[i], psi.data[j], phi.indices[i], psi.indices[j]  # change = p - gamma q
            guess = p @ w[at]
            error = task.rewards[t] - change @ theta[to] - guess
            theta *= 1.0 - a * task.ridge
            w *= 1.0 - ratio * a * task.ridge_w
            theta[to] += (a * rows * guess) * change
            w[at] += (ratio * a * rows * error) * p
        yield theta.copy()
