"""
Learning the payoffs of a game from play
========================================

Two players are seen to play mixed strategies in several situations, in which the known costs of their actions differ.
The payoff matrix is not known. Can it be found from what they play?
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC

plt.rcParams.update(RC)
rng = np.random.default_rng(1)
ROWS, COLUMNS, SITUATIONS = 4, 3, 6

# %%
# The game
# --------
# The first player chooses probabilities :math:`x` and pays :math:`\langle x, A y\rangle`, and a cost
# :math:`\langle c, x\rangle + \frac{1}{2}\|x\|^2` of their own; the second player likewise. The squares stand for the
# habit of people not to play one action alone. Their strategies are the saddle point on two simplices.

costs = [(0.5 * rng.standard_normal(ROWS), 0.5 * rng.standard_normal(COLUMNS)) for _ in range(SITUATIONS)]


def play(A, c, d):
    return sp.solve(sp.Saddle(sp.Quadratic(1.0, c) + sp.Simplex(), sp.Quadratic(1.0, d) + sp.Simplex(), A), tol=1e-6)


secret = rng.standard_normal((ROWS, COLUMNS))
seen = [play(secret, c, d) for c, d in costs]
print(seen[0].certificate)
print("first situation:", seen[0].x.round(3), seen[0].y.round(3))

# %%
# The gradient
# ------------
# The loss is the squared distance of the strategies of a matrix :math:`A` from those seen. ``result.vjp`` gives its
# gradient with respect to :math:`A`, where probabilities that are proven to be zero stay zero.

bounds = []


def loss(entries):
    A, total, slope = entries.reshape(ROWS, COLUMNS), 0.0, np.zeros((ROWS, COLUMNS))
    for (c, d), target in zip(costs, seen, strict=True):
        result = play(A, c, d)
        dx, dy = result.x - target.x, result.y - target.y
        total += 0.5 * (dx @ dx + dy @ dy)
        u = result.vjp(dx, dy)
        slope += u.A
        bounds.append(u.bound_A)
    return total, slope.ravel()


start = 0.1 * rng.standard_normal(ROWS * COLUMNS)
value, slope = loss(start)
moved = start.copy()
moved[0] += 1e-5
print(f"slope {slope[0]:.6f}, by differences {(loss(moved)[0] - value) / 1e-5:.6f}, proven error {sum(bounds[:6]):.1e}")

# %%
# Learning
# --------
# A quasi-Newton method needs the loss and its gradient, and nothing else.

history = []
found = minimize(
    lambda entries: history.append(loss(entries)) or history[-1],
    start,
    jac=True,
    method="L-BFGS-B",
    options={"maxiter": 15},
)
learned = found.x.reshape(ROWS, COLUMNS)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), constrained_layout=True)
left.semilogy([value for value, _ in history], color=COLOURS[0])
left.set(xlabel="gradient", ylabel="squared distance of the strategies")
right.plot((secret - secret.mean()).ravel(), (learned - learned.mean()).ravel(), "o", color=COLOURS[0])
right.axline((0.0, 0.0), slope=1.0, color="0.6", linewidth=1.0)
right.set(xlabel="secret payoff", ylabel="learned payoff", title="both minus their means")

# %%
# The answer
# ----------
# Yes: the strategies of the learned matrix are those seen. A constant that is added to all payoffs changes no strategy,
# so the means are not compared. Each gradient has a proven error unless a probability is just about to become zero;
# then the bound is infinite and says so.

decided = np.mean(np.isfinite(bounds))
print(f"loss {value:.2e} before and {found.fun:.2e} after; {100 * decided:.0f} % of the gradients with a proven error")
assert found.fun < 1e-3 * value
