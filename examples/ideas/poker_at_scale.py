"""
Poker at scale: a whole deck, from the rules of the game
========================================================

Leduc poker has six cards. With a whole deck its tree has six million leaves, too many for a linear program to be solved
in minutes. Which exploitability is reached by products with the payoffs, and how is an interrupted run continued?
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import saddlepoint as sp
from saddlepoint.ground.plot_style import RC, line_styles

plt.rcParams.update(RC)

# %%
# The rules
# ---------
# A game is a list of information sets for each player and a list of payoffs. Each player has one card; one more is
# shown after the first round of bets. A pair with it wins, and otherwise the higher card. Suits do not matter, so that
# cards with the same rank are one. This makes the sequence form fifteen times smaller, and leaves its value as it is.


class Leduc:
    """The bets of Leduc poker with any deck; ``bets`` are what a raise adds in each of the two rounds."""

    def __init__(self, ranks, suits, bets=(2, 4)):
        self.ranks, self.suits, self.bets = ranks, suits, bets
        self.sets, self.starts, self.sizes, self.payoffs = ([], []), ({}, {}), [1, 1], []
        for a in range(ranks):
            for b in range(ranks):
                chance = suits * (suits - (a == b)) / (ranks * suits * (ranks * suits - 1))
                self.act((a, b), None, (1, 1), 0, False, 0, (0, 0), "", chance)
        self.game = sp.apps.ExtensiveGame(*self.sets, self.payoffs, f"Leduc poker with {ranks * suits} cards")

    def act(self, cards, shown, paid, raises, asked, player, sequences, history, chance):
        """All choices of the player to move, and what follows from them."""
        owes = paid[1 - player] > paid[player]
        actions = ["call"] + ["raise"] * (raises < 2) + ["fold"] * owes
        name = f"{cards[player]} {'-' if shown is None else shown} {history}"
        start = self.starts[player].setdefault(name, self.sizes[player])
        if start == self.sizes[player]:  # a new information set
            self.sets[player].append((name, actions, sequences[player]))
            self.sizes[player] += len(actions)
        for i, action in enumerate(actions):
            after = (start + i, sequences[1]) if player == 0 else (sequences[0], start + i)
            if action == "fold":
                self.payoffs.append((after[1], after[0], chance * (paid[1] if player else -paid[0])))
                continue
            mine = max(paid) + (self.bets[shown is not None] if action == "raise" else 0)
            now = (mine, paid[1]) if player == 0 else (paid[0], mine)
            if action == "raise" or not (owes or asked):
                raised = raises + (action == "raise")
                self.act(cards, shown, now, raised, True, 1 - player, after, history + action[0], chance)
            elif shown is None:
                for card in range(self.ranks):
                    p = chance * (self.suits - cards.count(card)) / (self.ranks * self.suits - 2)
                    if p:
                        self.act(cards, card, now, 0, False, 0, after, history + "c/", p)
            else:
                first, second = ((card == shown, card) for card in cards)
                self.payoffs.append((after[1], after[0], chance * now[0] * ((first > second) - (first < second))))


six = Leduc(3, 2).game.solve(tol=1e-9)
print(f"six cards: {six.value:.7f}")
assert abs(six.value + 0.0856064) <= 1e-6  # the value of Leduc poker

# %%
# A whole deck
# ------------
# Regret matching writes its state to a file. Here a limit ends the first part after 200 steps, as a limit of time or
# Ctrl-C would; the same call goes on where the file ends.

deck = Leduc(13, 4).game
print(deck)
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "run.ckpt"
    print(deck.solve(tol=1e-3, method="cfr", max_steps=200, checkpoint=file).message)
    found = deck.solve(tol=1e-3, method="cfr", checkpoint=file)
print(found)
assert deck.exploitability(found.x, found.y) <= 1e-3  # by exact best responses

# %%
# From one game to the next
# -------------------------
# Strategies are a start for a game with the same tree. Here a raise in the first round costs half as much again.

dearer = Leduc(13, 4, bets=(3, 4)).game
warm = dearer.solve(tol=1e-3, method="cfr", start=(found.x, found.y))
cold = dearer.solve(tol=1e-3, method="cfr")
print(f"value {warm.value:.4f}: {warm.steps} steps from the strategies before, {cold.steps} from equal chances")

# %%
# The answer
# ----------
# What two perfect opponents could win falls about as one over the number of steps. A step takes one product with the
# payoffs and one with their transpose, and the memory is that of the tree. Measurements beside HiGHS and OpenSpiel,
# with the suits apart, are in ``benchmarks/results/games.md``.

figure, axis = plt.subplots(figsize=(7, 4.2), constrained_layout=True)
runs = {
    "a deck of 52 cards": found,
    "dearer bets, from these strategies": warm,
    "dearer bets, from equal chances": cold,
}
for (label, run), (colour, dash, marker) in zip(runs.items(), line_styles(), strict=False):
    steps = [step for step in run.history if step.step]
    style = {"color": colour, "linestyle": dash, "marker": marker, "markersize": 3.5}
    axis.loglog([s.step for s in steps], [s.exploitability for s in steps], label=label, **style)
axis.set(xlabel="steps", ylabel="proven exploitability")
axis.set_xticks([20, 50, 100, 200, 400], ["20", "50", "100", "200", "400"])
axis.set_xticks([], minor=True)
axis.legend()
plt.show()
