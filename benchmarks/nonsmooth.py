"""Constraints and nonsmooth terms beside specialised solvers: seconds to the same accuracy, in one run.

`python benchmarks/nonsmooth.py [--quick] [--only SECTION ...] [--out FILE]` needs CVXPY with Clarabel and scikit-learn.
celer, skglm, scikit-image, pyproximal and ODL are measured if they are installed (`pip install celer skglm scikit-image
pyproximal odl`).
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from apps.total_variation import noisy
from odl_peer import odl_solver
from scipy import sparse as sparse_matrices
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import ElasticNet, LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from timing import fastest

import saddlepoint as sp

cp: Any = import_module("cvxpy")
Array = np.ndarray
RUNS = 3  # the fastest of this many runs counts
LONG = 10.0  # CPU seconds after which a peer is not asked for more accuracy

TEXT = """# Constraints and nonsmooth terms beside other solvers

Seconds (wall-clock, and CPU in the next column) of one call on one thread, the fastest of {runs} runs;
ours and the peers of a task in the same run of
this script. Every solver is asked for the accuracy in the column "task": this library once, because it proves its
error; a peer with smaller and smaller tolerances, and the first that is accurate enough counts. The true error is the
distance to an answer that was proven to be more accurate. Calls that compile (Numba, CVXPY) are made once before.
"short" says that the peer did not reach the accuracy with its smallest tolerance.

"""


class Row(NamedTuple):
    """One solver on one task."""

    task: str
    solver: str
    seconds: float
    cpu: float
    error: float
    proven: float | None
    short: bool


def beside(
    task: str,
    goal: float,
    exact: Array,
    ours: Callable[[], tuple[Array, float]],
    peers: dict[str, tuple[Callable[[float], Array], list[float]]],
    error: Callable[[Array, Array], float],
) -> Iterator[Row]:
    """This library, then each peer with the first of its tolerances that is accurate enough."""
    proofs = []

    def run() -> Array:
        x, proof = ours()
        proofs.append(proof)
        return x

    (wall, cpu), x = fastest(run, RUNS)
    yield Row(task, "saddlepoint", wall, cpu, error(x, exact), proofs[-1], proofs[-1] > goal)
    for name, (solver, tolerances) in peers.items():
        for tol in tolerances:
            began = time.process_time()
            solver(tol)  # compiles
            runs = RUNS if time.process_time() - began < 5.0 else 1
            (wall, cpu), x = fastest(partial(solver, tol), runs)
            reached = error(x, exact)
            if reached <= goal or cpu > LONG:
                break
        yield Row(task, name, wall, cpu, reached, None, reached > goal)


def relative(x: Array, exact: Array) -> float:
    """The distance over the length of the exact answer."""
    return float(np.linalg.norm(x - exact) / np.linalg.norm(exact))


def rms(x: Array, exact: Array) -> float:
    """The root mean square of the difference."""
    return float(np.sqrt(np.mean((x - exact) ** 2)))


def optional(name: str) -> Any:
    """A module, or None if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def clarabel(problem: Any, x: Any) -> Callable[[float], Array]:
    """A solver of a program of CVXPY."""

    def solve(tol: float) -> Array:
        problem.solve(solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
        return np.asarray(x.value)

    return solve


STEPS = [100, 300, 1000, 3000, 10_000]  # of primal-dual methods, which have no tolerance
SMALLER = [10.0**-k for k in range(4, 13)]  # tolerances of other peers, of which the first that suffices counts


# -- games ------------------------------------------------------------------------------------------------------------


def games(n: int) -> Iterator[Row]:
    """Quadratic costs on probabilities; Clarabel solves the dual of the player that maximises."""
    rng = np.random.default_rng(0)
    A, b, goal = rng.standard_normal((n, n)) / np.sqrt(n), rng.standard_normal(n), 1e-6

    def ours(distance: float) -> tuple[Array, float]:
        # A is the payoff of the columns here, and x, who minimises, has the rows.
        game = sp.apps.MatrixGame(A.T, cost_row=1.0, cost_column=sp.Quadratic(1.0, b))
        found = game.solve(tol=distance**2 / 4.0)
        return found.column, found.distance

    x, u = cp.Variable(n), cp.Variable(n)
    value = 0.5 * cp.sum_squares(x) + b @ x + 0.5 * cp.sum_squares(A.T @ x - u) + cp.max(u)
    program = cp.Problem(cp.Minimize(value), [cp.sum(x) == 1, x >= 0])
    exact, _ = ours(1e-9)
    peers = {"Clarabel (CVXPY)": (clarabel(program, x), SMALLER)}
    task = f"quadratic costs on probabilities, {n} x {n}, distance 1e-6"
    yield from beside(task, goal, exact, lambda: ours(goal), peers, lambda a, e: float(np.linalg.norm(a - e)))


# -- sparse models ----------------------------------------------------------------------------------------------------


def drawn(N: int, p: int) -> tuple[Array, Array]:
    """Normal features, one in a hundred of which counts, and targets with noise."""
    rng = np.random.default_rng(0)
    D = np.asfortranarray(rng.standard_normal((N, p)))
    w = np.zeros(p)
    w[rng.choice(p, p // 100, replace=False)] = rng.standard_normal(p // 100)
    signal = D @ w
    return D, signal + 0.1 * np.linalg.norm(signal) / np.sqrt(N) * rng.standard_normal(N)


def elastic_net(name: str, D: Array, t: Array, share: float, goal: float = 1e-6) -> Iterator[Row]:
    """Least squares with l1 = share of the smallest that makes all weights zero, and l2 = l1/10."""
    N = len(t)
    l1 = share * float(np.abs(D.T @ t).max()) / N
    alpha, ratio = 1.1 * l1, 1.0 / 1.1

    def ours(accuracy: float, size: float) -> tuple[Array, float]:
        # tol is that of the fitted values: certified distance times |D|/(sqrt(N) scale)
        scale = np.linalg.norm(t) / np.sqrt(N)
        tol = accuracy * size * length / (np.sqrt(N) * scale)
        model = sp.apps.RiskRegressor(l1=l1, l2=0.1 * l1, fit_intercept=False, tol=tol).fit(D, t)
        return model.coef_, model.certificate_.distance_x / size

    length = sp.as_coupling(D).norm
    first = ElasticNet(alpha=alpha, l1_ratio=ratio, fit_intercept=False, tol=1e-6, max_iter=10**5).fit(D, t)
    size = float(np.linalg.norm(first.coef_))
    exact, _ = ours(1e-8, size)

    def by(model: Any) -> tuple[Callable[[float], Array], list[float]]:
        made = {"alpha": alpha, "l1_ratio": ratio, "fit_intercept": False}
        return lambda tol: np.asarray(model(**made, tol=tol, max_iter=10**5).fit(D, t).coef_), SMALLER

    peers = {"scikit-learn": by(ElasticNet)}
    for module in ("celer", "skglm"):
        if found := optional(module):
            peers[module] = by(found.ElasticNet)
    task = f"elastic net, {name} {N} x {D.shape[1]}, {np.count_nonzero(exact)} used, relative 1e-6"
    yield from beside(task, goal, exact, lambda: ours(goal, size), peers, relative)


def logistic(name: str, D: Array, labels: Array, share: float, goal: float = 1e-6) -> Iterator[Row]:
    """Logistic regression with l1 and l2 = l1/10."""
    N, signs = len(labels), np.where(labels, 1.0, -1.0)
    l1 = share * float(np.abs(D.T @ signs).max()) / (2 * N)
    length = sp.as_coupling(D).norm

    def ours(accuracy: float, size: float) -> tuple[Array, float]:
        tol = accuracy * size * length / np.sqrt(N)
        model = sp.apps.RiskClassifier(l1=l1, l2=0.1 * l1, fit_intercept=False, tol=tol).fit(D, labels)
        return model.coef_[0], model.certificate_.distance_x / size

    size = float(np.linalg.norm(ours(1e-3, 1.0)[0]))
    exact, _ = ours(1e-8, size)

    def saga(tol: float) -> Array:
        C = 1.0 / (N * 1.1 * l1)
        model = LogisticRegression(C=C, l1_ratio=1.0 / 1.1, solver="saga", fit_intercept=False, tol=tol)
        return np.asarray(model.set_params(max_iter=500).fit(D, labels).coef_[0])

    peers: dict[str, Any] = {}
    if D.size < 10**6:  # saga takes minutes on the others
        peers["scikit-learn (saga)"] = (saga, [1e-4, 1e-8])
    if skglm := optional("skglm"):
        Logistic = import_module("skglm.datafits").Logistic
        Penalty = import_module("skglm.penalties").L1_plus_L2
        ProxNewton = import_module("skglm.solvers").ProxNewton

        def newton(tol: float) -> Array:
            solver = ProxNewton(tol=tol, fit_intercept=False, max_iter=1000)
            penalty = Penalty(1.1 * l1, 1.0 / 1.1)
            model = skglm.GeneralizedLinearEstimator(datafit=Logistic(), penalty=penalty, solver=solver)
            return np.ravel(model.fit(D, signs).coef_)

        peers["skglm (prox-Newton)"] = (newton, SMALLER)
    task = f"sparse logistic, {name} {N} x {D.shape[1]}, {np.count_nonzero(exact)} used, relative 1e-6"
    yield from beside(task, goal, exact, lambda: ours(goal, size), peers, relative)


# -- total variation --------------------------------------------------------------------------------------------------


def images(n: int, weight: float = 0.15) -> Iterator[Row]:
    """Denoising a picture to a root mean square error of 1e-3 and of 1e-4."""
    b = noisy(n)

    def ours(goal: float) -> tuple[Array, float]:
        found = sp.apps.TotalVariation(b, weight).solve(rms=goal)
        return found.image, found.rms

    exact, _ = ours(2e-5)
    peers: dict[str, Any] = {}
    if optional("skimage"):
        chambolle = import_module("skimage.restoration").denoise_tv_chambolle
        smaller = [2e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10]
        peers["scikit-image (Chambolle)"] = (lambda eps: chambolle(b, weight, eps=eps, max_num_iter=10**5), smaller)
    if optional("pyproximal") and optional("pylops"):
        peers["pyproximal (primal-dual)"] = (pyproximal_denoiser(b, weight), STEPS)
    if optional("odl"):
        peers["ODL (pdhg)"] = (odl_solver(b, weight), STEPS)
    for goal in (1e-3, 1e-4):
        task = f"total variation denoising, {n} x {n}, rms {goal:.0e}"
        yield from beside(task, goal, exact, partial(ours, goal), peers, rms)


def pyproximal_denoiser(b: Array, weight: float) -> Callable[[float], Array]:
    """Chambolle and Pock's method as pyproximal's tutorial sets it up; its tolerance is the number of steps."""
    pylops, pyproximal = import_module("pylops"), import_module("pyproximal")
    gradient = pylops.Gradient(dims=b.shape, edge=False, kind="forward", dtype="float64")
    l2, l21 = pyproximal.L2(b=b.ravel()), pyproximal.L21(ndim=2, sigma=weight)

    def solve(steps: float) -> Array:
        primal_dual = pyproximal.optimization.primaldual.PrimalDual
        return np.asarray(
            primal_dual(l2, l21, gradient, tau=0.35, mu=0.35, theta=1.0, x0=np.zeros(b.size), niter=int(steps))
        ).reshape(b.shape)

    return solve


def blurred(n: int, weight: float = 0.01, ridge: float = 1e-2) -> Iterator[Row]:
    """Deblurring a picture: the mean over 5 x 5 pixels, symmetric at the border, noise, and a small ridge."""
    line = sparse_matrices.diags_array([np.full(n - abs(k), 0.2) for k in range(-2, 3)], offsets=range(-2, 3))
    blur, rng = sparse_matrices.kron(line, line).tocsr(), np.random.default_rng(0)
    b = (blur @ noisy(n).ravel()).reshape(n, n) + 0.02 * rng.standard_normal((n, n))

    def ours(goal: float) -> tuple[Array, float]:
        found = sp.apps.TotalVariation(b, weight, operator=blur, ridge=ridge, shape=b.shape).solve(rms=goal)
        return found.image, found.rms

    peers: dict[str, Any] = {}
    if optional("odl"):
        peers["ODL (pdhg)"] = (odl_solver(b, weight, blur, ridge), STEPS)
    yield from beside(f"deblurring, {n} x {n}, rms 1e-03", 1e-3, ours(2e-4)[0], partial(ours, 1e-3), peers, rms)


def signals(n: int) -> Iterator[Row]:
    """The fused lasso of a long signal, and that of a regression with ordered features."""
    rng = np.random.default_rng(0)
    b = np.repeat(rng.integers(-3, 4, n // 100).astype(float), 100) + 0.3 * rng.standard_normal(n)
    x = cp.Variable(n)
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x - b) + 2.0 * cp.norm1(cp.diff(x))))

    def ours(goal: float) -> tuple[Array, float]:
        found = sp.apps.TotalVariation(b, 2.0).solve(rms=goal)
        return found.image, found.rms

    peers: dict[str, Any] = {"Clarabel (CVXPY)": (clarabel(program, x), SMALLER)}
    yield from beside(f"fused lasso, signal of {n}, rms 1e-5", 1e-5, ours(1e-6)[0], lambda: ours(1e-5), peers, rms)
    N, p = n // 20, n // 50
    D = rng.standard_normal((N, p)) / np.sqrt(N)
    t = D @ np.repeat(rng.integers(-2, 3, p // 20).astype(float), 20) + 0.1 * rng.standard_normal(N)
    w = cp.Variable(p)
    data = 0.5 * cp.sum_squares(D @ w - t) + 0.005 * cp.sum_squares(w)
    regression = cp.Problem(cp.Minimize(data + 0.1 * cp.norm1(cp.diff(w))))

    def fitted(goal: float) -> tuple[Array, float]:
        found = sp.apps.TotalVariation(t, 0.1, operator=D, ridge=0.01, shape=(p,)).solve(rms=goal, max_seconds=120)
        return found.image, found.rms

    peers = {"Clarabel (CVXPY)": (clarabel(regression, w), SMALLER)}
    task = f"fused lasso, regression {N} x {p}, rms 1e-4"
    yield from beside(task, 1e-4, fitted(1e-5)[0], lambda: fitted(1e-4), peers, rms)


# -- support vector machines, fairness, worst cases -------------------------------------------------------------------


def machine(name: str, D: Array, labels: Array, l2: float = 1e-2, goal: float = 1e-6) -> Iterator[Row]:
    """The support vector machine with the hinge loss, beside liblinear."""
    N, length = len(labels), sp.as_coupling(D).norm

    def ours(accuracy: float) -> tuple[Array, float]:
        tol = accuracy * size * length / np.sqrt(N)
        model = sp.apps.RiskClassifier("hinge", l2, fit_intercept=False, tol=tol).fit(D, labels)
        return model.coef_[0], model.certificate_.distance_x / size

    def liblinear(tol: float) -> Array:
        model = LinearSVC(loss="hinge", C=1.0 / (N * l2), fit_intercept=False, tol=tol, max_iter=10**5)
        return np.asarray(model.fit(D, labels).coef_[0])

    size = float(np.linalg.norm(liblinear(1e-4)))
    peers: dict[str, Any] = {"liblinear (scikit-learn)": (liblinear, SMALLER)}
    task = f"support vector machine, {name} {N} x {D.shape[1]}, l2 = {l2:g}, relative {goal:.0e}"
    yield from beside(task, goal, ours(1e-9)[0], lambda: ours(goal), peers, relative)


def machines(quick: bool) -> Iterator[Row]:
    """Support vector machines on bundled data and on drawn ones."""
    standard = StandardScaler().fit_transform
    X, y = load_breast_cancer(return_X_y=True)
    yield from machine("breast cancer", standard(X), y == 1)
    if not quick:
        X, y = load_digits(return_X_y=True)
        yield from machine("digits (8 or not)", standard(X), y == 8)
        yield from machine("digits (8 or not)", standard(X), y == 8, 1e-4)
        rng = np.random.default_rng(0)
        D = rng.standard_normal((20_000, 50))
        yield from machine("drawn", D, D @ rng.standard_normal(50) + 2.0 * rng.standard_normal(20_000) > 0.0)


def robust(N: int, n: int, goal: float = 1e-5) -> Iterator[Row]:
    """Fair classification, group DRO and Wasserstein DRO, beside Clarabel."""
    rng = np.random.default_rng(0)
    z, group = rng.integers(0, 2, N), rng.integers(0, 4, N)
    D = rng.standard_normal((N, n)) + 0.8 * z[:, None] * rng.standard_normal(n)
    y = D @ rng.standard_normal(n) + (1.0 + group) * rng.standard_normal(N) > 0.0
    w, signs = cp.Variable(n), np.where(y, 1.0, -1.0)
    margin, ridge = cp.multiply(signs, D @ w), 0.005 * cp.sum_squares(w)
    logistic_risk, hinge_risk = cp.sum(cp.logistic(-margin)) / N, cp.sum(cp.pos(1 - margin)) / N
    limit = [cp.abs((D - D.mean(axis=0)).T @ (z - z.mean()) / N @ w) <= 0.02]
    parts = [cp.sum(cp.logistic(-margin[group == g])) / np.count_nonzero(group == g) for g in range(4)]
    scale = sp.as_coupling(D).norm / np.sqrt(N)
    apps, free, value = sp.apps, {"fit_intercept": False}, logistic_risk + ridge
    tasks: dict[str, tuple[Any, tuple[Array, ...], Any, list[Any]]] = {
        "fair logistic regression": (partial(apps.FairClassifier, "logistic", 0.02), (z,), value, limit),
        "fair support vector machine": (partial(apps.FairClassifier, "hinge", 0.02), (z,), hinge_risk + ridge, limit),
        "group DRO, logistic, 4 groups": (apps.GroupDROClassifier, (group,), cp.maximum(*parts) + ridge, []),
        "Wasserstein DRO, logistic": (
            partial(apps.WassersteinClassifier, 0.1, l2=0.01), (), logistic_risk + ridge + 0.1 * cp.norm(w), []
        ),
        "Wasserstein DRO, hinge": (
            partial(apps.WassersteinClassifier, 0.1, "hinge", l2=0.01), (), hinge_risk + ridge + 0.1 * cp.norm(w), []
        ),
        "group lasso, logistic, 5 groups": (
            partial(apps.RiskClassifier, groups=np.arange(n) % 5, group_weight=0.02), (),
            logistic_risk + ridge + 0.02 * sum(cp.norm(w[k::5]) for k in range(5)), []
        ),
    }  # fmt: skip
    for name, (make, more, objective, constraints) in tasks.items():

        def ours(accuracy: float, size: float, make: Any = make, more: Any = more) -> tuple[Array, float]:
            model = make(tol=accuracy * size * scale, **free).fit(D, y, *more)
            proof = model.certificate_
            return np.ravel(model.coef_), getattr(proof, "distance_x", proof.distance) / size

        size = float(np.linalg.norm(ours(1e-3, 1.0)[0]))
        peers = {"Clarabel (CVXPY)": (clarabel(cp.Problem(cp.Minimize(objective), constraints), w), SMALLER)}
        task = f"{name}, drawn {N} x {n}, relative {goal:.0e}"
        finer = 3e-6 if "group DRO" in name else 1e-8
        yield from beside(task, goal, ours(finer, size)[0], partial(ours, goal, size), peers, relative)


# -- all of it --------------------------------------------------------------------------------------------------------


def sparse(quick: bool) -> Iterator[Row]:
    """Elastic nets and sparse logistic regression, on bundled data and on drawn ones."""
    standard = StandardScaler().fit_transform
    X, t = load_diabetes(return_X_y=True)
    yield from elastic_net("diabetes", np.asfortranarray(standard(X)), t - t.mean(), 0.1)
    yield from elastic_net("drawn", *drawn(*((100, 1000) if quick else (2000, 10_000))), 0.05)
    X, y = load_breast_cancer(return_X_y=True)
    yield from logistic("breast cancer", np.asfortranarray(standard(X)), y == 1, 0.02)
    if not quick:
        X, y = load_digits(return_X_y=True)
        yield from logistic("digits (8 or not)", np.asfortranarray(standard(X)), y == 8, 0.02)
        D, t = drawn(2000, 10_000)
        yield from logistic("drawn", D, t > 0.0, 0.1)


SECTIONS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "games": lambda quick: games(60 if quick else 400),
    "sparse": sparse,
    "machines": machines,
    "robust": lambda quick: robust(*((300, 10) if quick else (3000, 30))),
    "images": lambda quick: images(32 if quick else 256),
    "blurred": lambda quick: blurred(16 if quick else 128),
    "signals": lambda quick: signals(1000 if quick else 10_000),
}


def table(rows: Iterator[Row]) -> str:
    """The rows as Markdown, each printed as soon as it is there."""
    lines = ["| task | solver | seconds | CPU | true error | proven error |", "|---|---|---|---|---|---|"]
    for row in rows:
        proof = "none" if row.proven is None else f"{row.proven:.0e}"
        reached = f"{row.error:.0e}{' (short)' if row.short else ''}"
        lines.append(f"| {row.task} | {row.solver} | {row.seconds:.3g} | {row.cpu:.3g} | {reached} | {proof} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small problems")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="some sections only")
    parser.add_argument("--out", type=Path, help="the page to write")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # peers warn when they stop early; the table says what they reached
    found = table(row for name in given.only for row in SECTIONS[name](given.quick))
    if given.out is not None:
        by = f"By `python benchmarks/nonsmooth.py --out {given.out}`."
        given.out.write_text(TEXT.format(runs=RUNS) + found + f"\n\n{by}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
