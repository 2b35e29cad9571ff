"""
When gradients are dear
=======================

A gradient may be a simulation or a pass over a terabyte, while a product with A is cheap; or the other way round. Which
method then, and does the library know?
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
# The chain is the hardest problem for its condition numbers, and here its coupling is strong. Each method solves it
# once, and the bill is kept by oracle.

f = chain(400, kx=100.0, ky=100.0, coupling=200.0)
bills = {}
for method in ("lpd-gs", "anderson-condat-vu", "dippa", "anderson-imex", "sliding", "lpd-slide"):
    result = sp.solve(f, method=method, tol=1e-6)
    assert result.solved
    calls = result.calls
    bills[method] = gradients, products = calls["grad_g"] + calls["grad_h"], calls["A"] + calls["At"]
    print(f"{method:18}  {gradients:6} gradients, {products:6} products, {result.certificate}")

# %%
# Some spend a gradient with every product. Others solve for the coupling by products alone before they ask for the next
# gradient: ``dippa`` and ``anderson-imex`` do, and ``sliding`` and ``lpd-slide``, whose number of gradients does not
# depend on the coupling at all.
#
# What that costs
# ---------------
# Let a product cost 1 and a gradient cost p. Then a run costs p times its gradients plus its products, a line.

prices = np.geomspace(0.01, 1000.0, 200)
costs = {method: prices * gradients + products for method, (gradients, products) in bills.items()}
best = np.min(list(costs.values()), axis=0)
figure, axis = plt.subplots(figsize=(8.6, 4.8), constrained_layout=True)
axis.loglog(prices, best, color="black", linewidth=7, alpha=0.15, label="the cheapest")
for (method, cost), colour, dash in zip(costs.items(), COLOURS, DASHES, strict=False):
    axis.loglog(prices, cost, color=colour, linestyle=dash, linewidth=1.8, label=method)
axis.set(xlabel="price of a gradient, in products", ylabel="cost of the run, in products")
axis.legend(fontsize=9)
plt.show()

# %%
# Telling the library
# -------------------
# ``costs=`` says what a call costs, in any unit, and ``auto`` chooses by it. Left out, slow oracles are timed. Here is
# a learner against an adversary, at a mild coupling, where the choice depends on it.

learner = random_logistic(300, 200, kx=1000.0, ky=1000.0, coupling=500.0)
for price in (1.0, 100.0):
    result = sp.solve(learner, tol=1e-6, costs={"grad_g": price, "grad_h": price, "A": 1.0, "At": 1.0})
    gradients = result.calls["grad_g"] + result.calls["grad_h"]
    spent = price * gradients + result.calls["A"] + result.calls["At"]
    print(f"price {price:g}: {gradients} gradients, {spent:.0f} units of cost\n{result}")

# %%
# The answer
# ----------
# Where the coupling is strong, spending a gradient with every product is cheapest only if gradients are next to
# nothing. Up to the price of some products it is ``anderson-imex`` or ``dippa``, and beyond that ``lpd-slide``.
# ``auto`` goes by what it is told.
