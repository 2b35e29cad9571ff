"""
Rare classes: maximise the AUC itself
=====================================

Rare diseases, frauds and faults are judged by the area under the ROC curve: the share of pairs, a positive with a
negative, that a score ranks correctly. Is it better to learn that share itself than a probability?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from saddlepoint.apps import AUCClassifier
from saddlepoint.ground.plot_style import COLOURS, DASHES, RC

plt.rcParams.update(RC)

# %%
# Two models on equal terms
# -------------------------
# Each task is the rarest class of a data set against the rest. ``AUCClassifier`` learns the square loss over all pairs
# without forming one, by a saddle problem; it is compared with logistic regression. Both get the same features,
# standardised ones or 100 kernel features made of them, and both choose their l2 from the same grid by
# cross-validation.

L2 = [1e-5, 1e-3, 1e-1]
LOADERS = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}


def task(name):
    X, y = LOADERS[name](return_X_y=True)
    return X, y == np.bincount(y).argmin()


def tuned(model, grid, X, kernel):
    features = [Nystroem(gamma=0.2 / X.shape[1], random_state=0)] if kernel else []
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return make_pipeline(StandardScaler(), *features, GridSearchCV(model, grid, scoring="roc_auc", cv=folds))


def candidates(X, kernel):
    C = [1 / (0.8 * len(X) * l2) for l2 in L2]
    yield "AUCClassifier", tuned(AUCClassifier(), {"l2": L2}, X, kernel)
    yield "LogisticRegression", tuned(LogisticRegression(max_iter=20_000), {"C": C}, X, kernel)


# %%
# One task: which digits are an eight?
# ------------------------------------

X, y = task("digits")
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
models = {name: model.fit(X, y) for name, model in candidates(X, kernel=True)}
best = models["AUCClassifier"][-1].best_estimator_
print(f"{y.mean():.1%} of the samples are eights; l2 = {best.l2:g}, {best.result_.method}, {best.certificate_}")

# %%
# Three tasks, five held-out folds each
# -------------------------------------

folds = StratifiedKFold(5, shuffle=True, random_state=0)
differences = {}
for kernel in (True, False):
    for name in LOADERS:
        X, y = task(name)
        ours, logistic = (cross_val_score(m, X, y, scoring="roc_auc", cv=folds) for _, m in candidates(X, kernel))
        label, gain = f"{name}, {'kernel' if kernel else 'plain'}", ours - logistic
        differences[label] = gain.mean(), gain.std(ddof=1) / len(gain) ** 0.5, gain
        print(f"{label:21}: {ours.mean():.4f} against {logistic.mean():.4f}, {gain.mean():+.4f}")
for label, (mean, error, _) in differences.items():
    if label == "breast cancer, plain":
        assert -0.005 < mean < 0.0
    else:
        assert mean >= -error, label
assert differences["digits, kernel"][0] > 0.0

# %%
# The answer
# ----------
# On rich features it can be better: it is on the digits, and elsewhere there is no clear difference. On a few plain
# features, where the classes can nearly be separated, prefer logistic regression, because the square loss penalises
# pairs whose scores differ by more than one.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 5), constrained_layout=True)
for (name, model), colour, dash in zip(models.items(), COLOURS, DASHES, strict=False):
    score = model.decision_function(X_test)
    false, true, _ = roc_curve(y_test, score)
    label = f"{name}, {roc_auc_score(y_test, score):.4f}"
    left.step(false, true, where="post", color=colour, linestyle=dash, linewidth=1.8, label=label)
left.set(xlim=(-0.005, 0.3), ylim=(0.6, 1.005), xlabel="false positive rate", ylabel="true positive rate")
left.set_title("digit 8 against the rest, kernel features", fontsize=11)
left.legend(loc="lower right", title="held-out AUC")
for place, (mean, error, gain) in enumerate(differences.values()):
    right.plot(gain, np.full(len(gain), place), "o", color=COLOURS[0], alpha=0.3, markersize=6)
    right.errorbar(mean, place, xerr=error, fmt="D", color=COLOURS[1], markersize=6, capsize=4)
right.axvline(0.0, color="black", linewidth=1)
right.set_yticks(range(len(differences)), list(differences))
right.set_xlabel("AUC less that of logistic regression")
right.set_title("five held-out folds, mean and standard error", fontsize=11)
plt.show()
