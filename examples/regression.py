"""Outliers in the targets, an equation for the coefficients, and features that may move: the diabetes data."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from saddlepoint.apps import ConstrainedHuber, RobustLeastSquares
from saddlepoint.plots.style import RC, looks, pyplot, save

SHARES = np.arange(0.0, 0.31, 0.05)
RADII = np.geomspace(0.01, 2.0, 25)
SPLITS = 15


def held_out_error(model: Any, X: Any, y: Any, share: float) -> float:
    """The median absolute error on clean held-out data, with some training targets ten times too large."""
    errors = []
    for seed in range(SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=seed)
        wrong = np.random.default_rng(seed).random(len(y_train)) < share
        model.fit(X_train, np.where(wrong, 10.0 * y_train, y_train))
        errors.append(np.median(np.abs(model.predict(X_test) - y_test)))
    return float(np.mean(errors))


def main(path: str) -> None:
    raw, y = load_diabetes(return_X_y=True, scaled=False)
    X = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    # Total cholesterol (s1) contains LDL (s2): let a rise of LDL alone, which raises both alike, have no effect.
    E = np.eye(10)[[4, 5]].sum(axis=0, keepdims=True) / raw.std(axis=0)

    huber, constrained = ConstrainedHuber(delta=50.0), ConstrainedHuber((E, [0.0]), delta=50.0)
    for name, model in (("Huber", huber), ("constrained", constrained)):
        s1, s2 = model.fit(X, y).coef_[4:6]
        print(f"{name}: s1 {s1:.1f}, s2 {s2:.1f}, {model.certificate_}")
    print(f"  multiplier {constrained.multipliers_[0]:.3g}, |E w - e| = {abs(E @ constrained.coef_)[0]:.1e}")

    squares, robust = LinearRegression().fit(X, y), RobustLeastSquares(0.2).fit(X, y)
    rms, length = np.sqrt(np.mean((squares.predict(X) - y) ** 2)), np.linalg.norm(squares.coef_)
    moved = np.sqrt(np.mean((robust.predict(robust.worst_case(X)) - y) ** 2))
    lower, upper = robust.interval_
    print(f"robust: worst error for radius 0.2 within [{lower:.6f}, {upper:.6f}], the adversary attains {moved:.6f}")
    print(f"  worst error of least squares for radius 0.2: {rms + 0.2 * length:.2f}")
    limit = np.linalg.norm(X.T @ (y - y.mean())) / y.std() / len(y)
    print(f"  from radius {limit:.3f} on, no feature is worth its risk")

    models = {
        "least squares": LinearRegression(),
        "robust least squares, radius 0.2": RobustLeastSquares(0.2),
        "Huber": huber,
        "Huber, constrained": constrained,
    }
    plt = pyplot()
    with plt.rc_context(RC):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), constrained_layout=True)
        for (name, model), (colour, dash, marker) in zip(models.items(), looks(), strict=False):
            errors = [held_out_error(model, X, y, share) for share in SHARES]
            print(f"held-out error without and with 30 % outliers: {errors[0]:.1f}, {errors[-1]:.1f}  {name}")
            left.semilogy(100 * SHARES, errors, color=colour, linestyle=dash, marker=marker, label=name)
        left.set(xlabel="outliers among the training targets, %", ylabel="median absolute error, held out")
        left.set_yticks([40, 60, 100, 200, 400], ["40", "60", "100", "200", "400"])
        left.minorticks_off()
        left.legend()
        worst = [RobustLeastSquares(radius).fit(X, y).interval_.upper for radius in RADII]
        right.semilogx(RADII, rms + RADII * length, color="#0072B2", label="least squares")
        right.semilogx(RADII, worst, "--", color="#D55E00", label="robust least squares")
        right.axhline(y.std(), color="#000000", linestyle=":", label="all coefficients zero")
        right.set(xlabel="radius: how far features move, in standard deviations", ylabel="worst-case error")
        right.set_ylim(50, 100)
        right.legend()
        save(figure, path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/regression.png")
