"""A split over devices with JAX: the same answer, all vectors on the devices of A, one all-reduce in each step."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import saddlepoint as sp

pytest.importorskip("jax", reason="JAX is not installed")
pytestmark = pytest.mark.cluster
ONE_PASS = ("condat-vu", "lpd-gs", "lpd", "ogda", "apdg")
SPLITS = ("rows", "rows, explicit axes", "columns", "a grid")

# Eight devices share the cores of the tests: a thread of XLA that waits for the others must not give up.
FLAGS = "--xla_force_host_platform_device_count=8 --xla_cpu_collective_call_terminate_timeout_seconds=600"


@pytest.fixture(scope="module")
def report():
    """The findings of a process with eight devices; their number can only be set before JAX starts."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    script = Path(__file__).parent / "on_mesh.py"
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def far(run, truth):
    return sum(np.linalg.norm(np.subtract(run[name], truth[name])) for name in "xy")


def test_there_are_eight_devices(report):
    assert report["devices"] == 8
    assert report["space"] == "jax float64 on a mesh of 8 (cpu)"


@pytest.mark.parametrize("split", SPLITS)
def test_the_answer_is_that_of_one_device(split, report):
    run = report["splits"][split]
    assert run["solved"]
    assert run["iterations"] == report["one device"]["iterations"]
    np.testing.assert_allclose(run["x"], report["one device"]["x"], rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("split", SPLITS)
def test_the_certificate_holds(split, report):
    run = report["splits"][split]
    assert far(run, report["truth"]) <= run["distance"] + 1e-12
    assert run["distance"] <= 1e-10


@pytest.mark.parametrize("split", SPLITS)
def test_x_and_y_are_sharded_as_A_is(split, report):
    run = report["splits"][split]
    assert run["x is sharded as A"]
    assert run["y is sharded as A"]
    parts = {"columns": 1, "a grid": 4}.get(split, 8)
    assert run["entries of x on a device"] == 64 // parts


@pytest.mark.parametrize("split", ["rows", "columns"])
@pytest.mark.parametrize("method", ONE_PASS)
def test_one_all_reduce_a_step(method, split, report):
    assert report["collectives"][split][method] == {"all-reduce": 1}


def test_a_grid_takes_a_sum_for_each_product(report):
    for method in ("condat-vu", "lpd-gs"):
        assert report["collectives"]["a grid"][method] == {"all-reduce": 2}


def test_xla_joins_the_two_sums_of_extragradient(report):
    """If x is split, A'x and A'u do not wait for another sum."""
    assert report["collectives"]["rows"]["extragradient"] == {"all-reduce": 1}


@pytest.mark.parametrize("method", ["auto", "dippa", "lpd-slide"])
def test_methods_that_read_entries_run_too(method, report):
    run = report["methods"][method]
    assert run["solved"]
    assert far(run, report["truth"]) <= run["distance"] + 1e-12
    assert run["x is sharded as A"]


@pytest.mark.parametrize("what", ["anderson", "data left in one place", "a start", "float32", "resumed"])
def test_everything_else_keeps_its_place(what, report):
    run = report[what]
    assert run["solved"]
    assert far(run, report["truth"]) <= run["distance"] + (1e-6 if what == "float32" else 1e-12)
    assert run["x is sharded as A"]
    assert run["y is sharded as A"]


def test_functions_with_data_are_solved_on_a_mesh(report):
    run, x = report["with data"]
    assert run["solved"]
    assert run["x is sharded as A"]
    assert np.linalg.norm(np.subtract(run["x"], x)) <= 2e-8


@pytest.mark.parametrize("split", ["rows", "rows over two axes", "columns", "a grid"])
def test_products_agree_with_those_of_one_device_up_to_rounding(split, report):
    assert report["products"][split] <= 20.0


@pytest.mark.parametrize("split", [*SPLITS, "rows over two axes"])
@pytest.mark.parametrize("product", ["A y", "A'x"])
def test_compensated_products_are_within_a_bound_below_the_precision_of_float64(product, split, report):
    share, size = report["compensated products"][split][product]
    assert share <= 1.0
    assert size <= 2.0**-54


def test_compensated_gradients_take_data_on_one_device(report):
    """They mixed arrays of one device with arrays of the mesh, which JAX refuses."""
    plain, compensated = report["compensated data"]
    assert compensated < plain / 10


def test_fewer_devices_and_meshes_without_names_are_refused(report):
    refused = report["refused"]
    assert "a mesh of 8" in refused["on_fewer"]
    assert "a mesh of 4" in refused["on_fewer"]
    assert "jax.set_mesh" in refused["in_a_mesh"]
    assert "expected a NamedSharding" in refused["without_a_name"]


@pytest.mark.gpu
def test_a_mesh_of_one_gpu_gives_the_answer_of_the_gpu():
    jax = importlib.import_module("jax")
    try:
        (gpu, *_) = jax.devices("gpu")
    except RuntimeError as error:
        pytest.skip(f"no GPU for JAX: {error}")
    jax.config.update("jax_enable_x64", True)
    sharding = importlib.import_module("jax.sharding")
    rows = sharding.NamedSharding(sharding.Mesh(np.array([gpu]), ("rows",)), sharding.PartitionSpec("rows"))
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((64, 24)), rng.standard_normal(64)
    split = sp.Saddle(sp.Quadratic(1.0, jax.device_put(b, rows)), sp.Quadratic(1.0), jax.device_put(A, rows))
    result = sp.solve(split, method="lpd-gs", tol=1e-9)
    assert result.solved
    assert result.x.sharding.is_equivalent_to(rows, 1)
    here = sp.solve(sp.Saddle(sp.Quadratic(1.0, b), sp.Quadratic(1.0), A), method="lpd-gs", tol=1e-9)
    np.testing.assert_allclose(np.asarray(result.x), here.x, atol=2e-9)
