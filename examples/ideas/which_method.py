"""
Which method for my problem? Figure 1 with measurements
=======================================================

Three numbers determine how hard a problem is: the condition numbers :math:`L_x/\\mu_x` and :math:`L_y/\\mu_y` and the
strength of the coupling. How many calls does theory promise for them, how many do runs need, and how many does every
method need?
"""

import matplotlib.pyplot as plt

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, MARKERS, RC
from saddlepoint.problems.generators import random_logistic
from saddlepoint.uses.bench.figure import figure_data

plt.rcParams.update(RC)

# %%
# Before a run
# ------------
# ``sp.predict`` takes a problem or its three numbers. It returns the numbers of calls that the theorems of the methods
# promise, and the number of rounds that every method with gradients and products needs on the hardest problem.

print(sp.predict(kx=300.0, ky=30.0, coupling=100.0, tol=1e-6))

# %%
# Figure 1 of the paper, with runs
# --------------------------------
# The condition numbers are fixed and the coupling grows. Bounds are orders times :math:`\log(1/\epsilon)`, without
# constants. The runs solve the hardest problem for first-order methods until the true distance, which is known there,
# is a millionth of that at the start. ``saddlepoint figure`` draws the whole figure with more methods.

names = ("extragradient", "catalyst-dippa", "dippa", "lpd-gs", "anderson-condat-vu")
data = figure_data(kx=300.0, ky=30.0, tol=1e-6, methods=names, points=4, max_seconds=600.0)
for run in data.runs:
    assert run.solved
    if run.coupling == data.runs[-1].coupling:
        print(f"strongest coupling, {run.method:18}  {run.calls:6} calls; every method needs {run.forced}")
weak, strong = ({run.method: run for run in data.runs if run.coupling == data.runs[i].coupling} for i in (0, -1))

# %%
# The answer
# ----------
# The calls of extragradient grow with the condition numbers at any coupling. At weak coupling DIPPA needs an eighth
# of its calls, and at strong coupling as many as the best method. ``lpd-gs`` needs about twice the lower bound at
# every coupling. Anderson mixing comes closest to the lower bound, but no theorem guarantees this. So ``auto`` begins
# with mixing and falls back to ``lpd-gs``, which has a theorem.

assert 0.1 < weak["dippa"].calls / weak["extragradient"].calls < 0.15
assert strong["dippa"].calls < 1.3 * min(run.calls for run in strong.values())
assert all(run.calls < 2.5 * run.forced for run in data.runs if run.method == "lpd-gs")
assert all(min(runs.values(), key=lambda run: run.calls).method == "anderson-condat-vu" for runs in (weak, strong))

figure, axis = plt.subplots(figsize=(7, 6.2), constrained_layout=True)
for (name, bound), dash in zip(data.bounds.items(), ("--", "-.", ":"), strict=True):
    axis.loglog(data.norms, bound, dash, color="#888888", linewidth=1.5, label=f"{name} (order)")
for name, colour, marker in zip(names, COLOURS, MARKERS, strict=False):
    runs = [run for run in data.runs if run.method == name]
    norms, calls = [data.norm_of(run.coupling) for run in runs], [run.calls for run in runs]
    axis.loglog(norms, calls, marker=marker, color=colour, markerfacecolor="white", linewidth=1.4, label=name)
axis.loglog(data.norms, data.forced, color="black", linewidth=2.4, label="lower bound for every method")
axis.set_ylim(bottom=0.4 * data.forced[0])
axis.fill_between(data.norms, axis.get_ylim()[0], data.forced, color="black", alpha=0.1, linewidth=0)
axis.set(xlim=(data.norms[0], data.norms[-1]), xlabel="coupling |A|/L", ylabel="calls of the busiest oracle")
axis.set_title(r"$\kappa_x$ = 300, $\kappa_y$ = 30, distance reduced to 1e-6", fontsize=11)
figure.legend(fontsize=9, loc="outside lower center", ncols=2)
plt.show()

# %%
# For your own problem, ``auto`` makes the choice. The message says which method it took and why.

result = sp.solve(random_logistic(100, 80, kx=300.0, ky=30.0, coupling=100.0), tol=1e-6)
print(result)
