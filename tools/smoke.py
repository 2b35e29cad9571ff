"""A short test of an installed saddlepoint. tools/release.py runs it in an environment that holds nothing else."""

import sys
from importlib.resources import files
from pathlib import Path

import numpy as np

import saddlepoint as sp

# Packages that `import saddlepoint` must not import.
HEAVY = {"matplotlib", "rich", "typer", "pandas", "sklearn", "numba", "jax", "torch", "dask", "mpi4py", "IPython"}

version, home = sys.argv[1:]
assert sp.__version__ == version, sp.__version__
assert Path(sp.__file__).is_relative_to(home), sp.__file__
assert not HEAVY & {name.partition(".")[0] for name in sys.modules}
assert files("saddlepoint").joinpath("py.typed").is_file()

rng = np.random.default_rng(0)
A, b, c = rng.standard_normal((30, 20)), rng.standard_normal(30), rng.standard_normal(20)
P, Q = np.linspace(0.1, 1.0, 30), np.linspace(0.2, 2.0, 20)
f = sp.Saddle(sp.Quadratic(P, b), sp.Quadratic(Q, c), A)
exact = np.linalg.solve(np.block([[np.diag(P), A], [-A.T, np.diag(Q)]]), -np.r_[b, c])
for method in ("auto", "dippa", "lpd-gs"):
    result = sp.solve(f, method=method, tol=1e-8)
    assert result.solved, result
    distance = np.linalg.norm(result.x - exact[:30]) + np.linalg.norm(result.y - exact[30:])
    assert distance <= result.certificate.distance <= 1e-8, (method, distance)
    assert "certificate" in repr(result)
    assert "@software{saddlepoint," in result.cite()

g = sp.Smooth(lambda x: x + np.tanh(x - 1.0), mu=1.0, L=2.0)
assert sp.solve(sp.Saddle(g, sp.Huber(l2=0.5, t=np.ones(20)), A), tol=1e-6).solved
kuhn = sp.apps.ExtensiveGame.load("kuhn").solve()  # the game is a data file of the package
assert abs(kuhn.value + 1.0 / 18.0) < 1e-4, kuhn
