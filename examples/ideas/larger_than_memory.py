"""
A matrix larger than memory
===========================

The matrix A is on disk and does not fit into memory. Every step of a method needs :math:`Ay` and :math:`A^\\top x`. How
often is the file read, and how much memory does the run take?
"""

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, DASHES, RC

plt.rcParams.update(RC)
LIMIT = 45_000_000  # bytes, or a string such as "45MB"

# %%
# A matrix on disk
# ----------------
# The matrix has 12 000 x 800 entries and takes 1.7 times the memory that the run may use. It is written in pieces. Any
# ``.npy``, Zarr, HDF5 or Parquet file would work as well.

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
# ``sp.stream`` reads A in blocks of rows, and computes all products of a block while it is in memory. The norm of A
# is estimated by a dozen passes, unless a bound is given, as here; the run then compares the bound with the products.
# Every method may call each oracle 40 times.


def problem():
    A = sp.stream(path, memory_limit=LIMIT, norm=1.4)
    return sp.Saddle(sp.Quadratic(1.0, np.ones(m)), sp.Huber(l2=0.5), A)


results = {"lpd-gs": sp.solve(problem(), method="lpd-gs", tol=1e-3, max_calls=40)}
print(results["lpd-gs"])

# %%
# Memory
# ------
# Two more methods run on the file, opened again, while ``tracemalloc`` measures the memory of all arrays.

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
# In most programs two products read A twice. A step of these methods needs both products at once, or
# :math:`A^\top (s A y + e)`. Both can be computed block by block, in one pass over the file.

for method, result in results.items():
    products = result.calls["A"] + result.calls["At"]
    print(f"{method:13}  {products:4} products in {result.passes:4} passes, {result.status}: {result.certificate}")
    assert result.passes < (0.9 if method == "dippa" else 0.7) * products
folder.cleanup()

# %%
# The answer
# ----------
# Where a step needs two products, the file is read once for both, and the memory stays below the limit. With A on
# disk, the number of passes determines the time.

figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
for (method, result), colour, dash in zip(results.items(), COLOURS, DASHES, strict=False):
    passes, distance = result.history.column("passes"), result.history.column("distance")
    axis.semilogy(passes, distance, color=colour, linestyle=dash, linewidth=2, label=method)
axis.axhline(1e-3, color="black", linewidth=0.8)
axis.set(xlabel="passes over A", ylabel="certified |x − x*| + |y − y*|")
axis.legend()
plt.show()

# %%
# The memory that the run allocated, compared with the limit and with the size of A:

figure, axis = plt.subplots(figsize=(6.4, 4.8), constrained_layout=True)
sizes = {"A on disk": 8 * m * n / 1e6, "limit": LIMIT / 1e6, "allocated at most": peak / 1e6}
bars = axis.bar(list(sizes), list(sizes.values()), color=["#888888", COLOURS[4], COLOURS[2]])
axis.bar_label(bars, fmt="%.0f MB", padding=3)
axis.set_ylabel("MB")
axis.margins(y=0.1)
axis.grid(axis="x", visible=False)
plt.show()
