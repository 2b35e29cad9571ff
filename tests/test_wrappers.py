"""Anderson, Restarted and Krylov: equivalent methods, guarantees, and difficult problems."""

import gc
import sys
import tracemalloc
import weakref
from typing import NamedTuple

import numpy as np
import pytest
from cases import case
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, gmres

import saddlepoint as sp
from saddlepoint.ground.rows import Rows
from saddlepoint.methods.wrappers.factored import Factored
from saddlepoint.methods.wrappers.gram import Gram
from saddlepoint.methods.wrappers.latest import Latest
from saddlepoint.methods.wrappers.window import Window
from saddlepoint.problems.generators import random_logistic, random_quadratic

ANDERSON, LATEST = sys.modules[sp.Anderson.__module__], sys.modules[Latest.__module__]


def unknowns(f):
    return np.zeros(f.shape[0]), np.zeros(f.shape[1])


def gmres_residuals(matrix, b, steps):
    found = []
    gmres(LinearOperator(matrix.shape, matvec=lambda v: matrix @ v), b, rtol=0.0, restart=steps, maxiter=1,
          callback=found.append, callback_type="pr_norm")  # fmt: skip
    return np.array(found[:steps]) * np.linalg.norm(b)


def test_krylov_has_the_residuals_of_scipys_gmres():
    f = random_quadratic(30, 20, 300, 40, 25, L_x=10.0, seed=4)
    view = sp.Krylov().normal_form(f)
    u = view.problem
    zero = np.zeros(50)
    field = lambda z: np.concatenate(u.field(z[:30], z[30:]))  # noqa: E731
    matrix = np.stack([field(e) - field(zero) for e in np.eye(50)], axis=1)
    expected = gmres_residuals(matrix, -field(zero), 30)
    state, found = sp.Krylov().init(u, *view.to(*unknowns(f))), []
    for _ in range(30):
        state = sp.Krylov().step(u, state)
        found.append(np.linalg.norm(state.r))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("room", "window", "steps"), [(0, 30, 8), (10**6, 30, 5), (0, 20, 5)])
def test_anderson_of_an_affine_map_is_gmres(room, window, steps, monkeypatch):
    monkeypatch.setattr(ANDERSON, "ROOM", room)
    for memory in (Latest, Gram):
        monkeypatch.setattr(sys.modules[memory.__module__], "RIDGE", 1e-17)
    f = random_quadratic(12, 9, 30, 20, 5, seed=2)
    method = sp.Anderson(sp.Extragradient(), window)
    step = lambda z: np.concatenate(sp.Extragradient().step(f, sp.State(z[:12], z[12:])))  # noqa: E731
    zero, scale = np.zeros(21), np.r_[np.full(12, f.mu_x**0.5), np.full(9, f.mu_y**0.5)]
    residual = lambda z: scale * (step(z / scale) - z / scale)  # noqa: E731
    matrix = np.stack([residual(zero) - residual(e) for e in np.eye(21)], axis=1)
    expected = gmres_residuals(matrix, residual(zero), 15)
    state, found = method.init(f, *unknowns(f)), []
    for _ in range(16):
        state = method.step(f, state)
        unit = f.mu_x**0.5 / state.weights[0]  # short windows have weights of which the first is 1
        found.append(unit * left(state.memory))  # the length of the residual of the mixed point
    # Later steps differ by rounding, which grows tenfold with each, and a hundredfold where products are used.
    np.testing.assert_allclose(found[1 : steps + 1], expected[:steps], rtol=1e-6)


def left(memory):
    """The smallest |r - dR c|."""
    if isinstance(memory, Factored):
        Q, r = memory.Q.matrix, memory.r
        return np.linalg.norm(r - Q.T @ (Q @ r))
    changes, r = (memory.differences if isinstance(memory, Gram) else memory.changes).matrix, memory.r
    return np.linalg.norm(r - changes.T @ np.linalg.lstsq(changes.T, r, rcond=None)[0])


def kept(memory):
    """The rows of a memory that is emptied when it is full."""
    return memory.Q if isinstance(memory, Factored) else memory.differences


def test_anderson_leaves_its_state_as_it_was():
    f, *_ = case("logistic")
    method = sp.Anderson(sp.CondatVu(), 4)
    state = method.init(f, *unknowns(f))
    for _ in range(12):
        once, again = method.step(f, state), method.step(f, state)
        np.testing.assert_array_equal(once.x, again.x)
        np.testing.assert_array_equal(once.y, again.y)
        state = once


class Kinked(sp.Method):
    """A contraction that is far from affine: Anderson's model of it is wrong most of the time."""

    def init(self, f, x, y):
        return sp.State(x, y)

    def step(self, f, s):
        turn = np.where(np.sin(40.0 * s.x) > 0.0, 0.9, -0.5)
        return sp.State(turn * s.x, 0.97 * s.y * np.where(s.y > 0.1, 1.0, -1.0))


def test_anderson_converges_where_the_wrapped_method_does():
    f, *_ = case("balanced")
    rng = np.random.default_rng(1)
    needed, forgiven = [], []  # whether the safeguard was needed, and whether failures were forgotten later
    for window in (1, 5, 20):
        for _ in range(5):
            method = sp.Anderson(Kinked(), window)
            state = method.init(f, 3.0 * rng.standard_normal(14), 3.0 * rng.standard_normal(10))
            seen = [0]
            while len(seen) < 6000 and np.linalg.norm(state.x) + np.linalg.norm(state.y) >= 1e-6:
                state = method.step(f, state)
                seen.append(state.failures)
            assert len(seen) < 6000
            needed.append(max(seen) > 0)
            forgiven.append(min(np.diff(seen)) < 0)  # plain steps become fewer again where the residual halves
    assert sum(needed) > 12
    assert sum(forgiven) > 6


@pytest.mark.slow
@pytest.mark.parametrize("inner", [sp.LPDGS(), sp.LPD(), sp.CondatVu(), sp.Extragradient(), sp.OGDA(), sp.IMEX()])
def test_anderson_saves_iterations_on_everyday_problems(inner):
    f = random_logistic(30, 20, 200, 100, 15, seed=3)
    plain, mixed = (sp.solve(f, method=m, tol=1e-6) for m in (inner, sp.Anderson(inner, 20)))
    assert plain.solved
    assert mixed.solved
    assert mixed.iterations < 0.7 * plain.iterations


def test_wrappers_around_wrappers_solve_the_problem():
    f, *_ = case("logistic, mu_x < mu_y")
    for method in (
        sp.Catalyst(sp.Anderson(sp.CondatVu(), 10)),
        sp.Anderson(sp.Catalyst(sp.DIPPA()), 5),
        sp.Restarted(sp.Anderson(sp.LPD(), 5)),
        sp.Anderson(sp.Restarted(sp.APD()), 5),
    ):
        assert sp.solve(f, method=method, tol=1e-7, max_calls=20_000).solved
    with pytest.raises(sp.ProblemError, match="one memory is enough"):
        sp.Anderson(sp.Anderson(sp.LPD()))


@pytest.mark.slow
def test_restarts_make_apd_linear():
    f = random_logistic(30, 20, 200, 100, 15, seed=3)
    once = sp.solve(f, method=sp.APD(), tol=1e-6, max_calls=5000)
    restarted = sp.solve(f, method="rapd", tol=1e-6, max_calls=5000)
    assert not once.solved
    assert restarted.solved
    assert restarted.method == "rapd"
    assert sp.Restarted(sp.AGEG()).label == "restarted-ag-eg"


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_are_subtracted_in_place(dtype):
    rng = np.random.default_rng(3)
    vectors, (new, old) = rng.standard_normal((3, 50)).astype(dtype), rng.standard_normal((2, 50)).astype(dtype)
    rows, c = Rows.empty(5, vectors[0]), rng.standard_normal(3)
    assert rows.subtracted(np.empty(0), new) is new
    for vector in vectors:
        rows = rows.append(vector)
    started = rows.start_row(new, old)
    assert np.shares_memory(started, rows.buffer)
    done = rows.subtracted(c, started)
    assert np.shares_memory(done, rows.buffer)
    np.testing.assert_allclose(done, new - old - c @ vectors, rtol=0.0, atol=1e-5 if dtype == "f4" else 1e-13)
    longer = rows.append(done)
    assert longer.count == 4
    assert longer.buffer is rows.buffer
    assert longer.emptied(new).buffer is rows.buffer
    assert longer.emptied(new).count == 0


@pytest.mark.parametrize("most", [0, 20])
def test_a_full_memory_and_what_follows_it_can_be_computed_again(most, monkeypatch):
    """A step is a pure function, though an emptied memory uses the same buffer again."""
    monkeypatch.setattr(ANDERSON, "ROOM", 0)
    monkeypatch.setattr(ANDERSON, "MOST", most)
    f = random_quadratic(30, 20, 30, 30, 3, seed=4)
    method = sp.Anderson(sp.LPDGS(), window=4)
    states = [method.init(f, np.zeros(30), np.zeros(20))]
    for _ in range(14):
        states.append(method.step(f, states[-1]))
    full = [k for k, state in enumerate(states) if kept(state.memory).full]
    assert len(full) > 1
    for k in full:
        again = method.step(f, states[k])
        assert again.x.tobytes() == states[k + 1].x.tobytes()
        assert again.y.tobytes() == states[k + 1].y.tobytes()


def test_rows_share_a_buffer_and_do_not_disturb_each_other():
    one = Rows.empty(3, np.zeros(2)).append(np.ones(2))
    two = one.append(2 * np.ones(2))
    assert one.matrix.tolist() == [[1, 1]]
    assert two.matrix.tolist() == [[1, 1], [2, 2]]
    assert not two.full
    assert two.append(np.zeros(2)).full


def test_steps_are_dropped_where_the_method_is_far_from_affine(monkeypatch):
    """Far from the solution these gradients hardly change, so that steps taken there say nothing about later ones."""
    rng = np.random.default_rng(0)
    t, u, A = 3.0 * rng.standard_normal(13), 3.0 * rng.standard_normal(140), 1e-3 * rng.standard_normal((13, 140))

    def rounds():
        g = sp.Smooth(lambda x: (x - t) / np.sqrt(0.1 + (x - t) ** 2) + 0.02 * x, mu=0.02, L=3.2)
        h = sp.Smooth(lambda y: (y - u) / np.sqrt(0.1 + (y - u) ** 2) + 0.02 * y, mu=0.02, L=3.2)
        result = sp.solve(sp.Saddle(g, h, A), tol=1e-4, method=sp.Anderson(sp.CondatVu(), 100))
        assert result.solved
        return result.iterations

    with_trust = rounds()
    monkeypatch.setattr(LATEST, "FAR", 1e100)
    assert with_trust < 0.7 * rounds()


def latest_of(columns, window):
    """A memory of the latest steps whose changes of the residual are the columns, and the outputs of T as rows."""
    rng = np.random.default_rng(0)
    r, outputs = rng.standard_normal(7), rng.standard_normal((len(columns) + 1, 9))
    memory = Latest.empty(window, np.zeros(9), np.ones(7)).with_residual(r, float(np.linalg.norm(r)), outputs[0])
    for column, output in zip(columns, outputs[1:], strict=True):
        r = r + column
        memory = memory.with_residual(r, float(np.linalg.norm(r)), output)
    return memory, outputs


def test_the_latest_steps_are_combined_to_the_smallest_residual():
    rng = np.random.default_rng(1)
    changes = rng.standard_normal((5, 7))
    memory, outputs = latest_of(changes, 6)
    c = np.linalg.lstsq(changes.T, memory.r, rcond=None)[0]
    np.testing.assert_allclose(memory.mixed().point, outputs[-1] - c @ np.diff(outputs, axis=0), rtol=1e-8)
    changes = rng.standard_normal((7, 7))
    memory, outputs = latest_of(changes, 4)  # 4, then 3 + 1, then 3 + 1, then 3 + 1
    assert memory.changes.count == 4
    c = np.linalg.lstsq(changes[-4:].T, memory.r, rcond=None)[0]
    after = memory.mixed()
    np.testing.assert_allclose(after.point, outputs[-1] - c @ np.diff(outputs, axis=0)[-4:], rtol=1e-8)
    length, least = np.linalg.norm(memory.r), np.linalg.norm(memory.r - c @ changes[-4:])
    assert after.trusted == pytest.approx(max(length, 5.0 * least))


def test_a_residual_that_is_not_trusted_leaves_one_step():
    memory = latest_of(np.random.default_rng(1).standard_normal((5, 7)), 6)[0].mixed()
    r, output = memory.r * 1.01 * memory.trusted / np.linalg.norm(memory.r), np.ones(9)
    assert memory.with_residual(r, float(np.linalg.norm(r)), output).changes.count == 1
    assert memory.with_residual(0.9 * r, float(np.linalg.norm(0.9 * r)), output).changes.count == 6


@pytest.mark.parametrize("steps", [8, 30])
def test_a_factor_that_grows_by_rows_is_that_of_the_products(steps):
    """Also after the oldest steps were dropped, and where a change is zero or the same as one before."""
    changes = np.random.default_rng(2).standard_normal((steps, 7))
    changes[3], changes[5] = 0.0, changes[4]
    memory, _ = latest_of(changes, 10)
    k = memory.changes.count
    rows = memory.changes.matrix
    L = np.zeros((k, k))
    L[np.tril_indices(k)] = memory.factor[: k * (k + 1) // 2]
    np.testing.assert_allclose(L @ L.T, rows @ rows.T, atol=1e-10)
    np.testing.assert_allclose(memory.along[:, 0], rows @ memory.r, rtol=1e-12)
    assert np.isfinite(memory.mixed().point).all()


def test_a_state_is_joined_to_a_vector_and_parted_again():
    from saddlepoint.methods.wrappers.flat import joined, parted, scale_of

    state, weights = Pair(np.arange(2.0), np.arange(3.0) + 5.0), (0.0, 3.0)
    flat = joined(state, weights)
    np.testing.assert_array_equal(flat, [5, 6, 7, 0, 1])  # the array without a weight is last
    np.testing.assert_array_equal(scale_of(state, weights), [3, 3, 3])
    again = parted(state, flat + 1.0, weights)
    np.testing.assert_array_equal(again.x, state.x + 1.0)
    np.testing.assert_array_equal(again.y, state.y + 1.0)


class Pair(NamedTuple):
    x: np.ndarray
    y: np.ndarray


def test_states_within_states_are_mixed_too():
    from saddlepoint.methods.wrappers.flat import added, difference

    class Outer(NamedTuple):
        x: np.ndarray
        y: np.ndarray
        inner: Pair
        k: int

    state = Outer(np.arange(2.0), np.arange(3.0), Pair(np.arange(2.0) + 5, np.arange(3.0) + 7), 4)
    weights = (2.0, 0.0, 3.0, 1.0)
    flat, size = difference(state, Outer(*(0.0 * state.x, 0.0 * state.y), Pair(np.zeros(2), np.zeros(3)), 0), weights)
    np.testing.assert_array_equal(flat, [0, 2, 15, 18, 7, 8, 9, 0, 1, 2])  # the array without a weight is last
    assert size == 7
    again = added(state, flat, weights)
    assert again.k == 4
    np.testing.assert_allclose(again.x, 2.0 * state.x, rtol=1e-15)
    np.testing.assert_allclose(again.inner.x, 2.0 * state.inner.x, rtol=1e-15)
    np.testing.assert_array_equal(again.inner.y, 2.0 * state.inner.y)
    np.testing.assert_array_equal(again.y, 2.0 * state.y)


def test_states_with_other_arrays_leave_no_reference_cycle():
    from saddlepoint.ground.states import with_arrays

    array = np.zeros(3)
    alive = weakref.ref(array)
    gc.disable()
    try:
        with_arrays(Pair(np.ones(3), np.ones(3)), iter([array, np.zeros(3)]))
        del array
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("most", [0, 20])
def test_anderson_keeps_one_state_for_each_step_of_its_window_where_memory_is_short(most, monkeypatch):
    monkeypatch.setattr(ANDERSON, "ROOM", 0)
    monkeypatch.setattr(ANDERSON, "MOST", most)
    m, n, window = 20_000, 10_000, 15
    A = sparse.random_array((m, n), density=5e-4, rng=np.random.default_rng(0), format="csr")
    f = sp.Saddle(sp.LogCosh(l2=0.01), sp.LogCosh(l2=0.01), A)
    state = sp.CondatVu().init(f, np.ones(m), np.ones(n))
    size = sum(array.nbytes for array in state)
    method = sp.Anderson(sp.CondatVu(), window)
    f.norm  # noqa: B018 - estimated before memory is measured
    gc.disable()
    tracemalloc.start()
    try:
        run = method.init(f, np.ones(m), np.ones(n))
        for _ in range(window + 1):
            run = method.step(f, run)
        assert kept(run.memory).full
        assert run.failures == 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.enable()
    assert peak < (window + 9) * size


def test_short_windows_move_like_a_qr_factorisation():
    """Both memories give the same steps, where the last entry of a state has no weight and a plain step is between."""
    rng = np.random.default_rng(5)
    r = rng.standard_normal(9)
    memories = Factored.empty(4, r), Gram.empty(4, r)
    for k in range(4):
        r = 0.7 * r + 0.1 * rng.standard_normal(9)
        memories = tuple(memory.with_residual(r, 8, float(np.linalg.norm(r[:8]))) for memory in memories)
        if k not in (0, 2):
            (first, one), (second, other) = (memory.mixed() for memory in memories)
            memories = one, other
            np.testing.assert_allclose(second, first, rtol=1e-9)
    assert memories[1].with_residual(r + 1.0, 8, 1.0).with_residual(r, 8, 1.0) is None  # there is no room


def test_the_rows_that_anderson_remembers_stay_orthonormal():
    """Residuals that lie almost in the span of earlier ones: one orthogonalisation would leave much of these."""
    rng = np.random.default_rng(0)
    decay, r = np.geomspace(1e-9, 1.0, 40), rng.standard_normal(40)
    memory = Factored.empty(40, r)
    for _ in range(30):
        r = (1.0 - decay) * r
        memory = memory.with_residual(r, 40, float(np.linalg.norm(r)))
    Q = memory.Q.matrix
    assert len(Q) > 8
    np.testing.assert_allclose(Q @ Q.T, np.eye(len(Q)), atol=1e-12)


def windowed(columns, window):
    """A window with residuals whose changes are the columns, and the same as plain lists."""
    rng = np.random.default_rng(0)
    r, T = rng.standard_normal(9), rng.standard_normal(9)
    memory, changes, outputs = Window.empty(window, r), [], []
    memory = memory.with_residual(r, 7, T)
    for column in columns:
        change = rng.standard_normal(9)
        memory = memory.with_residual(memory.r + column, 7, change)
        changes, outputs = [*changes, column], [*outputs, change]
    return memory, np.array(changes), np.array(outputs)


def test_a_window_minimises_over_its_latest_steps():
    rng = np.random.default_rng(1)
    memory, changes, outputs = windowed(rng.standard_normal((5, 9)), 6)
    c = np.linalg.lstsq(changes[:, :7].T, memory.r[:7], rcond=None)[0]
    np.testing.assert_allclose(memory.mixed(), -c @ outputs, rtol=1e-9)
    memory, changes, outputs = windowed(rng.standard_normal((7, 9)), 4)  # 4, then 3 + 1, then 3 + 1, then 3 + 1
    assert memory.changes.count == 4
    c = np.linalg.lstsq(changes[-4:, :7].T, memory.r[:7], rcond=None)[0]
    np.testing.assert_allclose(memory.mixed(), -c @ outputs[-4:], rtol=1e-9)


def test_a_window_with_dependent_steps_takes_the_shortest_combination(monkeypatch):
    """On a face of few dimensions the changes are soon dependent; the coefficients stay small.

    The error of the combination is the rounding of the products over RIDGE, which is therefore taken larger here.
    """
    monkeypatch.setattr(sys.modules[Window.__module__], "RIDGE", 1e-12)
    rng = np.random.default_rng(2)
    few = rng.standard_normal((2, 9))
    memory, changes, outputs = windowed(rng.standard_normal((12, 2)) @ few, 20)
    lengths = np.linalg.norm(changes[:, :7], axis=1)
    c = np.linalg.lstsq(changes[:, :7].T / lengths, memory.r[:7], rcond=1e-6)[0] / lengths
    assert np.linalg.norm(memory.mixed() + c @ outputs) <= 1e-2 * np.linalg.norm(c @ outputs)


def test_an_older_window_keeps_its_steps():
    """Steps are pure: a memory that was made before is not changed by those that follow it."""
    rng = np.random.default_rng(3)
    memory, _, _ = windowed(rng.standard_normal((4, 9)), 4)
    before = memory.mixed()
    later = memory.with_residual(memory.r + 1.0, 7, np.ones(9))
    assert later.changes.count == 4
    np.testing.assert_array_equal(memory.mixed(), before)


def test_a_window_of_one_keeps_one_change_and_changes_of_zero_length_mix_to_zero():
    memory, _, _ = windowed(np.ones((3, 9)), 1)
    assert memory.changes.count == 1
    zero, _, _ = windowed(np.zeros((3, 9)), 5)
    np.testing.assert_array_equal(zero.mixed(), np.zeros(9))
