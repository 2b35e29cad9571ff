"""
Wrong targets, moving features
==============================

Some targets are ten times too large, or features may differ from those in the data. Which regression tolerates which
kind of error, and what does it cost? The data are 442 patients with diabetes, ten measurements each.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from saddlepoint.apps import ConstrainedHuber, RobustLeastSquares
from saddlepoint.ground.plot_style import RC, line_styles

plt.rcParams.update(RC)
raw, y = load_diabetes(return_X_y=True, scaled=False)
X = (raw - raw.mean(axis=0)) / raw.std(axis=0)

# %%
# Wrong targets, and an equation
# ------------------------------
# Huber's loss counts large residuals linearly. In addition, the coefficients may have to satisfy equations: total
# cholesterol (s1) contains LDL (s2), so let a rise of LDL alone, which raises both alike, have no effect. The equation
# holds up to rounding, and its multiplier says how much it costs.

E = np.eye(10)[[4, 5]].sum(axis=0, keepdims=True) / raw.std(axis=0)
huber, constrained = ConstrainedHuber(delta=50.0), ConstrainedHuber((E, [0.0]), delta=50.0)
for name, model in (("Huber", huber), ("constrained", constrained)):
    s1, s2 = model.fit(X, y).coef_[4:6]
    print(f"{name}: s1 {s1:.1f}, s2 {s2:.1f}, {model.certificate_}")
print(f"multiplier {constrained.multipliers_[0]:.3g}, |E w - e| = {abs(E @ constrained.coef_)[0]:.1e}")

# %%
# Features that move
# ------------------
# Robust least squares minimises the error for the worst move of the features, of 0.2 standard deviations in root mean
# square. It comes with an interval for the smallest worst-case error possible, and with the moves that cause it.

squares, robust = LinearRegression().fit(X, y), RobustLeastSquares(0.2).fit(X, y)
rms, length = np.sqrt(np.mean((squares.predict(X) - y) ** 2)), np.linalg.norm(squares.coef_)
moved = np.sqrt(np.mean((robust.predict(robust.worst_case(X)) - y) ** 2))
lower, upper = robust.interval_
print(f"robust: worst error for radius 0.2 within [{lower:.6f}, {upper:.6f}], the adversary attains {moved:.6f}")
print(f"worst error of least squares for radius 0.2: {rms + 0.2 * length:.2f}")
limit = np.linalg.norm(X.T @ (y - y.mean())) / y.std() / len(y)
print(f"from radius {limit:.3f} on, the best coefficients are all zero")

# %%
# Held out
# --------
# The median absolute error on clean held-out patients, mean over five splits, while ever more training targets are ten
# times too large.


def held_out_error(model, share):
    errors = []
    for seed in range(5):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=seed)
        wrong = np.random.default_rng(seed).random(len(y_train)) < share
        model.fit(X_train, np.where(wrong, 10.0 * y_train, y_train))
        errors.append(np.median(np.abs(model.predict(X_test) - y_test)))
    return np.mean(errors)


models = {
    "least squares": LinearRegression(),
    "robust least squares, radius 0.2": RobustLeastSquares(0.2),
    "Huber": huber,
    "Huber, constrained": constrained,
}
shares, radii = np.arange(0.0, 0.31, 0.1), np.geomspace(0.01, 2.0, 10)
errors = {name: [held_out_error(model, share) for share in shares] for name, model in models.items()}
for name, found in errors.items():
    print(f"without and with 30 % outliers: {found[0]:.1f}, {found[-1]:.1f}  {name}")
worst = [RobustLeastSquares(radius).fit(X, y).interval_.upper for radius in radii]

# %%
# The answer
# ----------
# Each regression tolerates one kind of error. With 30 % of wrong targets, the error of Huber's regression grows by less
# than a third, and that of least squares more than ninefold. The equation costs little. Robust least squares does not
# help against wrong targets, but has the smallest error when features move.

before, after = (np.array([found[i] for found in errors.values()]) for i in (0, -1))  # without and with outliers
assert (after[2:] < 4 / 3 * before[2:]).all()
assert (after[:2] > 9.0 * before[:2]).all()
assert abs(moved - upper) < 1e-4
assert upper < rms + 0.2 * length

figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 5), constrained_layout=True)
for (name, found), (colour, dash, marker) in zip(errors.items(), line_styles(), strict=False):
    left.semilogy(100 * shares, found, color=colour, linestyle=dash, marker=marker, label=name)
left.set(xlabel="outliers among the training targets, %", ylabel="median absolute error, held out")
left.set_yticks([40, 60, 100, 200, 400], ["40", "60", "100", "200", "400"])
left.minorticks_off()
left.legend()
right.semilogx(radii, rms + radii * length, color="#0072B2", label="least squares")
right.semilogx(radii, worst, "--", color="#D55E00", label="robust least squares")
right.axhline(y.std(), color="#000000", linestyle=":", label="all coefficients zero")
right.set(xlabel="radius of moves, in standard deviations", ylabel="worst-case error", ylim=(50, 100))
right.legend()
plt.show()
