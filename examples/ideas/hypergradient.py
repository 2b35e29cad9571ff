"""
Hyperparameters by gradients with a proven error
================================================

A model has one penalty for each of its features, too many for a grid search. The error on held-out data is a function
of these penalties, through the solution of the training problem. Can it be minimised by gradients, and how does one
know that a gradient is right?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import saddlepoint as sp
from saddlepoint.apps.risk import RiskClassifier
from saddlepoint.ground.plot_style import COLOURS, RC

plt.rcParams.update(RC)
rng = np.random.default_rng(0)

# %%
# The training problem
# --------------------
# Thirty columns are measurements and thirty are noise. The risk is the logistic loss with a penalty
# :math:`e^{\theta_j} w_j^2/2` for each weight. An opponent :math:`y` shifts the class means at a quadratic cost, which
# makes the model robust: :math:`\min_w \max_y\, g(w) + \langle w, A y\rangle - \frac{1}{2}\|y\|^2`.

X, t = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(np.hstack([X, rng.standard_normal(X.shape)]))
labels = 2.0 * t - 1.0
order = rng.permutation(len(X))
train, held = order[:150], order[150:]
A = 0.2 * np.outer(X[train].T @ labels[train] / len(train), [1.0])
risk = sp.Logistic(X[train], labels[train], 1e-3)


def solution(theta):
    return sp.solve(sp.Saddle(risk + sp.Quadratic(np.exp(theta)), sp.Quadratic(1.0), A), tol=1e-8)


result = solution(np.full(60, -2.0))
print(result.certificate)

# %%
# The hypergradient
# -----------------
# The held-out loss :math:`\ell(w^\ast)` has the gradient :math:`v` with respect to :math:`w`. One linear system,
# ``result.vjp(v)``, gives the adjoint vector :math:`u`, and the derivative with respect to :math:`\theta_j` is
# :math:`-u_j e^{\theta_j} w_j`. The bound on the error of :math:`u` bounds the error of the whole hypergradient.

held_out = sp.Logistic(X[held], labels[held], 0.0)


def hypergradient(theta):
    result = solution(theta)
    u = result.vjp(held_out.grad(result.x))
    slope = -u.ux * np.exp(theta) * result.x
    near = result.certificate.distance_x
    off = u.bound_x + held_out.L * near / risk.mu  # the gradient of the held-out loss is that of the computed point
    error = np.exp(theta) * (off * (abs(result.x) + near) + near * abs(u.ux))
    return held_out(result.x), slope, np.linalg.norm(error)


loss, slope, error = hypergradient(np.full(60, -2.0))
moved = np.r_[-2.0 + 1e-4, np.full(59, -2.0)]
print(f"slope {slope[0]:.6e}, by differences {(hypergradient(moved)[0] - loss) / 1e-4:.6e}, proven error {error:.1e}")
assert error < 1e-2 * np.linalg.norm(slope)

# %%
# Descent
# -------
# A step against the hypergradient is sure to be a descent direction while the proven error is smaller than the slope.

theta, losses = np.full(60, -2.0), []
for _ in range(30):
    loss, slope, error = hypergradient(theta)
    losses.append(loss)
    if error >= np.linalg.norm(slope):
        break
    theta = theta - 0.5 * slope / np.linalg.norm(slope)
grid = [held_out(solution(np.full(60, c)).x) for c in np.linspace(-6.0, 0.0, 13)]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), constrained_layout=True)
left.plot(losses, color=COLOURS[0], label="one penalty for each feature, by hypergradients")
left.axhline(min(grid), color=COLOURS[1], linestyle="--", label="the best common penalty of a grid")
left.set(xlabel="step", ylabel="held-out loss")
left.legend(loc="center right")
right.plot(theta[:30], "o", color=COLOURS[0], label="measurements")
right.plot(range(30, 60), theta[30:], "s", color=COLOURS[1], label="noise")
right.set(xlabel="feature", ylabel="learned log penalty")
right.legend()

# %%
# The estimators
# --------------
# For one common penalty, ``RiskClassifier`` and ``RiskRegressor`` have the derivative ready, with its bound: the sign
# of the slope is proven where the bound is smaller than the slope, and bisection by this sign finds the best l2.

low, high, slopes = np.log(1e-3), np.log(1.0), []
while high - low > 0.01:
    middle = 0.5 * (low + high)
    model = RiskClassifier(l2=float(np.exp(middle)), tol=1e-9).fit(X[train], t[train])
    slopes.append(model.hypergradient(X[held], t[held]))
    if abs(slopes[-1].l2) <= slopes[-1].bound_l2:
        break
    low, high = (low, middle) if slopes[-1].l2 > 0.0 else (middle, high)
print(f"l2 = {model.l2:.4f} after {len(slopes)} fits: {slopes[-1]}")
assert all(abs(s.l2) > s.bound_l2 for s in slopes[:-1])

# %%
# The answer
# ----------
# Sixty penalties are learned in thirty gradients, and the held-out loss falls below that of the best common penalty.
# The gradient is not only near the true one: its error is proven, at the solution that is computed to ``tol``.

print(f"held-out loss {losses[-1]:.4f}, best of the grid {min(grid):.4f}")
print(f"mean log penalty of measurements {theta[:30].mean():.2f}, of noise {theta[30:].mean():.2f}")
assert losses[-1] < min(grid)
assert theta[30:].mean() > theta[:30].mean()
