"""
Many problems at once: the uncertainty of a curve
=================================================

A risk curve is fitted to 442 patients. Would it be the same with other patients? The bootstrap estimates this by 100
fits to resampled data. Can they be solved together?
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import KBinsDiscretizer

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC

plt.rcParams.update(RC)

# %%
# One fit
# -------
# The model predicts whether the disease progresses faster than in half of the patients. It has three features in 16
# bins each, a logistic loss, and a penalty on differences between neighbouring bins. In the saddle problem the
# penalty is a quadratic of y, coupled by the difference operator K.

BINS, STRENGTH, DRAWS = 16, 0.1, 100
data = load_diabetes(scaled=False)
names = {"bmi": "body mass index", "bp": "blood pressure", "s5": "log of triglycerides (s5)"}
raw = data.data[:, [data.feature_names.index(name) for name in names]]
bins = KBinsDiscretizer(BINS, encode="onehot-dense", strategy="uniform").fit(raw)
D, faster = bins.transform(raw), np.where(data.target > np.median(data.target), 1.0, -1.0)
K = np.kron(np.eye(len(names)), np.diff(np.eye(BINS), axis=0))


def fit(rows):
    return sp.Saddle(sp.Logistic(D[rows], faster[rows], l2=1e-3), sp.Quadratic(1.0 / STRENGTH), K.T)


result = sp.solve(fit(np.arange(len(D))), tol=1e-5)
print(result)

# %%
# 100 fits in one call
# --------------------
# Problems of one kind and shape are stacked into one problem with a block-diagonal coupling, whose condition numbers
# are the largest of the blocks. Each block has its own certificate, and the run ends when all of them are at most
# ``tol``.

rng = np.random.default_rng(0)
problems = [fit(rng.integers(0, len(D), len(D))) for _ in range(DRAWS)]
began = time.perf_counter()
results = sp.solve_many(problems, tol=1e-5)
together = time.perf_counter() - began
assert all(result.solved for result in results)
print(results[0])
worst = max(result.certificate.distance for result in results)
print(f"{DRAWS} problems in {together:.2f} s; the worst certified distance is {worst:.1e}")

# %%
# Solved one after the other, each problem needs fewer calls on average, because it does not have to wait for the
# hardest one. The times that are printed here and above say which way is faster on this machine.

began = time.perf_counter()
single = [sp.solve(problem, tol=1e-5) for problem in problems]
print(f"one after the other: {time.perf_counter() - began:.2f} s")
difference = max(np.linalg.norm(a.x - b.x) for a, b in zip(results, single, strict=True))
print(f"largest difference between the answers: {difference:.1e}, at most 2e-5 is expected")
assert difference <= 2e-5
assert np.mean([result.calls["A"] for result in single]) < results[0].calls["A"]

# %%
# The answer
# ----------
# One call solves all of them, with 100 certificates. All three curves rise with high confidence. How far they rise at
# the ends, where there are few patients, is uncertain.

figure, axes = plt.subplots(1, len(names), figsize=(9, 4.6), sharey=True, constrained_layout=True)
effects = np.array([r.x for r in results]).reshape(DRAWS, len(names), BINS)
effects -= effects.mean(axis=2, keepdims=True)
curve = result.x.reshape(len(names), BINS)
for i, (axis, name) in enumerate(zip(axes, names.values(), strict=True)):
    middle = 0.5 * (bins.bin_edges_[i][1:] + bins.bin_edges_[i][:-1])
    low, high = np.quantile(effects[:, i], (0.05, 0.95), axis=0)
    axis.plot(middle, effects[:40, i].T, color="#888888", linewidth=0.4, alpha=0.5)
    axis.fill_between(middle, low, high, color=COLOURS[0], alpha=0.25, linewidth=0, label="90 % of the draws")
    axis.plot(middle, curve[i] - curve[i].mean(), color=COLOURS[1], linewidth=2.4, label="all patients")
    axis.set_xlabel(name)
    assert np.mean(effects[:, i, BINS // 2 :].mean(axis=1) > effects[:, i, : BINS // 2].mean(axis=1)) > 0.95  # it rises
axes[0].set_ylabel("effect on the log-odds")
axes[0].legend(loc="upper left", fontsize=9)
plt.show()
