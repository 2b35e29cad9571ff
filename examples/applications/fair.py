"""
A fair classifier, and what fairness costs
==========================================

A bank learns from past loans who will pay back. Incomes differ between two groups, so that the scores do as well. How
much of the difference can be removed, what does it cost in accuracy, and how accurate are the computed scores?
"""

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC

plt.rcParams.update(RC)

# %%
# The data
# --------
# They are simulated: 2000 applicants with five features, of which the first two are larger in group 1. Whether a loan
# was paid back depends on all features and on chance. The second half of the applicants is held out.

random = np.random.default_rng(0)
N = 2000
group = random.integers(0, 2, N)
X = random.standard_normal((N, 5)) + group[:, None] * [1.0, 0.5, 0.0, 0.0, 0.0]
paid = X @ [1.0, 0.8, 0.6, 0.4, 0.2] + random.logistic(size=N) > 0.8
known, new = slice(0, N // 2), slice(N // 2, N)

# %%
# The problem
# -----------
# The logistic loss is minimised subject to a bound on the covariance of score and group. The bound is the maximum over
# a multiplier of a term that is linear in it, which makes it a saddle problem. The certificate bounds the distance of
# the weights w from the best ones, for the data as they are.

bounds = np.geomspace(0.4, 1e-3, 9)
models = [
    sp.apps.FairClassifier(covariance=bound).fit(X[known], paid[known], sensitive_features=group[known])
    for bound in bounds
]
for bound, model in zip(bounds, models, strict=True):
    print(f"bound {bound:.3f}: covariance {model.covariance_[0]:.4f}, |w - w*| <= {model.certificate_.distance_x:.1e}")
print(models[-1].certificate_)
assert all(model.result_.solved for model in models)

# %%
# What is proven about decisions
# ------------------------------
# A distance of d between w and the best weights moves the score of an applicant by at most d times the length of the
# features, with a 1 for the intercept. So most decisions are proven to be those of the best weights, and the share of
# accepted applicants lies in an interval.


def accepted(model, chosen):
    """The least and the greatest share of the chosen applicants that the best weights accept."""
    scores = model.decision_function(X[chosen])
    reach = model.certificate_.distance_x * np.sqrt(np.sum(X[chosen] ** 2, axis=1) + 1.0)
    return np.mean(scores - reach > 0.0), np.mean(scores + reach > 0.0)


held_out = np.arange(N) >= N // 2
shares = {one: np.array([accepted(model, held_out & (group == one)) for model in models]) for one in (0, 1)}
widest = max(np.ptp(share, axis=1).max() for share in shares.values())
print(f"the widest of the {2 * len(models)} intervals: {widest:.4f}")
assert widest < 0.002

# %%
# The answer
# ----------
# The tighter the bound, the closer the shares of accepted applicants. What is left of the difference in the end is
# not a matter of covariance. The accuracy falls, because group and repayment are related in these data.

apart = np.abs(shares[1] - shares[0]).mean(axis=1)  # how far the shares of the groups are apart, for each bound
correct = [model.score(X[new], paid[new]) for model in models]
assert apart[-1] < apart[0]
assert correct[-1] < correct[0]

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.6, 3.8), constrained_layout=True)
for one, share in shares.items():
    left.fill_between(bounds, *share.T, color=COLOURS[one], alpha=0.4)
    left.plot(bounds, share.mean(axis=1), "o-", color=COLOURS[one], label=f"group {one}")
left.set_title("accepted, with proven intervals")
left.set_ylim(0.0, 1.0)
left.legend()
middle.plot(bounds, [model.score(X[new], paid[new]) for model in models], "o-", color=COLOURS[2])
middle.set_title("accuracy, held out")
right.loglog(bounds, [model.certificate_.distance_x for model in models], "o-", color=COLOURS[3])
right.set_title("$|w - w^*|$ at most, proven")
for axis in (left, middle, right):
    axis.set_xscale("log")
    axis.invert_xaxis()
    axis.set_xlabel("bound on the covariance")
plt.show()
