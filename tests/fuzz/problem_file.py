"""Problem files: ``python tests/fuzz/problem_file.py -runs=100000``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from harness import LIMIT, fuzz, read

LINES = b"""A = [[1.0, 2.0], [0.0, 1.0]]
[[g]]
kind = "quadratic"
P = [1.0, 3.0]
b = [1.0, -0.5]
[[g]]
kind = "huber"
D = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
t = [1, 2, 3]
delta = 0.5
weight = 0.3
[h]
kind = "log-cosh"
l2 = 0.5
[solve]
method = "dippa"
options = { inner = "adaptive" }
tol = 1e-4
max_calls = { grad_g = 100, A = 1000 }
max_seconds = 10
x0 = [0.0, 0.0]
"""
KINDS = b"""A = [[1, 2]]
g = {kind = "group-huber", groups = [1], weight = 2.0, width = 0.1, l2 = 1e-2}
[[h]]
kind = "logistic"
D = [[1.0, 2.0], [3.0, 4.0]]
labels = [1, -1]
l2 = 1e-3
[[h]]
kind = "smoothed-hinge"
D = [[1.0, 2.0], [3.0, 4.0]]
labels = [1, -1]
[[h]]
kind = "least-squares"
D = [[1.0, 2.0], [3.0, 4.0]]
t = [1, -1]
[[h]]
kind = "log-sum-exp"
tau = 0.5
[[h]]
kind = "entropy"
low = 0.01
high = 2.0
"""
FILES = b"""A = "A.npy"
g = {kind = "quadratic", P = "P.npz:P"}
h = {kind = "quadratic", P = 2}
"""
TERMS = b"""A = [[1.0, 2.0], [0.0, 1.0]]
[g]
kind = "quadratic"
P = [1.0, 3.0]
[[g.simple]]
kind = "l1"
weight = [0.5, 0.1]
[[g.simple]]
kind = "box"
lower = -inf
upper = 2.0
[[h.simple]]
kind = "groups"
groups = ["a", "b"]
weight = 0.3
[solve]
gap = 1e-4
"""
SEEDS = [LINES, KINDS, FILES, TERMS]


def check(data: bytes, folder: Path) -> bool:
    """A problem file with this content is read, or refused."""
    from saddlepoint.problems.files import load_problem

    path = folder / "problem.toml"
    path.write_bytes(data)
    np.save(folder / "A.npy", np.ones((2, 2)))  # the files that the last seed names
    np.savez(folder / "P.npz", P=np.array([1.0, 3.0]))
    return read(lambda: load_problem(path, LIMIT))


if __name__ == "__main__":
    fuzz(check, lambda: SEEDS)
