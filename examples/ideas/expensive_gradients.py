"""
Expensive gradients
===================

A gradient may need a simulation or a pass over a terabyte of data, while a product with A is cheap; or the other way
round. Which method is best then, and does the library choose it?
"""

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, DASHES, RC
from saddlepoint.problems.generators import chain, random_logistic

plt.rcParams.update(RC)

# %%
# What each method calls
# ----------------------
# The example is the hardest problem for its condition numbers, with a strong coupling. Each method solves it once, and
# the calls of each oracle are counted.

f = chain(400, kx=100.0, ky=100.0, coupling=200.0)
counts = {}
for method in ("lpd-gs", "anderson-condat-vu", "dippa", "anderson-imex", "sliding", "lpd-slide"):
    result = sp.solve(f, method=method, tol=1e-6)
    assert result.solved
    calls = result.calls
    counts[method] = gradients, products = calls["grad_g"] + calls["grad_h"], calls["A"] + calls["At"]
    print(f"{method:18}  {gradients:6} gradients, {products:6} products, {result.certificate}")

# %%
# Some methods compute a gradient with every product. Others solve for the coupling with products alone before they
# compute the next gradient: ``dippa``, ``anderson-imex``, ``sliding`` and ``lpd-slide``. The number of gradients of the
# last two does not depend on the coupling.
#
# The cost of a run
# -----------------
# Let a product cost 1 and a gradient cost p. Then a run costs p times its gradients plus its products.

prices = np.geomspace(0.01, 1000.0, 200)
costs = {method: prices * gradients + products for method, (gradients, products) in counts.items()}
best = np.min(list(costs.values()), axis=0)
cheapest = [min(costs, key=lambda method: costs[method][i]) for i in (0, np.searchsorted(prices, 3.0), -1)]
assert cheapest[0] in ("lpd-gs", "anderson-condat-vu")
assert cheapest[2] == "lpd-slide"
assert cheapest[1] in ("anderson-imex", "dippa")
figure, axis = plt.subplots(figsize=(8.6, 4.8), constrained_layout=True)
axis.loglog(prices, best, color="black", linewidth=7, alpha=0.15, label="lowest cost")
for (method, cost), colour, dash in zip(costs.items(), COLOURS, DASHES, strict=False):
    axis.loglog(prices, cost, color=colour, linestyle=dash, linewidth=1.8, label=method)
axis.set(xlabel="cost of a gradient, in products", ylabel="cost of the run, in products")
axis.legend(fontsize=9)
plt.show()

# %%
# The option ``costs``
# --------------------
# ``costs=`` says what a call of each oracle costs, in any unit, and ``auto`` uses it for its choice. Without it, slow
# oracles are timed. In the next problem the coupling is mild, and the choice depends on the costs.

learner = random_logistic(300, 200, kx=1000.0, ky=1000.0, coupling=500.0)
used = []
for price in (1.0, 100.0):
    result = sp.solve(learner, tol=1e-6, costs={"grad_g": price, "grad_h": price, "A": 1.0, "At": 1.0})
    gradients = result.calls["grad_g"] + result.calls["grad_h"]
    used.append(gradients)
    spent = price * gradients + result.calls["A"] + result.calls["At"]
    print(f"cost of a gradient {price:g}: {gradients} gradients, {spent:.0f} units of cost\n{result}")

# %%
# The answer
# ----------
# If the coupling is strong, computing a gradient with every product is best only if gradients cost almost nothing. If a
# gradient costs as much as a few products, ``anderson-imex`` or ``dippa`` is best, and beyond that ``lpd-slide``.
# ``auto`` chooses by the costs that it is given: in the last problem it takes fewer gradients where they cost more.

assert used[1] < used[0]
