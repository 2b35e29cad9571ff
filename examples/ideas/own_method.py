"""
Your own method, compared with the lower bound
==============================================

A new method can be written in ten lines. How good is it? There is a hardest problem, for which the number of calls that
every method needs is known.
"""

from dataclasses import dataclass
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, DASHES, RC
from saddlepoint.problems.generators import chain, chain_solution

plt.rcParams.update(RC)

# %%
# A method in ten lines
# ---------------------
# Popov's method of 1980 is extragradient with half the calls: it extrapolates with the field of the previous step. A
# method is a class with ``init`` and ``step``. The library does the counting, stopping, certificates and checkpoints.


class PopovState(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    Fx: np.ndarray  # the last field that was computed
    Fy: np.ndarray


@dataclass(frozen=True)
class Popov(sp.Method):
    def init(self, f, x, y):
        return PopovState(x, y, *f.field(x, y))

    def step(self, f, s):
        eta = 1.0 / (f.L + np.hypot(f.L, 2.0 * f.norm))  # half of one over the field's Lipschitz constant
        Fx, Fy = f.field(s.x - eta * s.Fx, s.y - eta * s.Fy)
        return PopovState(s.x - eta * Fx, s.y - eta * Fy, Fx, Fy)


# %%
# The hardest problem
# -------------------
# In this problem each round (one call of each oracle, made together) makes at most one more coordinate nonzero,
# whatever the method does. The other coordinates stay zero, which is an error that no method can avoid. The solution
# is known.

N, KX, KY, C = 400, 100.0, 100.0, 40.0
f = chain(N, KX, KY, C)
x, y = chain_solution(N, KX, KY, C)
runs = {}
for method in (Popov(), "extragradient", "dippa", "lpd-gs", "anderson-condat-vu"):
    rows = []

    def look(result, rows=rows):
        error = np.hypot(np.linalg.norm(result.x - x), np.linalg.norm(result.y - y))
        rows.append((max(result.calls.values()), error))

    result = sp.solve(f, method=method, tol=1e-6, callback=look)
    runs[result.method] = np.array(rows).T
    print(f"{result.method:18}  {rows[-1][0]:5} rounds, {result.certificate}")

# %%
# The lower bound
# ---------------
# ``theory.tail_rounds`` counts the rounds that this problem requires if all four oracles are called together, as in
# Popov's method. Methods that use one answer in the next call, such as LPD-GS, may reach up to three times as far.

start = np.hypot(np.linalg.norm(x), np.linalg.norm(y))
levels = np.geomspace(start, 1e-8, 200)
forced = np.array([sp.theory.tail_rounds(x, y, level) for level in levels])
print(f"rounds that every simultaneous method needs to reach 1e-6: {sp.theory.tail_rounds(x, y, 1e-6)}")
figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
axis.fill_betweenx(levels, 0.5, np.maximum(forced, 0.5), color="black", alpha=0.12, linewidth=0)
axis.plot(np.maximum(forced, 0.5), levels, color="black", linewidth=2.4, label="lower bound")
for (name, (rounds, errors)), colour, dash in zip(runs.items(), COLOURS, DASHES, strict=False):
    axis.loglog(np.maximum(rounds, 1), errors, color=colour, linestyle=dash, linewidth=1.8, label=name)
axis.set(xlabel="rounds of calls", ylabel="true distance from the solution", xlim=(10, 1e4), ylim=(1e-7, 2 * start))
axis.legend(fontsize=9, loc="lower left")
plt.show()

# %%
# The iterate x of Popov's method after 50, 100 and 200 rounds shows the reason for the lower bound: beyond the dotted
# lines it is zero, and the solution is not. (It is not close to the solution before the dotted lines either.)

marks, s = {}, Popov().init(f, np.zeros(N), np.zeros(N))
for k in range(2, 201):
    s = Popov().step(f, s)
    if k in (50, 100, 200):
        marks[k] = s.x
        print(f"after {k} rounds the last coordinate of x that is not zero is {np.flatnonzero(s.x)[-1] + 1}")
        assert not s.x[k:].any()
figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
axis.semilogy(np.abs(x), color="black", linewidth=2.4, label="the solution")
for (k, iterate), shade in zip(marks.items(), (0.4, 0.65, 1.0), strict=True):
    axis.semilogy(np.abs(iterate[:k]), color=COLOURS[0], alpha=shade, linewidth=1.8, label=f"after {k} rounds")
    axis.axvline(k, color=COLOURS[0], alpha=shade, linestyle=":")
axis.set(xlabel="coordinate of x", ylabel="its size", xlim=(0, 250), ylim=(1e-7, 30))
axis.legend(fontsize=9, loc="upper right", frameon=True)
plt.show()

# %%
# The answer
# ----------
# Popov's method converges, but it is no better than extragradient here and far from the lower bound: its number of
# rounds grows with the condition number, while that of the best methods grows with the square root. The other methods
# come close to the lower bound.

rounds = {name: run[0][-1] for name, run in runs.items()}
assert rounds["popov"] > 0.9 * rounds["extragradient"] > 5.0 * sp.theory.tail_rounds(x, y, 1e-6)
assert max(rounds[name] for name in ("dippa", "lpd-gs", "anderson-condat-vu")) < 3.0 * sp.theory.tail_rounds(x, y, 1e-6)
