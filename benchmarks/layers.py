"""Gradients through solutions beside other packages: their errors, whether the package says so, and the time.

    python benchmarks/layers.py

The accuracy is measured on problems of public threads about wrong gradients, where they are in the class of this
package or nearly so (the page says what was changed). References are closed formulas, or central differences of
Newton's method on the support of the solution in 40 digits (this needs mpmath). Peers that are not installed are left
out.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parent / "results" / "layers.md"
TOOLS = ("saddlepoint torch", "saddlepoint jax", "cvxpylayers", "qpth", "jaxopt", "optimistix")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}
LIMIT = 100  # seconds of CPU time of one measurement, with imports and compilation
SIZES = (20, 200, 2000)  # variables
BATCH = 100  # problems that are solved in one call


# -- problems ----------------------------------------------------------------------------------------------------------


def box_qp(n: Any, spread: Any = 1.0, seed: Any = 0) -> Any:
    """Threads 67 and 70 of cvxpylayers: |L'v|^2/2 + |v|^2/2 - <p, v> in a box."""
    rng = np.random.default_rng(seed)
    L = rng.standard_normal((n, n)) / np.sqrt(n)
    scale = np.where(np.arange(n) < n // 2, 1.0 / spread, spread)
    P = (L @ L.T) * np.outer(scale, scale) + np.eye(n)
    return P, rng.standard_normal(n), rng.standard_normal(n)


def logistic(seed: Any = 0) -> Any:
    """Thread 85: the weight of the l1 norm in logistic regression."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((40, 10))
    labels = np.sign(D[:, 0] - D[:, 1] + 0.5 * rng.standard_normal(40))
    return D, labels, rng.standard_normal(10)


def reference(name: Any) -> Any:
    """The derivative, in 40 digits."""
    mp: Any = import_module("mpmath")

    mp.mp.dps = 40
    if name == "log barrier":
        return float(-1 + 1 / mp.sqrt(2))
    if name == "softmax":
        p = np.exp(np.array([0.7, 0.2]) / 0.3)
        p /= p.sum()
        return float(-p[0] * p[1] / 0.3)
    h = mp.mpf(10) ** -15
    if name == "l1 logistic":
        D, labels, v = logistic()
        free, sign = support_of_logistic()

        def solution(weight: Any) -> Any:
            x = mp.matrix(len(free), 1)
            Df = mp.matrix((labels[:, None] * D[:, free]).tolist())
            for _ in range(60):
                r = Df * x
                s = [1 / (1 + mp.exp(r[i])) for i in range(len(r))]
                g = [
                    -sum(s[i] * Df[i, j] for i in range(40)) / 40 + x[j] / 100 + weight * sign[j] for j in range(len(x))
                ]
                H = mp.matrix(len(x), len(x))
                for j in range(len(x)):
                    for k in range(len(x)):
                        H[j, k] = sum(s[i] * (1 - s[i]) * Df[i, j] * Df[i, k] for i in range(40)) / 40
                    H[j, j] += mp.mpf(1) / 100
                x = x - mp.lu_solve(H, mp.matrix(g))
            return sum(x[j] * v[free[j]] for j in range(len(x)))

        w = mp.mpf("0.05")
        return float((solution(w + h) - solution(w - h)) / (2 * h))
    n, spread = (30, 10.0) if name == "spread box QP" else (30, 1.0)
    P, p, v = box_qp(n, spread)
    d = np.random.default_rng(9).standard_normal(n)
    if name == "l1 ball QP":
        free, sign = support_of_ball(P, p)
        rows = [[mp.mpf(P[i, j]) for j in free] + [mp.mpf(s)] for i, s in zip(free, sign, strict=True)]
        K = mp.matrix([*rows, [mp.mpf(s) for s in sign] + [mp.mpf(0)]])

        def on_face(t: Any) -> Any:  # P x + multiplier sign = p + t d and <sign, x> = 1
            x = mp.lu_solve(K, mp.matrix([mp.mpf(p[i]) + t * d[i] for i in free] + [mp.mpf(1)]))
            return sum(x[k] * v[i] for k, i in enumerate(free))

        return float((on_face(h) - on_face(-h)) / (2 * h))
    free, fixed, at = support_of_qp(P, p)

    def moved(t: Any) -> Any:
        rhs = [mp.mpf(p[i]) + t * d[i] - sum(mp.mpf(P[i, j]) * at[j] for j in fixed) for i in free]
        x = mp.lu_solve(mp.matrix(P[np.ix_(free, free)].tolist()), mp.matrix(rhs))
        return sum(x[k] * v[i] for k, i in enumerate(free))

    return float((moved(h) - moved(-h)) / (2 * h))


def support_of_qp(P: Any, p: Any) -> Any:
    import saddlepoint as sp

    result = sp.solve(
        sp.Saddle(sp.Quadratic(P, -p) + sp.Box(-0.2, 0.2), sp.Quadratic(1.0), np.zeros((len(p), 1))), tol=1e-10
    )
    assert not np.any(result.support_x == sp.Support.UNDECIDED)
    off = result.support_x == sp.Support.OFF
    return np.flatnonzero(off), np.flatnonzero(~off), np.where(result.support_x == sp.Support.LOWER, -0.2, 0.2)


def support_of_ball(P: Any, p: Any) -> Any:
    import saddlepoint as sp

    f = sp.Saddle(sp.Quadratic(P, -p) + sp.Ball(1.0, 1), sp.Quadratic(1.0), np.zeros((len(p), 1)))
    result = sp.solve(f, tol=1e-10)
    assert not np.any(result.support_x == sp.Support.UNDECIDED)
    assert abs(np.abs(result.x).sum() - 1.0) < 1e-9
    free = np.flatnonzero(result.support_x == sp.Support.OFF)
    return free, np.sign(result.x[free])


def support_of_logistic() -> Any:
    import saddlepoint as sp

    D, labels, _ = logistic()
    f = sp.Saddle(sp.Logistic(D, labels, 0.01) + sp.L1(0.05), sp.Quadratic(1.0), np.zeros((10, 1)))
    result = sp.solve(f, tol=1e-10)
    assert not np.any(result.support_x == sp.Support.UNDECIDED)
    free = np.flatnonzero(result.support_x == sp.Support.OFF)
    return free, np.sign(result.x[free])


# -- accuracy ----------------------------------------------------------------------------------------------------------


def accuracy(tool: Any, name: Any) -> Any:
    """The derivative by a tool with its defaults, and what it says about the error."""
    direction = np.random.default_rng(9).standard_normal(30)
    if tool == "saddlepoint torch":
        import saddlepoint as sp

        none = sp.Quadratic(1.0)
        if name == "l1 logistic":
            D, labels, v = logistic()
            f = sp.Saddle(sp.Logistic(D, labels, 0.01) + sp.L1(0.05), none, np.zeros((10, 1)))
            result = sp.solve(f)
            moved = result.jvp(field=(np.sign(result.x), None))
            return float(v @ moved.x), moved.bound * float(np.linalg.norm(v))
        if name == "softmax":
            g = 0.3 * sp.Entropy(1e-3) + sp.Quadratic(0.0, [-0.7, -0.2]) + sp.Simplex()
            moved = sp.solve(sp.Saddle(g, none, np.zeros((2, 1)))).jvp(bx=[0.0, -1.0])
            return float(moved.x[0]), moved.bound
        if name == "log barrier":
            g = sp.Smooth(
                lambda x: -1.0 - 1.0 / (1.0 + x) + 1.0 / (1.0 - x),
                mu=2.0,
                L=102.0,
                hvp=lambda x, u: (1.0 / (1.0 + x) ** 2 + 1.0 / (1.0 - x) ** 2) * u,
                hessian_lipschitz=2002.0,
                simple=sp.Box(-0.9, 0.9),
                domain=True,
            )
            result = sp.solve(sp.Saddle(g, none, np.zeros((1, 1))))
            x = result.x
            moved = result.jvp(field=(-1.0 / (1.0 + x) + 1.0 / (1.0 - x), None))
            return float(moved.x[0]), moved.bound
        P, p, v = box_qp(30, 10.0 if name == "spread box QP" else 1.0)
        term = sp.Ball(1.0, 1) if name == "l1 ball QP" else sp.Box(-0.2, 0.2)
        f = sp.Saddle(sp.Quadratic(P, -p) + term, none, np.zeros((30, 1)))
        u = sp.solve(f).vjp(v)
        return float(-u.bx @ direction), u.bound * float(np.linalg.norm(direction))
    if tool == "cvxpylayers":
        cp: Any = import_module("cvxpy")
        torch: Any = import_module("torch")
        CvxpyLayer = import_module("cvxpylayers.torch").CvxpyLayer

        torch.set_default_dtype(torch.float64)
        if name == "l1 logistic":
            D, labels, v = logistic()
            x, w = cp.Variable(10), cp.Parameter(nonneg=True)
            loss = cp.sum(cp.logistic(-cp.multiply(labels, D @ x))) / 40
            problem = cp.Problem(cp.Minimize(loss + 0.005 * cp.sum_squares(x) + w * cp.norm1(x)))
            weight = torch.tensor(0.05, requires_grad=True)
            (found,) = CvxpyLayer(problem, [w], [x])(weight)
            (found @ torch.tensor(v)).backward()
            return float(weight.grad), None
        if name == "softmax":
            x, b = cp.Variable(2), cp.Parameter(2)
            problem = cp.Problem(cp.Maximize(b @ x + 0.3 * cp.sum(cp.entr(x))), [cp.sum(x) == 1])
            given = torch.tensor([0.7, 0.2], requires_grad=True)
            (found,) = CvxpyLayer(problem, [b], [x])(given)
            found[0].backward()
            return float(given.grad[1]), None
        if name == "log barrier":
            x, w = cp.Variable(1), cp.Parameter(1, nonneg=True)
            problem = cp.Problem(cp.Maximize(cp.sum(x) + w @ (cp.log(1 + x) + cp.log(1 - x))))
            given = torch.ones(1, requires_grad=True)
            (found,) = CvxpyLayer(problem, [w], [x])(given)
            found[0].backward()
            return float(given.grad[0]), None
        P, p, v = box_qp(30, 10.0 if name == "spread box QP" else 1.0)
        x, b = cp.Variable(30), cp.Parameter(30)
        half = np.linalg.cholesky(P).T
        bounds = [cp.norm1(x) <= 1.0] if name == "l1 ball QP" else [x <= 0.2, x >= -0.2]
        problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(half @ x) - b @ x), bounds)
        given = torch.tensor(p, requires_grad=True)
        (found,) = CvxpyLayer(problem, [b], [x])(given)
        (found @ torch.tensor(v)).backward()
        return float(given.grad.numpy() @ direction), None
    if name not in ("box QP", "spread box QP", "l1 ball QP") or (tool == "qpth" and name == "l1 ball QP"):
        raise NotImplementedError
    P, p, v = box_qp(30, 10.0 if name == "spread box QP" else 1.0)
    if tool == "qpth":
        torch = import_module("torch")
        QPFunction = import_module("qpth.qp").QPFunction

        torch.set_default_dtype(torch.float64)
        given, eye, none = torch.tensor(p, requires_grad=True), torch.eye(30), torch.empty(0)
        G, h = torch.cat([eye, -eye]), 0.2 * torch.ones(60)
        found = QPFunction(verbose=-1)(torch.tensor(P), -given, G, h, none, none)
        (found[0] @ torch.tensor(v)).backward()
        return float(given.grad.numpy() @ direction), None
    if tool == "jaxopt":
        jax: Any = import_module("jax")
        jaxopt = import_module("jaxopt")
        from jax import numpy as jnp

        jax.config.update("jax_enable_x64", True)
        ball = name == "l1 ball QP"
        onto = jaxopt.projection.projection_l1_ball if ball else lambda x, h: jnp.clip(x, -h, h)
        solver = jaxopt.ProjectedGradient(lambda x, b: 0.5 * x @ jnp.asarray(P) @ x - b @ x, onto)
        size = 1.0 if ball else 0.2
        slope = jax.grad(lambda b: solver.run(jnp.zeros(30), size, b).params @ jnp.asarray(v))(jnp.asarray(p))
        return float(np.asarray(slope) @ direction), None
    raise NotImplementedError


# -- time --------------------------------------------------------------------------------------------------------------


def timed(tool: Any, n: Any, batch: Any) -> Any:
    """Seconds of CPU time of one solution with its gradient, after one for warming up: the least of three."""
    P, _, v = box_qp(n)
    many = np.random.default_rng(5).standard_normal((batch, n))
    if tool in ("saddlepoint torch", "cvxpylayers", "qpth"):
        torch = import_module("torch")

        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
        vt = torch.tensor(v)
        if tool == "saddlepoint torch":
            import saddlepoint as sp

            Pt, zero = torch.tensor(P), torch.zeros(n, 1)
            quadratic = sp.Quadratic(Pt)

            def build(b: Any) -> Any:
                return sp.Saddle(
                    sp.Quadratic(Pt, -b, mu=quadratic.mu, L=quadratic.L) + sp.Box(-0.2, 0.2), sp.Quadratic(1.0), zero
                )

            layer = sp.layer(build, in_dims=0)

            def solutions(b: Any) -> Any:
                return layer(b)[0]
        elif tool == "cvxpylayers":
            cp: Any = import_module("cvxpy")
            CvxpyLayer = import_module("cvxpylayers.torch").CvxpyLayer

            x, b = cp.Variable(n), cp.Parameter(n)
            half = np.linalg.cholesky(P).T
            problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(half @ x) - b @ x), [x <= 0.2, x >= -0.2])
            peer = CvxpyLayer(problem, [b], [x])

            def solutions(b: Any) -> Any:
                return peer(b)[0]
        else:
            QPFunction = import_module("qpth.qp").QPFunction

            eye, none = torch.eye(n), torch.empty(0)
            G, h = torch.cat([eye, -eye]), 0.2 * torch.ones(2 * n)

            def solutions(b: Any) -> Any:
                return QPFunction(verbose=-1)(torch.tensor(P), -b, G, h, none, none)

        def once() -> Any:
            given = torch.tensor(many, requires_grad=True)
            (solutions(given) @ vt).sum().backward()
            return given.grad.numpy()
    else:
        jax: Any = import_module("jax")
        from jax import numpy as jnp

        jax.config.update("jax_enable_x64", True)
        Pj, vj = jnp.asarray(P), jnp.asarray(v)
        if tool == "saddlepoint jax":
            import saddlepoint as sp

            mu, L = float(np.linalg.eigvalsh(P)[0]), float(np.linalg.eigvalsh(P)[-1])
            layer = sp.layer(
                lambda b: sp.Saddle(
                    sp.Quadratic(Pj, -b, mu=mu, L=L) + sp.Box(-0.2, 0.2), sp.Quadratic(1.0), jnp.zeros((n, 1))
                )
            )

            def solution(b: Any) -> Any:
                return layer(b)[0]
        elif tool == "jaxopt":
            jaxopt = import_module("jaxopt")

            solver = jaxopt.ProjectedGradient(
                lambda x, b: 0.5 * x @ Pj @ x - b @ x, lambda x, h: jnp.clip(x, -h, h), maxiter=5000, tol=1e-6
            )

            def solution(b: Any) -> Any:
                return solver.run(jnp.zeros(n), 0.2, b).params
        else:
            optx = import_module("optimistix")

            def solution(b: Any) -> Any:  # the box as a root of z - clip(z - grad)
                root = optx.root_find(
                    lambda z, c: z - jnp.clip(z - (Pj @ z - c), -0.2, 0.2),
                    optx.Newton(1e-8, 1e-8),
                    jnp.zeros(n),
                    b,
                    throw=False,
                )
                return root.value

        slope = jax.jit(jax.grad(lambda b: jnp.sum(jax.vmap(solution)(b) @ vj)))

        def once() -> Any:
            return np.asarray(slope(jnp.asarray(many)))

    found = once()
    seconds = []
    for _ in range(3):
        began = time.process_time()
        once()
        seconds.append(time.process_time() - began)
    return min(seconds), float(np.abs(found - exact_slopes(P, many, v)).max())


def exact_slopes(P: Any, many: Any, v: Any) -> Any:
    """The gradients by the formula on the support of the solution, which iterations on P find."""
    slopes = []
    step = 1.0 / np.linalg.eigvalsh(P)[-1]
    for b in many:
        x = np.zeros(len(b))
        for _ in range(400):
            x = np.clip(x - step * (P @ x - b), -0.2, 0.2)
        free = np.abs(x) < 0.2
        slope = np.zeros(len(b))
        slope[free] = np.linalg.solve(P[np.ix_(free, free)], v[free])
        slopes.append(slope)
    return np.array(slopes)


# -- the page ----------------------------------------------------------------------------------------------------------


def measured(*arguments: Any) -> Any:
    """The answer of this file in a process of its own, or why there is none."""
    done = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | ONE_THREAD,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5)),
    )
    if done.returncode == -signal.SIGXCPU:
        return f"over {LIMIT} s"
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["?"])[-1]
        kind = last.partition(":")[0]
        return {"NotImplementedError": "", "ModuleNotFoundError": "not installed"}.get(kind, kind)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    cases = {
        "box QP": "cvxpylayers 67 with a box alone",
        "l1 ball QP": "cvxpylayers 67",
        "spread box QP": "cvxpylayers 70, one step, scales 0.1 and 10",
        "l1 logistic": "cvxpylayers 85, with l2 = 0.01",
        "log barrier": "cvxpylayers 135 in the form of diffcp 57",
        "softmax": "cvxpylayers 145",
    }
    lines = [
        "| problem | derivative | error of saddlepoint | its proven bound | of cvxpylayers | of qpth | of jaxopt |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, thread in cases.items():
        true, cells = reference(name), []
        for tool in ("saddlepoint torch", "cvxpylayers", "qpth", "jaxopt"):
            answer = measured("accuracy", tool, name)
            cells.append(answer if isinstance(answer, str) else f"{abs(answer[0] - true):.1e}")
            if tool == "saddlepoint torch":
                cells.append("" if isinstance(answer, str) else f"{answer[1]:.1e}")
        lines.append(f"| {name} ({thread}) | {true:.6f} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    times = [f"| n, batch | {' | '.join(TOOLS)} |", "|---|" + "---|" * len(TOOLS)]
    for n, batch in [(n, 1) for n in SIZES] + [(20, BATCH)]:
        cells = []
        for tool in TOOLS:
            answer = measured("time", tool, n, batch)
            cells.append(answer if isinstance(answer, str) else f"{1e3 * answer[0]:.1f} ms, {answer[1]:.0e}")
        times.append(f"| {n}, {batch} | {' | '.join(cells)} |")
        print(times[-1], flush=True)
    PAGE.write_text(TEXT.format(accuracy="\n".join(lines), times="\n".join(times)))


TEXT = """# Gradients through solutions, beside other packages

By `python benchmarks/layers.py`, on two shared cores of a virtual machine, each measurement in a process of its own.

## Accuracy

Problems of public threads about wrong gradients. Every package runs with its defaults in float64; the `tol` of
saddlepoint is 1e-6. The reference is a closed formula, or a central difference of Newton's method on the support of
the solution in 40 digits. No other package of the table says anything about the error of its gradient; saddlepoint
returns the bound in the fourth column, which is proven. An empty cell means that the problem was not written for the
package.

{accuracy}

Thread 120 of cvxpylayers (Sinkhorn's matrix, which has linear equations and no strongly concave dual) is outside the
class of saddlepoint's derivatives. The box of thread 67, |v_i| <= 1, holds in its l1 ball of radius 1 and is left out.

## Time

A quadratic function of n variables in a box, solved with its gradient with respect to the linear term: milliseconds
of CPU time of a solution and a gradient, with one thread (the least of three after one for warming up, or for
compiling), and the largest error of an entry of the gradient. Batches have one matrix and {batch} linear terms. The
packages stop by rules of their own: saddlepoint when it has proven a distance of 1e-6, the others at their defaults,
jaxopt and optimistix at the tolerances in the file.

{times}

With PyTorch on the CPU saddlepoint runs with NumPy and examines the problem before it calls it solved, which takes most
of the time of small problems; the problems of a batch are solved together. With JAX the layer is one compiled program.
The machine was shared with other work, so that only large ratios of times mean something. The limit of {limit} seconds
of CPU time includes imports and compilation. A wrong gradient that a package returns without a word shows in the
second number of a cell.
""".replace("{batch}", str(BATCH)).replace("{limit}", str(LIMIT))


if __name__ == "__main__":
    if sys.argv[1:2] == ["accuracy"]:
        print(json.dumps(accuracy(*sys.argv[2:4])))
    elif sys.argv[1:2] == ["time"]:
        print(json.dumps(timed(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
    else:
        main()
