"""
What a policy is worth: CliffWalking
====================================

A walker on a grid takes random steps; each costs 1, and a step over the cliff costs 100. What is each place worth, seen
from 10 000 sampled steps, and what does it take to find out?
"""

from itertools import islice

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.apps import PolicyEvaluation
from saddlepoint.apps.gtd2 import gtd2
from saddlepoint.ground.plot_style import RC, line_styles

plt.rcParams.update(RC)
STEPS, DISCOUNT, PASSES = 10_000, 0.9, 30

# %%
# The walk
# --------

env, rng = gym.make("CliffWalking-v1"), np.random.default_rng(0)
state, rows = env.reset(seed=0)[0], []
for _ in range(STEPS):
    after, reward, ended, _, _ = env.step(int(rng.integers(env.action_space.n)))
    rows.append((state, after, reward, ended))
    state = env.reset()[0] if ended else after
now, after, rewards, ended = (np.array(column) for column in zip(*rows, strict=True))

# %%
# The saddle problem
# ------------------
# With a feature for each place, the values that best explain the steps minimise the mean squared projected Bellman
# error, a saddle problem in the values and one multiplier each. Features of mean square one make it well scaled.

visits = np.bincount(now, minlength=48) / STEPS
seen = np.flatnonzero(visits)
onehot = np.eye(48)[:, seen]
scaled = onehot / np.sqrt(visits[seen])


def evaluation(features):
    return PolicyEvaluation(features[now], features[after] * ~ended[:, None], rewards, DISCOUNT)


task = evaluation(scaled)
answer = task.solve(tol=1e-8)
print(answer.run)

# %%
# LSTD solves the linear system of the same problem, so the two must agree. The exact values, from the model of the
# game, show the error that is due to having only 10 000 steps.

lstd = scaled @ task.closed_form()
truth = PolicyEvaluation.from_gymnasium(env, DISCOUNT).solve(tol=1e-8).values()
print(f"{seen.size} places visited; largest difference from LSTD: {abs(answer.values(scaled) - lstd).max():.1e}")
print(f"error of the sample, LSTD against the exact values: {np.sqrt(visits @ (lstd - truth) ** 2):.2f}")

# %%
# The cost of four methods
# ------------------------
# A gradient of h or a product counts as one pass over the steps. ``auto`` takes a method that solves linear systems
# with A; DIPPA and extragradient use gradients and products only; GTD2 uses one step at a time, as is usual in
# reinforcement learning.


def error(values):
    return np.sqrt(visits @ (values - lstd) ** 2) / np.sqrt(visits @ lstd**2)


curves = {}
for method in ("auto", "dippa", "extragradient"):
    points = []

    def record(result, points=points):
        passes = sum(result.calls[name] for name in ("grad_h", "A", "At"))
        points.append((passes, error(scaled @ result.x)))

    sp.solve(task.problem, method=method, tol=1e-8, callback=record)
    curves[method] = np.array(points).T
stochastic = [error(onehot @ theta) for theta in islice(gtd2(evaluation(onehot)), PASSES)]
curves["GTD2 (stochastic)"] = np.arange(PASSES + 1), np.array([1.0, *stochastic])
for name, (passes, errors) in curves.items():
    print(f"{name}: relative error {errors[-1]:.1e} after {passes[-1]:.0f} passes")
assert curves["auto"][0][-1] < 0.5 * curves["dippa"][0][-1] < 0.5 * curves["extragradient"][0][-1] / 70
assert curves["auto"][0][-1] < 220
assert curves["auto"][1][-1] < 1e-12

# %%
# The answer
# ----------
# The places by the cliff have the lowest values. GTD2 has the smallest error in the first passes, but then its error
# stays constant. ``auto`` reaches an error of 1e-13 with the work of 200 passes. Of the two methods that use gradients
# and products only, DIPPA needs less than a seventieth of the passes of extragradient.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 6), height_ratios=[2, 1], constrained_layout=True)
for (name, (passes, errors)), (colour, dash, _) in zip(curves.items(), line_styles(), strict=False):
    style = {"color": colour, "linestyle": dash, "drawstyle": "steps-post" if name == "auto" else "default"}
    top.loglog(np.maximum(passes, 1), np.maximum(errors, 1e-14), label=name, **style)
top.plot(1, 1e-14, "k*", markersize=10, clip_on=False, label="LSTD")
top.set(xlabel="passes over the sampled steps", ylabel="relative error of the values", ylim=(1e-14, 3))
top.legend(loc="center left", bbox_to_anchor=(0.0, 0.42), fontsize=9)
grid = np.full(48, np.nan)
grid[seen] = answer.values(scaled)[seen]
picture = bottom.imshow(grid.reshape(4, 12), cmap="viridis", aspect="auto")
bottom.set_title("values by auto; white: the cliff and the goal", fontsize=11)
bottom.set(xticks=range(12), yticks=range(4))
bottom.grid(False)
figure.colorbar(picture, ax=bottom)
plt.show()
