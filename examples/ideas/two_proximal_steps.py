"""
The two proximal steps of DIPPA
===============================

A coupling makes gradient methods rotate around the solution. What does DIPPA do instead? With one variable for each
player, a whole step can be drawn.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC

plt.rcParams.update(RC)

# %%
# A problem with one x and one y
# ------------------------------
# Both functions are flat near the solution, which is zero, and steep far away from it. Gradient steps must be short
# because of the steep part, and then they are too short for the flat one.

MU, L = 0.05, 1.0
steeper = sp.Smooth(lambda v: MU * v + (L - MU) * (v - np.tanh(v)), mu=MU, L=L)
f = sp.Saddle(steeper, steeper, [[0.3]])
start = np.array([2.0]), np.array([-1.0])

# %%
# The four parts of a step
# ------------------------
# The problem has two parts, and each of them is easy to solve alone: the functions, which are independent of each
# other, and the coupling, which is linear. A step of DIPPA, with :math:`\alpha = 1/\sqrt{L\mu}`,
#
# 1. moves along the coupling: :math:`z = x - \alpha Ay` and :math:`w = y + \alpha A^\top x`;
# 2. takes a proximal step of the functions: :math:`\tilde x` minimises :math:`g(x) + \|x - z\|^2/(2\alpha)`, and
#    :math:`\tilde y` is the same for :math:`h` and :math:`w`, both by accelerated gradient descent;
# 3. continues by the same distance: :math:`p = 2\tilde x - z` and :math:`q = 2\tilde y - w`;
# 4. takes a proximal step of the coupling: it solves the linear system :math:`x + \alpha Ay = p`,
#    :math:`y - \alpha A^\top x = q`.
#
# Both proximal steps may be inexact. The picture uses the paper's fixed numbers of inner steps, which are exact to the
# eye; the star is the solution. A method consists of two pure functions, ``init`` and ``step``, so its steps can be
# computed one by one.

method = sp.DIPPA(inner="paper", coupling="factor")
problem = method.normal_form(f).problem  # the coordinates of the theory, which are those of this problem
states = [method.init(problem, *start)]
for _ in range(8):
    states.append(method.step(problem, states[-1]))
alpha = method.parameters(problem)["alpha"]


def moves(s, after):
    """(x, y), (z, w), the proximal point, the point beyond it, and the next (x, y)."""
    p, q = after.x + alpha * f.A.mul(after.y), after.y - alpha * f.A.tmul(after.x)
    return np.array([(s.x, s.y), (s.z, s.w), ((p + s.z) / 2, (q + s.w) / 2), (p, q), (after.x, after.y)])[..., 0]


figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
points = moves(states[0], states[1])
words = ("along the coupling", "proximal step of g and h", "the same distance again", "proximal step of A")
for i, (word, colour) in enumerate(zip(words, (COLOURS[4], COLOURS[0], COLOURS[5], COLOURS[1]), strict=True)):
    axis.annotate("", points[i + 1], points[i], arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2.2})
    axis.plot([], [], color=colour, linewidth=2.2, label=f"{i + 1}. {word}")
names = ("$(x_0, y_0)$", "$(z_1, w_1)$", r"$(\tilde x_1, \tilde y_1)$", "$(p, q)$", "$(x_1, y_1)$")
for name, point, drop in zip(names, points, (5, 5, -16, -16, 5), strict=True):
    axis.plot(*point, "o", color="black", markersize=4)
    axis.annotate(name, point, xytext=(6 if name != names[3] else -36, drop), textcoords="offset points")
axis.legend(loc="upper left", fontsize=9)
axis.set_title("one step of DIPPA")
axis.plot(0.0, 0.0, "k*", markersize=13)
axis.set(xlabel="x", ylabel="y", xlim=(-1.4, 4.2), ylim=(-1.3, 2.2))
plt.show()

# %%
# Compared with extragradient
# ---------------------------
# Extragradient takes steps along the field, which points around the solution more than towards it. By default the inner
# solves of DIPPA are only as accurate as the proof requires, which takes some more steps and far fewer gradients.

eg = sp.Extragradient()
circles = [eg.init(f, *start)]
for _ in range(50):
    circles.append(eg.step(f, circles[-1]))
for name, run in (("extragradient", circles), ("DIPPA", states)):
    print(f"{name}: {np.hypot(run[-1].x, run[-1].y)[0]:.4f} from the solution after {len(run) - 1} steps")
ends = [np.hypot(run[-1].x, run[-1].y)[0] for run in (circles, states)]
assert ends[1] < 1.5 * ends[0]
for name, rule in (("extragradient", eg), ("DIPPA, paper", method), ("DIPPA, default", sp.DIPPA())):
    run = sp.solve(f, *start, method=rule, tol=1e-8)
    calls = f"{run.calls['grad_g']} gradients of g, {run.calls['A']} products with A"
    print(f"{name}: {run.iterations} steps, {calls}\n  {run.certificate}")

# %%
# The answer
# ----------
# DIPPA does not follow the field. It alternates between the functions and the coupling, and solves a proximal problem
# for each. Here eight of its steps come as close to the solution as fifty steps of extragradient.

figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
for name, run, colour, marker in (("extragradient", circles, COLOURS[1], "."), ("DIPPA", states, COLOURS[0], "o")):
    xs, ys = np.array([(s.x[0], s.y[0]) for s in run]).T
    axis.plot(xs, ys, marker=marker, color=colour, linewidth=1.2, markersize=5, label=f"{name}, {len(run) - 1} steps")
axis.legend(loc="upper right", fontsize=9)
axis.set_title("two runs")
axis.plot(0.0, 0.0, "k*", markersize=13, zorder=3)
axis.set(xlabel="x", ylabel="y")
plt.show()
