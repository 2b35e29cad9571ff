"""The time of a solution with its gradient, by this package and by others: quadratic functions in a box.

For each package there is a function of P and v that returns another one, from linear terms b, one in a row, to the
gradients of <v, x(b)>, where x(b) minimises x'P x/2 - <b, x>.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from gradient_packages import cvxpy_layer, torch64
from gradient_problems import BOX, quadratic
from timing import cpu_seconds

import saddlepoint as sp
from saddlepoint.ground.arrays import Array

Gradients = Callable[[Array], Array]
SEED = 5  # of the linear terms
FIXED_POINTS = 400  # steps of projected gradients that find the support of a solution


# -- PyTorch -----------------------------------------------------------------------------------------------------------


def by_torch(solutions: Callable[[Any], Any], v: Array) -> Gradients:
    """The gradients of a function of PyTorch from linear terms to solutions."""
    torch = torch64()
    torch.set_num_threads(1)
    weights = torch.tensor(v)

    def gradients(many: Array) -> Array:
        given = torch.tensor(many, requires_grad=True)
        (solutions(given) @ weights).sum().backward()
        return np.asarray(given.grad.numpy())

    return gradients


def ours_on_torch(P: Array, v: Array) -> Gradients:
    """This package with PyTorch; mu and L are computed once."""
    torch = torch64()
    tensor, zero = torch.tensor(P), torch.zeros(len(v), 1)
    once = sp.Quadratic(tensor)

    def build(b: Any) -> sp.Saddle:
        g = sp.Quadratic(tensor, -b, mu=once.mu, L=once.L) + sp.Box(-BOX, BOX)
        return sp.Saddle(g, sp.Quadratic(1.0), zero)

    layer = sp.layer(build, in_dims=0)
    return by_torch(lambda b: layer(b)[0], v)


def cvxpylayers(P: Array, v: Array) -> Gradients:
    """CVXPY's layers."""
    cp: Any = import_module("cvxpy")
    x, b = cp.Variable(len(v)), cp.Parameter(len(v))
    half = np.linalg.cholesky(P).T
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(half @ x) - b @ x), [x <= BOX, x >= -BOX])
    return by_torch(cvxpy_layer(problem, b, x), v)


def qpth(P: Array, v: Array) -> Gradients:
    """OptNet's solver of quadratic programs."""
    torch, solver = torch64(), import_module("qpth.qp").QPFunction(verbose=-1)
    eye, none = torch.eye(len(v)), torch.empty(0)
    G, h = torch.cat([eye, -eye]), BOX * torch.ones(2 * len(v))
    return by_torch(lambda b: solver(torch.tensor(P), -b, G, h, none, none), v)


# -- JAX ---------------------------------------------------------------------------------------------------------------


def jax64() -> tuple[Any, Any]:
    """JAX in float64, and its NumPy."""
    jax: Any = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    return jax, import_module("jax.numpy")


def by_jax(solution: Callable[[Any], Any], v: Array) -> Gradients:
    """The gradients of a function of JAX from one linear term to the solution, compiled."""
    jax, jnp = jax64()
    slope = jax.jit(jax.grad(lambda b: jnp.sum(jax.vmap(solution)(b) @ jnp.asarray(v))))
    return lambda many: np.asarray(slope(jnp.asarray(many)))


def ours_on_jax(P: Array, v: Array) -> Gradients:
    """This package with JAX; mu and L are given."""
    _, jnp = jax64()
    values = np.linalg.eigvalsh(P)
    matrix, mu, L = jnp.asarray(P), float(values[0]), float(values[-1])

    def build(b: Any) -> sp.Saddle:
        g = sp.Quadratic(matrix, -b, mu=mu, L=L) + sp.Box(-BOX, BOX)
        return sp.Saddle(g, sp.Quadratic(1.0), jnp.zeros((len(v), 1)))

    layer = sp.layer(build)
    return by_jax(lambda b: layer(b)[0], v)


def jaxopt(P: Array, v: Array) -> Gradients:
    """Projected gradients of jaxopt."""
    _, jnp = jax64()
    matrix = jnp.asarray(P)
    solver = import_module("jaxopt").ProjectedGradient(
        lambda x, b: 0.5 * x @ matrix @ x - b @ x, lambda x, h: jnp.clip(x, -h, h), maxiter=5000, tol=1e-6
    )
    return by_jax(lambda b: solver.run(jnp.zeros(len(v)), BOX, b).params, v)


def optimistix(P: Array, v: Array) -> Gradients:
    """Newton's method of optimistix for the root of x - clip(x - gradient)."""
    _, jnp = jax64()
    package, matrix = import_module("optimistix"), jnp.asarray(P)

    def residual(x: Any, b: Any) -> Any:
        return x - jnp.clip(x - (matrix @ x - b), -BOX, BOX)

    def solution(b: Any) -> Any:
        return package.root_find(residual, package.Newton(1e-8, 1e-8), jnp.zeros(len(v)), b, throw=False).value

    return by_jax(solution, v)


PACKAGES: dict[str, Callable[[Array, Array], Gradients]] = {
    "saddlepoint torch": ours_on_torch,
    "saddlepoint jax": ours_on_jax,
    "cvxpylayers": cvxpylayers,
    "qpth": qpth,
    "jaxopt": jaxopt,
    "optimistix": optimistix,
}


def time_and_error(package: str, n: int, batch: int) -> tuple[float, float]:
    """CPU seconds of the fastest of three calls, after one that is not timed, and the largest error of an entry."""
    P, _, v = quadratic(n)
    many = np.random.default_rng(SEED).standard_normal((batch, n))
    gradients = PACKAGES[package](P, v)
    found = gradients(many)
    seconds, _ = cpu_seconds(lambda: gradients(many))
    return seconds, float(np.abs(found - exact_gradients(P, many, v)).max())


def exact_gradients(P: Array, many: Array, v: Array) -> Array:
    """The gradients by the formula on the supports of the solutions, which projected gradients find."""
    step, x = 1.0 / np.linalg.eigvalsh(P)[-1], np.zeros_like(many)
    for _ in range(FIXED_POINTS):
        x = np.clip(x - step * (x @ P - many), -BOX, BOX)
    found = np.zeros_like(many)
    for row, point in zip(found, x, strict=True):
        free = np.abs(point) < BOX
        row[free] = np.linalg.solve(P[np.ix_(free, free)], v[free])
    return found
