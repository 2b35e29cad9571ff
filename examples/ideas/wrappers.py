"""
Wrappers: Anderson, Catalyst, Restarted
=======================================

A method consists of two functions, ``init`` and ``step``. A wrapper is a method that takes any other method. How much
do wrappers gain?
"""

import matplotlib.pyplot as plt

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC
from saddlepoint.problems.generators import random_logistic

plt.rcParams.update(RC)

# %%
# The condition numbers of the example are 10 000 and 100. All runs may call each oracle 5000 times.

f = random_logistic(200, 150, kx=1e4, ky=100.0, coupling=30.0)
LIMIT = 5000


def run(method):
    result = sp.solve(f, method=method, tol=1e-6, max_calls=LIMIT)
    print(f"{result.method:24} {calls(result):5} calls, {result.status}: {result.certificate}")
    return result


def calls(result):
    """The calls of the busiest oracle."""
    return max(result.calls.values())


def draw(bare, wrapped):
    """Draw the methods alone (dashed) and wrapped."""
    _, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
    for results, dash, width in ((bare, "--", 1.4), (wrapped, "-", 2.2)):
        for result, colour in zip(results, COLOURS, strict=False):
            busiest = [max(record[1:5]) for record in result.history]  # calls of the busiest of the four oracles
            distance = result.history.column("distance")
            axis.loglog(busiest[1:], distance[1:], dash, color=colour, linewidth=width, label=result.method)
    axis.axhline(1e-6, color="black", linewidth=0.8)
    axis.set(xlabel="calls of the busiest oracle", ylabel="certified |x − x*| + |y − y*|", ylim=(3e-11, 3e4))
    axis.legend(loc="lower left")
    plt.show()


# %%
# Anderson: combine the last steps
# --------------------------------
# ``Anderson`` combines the last steps of a method so that the residual is smallest. On a quadratic this is GMRES. On
# other problems a safeguard makes its residual fall linearly wherever that of the method inside does, and here it
# needs fewer calls.

plain, swept = run(sp.Extragradient()), run(sp.CondatVu())
mixed = [run(sp.Anderson(sp.Extragradient())), run(sp.Anderson(sp.CondatVu(), window=60))]
draw([plain, swept], mixed)
assert all(calls(b) < calls(a) and b.solved for a, b in zip((plain, swept), mixed, strict=True))

# %%
# Catalyst: balance the condition numbers
# ---------------------------------------
# ``Catalyst`` adds a proximal term to the worse conditioned function, so that both have the same condition number, and
# moves the centre of the term with momentum. The paper uses it for DIPPA on unbalanced problems; it takes any method.

balanced = [run(sp.Catalyst(sp.Extragradient())), run(sp.Catalyst(sp.DIPPA()))]
draw([plain, run(sp.DIPPA())], balanced)

# %%
# Restarted: restart when the residual has fallen
# -----------------------------------------------
# The accelerated primal-dual method, ``sp.APD``, is for functions whose mu is not known, and it is slow in the end.
# If it is restarted whenever its residual has fallen far enough, it converges linearly without knowing mu.

slow, restarted = run(sp.APD()), run(sp.Restarted(sp.APD()))
assert restarted.solved
assert not slow.solved
draw([slow], [restarted])

# %%
# The answer
# ----------
# Anderson mixing helps where the problem is easier than its constants say. Catalyst helps
# where the condition numbers differ, and restarts where mu is not known. Wrappers can be nested, as in
# ``sp.Restarted(sp.Anderson(sp.Extragradient()))``.
