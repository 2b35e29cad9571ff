"""A in shards: the same answers, one communication round in each step, and x stays on the workers."""

import json
import os
import pickle
import signal
import threading
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest
from cases import CASES
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tiers import slow_except
from typer.testing import CliRunner

import saddlepoint as sp
from saddlepoint.commands.app import app
from saddlepoint.ground.arrays import to_host
from saddlepoint.ground.linalg import norm
from saddlepoint.methods.registry import make_method, method_names
from saddlepoint.parts.coupling import DenseCoupling, SparseCoupling
from saddlepoint.parts.coupling.streamed import StoredRows
from saddlepoint.parts.functions.risk import Risk
from saddlepoint.parts.functions.softplus import Softplus
from saddlepoint.parts.sharded import LocalEngine, Sharded, ShardedCoupling, ShardsLost
from saddlepoint.parts.sharded.functions import ShardedRisk
from saddlepoint.parts.sharded.shard_program import fold, joined, total
from saddlepoint.problems.files.arrays import split_reference
from saddlepoint.problems.files.stores import open_store
from saddlepoint.solving.auto import choose
from saddlepoint.solving.result import Status

M, N = 60, 12
RNG = np.random.default_rng(7)
A = RNG.standard_normal((M, N)) / 3.0
B, C, D = RNG.standard_normal(M), RNG.standard_normal(N), np.linspace(1.0, 4.0, M)
ON_SHARDS = [name for name in method_names() if not make_method(name).needs.matrix]


def diagonal():
    return sp.Quadratic(D, B)


def sharded_problem(g=None, shards=4, matrix=A, engine=LocalEngine, **options):
    made = engine(matrix, shards, **options)
    return sp.Saddle(diagonal() if g is None else g, sp.Quadratic(1.0, C), ShardedCoupling(made)), made


def plain_problem(g=None, matrix=A):
    return sp.Saddle(diagonal() if g is None else g, sp.Quadratic(1.0, C), matrix)


# -- the reduction tree ------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(1, 7), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_who_holds_the_shards(shards, workers, random):
    answers = {
        k: [np.array([random.uniform(-1, 1) * 10.0 ** random.randint(-9, 9)]), np.array([k])] for k in range(shards)
    }
    reductions = ("sum", "max")
    alone = total([fold(answers, reductions, shards)], reductions, shards)
    owner = [random.randrange(workers) for _ in range(shards)]
    pieces = [fold({k: a for k, a in answers.items() if owner[k] == w}, reductions, shards) for w in range(workers)]
    again = total([joined(pieces[:2], reductions, shards), *pieces[2:]], reductions, shards)
    assert again[0] == alone[0]
    assert again[1] == shards - 1


def test_adjacent_pieces_are_added_into_one():
    answers = {k: [np.ones(3)] for k in range(8, 16)}
    (piece,) = fold(answers, ("sum",), 16).items()
    assert piece[0] == (8, 16)
    assert (piece[1][0] == 8.0).all()


# -- the same answers --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_SHARDS)
def test_every_method_finds_the_same_point(name):
    f, _ = sharded_problem()
    plain = sp.solve(plain_problem(), method=name, tol=1e-7)
    found = sp.solve(f, method=name, tol=1e-7)
    assert found.solved
    assert isinstance(found.x, np.ndarray)
    assert np.abs(found.x - plain.x).max() <= 2e-7
    if not isinstance(make_method(name), sp.Preconditioned):  # it reads entries, which shards do not show
        # The steps of agraal are as long as its last gradients say, so that rounding moves the certificate of its end.
        assert abs(found.iterations - plain.iterations) <= (10 if name == "agraal" else 1)
        assert found.calls == plain.calls or found.iterations != plain.iterations


@pytest.mark.parametrize("name", ["lpd-gs", "condat-vu", "extragradient", "aipfb", "apdg"])
def test_one_shard_is_numpy_to_the_bit(name):
    f, _ = sharded_problem(sp.Huber(t=B, l2=0.5) + 2.0 * diagonal(), shards=1)
    found = sp.solve(f, method=name)
    plain = sp.solve(plain_problem(sp.Huber(t=B, l2=0.5) + 2.0 * diagonal()), method=name)
    assert (found.x == plain.x).all()
    assert (found.y == plain.y).all()
    assert (found.certificate.Fx, found.certificate.Fy) == (plain.certificate.Fx, plain.certificate.Fy)


def test_threads_change_no_bit():
    results, before = [], threading.active_count()
    for workers in (1, 2, 3):
        f, engine = sharded_problem(shards=8, workers=workers)
        results.append(sp.solve(f, method="condat-vu"))
        engine.close()
    assert all((r.x == results[0].x).all() for r in results)
    assert threading.active_count() <= before


SEPARABLE = {
    name: f
    for name, make in CASES.items()
    for f in [make()]
    if f.g.restrict is not None and isinstance(f.A, DenseCoupling | SparseCoupling)
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SEPARABLE)
def test_difficult_problems_are_solved_in_shards(name):
    f = SEPARABLE[name]
    engine = LocalEngine(f.A.A, min(3, f.shape[0]))
    found = sp.solve(sp.Saddle(f.g, f.h, ShardedCoupling(engine)), tol=1e-6)
    assert found.solved, found.message
    plain = f.certificate(found.x, found.y)
    assert plain.distance <= 1e-6 * (1.0 + 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_dtypes_and_sparse_rows_are_kept(kind, dtype):
    g, h = sp.Quadratic(D.astype(dtype), B.astype(dtype)), sp.Quadratic(1.0, C.astype(dtype))
    f = sp.Saddle(g, h, ShardedCoupling(LocalEngine(kind(A.astype(dtype)), 5)))
    found = sp.solve(f, tol=1e-4)
    assert found.solved
    assert found.x.dtype == found.y.dtype == dtype
    assert sp.Saddle(g, h, A.astype(dtype)).certificate(found.x, found.y).distance <= 1.1e-4


def test_a_start_of_the_caller_is_used():
    f, _ = sharded_problem()
    near = sp.solve(plain_problem(), tol=1e-10)
    found = sp.solve(f, near.x, near.y, tol=1e-8)
    assert found.iterations == 0
    assert f.certificate(near.x, near.y).distance == pytest.approx(plain_problem().certificate(near.x, near.y).distance)


# -- what is communicated ----------------------------------------------------------------------------------------------

ROUNDS = {"lpd-gs": 1, "condat-vu": 1, "lpd": 1, "apdg": 1, "ogda": 1, "extragradient": 2, "jst": 2, "ag-eg": 2}


@pytest.mark.parametrize("name", ROUNDS)
def test_a_step_moves_n_numbers_each_way_in_each_round(name):
    f, engine = sharded_problem()
    method = make_method(name)
    view = method.normal_form(f)
    state = method.init(view.problem, *view.to(f.space.of_x.zeros(M), np.zeros(N)))
    for _ in range(3):
        state = method.step(view.problem, state)
    before = engine.rounds, engine.sent, engine.received, engine.gathered
    for _ in range(10):
        state = method.step(view.problem, state)
    steps = 10 * ROUNDS[name]
    assert (engine.rounds, engine.sent, engine.received) == tuple(
        now + steps * numbers for now, numbers in zip(before, (1, 8 * N, 8 * N), strict=False)
    )
    assert engine.gathered == before[3]


def test_a_certificate_takes_two_rounds():
    f, engine = sharded_problem()
    x, y = f.space.of_x.full(M, 1.0), np.ones(N)
    f.certificate(x, y)
    before = engine.rounds
    f.certificate(2.0 * x, y)
    assert engine.rounds - before == 2


def test_x_is_gathered_once_and_shards_delete_vectors_without_references():
    held = []

    class Watched(LocalEngine):
        def _round(self, program, broadcast):
            answers = super()._round(program, broadcast)
            held.append(len(self.workers[0].stores[0]))
            return answers

    f, engine = sharded_problem(engine=Watched)
    assert sp.solve(f, method="lpd-gs", tol=1e-9).iterations > 50
    assert engine.gathered == 8 * M
    assert max(held) <= 24  # the state, the best point, and what a certificate needs


@pytest.mark.slow
def test_vectors_that_no_round_needs_are_computed_before_their_programs_grow():
    f, engine = sharded_problem()
    x = mean = f.space.of_x.full(M, 1.0)
    for k in range(3000):  # more steps than Python can recurse, if sums were not evaluated in between
        x = 0.5 * x + f.A.mul(np.ones(N))
        mean = mean + (1.0 / (k + 2.0)) * (x - mean)
        f.A.tmul(x)
    assert np.isfinite(np.asarray(mean)).all()
    assert engine.gathered == 8 * M


# -- vectors -----------------------------------------------------------------------------------------------------------

VECTORS = st.lists(st.floats(-1e3, 1e3), min_size=M, max_size=M).map(np.array)


@given(VECTORS, VECTORS, st.floats(-10, 10))
def test_arithmetic_is_that_of_numpy(a, b, c):
    f, _ = sharded_problem()
    u, v = f.space.of_x.cast(a), f.space.of_x.cast(b)
    for made, expected in (
        (c * u - v, c * a - b),
        (-(u + c * v) * 2.0, -(a + c * b) * 2.0),
        (u * v - 0.0, a * b),
        (u / 3.0, a / 3.0),
        (0.0 + u, a),
        (0.0 - u, -a),
        (sum([u, v]), a + b),
    ):
        assert (np.asarray(made) == expected).all()
    assert u @ v == pytest.approx(a @ b, rel=1e-12, abs=1e-12 * np.linalg.norm(a) * np.linalg.norm(b))
    assert norm(u) == pytest.approx(np.linalg.norm(a), rel=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_norms_whose_squares_are_no_numbers_are_accurate(scale):
    f, _ = sharded_problem()
    assert norm(f.space.of_x.cast(scale * B)) == pytest.approx(scale * np.linalg.norm(B), rel=1e-12)


@pytest.mark.parametrize(
    "asked", [lambda x: x[0], lambda x: x + B, lambda x: B @ x, lambda x: x @ B, lambda x: B * x, lambda x: x / x]
)
def test_what_needs_x_in_one_place_is_refused_in_a_sentence(asked):
    f, _ = sharded_problem()
    with pytest.raises(sp.ProblemError, match="but x is split over 4 shards; use auto, lpd-gs"):
        asked(f.space.of_x.full(M, 1.0))


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (lambda: sharded_problem(sp.Quadratic(np.eye(M))), "g is a Quadratic that couples x in different shards"),
        (lambda: sharded_problem(sp.Huber(np.eye(M), l2=1.0)), "a sum of functions of single coordinates"),
        (lambda: sharded_problem(sp.Smooth(lambda x: x, mu=1.0, L=1.0)), "or a Smooth with restrict="),
        (lambda: sharded_problem(sp.Quadratic(1.0, np.ones(3))), "g has 3 variables but A has 60 rows"),
        (
            lambda: sp.solve(sharded_problem()[0], method="newton"),
            "newton needs A as one .* but A is in 4 shards; use .* auto, dippa, krylov, lpd-gs, ",
        ),
        (lambda: sp.solve(sharded_problem()[0], method="direct"), "direct needs A as one"),
        (lambda: sp.solve(sharded_problem()[0], storage="float32"), "storage needs the entries of A"),
        (lambda: sharded_problem(shards=M + 1), "shards is 61, and A has 60 rows; expected at most 60 shards"),
        (lambda: sharded_problem(shards=0), "shards is 0"),
        (lambda: sp.check(sharded_problem()[0]), "check needs all of x in one place"),
        (lambda: pickle.dumps(sharded_problem()[0]), "can neither be pickled nor copied"),
        (lambda: sp.Smooth(lambda x: x, mu=1.0, L=1.0, restrict=3), "restrict of Smooth is 3; expected a function"),
    ],
)
def test_what_shards_cannot_do_is_refused_in_a_sentence(broken, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        broken()


# -- functions ---------------------------------------------------------------------------------------------------------

FUNCTIONS = {
    "number": sp.Quadratic(2.0, B),
    "diagonal": sp.Quadratic(D),
    "huber": sp.Huber(t=B, l2=0.1, delta=0.3),
    "log-cosh": sp.LogCosh(t=B, l2=0.1),
    "entropy": sp.Entropy(),
    "sum": 0.5 * sp.Huber(l2=0.2) + sp.Quadratic(1.0, B),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parts_are_the_function_on_their_coordinates(name):
    g, x = FUNCTIONS[name], RNG.standard_normal(M)
    rows = [slice(0, 25), slice(25, 26), slice(26, M)]
    assert (np.concatenate([g.restrict(r).grad(x[r]) for r in rows]) == g.grad(x)).all()
    assert sum(g.restrict(r)(x[r]) for r in rows) == pytest.approx(g(x))
    if g.has_prox:
        assert np.concatenate([g.restrict(r).prox(x[r], 0.7) for r in rows]) == pytest.approx(g.prox(x, 0.7), rel=1e-13)
    f, _ = sharded_problem(g)
    assert f.g(x) == pytest.approx(g(x))


def box(mu, L):
    return sp.Smooth(
        lambda x: D * x + B, mu=mu, L=L, restrict=lambda r: sp.Smooth(lambda x: D[r] * x + B[r], mu=mu, L=L)
    )


@pytest.mark.parametrize(("mu", "L", "wrong"), [(2.0, 4.0, "mu of g is too large"), (1.0, 2.0, "L of g is too small")])
def test_a_black_box_in_parts_is_checked(mu, L, wrong):
    with pytest.raises(sp.AssumptionError, match=wrong):
        sp.solve(sharded_problem(box(mu, L))[0], method="lpd-gs")


@pytest.mark.slow
@pytest.mark.parametrize("L", [4.0, None])
def test_a_black_box_in_parts_is_solved(L):
    assert sp.solve(sharded_problem(box(1.0, L))[0], tol=1e-8).solved


def test_a_gradient_that_is_not_finite_ends_the_run():
    g = sp.Smooth(
        lambda x: D * x + B,
        mu=1.0,
        L=4.0,
        trusted=True,
        restrict=lambda r: sp.Smooth(lambda x: np.where(abs(x) > 0.0, np.nan, D[r] * x + B[r]), mu=1.0, L=4.0),
    )
    assert sp.solve(sharded_problem(g)[0], method="lpd-gs").status is Status.DIVERGED


def test_a_risk_over_shards_is_that_of_numpy_and_takes_one_round():
    t, y = RNG.standard_normal(M), RNG.standard_normal(N)
    data = ShardedCoupling(LocalEngine(A, 4))
    gram = np.linalg.eigvalsh(A.T @ A)[[0, -1]]
    loss = ShardedRisk(
        sp.Huber(t=t), data.library, scale=1.0 / M, l2=0.2, curvature=(0.0, 1.0), gram=(float(gram[0]), float(gram[1]))
    )
    plain = sp.Huber(A, t, 0.2)
    before = data.engine.rounds
    assert loss.grad(y) == pytest.approx(plain.grad(y), rel=1e-12)
    assert data.engine.rounds == before + 1
    assert loss(y) == pytest.approx(plain(y))
    assert (loss.mu, loss.L) == pytest.approx((plain.mu, plain.L))


class PseudoHuber(Risk):
    """mean_i importance_i scale^2 (sqrt(1 + (r_i/scale)^2) - 1), with parameters that no ready-made loss has."""

    _by_row = ("t", "importance")

    def __init__(self, D, t, importance, scale):
        self.importance, self.scale = importance, scale
        super().__init__(D, t, 0.1, curvature=(0.0, 1.0))

    def _loss(self, r):
        return self.importance * self.scale**2 * (np.sqrt(1.0 + (r / self.scale) ** 2) - 1.0)

    def _slope(self, r):
        return self.importance * r / np.sqrt(1.0 + (r / self.scale) ** 2)

    def _second_derivative(self, r):
        return self.importance * (1.0 + (r / self.scale) ** 2) ** -1.5


LOSSES = {
    "of one's own": lambda data: PseudoHuber(data, B, np.linspace(0.0, 1.0, M), 0.5),
    "softplus": lambda data: Softplus(data, B),
    "logistic": lambda data: sp.Logistic(data, np.sign(B), l2=0.1),
    "hinge": lambda data: sp.SmoothedHinge(data, np.sign(B), l2=0.1, width=0.5),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_parameters_of_a_loss_reach_the_shards(name):
    y = RNG.standard_normal(N)
    spread, plain = LOSSES[name](ShardedCoupling(LocalEngine(A, 4))), LOSSES[name](A)
    assert spread.grad(y) == pytest.approx(plain.grad(y), rel=1e-12)
    assert spread(y) == pytest.approx(plain(y))


# -- runs that are interrupted and continued ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", slow_except(["lpd-gs", "anderson-condat-vu", "krylov", "catalyst-dippa"], "lpd-gs"))
def test_a_run_goes_on_to_the_same_bits(name, tmp_path):
    file = tmp_path / "run"
    through = sp.solve(sharded_problem()[0], method=name, tol=1e-9)
    cut = sp.solve(sharded_problem()[0], method=name, tol=1e-9, max_calls=20, checkpoint=file)
    assert not cut.solved
    found = sp.solve(sharded_problem()[0], method=name, tol=1e-9, checkpoint=file)
    assert found.provenance["resumed"] == 1
    assert (found.x == through.x).all()
    assert found.calls == through.calls


def test_a_run_goes_on_with_another_number_of_shards(tmp_path):
    file = tmp_path / "run"
    sp.solve(sharded_problem(shards=4)[0], method="lpd-gs", tol=1e-9, max_calls=20, checkpoint=file)
    found = sp.solve(sharded_problem(shards=7)[0], method="lpd-gs", tol=1e-9, checkpoint=file)
    assert found.solved
    with pytest.raises(sp.ProblemError, match="is of a problem in numpy float64 in shards, and this one is in numpy"):
        sp.solve(plain_problem(), method="lpd-gs", tol=1e-9, checkpoint=file)


class FailingEngine(LocalEngine):
    """An engine that loses all its shards after some rounds."""

    fragile = True
    end = 10**9

    def _round(self, program, broadcast):
        if self.rounds >= self.end:
            raise ShardsLost("all workers are gone")
        return super()._round(program, broadcast)

    def _gather(self, name):
        if self.rounds >= self.end:
            raise ShardsLost("all workers are gone")
        return super()._gather(name)


def test_when_all_shards_are_lost_the_best_point_is_returned(tmp_path):
    file = tmp_path / "run"
    f, engine = sharded_problem(engine=FailingEngine)
    f.norm  # noqa: B018 - estimated before the end
    engine.end = engine.rounds + 60
    found = sp.solve(f, method="lpd-gs", tol=1e-9, checkpoint=file)
    assert found.status is Status.INTERRUPTED
    assert "all workers are gone" in found.message
    assert found.certificate.distance < 1.0
    assert plain_problem().certificate(found.x, found.y).distance == pytest.approx(found.certificate.distance)
    again = sp.solve(sharded_problem()[0], method="lpd-gs", tol=1e-9, checkpoint=file)
    assert again.solved
    assert again.history[0].distance > again.certificate.distance
    assert again.iterations > found.iterations


def test_shards_that_are_lost_before_anything_is_known_end_in_an_error():
    f, engine = sharded_problem(engine=FailingEngine)
    f.norm  # noqa: B018
    engine.end = engine.rounds
    with pytest.raises(ShardsLost, match="all workers are gone"):
        sp.solve(f, method="lpd-gs")


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_waits_for_the_end_of_a_round(tmp_path):
    calls = []

    def gradient(x, rows):
        calls.append(rows)
        if len(calls) == 150:
            os.kill(os.getpid(), signal.SIGINT)
        return D[rows] * x + B[rows]

    def part(rows):
        return sp.Smooth(lambda x: gradient(x, rows), mu=1.0, L=4.0)

    g = sp.Smooth(lambda x: D * x + B, mu=1.0, L=4.0, restrict=part, trusted=True)
    found = sp.solve(sharded_problem(g)[0], method="lpd-gs", tol=1e-12, checkpoint=tmp_path / "run")
    assert found.status is Status.INTERRUPTED
    assert len(calls) % 4 == 0  # the round came to its end on all shards
    again = sp.solve(sharded_problem(g)[0], method="lpd-gs", tol=1e-9, checkpoint=tmp_path / "run")
    assert again.solved


def test_an_exception_of_a_shard_has_the_best_point():
    calls = []

    def gradient(x, rows):
        calls.append(rows)
        if len(calls) > 150:
            raise ArithmeticError("no more")
        return D[rows] * x + B[rows]

    part = lambda rows: sp.Smooth(lambda x: gradient(x, rows), mu=1.0, L=4.0)  # noqa: E731
    g = sp.Smooth(lambda x: D * x + B, mu=1.0, L=4.0, restrict=part, trusted=True)
    with pytest.raises(ArithmeticError, match="no more") as caught:
        sp.solve(sharded_problem(g)[0], method="lpd-gs", tol=1e-12)
    assert caught.value.result.certificate.distance < 100.0
    assert isinstance(caught.value.result.x, np.ndarray)


# -- auto --------------------------------------------------------------------------------------------------------------


def test_auto_saves_rounds_or_passes():
    engine = LocalEngine(RNG.standard_normal((M, 40)) / 8.0, 4)
    f = sp.Saddle(diagonal(), sp.Quadratic(1.0), ShardedCoupling(engine))
    assert choose(f).methods[0].label == "lpd-gs"
    engine.latency = 1e-12
    assert choose(f).methods[0].label == "anderson-condat-vu"
    assert choose(f).methods[-1].label == "lpd-gs"


# -- the command line --------------------------------------------------------------------------------------------------

PROBLEM = """A = {A}
[g]
kind = "quadratic"
P = {P}
b = "b.npy"
[h]
kind = "quadratic"
P = 1.0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "b.npy", B)
    np.save(tmp_path / "integers.npy", np.ones((M, 2), dtype=int))
    np.save(tmp_path / "P.npy", np.eye(M))
    np.save(tmp_path / "columns.npy", np.asfortranarray(A))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "A.npy").read_bytes()[:-8])
    np.save(tmp_path / "empty.npy", np.ones((0, 2)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command_line(folder, *arguments, A='"A.npy"', P="1.0"):
    (folder / "p.toml").write_text(PROBLEM.format(A=A, P=P))
    return CliRunner().invoke(app, ["solve", "p.toml", *arguments])


def test_the_local_engine_makes_the_same_calls_on_the_command_line(folder):
    before = threading.active_count()
    plain, split = (command_line(folder, "--method", "lpd-gs", "--json", *more) for more in ((), ("--workers", "2")))
    assert plain.exit_code == split.exit_code == 0
    left, right = (json.loads(done.stdout) for done in (plain, split))
    assert left["calls"] == right["calls"]
    assert threading.active_count() <= before


@pytest.fixture
def stores(folder):
    """The same rows in other kinds of files."""
    import h5py
    import pyarrow
    import pyarrow.parquet
    import zarr
    from scipy.io import mmwrite
    from scipy.sparse import coo_array

    zarr.save(str(folder / "A.zarr"), A)
    with h5py.File(folder / "A.h5", "w") as file:
        file.create_dataset("A", data=A, chunks=(7, A.shape[1]))
    table = pyarrow.table({f"c{j}": A[:, j] for j in range(A.shape[1])})
    pyarrow.parquet.write_table(table, folder / "A.parquet", row_group_size=11)
    (folder / "blocks").mkdir()
    for k, rows in enumerate(np.array_split(A, 5)):
        np.save(folder / "blocks" / f"{k}.npy", rows)
    (folder / "texts").mkdir()
    for k, rows in enumerate(np.array_split(A, 3)):
        mmwrite(folder / "texts" / f"{k}.mtx", coo_array(rows), precision=17)
    mmwrite(folder / "A.mtx", coo_array(A), precision=17)
    return folder


KINDS = ("A.zarr", "A.h5:A", "A.parquet", "blocks", "texts")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "A.mtx"])
@pytest.mark.parametrize("engine", ["local", pytest.param("dask", marks=pytest.mark.cluster)])
def test_engines_take_a_from_other_files(kind, engine, stores):
    if engine == "dask" and kind not in ("A.zarr", "A.mtx"):
        pytest.skip("a cluster of its own for each kind takes long, and their rows are read alike")
    given = ("--method", "lpd-gs", "--json", "--engine", engine, "--workers", "1")
    done = command_line(stores, *given, A=f'"{kind}"')
    assert done.exit_code == 0, done.output
    plain = command_line(stores, "--method", "lpd-gs", "--json")
    left, right = (json.loads(found.stdout) for found in (done, plain))
    assert left["calls"] == right["calls"]
    assert left["provenance"]["coupling"] == "ShardedCoupling"


@pytest.mark.slow
def test_rows_of_a_store_are_those_of_the_array(stores):
    for kind in KINDS:
        rows = StoredRows(open_store(*split_reference(kind, stores))[0])
        assert rows.shape == A.shape
        for start, stop in ((0, M), (5, 6), (17, 52), (59, 60)):
            found = rows[start:stop]
            np.testing.assert_array_equal(found.toarray() if hasattr(found, "toarray") else found, A[start:stop])
        bounds = rows.bounds(4)
        assert bounds[0] == 0
        assert bounds[-1] == M
        assert sorted({*bounds}) == bounds


@pytest.mark.slow
def test_little_is_read_beyond_the_rows(stores, monkeypatch):
    for kind, unit in (("A.npy", 1), ("A.h5:A", 7), ("A.parquet", 11), ("blocks", 1)):  # rows that are stored together
        store = open_store(*split_reference(kind, stores))[0]
        rows, seen, opened = StoredRows(store), [], store.opened

        @contextmanager
        def counted(opened=opened, seen=seen):
            with opened() as read:
                yield lambda block, into: (seen.append(block.last - block.first), read(block, into))[1]

        monkeypatch.setattr(store, "opened", counted)
        for start, stop in ((0, 40), (13, 53)):
            seen.clear()
            rows[start:stop]
            assert stop - start <= sum(seen) <= 1.25 * (stop - start) + 2 * unit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "given", "sentence"),
    [
        (("--engine", "mqi"), {}, "expected one of local, dask, mpi; did you mean 'mpi'?"),
        (("--scheduler", "tcp://here:1"), {}, "a scheduler was given with the engine local; expected --engine dask"),
        (("--engine", "dask", "--tls-ca", "a.pem"), {}, "three files: --tls-ca, --tls-cert and --tls-key"),
        (("--workers", "0"), {}, "workers is 0"),
        (("--workers", "2"), {"A": '"b.npy"'}, "A has shape (60,); expected a matrix"),
        (
            ("--workers", "2"),
            {"A": '"integers.npy"'},
            "integers.npy has dtype int64; expected float32 or float64",
        ),
        (("--workers", "2"), {"A": '"cut.npy"'}, "declares 5760 bytes of data (shape (60, 12)) but holds 5752"),
        (("--workers", "2"), {"A": '"empty.npy"'}, "A has shape (0, 2); expected a matrix"),
        (
            ("--workers", "2"),
            {"A": '{stream = "A.npy", norm = 2.0}'},
            "key 'A.norm' is for an A that is read from disk",
        ),
        (("--workers", "2"), {"A": '{stream = "columns.npy"}'}, "key 'A' is stored by columns; expected rows"),
        (("--workers", "2"), {"A": '"none.zarr"'}, "none.zarr does not exist"),
        (("--engine", "dask"), {"A": '"none.mtx"'}, "none.mtx does not exist"),
        (("--workers", "2"), {"P": '"P.npy"'}, "couples x in different shards"),
        (("--workers", "2", "--method", "newton"), {}, "newton needs A as one"),
    ],
)
def test_invalid_engines_are_refused_in_a_sentence(arguments, given, sentence, folder):
    done = command_line(folder, *arguments, **given)
    assert isinstance(done.exception, sp.ProblemError)
    assert sentence in str(done.exception)


def test_a_vector_says_how_it_is_split():
    f, _ = sharded_problem()
    x = f.space.of_x.zeros(M)
    assert isinstance(x, Sharded)
    assert repr(x) == "Sharded(60 numbers, float64, 4 shards)"
    assert x.nbytes == 8 * M


# -- the rounding of products ------------------------------------------------------------------------------------------


def test_products_in_twice_the_digits_over_shards_are_within_their_bounds():
    """A long column of equal entries: both products of the shards are within their bounds, which are tiny."""
    rows, columns = 4000, 3
    matrix = np.full((rows, columns), 0.1)
    f = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), ShardedCoupling(LocalEngine(matrix, 5)))
    entry = Fraction(0.1)
    x, y = np.ones(rows), np.array([1.0, -1.0 + 2.0**-30, 1e-9])
    found = f.A.T.compensated_mul(f.space.of_x.cast(x))
    assert max(
        abs(Fraction(a) + Fraction(b) - rows * entry) for a, b in zip(found.hi, found.lo, strict=True)
    ) <= Fraction(found.error.max())
    assert found.error.max() <= 1e-16 * rows
    hi, lo, error = (to_host(part) for part in f.A.compensated_mul(y))
    true = entry * sum(map(Fraction, y))
    assert abs(Fraction(hi[0]) + Fraction(lo[0]) - true) <= Fraction(error[0]) <= Fraction(1e-16)
    whole = np.abs(matrix) @ np.abs(y), np.abs(matrix.T) @ np.abs(x)
    assert np.linalg.norm(whole[0]) <= f.A.rounding_scale(y)
    assert np.linalg.norm(whole[1]) <= f.A.T.rounding_scale(f.space.of_x.cast(x))


def test_certificates_over_shards_are_those_of_numpy():
    rng = np.random.default_rng(0)
    matrix, b = rng.standard_normal((60, 7)), rng.standard_normal(60)
    h = sp.Quadratic(1.0)
    f = sp.Saddle(sp.Quadratic(1.0, b), h, ShardedCoupling(LocalEngine(matrix, 3)))
    plain = sp.Saddle(sp.Quadratic(1.0, b), h, matrix)
    found = sp.solve(plain, tol=1e-13, method="direct")
    x = f.space.of_x.cast(found.x)
    for tol in (1.0, None):
        sharded, own = f.certificate(x, found.y, tol), plain.certificate(found.x, found.y, tol)
        assert sharded.distance == pytest.approx(own.distance, abs=2 * max(own.rounding, sharded.rounding))
        assert sharded.rounding <= 30 * own.rounding
    assert f.certificate(x, found.y).rounding < 0.5 * f.certificate(x, found.y, 1.0).rounding


def test_a_claimed_mu_of_a_ready_function_in_parts_is_checked():
    g = sp.Quadratic(np.geomspace(0.01, 1.0, M), B, mu=0.1)
    with pytest.raises(sp.AssumptionError, match="mu of g is too large"):
        sp.solve(sharded_problem(g)[0])
