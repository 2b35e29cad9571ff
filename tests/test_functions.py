"""The functions: gradients, constants, prox, algebra, and invalid input."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import hessian
from scipy import sparse
from scipy.optimize import check_grad

import saddlepoint as sp
from saddlepoint.ground.arrays import NUMPY64, dense
from saddlepoint.parts.functions.constants import DENSE, eigenvalue_bounds, estimate_smoothness
from saddlepoint.parts.functions.source_data import source_data

rng = np.random.default_rng(0)
D = rng.standard_normal((20, 6))
T = rng.standard_normal(20)
LABELS = np.where(rng.random(20) < 0.5, -1.0, 1.0)
P = D.T @ D / 20 + 0.1 * np.eye(6)

FUNCTIONS = {
    "quadratic, dense": sp.Quadratic(P, np.arange(6.0)),
    "quadratic, sparse": sp.Quadratic(sparse.diags_array([np.full(6, 2.0), np.full(5, -1.0), np.full(5, -1.0)],
                                                         offsets=[0, 1, -1], format="coo")),
    "quadratic, diagonal": sp.Quadratic(np.linspace(1, 5, 6), np.ones(6)),
    "quadratic, number": sp.Quadratic(3, np.ones(6)),
    "least squares": sp.LeastSquares(D, T, 0.1),
    "least squares, wide": sp.LeastSquares(D[:3], T[:3], 0.1),
    "least squares, sparse": sp.LeastSquares(sparse.csc_array(D), T, 0.1),
    "logistic": sp.Logistic(D, LABELS, 0.1),
    "huber": sp.Huber(D, T, 0.1, delta=0.7),
    "huber, separable": sp.Huber(t=np.ones(6), l2=0.3, delta=0.5),
    "log-cosh": sp.LogCosh(D, T, 0.1),
    "log-cosh, separable": sp.LogCosh(l2=0.3),
    "log-sum-exp": sp.LogSumExp(D, T, 0.1, tau=0.3),
    "log-sum-exp, sparse": sp.LogSumExp(sparse.csr_array(D), None, 0.1),
    "log-sum-exp, coordinates": sp.LogSumExp(l2=0.2),
    "smoothed hinge": sp.SmoothedHinge(D, LABELS, 0.1, width=0.5),
    "entropy": sp.Entropy(0.05, 2.0),
    "group huber": sp.GroupHuber([0, 1, 1, 7, 0, 1], weight=0.8, width=0.5, l2=0.3),
    "group huber, one group": sp.GroupHuber(width=0.5, l2=0.3),
    "group huber, conjugate": sp.GroupHuber([0, 1, 1, 7, 0, 1], weight=0.8, width=0.5, l2=0.3).conjugate(),
}  # fmt: skip
SUMS = {
    "sum": FUNCTIONS["logistic"] + FUNCTIONS["huber"],
    "multiple": 3 * FUNCTIONS["log-cosh"],
    "both": FUNCTIONS["log-cosh, separable"] * 2.0 + 0.5 * FUNCTIONS["quadratic, diagonal"],
}


@pytest.mark.parametrize("name", [*FUNCTIONS, *SUMS])
@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 10.0]))
def test_gradient_is_that_of_the_value(name, seed, scale):
    f = (FUNCTIONS | SUMS)[name]
    x = scale * np.random.default_rng(seed).standard_normal(6)
    kept = x.copy()
    assert check_grad(f, f.grad, x, epsilon=1e-6) <= 1e-4 * (1 + np.linalg.norm(f.grad(x)))
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize("name", FUNCTIONS)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 1.0, 10.0]))
def test_constants_bound_the_hessian(name, seed, scale):
    f = FUNCTIONS[name]
    x = scale * np.random.default_rng(seed).standard_normal(6)
    values = np.linalg.eigvalsh(hessian(f, x))
    assert f.mu <= values[0] * (1 + 1e-12)
    assert values[-1] <= f.L * (1 + 1e-12)


@pytest.mark.parametrize("name", [n for n, f in (FUNCTIONS | SUMS).items() if f.hessian])
@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 10.0]))
def test_hessian_is_that_of_the_gradient(name, seed, scale):
    f = (FUNCTIONS | SUMS)[name]
    rng = np.random.default_rng(seed)
    x, d = scale * rng.standard_normal(6), 1e-7 * rng.standard_normal(6)
    H = f.hessian(x)
    if np.abs(f.hessian(x + d) - f.hessian(x - d)).max() > 1e-4:  # across a kink
        return
    np.testing.assert_allclose(H @ d, (f.grad(x + d) - f.grad(x - d)) / 2, atol=1e-5 * f.L * np.linalg.norm(d))


@pytest.mark.parametrize("zero", [0, 3])
def test_a_diagonal_hessian_can_be_changed_without_changing_the_function(zero):
    diagonal = np.arange(1.0, 6.0)
    diagonal[zero] = 0.0
    f = sp.Quadratic(diagonal)
    H = f.hessian(np.zeros(5))
    H *= 2.0
    H.eliminate_zeros()
    np.testing.assert_array_equal(H.toarray(), 2.0 * np.diag(diagonal))
    np.testing.assert_array_equal(f.grad(np.ones(5)), diagonal)


@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 10.0]))
def test_group_huber_and_its_conjugate_satisfy_fenchels_inequality(seed, scale):
    phi = sp.GroupHuber([0, 1, 1, 2, 0], weight=0.8, width=0.5, l2=0.3)
    conjugate = phi.conjugate()
    x, y = scale * np.random.default_rng(seed).standard_normal((2, 5))
    np.testing.assert_allclose(conjugate.grad(phi.grad(x)), x, atol=1e-12 * scale)
    # The inequality of Young and Fenchel; with y = grad phi(x) it is an equation.
    assert phi(x) + conjugate(y) >= x @ y - 1e-12 * scale**2
    assert phi(x) + conjugate(phi.grad(x)) == pytest.approx(x @ phi.grad(x))
    norms = np.sqrt([x[0] ** 2 + x[4] ** 2, x[1] ** 2 + x[2] ** 2, x[3] ** 2]).sum()
    assert 0.0 <= 0.8 * norms + 0.15 * x @ x - phi(x) <= 0.8 * 0.25 * 3 + 1e-12


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if "quadratic" in n or "squares" in n])
def test_constants_of_quadratics_are_exact(name):
    f = FUNCTIONS[name]
    values = np.linalg.eigvalsh(hessian(f, np.zeros(6)))
    if name == "least squares, sparse":  # |D| by Lanczos with its margin, and l2 as the proven mu
        assert f.mu == 0.1
        assert values[-1] <= f.L <= 1.06 * values[-1]
    else:
        assert f.mu == pytest.approx(values[0])
        assert pytest.approx(values[-1]) == f.L


@pytest.mark.parametrize("name", [n for n, f in (FUNCTIONS | SUMS).items() if f.has_prox])
@given(st.integers(0, 10**6), st.floats(1e-4, 1e4))
def test_prox_solves_its_problem(name, seed, t):
    f = (FUNCTIONS | SUMS)[name]
    v = 5 * np.random.default_rng(seed).standard_normal(6)
    u = f.prox(v, t)
    np.testing.assert_allclose(u + t * f.grad(u), v, atol=1e-9 * (1 + t))


@pytest.mark.parametrize("low", [1e-2, 1e-3])
def test_entropy_does_not_keep_x_positive(low):
    """phi'(x) = log(low) + x/low below low, so x = -low (y + log(low)) where y is larger than -log(low)."""
    f = sp.Saddle(sp.Entropy(low), sp.Quadratic(1.0, [-10.0]), np.array([[1.0], [0.0]]))
    result = sp.solve(f, tol=1e-8)
    assert result.solved
    assert result.x[0] == pytest.approx(-low * (result.y[0] + math.log(low)), abs=1e-8)
    assert -6.0 * low < result.x[0] < -2.0 * low
    assert result.x[1] == pytest.approx(math.exp(-1.0), abs=1e-8)  # inside [low, high]: the entropy itself


def test_only_functions_with_a_cheap_prox_have_one():
    cheap = {name for name, f in FUNCTIONS.items() if f.has_prox}
    ready = ("huber, separable", "log-cosh, separable", "group huber", "group huber, one group")
    assert cheap == {n for n in FUNCTIONS if n.startswith("quadratic") or n in ready}
    with pytest.raises(sp.ProblemError, match="this Logistic has no prox"):
        FUNCTIONS["logistic"].prox(np.zeros(6), 1.0)


def test_bounds_of_large_matrices_are_close():
    n = DENSE + 100
    values = np.geomspace(1e-3, 2.0, n)
    d = sparse.diags_array(values).tocsr()
    low, high = eigenvalue_bounds(sp.as_coupling(d))
    assert 0.94 * values[0] <= low <= values[0]
    assert values[-1] <= high <= 1.06 * values[-1]
    dense = np.diag(values) + 0.0
    low, high = eigenvalue_bounds(sp.as_coupling(dense))
    assert 0.94 * values[0] <= low <= values[0]
    assert values[-1] <= high <= 1.06 * values[-1]
    indefinite = sparse.diags_array(np.r_[-1.0, values[1:]]).tocsr()
    with pytest.raises(sp.ProblemError, match="not positive semidefinite"):
        eigenvalue_bounds(sp.as_coupling(indefinite))
    with pytest.raises(sp.ProblemError, match="not positive semidefinite"):
        eigenvalue_bounds(sp.as_coupling(indefinite.toarray()))


def test_given_constants_are_kept():
    q = sp.Quadratic(P, mu=0.01, L=100.0)
    assert (q.mu, q.L) == (0.01, 100.0)


def test_float32_data_gives_float32_gradients_and_widens_on_demand():
    D32, T32, labels = (array.astype(np.float32) for array in (D, T, LABELS))
    functions = (
        sp.Quadratic(P.astype(np.float32)),
        sp.Logistic(D32, labels, 0.1),
        sp.LogCosh(D32, T32, 0.1),
        sp.LogSumExp(D32, l2=0.1),
    )
    for f in functions:
        x = np.ones(6, np.float32)
        assert f.grad(x).dtype == np.float32
        assert f.grad(x.astype(np.float64)).dtype == np.float64


def test_mu_is_never_invented():
    f = sp.Smooth(lambda x: x, mu=None, L=1.0)
    assert math.isnan(f.mu)
    assert "mu=?" in repr(f)
    assert math.isnan((f + sp.Quadratic(1.0)).mu)
    saddle = sp.Saddle(f, sp.Quadratic(1.0), np.eye(2))
    assert saddle.certificate(np.zeros(2), np.ones(2)).distance == math.inf
    with pytest.raises(sp.ProblemError, match="dippa needs mu of g, which is unknown"):
        sp.solve(saddle, method="dippa")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_L_of_a_black_box_is_estimated(name):
    f = FUNCTIONS[name]
    L, calls = estimate_smoothness(f.grad, 6, NUMPY64)
    assert np.linalg.eigvalsh(hessian(f, np.zeros(6)))[-1] <= L <= 2.1 * f.L  # twice what the gradients show
    assert calls <= 60
    black_box = sp.Smooth(f.grad, mu=f.mu, L=None)
    saddle = sp.Saddle(black_box, sp.Quadratic(1.0, np.ones(6)), np.eye(6))
    assert saddle.L_x == max(L, f.mu)
    assert "L=?" in repr(black_box)  # the caller's function is left as it was
    result = sp.solve(saddle, tol=1e-6)
    assert result.solved
    # The rest was examined before the run was called solved; an estimate that proved too small takes more gradients.
    replaced = bool(result.provenance["corrections"])
    assert calls + 1 < result.setup_calls["grad_g"] <= calls + (250 if replaced else 75)


BAD = [
    (lambda: sp.Smooth(3, mu=1, L=1), "grad of Smooth is 3; expected a function"),
    (lambda: sp.Smooth(np.sin, mu=-1, L=1), "mu of Smooth is -1; expected a finite number"),
    (lambda: sp.Smooth(np.sin, mu=2, L=1), "L = 1 of Smooth is below mu = 2"),
    (lambda: sp.Smooth(np.sin, mu=1, L=math.inf), "L of Smooth is inf"),
    (lambda: sp.Smooth(np.sin, mu="high", L=1), "mu of Smooth is 'high'; expected a number"),
    (lambda: sp.Quadratic(-1.0), "P of Quadratic is -1"),
    (lambda: sp.Quadratic([1.0, -2.0]), "empty diagonal or has a negative entry"),
    (lambda: sp.Quadratic(np.ones((2, 3))), r"shape \(2, 3\); expected a square matrix"),
    (lambda: sp.Quadratic(np.array([[1.0, 2.0], [0.0, 1.0]])), "not symmetric"),
    (lambda: sp.Quadratic(np.array([[1.0, 2.0], [2.0, 1.0]])), "not positive semidefinite"),
    (lambda: sp.Quadratic(np.eye(2), [1.0, 2.0, 3.0]), "b of Quadratic has 3 entries; expected 2"),
    (lambda: sp.Quadratic(np.eye(2), [1.0, math.nan]), "b of Quadratic has a nan at index 1"),
    (lambda: sp.Quadratic(["a", "b"]), "expected real numbers"),
    (lambda: sp.Quadratic(np.eye(2) * 1j), "expected real numbers"),
    (lambda: sp.LeastSquares(D, T[:5]), "t of LeastSquares has 5 entries; expected 20"),
    (lambda: sp.LeastSquares(None, T), "needs data"),
    (lambda: sp.Logistic(D, np.zeros(20)), "labels of Logistic hold 0; expected \\+1 and -1"),
    (lambda: sp.Logistic(D, LABELS, l2=-1), "l2 of Logistic is -1"),
    (lambda: sp.Logistic(D * math.nan, LABELS), "D of Logistic has a nan at index"),
    (lambda: sp.Logistic(None, LABELS), "needs data"),
    (lambda: sp.Huber(delta=0), "delta of Huber is 0"),
    (lambda: sp.LogSumExp(tau=0), "tau of LogSumExp is 0"),
    (lambda: sp.LogCosh(np.zeros((0, 3))), "at least one row"),
    (lambda: 0 * sp.Quadratic(1.0), "positive number; got 0"),
    (lambda: np.float64(-2.0) * sp.Quadratic(1.0), "factor of a function is -2"),
    (lambda: -1 * sp.Quadratic(1.0), "factor of a function is -1"),
    (lambda: sp.Quadratic(np.eye(2)) + sp.Quadratic(np.eye(3)), "2 variables and one of 3"),
    (lambda: sp.Smooth(np.sin, mu=1, L=1)(np.zeros(2)), "was given no value"),
    (lambda: sp.Smooth(np.sin, mu=1, L=1).prox(np.zeros(2), 1.0), "has no prox"),
    (lambda: estimate_smoothness(lambda x: 0 * x, 3, NUMPY64), "smoothness of 0"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "sentence"), BAD, ids=[sentence for _, sentence in BAD])
def test_bad_input_is_refused_in_a_sentence(bad, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        bad()


def test_adding_a_number_is_not_supported():
    with pytest.raises(TypeError):
        sp.Quadratic(1.0) + 3


@pytest.mark.parametrize(
    "make",
    [
        lambda l2: sp.LeastSquares(D, T, l2),
        lambda l2: sp.Logistic(sparse.csr_array(D), LABELS, l2),
        lambda l2: sp.Huber(D, T, l2, delta=0.7),
        lambda l2: sp.Huber(t=np.ones(6), l2=l2, delta=0.5),
        lambda l2: sp.LogCosh(l2=l2),
        lambda l2: sp.SmoothedHinge(D, LABELS, l2, width=0.5),
    ],
)
def test_a_risk_with_another_l2_is_the_one_made_with_it(make, monkeypatch):
    first, same, twin = make(0.0), make(0.0), make(0.3)
    monkeypatch.setattr("saddlepoint.parts.functions.risk.gram_bounds", lambda D: pytest.fail("computed again"))
    found, x = first.with_l2(0.3), np.linspace(-1.0, 2.0, 6)
    assert (found.mu, found.L, type(found)) == (twin.mu, twin.L, type(twin))
    assert (found.grad(x) == twin.grad(x)).all()
    assert found(x) == twin(x)
    assert (found.rounding(x) == twin.rounding(x)).all()
    assert abs(found.hessian(x) - twin.hessian(x)).max() == 0.0
    if twin.has_prox:
        assert (found.prox(x, 0.7) == twin.prox(x, 0.7)).all()
    assert (first.grad(x) == same.grad(x)).all()  # the first one stays as it is
    assert first.l2 == 0.0


@pytest.mark.parametrize("form", [np.asfortranarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("make", [sp.LeastSquares, sp.Huber, sp.Logistic, sp.SmoothedHinge])
def test_a_risk_of_some_columns_is_that_of_all_where_the_other_weights_are_zero(make, form, monkeypatch):
    D = np.random.default_rng(0).standard_normal((9, 6))
    whole, columns = make(form(D), np.where(np.arange(9) % 2, 1.0, -1.0), 0.3), np.array([1, 2, 5])
    twin = make(form(D[:, columns]), np.where(np.arange(9) % 2, 1.0, -1.0), 0.3)
    monkeypatch.setattr("saddlepoint.parts.functions.risk.gram_bounds", lambda D: pytest.fail("computed again"))
    part, w = whole.with_columns(columns), np.array([0.5, -1.0, 2.0])
    x = np.zeros(6)
    x[columns] = w
    assert part.mu <= twin.mu * (1.0 + 1e-12)
    assert part.L >= twin.L * (1.0 - 1e-12)
    assert part(w) == pytest.approx(whole(x), rel=1e-14)
    assert part.grad(w) == pytest.approx(whole.grad(x)[columns], abs=1e-14)
    assert whole.gradient_from(D @ x, x) == pytest.approx(whole.grad(x), abs=1e-14)
    assert dense(part.hessian(w)) == pytest.approx(dense(whole.hessian(x))[np.ix_(columns, columns)], abs=1e-14)


# -- data that are written into ----------------------------------------------------------------------------------------


def fresh_data(form):
    """The array that the caller keeps, and a function whose mu is computed from it."""
    diagonal = np.array([0.1, 0.5, 2.0])
    match form:
        case "diagonal":
            return diagonal, sp.Quadratic(diagonal)
        case "matrix":
            P = np.diag(diagonal)
            return P, sp.Quadratic(P, np.ones(3))
        case "large matrix":
            P = np.eye(1100) + 0.0
            return P, sp.Quadratic(P)
        case "sparse":
            P = sparse.csr_array(np.diag(diagonal))
            return P.data, sp.Quadratic(P)
        case "sum":
            return diagonal, 2.0 * sp.Quadratic(diagonal) + sp.Quadratic(0.01) + sp.L1(0.1)
        case _:
            D = np.diag(np.sqrt(diagonal))
            return D, sp.LeastSquares(D, np.ones(3))


@pytest.mark.parametrize("form", ["diagonal", "matrix", "large matrix", "sparse", "sum", "least squares"])
def test_data_that_were_written_into_are_refused(form):
    """The gradient is that of the new data, and mu was computed from the old ones: certificates would be false."""
    data, g = fresh_data(form)
    n = g.dim
    f, x, y = sp.Saddle(g, sp.Quadratic(1.0), np.zeros((n, 1))), np.ones(n), np.zeros(1)
    assert f.certificate(x, y).distance < np.inf
    prepared = sp.prepare(f)
    assert prepared.solve().solved
    data *= 0.01
    message = "was written into after the function was made"
    calls = (
        lambda: f.certificate(x, y),
        lambda: sp.certify(f, x, y),
        lambda: sp.solve(f),
        lambda: sp.solve_many([f, f]),
        lambda: prepared.solve(),
        lambda: sp.prepare(f).solve(),
    )
    for call in calls:
        with pytest.raises(sp.ProblemError, match=message):
            call()


def test_data_that_a_callback_writes_into_are_refused():
    P = np.array([0.1, 0.5, 2.0])
    f = sp.Saddle(sp.Quadratic(P, np.ones(3)), sp.Quadratic(1.0), np.zeros((3, 1)))

    def halve(result):
        P[:] *= 0.5

    with pytest.raises(sp.ProblemError, match="P of Quadratic was written into"):
        sp.solve(f, method="lpd-gs", callback=halve)


def large_copies():
    """Large arrays in several orders of memory, and a sparse matrix; with each the array of its entries."""
    rng = np.random.default_rng(0)
    D = rng.standard_normal((1500, 1000))
    yield "rows", D.copy(), None
    yield "columns", np.asfortranarray(D), None
    yield "rows with gaps", np.repeat(D, 2, axis=0)[::2], None
    yield "float32", D.astype(np.float32), None
    sparse_D = sparse.csr_array(D)
    yield "sparse", sparse_D, sparse_D.data


@pytest.mark.parametrize(("D", "entries"), [pytest.param(D, e, id=name) for name, D, e in large_copies()])
@pytest.mark.parametrize("how", ["one entry", "two entries exchanged", "two rows exchanged"])
def test_a_small_change_of_large_data_is_seen(D, entries, how):
    entries = D if entries is None else entries
    sources = source_data("D", D)
    assert not any(source.is_changed for source in sources)
    first, second = (
        (entries[1201, 777:778], entries[3, 5:6]) if entries.ndim == 2 else (entries[7:8], entries[999_001:][:1])
    )
    if how == "one entry":
        first[0] = np.nextafter(first[0], first.dtype.type(9.0))
    elif how == "two entries exchanged":
        first[0], second[0] = second[0], first[0]
    else:
        rows = entries.reshape(1500, 1000)
        rows[[4, 900]] = rows[[900, 4]]
    assert any(source.is_changed for source in sources)


def matrix_form(form):
    A = np.random.default_rng(1).standard_normal((40, 30))
    match form:
        case "sparse":
            matrix = sparse.csr_array(A)
            return matrix, matrix.data
        case "torch":
            matrix = pytest.importorskip("torch").tensor(A)
            return matrix, matrix
        case _:
            return A, A


@pytest.mark.parametrize("form", ["dense", "sparse", "torch"])
def test_a_matrix_that_a_callback_writes_into_is_refused(form):
    """The certificate of the point that is returned would be about the old matrix."""
    A, entries = matrix_form(form)
    f = sp.Saddle(sp.Quadratic(1.0, 0.5), sp.Quadratic(1.0), A)

    def change(result):
        if result.certificate.distance <= 1e-6:
            entries[0] *= 2.0

    with pytest.raises(sp.ProblemError, match="A was written into"):
        sp.solve(f, method="lpd-gs", callback=change)


@pytest.mark.parametrize("form", ["dense", "sparse", "torch"])
def test_a_matrix_that_is_written_into_between_two_runs_is_refused(form):
    """|A| and the bounds on rounding are those of the old entries."""
    A, entries = matrix_form(form)
    f = sp.Saddle(sp.Quadratic(1.0, 0.5), sp.Quadratic(1.0), A)
    assert sp.solve(f).solved
    assert sp.solve(f).solved
    copy = pickle.loads(pickle.dumps(f))
    entries[3] = 0.0
    with pytest.raises(sp.ProblemError, match="A was written into"):
        sp.solve(f)
    assert sp.solve(copy).solved
    assert sp.solve(sp.Saddle(f.g, f.h, A)).solved


@pytest.mark.parametrize("form", ["dense", "sparse", "torch"])
@pytest.mark.parametrize("way", ["certificate", "certify", "solve_many", "prepare"])
def test_a_matrix_that_is_written_into_after_a_certificate_is_refused(form, way):
    A, entries = matrix_form(form)
    f = sp.Saddle(sp.Quadratic(1.0, 0.5), sp.Quadratic(1.0), A)
    x, y = f.space.full(40, 1.0), f.space.full(30, 1.0)
    prepared = sp.prepare(f)
    uses = {
        "certificate": lambda f: f.certificate(x, y).distance,
        "certify": lambda f: sp.certify(f, x, y).distance,
        "solve_many": lambda f: sp.solve_many([f])[0].solved,
        "prepare": lambda f: prepared.update(f).solve().solved,
    }
    assert uses[way](f)
    entries[3] *= 1e6
    with pytest.raises(sp.ProblemError, match="A was written into"):
        uses[way](f)
    assert uses[way](sp.Saddle(f.g, f.h, A))


@pytest.mark.parametrize("part", ["indices", "indptr"])
def test_entries_that_are_moved_to_other_places_are_seen(part):
    """The numbers are the same; the matrix is not."""
    A = sparse.csr_array(np.diag(np.arange(1.0, 6.0)))
    f = sp.Saddle(sp.Quadratic(1.0, 0.5), sp.Quadratic(1.0), A)
    g = sp.Quadratic(A)
    assert sp.solve(f).solved
    if part == "indices":
        A.indices[:2] = A.indices[1::-1]
    else:
        A.indptr[1] = 2
    with pytest.raises(sp.ProblemError, match="A was written into"):
        sp.solve(f)
    with pytest.raises(sp.ProblemError, match="P of Quadratic was written into"):
        sp.solve(sp.Saddle(g, sp.Quadratic(1.0), np.eye(5)))


def test_a_batch_whose_array_is_written_into_is_refused():
    A = np.random.default_rng(0).standard_normal((3, 4, 2))
    batch = sp.Batch(sp.Quadratic(1.0, np.ones(12)), sp.Quadratic(1.0), A)
    assert all(result.solved for result in sp.solve_many(batch))
    A[1] = 0.0
    with pytest.raises(sp.ProblemError, match="A was written into"):
        sp.solve_many(batch)


@pytest.mark.parametrize("use", ["two problems", "read-only", "a view", "in between", "no change", "map"])
def test_honest_uses_of_one_array_are_not_refused(use, tmp_path):
    A = np.random.default_rng(1).standard_normal((6, 4))
    g, h = sp.Quadratic(1.0, 0.5), sp.Quadratic(1.0)
    match use:
        case "two problems":
            first, second = sp.Saddle(g, h, A), sp.Saddle(g, sp.Quadratic(2.0), A)
            assert all(sp.solve(f).solved for f in (first, second, first))
        case "read-only":
            A.setflags(write=False)
            f = sp.Saddle(g, h, A)
            assert sp.solve(f).solved
            assert sp.solve(f).solved
        case "a view":
            f = sp.Saddle(g, h, A[::2, ::-1])
            assert sp.solve(f).solved
            A[1] = 7.0  # is no row of it
            assert sp.solve(f).solved
        case "in between":
            for _ in range(3):
                A *= 1.1
                assert sp.solve(sp.Saddle(g, h, A)).solved
        case "no change":
            f = sp.Saddle(g, h, A)
            assert sp.solve(f).solved
            A[2] = A[2].copy()
            assert sp.solve(f).solved
        case "map":
            disk = np.memmap(tmp_path / "A", np.float64, "w+", shape=A.shape)
            disk[:] = A
            f = sp.Saddle(g, h, disk)
            disk.flush()
            assert sp.solve(f).solved
            assert sp.solve(f).solved


def test_a_prepared_problem_takes_an_array_with_new_entries():
    A = np.random.default_rng(1).standard_normal((6, 4))
    g, h = sp.Quadratic(1.0, 0.5), sp.Quadratic(1.0)
    prepared = sp.prepare(sp.Saddle(g, h, A))
    for factor in (1.0, 2.0, 1.0 + 2.0**-52):
        A *= factor
        assert prepared.update(sp.Saddle(g, h, A)).solve().solved
        A *= factor
        assert prepared.update(A=A).solve().solved


def test_a_tensor_that_was_written_into_before_a_function_was_made_survives_pickling():
    torch = pytest.importorskip("torch")
    P = torch.eye(3, dtype=torch.float64)
    P *= 2.0
    g = pickle.loads(pickle.dumps(sp.Quadratic(P)))
    A = torch.ones((3, 1), dtype=torch.float64)
    assert sp.solve(sp.Saddle(g, sp.Quadratic(torch.tensor([1.0], dtype=torch.float64)), A)).solved


def test_linear_terms_may_be_written_into():
    """No constant is computed from them."""
    b = np.ones(3)
    f = sp.Saddle(sp.Quadratic(np.array([0.1, 0.5, 2.0]), b), sp.Quadratic(1.0), np.zeros((3, 1)))
    b[:] = 2.0
    result = sp.solve(f, tol=1e-9)
    assert np.linalg.norm(result.x + b / [0.1, 0.5, 2.0]) <= result.certificate.distance <= 1e-9


def test_a_given_mu_is_a_claim_about_what_the_data_are_now():
    P = np.array([1.0, 2.0])
    g = sp.Quadratic(P, mu=0.5)
    P *= 0.75
    result = sp.solve(sp.Saddle(g, sp.Quadratic(1.0, np.ones(1)), np.ones((2, 1))), tol=1e-8)
    assert result.solved
