"""
Optimal transport: what a plan costs, proven
============================================

Bakeries deliver bread to cafés. Which plan is the cheapest, and how do we know that no other one is cheaper? A solver
that says "optimal" means: up to its tolerances. Here the answer is an interval that is proven to hold the optimal cost.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron, vstack

import saddlepoint as sp
from saddlepoint.ground.plot_style import RC

plt.rcParams.update(RC)

# %%
# The program
# -----------
# Six bakeries with whole numbers of loaves, ten cafés. The unknown x has an entry for each pair, and the rows say that
# each bakery delivers what it has and each café gets what it needs.

random = np.random.default_rng(4)
bakeries, cafes = random.random((6, 2)), random.random((10, 2))
loaves = random.integers(20, 60, 6)
needs = random.multinomial(loaves.sum(), np.ones(10) / 10)
cost = np.linalg.norm(bakeries[:, None] - cafes[None], axis=2).ravel()
A = csr_array(vstack([kron(eye_array(6), np.ones((1, 10))), kron(np.ones((1, 6)), eye_array(10))]))
ends = np.append(loaves, needs)

program = sp.apps.QuadraticProgram(q=cost, A=A, lower=ends, upper=ends, x_lower=0.0)
found = program.solve(rtol=1e-9)
print(found)
assert found.status == "optimal"

# %%
# Somebody else's answer
# ----------------------
# Any solver's point and multipliers can be certified. Those of HiGHS are exactly optimal here: the interval is about as
# short as the spacing of the floating-point numbers. A plan that delivers a loaf too many is found out.

highs = linprog(cost, A_eq=A, b_eq=ends)
certificate = program.certify(highs.x, -highs.eqlin.marginals)
print(certificate, "width", certificate.width)
assert certificate.width < 1e-12
careless = program.certify(highs.x + np.eye(60)[0], -highs.eqlin.marginals)
print(careless)
assert careless.violation > 0.999

# %%
# A program without a solution
# ----------------------------
# If the cafés need more than there is, a ray proves that no plan exists: prices for which all that could be delivered
# is worth less than what is needed.

needs_more = needs + np.eye(10, dtype=int)[0]
lower, upper = np.append(np.zeros(6), needs_more), np.append(loaves, needs_more)
short = sp.apps.QuadraticProgram(q=cost, A=A, lower=lower, upper=upper, x_lower=0.0)
nothing = short.solve()
print(nothing)
assert nothing.status == "infeasible"
assert short.proves_infeasible(nothing.ray)

# %%
# The answer
# ----------
# The cheapest plan costs what the interval says: no plan costs less than its lower end. The picture shows the plan,
# and the proven interval after so many steps of the method.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
plan = found.x.reshape(6, 10)
for i, j in np.argwhere(plan > 0.01):
    left.plot(*np.transpose([bakeries[i], cafes[j]]), color="0.6", lw=plan[i, j] / 10)
left.plot(*bakeries.T, "s", label="bakeries")
left.plot(*cafes.T, "o", label="cafés")
left.legend(loc="upper left")
left.set_title("the cheapest plan")
answers = [program.solve(rtol=10.0**-digits) for digits in range(1, 10)]
right.semilogy([answer.steps for answer in answers], [answer.width for answer in answers], "o-")
right.set_xlabel("steps")
right.set_ylabel("length of the proven interval")
least, most = np.floor(1e6 * found.lower) / 1e6, np.ceil(1e6 * found.upper) / 1e6
right.set_title(f"the cost is proven to be in\n[{least:.6f}, {most:.6f}]")
figure.tight_layout()
