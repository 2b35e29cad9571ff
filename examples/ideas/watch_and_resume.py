"""
Watch, stop, and go on
======================

A long run is more than its last line. Can one look on, stop when it is good enough for the purpose, survive a power
cut, and still end with the very same bits?
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC

plt.rcParams.update(RC)

# %%
# A learner against an adversary
# ------------------------------
# x classifies 600 samples; y shifts their features at a smooth cost. Another 2000 samples are held out.

rng = np.random.default_rng(0)
truth, D = rng.standard_normal(200), rng.standard_normal((2600, 200)) / np.sqrt(np.arange(1, 201))
labels = np.sign(D @ truth + 0.3 * rng.standard_normal(2600))
h = sp.LogCosh(rng.standard_normal((300, 150)), rng.standard_normal(300), l2=0.1)
f = sp.Saddle(sp.Logistic(D[:600], labels[:600], l2=1e-4), h, 0.02 * rng.standard_normal((200, 150)))

# %%
# Watch
# -----
# The callback gets a whole ``Result`` at every certificate. Looking changes nothing: certificates are taken apart from
# the run, and counted apart.

seen = []


def look(result):
    right = np.mean(np.sign(D[600:] @ result.x) == labels[600:])
    seen.append((max(result.calls.values()), result.certificate.distance, right))


METHOD = "lpd-gs"
whole = sp.solve(f, method=METHOD, tol=1e-8, callback=look)
print(whole)

# %%
# Stop
# ----
# The held-out accuracy has settled long before eight digits are reached. To stop there, the callback raises
# ``StopIteration``; the best point so far is returned, and the status does not pretend to be ``solved``.


def enough(result):
    if result.certificate.distance <= 1.0:
        raise StopIteration


early = sp.solve(f, method=METHOD, tol=1e-8, callback=enough)
right = np.mean(np.sign(D[600:] @ early.x) == labels[600:])
print(f"{early}\nheld out: {right:.2%} right, at the end {seen[-1][2]:.2%}")

# %%
# Go on
# -----
# With ``checkpoint=`` the run is written to a file now and then and at its end, whatever ends it: here a budget, but
# Ctrl-C, a signal or an exception will do. The same call again goes on, and no bit is different.

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "run.ckpt"
    part = sp.solve(f, method=METHOD, tol=1e-8, max_calls=1000, checkpoint=file)
    print(f"{part.status}: {part.certificate}; {file.stat().st_size / 1000:.0f} kB on disk")
    rest = sp.solve(f, method=METHOD, tol=1e-8, checkpoint=file)
assert (rest.x == whole.x).all()
assert (rest.y == whole.y).all()
assert rest.calls == whole.calls
print("the resumed run ends with the same bits and the same bill as the one that was never interrupted")

# %%
# The answer
# ----------
# All of it. The two halves lie on the run that was never interrupted.

figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
axis.semilogy(whole.history.column("A"), whole.history.column("distance"), color="#bbbbbb", linewidth=7, label="whole")
cut = len(part.history)
pieces = (("until the budget is spent", rest.history[:cut]), ("resumed", rest.history[cut - 1 :]))
for (label, records), colour in zip(pieces, COLOURS, strict=False):
    axis.semilogy([r.A for r in records], [r.distance for r in records], color=colour, linewidth=2, label=label)
axis.set(xlabel="products with A", ylabel="certified |x − x*| + |y − y*|")
axis.legend()
plt.show()

# %%
# And this is what the callback saw: how much proof the purpose needs.

figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
_, distances, accuracy = np.array(seen).T
axis.semilogx(distances, 100 * accuracy, color=COLOURS[2], marker=".")
axis.axvline(early.certificate.distance, color="black", linestyle=":")
axis.annotate("stopped here", (early.certificate.distance, 62), xytext=(8, 0), textcoords="offset points")
axis.invert_xaxis()
axis.set(xlabel="certified distance", ylabel="held-out samples classified rightly, %", ylim=(60, 80))
plt.show()
