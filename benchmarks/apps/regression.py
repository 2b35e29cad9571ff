"""Regression: time to the same coefficients, compared with other solvers.

The accuracy of coefficients is that of their objective above the best that was found, relative to it, and for
constrained problems |E w - e| beside it. scikit-learn's HuberRegressor minimises another function, because it estimates
the scale of the residuals too, and takes no constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint, minimize
from sklearn.datasets import load_diabetes
from sklearn.linear_model import HuberRegressor
from timing import cpu_seconds

from saddlepoint.apps import ConstrainedHuber, RobustLeastSquares
from saddlepoint.ground.arrays import Array

cp: Any = import_module("cvxpy")  # its type annotations are incomplete
L2 = 1e-3  # multiple of |w|^2/2
Answer = tuple[Array, float]  # coefficients and intercept


def rows(quick: bool) -> Iterator[list[str]]:
    """Application, task, solver, seconds, accuracy."""
    X, y = load_diabetes(return_X_y=True)
    X = X / X.std(axis=0)
    yield from huber("diabetes", X, y, 50.0)
    yield from robust("diabetes", X, y, 0.2)
    size = (5_000, 50) if quick else (50_000, 100)
    yield from huber("outliers", *synthetic(*size), 0.5)
    yield from robust("outliers", *synthetic(*size), 0.2)


def huber(task: str, X: Array, y: Array, delta: float) -> Iterator[list[str]]:
    """Huber regression with coefficients that sum to one."""
    E, e = np.ones((1, X.shape[1])), np.ones(1)

    def value(answer: Answer) -> float:
        r = np.abs(X @ answer[0] + answer[1] - y)
        loss = np.where(r <= delta, 0.5 * r * r, delta * r - 0.5 * delta * delta).mean()
        return float(loss + 0.5 * L2 * answer[0] @ answer[0])

    def ours() -> Answer:
        model = ConstrainedHuber((E, e), delta=delta, l2=L2).fit(X, y)
        return model.coef_, model.intercept_

    def by_cvxpy() -> Answer:
        w, b = cp.Variable(X.shape[1]), cp.Variable()
        loss = cp.sum(cp.huber(X @ w + b - y, delta)) / (2 * len(y)) + L2 / 2 * cp.sum_squares(w)
        cp.Problem(cp.Minimize(loss), [E @ w == e]).solve(solver=cp.CLARABEL)
        return w.value, float(b.value)

    def by_scipy() -> Answer:
        def both(x: Array) -> tuple[float, Array]:
            slope = np.clip(X @ x[:-1] + x[-1] - y, -delta, delta) / len(y)
            return value((x[:-1], x[-1])), np.append(X.T @ slope + L2 * x[:-1], slope.sum())

        equation = LinearConstraint(np.append(E, [[0.0]], axis=1), e, e)
        start = np.zeros(X.shape[1] + 1)
        options = {"ftol": 1e-15, "maxiter": 10_000}
        x = minimize(both, start, jac=True, constraints=equation, method="SLSQP", options=options).x
        return x[:-1], float(x[-1])

    runs = {"saddlepoint": ours, "Clarabel (CVXPY)": by_cvxpy, "SciPy SLSQP": by_scipy}
    name = f"Huber with sum(w) = 1, {task}, {X.shape[0]} x {X.shape[1]}"
    yield from compared(name, runs, value, lambda w: float(abs(E @ w - e)[0]))
    seconds, _ = cpu_seconds(lambda: HuberRegressor(alpha=L2, max_iter=10_000).fit(X, y))
    yield ["regression", name, "scikit-learn HuberRegressor", f"{seconds:.3g}", "another objective, no constraint"]


def robust(task: str, X: Array, y: Array, radius: float) -> Iterator[list[str]]:
    """The smallest worst-case error."""

    def value(answer: Answer) -> float:
        r = X @ answer[0] + answer[1] - y
        return float(np.sqrt(np.mean(r * r)) + radius * np.linalg.norm(answer[0]))

    def ours() -> Answer:
        model = RobustLeastSquares(radius).fit(X, y)
        return model.coef_, model.intercept_

    def by_cvxpy() -> Answer:
        w, b = cp.Variable(X.shape[1]), cp.Variable()
        loss = cp.norm(X @ w + b - y) / np.sqrt(len(y)) + radius * cp.norm(w)
        cp.Problem(cp.Minimize(loss)).solve(solver=cp.CLARABEL)
        return w.value, float(b.value)

    def by_ridge() -> Answer:
        """One singular value decomposition, and a search for the penalty radius |z|/|w| of ridge regression."""
        means, root = X.mean(axis=0), np.sqrt(len(y))
        U, d, Vt = np.linalg.svd((X - means) / root, full_matrices=False)
        s = (y - y.mean()) / root
        c = U.T @ s
        rest = np.linalg.norm(s - U @ c)
        penalty = 1.0
        for _ in range(1000):
            w = d * c / (d * d + penalty)
            last, penalty = penalty, radius * np.hypot(rest, np.linalg.norm(d * w - c)) / np.linalg.norm(w)
            if abs(penalty - last) <= 1e-12 * penalty:
                break
        w = Vt.T @ w
        return w, float(y.mean() - means @ w)

    runs = {"saddlepoint": ours, "Clarabel (CVXPY)": by_cvxpy, "SVD and a search": by_ridge}
    yield from compared(f"robust least squares, {task}, {X.shape[0]} x {X.shape[1]}", runs, value, None)


def compared(
    task: str,
    runs: dict[str, Callable[[], Answer]],
    value: Callable[[Answer], float],
    violation: Callable[[Array], float] | None,
) -> Iterator[list[str]]:
    """Times, and how far each objective is above the best one."""
    found = {name: cpu_seconds(run) for name, run in runs.items()}
    best = min(value(answer) for _, answer in found.values() if violation is None or violation(answer[0]) < 1e-9)
    for name, (seconds, answer) in found.items():
        accuracy = f"objective {value(answer) / best - 1.0:+.0e}"
        if violation is not None:
            accuracy += f", constraint off by {violation(answer[0]):.0e}"
        yield ["regression", task, name, f"{seconds:.3g}", accuracy]


def synthetic(rows: int, features: int) -> tuple[Array, Array]:
    """Correlated features of different sizes, and gross errors in 15 % of the targets."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, features)) @ rng.standard_normal((features, features)) / np.sqrt(features)
    X *= rng.lognormal(size=features)
    y = X @ rng.standard_normal(features) + 0.3 * rng.standard_normal(rows)
    return X, y + np.where(rng.random(rows) < 0.15, 30.0 * rng.exponential(size=rows), 0.0)
