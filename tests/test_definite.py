"""Lower bounds of the smallest eigenvalue are compared with exact arithmetic: elimination in fractions."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import saddlepoint as sp
from saddlepoint.ground import definite, definite_factors
from saddlepoint.ground.definite import eigenvalue_ends, largest_eigenvalue_bound, smallest_singular_value
from saddlepoint.ground.definite_factors import IndefiniteError, TooLargeError
from saddlepoint.ground.directed import add_down, div_down, mul_down
from saddlepoint.ground.fill_in import factor_work
from saddlepoint.ground.gershgorin import gershgorin, symmetric_part
from saddlepoint.parts.functions.affine import affine
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.parts.functions.block_sum import block_sum
from saddlepoint.parts.functions.constants import eigenvalue_bounds, gram_bounds
from saddlepoint.parts.functions.partial_slopes import partial_slopes
from saddlepoint.parts.simple.base import Support

SCALES = [1e-300, 1e-9, 1.0, 1e9, 1e290]


def is_semidefinite(matrix, shift):
    """Whether (P + P')/2 - shift I is positive semidefinite, in exact arithmetic."""
    n = len(matrix)
    P = [[Fraction(float(entry)) for entry in row] for row in matrix]
    return eliminates([[(P[i][j] + P[j][i]) / 2 - Fraction(shift) * (i == j) for j in range(n)] for i in range(n)])


def eliminates(S):
    """Whether a symmetric matrix of fractions is positive semidefinite, by elimination."""
    S = [list(row) for row in S]
    for k in range(len(S)):
        if S[k][k] < 0 or (S[k][k] == 0 and any(S[k][k:])):
            return False
        for i in range(k + 1, len(S) if S[k][k] else 0):
            factor = S[i][k] / S[k][k]
            S[i] = [a - factor * b for a, b in zip(S[i], S[k], strict=True)]
    return True


def banded(n, seed):
    """A random positive definite matrix with three entries in each row of its factor."""
    rng = np.random.default_rng(seed)
    D = np.triu(rng.standard_normal((n, n))) * (np.subtract.outer(np.arange(n), np.arange(n)) >= -2)
    return D.T @ D


def matrices(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((7, 7))
    spread = np.geomspace(1e-6, 1e6, 7)
    singular = rng.integers(-3, 4, (7, 5)) @ np.eye(5, 7)
    yield "random", X @ X.T, 1e-9
    yield "nearly singular", X[:, :5] @ X[:, :5].T + 1e-9 * np.eye(7), 1e-3
    yield "badly scaled", spread[:, None] * (X @ X.T + np.eye(7)) * spread, 0.9
    yield "slightly unsymmetric", X @ X.T + 1e-14 * X, 1e-9
    yield "singular", (singular @ singular.T).astype(float), math.inf
    yield "diagonal", np.diag(rng.uniform(1.0, 2.0, 7)), 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", SCALES)
def test_the_bound_of_a_small_matrix_holds_exactly_and_is_close(seed, scale):
    for name, P, loss in matrices(seed):
        for form in (np.asarray, sparse.csr_array):
            low, high = eigenvalue_ends(form(scale * P))
            assert is_semidefinite(scale * P, low), name
            if loss < math.inf:
                assert low > 0.0, name
                assert not is_semidefinite(scale * P, low * (1.0 + loss) / (1.0 - loss)), name
            else:
                assert -1e-13 * high <= low, name


@pytest.mark.parametrize("scale", SCALES)
def test_the_bound_of_a_large_matrix_holds_exactly_and_is_close(monkeypatch, scale):
    monkeypatch.setattr(definite, "ALL_EIGENVALUES", 1)  # so that small matrices are treated as large ones
    for name, P, _ in matrices(1):
        for form in (np.asarray, sparse.csr_array):
            low, _ = eigenvalue_ends(form(scale * P))
            assert is_semidefinite(scale * P, low), name
            if name != "singular":
                assert not is_semidefinite(scale * P, 1.3 * low), (name, form)


def test_a_sparse_factorisation_with_fill_in_is_a_proof(monkeypatch):
    monkeypatch.setattr(definite, "ALL_EIGENVALUES", 1)
    monkeypatch.setattr(definite_factors, "SMOOTHING", 0)  # Gershgorin's theorem alone proves little here
    for seed in range(3):
        P = banded(24, seed) + 1e-6 * np.eye(24)
        low, _ = eigenvalue_ends(sparse.csr_array(P))
        assert is_semidefinite(P, low)
        assert not is_semidefinite(P, 1.1 * low)


def orthogonal_to(starts, n):
    v = np.random.default_rng(5).standard_normal(n)
    Q = np.linalg.qr(np.stack(starts, axis=1))[0]
    v = v - Q @ (Q.T @ v)
    v = v - Q @ (Q.T @ v)
    return v / np.linalg.norm(v)


@pytest.mark.slow
@pytest.mark.parametrize("form", [sparse.csr_array, np.asarray])
def test_an_eigenvector_that_the_starts_of_the_estimate_miss_is_allowed_for(form):
    # lambda_min is 1e-3, and all estimates are 1.
    n = 1510
    starts = [np.random.default_rng(seed).standard_normal(n) for seed in range(definite_factors.SEEDS)]
    v = orthogonal_to([np.ones(n), *starts], n)
    P = np.eye(n) - 0.999 * np.outer(v, v)
    assert 1e-4 < sp.Quadratic(form(P)).mu <= 1e-3 * (1.0 + 1e-12)


def test_a_false_estimate_is_not_believed(monkeypatch):
    P = np.array([[2.0, 1.0], [1.0, 2.0]])
    monkeypatch.setattr(definite, "ALL_EIGENVALUES", 1)
    for prover, form in ((definite_factors.DenseProver, np.asarray), (definite_factors.SparseProver, sparse.csr_array)):
        monkeypatch.setattr(prover, "smoothed", lambda self: (2.0, np.array([1.0, 5.0])))
        monkeypatch.setattr(prover, "estimate", lambda self, seed: 2.0)
        assert 0.1 < eigenvalue_ends(form(P)).low <= 1.0


def test_gershgorin_with_any_weights_is_a_lower_bound():
    rng = np.random.default_rng(0)
    for _ in range(20):
        P = rng.standard_normal((5, 5))
        P = P + P.T
        given = symmetric_part(P)
        assert is_semidefinite(P, gershgorin(given, rng.uniform(0.1, 1.0, 5)) * given.unit)


@pytest.mark.parametrize("n", [3, 1600])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_negative_eigenvalues_are_refused(n, form):
    P = np.eye(n)
    P[0, 1] = P[1, 0] = 1.0 + 1e-6
    with pytest.raises(IndefiniteError):
        eigenvalue_ends(form(P))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("entry", [-3.0, -1e-20, -1e-310, -5e-324])
def test_a_negative_number_as_a_matrix_is_refused(form, entry):
    with pytest.raises(sp.ProblemError, match="not positive semidefinite"):
        sp.Quadratic(form([[entry]]))
    assert sp.Quadratic(form([[0.0]])).mu == 0.0


def test_a_matrix_that_cannot_be_factorised_asks_for_mu():
    n, rng = 40_000, np.random.default_rng(0)
    R = sparse.random_array((n, n), density=4.0 / n, rng=rng)
    P = (R + R.T + 6.0 * sparse.eye_array(n)).tocsr()
    with pytest.raises(TooLargeError):
        eigenvalue_ends(P)
    with pytest.raises(sp.ProblemError, match=r"mu of P, a matrix with 40000 rows, could not be proven.*give mu="):
        sp.Quadratic(P)
    assert sp.Quadratic(P, mu=0.1).mu == 0.1


def test_the_work_of_a_factorisation_is_foreseen():
    n = 20_000
    ends = np.r_[1.0, np.zeros(n - 2), 1.0]
    chain = sparse.diags_array([np.ones(n - 1), 3.0 * np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()
    hub = sparse.lil_array(sparse.eye_array(n))
    hub[0, :] = hub[:, [0]] = 1.0
    tree = sparse.coo_array((np.ones(n - 1), (np.arange(1, n), (np.arange(1, n) - 1) // 2)), shape=(n, n))
    tree = (tree + tree.T + sparse.eye_array(n)).tocsr()
    ring = chain + sparse.csr_array((ends[:1], ([0], [n - 1])), shape=(n, n))
    for easy in (chain, hub.tocsr(), tree, (ring + ring.T).tocsr()):
        assert factor_work(easy) < 1e7
    R = sparse.random_array((n, n), density=4.0 / n, rng=np.random.default_rng(0))
    assert factor_work(R + R.T) > 1e11


# -- the constants of ready functions --------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_mu_of_least_squares_holds_exactly(scale):
    rng = np.random.default_rng(3)
    for mean in (0.0, 30.0):
        D = scale * (rng.standard_normal((40, 4)) + mean)
        low, high, ceiling = gram_bounds(sp.as_coupling(D))
        rows = [[Fraction(float(entry)) for entry in row] for row in D]
        gram = [[sum(r[i] * r[j] for r in rows) for j in range(4)] for i in range(4)]
        unit = Fraction(float(scale)) ** 2
        scaled = [[entry / unit for entry in row] for row in gram]

        def above(shift, scaled=scaled, unit=unit):
            exact = [[entry - (Fraction(shift) / unit if i == j else 0) for j, entry in enumerate(row)]
                     for i, row in enumerate(scaled)]  # fmt: skip
            return eliminates(exact)

        assert high == ceiling
        top = Fraction(ceiling) / unit
        assert eliminates([[top * (i == j) - entry for j, entry in enumerate(row)] for i, row in enumerate(scaled)])
        assert low > 0.0
        assert above(low)
        assert not above(low * (1.0 + 1e-6))
        f = sp.LeastSquares(D, np.zeros(40))
        assert above(f.mu * 40 * (1.0 - 1e-15))


def test_a_matrix_that_is_singular_has_a_mu_that_sums_allow_for():
    # P = X'X is computed with rounding, and its smallest eigenvalue is negative by about 1e-5.
    X = 1e5 * np.random.default_rng(0).standard_normal((3, 6))
    P = X.T @ X
    P = 0.5 * (P + P.T)
    q = sp.Quadratic(P)
    assert q.mu < 0.0
    assert is_semidefinite(P, q.mu)
    total = q + sp.Quadratic(1e-2)
    assert 0.0 < total.mu < 1e-2
    assert is_semidefinite(P, Fraction(total.mu) - Fraction(1e-2))
    assert (3.0 * total).mu <= 3.0 * total.mu
    with pytest.raises(sp.ProblemError, match="not strongly convex"):
        sp.Saddle(q, sp.Quadratic(1.0), np.eye(6))
    with pytest.raises(sp.ProblemError, match="mu of Smooth is -1"):
        sp.Smooth(lambda x: x, mu=-1.0, L=1.0)


def test_mu_of_a_matrix_of_another_library_is_proven(xp):
    for n in (5, 1510):
        P = np.diag(np.linspace(1.0, 2.0, n))
        P[0, 1] = P[1, 0] = 0.5
        low, high = eigenvalue_bounds(sp.as_coupling(xp.asarray(P)))
        exact = float(np.linalg.eigvalsh(P[:2, :2])[0])
        assert 0.95 * exact < low <= exact * (1.0 + 1e-12)
        assert high >= 2.0


def test_sums_and_products_are_rounded_down():
    rng = np.random.default_rng(0)
    odd = [(1.0, 1e-30), (1.0, -1e-30), (5e-324, 0.3), (-5e-324, 0.3)]
    for a, b in [*rng.standard_normal((200, 2)).tolist(), *odd]:
        assert Fraction(add_down(a, b)) <= Fraction(a) + Fraction(b)
        assert Fraction(add_down(a, b)) >= Fraction(math.nextafter(a + b, -math.inf))
        assert Fraction(mul_down(a, b)) <= Fraction(a) * Fraction(b)
        assert Fraction(mul_down(a, b)) >= Fraction(math.nextafter(a * b, -math.inf))
        assert Fraction(div_down(a, abs(b))) <= Fraction(a) / abs(Fraction(b))
        assert Fraction(div_down(a, abs(b))) >= Fraction(math.nextafter(a / abs(b), -math.inf))
    most = sys.float_info.max  # a sum, product or quotient beyond it is not infinite
    assert add_down(most, most) == mul_down(most, 2.0) == div_down(most, 0.5) == most
    assert add_down(-most, -most) == mul_down(-most, 2.0) == div_down(-most, 0.5) == -math.inf
    assert add_down(math.inf, 1.0) == math.inf
    assert add_down(most, -1e290) < most
    assert math.isnan(add_down(math.nan, 1.0))
    assert math.isnan(mul_down(math.nan, 1.0))


def test_mu_of_sums_and_multiples_is_rounded_down():
    f, g = sp.Quadratic(0.1), sp.Quadratic(0.2)
    assert Fraction((f + g).mu) <= Fraction(0.1) + Fraction(0.2)
    assert Fraction((3.0 * f).mu) <= 3 * Fraction(0.1)
    assert (2.0 * f).mu == 0.2
    for high in (3.0, 10.0, 49.0, 0.3):
        assert Fraction(sp.Entropy(low=1e-3, high=high).mu) <= 1 / Fraction(high)
        f = sp.GroupHuber([0, 1], weight=high, width=0.7, l2=0.1)
        assert Fraction(f.conjugate().mu) <= 1 / Fraction(f.L)


# -- singular values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("seed", range(3))
def test_smallest_singular_values_and_largest_eigenvalues_hold_exactly(scale, seed):
    rng = np.random.default_rng(seed)
    near = rng.standard_normal((3, 6))
    near[2] = near[0] + 1e-8 * near[2]  # the square of the smallest singular value is lost in the rounding of E E'
    for E in (rng.standard_normal((3, 6)), near, np.eye(3, 6), np.ones((1, 6))):
        found = smallest_singular_value(scale * E)
        rows = [[Fraction(float(entry)) for entry in row] for row in scale * E]
        gram = [[sum(a * b for a, b in zip(r, s, strict=True)) for s in rows] for r in rows]

        def below(sigma, gram=gram):
            square = Fraction(sigma) ** 2
            return eliminates([[v - square * (i == j) for j, v in enumerate(row)] for i, row in enumerate(gram)])

        assert found > 0.0
        assert below(found)
        assert not below(found * (1.0 + 1e-6))
    P = next(matrices(seed))[1]
    high = largest_eigenvalue_bound(scale * P)
    assert is_semidefinite(-(scale * P), -high)
    assert not is_semidefinite(-(scale * P), -high * (1.0 - 1e-9))


@pytest.mark.parametrize("seed", range(20))
def test_rough_bounds_of_singular_values_are_below_and_not_far(seed):
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 8)), int(rng.integers(8, 12))
    E = rng.standard_normal((rows, columns)) * 10.0 ** rng.uniform(-200, 200)
    found, sharp = smallest_singular_value(E, rough=True), smallest_singular_value(E)
    assert sharp * (1.0 - 1e-9) / np.sqrt(rows) <= found <= sharp * (1.0 + 1e-9)
    E[-1] = E[0] + 1e-9 * E[-1]
    assert 0.0 <= smallest_singular_value(E, rough=True) <= smallest_singular_value(E) * (1.0 + 1e-9)


def test_singular_matrices_have_no_positive_bound():
    assert smallest_singular_value(np.ones((2, 5))) <= 0.0
    assert smallest_singular_value(np.zeros((2, 5))) == 0.0


def is_at_most(matrix, bound):
    """Whether bound I - (P + P')/2 is positive semidefinite, in exact arithmetic."""
    return is_semidefinite(-np.asarray(matrix), -bound)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_proven_upper_bounds_hold_exactly_and_are_close(scale, form):
    for kind, P, _ in matrices(5):
        P = scale * P
        bound = sp.Quadratic(form(P)).proven_L
        assert is_at_most(P, bound), kind
        assert not is_at_most(P, bound * (1.0 - 1e-9)), kind
        given = sp.Quadratic(form(P), mu=0.0, L=1e300).proven_L  # P shows it, whatever was given
        assert is_at_most(P, given), kind
        assert given <= 1.001 * bound, kind


def test_proven_upper_bounds_of_combinations_hold():
    rng = np.random.default_rng(11)
    P, D = rng.standard_normal((5, 5)), rng.standard_normal((9, 5))
    P, t, s = P @ P.T, rng.standard_normal(9), rng.uniform(-2.0, 2.0, 5)
    g, squares = sp.Quadratic(P), sp.LeastSquares(D, t, 0.3)
    H = D.T @ D / 9 + 0.3 * np.eye(5)
    whole = np.block([[P, np.zeros((5, 5))], [np.zeros((5, 5)), H]])
    for f, matrix in (
        (squares, H),
        (sp.LeastSquares(sparse.csr_array(D), t, 0.3), H),
        (g + squares, P + H),
        (3.0 * g, 3.0 * P),
        (0.7 * (g + 2.0 * squares) + sp.Quadratic(0.1), 0.7 * P + 1.4 * H + 0.1 * np.eye(5)),
        (affine(g, scale=s, weight=2.0), 2.0 * s[:, None] * P * s),
        (anchored(squares, 0.25, np.ones(5)), H + 0.25 * np.eye(5)),
        (block_sum([g, squares], [5, 5]), whole),
        (squares + sp.L1(0.1), H),
        (sp.Huber(D, t, 0.3), H),  # its second derivatives are at most 1
        (sp.Logistic(D, np.sign(t), 0.3), 0.25 * (H - 0.3 * np.eye(5)) + 0.3 * np.eye(5)),
    ):
        exact = float(np.linalg.eigvalsh(matrix)[-1])
        assert exact * (1.0 - 1e-12) <= f.proven_L, f
        assert (np.linalg.norm(matrix, axis=1) <= (1.0 + 1e-12) * partial_slopes(f)).all(), f
    own = sp.Smooth(g.grad, mu=0.0, L=g.L)
    for claim in (own, g + own, 2.0 * own, g.replace(grad=own.grad)):
        assert claim.proven_L is None


def hidden(n, K):
    """The identity but for two rows, where Lanczos' start sees no other curvature; these, and their numbers."""
    start = np.random.default_rng(0).standard_normal(n)
    order = np.argsort(np.abs(start))
    pairs = ((i, int(np.argmin(np.abs(np.abs(start) - np.abs(start[i]) * math.sqrt(K))))) for i in order[: n // 4])
    i, j = min(pairs, key=lambda pair: abs(abs(start[pair[0]] / start[pair[1]]) - K**-0.5))
    v = np.array([start[j], -start[i]]) / math.hypot(start[i], start[j])
    P = sparse.eye_array(n, format="lil")
    block = np.eye(2) + K * np.outer(v, v)
    P[i, i], P[i, j], P[j, i], P[j, j] = block[0, 0], block[0, 1], block[1, 0], block[1, 1]
    return P.tocsr(), block, i, j


def test_a_curvature_that_no_start_sees_makes_no_support_false():
    P, block, i, j = hidden(1600, 60.0)
    assert np.linalg.eigvalsh(block)[-1] <= sp.Quadratic(P).L
    x = np.zeros(1600)
    x[[i, j]] = 1e-3, 1.0
    b = -(P @ x + np.sign(x))
    f = sp.Saddle(sp.Quadratic(P, b) + sp.L1(1.0), sp.Quadratic(1.0), sparse.csr_array((1600, 1)))
    for off in np.concatenate([-np.geomspace(1e-5, 0.1, 20), np.geomspace(1e-5, 0.1, 20)]):
        near = np.zeros(1600)
        near[j] = 1.0 + off
        assert sp.certify(f, near, np.zeros(1)).support_x[i] != Support.ZERO
