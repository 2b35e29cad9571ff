"""How a disease progresses with weight, blood values and age: curves instead of slopes, kept calm by a structure.

Each of ten features is cut into 20 bins, and each bin has a weight of its own. Left alone, the 200 weights follow the
noise of 442 patients; told that neighbouring bins belong together, they make a curve.

python examples/risk.py [PICTURE.png]
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.sparse import block_diag, csr_array
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

from saddlepoint.apps import RiskRegressor
from saddlepoint.apps.structure import Graph, Norms
from saddlepoint.plots.style import COLOURS, RC, pyplot, save

BINS, TOL = 20, 1e-3  # the fitted values to 1e-3 standard deviations
SHOWN = {"bmi": "body mass index", "bp": "blood pressure", "s5": "log of triglycerides (s5)", "age": "age"}


def searches(features: int) -> dict[str, tuple[RiskRegressor, dict[str, list[float]]]]:
    """Models for the bins, and what is searched over."""
    neighbours = [(f * BINS + k, f * BINS + k + 1) for f in range(features) for k in range(BINS - 1)]
    bends = csr_array(block_diag([np.diff(np.eye(BINS), 2, axis=0)] * features))
    graph = RiskRegressor(l2=1e-3, structure=Graph(neighbours), tol=TOL)
    trend = RiskRegressor(l2=1e-3, structure=Norms(bends, width=0.01), tol=TOL, method="lpd-gs")
    return {
        "bins, l2 alone": (RiskRegressor(tol=TOL), {"l2": [1e-3, 1e-2, 1e-1]}),
        "bins, neighbours alike": (graph, {"structure__strength": [0.03, 0.1, 0.3]}),
        "bins, few bends": (trend, {"structure__strength": [0.01, 0.03]}),
    }


def main(picture: str) -> None:
    data = load_diabetes(scaled=False)
    t = data.target / data.target.std()
    bins = KBinsDiscretizer(BINS, encode="onehot", strategy="uniform").fit(data.data)
    D = bins.transform(data.data)  # sparse, ten ones in a row
    folds = KFold(5, shuffle=True, random_state=0)
    print(f"{D.shape[0]} patients, {D.shape[1]} bins; R^2 in five held-out parts, best of two or three settings:")
    lines = GridSearchCV(RiskRegressor(tol=TOL), {"l2": [1e-3, 1e-2, 1e-1]}, cv=folds)
    print(f"  {'straight lines':22}  {lines.fit(StandardScaler().fit_transform(data.data), t).best_score_:.3f}")
    models = {}
    for name, (model, choices) in searches(data.data.shape[1]).items():
        search = GridSearchCV(model, choices, cv=folds).fit(D, t)
        models[name] = search.best_estimator_
        (chosen, value), result = *search.best_params_.items(), models[name].result_
        print(f"  {name:22}  {search.best_score_:.3f}  {chosen.split('__')[-1]} {value:g}, {result.certificate}")
    bends = np.abs(models["bins, few bends"].structure.K @ models["bins, few bends"].coef_)
    print(f"of {bends.size} bends, {np.sum(bends > 0.01)} are beyond the width of 0.01")
    draw(models, bins, data, D, picture)


def draw(models: dict[str, RiskRegressor], bins: KBinsDiscretizer, data, D, picture: str) -> None:
    plt = pyplot()
    with plt.rc_context(RC):
        figure, axes = plt.subplots(1, len(SHOWN), figsize=(10, 3.4), sharey=True, constrained_layout=True)
        for axis, (name, title) in zip(axes, SHOWN.items(), strict=True):
            f = data.feature_names.index(name)
            part = slice(f * BINS, (f + 1) * BINS)
            for (label, model), colour in zip(models.items(), ("#888888", *COLOURS[:2]), strict=True):
                effect = model.coef_[part] - (D[:, part] @ model.coef_[part]).mean()
                width = 1.2 if label == "bins, l2 alone" else 2.2
                axis.stairs(effect, bins.bin_edges_[f], baseline=None, color=colour, linewidth=width, label=label)
            axis.set_xlabel(title)
        axes[0].set_ylabel("effect on progression\n(standard deviations)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        save(figure, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/risk.png")
