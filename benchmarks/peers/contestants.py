"""The contestants, their settings, and the instances on which they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .convex_peers import cvxpy_conjugate, dsp_saddle
from .handwritten import extragradient, lbfgs
from .jax_peers import anderson, root_finder
from .problems import Instance
from .proximal_peers import primal_dual
from .scipy_peers import hybr, newton_krylov, root_with

Settings = list[dict[str, Any]]


def everywhere(instance: Instance) -> bool:
    """The contestant runs on all instances."""
    return True


def dense_up_to(n: int) -> Callable[[Instance], bool]:
    """The contestant runs on the dense families up to size n."""
    return lambda instance: instance.family in ("quadratic", "logistic") and instance.n <= n


@dataclass(frozen=True)
class Peer:
    """A peer: ``run(instance, recorder, **setting)`` is called with every setting, and the best one counts."""

    name: str
    run: Callable[..., None]
    settings: Settings
    fits: Callable[[Instance], bool] = field(default=everywhere)


KRYLOV: Settings = [
    {"method": "lgmres"},  # SciPy's default: 30 inner steps; inner_maxiter has no effect on it
    {"method": "lgmres", "inner_inner_m": 100},
    {"method": "lgmres", "inner_inner_m": 200},
    {"method": "gmres", "inner_maxiter": 60},
    {"method": "gmres", "inner_maxiter": 200},
    {"method": "tfqmr", "inner_maxiter": 200},
    {"method": "bicgstab", "inner_maxiter": 500},
]

PEERS = [
    Peer("newton_krylov", newton_krylov, KRYLOV),
    Peer(
        "root(krylov)",
        root_with,
        [{"method": "krylov", "line_search": search, "jac_options": KRYLOV[0]} for search in ("armijo", None)],
    ),
    Peer(
        "root(anderson)",
        root_with,
        [{"method": "anderson", "jac_options": {"M": M, "alpha": alpha}} for M, alpha in ((20, None), (5, 0.5))],
    ),
    Peer("root(df-sane)", root_with, [{"method": "df-sane"}]),
    Peer("root(hybr, jac)", hybr, [{"factor": 100.0}, {"factor": 1.0}], dense_up_to(800)),
    Peer("extragradient by hand", extragradient, [{"step": s} for s in (0.9, 1.4)]),
    Peer("L-BFGS on the max", lbfgs, [{"maxcor": 10}, {"maxcor": 50}], lambda instance: instance.argmax is not None),
    Peer("CVXPY + Clarabel", cvxpy_conjugate, [{"tol": tol} for tol in (1e-11, 1e-8, 1e-6)], dense_up_to(800)),
    Peer("DSP", dsp_saddle, [{"tol": tol} for tol in (1e-11, 1e-8, 1e-6)], dense_up_to(200)),
    Peer(
        "pyproximal",
        primal_dual,
        [{"step": 1.0, "theory": True}, {"step": 1.0, "theory": False}],
        dense_up_to(200),
    ),
    Peer(
        "optimistix",
        root_finder,
        [
            {"solver": "Newton", "linear": "lu"},
            {"solver": "Newton", "linear": "gmres"},
            {"solver": "Dogleg", "linear": "lu"},
        ],
        dense_up_to(800),
    ),
    Peer(
        "jaxopt Anderson",
        anderson,
        [{"window": 20, "step": 1.0}, {"window": 5, "step": 0.5}],
        dense_up_to(800),
    ),
]
# Only these peers and methods run at n = 2000.
FAST = {"auto", "dippa", "lpd-gs", "lpd-slide", "krylov", "newton_krylov", "extragradient by hand", "L-BFGS on the max"}
UNCOUNTED = {"root(hybr, jac)", "CVXPY + Clarabel", "DSP", "optimistix"}  # peers without countable calls
SCIPY = ("newton_krylov", "root(krylov)", "root(anderson)", "root(df-sane)")
