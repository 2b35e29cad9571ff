"""
Colonel Blotto with costs
=========================

Two colonels place five units each on three fields, in one of 21 ways, and whoever has more units on a field wins it.
How should they spread their effort over the 21 plans, and what does the shape of its cost change?
"""

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC

plt.rcParams.update(RC)
plans = np.array([(i, j, 5 - i - j) for i in range(6) for j in range(6 - i)])
payoff = np.sign(plans[None, :, :] - plans[:, None, :]).sum(axis=2) / 3.0  # fields won by y less those won by x

# %%
# Three costs
# -----------
# With costs :math:`g` and :math:`h` the game is :math:`\min_x \max_y\; g(x) + x'Ay - h(y)`, the problem of this library
# as it stands. Efforts should add up to one, and a steep quadratic sees to that. Beyond it each colonel pays a
# quadratic cost, one that grows only linearly for large efforts (Huber's), or an entropy, which keeps efforts positive.
# None of the three games needs a prox: gradients will do.

ones = np.ones(len(plans))
mass = sp.LeastSquares(np.sqrt(len(ones)) * ones[None, :] / len(ones), [1.0 / np.sqrt(len(ones))])
costs = {
    "quadratic": sp.Quadratic(0.5),
    "Huber": sp.Huber(l2=0.02, delta=0.02),
    "entropy": 0.05 * sp.Entropy(low=1e-3),
}
found = {}
for name, cost in costs.items():
    game = sp.apps.MatrixGame(payoff, cost + 20.0 * mass, cost + 20.0 * mass)
    found[name] = game.solve(tol=1e-8)
    print(f"{name} costs\n{found[name]}")

# %%
# ``exploitability`` bounds what both colonels together could still gain by changing their minds. It costs one look at
# the field, and no best response.
#
# The classical game
# ------------------
# Without costs the efforts are probabilities. Nothing is strongly convex any more, so this is a game with constraints,
# which an augmented Lagrangian turns into a few problems of the kind above. Its value is 0, for it is fair.

exact = sp.apps.ConstrainedGame.mixed(payoff).solve(tol=1e-8)
print(exact)
assert abs(exact.value) <= 1e-8

# %%
# The answer
# ----------
# All four put effort into two fields held with two and three units. Smooth costs leave the simplex: to go short on a
# bad plan, all five units on one field, is a plan too, and under Huber's cost, where large efforts are cheap, the bets
# are the highest. The entropy forbids negative efforts, and probabilities do so by definition.

figure, axes = plt.subplots(figsize=(9, 5), constrained_layout=True)
shown = {f"{name} cost": run.y for name, run in found.items()} | {"no cost, probabilities": exact.y}
for i, (name, y) in enumerate(shown.items()):
    axes.bar(np.arange(len(y)) + 0.2 * (i - 1.5), y, width=0.2, label=name, color=COLOURS[i])
axes.set_xticks(range(len(plans)), ["".join(map(str, plan)) for plan in plans], rotation=60)
axes.set_xlabel("units on the three fields")
axes.set_ylabel("effort of y in equilibrium")
axes.grid(axis="x", visible=False)
figure.legend(loc="outside upper center", ncols=2)
plt.show()
