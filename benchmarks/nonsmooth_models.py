"""Sparse, robust and fair models, support vector machines and games with costs, beside specialised solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from nonsmooth_peers import SMALLER, Array, Row, beside, clarabel, optional, relative
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import ElasticNet, LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import saddlepoint as sp

cp: Any = import_module("cvxpy")


def games(n: int) -> Iterator[Row]:
    """Quadratic costs on probabilities; Clarabel solves the dual of the player that maximises."""
    rng = np.random.default_rng(0)
    A, b, goal = rng.standard_normal((n, n)) / np.sqrt(n), rng.standard_normal(n), 1e-6

    def ours(distance: float) -> tuple[Array, float]:
        # A is the payoff of the columns here, and x, who minimises, has the rows.
        game = sp.apps.MatrixGame(A.T, cost_row=1.0, cost_column=sp.Quadratic(1.0, b))
        found = game.solve(tol=distance**2 / 4.0)
        return found.column, found.distance

    x, u = cp.Variable(n), cp.Variable(n)
    value = 0.5 * cp.sum_squares(x) + b @ x + 0.5 * cp.sum_squares(A.T @ x - u) + cp.max(u)
    program = cp.Problem(cp.Minimize(value), [cp.sum(x) == 1, x >= 0])
    exact, _ = ours(1e-9)
    peers = {"Clarabel (CVXPY)": (clarabel(program, x), SMALLER)}
    task = f"quadratic costs on probabilities, {n} x {n}, distance 1e-6"
    yield from beside(task, goal, exact, lambda: ours(goal), peers, lambda a, e: float(np.linalg.norm(a - e)))


def drawn(N: int, p: int) -> tuple[Array, Array]:
    """Normal features, one in a hundred of which counts, and targets with noise."""
    rng = np.random.default_rng(0)
    D = np.asfortranarray(rng.standard_normal((N, p)))
    w = np.zeros(p)
    w[rng.choice(p, p // 100, replace=False)] = rng.standard_normal(p // 100)
    signal = D @ w
    return D, signal + 0.1 * np.linalg.norm(signal) / np.sqrt(N) * rng.standard_normal(N)


def elastic_net(name: str, D: Array, t: Array, share: float, goal: float = 1e-6) -> Iterator[Row]:
    """Least squares with l1 = share of the smallest that makes all weights zero, and l2 = l1/10."""
    N = len(t)
    l1 = share * float(np.abs(D.T @ t).max()) / N
    alpha, ratio = 1.1 * l1, 1.0 / 1.1

    def ours(accuracy: float, size: float) -> tuple[Array, float]:
        # tol is that of the fitted values: certified distance times |D|/(sqrt(N) scale)
        scale = np.linalg.norm(t) / np.sqrt(N)
        tol = accuracy * size * length / (np.sqrt(N) * scale)
        model = sp.apps.RiskRegressor(l1=l1, l2=0.1 * l1, fit_intercept=False, tol=tol).fit(D, t)
        return model.coef_, model.certificate_.distance_x / size

    length = sp.as_coupling(D).norm
    first = ElasticNet(alpha=alpha, l1_ratio=ratio, fit_intercept=False, tol=1e-6, max_iter=10**5).fit(D, t)
    size = float(np.linalg.norm(first.coef_))
    exact, _ = ours(1e-8, size)

    def by(model: Any) -> tuple[Callable[[float], Array], list[float]]:
        made = {"alpha": alpha, "l1_ratio": ratio, "fit_intercept": False}
        return lambda tol: np.asarray(model(**made, tol=tol, max_iter=10**5).fit(D, t).coef_), SMALLER

    peers = {"scikit-learn": by(ElasticNet)}
    for module in ("celer", "skglm"):
        if found := optional(module):
            peers[module] = by(found.ElasticNet)
    task = f"elastic net, {name} {N} x {D.shape[1]}, {np.count_nonzero(exact)} used, relative 1e-6"
    yield from beside(task, goal, exact, lambda: ours(goal, size), peers, relative)


def logistic(name: str, D: Array, labels: Array, share: float, goal: float = 1e-6) -> Iterator[Row]:
    """Logistic regression with l1 and l2 = l1/10."""
    N, signs = len(labels), np.where(labels, 1.0, -1.0)
    l1 = share * float(np.abs(D.T @ signs).max()) / (2 * N)
    length = sp.as_coupling(D).norm

    def ours(accuracy: float, size: float) -> tuple[Array, float]:
        tol = accuracy * size * length / np.sqrt(N)
        model = sp.apps.RiskClassifier(l1=l1, l2=0.1 * l1, fit_intercept=False, tol=tol).fit(D, labels)
        return model.coef_[0], model.certificate_.distance_x / size

    size = float(np.linalg.norm(ours(1e-3, 1.0)[0]))
    exact, _ = ours(1e-8, size)

    def saga(tol: float) -> Array:
        C = 1.0 / (N * 1.1 * l1)
        model = LogisticRegression(C=C, l1_ratio=1.0 / 1.1, solver="saga", fit_intercept=False, tol=tol)
        return np.asarray(model.set_params(max_iter=500).fit(D, labels).coef_[0])

    peers: dict[str, Any] = {}
    if D.size < 10**6:  # saga takes minutes on the others
        peers["scikit-learn (saga)"] = (saga, [1e-4, 1e-8])
    if skglm := optional("skglm"):
        Logistic = import_module("skglm.datafits").Logistic
        Penalty = import_module("skglm.penalties").L1_plus_L2
        ProxNewton = import_module("skglm.solvers").ProxNewton

        def newton(tol: float) -> Array:
            solver = ProxNewton(tol=tol, fit_intercept=False, max_iter=1000)
            penalty = Penalty(1.1 * l1, 1.0 / 1.1)
            model = skglm.GeneralizedLinearEstimator(datafit=Logistic(), penalty=penalty, solver=solver)
            return np.ravel(model.fit(D, signs).coef_)

        peers["skglm (prox-Newton)"] = (newton, SMALLER)
    task = f"sparse logistic, {name} {N} x {D.shape[1]}, {np.count_nonzero(exact)} used, relative 1e-6"
    yield from beside(task, goal, exact, lambda: ours(goal, size), peers, relative)


def sparse(quick: bool) -> Iterator[Row]:
    """Elastic nets and sparse logistic regression, on bundled data and on drawn ones."""
    standard = StandardScaler().fit_transform
    X, t = load_diabetes(return_X_y=True)
    yield from elastic_net("diabetes", np.asfortranarray(standard(X)), t - t.mean(), 0.1)
    yield from elastic_net("drawn", *drawn(*((100, 1000) if quick else (2000, 10_000))), 0.05)
    X, y = load_breast_cancer(return_X_y=True)
    yield from logistic("breast cancer", np.asfortranarray(standard(X)), y == 1, 0.02)
    if not quick:
        X, y = load_digits(return_X_y=True)
        yield from logistic("digits (8 or not)", np.asfortranarray(standard(X)), y == 8, 0.02)
        D, t = drawn(2000, 10_000)
        yield from logistic("drawn", D, t > 0.0, 0.1)


def machine(name: str, D: Array, labels: Array, l2: float = 1e-2, goal: float = 1e-6) -> Iterator[Row]:
    """The support vector machine with the hinge loss, beside liblinear."""
    N, length = len(labels), sp.as_coupling(D).norm

    def ours(accuracy: float) -> tuple[Array, float]:
        tol = accuracy * size * length / np.sqrt(N)
        model = sp.apps.RiskClassifier("hinge", l2, fit_intercept=False, tol=tol).fit(D, labels)
        return model.coef_[0], model.certificate_.distance_x / size

    def liblinear(tol: float) -> Array:
        model = LinearSVC(loss="hinge", C=1.0 / (N * l2), fit_intercept=False, tol=tol, max_iter=10**5)
        return np.asarray(model.fit(D, labels).coef_[0])

    size = float(np.linalg.norm(liblinear(1e-4)))
    peers: dict[str, Any] = {"liblinear (scikit-learn)": (liblinear, SMALLER)}
    task = f"support vector machine, {name} {N} x {D.shape[1]}, l2 = {l2:g}, relative {goal:.0e}"
    yield from beside(task, goal, ours(1e-9)[0], lambda: ours(goal), peers, relative)


def machines(quick: bool) -> Iterator[Row]:
    """Support vector machines on bundled data and on drawn ones."""
    standard = StandardScaler().fit_transform
    X, y = load_breast_cancer(return_X_y=True)
    yield from machine("breast cancer", standard(X), y == 1)
    if not quick:
        X, y = load_digits(return_X_y=True)
        yield from machine("digits (8 or not)", standard(X), y == 8)
        yield from machine("digits (8 or not)", standard(X), y == 8, 1e-4)
        rng = np.random.default_rng(0)
        D = rng.standard_normal((20_000, 50))
        yield from machine("drawn", D, D @ rng.standard_normal(50) + 2.0 * rng.standard_normal(20_000) > 0.0)


def robust(N: int, n: int, goal: float = 1e-5) -> Iterator[Row]:
    """Fair classification, group DRO and Wasserstein DRO, beside Clarabel."""
    rng = np.random.default_rng(0)
    z, group = rng.integers(0, 2, N), rng.integers(0, 4, N)
    D = rng.standard_normal((N, n)) + 0.8 * z[:, None] * rng.standard_normal(n)
    y = D @ rng.standard_normal(n) + (1.0 + group) * rng.standard_normal(N) > 0.0
    w, signs = cp.Variable(n), np.where(y, 1.0, -1.0)
    margin, ridge = cp.multiply(signs, D @ w), 0.005 * cp.sum_squares(w)
    logistic_risk, hinge_risk = cp.sum(cp.logistic(-margin)) / N, cp.sum(cp.pos(1 - margin)) / N
    limit = [cp.abs((D - D.mean(axis=0)).T @ (z - z.mean()) / N @ w) <= 0.02]
    parts = [cp.sum(cp.logistic(-margin[group == g])) / np.count_nonzero(group == g) for g in range(4)]
    scale = sp.as_coupling(D).norm / np.sqrt(N)
    apps, free, value = sp.apps, {"fit_intercept": False}, logistic_risk + ridge
    tasks: dict[str, tuple[Any, tuple[Array, ...], Any, list[Any]]] = {
        "fair logistic regression": (partial(apps.FairClassifier, "logistic", 0.02), (z,), value, limit),
        "fair support vector machine": (partial(apps.FairClassifier, "hinge", 0.02), (z,), hinge_risk + ridge, limit),
        "group DRO, logistic, 4 groups": (apps.GroupDROClassifier, (group,), cp.maximum(*parts) + ridge, []),
        "Wasserstein DRO, logistic": (
            partial(apps.WassersteinClassifier, 0.1, l2=0.01), (), logistic_risk + ridge + 0.1 * cp.norm(w), []
        ),
        "Wasserstein DRO, hinge": (
            partial(apps.WassersteinClassifier, 0.1, "hinge", l2=0.01), (), hinge_risk + ridge + 0.1 * cp.norm(w), []
        ),
        "group lasso, logistic, 5 groups": (
            partial(apps.RiskClassifier, groups=np.arange(n) % 5, group_weight=0.02), (),
            logistic_risk + ridge + 0.02 * sum(cp.norm(w[k::5]) for k in range(5)), []
        ),
    }  # fmt: skip
    for name, (make, more, objective, constraints) in tasks.items():

        def ours(accuracy: float, size: float, make: Any = make, more: Any = more) -> tuple[Array, float]:
            model = make(tol=accuracy * size * scale, **free).fit(D, y, *more)
            proof = model.certificate_
            return np.ravel(model.coef_), getattr(proof, "distance_x", proof.distance) / size

        size = float(np.linalg.norm(ours(1e-3, 1.0)[0]))
        peers = {"Clarabel (CVXPY)": (clarabel(cp.Problem(cp.Minimize(objective), constraints), w), SMALLER)}
        task = f"{name}, drawn {N} x {n}, relative {goal:.0e}"
        finer = 3e-6 if "group DRO" in name else 1e-8
        yield from beside(task, goal, ours(finer, size)[0], partial(ours, goal, size), peers, relative)
