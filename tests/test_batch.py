"""Many problems in one call: each of them is solved and has its own certificate."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from libraries import in_every_library, in_library, jax
from reference import distance, saddle_point
from scipy import sparse
from tiers import slow_except

import saddlepoint as sp
from saddlepoint.ground.arrays import is_foreign, to_host
from saddlepoint.problems.generators import random_quadratic
from saddlepoint.solving import stepper
from saddlepoint.uses.batch import Batch, direct, solve_many
from saddlepoint.uses.batch import groups as grouping
from saddlepoint.uses.batch.coupling import BatchedCoupling

M, N, ROWS = 6, 4, 9
TOGETHER = "solved together"


def made(kind, seed):
    """A function of M variables of that kind, with a mu of its own."""
    rng = np.random.default_rng(seed)
    mu = 10.0 ** rng.uniform(-1.5, 0.0)
    D, t = rng.standard_normal((ROWS, M)), rng.standard_normal(ROWS)
    labels = np.where(t > 0, 1.0, -1.0)
    c = rng.standard_normal(M)
    basis, _ = np.linalg.qr(rng.standard_normal((M, M)))
    P = (basis * np.geomspace(mu, 2.0, M)) @ basis.T
    return {
        "number": lambda: sp.Quadratic(mu, c),
        "no b": lambda: sp.Quadratic(np.geomspace(mu, 1.0, M), None if seed % 2 else c),
        "number or diagonal": lambda: sp.Quadratic(mu if seed % 2 else np.geomspace(mu, 1.0, M), c),
        "matrix": lambda: sp.Quadratic((P + P.T) / 2, c),
        "least squares": lambda: sp.LeastSquares(D, t, mu),
        "logistic": lambda: sp.Logistic(D, labels, mu),
        "hinge": lambda: sp.SmoothedHinge(D, labels, mu, width=0.5),
        "huber": lambda: sp.Huber(D, t, mu, delta=0.3),
        "separable huber": lambda: sp.Huber(t=c, l2=mu),
        "log-cosh": lambda: sp.LogCosh(D, None if seed % 2 else t, mu),
        "separable log-cosh": lambda: sp.LogCosh(l2=mu),
        "same l2": lambda: sp.LogCosh(D, t, 0.2),
        "log-sum-exp": lambda: sp.LogSumExp(D, t, mu, tau=0.5 + mu),
        "separable log-sum-exp": lambda: sp.LogSumExp(l2=mu),
        "entropy": lambda: sp.Entropy(low=0.05, high=2.0),
    }[kind]()


KINDS = ["number", "no b", "number or diagonal", "matrix", "least squares", "logistic", "hinge", "huber",
         "separable huber", "log-cosh", "separable log-cosh", "same l2", "log-sum-exp", "separable log-sum-exp",
         "entropy"]  # fmt: skip
PROX = ["number", "no b", "number or diagonal", "separable huber", "separable log-cosh"]


def problems(kind, count=5, seed=0):
    """Problems with functions of that kind for x, and quadratic ones of very different mu for y."""
    found = []
    for b in range(count):
        rng = np.random.default_rng([seed, b])
        h = sp.Quadratic(10.0 ** rng.uniform(-1, 2) * np.geomspace(0.2, 1.0, N), rng.standard_normal(N))
        found.append(sp.Saddle(made(kind, seed + b), h, rng.standard_normal((M, N))))
    return found


def check(fs, results, tol, together=True):
    """Every result is solved, certified as its problem would certify it, and as near as it says."""
    assert len(results) == len(fs)
    for f, result in zip(fs, results, strict=True):
        assert result.solved, result
        assert (TOGETHER in result.message) == together
        assert result.certificate.distance <= tol
        own = f.certificate(result.x, result.y, tol)
        # at the precision of the arithmetic the two queries differ by their rounding
        assert result.certificate.distance == pytest.approx(own.distance, rel=1e-6, abs=2 * own.rounding)
        assert result.certificate.gap == pytest.approx(own.gap, rel=1e-4, abs=1e-20)
        assert distance(result.x, result.y, *saddle_point(f)) <= result.certificate.distance


@pytest.mark.slow
@pytest.mark.parametrize("kind", slow_except(KINDS, *KINDS[::4]))
def test_every_kind_is_solved_in_a_batch(kind):
    fs = problems(kind)
    check(fs, solve_many(fs, tol=1e-8, method="lpd-gs"), 1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_the_stacked_gradient_is_the_gradient_of_each(kind):
    fs = problems(kind)
    batch = Batch.of(fs)
    x = np.random.default_rng(1).standard_normal(batch.size * M)
    expected = np.concatenate([f.g.grad(part) for f, part in zip(fs, batch.split(x), strict=True)])
    np.testing.assert_allclose(batch.unscaled.g.grad(x), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROX)
def test_methods_with_a_prox_solve_a_batch(kind):
    fs = problems(kind)
    check(fs, solve_many(fs, tol=1e-8, method=sp.CondatVu("x")), 1e-8)
    check(fs, solve_many(fs, tol=1e-8, method="apfb"), 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "condat-vu", "krylov", "dippa", "anderson-imex", "dppa", "extragradient"])
def test_every_kind_of_method_solves_a_batch(method):
    fs = problems("no b" if method in ("krylov", "dppa") else "logistic")
    check(fs, solve_many(fs, tol=1e-7, method=method), 1e-7)


def test_the_condition_numbers_of_the_whole_are_the_largest_of_the_blocks():
    fs = problems("logistic", count=8)
    whole = Batch.of(fs).problem
    largest = np.max([f.numbers for f in fs], axis=0)
    np.testing.assert_allclose(whole.numbers[:2], largest[:2], rtol=1e-12)
    assert whole.numbers[2] == pytest.approx(largest[2], rel=0.06)  # both are Lanczos bounds
    assert whole.mu_x == whole.mu_y == 1.0


@given(st.integers(0, 1000))
def test_the_whole_certifies_the_worst_block(seed):
    fs = problems("log-cosh", count=4, seed=seed)
    batch = Batch.of(fs)
    rng = np.random.default_rng(seed)
    u, v = (rng.standard_normal(size) for size in batch.problem.shape)
    x, y = batch.back(u, v)
    with mock.patch("saddlepoint.problems.residuals.ROUGH", 0.0):  # a batch has no rough bounds
        own = [f.certificate(*point) for f, *point in zip(fs, batch.split(x), batch.split(y), strict=True)]
    for found, expected in zip(batch.certificates(x, y), own, strict=True):
        assert found.rounding == pytest.approx(expected.rounding, rel=0.1)  # the functions of a batch bound it by block
        np.testing.assert_allclose(found._replace(rounding=0.0)[:-1], expected._replace(rounding=0.0)[:-1], rtol=1e-9)
        assert found.assumes == expected.assumes
    worst = batch.problem.certificate(u, v)
    assert worst.distance == pytest.approx(max(c.distance for c in own), rel=1e-9)
    # The residual of the whole batch is the root of the sum of the squares of the distances.
    assert 2**0.5 * worst.residual == pytest.approx(np.linalg.norm([c.distance for c in own]), rel=1e-9)


def test_equal_mu_leaves_the_variables_alone():
    fs = [random_quadratic(M, N, 20, 10, 5, seed=seed) for seed in range(3)]
    fs = [sp.Saddle(sp.Quadratic(f.g.P.matrix(), f.g.b, mu=0.05, L=1.0), sp.Quadratic(1.0, f.h.b), f.A) for f in fs]
    batch = Batch.of(fs)
    u, v = np.ones(3 * M), np.ones(3 * N)
    assert batch.back(u, v) == (u, v)
    check(fs, solve_many(fs, tol=1e-9, method="krylov"), 1e-9)


def test_a_batch_may_hold_one_problem():
    fs = problems("logistic", count=1)
    check(fs, solve_many(fs, tol=1e-8), 1e-8, together=False)
    check(fs, solve_many(Batch.of(fs), tol=1e-8), 1e-8)


def sparse_A(f):
    return sp.Saddle(f.g, f.h, sparse.csr_array(f.A.matrix()))


def wider(f):
    return sp.Saddle(sp.Logistic(np.eye(M + 1), np.ones(M + 1), 0.1), f.h, np.ones((M + 1, N)))


UNLIKE = {
    "shapes": lambda f: wider(f),
    "kinds": lambda f: sp.Saddle(sp.Quadratic(1.0), f.h, f.A),
    "sums": lambda f: sp.Saddle(f.g + sp.Quadratic(1.0), f.h, f.A),
    "rows of data": lambda f: sp.Saddle(sp.Logistic(np.eye(M), np.ones(M), 0.1), f.h, f.A),
    "sparse A": sparse_A,
    "sparse data": lambda f: sp.Saddle(sp.Logistic(sparse.csr_array(f.g.D.matrix()), f.g.labels, f.g.l2), f.h, f.A),
    "dtypes": lambda f: sp.Saddle(sp.Logistic(f.g.D.matrix().astype("f4"), f.g.labels.astype("f4"), f.g.l2),
                                  sp.Quadratic(1.0), f.A.matrix().astype("f4")),
    "a prepared batch": lambda f: Batch.of([f]).problem,
}  # fmt: skip


@pytest.mark.parametrize("what", UNLIKE)
def test_problems_that_differ_are_solved_one_by_one(what):
    fs = problems("logistic", count=3)
    fs[1] = UNLIKE[what](fs[1])
    results = solve_many(fs, tol=1e-4)
    assert all(result.solved and TOGETHER not in result.message for result in results)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (sp.Huber(delta=1.0, l2=1.0), sp.Huber(delta=2.0, l2=1.0)),
        (sp.Huber(l2=1.0), sp.Huber(np.eye(M), l2=1.0)),
        (sp.LogSumExp(l2=1.0), sp.LogSumExp(np.eye(M), l2=1.0)),
        (sp.LogSumExp(np.eye(M + 1)[:, :M], l2=1.0), sp.LogSumExp(np.eye(M), l2=1.0)),
        (sp.Quadratic(np.eye(M)), sp.Quadratic(1.0)),
        (sp.Entropy(0.1, 1.0), sp.Entropy(0.2, 1.0)),
    ],
)
def test_functions_of_one_kind_that_differ_are_not_stacked(first, second):
    fs = [sp.Saddle(g, sp.Quadratic(1.0), np.ones((M, N))) for g in (first, second)]
    assert Batch.of(fs) is None
    assert all(result.solved for result in solve_many(fs))


DIRECT = ["number", "no b", "number or diagonal", "matrix"]


def swapped(f):
    """The same problem with the roles of x and y exchanged, so that y has more variables than x."""
    return sp.Saddle(f.h, f.g, -f.A.matrix().T)


@pytest.mark.parametrize("kind", ["logistic", "separable huber"])
def test_groups_of_similar_problems_are_solved_together(kind, monkeypatch):
    monkeypatch.setattr(grouping, "CACHE", 0)
    monkeypatch.setattr(grouping, "LEAST", 4)
    fs = problems(kind, count=11)
    found = grouping.groups(fs)
    assert sorted(k for group in found for k in group) == list(range(11))
    assert [len(group) for group in found] == [4, 4, 3]
    hard = [[grouping.hardness(fs[k]) for k in group] for group in found]
    assert max(hard[0]) <= min(hard[1])
    assert max(hard[1]) <= min(hard[2])
    results = solve_many(fs, tol=1e-8, method="lpd-gs")
    check(fs, results, 1e-8)
    assert "worst of 4 solved together" in results[found[0][0]].message
    assert results[found[0][0]].iterations < results[found[2][0]].iterations


def test_problems_that_fit_the_cache_are_one_group(monkeypatch):
    fs = problems("logistic", count=40)
    assert grouping.matrix_bytes(fs[0]) == 8 * (M * N + ROWS * M)
    assert grouping.groups(fs) == [list(range(40))]
    monkeypatch.setattr(grouping, "CACHE", 39 * grouping.matrix_bytes(fs[0]))
    assert [len(group) for group in grouping.groups(fs)] == [20, 20]


def test_a_time_limit_holds_for_all_groups_together(monkeypatch):
    monkeypatch.setattr(grouping, "CACHE", 0)
    monkeypatch.setattr(grouping, "LEAST", 2)
    results = solve_many(problems("logistic"), tol=1e-8, method="lpd-gs", max_seconds=1e-9)
    assert {result.status for result in results} == {sp.Status.OUT_OF_TIME}


@pytest.mark.parametrize("kind", DIRECT)
@pytest.mark.parametrize("method", ["auto", "direct"])
@pytest.mark.parametrize("is_swapped", [False, True])
def test_small_quadratic_problems_are_factorised_together(kind, method, is_swapped, monkeypatch):
    monkeypatch.setattr(direct, "CHUNK", 2 * M * N)
    fs = [swapped(f) if is_swapped else f for f in problems(kind)]
    results = solve_many(fs, tol=1e-8, method=method)
    check(fs, results, 1e-8)
    fresh = sp.solve(fs[0], tol=1e-8, method="direct")
    of_matrices, expected = ({name: count - run.iterations for name, count in run.calls.items()}
                             for run in (results[0], fresh))  # fmt: skip
    assert of_matrices == expected
    assert len(results[0].history) == 0
    assert len(solve_many(fs, history=True)[0].history) == 1


def test_problems_that_the_factorisation_does_not_solve_are_solved_by_themselves():
    fs = problems("matrix")
    fs[2] = sp.Saddle(fs[2].g, sp.Quadratic(1e-9, 1e-9 * np.ones(N)), 1e-6 * fs[2].A.matrix())  # badly conditioned
    results = solve_many(fs, tol=1e-11)
    fresh = sp.solve(fs[2], tol=1e-11)
    assert [TOGETHER in result.message for result in results] == [True, True, False, True, True]
    assert results[2].status is fresh.status
    assert results[2].certificate.distance == pytest.approx(fresh.certificate.distance)


def test_a_singular_matrix_among_others_is_left_to_a_run(monkeypatch):
    fs = problems("matrix", count=4)
    exact, A = np.linalg.solve, fs[1].A.matrix()
    singular = fs[1].g.P.matrix() + A / fs[1].h.P @ A.T

    def solve(matrices, right):
        if any(np.allclose(matrix, singular) for matrix in matrices):
            raise np.linalg.LinAlgError
        return exact(matrices, right)

    monkeypatch.setattr(np.linalg, "solve", solve)
    monkeypatch.setattr(direct, "CHUNK", M * N)
    results = solve_many(fs, tol=1e-8)
    assert [TOGETHER in result.message for result in results] == [True, False, True, True]
    assert all(result.solved for result in results)


def test_float32_problems_are_factorised_together():
    fs = []
    for f in problems("matrix"):
        P, b, q, A = (part.astype(np.float32) for part in (f.g.P.matrix(), f.g.b, f.h.P, f.A.matrix()))
        fs.append(sp.Saddle(sp.Quadratic(P, b), sp.Quadratic(q), A))
    results = solve_many(fs, tol=1e-3)
    assert all(result.x.dtype == np.float32 for result in results)
    check(fs, results, 1e-3)


def test_claims_and_limits_are_left_to_runs():
    fs = problems("matrix")
    claimed = [sp.Saddle(sp.Quadratic(f.g.P.matrix(), f.g.b, mu=f.mu_x, L=f.L_x), f.h, f.A) for f in fs]
    check(claimed, solve_many(claimed, tol=1e-8, method="direct"), 1e-8, together=False)
    assert all(result.status is sp.Status.OUT_OF_CALLS for result in solve_many(fs, max_calls=1, method="direct"))
    assert {result.status for result in solve_many(fs, max_seconds=1e-9)} == {sp.Status.OUT_OF_TIME}
    for wrong in ({"tol": 0.0}, {"max_seconds": -1.0}):
        with pytest.raises(sp.ProblemError, match=next(iter(wrong))):
            solve_many(fs, **wrong)


@pytest.mark.parametrize(("method", "kind"), [("newton", "logistic"), ("apfb", "matrix")])
def test_methods_that_need_whole_matrices_are_run_one_by_one(method, kind):
    fs = [sp.Saddle(f.g, sp.Quadratic(1.0, np.ones(N)), f.A) for f in problems(kind, count=3)]
    check(fs, solve_many(fs, tol=1e-8, method=method), 1e-8, together=False)


# -- budgets ----------------------------------------------------------------------------------------------------------


def test_a_budget_leaves_a_status_for_each_problem():
    fs = problems("logistic", count=4)
    fs[0] = sp.Saddle(sp.Logistic(1e-9 * np.ones((ROWS, M)), np.ones(ROWS), 1.0), sp.Quadratic(np.ones(N)), fs[0].A)
    results = solve_many(fs, tol=1e-6, method="lpd-gs", max_calls=40)
    assert results[0].solved
    assert results[0].certificate.distance <= 1e-6
    late = [result for result in results if not result.solved]
    assert late
    for result in late:
        assert result.status is sp.Status.OUT_OF_CALLS
        assert result.certificate.distance > 1e-6
        assert max(result.calls.values()) <= 40
        assert TOGETHER in result.message


@pytest.mark.parametrize("kind", ["logistic", "sums"])
def test_the_time_is_for_all_problems_together(kind):
    fs = problems("logistic", count=3)
    if kind == "sums":
        fs = [UNLIKE["sums"](f) for f in fs]
    results = solve_many(fs, tol=1e-8, max_seconds=1e-9)
    assert [result.status for result in results] == [sp.Status.OUT_OF_TIME] * 3


def test_history_is_kept_if_asked_for():
    fs = problems("logistic", count=3)
    assert len(solve_many(fs)[0].history) == 0
    kept = solve_many(fs, history=True)[0].history
    assert kept[-1].distance <= 1e-6 < kept[0].distance


# -- a batch of one's own ---------------------------------------------------------------------------------------------


def test_a_batch_of_gradients_of_ones_own_is_solved_and_certified():
    rng = np.random.default_rng(0)
    B, A, b = 7, rng.standard_normal((7, M, N)), rng.standard_normal(7 * M)
    batch = Batch(sp.Smooth(lambda x: x + np.tanh(x) + b, mu=1.0, L=None), sp.Quadratic(2.0), A)
    assert batch.problem.shape == (B * M, B * N)
    assert batch.shape == (M, N)
    results = solve_many(batch, tol=1e-7)
    for result, block, slope in zip(results, A, batch.split(b), strict=True):
        g = sp.Quadratic(1.0, slope) + sp.LogCosh()
        alone = sp.solve(sp.Saddle(g, sp.Quadratic(2.0), block), tol=1e-9)
        assert result.solved
        assert distance(result.x, result.y, alone.x, alone.y) <= result.certificate.distance + 1e-9
    whole = sp.solve(batch.problem, tol=1e-7)
    assert max(c.distance for c in batch.certificates(*batch.back(whole.x, whole.y))) == whole.certificate.distance


def test_without_mu_nothing_is_certified():
    batch = Batch(sp.Smooth(lambda x: x + 1.0, mu=None, L=1.0), sp.Quadratic(2.0), np.ones((3, M, N)))
    for result in solve_many(batch, tol=1e-6):
        assert result.status is sp.Status.UNCERTIFIED
        assert result.certificate.residual <= 1e-6
        assert result.certificate.distance == np.inf


def test_products_and_norm_of_a_batched_coupling_are_those_of_its_matrix():
    A = np.random.default_rng(0).standard_normal((3, M, N))
    coupling = BatchedCoupling(A)
    full = coupling.matrix().toarray()
    x, y = np.arange(3.0 * M), np.arange(3.0 * N)
    np.testing.assert_allclose(coupling.mul(y), full @ y)
    np.testing.assert_allclose(coupling.tmul(x), full.T @ x)
    np.testing.assert_allclose(coupling.gram().toarray(), full.T @ full, atol=1e-14)
    exact = np.linalg.norm(full, 2)
    assert exact <= coupling.norm <= 1.06 * exact
    assert coupling.T.T is coupling


# -- other libraries --------------------------------------------------------------------------------------------------


STACKED = ["number or diagonal", "matrix", "logistic", "hinge", "huber", "separable huber", "log-cosh", "log-sum-exp"]


@in_every_library("kind", STACKED, ["matrix", "log-sum-exp"])
def test_batches_work_in_every_library(kind, xp):
    fs = problems(kind, count=3)
    results = solve_many([in_library_with_width(f, xp) for f in fs], tol=1e-3, method="lpd-gs")
    for f, result in zip(fs, results, strict=True):
        assert result.solved, result
        assert TOGETHER in result.message
        assert is_foreign(result.x)
        x, y = to_host(result.x), to_host(result.y)
        assert f.certificate(x, y).distance == pytest.approx(result.certificate.distance, rel=1e-5)
        assert distance(x, y, *saddle_point(f)) <= result.certificate.distance


def in_library_with_width(f, xp):
    """``in_library`` leaves a width of its own out."""
    g = in_library(f, xp)
    if not isinstance(f.g, sp.SmoothedHinge):
        return g
    return sp.Saddle(sp.SmoothedHinge(g.g.D, g.g.labels, g.g.l2, f.g.width), g.h, g.A)


def test_batched_couplings_are_those_of_numpy_in_every_library(xp):
    A = np.random.default_rng(0).standard_normal((3, M, N))
    mine, theirs = BatchedCoupling(A), BatchedCoupling(xp.asarray(A.tolist(), dtype=xp.float64))
    np.testing.assert_allclose(to_host(theirs.matrix()), mine.matrix().toarray())
    np.testing.assert_allclose(to_host(theirs.gram()), mine.gram().toarray(), atol=1e-14)
    assert theirs.norm == pytest.approx(mine.norm, rel=1e-9)
    fs = [in_library(f, xp) for f in problems("no b", count=3)]
    assert all(result.solved for result in solve_many(fs, tol=1e-2, method="dppa"))  # dppa takes the Gram matrix


@pytest.mark.slow
def test_float32_is_certified_in_float64(xp):
    fs = problems("logistic", count=3)
    results = solve_many([in_library(f, xp, "float32") for f in fs], tol=1e-3, method="condat-vu")
    narrow = [sp.Saddle(sp.Logistic(f.g.D.matrix().astype("f4"), f.g.labels.astype("f4"), f.g.l2),
                        sp.Quadratic(f.h.P.astype("f4"), f.h.b.astype("f4")), f.A.matrix().astype("f4"))
              for f in fs]  # fmt: skip
    for f, result in zip(narrow, results, strict=True):
        assert result.solved, result
        assert result.x.dtype == xp.float32
        own = f.certificate(to_host(result.x), to_host(result.y))
        assert own.distance == pytest.approx(result.certificate.distance, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_jax_compiles_the_steps_of_a_batch(dtype, monkeypatch):
    compiled = []
    original = stepper.compiled
    monkeypatch.setattr(
        "saddlepoint.solving.stepper.compiled", lambda *args: compiled.append(original(*args)) or compiled[-1]
    )
    fs = [in_library(f, jax(), dtype) for f in problems("logistic", count=3)]
    assert all(result.solved for result in solve_many(fs, tol=1e-3, method="lpd-gs"))
    assert len(compiled) == 1
    assert compiled[0] is not None


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ([], "problems is empty; expected at least one Saddle"),
        (3, "problems is a int; expected a list of Saddle, or a Batch"),
        ([problems("number")[0], "f"], r"problem 1 is a str; expected a Saddle\(g, h, A\)"),
    ],
)
def test_wrong_lists_are_refused_in_a_sentence(given_, words):
    with pytest.raises(sp.ProblemError, match=words):
        solve_many(given_)


def test_wrong_options_are_refused_in_a_sentence():
    fs = problems("logistic", count=2)
    with pytest.raises(sp.ProblemError, match=r"tol is -1\.0; expected a positive number"):
        solve_many(fs, tol=-1.0)
    for method in ("lpd-gs", "newton"):  # the first one solves all problems together, the second one each for itself
        with pytest.raises(sp.ProblemError, match=r"max_seconds is -1\.0; expected a positive number"):
            solve_many(fs, method=method, max_seconds=-1.0)
    with pytest.raises(sp.ProblemError, match="unknown method 'magic'"):
        solve_many(fs, method="magic")
    with pytest.raises(sp.ProblemError, match="method is 3; expected a name or a Method object"):
        solve_many(fs, method=3)
    for name in ("progress", "history"):
        with pytest.raises(sp.ProblemError, match=f"{name} is 'no'; expected True or False"):
            solve_many(fs, **{name: "no"})


def test_wrong_batches_are_refused_in_a_sentence():
    A = np.ones((3, M, N))
    with pytest.raises(sp.ProblemError, match=r"A has shape \(6, 4\); expected \(B, m, n\)"):
        Batch(sp.Quadratic(1.0), sp.Quadratic(1.0), A[0])
    with pytest.raises(sp.ProblemError, match="A has a nan"):
        Batch(sp.Quadratic(1.0), sp.Quadratic(1.0), np.nan * A)
    with pytest.raises(sp.ProblemError, match="g has 6 variables but A has 18 rows"):
        Batch(sp.Quadratic(np.ones(M)), sp.Quadratic(1.0), A)
    with pytest.raises(sp.ProblemError, match="h mixes the blocks"):
        Batch(sp.Quadratic(1.0), sp.LogSumExp(l2=1.0), A)
    with pytest.raises(sp.ProblemError, match="the gradient of g returned an array of shape"):
        solve_many(Batch(sp.Smooth(lambda x: x[:3], mu=1.0, L=1.0), sp.Quadratic(1.0), A))


def noisy(size):
    noise = np.random.default_rng(5)
    return lambda x: x + size * noise.standard_normal(x.shape)


def at_random(x):
    """The gradient of |x|^2/2, with an error once in a few calls."""
    at_random.calls = getattr(at_random, "calls", 0) + 1
    return x + 1e-3 * (at_random.calls % 3 == 0)


SEPARATE = {
    "noise": noisy(1e-4),
    "much noise": noisy(1.0),
    "noise at times": at_random,
    "float32 code": lambda x: (np.float32(3.0) * x.astype(np.float32)).astype(np.float64) / 3.0,
    "a domain": lambda x: np.log(x),
    "small numbers": lambda x: 1e-170 * x,
}


@pytest.mark.parametrize("kind", SEPARATE)
def test_noise_and_domains_are_no_mixing_of_blocks(kind):
    with np.errstate(invalid="ignore"):
        assert Batch(sp.Smooth(SEPARATE[kind], mu=1.0, L=2.0), sp.Quadratic(1.0), np.ones((3, M, N))).size == 3


@pytest.mark.parametrize("scale", [1e-170, 1.0, 1e160])
@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_mixing_of_blocks_is_found_beyond_noise_and_at_all_scales(scale, noise):
    g = noisy(noise)
    mixing = sp.Smooth(lambda x: scale * (g(x) + 1e-3 * np.roll(x, M)), mu=scale, L=2.0 * scale)
    with pytest.raises(sp.ProblemError, match="g mixes the blocks"):
        Batch(mixing, sp.Quadratic(1.0), np.ones((3, M, N)))


def test_a_refuted_constant_is_an_error():
    A = np.ones((3, M, N))
    with pytest.raises(sp.AssumptionError, match="L of g is too small"):
        solve_many(Batch(sp.Smooth(lambda x: 5.0 * x + 1.0, mu=1.0, L=2.0), sp.Quadratic(1.0), A))
