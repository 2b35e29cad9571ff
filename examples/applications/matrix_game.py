"""
Penalty kicks and Colonel Blotto
================================

A kicker chooses a corner, and so does the goalkeeper, at the same moment. How often should each of them choose which
corner, and do professionals do that?
"""

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC

plt.rcParams.update(RC)

# %%
# Two corners
# -----------
# Palacios-Huerta counted 1417 penalty kicks (*Professionals play minimax*, Review of Economic Studies 2003). The matrix
# has the percentage of goals for each pair of corners, seen from the goalkeeper's position. The kicker is the row
# player and maximises it; the goalkeeper is the column player and minimises it.

goals = np.array([[58.30, 94.97], [92.91, 69.92]])  # rows: kick to the left, right; columns: dive to the left, right
penalty = sp.apps.MatrixGame(goals).solve(tol=1e-8)
print(penalty)
print(f"kicker: {penalty.row.round(4)}, goalkeeper: {penalty.column.round(4)}")
assert np.allclose([penalty.row[0], penalty.column[0]], [0.385, 0.420], atol=5e-4)

# %%
# The kicker should choose the left corner with probability 0.385, and the goalkeeper with 0.420. The professionals were
# seen to choose it with the frequencies 0.400 and 0.423. ``exploitability`` is what both best responses to the computed
# strategies would gain together, in goals per hundred kicks. For the frequencies that were seen it is still small:

seen = sp.apps.MatrixGame(goals).exploitability(row=[0.400, 0.600], column=[0.423, 0.577])
print(f"exploitability of the professionals: {seen:.3f} goals in a hundred kicks")

# %%
# Sixty-six plans
# ---------------
# Two colonels place ten units each on three fields, in one of 66 ways, and whoever has more units on a field wins it.
# The payoff is the number of fields won minus the number of fields lost. By symmetry the value is zero, but the
# strategy cannot be guessed.

plans = np.array([(i, j, 10 - i - j) for i in range(11) for j in range(11 - i)])
fields = np.sign(plans[:, None, :] - plans[None, :, :]).sum(axis=2)
blotto = sp.apps.MatrixGame(fields).solve(tol=1e-6)
print(blotto)
assert abs(blotto.value) <= blotto.exploitability

# %%
# The answer
# ----------
# On the left, the kicker's percentage of goals against each dive is a straight line over the probability of kicking to
# the left. The kicker can count on the lower of the two lines, and the computed strategy is at its highest point. On
# the right, the area of a disc is the probability of a plan of Colonel Blotto: no field gets more
# than seven units, and the probability is spread over many plans.

used = blotto.row > 1e-6
assert plans[used].max() <= 7
assert used.sum() > 10

p = np.linspace(0.0, 1.0, 101)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), constrained_layout=True)
for j, side in enumerate(("left", "right")):
    left.plot(p, p * goals[0, j] + (1 - p) * goals[1, j], color=COLOURS[j], label=f"goalkeeper dives to the {side}")
left.plot(penalty.row[0], penalty.value, "o", color="black", label="equilibrium")
left.axvline(0.400, color="grey", linestyle=":", label="frequency of the professionals")
left.set(xlabel="probability of a kick to the left", ylabel="goals in a hundred kicks", title="Penalty kicks")
left.set_ylim(40, 97)
left.legend(loc="lower center", frameon=True)
right.scatter(*plans[:, :2].T, s=12_000 * blotto.row, color=COLOURS[0], alpha=0.7)
right.scatter(*plans[:, :2].T, s=4, color="grey")
right.set(xlabel="units on field 1", ylabel="units on field 2", title="Colonel Blotto, ten units on three fields")
right.set(xlim=(-0.8, 10.8), ylim=(-0.8, 10.8), aspect="equal")
plt.show()
