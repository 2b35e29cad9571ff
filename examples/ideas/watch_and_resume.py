"""
Watch, stop and resume a run
============================

Can one watch a long run, stop it when the answer is good enough, and resume it after an interruption with exactly the
same result?
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC

plt.rcParams.update(RC)

# %%
# A classifier and an adversary
# -----------------------------
# x classifies 600 samples, and y shifts their features at a smooth cost. Another 2000 samples are held out.

rng = np.random.default_rng(0)
truth, D = rng.standard_normal(200), rng.standard_normal((2600, 200)) / np.sqrt(np.arange(1, 201))
labels = np.sign(D @ truth + 0.3 * rng.standard_normal(2600))
h = sp.LogCosh(rng.standard_normal((300, 150)), rng.standard_normal(300), l2=0.1)
f = sp.Saddle(sp.Logistic(D[:600], labels[:600], l2=1e-4), h, 0.02 * rng.standard_normal((200, 150)))

# %%
# Watch
# -----
# The callback gets a ``Result`` at every certificate. Certificates do not change the run, and they are counted
# separately.

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
# The accuracy on the held-out samples stops changing long before eight digits are reached. To stop there, the callback
# raises ``StopIteration``. The best point so far is returned, and the status is not ``solved``.


def enough(result):
    if result.certificate.distance <= 1.0:
        raise StopIteration


early = sp.solve(f, method=METHOD, tol=1e-8, callback=enough)
right = np.mean(np.sign(D[600:] @ early.x) == labels[600:])
print(f"{early}\nheld out: {right:.2%} right, at the end {seen[-1][2]:.2%}")

# %%
# Resume
# ------
# With ``checkpoint=`` the run is written to a file at intervals and at its end, whatever ends it: here a budget, but
# Ctrl-C, a signal or an exception are possible too. The same call resumes the run, with the same bits.

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "run.ckpt"
    part = sp.solve(f, method=METHOD, tol=1e-8, max_calls=1000, checkpoint=file)
    print(f"{part.status}: {part.certificate}; {file.stat().st_size / 1000:.0f} kB on disk")
    rest = sp.solve(f, method=METHOD, tol=1e-8, checkpoint=file)
assert (rest.x == whole.x).all()
assert (rest.y == whole.y).all()
assert rest.calls == whole.calls
print("the resumed run has the same bits and the same number of calls as the one that was never interrupted")

# %%
# The answer
# ----------
# Yes. The two halves of the resumed run agree with the run that was never interrupted.

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
# The values that the callback has collected show which certified distance this application needs.

figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
_, distances, accuracy = np.array(seen).T
axis.semilogx(distances, 100 * accuracy, color=COLOURS[2], marker=".")
axis.axvline(early.certificate.distance, color="black", linestyle=":")
axis.annotate("stopped here", (early.certificate.distance, 62), xytext=(8, 0), textcoords="offset points")
axis.invert_xaxis()
axis.set(xlabel="certified distance", ylabel="held-out samples classified correctly, %", ylim=(60, 80))
plt.show()
