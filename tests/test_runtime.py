"""A coupling has the runtime of the processes that hold its data, and wrappers of couplings have the same one."""

import pickle
import threading

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import saddlepoint as sp
from saddlepoint.ground.arrays import NUMPY64, space_of
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.coupling.runtime import LOCAL
from saddlepoint.parts.coupling.streamed import RawStore, StreamedCoupling
from saddlepoint.parts.sharded import LocalEngine, ShardedCoupling
from saddlepoint.problems.corrections import WithNorm, corrected
from saddlepoint.problems.oracle import Meter, MeteredCoupling
from saddlepoint.problems.transforms import ScaledCoupling, UnitCoupling, Units

WRAPPERS = {
    "scaled": lambda A: ScaledCoupling(A, 2.0),
    "in units": lambda A: UnitCoupling(A, Units(1, 2, 0)),
    "metered": lambda A: MeteredCoupling(A, Meter()),
    "with a norm": lambda A: WithNorm(A, 10.0),
    "transposed": lambda A: A.T,
    "transposed twice": lambda A: WithNorm(A, 10.0).T.T,
}


@pytest.fixture
def A():
    return np.random.default_rng(0).standard_normal((12, 5))


def on_disk(A, folder):
    path = folder / "A.raw"
    A.tofile(path)
    return StreamedCoupling(RawStore(path, 0, A.shape, A.dtype, "A"))


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_wrappers_keep_the_runtime(A, wrap, tmp_path):
    sharded, streamed = ShardedCoupling(LocalEngine(A, shards=3)), on_disk(A, tmp_path)
    assert wrap(sharded).runtime is sharded.engine
    assert wrap(streamed).runtime.reading is streamed.runtime.reading is not None
    assert wrap(as_coupling(A)).runtime is LOCAL


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_wrappers_keep_the_count_of_probing_products(A, wrap):
    operator = as_coupling(aslinearoperator(A))
    assert wrap(operator).probes == operator.probes == 1


def test_a_coupling_has_no_other_way_to_its_engine(A):
    """What a run needs is in the runtime, so no code asks whether there is an engine."""
    assert not hasattr(as_coupling(A), "engine")
    assert not hasattr(as_coupling(A), "reading")


def test_the_default_runtime_is_this_process():
    assert (LOCAL.shards, LOCAL.latency, LOCAL.alone, LOCAL.fragile, LOCAL.measurable) == (1, 0.0, True, False, True)
    assert LOCAL.reading is None
    assert LOCAL.once(lambda: 7) == 7
    first = LOCAL.clock()
    assert LOCAL.clock() >= first


def test_an_engine_is_a_runtime(A):
    engine = LocalEngine(A, shards=3)
    assert (engine.shards, engine.alone, engine.fragile, engine.measurable) == (3, True, False, False)
    assert engine.latency > 0.0
    assert engine.reading is None


def test_a_problem_keeps_the_clock_of_its_runtime_when_a_constant_is_corrected(A):
    """All ranks of an MPI job decide by the clock of the engine; a corrected |A| must not bring back their own."""
    coupling = ShardedCoupling(LocalEngine(A, shards=3))
    coupling.engine.clock = lambda: 42.0
    f = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), coupling)
    assert f.clock() == corrected(f, "A", "norm", 10.0).clock() == 42.0
    assert sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), A).clock == LOCAL.clock


def test_a_streamed_coupling_is_pickled_with_a_runtime_of_its_own(A, tmp_path):
    before = on_disk(A, tmp_path)
    before.mul(np.ones(5))
    after = pickle.loads(pickle.dumps(before))
    after.mul(np.ones(5))
    assert after.runtime.reading.passes == before.runtime.reading.passes + 1


# -- waiting for arrays, and collecting them ---------------------------------------------------------------------------


def test_numpy_arrays_are_neither_waited_for_nor_copied():
    x = np.ones(3)
    NUMPY64.wait(x)
    assert NUMPY64.collected(x) is x


def test_vectors_over_shards_are_collected(A):
    coupling = ShardedCoupling(LocalEngine(A, shards=3))
    x = coupling.mul(np.ones(5))
    rounds = coupling.engine.rounds
    coupling.space.of_x.wait(x)
    assert coupling.engine.rounds == rounds
    found = coupling.space.of_x.collected(x)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, A @ np.ones(5), rtol=1e-14)


def test_arrays_of_jax_are_waited_for():
    jax = pytest.importorskip("jax")
    done = threading.Event()

    def slowly(x):
        done.wait(0.5)
        done.set()
        return x

    x = jax.jit(lambda x: jax.pure_callback(slowly, x, x))(jax.numpy.ones(3))
    space = space_of(x)
    space.wait(x)
    assert done.is_set()
    assert space.collected(x) is x


def test_arrays_elsewhere_are_waited_for_by_reading_an_entry():
    read = []

    class Elsewhere:
        def __getitem__(self, k):
            read.append(k)
            return 0.0

    NUMPY64._replace(xp=pytest, device="cuda:0").wait(Elsewhere())
    assert read == [0]
