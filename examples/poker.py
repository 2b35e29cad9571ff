"""Kuhn and Leduc poker: equilibria of extensive games, with the exploitability of what is found.

python examples/poker.py [PICTURE.png]
"""

import sys

import saddlepoint as sp
from saddlepoint.plots.games import plot_exploitability

# OpenSpiel's definitions of the games if it is installed, the files shipped with the package otherwise.
kuhn, leduc = sp.apps.ExtensiveGame.load("kuhn"), sp.apps.ExtensiveGame.load("leduc")

GRADIENTS = "anderson-condat-vu"  # None, the default, factorises Hessians, which such small games have
runs = {}
for game, tol, method in ((kuhn, 1e-8, None), (kuhn, 1e-6, GRADIENTS), (leduc, 1e-6, None), (leduc, 1e-2, GRADIENTS)):
    how = "gradients only" if method else "with Hessians"
    found = game.solve(tol=tol, method=method)
    name = f"{game.title.split('_')[0].title()} poker, {how}"
    runs[name] = found
    print(f"{name}\n{found}")
    # x and y are exact strategies, and the bound is that of exact best responses: anyone can check it.
    assert game.exploitability(found.x, found.y) <= tol

print("\nKuhn poker, the second player:")
for place, chances in kuhn.behaviour("x", runs["Kuhn poker, with Hessians"].x).items():
    card, heard = "JQK"[int(place[0])], {"p": "a pass", "b": "a bet"}[place[1]]
    print(f"  with the {card}, after {heard}: " + ", ".join(f"{name} {p:.3f}" for name, p in chances.items()))

# The multipliers of the sequence constraints are the values of the information sets; the first is the game's.
price, _ = runs["Kuhn poker, with Hessians"].multipliers_y
print(f"value of the game by its price: {price[0]:.9f} (exactly -1/18 = {-1 / 18:.9f})")

picture = sys.argv[1] if len(sys.argv) > 1 else "out/poker.png"
plot_exploitability(runs, picture, title="Poker by a proximal augmented Lagrangian")
print(f"picture: {picture}")
