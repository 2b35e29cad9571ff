"""AUC maximisation on three imbalanced tasks, beside logistic regression: `python examples/auc.py [PICTURE.png]`.

Each task is the rarest class of a data set against the rest. Both models see the same features, standardised ones or
100 kernel features made of them, and both choose their l2 from the same grid by cross-validation on training data.
"""

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from saddlepoint.apps import AUCClassifier
from saddlepoint.plots.style import COLOURS, DASHES, RC, pyplot, save

L2 = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
LOADERS = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}


def task(name):
    X, y = LOADERS[name](return_X_y=True)
    return X, y == np.bincount(y).argmin()


def tuned(model, grid, X, kernel):
    features = [Nystroem(gamma=0.2 / X.shape[1], random_state=0)] if kernel else []
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return make_pipeline(StandardScaler(), *features, GridSearchCV(model, grid, scoring="roc_auc", cv=folds))


def contestants(X, kernel):
    C = [1 / (0.8 * len(X) * l2) for l2 in L2]
    yield "AUCClassifier", tuned(AUCClassifier(), {"l2": L2}, X, kernel)
    yield "LogisticRegression", tuned(LogisticRegression(max_iter=20_000), {"C": C}, X, kernel)


def draw_roc(axis):
    X, y = task("digits")
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    for (name, model), colour, dash in zip(contestants(X, kernel=True), COLOURS, DASHES, strict=False):
        scores = model.fit(X, y).decision_function(X_test)
        false, true, _ = roc_curve(y_test, scores)
        label = f"{name}, {roc_auc_score(y_test, scores):.4f}"
        axis.step(false, true, where="post", color=colour, linestyle=dash, linewidth=1.8, label=label)
        best = model[-1].best_estimator_
        if isinstance(best, AUCClassifier):
            print(
                f"digit 8, {y.mean():.1%} of the samples: l2 = {best.l2:g}, {best.result_.method}, {best.certificate_}"
            )
    axis.set(xlim=(-0.005, 0.3), ylim=(0.6, 1.005), xlabel="false positive rate", ylabel="true positive rate")
    axis.set_title("digit 8 against the rest, kernel features", fontsize=11)
    axis.legend(loc="lower right", title="held-out AUC")


def draw_differences(axis):
    rows = [(name, kernel) for kernel in (True, False) for name in LOADERS]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for place, (name, kernel) in enumerate(rows):
        X, y = task(name)
        ours, logistic = (cross_val_score(m, X, y, scoring="roc_auc", cv=folds) for _, m in contestants(X, kernel))
        gain, error = (ours - logistic).mean(), (ours - logistic).std(ddof=1) / len(ours) ** 0.5
        features = "kernel" if kernel else "plain"
        print(f"{name:13}, {features:6}: {ours.mean():.4f} against {logistic.mean():.4f}, {gain:+.4f} +- {error:.4f}")
        axis.plot(ours - logistic, np.full(len(ours), place), "o", color=COLOURS[0], alpha=0.3, markersize=6)
        axis.errorbar(gain, place, xerr=error, fmt="D", color=COLOURS[1], markersize=6, capsize=4)
    axis.axvline(0.0, color="black", linewidth=1)
    axis.set_yticks(range(len(rows)), [f"{name}, {'kernel' if kernel else 'plain'}" for name, kernel in rows])
    axis.set_xlabel("AUC less that of logistic regression")
    axis.set_title("five held-out folds, mean and standard error", fontsize=11)


if __name__ == "__main__":
    plt = pyplot()
    with plt.rc_context(RC | {"savefig.dpi": 100}):
        figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), constrained_layout=True)
        draw_roc(axes[0])
        draw_differences(axes[1])
        save(figure, sys.argv[1] if len(sys.argv) > 1 else "out/auc.png")
