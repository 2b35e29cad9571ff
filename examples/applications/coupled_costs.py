"""
Colonel Blotto with costs
=========================

Two colonels place five units each on three fields, in one of 21 ways, and whoever has more units on a field wins it.
How should they spread their effort over the 21 plans if effort has a cost, and what does the shape of the cost change?
"""

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC

plt.rcParams.update(RC)
plans = np.array([(i, j, 5 - i - j) for i in range(6) for j in range(6 - i)])
payoff = np.sign(plans[None, :, :] - plans[:, None, :]).sum(axis=2) / 3.0  # fields won by y minus those won by x

# %%
# Three costs
# -----------
# With costs :math:`g` and :math:`h` the game is :math:`\min_x \max_y\; g(x) + x^T A y - h(y)`, the problem of this
# library as it stands: x minimises and y maximises. Efforts should add up to about one, and a steep quadratic sees to
# that. Beyond it each colonel bears a quadratic cost, one that grows only linearly for large efforts (Huber's), or an
# entropy. None of the three games needs a prox: gradients suffice.

ones = np.ones(len(plans))
mass = sp.LeastSquares(np.sqrt(len(ones)) * ones[None, :] / len(ones), [1.0 / np.sqrt(len(ones))])
costs = {
    "quadratic": sp.Quadratic(0.5),
    "Huber": sp.Huber(l2=0.02, delta=0.02),
    "entropy": 0.05 * sp.Entropy(low=1e-3),
}
found = {}
for name, cost in costs.items():
    game = sp.apps.CoupledCosts(payoff, cost + 20.0 * mass, cost + 20.0 * mass)
    found[name] = game.solve(tol=1e-8)
    print(f"{name} costs\n{found[name]}")

# %%
# ``exploitability`` bounds what both colonels together could still gain if each changed its efforts alone. It costs one
# evaluation of the gradients and products, and no best response.
#
# The classical game
# ------------------
# Without costs the efforts are probabilities, and the game is ``MatrixGame``. There the row player maximises, so the
# matrix is given with the opposite sign. The value of the game is 0 by symmetry.

exact = sp.apps.MatrixGame(-payoff).solve(tol=1e-8)
print(exact)
assert abs(exact.value) <= 1e-8

# %%
# The answer
# ----------
# All four put effort into two fields held with two and three units. Under quadratic and Huber costs some efforts are
# negative: a colonel gains by betting against a bad plan, such as all five units on one field. The bets are the
# highest under Huber's cost, where large efforts are cheap. The entropy happens to leave all efforts positive in this
# game, although it allows negative ones at a high cost; probabilities are never negative.

bets = {name: -run.y.min() for name, run in found.items()}  # the largest effort that is negative
assert bets["entropy"] < 0.0 < bets["quadratic"] < bets["Huber"]
spread = [sorted(plan) == [0, 2, 3] for plan in plans.tolist()]
assert all(y[spread].min() > 0.0 for y in (*(run.y for run in found.values()), exact.column))
figure, axes = plt.subplots(figsize=(9, 5), constrained_layout=True)
shown = {f"{name} cost": run.y for name, run in found.items()} | {"no cost, probabilities": exact.column}
for i, (name, y) in enumerate(shown.items()):
    axes.bar(np.arange(len(y)) + 0.2 * (i - 1.5), y, width=0.2, label=name, color=COLOURS[i])
axes.set_xticks(range(len(plans)), ["".join(map(str, plan)) for plan in plans], rotation=60)
axes.set_xlabel("units on the three fields")
axes.set_ylabel("effort of y in equilibrium")
axes.grid(axis="x", visible=False)
figure.legend(loc="outside upper center", ncols=2)
plt.show()
