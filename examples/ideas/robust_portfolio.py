"""
A portfolio with few assets and uncertain returns
=================================================

Expected returns are estimated from few observations. Which portfolio is best if the true ones may be anywhere in a box
around the estimates, if trading costs money, and how exact is the computed answer?
"""

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import RC

plt.rcParams.update(RC)

# %%
# The data
# --------
# Two years of daily returns of 40 assets, driven by three factors. The estimate of each expected return has a
# standard error, and the true value may be twice that away.

random = np.random.default_rng(1)
assets, days = 40, 500
factors = 0.01 * random.standard_normal((days, 3))
returns = 5e-4 * random.random(assets) + factors @ random.random((3, assets))
returns = returns + (0.004 + 0.01 * random.random(assets)) * random.standard_normal((days, assets))
mean = 250 * returns.mean(axis=0)
error = 250 * returns.std(axis=0) / np.sqrt(days)
centred = np.sqrt(250 / days) * (returns - returns.mean(axis=0))

# %%
# The problem
# -----------
# The weights w are not negative and sum up to 1. The opponent chooses the error of the expected returns in a box. The
# cost of trading from equal weights is a norm that has no cheap prox together with the simplex; ``sp.model`` makes it a
# bilinear term with a variable of its own.

m = sp.model
start = np.full(assets, 1.0 / assets)
w = m.minimiser(assets, "w", sp.Simplex())


def portfolio(doubt):
    """The best weights if expected returns are off by at most ``doubt`` standard errors."""
    delta = m.maximiser(assets, "delta", sp.Box(-doubt * error, doubt * error))
    risk = 40.0 * m.sum_squares(centred @ w)
    return m.Problem(risk - w @ mean - w @ delta + 0.02 * m.norm1(w - start)).solve(gap=1e-7)


doubts = [0.0, 0.1, 0.3, 1.0]
answers = [portfolio(max(doubt, 1e-6)) for doubt in doubts]
for doubt, answer in zip(doubts, answers, strict=True):
    held = int(np.sum(answer["w"] > 1e-3))
    print(f"doubt {doubt}: {held} assets, |w - w*| <= {answer.distance('w'):.1e}, {answer.certificate}")
assert all(answer.solved for answer in answers)

# %%
# The answer
# ----------
# Without doubt the portfolio trusts the estimates. The more they are doubted, the more the assets with small errors
# are preferred. Every bar has a proven accuracy, which is the line at its end.

figure, axes = plt.subplots(1, len(doubts), sharey=True, figsize=(9, 5))
order = np.argsort(error)
for axis, doubt, answer in zip(axes, doubts, answers, strict=True):
    reach = np.full(assets, min(answer.distance("w"), 0.05))
    axis.barh(np.arange(assets), answer["w"][order], xerr=reach, error_kw={"lw": 0.6})
    axis.set_title(f"doubt {doubt:g}\n$|w - w^*|$ at most {answer.distance('w'):.1e}", fontsize=10)
    axis.set_xlabel("weight")
axes[0].set_ylabel("assets, by the error of their estimate")
figure.tight_layout()
plt.show()
