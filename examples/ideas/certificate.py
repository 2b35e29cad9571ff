"""
A stopped run is not a solved one
=================================

Many programs stop when a step or the residual is small. How far can the answer still be from the solution, and how can
one know this without knowing the solution?
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import root

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC
from saddlepoint.problems.generators import random_logistic

plt.rcParams.update(RC)
TOL, m, n = 1e-6, 60, 40
f = random_logistic(m, n, kx=1e5, ky=100.0, coupling=20.0)

# %%
# The certificate
# ---------------
# The solution is the zero of the field :math:`F = (\nabla g(x) + Ay,\; \nabla h(y) - A^\top x)`. Because of strong
# convexity, a small field proves a small distance. At every point,
#
# .. math:: \|x - x^*\| + \|y - y^*\| \;\le\;
#           \sqrt{(1/\mu_x + 1/\mu_y)\,(\|F_x\|^2/\mu_x + \|F_y\|^2/\mu_y)}.
#
# ``f.certificate(x, y)`` computes this bound, including rounding errors. ``sp.solve`` reports ``solved`` only if the
# bound is at most ``tol``.

result = sp.solve(f, method="lpd-gs", tol=TOL)
print(result)
truth = sp.solve(f, method="newton", tol=3e-9)
assert truth.solved


def error(x, y):
    """The true distance, up to the certified 3e-9 of the reference solution."""
    return np.linalg.norm(x - truth.x) + np.linalg.norm(y - truth.y)


# %%
# A handwritten loop
# ------------------
# This is extragradient in six lines, with a common stopping rule: stop when a step is short.


def field(z):
    return np.concatenate(f.field(z[:m], z[m:]))


z, eta, rows = np.zeros(m + n), 1.0 / (f.L + f.norm), []
for k in range(100_000):
    Fz = field(z)
    after = z - eta * field(z - eta * Fz)
    step, z = np.linalg.norm(after - z), after
    if k % 50 == 0:
        rows.append((k + 1, error(z[:m], z[m:]), f.certificate(z[:m], z[m:]).distance, np.linalg.norm(Fz), step))
    if step <= TOL:
        break
answers = {"handwritten extragradient": (z, f"a step of {step:.1e}")}

# %%
# SciPy's root finders
# --------------------
# They get the same tolerance, and all of them report success.

for method in ("krylov", "anderson", "hybr"):
    found = root(field, np.zeros(m + n), method=method, tol=TOL)
    answers[f"scipy root, {method}"] = (found.x, "success" if found.success else "failure")
answers["sp.solve, lpd-gs"] = (np.concatenate([result.x, result.y]), result.status)
distances = {}
for name, (z, claim) in answers.items():
    distances[name] = error(z[:m], z[m:]), f.certificate(z[:m], z[m:], tol=TOL).distance
    print(f"{name:25} reports {claim:17} true error {distances[name][0]:.1e}, proven {distances[name][1]:.1e}")
assert [name for name, (_, proven) in distances.items() if proven <= TOL] == ["sp.solve, lpd-gs"]
assert all(true <= proven + 3e-9 for true, proven in distances.values())

# %%
# The answer
# ----------
# When the steps of the handwritten loop are as short as one millionth, the error is still seven thousandths, because
# steps are short where the problem is flat. The certificate is never below the true error.

assert 6e-3 < distances["handwritten extragradient"][0] < 8e-3

# sphinx_gallery_thumbnail_number = 2
figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
k, *curves = np.array(rows).T
assert (curves[1] >= curves[0]).all()  # the certified distance is above the true error
labels = ("true error", "certified distance", "residual |F|", "length of a step")
for curve, label, colour, dash in zip(curves, labels, COLOURS, ("-", "--", "-.", ":"), strict=False):
    axis.loglog(k, curve, dash, color=colour, linewidth=1.8, label=label)
axis.axhline(TOL, color="black", linewidth=1)
axis.annotate("stopped here", (k[-1], TOL), (k[-1] / 40, TOL * 6), arrowprops={"arrowstyle": "->"})
axis.annotate("the true error there", (k[-1], curves[0][-1]), (30, 0.3), arrowprops={"arrowstyle": "->"})
axis.set(xlabel="steps of extragradient", title="a handwritten loop")
axis.legend(fontsize=9, loc="lower left", bbox_to_anchor=(0.0, 0.12))
plt.show()

# %%
# The next picture shows the true error and the certified distance of every answer. Some of the answers that were
# reported as successes have six correct digits and others have one, and their reports do not tell which. The
# certificate does, and it costs one evaluation of the field. Only the answer left of the line is certified to the
# given tolerance.

figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
for row, (true, proven) in enumerate(distances.values()):
    axis.plot([true, proven], [row, row], color="#888888", zorder=1)
    axis.plot(true, row, "o", color=COLOURS[0], markersize=8, label="true error" if row == 0 else None)
    axis.plot(proven, row, "D", color=COLOURS[1], markersize=8, label="certified distance" if row == 0 else None)
axis.axvline(TOL, color="black", linewidth=1)
axis.set_xscale("log")
axis.set(yticks=range(len(distances)), yticklabels=list(distances), ylim=(len(distances) - 0.5, -0.5))
axis.set(xlabel="|x − x*| + |y − y*|", title="all of these report success")
axis.text(0.7 * TOL, 1.5, "tolerance", ha="right", fontsize=9)
axis.legend(fontsize=9, loc="lower right")
plt.show()
