"""AUC maximisation: time to the same weights as other solvers, and held-out AUC compared with logistic regression."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, lsqr
from scipy.stats import ttest_rel
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from timing import cpu_seconds

from saddlepoint.apps import AUCClassifier
from saddlepoint.ground.arrays import Array

cp: Any = import_module("cvxpy")  # its type annotations are incomplete
NAME = "AUC maximisation"
L2 = 1e-2  # multiple of |w|^2/2
GRID = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]  # multiples of |w|^2/2 among which the best is chosen


def rows(quick: bool) -> Iterator[list[str]]:
    """Application, task, solver, seconds, accuracy."""
    X, y = load_wine(return_X_y=True)
    yield from compared("rarest wine", StandardScaler().fit_transform(X), y == 2, pairs=True)
    X, y = load_digits(return_X_y=True)
    yield from compared("digit 8", StandardScaler().fit_transform(X), y == 8)
    yield from compared("dense rows", *dense(20_000 if quick else 200_000, 100))
    yield from compared("sparse rows", *scattered(5_000 if quick else 50_000, 1_500 if quick else 4_000))
    for kernel in (False, True):
        yield from held_out(kernel, quick)
    yield recipe(quick)


def compared(task: str, X: Any, y: Array, pairs: bool = False) -> Iterator[list[str]]:
    """The weights of this library and of others, each with its distance from the reference."""
    task = f"{task}, {X.shape[0]} x {X.shape[1]}"
    exact = reference(X, y)

    def row(solver: str, seconds: float, w: Array) -> list[str]:
        error = np.linalg.norm(w - exact) / np.linalg.norm(exact)
        return [NAME, task, solver, f"{seconds:.3g}", f"relative error {error:.0e}"]

    model = AUCClassifier(L2)
    yield row("saddlepoint", cpu_seconds(lambda: model.fit(X, y))[0], model.coef_[0])
    yield row("normal equations", *cpu_seconds(lambda: normal_equations(X, y)))
    if pairs:
        yield row("Clarabel (CVXPY) on all pairs", *cpu_seconds(lambda: clarabel(X, y)))
    logistic = LogisticRegression(C=1.0 / (L2 * X.shape[0]), max_iter=10_000)
    seconds = cpu_seconds(lambda: logistic.fit(X, y))[0]
    yield [NAME, task, "scikit-learn LogisticRegression", f"{seconds:.3g}", "another loss"]


def held_out(kernel: bool, quick: bool) -> Iterator[list[str]]:
    """One class against the rest on three data sets: mean AUC, and on how many tasks it is no worse."""
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)
    inner = StratifiedKFold(3, shuffle=True, random_state=0)
    seconds = [0.0, 0.0]
    means: list[tuple[float, float]] = []
    no_worse = [0, 0]
    tasks = list(one_against_rest(quick))
    for X, y in tasks:
        C = [1.0 / (0.8 * len(y) * l2) for l2 in GRID]
        models = ((AUCClassifier(), {"l2": GRID}), (LogisticRegression(max_iter=20_000), {"C": C}))
        scores = []
        for i, (model, grid) in enumerate(models):
            search = GridSearchCV(model, grid, scoring="roc_auc", cv=inner)
            features = [Nystroem(gamma=0.2 / X.shape[1], random_state=0)] if kernel else []
            pipeline = make_pipeline(StandardScaler(), *features, search)
            began = time.process_time()
            scores.append(cross_val_score(pipeline, X, y, scoring="roc_auc", cv=folds))
            seconds[i] += time.process_time() - began
        gain = scores[0] - scores[1]
        error = gain.std(ddof=1) / len(gain) ** 0.5
        no_worse[0] += int(gain.mean() >= -error)
        no_worse[1] += int(-gain.mean() >= -error)
        means.append((scores[0].mean(), scores[1].mean()))
    task = f"{len(tasks)} one-against-rest tasks, {'kernel' if kernel else 'plain'} features"
    for i, name in enumerate(("saddlepoint", "scikit-learn LogisticRegression")):
        average = np.mean([pair[i] for pair in means])
        verdict = f"held-out AUC {average:.4f}, no worse than the other on {no_worse[i]} of {len(tasks)}"
        yield [NAME, task, name, f"{seconds[i]:.3g}", verdict]


def recipe(quick: bool) -> list[str]:
    """Kernel features, which the page recommends, against logistic regression without them: paired t-tests at 5 %."""
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)
    inner = StratifiedKFold(3, shuffle=True, random_state=0)
    worse = better = 0
    means = []
    began = time.process_time()
    tasks = list(one_against_rest(quick))
    for X, y in tasks:
        C = [1.0 / (0.8 * len(y) * l2) for l2 in GRID]
        features = Nystroem(gamma=0.2 / X.shape[1], n_components=min(300, len(y) // 2), random_state=0)
        ours = GridSearchCV(AUCClassifier(), {"l2": GRID}, scoring="roc_auc", cv=inner)
        theirs = GridSearchCV(LogisticRegression(max_iter=20_000), {"C": C}, scoring="roc_auc", cv=inner)
        scores = [
            cross_val_score(make_pipeline(StandardScaler(), *steps), X, y, scoring="roc_auc", cv=folds)
            for steps in ((features, ours), (theirs,))
        ]
        worse += int(ttest_rel(*scores, alternative="less").pvalue < 0.05)
        better += int(ttest_rel(*scores, alternative="greater").pvalue < 0.05)
        means.append([score.mean() for score in scores])
    ours_mean, theirs_mean = np.mean(means, axis=0)
    verdict = (
        f"held-out AUC {ours_mean:.4f} against {theirs_mean:.4f} of LogisticRegression on plain features; "
        f"significantly better on {better} tasks, worse on {worse}"
    )
    task = f"{len(tasks)} one-against-rest tasks, up to 300 kernel features"
    return [NAME, task, "saddlepoint", f"{time.process_time() - began:.3g}", verdict]


def one_against_rest(quick: bool) -> Iterator[tuple[Array, Array]]:
    """Malignant tumours, each wine, each digit; only the rarest class of each set in a quick run."""
    for load in (load_breast_cancer, load_wine, load_digits):
        X, y = load(return_X_y=True)
        counts = np.bincount(y)
        labels = [int(counts.argmin())] if quick or len(counts) == 2 else range(len(counts))
        yield from ((X, y == label) for label in labels)


def reference(X: Any, y: Array) -> Array:
    """The weights by LSQR to rounding, on the least-squares problem that is equivalent to the loss over pairs."""
    pq = y.mean() * (1.0 - y.mean())
    one, other = (np.asarray(X[side].mean(axis=0)).ravel() for side in (y, ~y))
    weights = np.sqrt(np.where(y, 1.0 / y.sum(), 1.0 / (~y).sum()))
    sides = np.where(y, 1.0, 0.0)
    gap, N = one - other, X.shape[0]

    def mul(w: Array) -> Array:
        centred = X @ w - sides * (one @ w) - (1.0 - sides) * (other @ w)
        return np.append(weights * centred, gap @ w)

    def tmul(r: Array) -> Array:
        s = weights * r[:-1]
        return np.asarray(X.T @ s - (sides @ s) * one - ((1.0 - sides) @ s) * other + r[-1] * gap)

    D = LinearOperator((N + 1, X.shape[1]), matvec=mul, rmatvec=tmul, dtype=np.float64)
    target = np.append(np.zeros(N), 1.0)
    w: Array = lsqr(D, target, damp=(L2 / (2.0 * pq)) ** 0.5, atol=1e-15, btol=1e-15, iter_lim=5_000)[0]
    return w


def normal_equations(X: Any, y: Array) -> Array:
    """The weights from the d x d matrix of the moments of both classes."""
    pq = y.mean() * (1.0 - y.mean())
    means = [np.asarray(X[side].mean(axis=0)).ravel() for side in (y, ~y)]
    gap = means[0] - means[1]
    S = np.outer(gap, gap) + L2 / (2.0 * pq) * np.eye(X.shape[1])
    for side, mean in zip((y, ~y), means, strict=True):
        second = X[side].T @ X[side] / side.sum()
        S += (second.toarray() if sparse.issparse(second) else second) - np.outer(mean, mean)
    return np.asarray(np.linalg.solve(S, gap))


def clarabel(X: Array, y: Array) -> Array:
    """The weights by an interior-point method, all pairs formed."""
    D = (X[y][:, None, :] - X[~y][None, :, :]).reshape(-1, X.shape[1])
    w = cp.Variable(X.shape[1])
    pq = y.mean() * (1.0 - y.mean())
    loss = pq / len(D) * cp.sum_squares(1.0 - D @ w) + L2 / 2 * cp.sum_squares(w)
    cp.Problem(cp.Minimize(loss)).solve(cp.CLARABEL)
    return np.asarray(w.value)


def dense(N: int, d: int) -> tuple[Array, Array]:
    """Gaussian rows, about one in ten is positive."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, d))
    return X, X @ rng.standard_normal(d) / d**0.5 + rng.standard_normal(N) > 1.8


def scattered(N: int, d: int) -> tuple[Any, Array]:
    """Rows with some twenty entries each, as counts of words have; about one in ten is positive."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((N, d), density=20 / d, rng=rng, format="csr")
    scores = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(N)
    return X, scores > np.quantile(scores, 0.9)
