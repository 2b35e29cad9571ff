"""
Methods around methods: Anderson, Catalyst, Restarted
=====================================================

A method is two functions, a start and a step. What can be gained by wrapping another around it that knows nothing of
what is inside?
"""

import matplotlib.pyplot as plt

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC
from saddlepoint.problems.generators import random_logistic

plt.rcParams.update(RC)

# %%
# A learner whose condition number is 10 000, against an adversary with 100; gradients only. All runs may call each
# oracle 5000 times.

f = random_logistic(200, 150, kx=1e4, ky=100.0, coupling=30.0)
LIMIT = 5000


def run(method):
    result = sp.solve(f, method=method, tol=1e-6, max_calls=LIMIT)
    print(f"{result.method:24} {max(result.calls.values()):5} calls, {result.status}: {result.certificate}")
    return result


def draw(bare, wrapped):
    """The methods alone, dashed, and wrapped."""
    _, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
    for results, dash, width in ((bare, "--", 1.4), (wrapped, "-", 2.2)):
        for result, colour in zip(results, COLOURS, strict=False):
            calls = [max(record[1:5]) for record in result.history]  # of the busiest of the four oracles
            distance = result.history.column("distance")
            axis.loglog(calls[1:], distance[1:], dash, color=colour, linewidth=width, label=result.method)
    axis.axhline(1e-6, color="black", linewidth=0.8)
    axis.set(xlabel="calls of the busiest oracle", ylabel="certified |x − x*| + |y − y*|", ylim=(3e-11, 3e4))
    axis.legend(loc="lower left")
    plt.show()


# %%
# Anderson: remember the last steps
# ---------------------------------
# Out of the last steps of any method, mix the one that would have had the smallest residual. On a quadratic that is
# GMRES; elsewhere nothing is promised but that it converges where the method inside does.

plain, swept = run(sp.Extragradient()), run(sp.CondatVu())
mixed = [run(sp.Anderson(sp.Extragradient())), run(sp.Anderson(sp.CondatVu(), window=60))]
draw([plain, swept], mixed)

# %%
# Catalyst: make it balanced
# --------------------------
# An anchor added to the flatter player makes the two alike, and an outer momentum makes up for the anchor. This is
# how the paper takes DIPPA to unbalanced problems; it works with any method inside.

balanced = [run(sp.Catalyst(sp.Extragradient())), run(sp.Catalyst(sp.DIPPA()))]
draw([plain, run(sp.DIPPA())], balanced)

# %%
# Restarted: begin anew
# ---------------------
# The accelerated primal-dual method, ``sp.APD``, is made for functions whose mu nobody knows, and pays for it with a
# slow end. Begun anew whenever its residual has fallen far enough, it becomes quick without being told mu.

slow, restarted = run(sp.APD()), run(sp.Restarted(sp.APD()))
assert restarted.solved
draw([slow], [restarted])

# %%
# The answer
# ----------
# Much, in places: mixing helps where the problem is kinder than its constants, which is nearly always; Catalyst where
# the players are uneven; restarts where mu is not known. They can be nested too, as in
# ``sp.Restarted(sp.Anderson(sp.Extragradient()))``.
