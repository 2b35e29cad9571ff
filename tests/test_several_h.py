"""Lists of h and A, complex operators, operators of PyLops, and numbers in the place of vectors."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator

import saddlepoint as sp

RNG = np.random.default_rng(2)
A1, A2, A3 = RNG.standard_normal((6, 4)), RNG.standard_normal((6, 3)), RNG.standard_normal((6, 5))


def test_lists_are_the_problem_with_one_matrix():
    g, h = sp.LeastSquares(RNG.standard_normal((9, 6)), RNG.standard_normal(9), l2=0.1), sp.Quadratic(2.0, 0.3)
    several = sp.Saddle(g, [h, sp.LogCosh(l2=0.5) + sp.Box(-1.0, 1.0), sp.Quadratic(1.0)], [A1, csr_array(A2), A3])
    lower, upper = np.full(12, -np.inf), np.full(12, np.inf)
    lower[4:7], upper[4:7] = -1.0, 1.0
    joined = sp.Smooth(
        lambda y: np.concatenate([2.0 * y[:4] + 0.3, np.tanh(y[4:7]) + 0.5 * y[4:7], y[7:]]), mu=0.5, L=2.0
    )
    one = sp.Saddle(g, joined + sp.Box(lower, upper), np.hstack([A1, A2, A3]))
    assert (several.mu_y, several.L_y, several.shape) == (0.5, 2.0, (6, 12))
    found, truth = sp.solve(several, tol=1e-10), sp.solve(one, tol=1e-9)
    assert found.solved
    assert np.allclose(found.x, truth.x, atol=2e-9)
    assert [part.shape[0] for part in several.split_y(found.y)] == [4, 3, 5]
    assert np.abs(several.split_y(found.y)[1]).max() <= 1.0


def test_operators_and_matrices_side_by_side_are_one_coupling():
    g, h = sp.Quadratic(1.0, RNG.standard_normal(6)), sp.Quadratic(1.0)
    mixed = sp.Saddle(g, [h, h], [aslinearoperator(A1), csr_array(A2)])
    plain = sp.Saddle(g, h, np.hstack([A1, A2]))
    x, y = RNG.standard_normal(6), RNG.standard_normal(7)
    for ours, theirs in zip(mixed.field(x, y), plain.field(x, y), strict=True):
        assert np.allclose(ours, theirs, rtol=1e-12)
    assert np.allclose(mixed.A.T.mul(x), plain.A.tmul(x), rtol=1e-12)
    assert np.allclose(sp.solve(mixed, tol=1e-9).x, sp.solve(plain, tol=1e-9).x, atol=2e-9)


@pytest.mark.parametrize(
    ("h", "A", "sentence"),
    [
        ([sp.Quadratic(1.0)], [A1, A2], "a list of 1 functions, but A is a list of 2"),
        ([sp.Quadratic(1.0)], A1, "A is no list"),
        ([sp.Quadratic(1.0), 3.0], [A1, A2], r"h\[1\]"),
        ([sp.Quadratic(1.0), sp.Quadratic(1.0)], [A1, A2[:5]], r"A\[1\] has 5 rows, but A\[0\] has 6"),
        ([sp.Quadratic(1.0), sp.Quadratic(np.ones(2))], [A1, A2], "function 1 of the list has 2 variables, but its"),
        ([], [], "empty"),
    ],
)
def test_lists_that_do_not_fit_are_refused(h, A, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        sp.Saddle(sp.Quadratic(1.0), h, A)


def test_numbers_stand_for_vectors():
    D, t = RNG.standard_normal((5, 3)), np.full(5, 0.3)
    x = RNG.standard_normal(3)
    pairs = [
        (sp.Quadratic(2.0, 0.3), sp.Quadratic(2.0, np.full(3, 0.3))),
        (sp.Quadratic(np.eye(3), 0.3), sp.Quadratic(np.eye(3), np.full(3, 0.3))),
        (sp.Huber(None, 0.3, l2=0.1), sp.Huber(None, np.full(3, 0.3), l2=0.1)),
        (sp.LogCosh(None, 0.3, l2=0.1), sp.LogCosh(None, np.full(3, 0.3), l2=0.1)),
        (sp.LogSumExp(None, 0.3, l2=0.1), sp.LogSumExp(None, np.full(3, 0.3), l2=0.1)),
        (sp.LeastSquares(D, 0.3), sp.LeastSquares(D, t)),
        (sp.Huber(D, 0.3), sp.Huber(D, t)),
        (sp.LogSumExp(D, 0.3), sp.LogSumExp(D, t)),
    ]
    for ours, theirs in pairs:
        assert np.allclose(ours.grad(x), theirs.grad(x), rtol=1e-14)
        assert ours(x) == pytest.approx(theirs(x), rel=1e-13)
        assert (ours.rounding(x) >= theirs.rounding(x)).all()
        assert np.allclose(ours.compensated(x)[0], theirs.compensated(x)[0], rtol=1e-14)
        if ours.has_prox:
            assert np.allclose(ours.prox(x, 0.7), theirs.prox(x, 0.7), rtol=1e-13)
        if ours.restrict is not None:
            assert np.allclose(ours.restrict(slice(1, 3)).grad(x[1:]), theirs.grad(x)[1:], rtol=1e-14)
    many = [sp.Saddle(sp.Quadratic(1.0, 0.3), sp.Huber(None, 0.1, l2=1.0), s * np.eye(3)) for s in (1.0, 2.0)]
    for one, result in zip(many, sp.solve_many(many, tol=1e-10), strict=True):
        assert np.allclose(result.x, sp.solve(one, tol=1e-10).x, atol=1e-9)
    with pytest.raises(sp.ProblemError, match="b of Quadratic is nan"):
        sp.Quadratic(1.0, float("nan"))


def test_complex_matrices_have_a_real_view():
    A = RNG.standard_normal((4, 3)) + 1j * RNG.standard_normal((4, 3))
    z, w = RNG.standard_normal(3) + 1j * RNG.standard_normal(3), RNG.standard_normal(4) + 1j * RNG.standard_normal(4)
    for given in (A, csr_array(A), aslinearoperator(A)):
        view = sp.real_view(given)
        assert view.shape == (8, 6)
        assert np.allclose(sp.complex_view(view @ sp.real_view(z)), A @ z)
        assert np.allclose(sp.complex_view(view.T @ sp.real_view(w)), A.conj().T @ w)
        narrow = sp.real_view(given, real_columns=True)
        assert np.allclose(sp.complex_view(narrow @ z.real), A @ z.real)
        assert np.allclose(narrow.T @ sp.real_view(w), (A.conj().T @ w).real)
    for wrong in (np.zeros(3), np.zeros((2, 2))):
        with pytest.raises(sp.ProblemError, match="even length"):
            sp.complex_view(wrong)
    with pytest.raises(sp.ProblemError, match="expected a vector or a matrix"):
        sp.real_view(np.zeros((2, 2, 2)))


def test_a_complex_least_squares_problem_is_solved():
    """|A z - b|^2/2 is the largest real part of <u, A z - b> - |u|^2/2."""
    A = RNG.standard_normal((5, 3)) + 1j * RNG.standard_normal((5, 3))
    b = RNG.standard_normal(5) + 1j * RNG.standard_normal(5)
    f = sp.Saddle(sp.Quadratic(0.5), sp.Quadratic(1.0, sp.real_view(b)), sp.real_view(A).T)
    z = sp.complex_view(sp.solve(f, tol=1e-10).x)
    assert np.allclose(z, np.linalg.solve(A.conj().T @ A + 0.5 * np.eye(3), A.conj().T @ b), atol=1e-9)


def test_operators_of_pylops_are_solved_and_modelled():
    """Deblurring with an operator that is known by its products, alone and in a model; and a complex transform."""
    pylops = pytest.importorskip("pylops")
    n = 30
    blur = pylops.signalprocessing.Convolve1D(n, h=np.array([0.25, 0.5, 0.25]), offset=1)
    b = blur @ np.repeat([0.0, 1.0, 0.2], 10)
    f = sp.Saddle(sp.Quadratic(0.1), sp.Quadratic(1.0, b), blur.T)
    H = blur.todense()
    truth = np.linalg.solve(H.T @ H + 0.1 * np.eye(n), H.T @ b)
    assert np.allclose(sp.solve(f, tol=1e-9).x, truth, atol=1e-8)
    x = sp.model.minimiser(n, "x")
    fit = sp.model.sum_squares(sp.model.linear_map(blur, x) - b)
    model = sp.model.Problem(0.5 * fit + 0.05 * sp.model.sum_squares(x))
    assert np.allclose(model.solve(tol=1e-9)["x"], truth, atol=1e-8)
    transform = pylops.signalprocessing.FFT(16, dtype="complex128")
    view = sp.real_view(transform)
    z = RNG.standard_normal(16) + 1j * RNG.standard_normal(16)
    assert np.allclose(sp.complex_view(view @ sp.real_view(z)), transform @ z)
    assert np.allclose(sp.complex_view(view.T @ sp.real_view(z)), transform.H @ z)
