"""The derivatives of the problems of `gradient_problems` by this package and by others, each with its defaults.

A function returns the derivative and what the package says about its error: a bound, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from gradient_problems import BOX, HEAT, MARGIN, RIDGE, VARIABLES, WEIGHT, direction, logistic, quadratic_of, sinkhorn
from scipy.linalg import null_space

import saddlepoint as sp

Derivative = tuple[float, float | None]
QUADRATIC = ("box QP", "spread box QP", "l1 ball QP")


def solved(g: sp.Smooth, n: int) -> sp.Result:
    """The minimiser of g."""
    return sp.solve(sp.Saddle(g, sp.Quadratic(1.0), np.zeros((n, 1))))


def our_quadratic(name: str) -> Derivative:
    """A quadratic program, by this package."""
    P, p, v = quadratic_of(name)
    term = sp.Ball(1.0, 1) if name == "l1 ball QP" else sp.Box(-BOX, BOX)
    u = solved(sp.Quadratic(P, -p) + term, VARIABLES).vjp(v)
    return float(-u.bx @ direction()), u.bound * float(np.linalg.norm(direction()))


def our_logistic() -> Derivative:
    """Sparse logistic regression, by this package."""
    D, labels, v = logistic()
    result = solved(sp.Logistic(D, labels, RIDGE) + sp.L1(WEIGHT), D.shape[1])
    moved = result.jvp(field=(np.sign(result.x), None))
    return float(v @ moved.x), moved.bound * float(np.linalg.norm(v))


def our_softmax() -> Derivative:
    """The softmax, by this package."""
    moved = solved(0.3 * sp.Entropy(1e-3) + sp.Quadratic(0.0, [-0.7, -0.2]) + sp.Simplex(), 2).jvp(bx=[0.0, -1.0])
    return float(moved.x[0]), moved.bound


def our_log_barrier() -> Derivative:
    """The logarithmic barrier, by this package."""
    g = sp.Smooth(
        lambda x: -1.0 - 1.0 / (1.0 + x) + 1.0 / (1.0 - x),
        mu=2.0,
        L=102.0,
        hvp=lambda x, u: (1.0 / (1.0 + x) ** 2 + 1.0 / (1.0 - x) ** 2) * u,
        hessian_lipschitz=2002.0,
        simple=sp.Box(-0.9, 0.9),
        domain=True,
    )
    result = solved(g, 1)
    moved = result.jvp(field=(-1.0 / (1.0 + result.x) + 1.0 / (1.0 - result.x), None))
    return float(moved.x[0]), moved.bound


def our_sinkhorn() -> Derivative:
    """Sinkhorn's matrix, by this package: the equations are eliminated, X = 1/n + Z z."""
    C, direction, v = (matrix.ravel() for matrix in sinkhorn())
    one, eye, low = np.ones((1, MARGIN)), np.eye(MARGIN), 1e-2
    Z = null_space(np.vstack([np.kron(eye, one), np.kron(one, eye)]))
    entropy = sp.Entropy(low)  # all entries of the solution are above low, and t log t is not smoothed there

    def change(z: Any, u: Any, reach: float) -> float:
        """A bound on the change of the Hessian times u within ``reach``: 1/x changes by reach/(x (x - reach))."""
        x = 1.0 / MARGIN + Z @ z
        inverse = reach / np.maximum(x, low) / np.maximum(x - reach, low)
        return (1.0 + 1e-9) * HEAT * float(np.linalg.norm(inverse * (Z @ u)))

    g = sp.Smooth(
        lambda z: Z.T @ (C + HEAT * entropy.grad(1.0 / MARGIN + Z @ z)),
        mu=(1.0 - 1e-12) * HEAT,
        L=(1.0 + 1e-12) * HEAT / low,
        hessian=lambda z: HEAT * Z.T @ (Z / np.clip(1.0 / MARGIN + Z @ z, low, 1.0)[:, None]),
        hessian_lipschitz=change,
    )
    result = solved(g, Z.shape[1])
    assert (1.0 / MARGIN + Z @ result.x > low + result.certificate.distance).all()
    moved = result.jvp(field=(Z.T @ direction, None))
    return float(v @ Z @ moved.x), moved.bound * float(np.linalg.norm(Z.T @ v))


def torch64() -> Any:
    """PyTorch, with float64 as the dtype of new tensors."""
    torch: Any = import_module("torch")
    torch.set_default_dtype(torch.float64)
    return torch


def cvxpy_layer(problem: Any, parameter: Any, variable: Any) -> Callable[[Any], Any]:
    """The solution of a program of CVXPY as a function of its parameter."""
    layer = import_module("cvxpylayers.torch").CvxpyLayer(problem, [parameter], [variable])
    return lambda given: layer(given)[0]


def cvxpy_quadratic(name: str) -> Derivative:
    """A quadratic program, by cvxpylayers."""
    cp: Any = import_module("cvxpy")
    torch = torch64()
    P, p, v = quadratic_of(name)
    x, b = cp.Variable(VARIABLES), cp.Parameter(VARIABLES)
    half = np.linalg.cholesky(P).T
    bounds = [cp.norm1(x) <= 1.0] if name == "l1 ball QP" else [x <= BOX, x >= -BOX]
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(half @ x) - b @ x), bounds)
    given = torch.tensor(p, requires_grad=True)
    (cvxpy_layer(problem, b, x)(given) @ torch.tensor(v)).backward()
    return float(given.grad.numpy() @ direction()), None


def cvxpy_logistic() -> Derivative:
    """Sparse logistic regression, by cvxpylayers."""
    cp: Any = import_module("cvxpy")
    torch = torch64()
    D, labels, v = logistic()
    x, w = cp.Variable(D.shape[1]), cp.Parameter(nonneg=True)
    loss = cp.sum(cp.logistic(-cp.multiply(labels, D @ x))) / len(D)
    problem = cp.Problem(cp.Minimize(loss + 0.5 * RIDGE * cp.sum_squares(x) + w * cp.norm1(x)))
    weight = torch.tensor(WEIGHT, requires_grad=True)
    (cvxpy_layer(problem, w, x)(weight) @ torch.tensor(v)).backward()
    return float(weight.grad), None


def cvxpy_softmax() -> Derivative:
    """The softmax, by cvxpylayers."""
    cp: Any = import_module("cvxpy")
    torch = torch64()
    x, b = cp.Variable(2), cp.Parameter(2)
    problem = cp.Problem(cp.Maximize(b @ x + 0.3 * cp.sum(cp.entr(x))), [cp.sum(x) == 1])
    given = torch.tensor([0.7, 0.2], requires_grad=True)
    cvxpy_layer(problem, b, x)(given)[0].backward()
    return float(given.grad[1]), None


def cvxpy_log_barrier() -> Derivative:
    """The logarithmic barrier, by cvxpylayers."""
    cp: Any = import_module("cvxpy")
    torch = torch64()
    x, w = cp.Variable(1), cp.Parameter(1, nonneg=True)
    problem = cp.Problem(cp.Maximize(cp.sum(x) + w @ (cp.log(1 + x) + cp.log(1 - x))))
    given = torch.ones(1, requires_grad=True)
    cvxpy_layer(problem, w, x)(given)[0].backward()
    return float(given.grad[0]), None


def cvxpy_sinkhorn() -> Derivative:
    """Sinkhorn's matrix, by cvxpylayers."""
    cp: Any = import_module("cvxpy")
    torch = torch64()
    C, direction, v = sinkhorn()
    X, costs = cp.Variable((MARGIN, MARGIN)), cp.Parameter((MARGIN, MARGIN))
    sums = [cp.sum(X, axis=0) == 1, cp.sum(X, axis=1) == 1]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(costs, X)) - HEAT * cp.sum(cp.entr(X))), sums)
    given = torch.tensor(C, requires_grad=True)
    (cvxpy_layer(problem, costs, X)(given) * torch.tensor(v)).sum().backward()
    return float((given.grad.numpy() * direction).sum()), None


def qpth_quadratic(name: str) -> Derivative:
    """A quadratic program in a box, by qpth."""
    torch = torch64()
    P, p, v = quadratic_of(name)
    solver = import_module("qpth.qp").QPFunction(verbose=-1)
    given, eye, none = torch.tensor(p, requires_grad=True), torch.eye(VARIABLES), torch.empty(0)
    found = solver(torch.tensor(P), -given, torch.cat([eye, -eye]), BOX * torch.ones(2 * VARIABLES), none, none)
    (found[0] @ torch.tensor(v)).backward()
    return float(given.grad.numpy() @ direction()), None


def jaxopt_quadratic(name: str) -> Derivative:
    """A quadratic program, by jaxopt."""
    jax: Any = import_module("jax")
    jnp, jaxopt = import_module("jax.numpy"), import_module("jaxopt")
    jax.config.update("jax_enable_x64", True)
    P, p, v = quadratic_of(name)
    ball = name == "l1 ball QP"
    onto = jaxopt.projection.projection_l1_ball if ball else lambda x, h: jnp.clip(x, -h, h)
    solver = jaxopt.ProjectedGradient(lambda x, b: 0.5 * x @ jnp.asarray(P) @ x - b @ x, onto)
    size = 1.0 if ball else BOX
    slope = jax.grad(lambda b: solver.run(jnp.zeros(VARIABLES), size, b).params @ jnp.asarray(v))(jnp.asarray(p))
    return float(np.asarray(slope) @ direction()), None


DERIVATIVES: dict[str, dict[str, Callable[[], Derivative]]] = {
    "saddlepoint torch": {
        **{name: partial(our_quadratic, name) for name in QUADRATIC},
        "l1 logistic": our_logistic,
        "log barrier": our_log_barrier,
        "softmax": our_softmax,
        "Sinkhorn's matrix": our_sinkhorn,
    },
    "cvxpylayers": {
        **{name: partial(cvxpy_quadratic, name) for name in QUADRATIC},
        "l1 logistic": cvxpy_logistic,
        "log barrier": cvxpy_log_barrier,
        "softmax": cvxpy_softmax,
        "Sinkhorn's matrix": cvxpy_sinkhorn,
    },
    "qpth": {name: partial(qpth_quadratic, name) for name in QUADRATIC if "box" in name},
    "jaxopt": {name: partial(jaxopt_quadratic, name) for name in QUADRATIC},
}
