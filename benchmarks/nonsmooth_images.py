"""Total variation of images and signals beside specialised solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from apps.total_variation import noisy
from nonsmooth_peers import SMALLER, STEPS, Array, Row, beside, clarabel, optional, rms
from odl_peer import odl_solver
from scipy import sparse as sparse_matrices

import saddlepoint as sp

cp: Any = import_module("cvxpy")


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
