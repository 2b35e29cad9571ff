"""Colonel Blotto with costs: how the shape of a cost decides the way efforts are spread.

python examples/matrix_game.py [PICTURE.png]

Both colonels place five units on three fields, in one of 21 ways. They put effort into each way, and the efforts
should add up to one. Without costs they are probabilities, and this is the classical game. With costs that are smooth
they may leave the simplex: to go short on a bad plan is a plan, unless the cost forbids it, as an entropy does.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.plots.style import COLOURS, RC

plans = np.array([(i, j, 5 - i - j) for i in range(6) for j in range(6 - i)])
payoff = np.sign(plans[None, :, :] - plans[:, None, :]).sum(axis=2) / 3.0  # fields won by y less those won by x

ones = np.ones(len(plans))
mass = sp.LeastSquares(np.sqrt(len(ones)) * ones[None, :] / len(ones), [1.0 / np.sqrt(len(ones))])  # efforts add to one
costs = {
    "quadratic": sp.Quadratic(0.5),
    "Huber": sp.Huber(l2=0.02, delta=0.02),
    "entropy": 0.05 * sp.Entropy(low=1e-3),
}
found = {}
for name, cost in costs.items():
    game = sp.apps.MatrixGame(payoff, cost + 20.0 * mass, cost + 20.0 * mass)
    found[name] = game.solve(tol=1e-8)
    print(f"{name} costs")
    print(found[name])

# Without costs, in mixed strategies: the classical game. Its value is 0, for it is fair.
exact = sp.apps.ConstrainedGame.mixed(payoff).solve(tol=1e-8)
print("no costs, probabilities")
print(exact)

labels = ["".join(map(str, plan)) for plan in plans]
with plt.rc_context(RC):
    figure, axes = plt.subplots(figsize=(10.5, 4.4), constrained_layout=True)
    shown = {f"{name} cost": run.y for name, run in found.items()} | {"no cost, probabilities": exact.y}
    for i, (name, y) in enumerate(shown.items()):
        axes.bar(np.arange(len(y)) + 0.2 * (i - 1.5), y, width=0.2, label=name, color=COLOURS[i])
    axes.set_xticks(range(len(labels)), labels, rotation=60)
    axes.set_xlabel("units on the three fields")
    axes.set_ylabel("effort of y in equilibrium")
    axes.grid(axis="x", visible=False)
    figure.legend(loc="outside upper center", ncols=4)
    picture = Path(sys.argv[1] if len(sys.argv) > 1 else "out/matrix_game.png")
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=100)
print(f"picture: {picture}")
