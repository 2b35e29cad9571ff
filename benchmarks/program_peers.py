"""Other solvers of linear and quadratic programs, each as a function from a program to a point and multipliers.

Multipliers are returned in the sign of ``QuadraticProgram``: P x + q + A'y is the reduced cost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from program_problems import Program
from scipy.optimize import linprog
from scipy.sparse import csc_array, csc_matrix, csr_array, eye_array, vstack

os.environ.setdefault("JAX_PLATFORMS", "cpu")
ROUNDS = 200_000  # iterations of MPAX at most, which has no limit of time
SECONDS = 10.0  # time limit of a peer


class Answer(NamedTuple):
    """What a solver returned: a point, multipliers of the rows, and what it says about them."""

    x: Any
    y: Any
    says: str


def highs(program: Program) -> Answer:
    """HiGHS through SciPy, for linear programs: simplex or its interior-point method with crossover, as it chooses."""
    A = csr_array(program.A)
    equal = program.lower == program.upper
    below, above = np.isfinite(program.lower) & ~equal, np.isfinite(program.upper) & ~equal
    ub = vstack([A[above], -A[below]]) if (below | above).any() else None
    found = linprog(
        program.q,
        A_ub=ub,
        b_ub=None if ub is None else np.append(program.upper[above], -program.lower[below]),
        A_eq=A[equal] if equal.any() else None,
        b_eq=program.upper[equal] if equal.any() else None,
        bounds=np.column_stack([program.x_lower, program.x_upper]),
        options={"time_limit": SECONDS},
    )
    y = np.zeros(equal.size)
    if found.x is not None:
        y[equal] = -found.eqlin.marginals
        marginals = found.ineqlin.marginals
        y[above] -= marginals[: above.sum()]
        y[below] += marginals[above.sum() :]
    return Answer(found.x, y, str(found.message).split(".")[0].split("(")[0].strip().lower())


def osqp(program: Program, eps: float = 1e-3) -> Answer:
    """OSQP with its default accuracy."""
    solver = import_module("osqp").OSQP()
    n = program.q.size
    A = csc_matrix(vstack([csr_array(program.A), eye_array(n)]))
    P = csc_matrix((n, n)) if program.P is None else csc_matrix(program.P)
    lower, upper = np.append(program.lower, program.x_lower), np.append(program.upper, program.x_upper)
    solver.setup(
        P=P, q=program.q, A=A, l=lower, u=upper, verbose=False, eps_abs=eps, eps_rel=eps,
        max_iter=4000 if eps > 1e-6 else 1_000_000, time_limit=SECONDS, polishing=eps < 1e-6,
    )  # fmt: skip
    found = solver.solve()
    y = found.y if found.y is not None else np.zeros(lower.size)
    return Answer(found.x, y[: program.lower.size], found.info.status)


def osqp_accurate(program: Program) -> Answer:
    """OSQP with tolerances of 1e-9 and polishing."""
    return osqp(program, 1e-9)


def clarabel(program: Program) -> Answer:
    """Clarabel with its default accuracy, 1e-8."""
    module = import_module("clarabel")
    n = program.q.size
    rows = csr_array(vstack([csr_array(program.A), eye_array(n)]))
    lower, upper = np.append(program.lower, program.x_lower), np.append(program.upper, program.x_upper)
    equal = lower == upper
    above, below = np.isfinite(upper) & ~equal, np.isfinite(lower) & ~equal
    A = csc_array(vstack([rows[equal], rows[above], -rows[below]]))
    b = np.concatenate([upper[equal], upper[above], -lower[below]])
    cones = [module.ZeroConeT(int(equal.sum())), module.NonnegativeConeT(int(above.sum() + below.sum()))]
    settings = module.DefaultSettings()
    settings.verbose, settings.time_limit = False, SECONDS
    P = csc_matrix((n, n)) if program.P is None else csc_matrix(np.triu(csr_array(program.P).toarray()))
    found = module.DefaultSolver(P, program.q, csc_matrix(A), b, [c for c in cones if c.dim > 0], settings).solve()
    z, y = np.asarray(found.z), np.zeros(lower.size)
    e, a = int(equal.sum()), int(above.sum())
    y[equal] += z[:e]
    y[above] += z[e : e + a]
    y[below] -= z[e + a :]
    return Answer(np.asarray(found.x), y[: program.lower.size], str(found.status).lower())


def pdlp(program: Program) -> Answer:
    """PDLP of OR-tools with a relative tolerance of 1e-6."""
    module = import_module("ortools.pdlp.python.pdlp")
    pb = import_module("ortools.pdlp.solvers_pb2")
    task = module.QuadraticProgram()
    task.objective_vector = program.q
    task.constraint_matrix = csc_matrix(csr_array(program.A))
    task.constraint_lower_bounds, task.constraint_upper_bounds = program.lower, program.upper
    task.variable_lower_bounds, task.variable_upper_bounds = program.x_lower, program.x_upper
    if program.P is not None:
        P = csr_array(program.P)
        task.set_objective_matrix_diagonal(P.diagonal())
        if P.nnz != np.count_nonzero(P.diagonal()):
            raise ValueError("PDLP takes diagonal matrices P alone")
    options = pb.PrimalDualHybridGradientParams()
    criteria = options.termination_criteria
    criteria.simple_optimality_criteria.eps_optimal_relative = 1e-6
    criteria.simple_optimality_criteria.eps_optimal_absolute = 1e-6
    criteria.time_sec_limit = SECONDS
    found = module.primal_dual_hybrid_gradient(task, options)
    log = import_module("ortools.pdlp.solve_log_pb2")
    reason = log.TerminationReason.Name(found.solve_log.termination_reason)
    return Answer(
        np.asarray(found.primal_solution), -np.asarray(found.dual_solution),
        reason.removeprefix("TERMINATION_REASON_").lower().replace("_", " "),
    )  # fmt: skip


def mpax(program: Program) -> Answer:
    """MPAX's r2HPDHG on a CPU with relative and absolute tolerances of 1e-6; it compiles in every call."""
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    module, sparse = import_module("mpax"), import_module("jax.experimental.sparse")
    A = csr_array(program.A)
    equal = program.lower == program.upper
    above, below = np.isfinite(program.upper) & ~equal, np.isfinite(program.lower) & ~equal
    G = csr_array(vstack([A[below], -A[above]]))
    as_jax = sparse.BCOO.from_scipy_sparse
    task = module.create_lp(
        program.q, as_jax(csr_array(A[equal])), program.upper[equal], as_jax(G),
        np.append(program.lower[below], -program.upper[above]), program.x_lower, program.x_upper,
    )  # fmt: skip
    solver = module.r2HPDHG(eps_abs=1e-6, eps_rel=1e-6, iteration_limit=ROUNDS, verbose=False)
    found = solver.optimize(task)
    z, y = np.asarray(found.dual_solution), np.zeros(equal.size)
    e, b = int(equal.sum()), int(below.sum())
    y[equal] = -z[:e]
    y[below] -= z[e : e + b]
    y[above] += z[e + b :]
    status = import_module("mpax.utils").TerminationStatus(int(found.termination_status)).name
    return Answer(np.asarray(found.primal_solution), y, status.lower().replace("_", " "))


Peer = Callable[[Program], Answer]


def peers() -> Iterator[tuple[str, Peer, bool]]:
    """The solvers that are installed: name, function, and whether it takes quadratic programs."""
    yield "HiGHS", highs, False
    for name, package, function, quadratic in (
        ("Clarabel", "clarabel", clarabel, True),
        ("OSQP, default", "osqp", osqp, True),
        ("OSQP, 1e-9", "osqp", osqp_accurate, True),
        ("PDLP (OR-tools)", "ortools", pdlp, True),
        ("MPAX", "mpax", mpax, False),
    ):
        if find_spec(package) is not None:
            yield name, function, quadratic
