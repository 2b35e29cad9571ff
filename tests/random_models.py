"""Random problems written with ``sp.model``, and the same problems in CVXPY.

The maximum over y has a closed form in each, so that CVXPY can minimise it over x.
"""

import cvxpy as cp
import numpy as np

import saddlepoint as sp

m = sp.model


def random_model(seed):
    """A ``Problem`` and the value that CVXPY finds for it, with the x that belongs to it."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    x, z, cx, cz = m.minimiser(n, "x"), m.minimiser((2, k), "Z"), cp.Variable(n), cp.Variable((2, k))
    objective, truth, conditions, limits = _strong_terms(rng, x, z, cx, cz)
    for _ in range(int(rng.integers(1, 4))):
        ours, theirs = _convex_term(rng, x, cx)
        objective, truth = objective + ours, truth + theirs
    if rng.random() < 0.5:
        ours, theirs = _convex_term(rng, z.ravel(), cp.vec(cz, order="C"))
        objective, truth = objective + ours, truth + theirs
    for number in range(int(rng.integers(1, 3))):
        ours, theirs = _maximum(rng, x, z, cx, cz, f"y{number}")
        objective, truth = objective + ours, truth + theirs
    E = rng.standard_normal((1, n))
    if rng.random() < 0.3:
        conditions, limits = [*conditions, E @ x <= 0.3], [*limits, E @ cx <= 0.3]
    if rng.random() < 0.3:
        conditions, limits = [*conditions, m.norm2(z) <= 1.5], [*limits, cp.norm(cz, "fro") <= 1.5]
    problem = cp.Problem(cp.Minimize(truth), limits)
    problem.solve(solver=cp.CLARABEL)
    return m.Problem(objective, conditions, multiplier_bound=200.0), problem.value, cx.value


def _strong_terms(rng, x, z, cx, cz):
    """Terms or bounds that make the problem one with a solution, and perhaps with a unique one."""
    n, b = x.size, rng.standard_normal(z.shape)
    ours, theirs = 0.5 * m.sum_squares(z - b), 0.5 * cp.sum_squares(cz - b)
    kind = int(rng.integers(4))
    if kind == 0:
        c = rng.standard_normal(n)
        return ours + c @ x, theirs + c @ cx, [x >= -1.0, x <= 2.0], [cx >= -1.0, cx <= 2.0]
    if kind == 1:
        conditions, limits = [x >= 0.0, x.sum() == 1.0], [cx >= 0.0, cp.sum(cx) == 1.0]
        return ours, theirs, conditions, limits
    if kind == 2:
        D, t = rng.standard_normal((n + 3, n)), rng.standard_normal(n + 3)
        return ours + m.sum_squares(D @ x - t), theirs + cp.sum_squares(D @ cx - t), [], []
    F = rng.standard_normal((n, n))
    P = F @ F.T + 0.1 * np.eye(n)
    return ours + m.quad_form(x - 1.0, P), theirs + cp.quad_form(cx - 1.0, cp.psd_wrap(P)), [], []


def _convex_term(rng, x, cx):
    n = x.size
    D, t, c = rng.standard_normal((3, n)), rng.standard_normal(3), float(rng.uniform(0.1, 2.0))
    pairs = [
        (m.norm1(x), cp.norm1(cx)),
        (m.norm1(D @ x - t), cp.norm1(D @ cx - t)),
        (m.norm2(D @ x), cp.norm(D @ cx)),
        (m.norm_inf(x - 0.5), cp.norm_inf(cx - 0.5)),
        (m.max_entry(D @ x + t), cp.max(D @ cx + t)),
        (m.positive_part(1.0 - D @ x), cp.sum(cp.pos(1.0 - D @ cx))),
        (m.logistic(D @ x - t), cp.sum(cp.logistic(D @ cx - t))),
        (m.huber(D @ x - t, 0.5), 0.5 * cp.sum(cp.huber(D @ cx - t, 0.5))),
        (m.log_sum_exp(D @ x - t), cp.log_sum_exp(D @ cx - t)),
        (m.sum_squares(x[:2] - 1.0), cp.sum_squares(cx[:2] - 1.0)),
        (m.norm_rows((D @ x).reshape(3, 1)), cp.norm1(D @ cx)),
        (m.norm2(x), cp.norm(cx)),
        (3.0 * (x @ np.ones(n)), 3.0 * cp.sum(cx)),
    ]
    ours, theirs = pairs[int(rng.integers(len(pairs)))]
    return c * ours, c * theirs


def _maximum(rng, x, z, cx, cz, name):
    """<K x + L z + c, y> - (a function of y), and its maximum over y."""
    r = int(rng.integers(1, 5))
    K, L, c = rng.standard_normal((r, x.size)), rng.standard_normal((r, z.size)), rng.standard_normal(r)
    inside = K @ cx + L @ cp.vec(cz, order="C") + c
    kind, d = int(rng.integers(5)), float(rng.uniform(0.3, 2.0))
    set_of_y = [sp.Box(-d, d), sp.Simplex(d), sp.Ball(d), sp.Ball(d, norm=1), None][kind]
    y = m.maximiser(r, name, set_of_y)
    e = K @ x + L @ z.ravel() + c
    if kind == 4:
        return e @ y - d * m.sum_squares(y), cp.sum_squares(inside) / (4.0 * d)
    closed = [cp.norm1(inside), cp.max(inside), cp.norm(inside), cp.norm_inf(inside)][kind]
    return e @ y, d * closed
