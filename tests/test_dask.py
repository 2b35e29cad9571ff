"""Dask arrays as couplings and as data: the same answers, the predicted number of bytes, and workers that die."""

import gc
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.methods.registry import make_method
from saddlepoint.parts import functions as ready
from saddlepoint.parts.sharded import LocalEngine, ShardedCoupling

distributed = pytest.importorskip("distributed", reason="distributed is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")

from saddlepoint.parts.sharded import dask_array  # noqa: E402
from saddlepoint.parts.sharded.dask import DaskEngine, dask_coupling  # noqa: E402
from saddlepoint.parts.sharded.dask_cluster import Cluster, certificates, connect  # noqa: E402

ROWS, COLUMNS = 96, 12
pytestmark = pytest.mark.cluster
METHOD = "condat-vu"
TOL = 1e-7


def matrix(rows=ROWS, columns=COLUMNS):
    return np.random.default_rng(0).standard_normal((rows, columns)) / 4.0


def loaded(files, columns=COLUMNS):
    """A Dask array of which each worker loads its rows from files."""
    sizes = [np.load(file).shape[0] for file in files]
    starts = [0, *np.cumsum(sizes).tolist()]

    def read(start, stop):
        return np.load(files[starts.index(start)])

    return dask_array.rows_from(read, starts, columns, "float64")


def functions(rows=ROWS, columns=COLUMNS):
    rng = np.random.default_rng(1)
    g = sp.Huber(None, rng.standard_normal(rows), l2=0.5, delta=0.5)
    return g, sp.Quadratic(0.5, rng.standard_normal(columns))


@pytest.fixture(scope="module")
def workers():
    """Two processes with a client that is the present one; a worker that is killed is started again."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit="1GiB"
        ) as cluster,
        distributed.Client(cluster, direct_to_workers=True) as client,
    ):
        yield client


@pytest.fixture
def client(workers):
    try:
        workers.wait_for_workers(2, timeout=15)
    except distributed.TimeoutError:  # on a busy machine, a worker that was killed may not come back
        workers.cluster.scale(1)
        workers.cluster.scale(2)
        workers.wait_for_workers(2, timeout=120)
    return workers


@pytest.fixture
def files(tmp_path):
    """The matrix in 8 files, as storage has it."""
    names = [tmp_path / f"{k}.npy" for k in range(8)]
    for name, rows in zip(names, np.split(matrix(), 8), strict=True):
        np.save(name, rows)
    return [str(name) for name in names]


@pytest.fixture(scope="module")
def answer():
    """The result of one process with the same shards."""
    return sp.solve(sp.Saddle(*functions(), ShardedCoupling(LocalEngine(matrix(), 8))), method=METHOD, tol=TOL)


# -- the same answers --------------------------------------------------------------------------------------------------


def test_a_dask_array_is_a_coupling_and_gives_the_same_bits(client, files, answer):
    f = sp.Saddle(*functions(), loaded(files))
    result = sp.solve(f, method=METHOD, tol=TOL)
    assert result.solved
    assert f.A.engine.workers == 2
    assert result.iterations == answer.iterations
    assert np.array_equal(result.x, answer.x)
    assert np.array_equal(result.y, answer.y)


def test_auto_takes_a_method_that_leaves_x_with_its_shards(client, files, answer):
    result = sp.solve(sp.Saddle(*functions(), loaded(files)), tol=TOL)
    assert result.solved
    assert np.allclose(result.x, answer.x, atol=10 * TOL)


def test_without_a_client_this_process_does_the_work_and_nothing_stays(answer, monkeypatch):
    monkeypatch.setattr(distributed, "default_client", _none)
    before = _clusters()
    f = sp.Saddle(*functions(), da.from_array(matrix(), chunks=(ROWS // 8, COLUMNS)))
    assert len(_clusters()) == len(before) + 1
    result = sp.solve(f, method=METHOD, tol=TOL)
    assert np.array_equal(result.x, answer.x)
    again = da.from_array(matrix(), chunks=(ROWS // 4, COLUMNS))
    other = dask_coupling(again)
    assert other.engine.client is f.A.engine.client
    other.engine.close()
    assert len(_clusters()) == len(before) + 1
    f.A.engine.close()
    assert _clusters() == before
    with pytest.raises(sp.ProblemError, match="is closed; build the problem again"):
        f.A.through(np.zeros(COLUMNS))


def _none():
    raise ValueError("there is no client")


def _clusters():
    """The Dask clusters that this process is running."""
    return [cluster for cluster in distributed.LocalCluster._instances if cluster.status.name == "running"]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # this queue does not wait for jobs that it has ended
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_of_a_job_queue_gives_the_same_bits(files, answer, tmp_path):
    """A substitute for a queue, from dask-jobqueue, which runs the job scripts on this machine."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    jobqueue = pytest.importorskip("dask_jobqueue.local")
    for number, handler in handlers.items():  # the import has replaced them
        signal.signal(number, handler)
    jobs = {"cores": 1, "memory": "1GiB", "processes": 1, "n_workers": 2, "log_directory": str(tmp_path)}
    with (
        jobqueue.LocalCluster(**jobs, scheduler_options={"dashboard_address": ":0"}) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(2, timeout=120)
        A = dask_coupling(loaded(files), cluster=Cluster(client))
        result = sp.solve(sp.Saddle(*functions(), A), method=METHOD, tol=TOL)
        assert A.engine.workers == 2
        A.engine.close()
    assert np.array_equal(result.x, answer.x)
    del cluster
    gc.collect()  # so that warnings about leaks come here, and not in the next test


def test_actors_in_a_chain_give_the_same_bits(client, files, answer):
    f = sp.Saddle(*functions(), ShardedCoupling(DaskEngine(loaded(files), fan_out=1)))
    assert f.A.engine.roots == [0]
    result = sp.solve(f, method=METHOD, tol=TOL)
    assert np.array_equal(result.x, answer.x)


def test_blocks_may_be_sparse_narrow_or_of_many_sizes(client):
    sparse = pytest.importorskip("scipy.sparse")
    A = matrix() * (np.random.default_rng(2).random((ROWS, COLUMNS)) < 0.3)
    x, y = (np.random.default_rng(3).standard_normal(k) for k in (ROWS, COLUMNS))
    chunked = da.from_array(A, chunks=((1, 40, 5, 50), COLUMNS))
    for coupling in (dask_coupling(chunked), dask_coupling(chunked.map_blocks(sparse.csr_array))):
        Ay, Atx = coupling.both(coupling.library.asarray(x), y)
        assert np.allclose(np.asarray(Ay), A @ y)
        assert np.allclose(Atx, A.T @ x)
        coupling.engine.close()
    narrow = dask_coupling(chunked.astype("float32"))
    assert narrow.through(y.astype("float32"))[1].dtype == np.float32
    narrow.engine.close()


def test_an_array_that_is_persisted_stays_where_it_is(client, files):
    kept = loaded(files).persist()
    distributed.wait(kept)
    before = client.who_has(kept)
    coupling = dask_coupling(kept)
    held = [future.key for future in coupling.engine.blocks]
    assert held == [row[0] for row in kept.__dask_keys__()]
    coupling.through(np.ones(COLUMNS))
    assert client.who_has(kept) == before
    coupling.engine.close()


@pytest.mark.parametrize("kind", ["Logistic", "LeastSquares", "Huber", "SmoothedHinge", "LogCosh"])
def test_functions_of_dask_arrays_are_those_of_numpy_and_take_one_round(client, kind):
    D = matrix()
    t = np.where(np.random.default_rng(4).random(ROWS) < 0.5, -1.0, 1.0)
    make = getattr(sp, kind, None) or getattr(ready, kind)
    here, there = (make(data, labels, l2=0.1) for data, labels in
                   ((D, t), (da.from_array(D, chunks=(20, COLUMNS)), da.from_array(t, chunks=20))))  # fmt: skip
    engine, y = there.D.engine, np.random.default_rng(5).standard_normal(COLUMNS)
    rounds, out, back = engine.rounds, engine.out, engine.back
    assert np.allclose(there.grad(y), here.grad(y), rtol=1e-12)
    assert (engine.rounds - rounds, engine.out - out) == (1, 8 * COLUMNS * engine.workers)
    assert engine.back - back >= 8 * COLUMNS * engine.workers
    assert np.isclose(there(y), here(y))
    assert np.isclose(there.mu, here.mu)
    assert np.isclose(there.L, here.L)
    engine.close()


def test_a_risk_of_y_is_minimised_over_shards(client):
    D, M = matrix(), matrix(20)
    labels = np.where(D @ np.ones(COLUMNS) > 0.0, 1.0, -1.0)
    g = sp.Quadratic(1.0, np.ones(20))
    expected = sp.solve(sp.Saddle(g, sp.Logistic(D, labels, l2=0.5), M), tol=1e-6)
    h = sp.Logistic(da.from_array(D, chunks=(24, COLUMNS)), labels, l2=0.5)
    result = sp.solve(sp.Saddle(g, h, M), tol=1e-6)
    assert result.solved
    assert np.allclose(result.y, expected.y, atol=1e-5)


# -- rounds and bytes --------------------------------------------------------------------------------------------------


def test_a_round_sends_n_numbers_to_each_worker_and_back(client, files):
    engine = DaskEngine(loaded(files))
    A, n = ShardedCoupling(engine), 8 * COLUMNS
    assert (engine.out, engine.back) == (0, 0)
    A.through(np.ones(COLUMNS))
    assert (engine.rounds, engine.out, engine.back) == (1, 2 * n, 2 * n)
    assert (engine.sent, engine.received) == (n, n)
    engine.close()


@pytest.mark.parametrize("method", ["condat-vu", "lpd", "lpd-gs"])
def test_an_iteration_is_a_round(client, files, method):
    f = sp.Saddle(*functions(), loaded(files))
    engine, steps = f.A.engine, 10
    method = make_method(method)
    view = method.normal_form(f)
    start = f.space.of_x.zeros(ROWS), f.space.of_y.zeros(COLUMNS)
    state = method.init(view.problem, *view.to(*start))
    state = method.step(view.problem, method.step(view.problem, state))
    before = engine.rounds, engine.out, engine.back
    for _ in range(steps):
        state = method.step(view.problem, state)
    rounds, out, back = np.subtract((engine.rounds, engine.out, engine.back), before)
    assert (rounds, out, back) == (steps, steps * 2 * 8 * COLUMNS, steps * 2 * 8 * COLUMNS)
    engine.close()


def test_shards_never_move(client, files):
    def moved(dask_worker):
        return sum(event["total"] for event in dask_worker.transfer_incoming_log)

    before = client.run(moved)
    f = sp.Saddle(*functions(), loaded(files))
    places = client.who_has(f.A.engine.blocks)
    sp.solve(f, method=METHOD, tol=TOL)
    assert client.run(moved) == before
    assert client.who_has(f.A.engine.blocks) == places
    assert all(len(where) == 1 for where in places.values())
    f.A.engine.close()


# -- workers that die --------------------------------------------------------------------------------------------------


def test_a_run_survives_a_worker_that_is_killed_between_two_rounds(client, files, answer, caplog):
    f = sp.Saddle(*functions(), loaded(files))
    pids = client.run(os.getpid)
    victim = f.A.engine.actors[0].worker
    seen = []

    def kill(result):
        seen.append(result.iterations)
        if len(seen) == 4:
            os.kill(pids[victim], signal.SIGKILL)

    with caplog.at_level(logging.WARNING, "saddlepoint"):
        result = sp.solve(f, method=METHOD, tol=TOL, callback=kill)
    assert len(seen) > 4
    assert result.solved
    assert f.certificate(result.x, result.y).distance <= TOL
    assert np.array_equal(result.x, answer.x)
    assert "is lost" in caplog.text
    assert "are back on" in caplog.text
    f.A.engine.close()


@pytest.mark.parametrize("fan_out", [8, 1])
def test_a_run_survives_a_worker_that_is_killed_in_the_middle_of_a_round(client, files, tmp_path, fan_out):
    mark = tmp_path / "killed"

    def make(deadly):
        def part(rows):
            calls = []

            def grad(x):
                calls.append(None)
                if deadly and rows.stop == ROWS and len(calls) == 30 and not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                return np.tanh(x) + x

            return sp.Smooth(grad, mu=1.0, L=2.0)

        return sp.Smooth(lambda x: np.tanh(x) + x, mu=1.0, L=2.0, restrict=part)

    h = functions()[1]
    engine = DaskEngine(loaded(files), fan_out=fan_out, copy_rounds=7)  # so that a copy of the stores has been taken
    couplings = [ShardedCoupling(engine), ShardedCoupling(LocalEngine(matrix(), 8))]
    results = [
        sp.solve(sp.Saddle(make(deadly), h, A), method=METHOD, tol=TOL)
        for deadly, A in zip((True, False), couplings, strict=True)
    ]
    couplings[0].engine.close()
    assert mark.exists()
    assert [result.solved for result in results] == [True, True]
    assert np.array_equal(results[0].x, results[1].x)
    assert results[0].iterations == results[1].iterations > 30


def test_a_run_that_loses_all_workers_ends_with_its_best_point_and_goes_on_later(files, tmp_path, answer, monkeypatch):
    """The run ends with the best point and a checkpoint, from which another goes on when there are workers again."""
    path = tmp_path / "run.ckpt"
    with _processes(2) as (client, pids):
        A = ShardedCoupling(DaskEngine(loaded(files), Cluster(client), patience=1.0))
        f, seen = sp.Saddle(*functions(), A), []

        def kill(result):
            seen.append(result)
            if len(seen) == 4:
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)

        result = sp.solve(f, method=METHOD, tol=TOL, callback=kill, checkpoint=path)
        A.engine.close()
    assert result.status is sp.Status.INTERRUPTED
    assert "all Dask workers are lost, and none came back within 1 s" in result.message
    assert str(path) in result.message
    assert path.exists()
    here = sp.Saddle(*functions(), matrix())
    assert here.certificate(result.x, result.y).distance <= result.certificate.distance * (1.0 + 1e-6)
    assert result.certificate.distance < seen[0].certificate.distance
    monkeypatch.setattr(distributed, "default_client", _none)
    A = dask_coupling(loaded(files))
    onward = sp.solve(sp.Saddle(*functions(), A), method=METHOD, tol=TOL, checkpoint=path)
    A.engine.close()
    assert onward.solved
    assert onward.iterations > result.iterations
    assert np.allclose(onward.x, answer.x, atol=10 * TOL)


class _processes:
    """A scheduler and workers that are not started again when they die."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.cluster = distributed.LocalCluster(
            n_workers=0, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address=":0"
        )
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.cluster.scheduler_address]
        command += ["--no-nanny", "--nthreads", "1", "--no-dashboard"]
        self.workers = [
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(self.count)
        ]
        self.client = distributed.Client(self.cluster, set_as_default=False)
        self.client.wait_for_workers(self.count, timeout=120)
        return self.client, [worker.pid for worker in self.workers]

    def __exit__(self, *_):
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.client.close()
        self.cluster.close()


# -- addresses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1", "http://127.0.0.1:8787", "tcp://host:port", 7])
def test_an_invalid_address_is_refused(address):
    with pytest.raises(sp.ProblemError, match="expected tcp://host:port or tls://host:port"):
        connect(address)


def test_an_address_without_a_scheduler_is_refused():
    with pytest.raises(sp.ProblemError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:1: .*refused"):
        connect("tcp://127.0.0.1:1", seconds=1.0)
    with pytest.raises(sp.ProblemError, match="no Dask scheduler at tcp://no-such-host"):
        connect("tcp://no-such-host.invalid:8786", seconds=1.0)
    with pytest.raises(sp.ProblemError, match="no Dask scheduler at"):
        connect("tcp://127.0.0.1:99999", seconds=1.0)
    assert _loops() == 0


def test_a_server_that_is_no_scheduler_is_refused():
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(sp.ProblemError, match="does not answer within 1 s as a scheduler does"):
            connect(f"tcp://127.0.0.1:{mute.getsockname()[1]}", seconds=1.0)


def _loops():
    return sum(thread.name.startswith("IO loop") and thread.is_alive() for thread in threading.enumerate()) - len(
        _clusters()
    )


def test_a_cluster_at_an_address_is_used_and_left_running(client):
    address = client.scheduler.address
    with connect(address, workers=2) as cluster:
        A = dask_coupling(da.from_array(matrix(), chunks=(12, COLUMNS)), cluster=cluster)
        assert np.allclose(A.through(np.ones(COLUMNS))[1], matrix().T @ matrix() @ np.ones(COLUMNS))
        assert "/status" in cluster.dashboard
        A.engine.close()
    assert cluster.client.status == "closed"
    assert client.status == "running"
    with pytest.raises(sp.ProblemError, match="has 2 workers after 1 s; expected 3"):
        connect(address, workers=3, seconds=1.0)


def test_processes_that_were_started_are_ended():
    with connect(workers=1) as cluster:
        (worker,) = cluster.client.run(os.getpid).values()
        assert worker != os.getpid()
    deadline = time.monotonic() + 60.0
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


def test_a_scheduler_with_tls_is_reached_by_its_certificates(tmp_path):
    pytest.importorskip("cryptography", reason="cryptography makes the certificates of this test")
    security = distributed.Security.temporary()
    pem = {"ca": security.tls_ca_file, "cert": security.tls_client_cert, "key": security.tls_client_key}
    for name, text in pem.items():
        (tmp_path / name).write_text(text)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tls://", host="127.0.0.1",
        security=security, dashboard_address=":0",
    ) as cluster:  # fmt: skip
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        with connect(address, security=certificates(*(tmp_path / name for name in pem))) as mine:
            A = dask_coupling(da.from_array(matrix(), chunks=(12, COLUMNS)), cluster=mine)
            assert np.allclose(A.through(np.ones(COLUMNS))[1], matrix().T @ matrix() @ np.ones(COLUMNS))
            A.engine.close()
        with pytest.raises(sp.ProblemError, match="needs certificates"):
            connect(address)
        with pytest.raises(sp.ProblemError, match="no Dask scheduler"):
            connect(address.replace("tls", "tcp"), seconds=1.0)
    with pytest.raises(sp.ProblemError, match=r"the key is .*no such file"):
        certificates(tmp_path / "ca", tmp_path / "cert", tmp_path / "nothing")


# -- arrays that are refused -------------------------------------------------------------------------------------------


def ones(*shape, chunks, dtype="float64"):
    return da.ones(shape, chunks=chunks, dtype=dtype)


@pytest.mark.parametrize(
    ("A", "complaint"),
    [
        (lambda: ones(6, 4, chunks=2, dtype="int64"), "dtype int64; expected float32 or float64"),
        (lambda: ones(6, 4, chunks=2, dtype="complex128"), "dtype complex128; expected"),
        (lambda: ones(6, 4, chunks=2, dtype="float16"), "dtype float16; expected"),
        (lambda: ones(6, chunks=2), "of 1 dimensions; expected a matrix"),
        (lambda: ones(0, 4, chunks=2), "at least one row"),
        (lambda: ones(6, 4, chunks=(2, 4))[ones(6, chunks=2) > 0], "chunks of unknown sizes; call A.compute_chunk"),
        (lambda: ones(1 << 20, 1 << 10, chunks=(1 << 10, 1 << 9)), "cut into 2 pieces by columns.*8 GiB.*rechunk"),
    ],
)
def test_no_engine_is_started_for_invalid_arrays(A, complaint, monkeypatch):
    monkeypatch.setattr(distributed, "default_client", _none)
    before = _clusters()
    with pytest.raises(sp.ProblemError, match=complaint):
        sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), A())
    assert _clusters() == before


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        (np.ones((3, 5)), r"shard 1 of A is 3 x 5 of float64; expected 3 x 4 of float64"),
        (np.ones((3, 4), "float32"), r"shard 1 of A is 3 x 4 of float32; expected 3 x 4 of float64"),
        (np.full((3, 4), np.nan), r"shard 1 of A has a nan at index \(0, 0\)"),
        (None, r"loading shard 1 of A failed \(FileNotFoundError"),
    ],
)
def test_shards_that_are_not_what_the_array_says_are_refused(client, block, complaint):
    def read(start, stop):
        if start == 3 and block is None:
            raise FileNotFoundError("there is no such file")
        return np.ones((3, 4)) if start == 0 else block

    with pytest.raises(sp.ProblemError, match=complaint):
        dask_coupling(dask_array.rows_from(read, [0, 3, 6], 4, "float64"))


def test_a_function_that_cannot_be_sent_is_refused(client, files):
    lock = threading.Lock()
    g = sp.Smooth(
        lambda x: x, mu=1.0, L=1.0, restrict=lambda rows: sp.Smooth(lambda x: x if lock else 0.0 * x, mu=1.0, L=1.0)
    )
    with pytest.raises(sp.ProblemError, match="cannot be sent to the Dask workers"):
        sp.Saddle(g, functions()[1], loaded(files))


def test_an_exception_of_a_gradient_on_a_worker_is_raised_here(client, files):
    def fail(x):
        raise ZeroDivisionError("of a shard")

    g = sp.Smooth(lambda x: x, mu=1.0, L=1.0, restrict=lambda rows: sp.Smooth(fail, mu=1.0, L=1.0))
    f = sp.Saddle(g, functions()[1], loaded(files))
    with pytest.raises(ZeroDivisionError, match="of a shard"):
        sp.solve(f, method=METHOD)
    f.A.engine.close()


def test_columns_that_are_cut_are_put_together(client, caplog):
    with caplog.at_level(logging.WARNING, "saddlepoint"):
        A = dask_coupling(da.from_array(matrix(), chunks=(24, 5)))
    assert "joined into whole rows" in caplog.text
    assert np.allclose(A.through(np.ones(COLUMNS))[1], matrix().T @ matrix() @ np.ones(COLUMNS))
    A.engine.close()


def test_workers_with_too_little_memory_are_refused(client):
    big = ones(1 << 18, 1 << 10, chunks=(1 << 13, 1 << 10))
    with pytest.raises(
        sp.ProblemError, match=r"A has 2 GiB, of which the worker \w+ would hold 1 GiB with a memory of 1"
    ):
        dask_coupling(big)


def test_a_scheduler_without_workers_is_refused():
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(sp.ProblemError, match=r"no Dask worker came within 0\.1 s"),
    ):
        DaskEngine(da.from_array(matrix(), chunks=(24, COLUMNS)), Cluster(client), patience=0.1)


def test_without_dask_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(sp.ProblemError, match=r"pip install 'saddlepoint\[dask\]'"):
        dask_coupling(da.from_array(matrix(), chunks=(24, COLUMNS)))


# -- the documentation page --------------------------------------------------------------------------------------------


def test_the_page_runs(client):
    text = (Path(__file__).parent.parent / "docs/scaling/dask.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(compile(block, "dask.md", "exec"), names)
    assert names["result"].solved


def test_a_certificate_is_two_rounds(client, files):
    f = sp.Saddle(*functions(), loaded(files))
    x, y = f.A.library.asarray(np.ones(ROWS)), np.ones(COLUMNS)
    f.certificate(x, y)  # this estimates |A| too
    before = f.A.engine.rounds
    f.certificate(f.A.library.asarray(np.ones(ROWS)), y)
    assert f.A.engine.rounds - before == 2
    f.A.engine.close()
