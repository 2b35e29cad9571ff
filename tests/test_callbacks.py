"""Exceptions during a run, threads and processes: results are complete, and the same to the last bit."""

import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from cases import CASES, case

import saddlepoint as sp
from saddlepoint.parts.coupling import dense
from saddlepoint.problems.generators import random_logistic, random_quadratic


class Mishap(Exception):
    """The exception that oracles and callbacks raise in these tests."""


def fragile(f, where, after, error):
    """f, whose ``where`` raises at the call number ``after``."""
    calls = []

    def breaking(function):
        def called(*arguments):
            calls.append(1)
            if len(calls) == after:
                raise error
            return function(*arguments)

        return called

    if where == "grad":
        return sp.Saddle(sp.Smooth(breaking(f.g.grad), mu=f.mu_x, L=f.L_x), f.h, f.A)
    if where == "prox":
        return sp.Saddle(sp.Smooth(f.g.grad, mu=f.mu_x, L=f.L_x, prox=breaking(f.g.prox)), f.h, f.A)

    class Operator:
        shape, T = f.shape, f.A.A.T
        __matmul__ = breaking(lambda self, y: f.A.A @ y)

    return sp.Saddle(f.g, f.h, Operator())


# -- exceptions -------------------------------------------------------------------------------------------------------


def test_an_exception_of_a_callback_carries_the_best_point(tmp_path):
    f, seen = case("balanced")[0], []

    def callback(result):
        seen.append(result)
        if len(seen) == 6:
            raise Mishap("no more")

    with pytest.raises(Mishap, match="no more") as caught:
        sp.solve(f, method="dippa", tol=1e-9, callback=callback, checkpoint=tmp_path / "run")
    found = caught.value.result
    assert found.status == "interrupted"
    assert found.certificate.distance == min(result.certificate.distance for result in seen)
    assert found.certificate[:-1] == f.certificate(found.x, found.y)[:-1]
    assert any(
        "the best certified point so far is in the attribute `result`" in note for note in caught.value.__notes__
    )
    rest = sp.solve(f, method="dippa", tol=1e-9, checkpoint=tmp_path / "run")
    assert rest.x.tobytes() == sp.solve(f, method="dippa", tol=1e-9).x.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "method", "after"),
    [
        ("grad", "dippa", 100),
        ("grad", "auto", 30),
        ("A", "catalyst-aipfb", 100),
        ("A", "lpd-gs", 100),
        ("prox", "apfb", 100),
    ],
)
def test_an_exception_of_an_oracle_carries_the_best_point(where, method, after, tmp_path):
    f = case("mu_x < mu_y")[0]
    broken = fragile(f, where, after, Mishap("the disk is gone"))
    with pytest.raises(Mishap) as caught:
        sp.solve(broken, method=method, tol=1e-9, checkpoint=tmp_path / "run")
    found = caught.value.result
    assert found.certificate[:-1] == broken.certificate(found.x, found.y)[:-1]
    assert found.certificate.distance < found.history[0].distance
    # The oracle works again, and the run goes on.
    assert sp.solve(broken, method=method, tol=1e-9, checkpoint=tmp_path / "run").solved


def test_an_exception_before_the_first_certificate_has_no_result():
    f = case("balanced")[0]
    with pytest.raises(Mishap) as caught:
        sp.solve(fragile(f, "grad", 1, Mishap()), method="dippa")
    assert not hasattr(caught.value, "result")
    with pytest.raises(sp.ProblemError, match="needs quadratic") as caught:
        sp.solve(case("logistic")[0], method="krylov")
    assert not hasattr(caught.value, "result")


class Closed(Exception):
    """An exception on which no attribute can be set but Python's own."""

    def __setattr__(self, name, value):
        if not name.startswith("__"):
            raise AttributeError(name)
        super().__setattr__(name, value)


class Taken(Exception):
    """An exception that has an attribute ``result`` already."""

    result = "mine"


@pytest.mark.parametrize(
    "error", [Closed(), Taken(), SystemExit(3), MemoryError(), OSError(5, "disk"), RecursionError()]
)
def test_any_exception_passes_through(error):
    f = case("balanced")[0]
    with pytest.raises(type(error)) as caught:
        sp.solve(fragile(f, "grad", 50, error), method="dippa", tol=1e-9)
    assert caught.value is error
    if isinstance(error, Taken):
        assert error.result == "mine"
    elif not isinstance(error, Closed):
        assert error.result.certificate.distance < np.inf


def test_a_solve_within_a_callback_changes_neither_run():
    f = case("logistic")[0]
    plain, inner = sp.solve(f, method="dippa", tol=1e-8), []
    outer = sp.solve(
        f, method="dippa", tol=1e-8, callback=lambda _: inner.append(sp.solve(f, method="dippa", tol=1e-8))
    )
    assert {result.x.tobytes() for result in (outer, *inner)} == {plain.x.tobytes()}
    assert outer.calls == plain.calls


@pytest.mark.parametrize("where", ["callback", "gradient"])
def test_a_wrong_constant_of_another_problem_is_not_corrected_in_this_one(where):
    """A callback and a gradient may solve problems themselves, and L of those may be refuted."""
    wrong = sp.Saddle(
        sp.Smooth(lambda x: np.array([0.9, 3.0, 1.0]) * x + 1.0, mu=0.8, L=1.5), sp.Quadratic(1.0), np.eye(3)
    )

    def gradient(x):
        if where == "gradient":
            sp.solve(wrong)
        return 1.2 * x + 1.0

    f = sp.Saddle(sp.Smooth(gradient, mu=1.0, L=1.5), sp.Quadratic(1.0), 2.0 * np.eye(3))
    callback = (lambda _: sp.solve(wrong)) if where == "callback" else None
    with pytest.raises(sp.AssumptionError, match=r"L of g is too small: L = 1.5"):
        sp.solve(f, method="lpd-gs", on_violation="adapt", callback=callback, max_calls=100)


def test_only_the_callback_ends_a_run_by_stopiteration():
    f = fragile(case("balanced")[0], "grad", 50, StopIteration())
    # Inside a generator Python turns StopIteration into RuntimeError.
    with pytest.raises((StopIteration, RuntimeError)) as caught:
        sp.solve(f, method="dippa", tol=1e-9, callback=lambda _: None)
    assert caught.value.result.status == "interrupted"


# -- results that nobody can alter -----------------------------------------------------------------------------------


def overwrite(result):
    """A callback that writes into everything it is given."""
    for array in (result.x, result.y):
        array.setflags(write=True)  # results are read-only
        array[:] = 1e3
    for values in (result.calls, result.parameters, result.setup_calls, result.provenance):
        values.clear()


@pytest.mark.parametrize("method", ["auto", "dippa", "lpd-gs", "anderson-condat-vu", "catalyst-dippa"])
def test_a_callback_that_writes_into_its_result_changes_nothing(method):
    f = case("logistic")[0]
    plain = sp.solve(f, method=method, tol=1e-8)
    found = sp.solve(f, method=method, tol=1e-8, callback=overwrite)
    assert found.solved
    assert found.x.tobytes() == plain.x.tobytes()
    assert found.calls == plain.calls
    assert found.certificate[:-1] == f.certificate(found.x, found.y)[:-1]


def test_the_arrays_of_a_callback_are_read_only_and_those_of_the_result_are_not():
    f, seen = case("logistic")[0], []
    result = sp.solve(f, tol=1e-8, callback=seen.append)
    assert not any(array.flags.writeable for r in seen for array in (r.x, r.y))
    before = result.certificate
    result.x[:] += 1.0
    assert f.certificate(result.x, result.y).distance > before.distance
    assert not np.shares_memory(result.x, seen[-1].x)


def test_each_history_of_a_callback_is_as_long_as_it_was_then():
    seen = []
    result = sp.solve(case("logistic")[0], method="dippa", tol=1e-8, callback=seen.append)
    assert [len(r.history) for r in seen] == list(range(1, len(seen) + 1))
    assert result.history[: len(seen[3].history)] == seen[3].history[:]
    with pytest.raises((AttributeError, TypeError)):
        seen[3].history[0] = None
    assert not hasattr(seen[3].history, "append")


def test_a_gradient_that_writes_into_points_it_has_seen_cannot_alter_the_result():
    """The gradient keeps the arrays it was given and overwrites them later, in the last call before the end too."""
    f, given = case("logistic")[0], []

    def grad(x):
        p = f.g.grad(x)
        if len(given) > 30:
            for array in given[:-5]:
                if array.flags.writeable:
                    array[:] = 1e3
        given.append(x)
        return p

    g = sp.Smooth(grad, mu=f.mu_x, L=f.L_x)
    result = sp.solve(sp.Saddle(g, f.h, f.A), method="lpd-gs", tol=1e-6)
    assert len(given) > 40
    assert result.solved
    assert f.certificate(result.x, result.y).distance <= 1e-6


# -- threads ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def often(monkeypatch):
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def dense_quadratic():
    """A problem whose prox and whose A each keep the factorisation of the last step length."""
    rng = np.random.default_rng(0)
    P, Q = (B @ B.T / 12 + 0.1 * np.eye(12) for B in rng.standard_normal((2, 12, 12)))
    return sp.Saddle(sp.Quadratic(P, np.ones(12)), sp.Quadratic(Q, np.ones(12)), rng.standard_normal((12, 12)))


METHODS = (
    "auto",
    "dippa",
    "apfb",
    "dppa",
    "imex",
    "lpd-slide",
    "anderson-condat-vu",
    "krylov",
    "direct",
    "rhss",
    "rapd",
)


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_threads_on_one_problem_find_what_each_finds_alone():
    """Two of the methods ask for the prox with different steps, and two factorise for different steps.

    The costs are given, because ``auto`` would time a gradient again that other threads have slowed down.
    """
    costs = {"grad_g": 1.0, "grad_h": 1.0, "A": 1.0, "At": 1.0}
    alone = {method: sp.solve(dense_quadratic(), method=method, tol=1e-7, costs=costs) for method in METHODS}
    for _ in range(3):
        f, barrier = dense_quadratic(), threading.Barrier(len(METHODS))

        def work(method, f=f, barrier=barrier):
            barrier.wait()
            return sp.solve(f, method=method, tol=1e-7, costs=costs)

        with ThreadPoolExecutor(len(METHODS)) as pool:
            for method, result in zip(METHODS, pool.map(work, METHODS), strict=True):
                assert result.x.tobytes() == alone[method].x.tobytes(), method
                assert result.calls == alone[method].calls, method
                assert result.setup_calls == alone[method].setup_calls, method


class Disturbed(sp.Quadratic):
    """A function whose stored factorisation is gone once it was read, as if another thread had replaced it."""

    @property
    def _solver(self):
        return self.__dict__.pop("kept", None)

    @_solver.setter
    def _solver(self, kept):
        self.__dict__["kept"] = kept


def test_a_factorisation_that_is_replaced_meanwhile_does_not_matter():
    P, v = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 5.0])
    for _ in range(3):
        np.testing.assert_array_equal(Disturbed(P).prox(v, 0.5), sp.Quadratic(P).prox(v, 0.5))


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_threads_share_the_compiled_products(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(dense, "FUSE_BYTES", 0)
    monkeypatch.setattr(dense, "FUSE_SIDE_BYTES", 0)
    g = random_quadratic(70, 50, 100, 100, 10, seed=1)
    f = sp.Saddle(g.g, g.h, g.A.A.copy())
    assert f.A.fused
    alone = sp.solve(f, method="lpd-gs", tol=1e-7)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: sp.solve(f, method="lpd-gs", tol=1e-7), range(8)):
            assert result.x.tobytes() == alone.x.tobytes()


def test_two_threads_write_checkpoints_of_their_own(tmp_path):
    f = case("logistic")[0]
    alone = sp.solve(f, method="dippa", tol=1e-8)

    def work(name):
        for budget in (30, 90, None):
            result = sp.solve(f, method="dippa", tol=1e-8, max_calls=budget, checkpoint=tmp_path / name)
        return result

    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(work, ("one", "two")):
            assert result.x.tobytes() == alone.x.tobytes()


# -- processes --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_problems_and_results_can_be_sent(name):
    f = CASES[name]()
    result = sp.solve(f, tol=1e-6)  # with what f has cached in earlier runs
    twin, again = pickle.loads(pickle.dumps((f, result)))
    assert sp.solve(twin, tol=1e-6).x.tobytes() == result.x.tobytes()
    assert again.to_dict(arrays=True) == result.to_dict(arrays=True)
    assert again.history[:] == result.history[:]


OTHERS = {
    "dense quadratics": dense_quadratic,
    "hinge and entropy": lambda: sp.Saddle(
        sp.SmoothedHinge(np.eye(6)[:, :4], [1, -1] * 3, 0.1), sp.Entropy(), 0.1 * np.ones((4, 3))
    ),
    "sums and multiples": lambda: sp.Saddle(
        sp.Quadratic(0.5, np.ones(4)) + 2.0 * sp.Huber(), 3.0 * (sp.LogCosh() + sp.Quadratic(1.0)), np.ones((4, 3))
    ),
    "groups and least squares": lambda: sp.Saddle(
        sp.GroupHuber([0, 0, 1, 1], l2=0.3), sp.LeastSquares(np.eye(3), np.ones(3), 0.1), np.ones((4, 3))
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_other_ready_functions_can_be_sent(name):
    f = OTHERS[name]()
    for method in ("apfb", "auto"):
        if method == "auto" or (f.g.has_prox and f.h.has_prox):
            result = sp.solve(f, method=method, tol=1e-6)
            assert sp.solve(pickle.loads(pickle.dumps(f)), method=method, tol=1e-6).x.tobytes() == result.x.tobytes()


def test_errors_can_be_sent():
    g = sp.Smooth(lambda x: 20.0 * x, mu=1.0, L=2.0)
    with pytest.raises(sp.AssumptionError) as caught:
        sp.solve(sp.Saddle(g, sp.Quadratic(1.0, np.ones(3)), np.eye(3)), np.ones(3), method="dippa")
    error = caught.value
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.function, again.constant, again.given, again.observed, again.suggested) == (
        str(error), error.function, error.constant, error.given, error.observed, error.suggested
    )  # fmt: skip
    assert again.result.certificate == error.result.certificate
    infeasible = pickle.loads(pickle.dumps(sp.InfeasibleError("no", np.ones(2))))
    assert infeasible.certificate.tolist() == [1.0, 1.0]


def answer(f):
    """Solve a problem; a function that other processes can import."""
    return sp.solve(f, tol=1e-8)


@pytest.mark.slow
def test_spawned_processes_find_the_same_bits():
    f = random_logistic(20, 15, 100, 50, 20, seed=1)
    alone = answer(f)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for result in pool.map(answer, [f, f]):
            assert result.x.tobytes() == alone.x.tobytes()
            assert result.calls == alone.calls


@pytest.mark.slow
def test_forked_workers_run_after_every_thread_pool_was_used(tmp_path):
    """BLAS and the compiled products have their threads in the parent, which do not survive a fork."""
    script = textwrap.dedent("""
        import multiprocessing, os, sys
        import numpy as np
        import saddlepoint as sp
        from saddlepoint.parts.coupling import compiled_loops, dense, dense_kernels

        dense.FUSE_BYTES = dense.FUSE_SIDE_BYTES = 0
        dense_kernels.PART_BYTES = 1 << 14
        A = np.random.default_rng(0).standard_normal((800, 40))
        f = sp.Saddle(sp.Quadratic(1.0, np.ones(800)), sp.Quadratic(1.0), A / np.linalg.norm(A, 2))
        np.ones((600, 600)) @ np.ones((600, 600))
        alone = sp.solve(f, method="lpd-gs", tol=1e-6)
        used = compiled_loops._pool.cache_info().currsize if compiled_loops.AVAILABLE else 1
        assert used == 1, "no thread was used"

        def work(k):
            result = sp.solve(f, method="lpd-gs", tol=1e-6, checkpoint=f"run{k}")
            return result.x.tobytes() == alone.x.tobytes() and result.calls == alone.calls

        with multiprocessing.get_context("fork").Pool(3) as pool:
            print(pool.map_async(work, range(6)).get(60))
    """)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=3000, check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "2"}, cwd=tmp_path,
    )  # fmt: skip
    assert run.stdout.strip() == str([True] * 6), run.stderr
