"""
A larger than memory, and one pass for two products
===================================================

A lies on disk and may not be loaded. Every step of a method needs A y and A' x; how often is the file read, and how
much memory does the run take?
"""

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, DASHES, RC

plt.rcParams.update(RC)
LIMIT = 45_000_000  # bytes, or a text such as "45MB"

# %%
# A matrix on disk
# ----------------
# 12 000 x 800 numbers, 1.7 times the memory that the run will be allowed. It is written in pieces, as another program
# might have done; any ``.npy``, Zarr, HDF5 or Parquet file will do.

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "A.npy"
m, n = 12_000, 800
stored = np.lib.format.open_memmap(path, "w+", np.float64, (m, n))
for i in range(0, m, 1000):
    stored[i : i + 1000] = 0.01 * np.random.default_rng(i).standard_normal((1000, n))
stored.flush()
del stored
print(f"A takes {path.stat().st_size / 1e6:.0f} MB, the limit is {LIMIT / 1e6:.0f} MB")

# %%
# Solve
# -----
# ``sp.stream`` reads A block of rows by block of rows, and makes all products of a block while it is in memory. The
# norm of A is estimated from a dozen passes, or given, as here, when a bound is known; it is then watched. Every method
# may call each oracle 40 times.


def problem():
    A = sp.stream(path, memory_limit=LIMIT, norm=1.4)
    return sp.Saddle(sp.Quadratic(1.0, np.ones(m)), sp.Huber(l2=0.5), A)


results = {"lpd-gs": sp.solve(problem(), method="lpd-gs", tol=1e-3, max_calls=40)}
print(results["lpd-gs"])

# %%
# Memory
# ------
# Two more methods, on the file opened anew, while Python keeps account of every array.

tracemalloc.start()
f = problem()
for method in ("dippa", "extragradient"):
    results[method] = sp.solve(f, method=method, tol=1e-3, max_calls=40)
peak = tracemalloc.get_traced_memory()[1]
tracemalloc.stop()
print(f"at most {peak / 1e6:.0f} MB were allocated")
assert peak <= LIMIT

# %%
# Passes
# ------
# Two products read A twice in most programs. A step of these methods asks for them together, or for one through the
# other, ``A' (s A y + e)``, of which a block of rows needs no more than itself.

for method, result in results.items():
    products = result.calls["A"] + result.calls["At"]
    print(f"{method:13}  {products:4} products in {result.passes:4} passes, {result.status}: {result.certificate}")
folder.cleanup()

# %%
# The answer
# ----------
# Once for both products, and the memory stays below the limit. With A on disk a pass is all that counts, and a method
# is worth as much as it makes of one.

figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
for (method, result), colour, dash in zip(results.items(), COLOURS, DASHES, strict=False):
    passes, distance = result.history.column("passes"), result.history.column("distance")
    axis.semilogy(passes, distance, color=colour, linestyle=dash, linewidth=2, label=method)
axis.axhline(1e-3, color="black", linewidth=0.8)
axis.set(xlabel="passes over A", ylabel="certified |x − x*| + |y − y*|")
axis.legend()
plt.show()

# %%
# And of the memory that it was allowed, the run took what it needed.

figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
sizes = {"A on disk": 8 * m * n / 1e6, "limit": LIMIT / 1e6, "allocated at most": peak / 1e6}
bars = axis.bar(list(sizes), list(sizes.values()), color=["#888888", COLOURS[4], COLOURS[2]])
axis.bar_label(bars, fmt="%.0f MB", padding=3)
axis.set_ylabel("MB")
axis.margins(y=0.1)
axis.grid(axis="x", visible=False)
plt.show()
