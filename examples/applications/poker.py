"""
Poker: equilibria that anyone can check
=======================================

How often should one bluff? Kuhn poker has three cards and a known answer; Leduc poker has six cards, two rounds of
bets and 288 information sets. How good are the strategies that products with the payoffs find, and what do
factorisations add?
"""

import matplotlib.pyplot as plt

import saddlepoint as sp
from saddlepoint.ground.plot_style import RC, line_styles

plt.rcParams.update(RC)
# OpenSpiel's definitions of the games if it is installed, the files shipped with the package otherwise.
kuhn, leduc = sp.apps.ExtensiveGame.load("kuhn"), sp.apps.ExtensiveGame.load("leduc")

# %%
# Solve
# -----
# The strategies of a player form a polytope with one equation for each information set. The first player is y and
# maximises the payoff, the second is x and minimises it. By default, games of this size are solved by the
# interior-point method on the sequence form. Regret matching, ``cfr``, needs products with the payoffs and passes over
# the tree alone, so that it serves games which are too large to factorise.

runs = {}
for game, tol, method in ((kuhn, 1e-8, None), (kuhn, 1e-3, "cfr"), (leduc, 1e-8, None), (leduc, 1e-3, "cfr")):
    found = game.solve(tol=tol, method=method)
    name = f"{game.title.split('_')[0].title()}, {'regret matching' if method else 'interior point'}"
    runs[name] = found
    print(f"{name}\n{found}")
    assert game.exploitability(found.x, found.y) <= tol  # by exact best responses, a pass over the tree
    assert abs(found.value - (-1 / 18 if game is kuhn else -0.0856)) <= max(tol, 1e-4)

# %%
# How often to bluff
# ------------------
# The second player of Kuhn poker has one optimal strategy. With the jack, after a pass, it bluffs one time in three,
# and with the queen it calls a bet one time in three.

for place, chances in kuhn.behaviour("x", runs["Kuhn, interior point"].x).items():
    card, heard = "JQK"[int(place[0])], {"p": "a pass", "b": "a bet"}[place[1]]
    print(f"with the {card}, after {heard}: " + ", ".join(f"{action} {p:.3f}" for action, p in chances.items()))
    if (card, heard) in (("J", "a pass"), ("Q", "a bet")):
        assert abs(min(chances.values()) - 1 / 3) < 1e-4

# %%
# The multipliers of the equations are the values of the information sets; the first one is the value of the game.

multipliers, _ = runs["Kuhn, interior point"].multipliers_y
print(f"value of the game by its multiplier: {multipliers[0]:.9f} (exactly -1/18 = {-1 / 18:.9f})")

# %%
# The answer
# ----------
# Each point of the picture is a check of a run, and its height is what two perfect opponents could win from the
# strategies found there. Regret matching brings it to a thousandth in some hundred steps. The interior-point method
# solves both games to high accuracy in about twenty.

figure, axes = plt.subplots(1, 2, figsize=(9, 5.2), sharey=True, constrained_layout=True)
for (label, found), (colour, dash, marker) in zip(runs.items(), line_styles(), strict=False):
    steps = [step for step in found.history if step.exploitability > 0.0]
    style = {"color": colour, "linestyle": dash, "marker": marker, "markersize": 4}
    for axis, work in zip(axes, ("calls", "seconds"), strict=True):
        axis.loglog([getattr(s, work) for s in steps], [s.exploitability for s in steps], label=label, **style)
axes[0].set(xlabel="calls of the busiest oracle", ylabel="exploitability")
axes[1].set_xlabel("seconds")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()
