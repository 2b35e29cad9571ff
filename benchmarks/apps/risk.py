"""Risk minimisation compared with scikit-learn (no structure), and with Clarabel and L-BFGS (with a structure).

Accuracy is a bound on |w - w*|/|w*|: the distance to a solution that was asked to be a hundred times more accurate,
and the certified distance of that one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import block_diag, coo_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
from timing import cpu_seconds

from saddlepoint.apps.risk import RiskClassifier, RiskRegressor
from saddlepoint.apps.structure import Graph, Groups, Norms
from saddlepoint.ground.arrays import Array
from saddlepoint.parts.functions import Quadratic

Fit = Callable[[], Array]  # the weights of the features


def rows(quick: bool) -> Iterator[list[str]]:
    """One row for each task and solver: application, task, solver, seconds, accuracy."""
    for task, (model, X, y) in tasks(quick).items():
        reference = clone(model).set_params(tol=1e-2 * model.tol).fit(X, y)
        exact, slack = weights(reference), reference.certificate_.distance
        for solver, fit in solvers(model, X, y).items():
            seconds, found = cpu_seconds(fit, 1 if quick else 3)
            error = (np.linalg.norm(found - exact) + slack) / np.linalg.norm(exact)
            yield ["risk minimisation", task, solver, f"{seconds:.3g}", f"{error:.0e}"]


def tasks(quick: bool) -> dict[str, tuple[Any, Any, Array]]:
    """The tasks: models, each with its data."""
    cancer, benign = load_breast_cancer(return_X_y=True)
    cancer = StandardScaler().fit_transform(cancer)
    digits, digit = load_digits(return_X_y=True)
    found: dict[str, tuple[Any, Any, Array]] = {
        "logistic, breast cancer 569 x 30": (RiskClassifier(l2=1e-2), cancer, benign),
        "logistic, digits (8 or not) 1797 x 64": (RiskClassifier(l2=1e-2), digits / 16, digit == 8),
        "logistic and graph, digits (8 or not) 1797 x 64": (
            RiskClassifier(l2=1e-2, structure=Graph(grid_to_graph(8, 8), 0.1)),
            digits / 16,
            digit == 8,
        ),
        "smoothed hinge and overlapping groups, breast cancer 569 x 30": (
            RiskClassifier("smoothed_hinge", l2=1e-2, structure=Groups(cancer_groups(), 0.02)),
            cancer,
            benign,
        ),
        "squared and few bends, diabetes in bins 442 x 200": (RiskRegressor(l2=1e-3, structure=bends(10)), *in_bins()),
    }
    if not quick:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((2000, 1000))
        labels = X @ np.sin(np.linspace(0.0, 6.0, 1000)) + 5.0 * rng.standard_normal(2000) > 0.0
        pairs = np.stack((np.arange(999), np.arange(1, 1000)), axis=1)
        for name, strength in (("chain", 1.0), ("strong chain", 1e4)):
            model = RiskClassifier(l2=1e-2, structure=Graph(pairs, strength))
            found[f"logistic and {name}, drawn 2000 x 1000"] = model, X, labels
    return found


def cancer_groups() -> list[list[int]]:
    """Ten measurements, and the three statistics that are taken of each."""
    return [[j, j + 10, j + 20] for j in range(10)] + [list(range(k, k + 10)) for k in (0, 10, 20)]


def bends(features: int) -> Norms:
    """Second differences of the weights of neighbouring bins."""
    return Norms(block_diag([coo_array(np.diff(np.eye(20), 2, axis=0))] * features, format="csr"), 0.03, 0.01)


def in_bins() -> tuple[Any, Array]:
    """Ten features in 20 bins each."""
    X, t = load_diabetes(return_X_y=True)
    return KBinsDiscretizer(20, encode="onehot-dense", strategy="uniform").fit_transform(X), t / t.std()


def solvers(model: Any, X: Any, y: Array) -> dict[str, Fit]:
    """This library and the other solvers for the task."""
    found: dict[str, Fit] = {"saddlepoint, auto": lambda: weights(clone(model).fit(X, y))}
    if model.structure is None:
        theirs = LogisticRegression(C=1 / (len(X) * model.l2), solver="liblinear", tol=1e-7, max_iter=10_000)
        return found | {"scikit-learn, liblinear": lambda: weights(theirs.fit(X, y))}
    if isinstance(model.structure, Norms):
        found["saddlepoint, lpd-gs"] = lambda: weights(clone(model).set_params(method="lpd-gs").fit(X, y))
    return found | {
        "SciPy, L-BFGS-B": lambda: by_lbfgs(model, X, y),
        "CVXPY, Clarabel": lambda: by_clarabel(model, X, y),
    }


def by_lbfgs(model: Any, X: Any, y: Array) -> Array:
    """The primal problem, without a saddle form: risk and penalty are smooth."""
    f = model.problem(X, y)
    phi = Quadratic(model.structure.strength) if isinstance(model.structure, Graph) else f.h.of

    def value_and_slope(w: Array) -> tuple[float, Array]:
        Kw = f.A.tmul(w)
        return f.g(w) + phi(Kw), f.g.grad(w) + f.A.mul(phi.grad(Kw))

    tight = {"maxiter": 100_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-8}
    w = minimize(value_and_slope, np.zeros(f.shape[0]), jac=True, method="L-BFGS-B", options=tight).x
    return np.asarray(w[: X.shape[1]])


def by_clarabel(model: Any, X: Any, y: Array) -> Array:
    """The model as written; a rounded function is an infimal convolution."""
    cp: Any = import_module("cvxpy")
    w, b, free = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(len(X))
    scores = X @ w + b
    objective = model.l2 / 2 * cp.sum_squares(w)
    if model.loss == "squared":
        risk = cp.sum_squares(scores - y) / 2
    else:
        margin = cp.multiply(2.0 * y - 1.0, scores)
        objective += model.l2 / 2 * b**2
        rounded = cp.sum(cp.pos(free)) + cp.sum_squares(1 - margin - free) / (2 * getattr(model, "width", 1.0))
        risk = cp.sum(cp.logistic(-margin)) if model.loss == "logistic" else rounded
    K = model.structure.matrix(X.shape[1])
    if isinstance(model.structure, Graph):
        objective += model.structure.strength / 2 * cp.sum_squares(K @ w)
    else:
        v, labels = cp.Variable(K.shape[0]), model.structure._row_labels(K.shape[0])
        tips = sum(cp.norm(v[np.flatnonzero(labels == group)]) for group in np.unique(labels))
        objective += model.structure.strength * (tips + cp.sum_squares(K @ w - v) / (2 * model.structure.width))
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the accuracy is in the table
        cp.Problem(cp.Minimize(risk / len(X) + objective)).solve(solver=cp.CLARABEL, **tight)
    return np.asarray(w.value)


def weights(fitted: Any) -> Array:
    """The weights w, without the intercept."""
    return np.ravel(fitted.coef_)
