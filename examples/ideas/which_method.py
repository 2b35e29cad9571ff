"""
Which method for my problem? Figure 1, measured
===============================================

Three numbers decide how hard a problem is: the condition numbers ``L_x/mu_x`` and ``L_y/mu_y`` and the strength of
the coupling. What does theory promise for them, what do runs need, and what can nobody beat?
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
# ``sp.predict`` takes a problem, or its three numbers, and tells what each method's theorem promises, and how many
# rounds the hardest problem with these numbers forces on every method that has only gradients and products.

print(sp.predict(kx=300.0, ky=30.0, coupling=100.0, tol=1e-6))

# %%
# Figure 1 of the paper, with runs
# --------------------------------
# The condition numbers are fixed and the coupling grows. Bounds are orders times :math:`\log(1/\epsilon)`, without
# constants. The runs are on the chain that is hardest for first-order methods, until the true distance, known there,
# is a millionth of the start. The whole figure, with more methods, is drawn by ``saddlepoint figure``.

names = ("extragradient", "catalyst-dippa", "dippa", "lpd-gs", "anderson-condat-vu")
data = figure_data(kx=300.0, ky=30.0, tol=1e-6, methods=names, points=5, max_seconds=60.0)
for run in data.runs:
    assert run.solved
    if run.coupling == data.runs[-1].coupling:
        print(f"strongest coupling, {run.method:18}  {run.calls:6} calls; {run.forced} are forced on any method")

# %%
# The answer
# ----------
# Extragradient pays for the condition numbers at any coupling. DIPPA needs an eighth of its calls at weak coupling,
# and at strong coupling it is level with the best. ``lpd-gs`` stays within about twice what is forced throughout.
# Mixing comes nearest, though no theorem covers that. So ``auto`` begins with mixing, and keeps ``lpd-gs``, which has
# the theorem, in reserve.

figure, axis = plt.subplots(figsize=(7, 6.2), constrained_layout=True)
for (name, bound), dash in zip(data.bounds.items(), ("--", "-.", ":"), strict=True):
    axis.loglog(data.norms, bound, dash, color="#888888", linewidth=1.5, label=f"{name} (order)")
for name, colour, marker in zip(names, COLOURS, MARKERS, strict=False):
    runs = [run for run in data.runs if run.method == name]
    norms, calls = [data.norm_of(run.coupling) for run in runs], [run.calls for run in runs]
    axis.loglog(norms, calls, marker=marker, color=colour, markerfacecolor="white", linewidth=1.4, label=name)
axis.loglog(data.norms, data.forced, color="black", linewidth=2.4, label="forced on every method")
axis.set_ylim(bottom=0.4 * data.forced[0])
axis.fill_between(data.norms, axis.get_ylim()[0], data.forced, color="black", alpha=0.1, linewidth=0)
axis.set(xlim=(data.norms[0], data.norms[-1]), xlabel="coupling |A|/L", ylabel="calls of the busiest oracle")
axis.set_title(r"$\kappa_x$ = 300, $\kappa_y$ = 30, distance reduced to 1e-6", fontsize=11)
figure.legend(fontsize=9, loc="outside lower center", ncols=2)
plt.show()

# %%
# On a problem of one's own nothing has to be chosen. The message says what was taken, and why.

result = sp.solve(random_logistic(100, 80, kx=300.0, ky=30.0, coupling=100.0), tol=1e-6)
print(result)
