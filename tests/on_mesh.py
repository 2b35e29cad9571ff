"""Solves with an A that is split over eight virtual devices, and prints JSON; tests/test_jax_sharding.py runs it.

Usage: XLA_FLAGS=--xla_force_host_platform_device_count=8 JAX_PLATFORMS=cpu python on_mesh.py
"""

import json
import re
import sys
import tempfile
import warnings
from fractions import Fraction
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import saddlepoint as sp
from saddlepoint.ground.arrays import to_host
from saddlepoint.parts.coupling import ArrayCoupling, array, device, mesh
from saddlepoint.solving.compiled import compiled

M, N = 64, 24
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
SINGLE_LOOPS = {  # the methods whose loop is compiled for this split
    "rows": ("condat-vu", "lpd-gs", "lpd", "ogda", "apdg", "extragradient"),
    "columns": ("condat-vu", "lpd-gs", "lpd", "ogda", "apdg"),
    "a grid": ("condat-vu", "lpd-gs"),
}
rng = np.random.default_rng(0)
DATA = {"A": rng.standard_normal((M, N)), "b": rng.standard_normal(M), "c": rng.standard_normal(N)}
SPLITS = {  # the mesh, and how A is split over it
    "rows": (lambda: Mesh(np.array(jax.devices()), ("rows",)), ("rows", None)),
    "rows, explicit axes": (lambda: jax.make_mesh((8,), ("rows",)), ("rows",)),
    "rows over two axes": (lambda: jax.make_mesh((4, 2), ("a", "b")), (("a", "b"), None)),
    "columns": (lambda: Mesh(np.array(jax.devices()), ("columns",)), (None, "columns")),
    "a grid": (lambda: Mesh(np.array(jax.devices()).reshape(4, 2), ("r", "c")), ("r", "c")),
}


def put(value, mesh, *axes):
    """An array on a mesh."""
    return jax.device_put(value, NamedSharding(mesh, PartitionSpec(*axes)))


def functions(b, c):
    """Two functions that are not quadratic."""
    return sp.Quadratic(1.0, b) + sp.LogCosh(), sp.Quadratic(1.0, c) + sp.LogCosh()


def problem(split, dtype="float64", scattered=True):
    """The problem with A split; b and c likewise, or left where JAX puts them."""
    make, axes = SPLITS[split]
    devices, (rows, columns) = make(), (*axes, None, None)[:2]
    A, b, c = (DATA[name].astype(dtype) for name in "Abc")
    b, c = (put(b, devices, rows), put(c, devices, columns)) if scattered else (jnp.asarray(b), jnp.asarray(c))
    return sp.Saddle(*functions(b, c), put(A, devices, *axes))


def is_sharded_as_A(vector, f, side):
    """Whether a vector is split as A's rows (side 0) or columns (side 1) are."""
    expected = f.space.sides[side]
    return bool(vector.sharding.is_equivalent_to(expected, 1))


def outcome(result, f):
    """The outcome of a run."""
    return {
        "solved": bool(result.solved),
        "iterations": result.iterations,
        "distance": result.certificate.distance,
        "x": to_host(result.x).tolist(),
        "y": to_host(result.y).tolist(),
        "x is sharded as A": is_sharded_as_A(result.x, f, 0),
        "y is sharded as A": is_sharded_as_A(result.y, f, 1),
        "entries of x on a device": int(result.x.addressable_shards[0].data.shape[0]),
    }


def solved(f):
    """A run to a high accuracy."""
    return outcome(sp.solve(f, method="lpd-gs", tol=1e-10), f)


def body(text):
    """The lines of all computations that the body of a ``while`` calls."""
    computations, lines = {}, None
    for line in text.splitlines():
        opened = re.match(r"(?:ENTRY )?%?([\w.\-]+) .*\{$", line)
        if opened:
            lines = computations.setdefault(opened[1], [])
        elif lines is not None:
            lines.append(line)
    waiting = re.findall(r"body=%?([\w.\-]+)", text)
    assert waiting, "no loop in the program"
    seen = set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += re.findall(r"(?:to_apply|calls|condition|body)=%?([\w.\-]+)", "\n".join(computations[name]))
    return [line for name in seen for line in computations[name]]


def collectives(f, name):
    """The collectives of one step between two certificates."""
    method = sp.make_method(name)
    view = method.normal_form(f)
    before = method.init(view.problem, *view.to(f.space.of_x.zeros(M), f.space.of_y.zeros(N)))
    state = method.step(view.problem, before)
    found = dict.fromkeys(COLLECTIVES, 0)
    for line in body(compiled(method, view.problem, before, state).program(state)):
        for kind in COLLECTIVES:
            found[kind] += bool(re.search(rf" {kind}(-start)?\(", line))
    return {kind: count for kind, count in found.items() if count}


def products(split):
    """The largest difference between products of a split A and of A itself; y may have another dtype."""
    mesh.BLOCK = 5 * N  # so that the rows of a device are converted in two parts
    f = problem(split, "float32")
    A = np.asarray(DATA["A"], np.float32).astype(np.float64)
    worst = 0.0
    for dtype in ("float32", "float64"):
        x, y, e = (jnp.asarray(rng.standard_normal(k), dtype) for k in (M, N, M))
        X, Y, E = (np.asarray(v, np.float64) for v in (x, y, e))
        t = A @ Y
        through = f.A.through(y, 0.5, e), (t, A.T @ (0.5 * t + E))
        mirror = f.A.T.through(x, 2.0), (A.T @ X, A @ (2.0 * (A.T @ X)))
        plain = (f.A.mul(y), f.A.tmul(x), f.A.T.mul(x)), (t, A.T @ X, A.T @ X)
        both = f.A.both(x, y), (t, A.T @ X)
        unit = np.finfo(dtype).eps
        for found, true in (through, mirror, plain, both):
            for a, b in zip(found, true, strict=True):
                worst = max(worst, float(np.abs(to_host(a) - b).max() / np.abs(b).max() / unit))
    mesh.BLOCK = array.BLOCK
    return worst


def compensated_products(split):
    """For A y and A'x: the largest error over its bound, and the largest bound over the size of the products."""
    f = problem(split)
    found = {}
    sides = (
        ("A y", DATA["A"], f.A.compensated_mul, f.space.of_y),
        ("A'x", DATA["A"].T, f.A.compensated_tmul, f.space.of_x),
    )
    for name, A, multiply, space in sides:
        v = np.random.default_rng(5).standard_normal(A.shape[1])
        hi, lo, error = (to_host(part).tolist() for part in multiply(space.cast(v)))
        shares, sizes = [], []
        for row, a, b, bound in zip(A.tolist(), hi, lo, error, strict=True):
            terms = [Fraction(s) * Fraction(t) for s, t in zip(row, v.tolist(), strict=True)]
            shares.append(float(abs(Fraction(a) + Fraction(b) - sum(terms)) / Fraction(bound)))
            sizes.append(bound / float(sum(map(abs, terms))))
        found[name] = max(shares), max(sizes)
    return found


def compensated_data():
    """The rounding of certificates without and with compensated products, where g has data on one device."""
    f, rng = problem("rows"), np.random.default_rng(6)
    D, t = rng.standard_normal((12, M)), rng.standard_normal(12)
    here = sp.Saddle(sp.LeastSquares(D, t, 1.0), functions(DATA["b"], DATA["c"])[1], DATA["A"])
    point = sp.solve(here, method="newton", tol=1e-13)
    split = sp.Saddle(sp.LeastSquares(jnp.asarray(D), jnp.asarray(t), 1.0), f.h, f.A)
    return [split.certificate(point.x, point.y, tol=tol).rounding for tol in (np.inf, None)]


def refusal(call):
    """The message of the ProblemError that a call raises; None if it raises none."""
    try:
        call()
    except sp.ProblemError as error:
        return str(error)
    return None


def on_fewer():
    """b on another mesh than A."""
    few = Mesh(np.array(jax.devices()[:4]), ("rows",))
    sp.Saddle(*functions(put(DATA["b"], few, "rows"), None), problem("rows").A.A)


def in_a_mesh():
    """A problem that is made inside ``jax.set_mesh``, which would override the mesh of A."""
    with jax.set_mesh(jax.make_mesh((8,), ("rows",))):
        problem("rows")


def without_a_name():
    """A sharding without a mesh."""
    positions = type("Positions", (), {"device_set": {1, 2}})
    device.array_coupling(type("Array", (), {"sharding": positions()})())


def resumed():
    """A run that is stopped by its budget and continued from its checkpoint."""
    f = problem("rows")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run"
        sp.solve(f, method="lpd-gs", tol=1e-10, max_calls=60, checkpoint=file)
        return outcome(sp.solve(f, method="lpd-gs", tol=1e-10, checkpoint=file), f)


def with_data():
    """Logistic, whose data have a column for every entry of x."""
    f = problem("rows")
    D, labels = rng.standard_normal((40, M)), np.sign(rng.standard_normal(40))
    devices = f.A.A.sharding.mesh
    g = sp.Logistic(put(D, devices, None, "rows"), put(labels, devices), 0.1)
    split = sp.Saddle(g, f.h, f.A.A)
    here = sp.Saddle(sp.Logistic(D, labels, 0.1), functions(None, DATA["c"])[1], DATA["A"])
    return outcome(sp.solve(split, method="lpd-gs", tol=1e-8), split), sp.solve(
        here, method="lpd-gs", tol=1e-8
    ).x.tolist()


def main():
    """All runs."""
    one = sp.Saddle(*functions(jnp.asarray(DATA["b"]), jnp.asarray(DATA["c"])), jnp.asarray(DATA["A"]))
    assert type(one.A) is ArrayCoupling
    single = sp.solve(one, method="lpd-gs", tol=1e-10)
    reference = sp.solve(sp.Saddle(*functions(DATA["b"], DATA["c"]), DATA["A"]), tol=1e-12)
    f = problem("rows")
    g = problem("rows", scattered=False)
    narrow = problem("rows", "float32")
    report = {
        "devices": jax.device_count(),
        "space": str(f.space),
        "truth": {"x": reference.x.tolist(), "y": reference.y.tolist()},
        "one device": {"x": to_host(single.x).tolist(), "iterations": single.iterations},
        "splits": {name: solved(problem(name)) for name in SPLITS if name != "rows over two axes"},
        "methods": {
            method: outcome(sp.solve(f, method=method, tol=1e-2), f) for method in ("auto", "dippa", "lpd-slide")
        },
        "anderson": outcome(sp.solve(f, method=sp.Anderson(sp.make_method("condat-vu"), 3), tol=1e-2), f),
        "data left in one place": solved(g),
        "a start": outcome(sp.solve(f, jnp.ones(M), jnp.ones(N), method="lpd-gs", tol=1e-10), f),
        "float32": outcome(sp.solve(narrow, method="lpd-gs", tol=1e-4), narrow),
        "resumed": resumed(),
        "with data": with_data(),
        "collectives": {
            split: {name: collectives(problem(split), name) for name in names} for split, names in SINGLE_LOOPS.items()
        },
        "products": {split: products(split) for split in SPLITS if "explicit" not in split},
        "compensated products": {split: compensated_products(split) for split in SPLITS},
        "compensated data": compensated_data(),
        "refused": {call.__name__: refusal(call) for call in (on_fewer, in_a_mesh, without_a_name)},
    }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    warnings.simplefilter("error")
    jax.config.update("jax_enable_x64", True)
    main()
