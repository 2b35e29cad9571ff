"""Applications certify the numbers that they were given: the truth is computed from them in rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from exact import centred_columns, distance, dot, exact, length, mean, solved, times, transposed, weighted_gram
from scipy import sparse

from saddlepoint.apps import AUCClassifier, PolicyEvaluation, auc
from saddlepoint.apps.risk import RiskRegressor
from saddlepoint.apps.robust_least_squares import RobustLeastSquares
from saddlepoint.apps.structure import Graph

MEANS = [0.0, 1e4, 1e7, 1e10]
CONTAINERS = {
    "dense": lambda X, rng: (X, X),
    "sparse, all stored": lambda X, rng: (X, sparse.csr_array(X)),
    "sparse": lambda X, rng: sparsified(X * (rng.random(X.shape) < 0.4)),
    "sparse, one column stored": lambda X, rng: sparsified(
        np.hstack((X[:, :1], X[:, 1:] * (rng.random(X[:, 1:].shape) < 0.4)))
    ),
}


def sparsified(X):
    return X, sparse.csr_array(X)


def samples(kind, centre, scale, seed=0, N=24, d=3):
    """X as an array, X as it is given to an estimator, and labels."""
    rng = np.random.default_rng(seed)
    positive = np.arange(N) % 3 == 0
    X = rng.standard_normal((N, d)) + centre
    X[positive, 0] += 1.0
    return *CONTAINERS[kind](scale * X, rng), positive


def auc_truth(X, positive, l2, c, s):
    """The saddle point (w, u, v, alpha) of the problem in the docstring of AUCClassifier."""
    D = [[u - v for u, v in zip(row, exact(c), strict=True)] for row in exact(X)]
    N, p = len(D), mean([Fraction(int(v)) for v in positive])
    q, s, d = 1 - p, Fraction(s), len(c)
    gap = [
        mean([r for r, v in zip(column, positive, strict=True) if v])
        - mean([r for r, v in zip(column, positive, strict=True) if not v])
        for column in zip(*D, strict=True)
    ]
    rows = [[*row, -s, Fraction(0)] if v else [*row, Fraction(0), -s] for row, v in zip(D, positive, strict=True)]
    P = weighted_gram(rows, [2 * (q if v else p) / N for v in positive])
    for j in range(d):
        P[j][j] += Fraction(l2)
    slope = [*(-2 * p * q * v for v in gap), Fraction(0), Fraction(0)]
    K = [[*row, v] for row, v in zip(P, slope, strict=True)] + [[*(-v for v in slope), 2 * p * q]]
    return solved(K, [*(-v for v in slope), Fraction(0)])


@pytest.mark.parametrize("small", [0, 1000], ids=["streamed", "matrix"])
@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("centre", MEANS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_auc(centre, kind, small, monkeypatch):
    monkeypatch.setattr(auc, "SMALL", small)
    for scale, l2 in ((1e-8, 1e-2), (1.0, 1e-2), (1e8, 1e14)):
        X, given, positive = samples(kind, centre, scale)
        l2 = l2 * max(1.0, float(np.abs(X - X.mean(axis=0)).max()) / scale) ** 2  # so that l2 is not lost in rounding
        model = AUCClassifier(l2).fit(given, positive)
        pairs = auc.Pairs(given, positive, l2, auc._block_rows(given, None))
        truth = auc_truth(X, positive, l2, pairs.centre, pairs.unit)
        x, y = model.result_.x, model.result_.y
        true = distance(x, truth[:-1]) + distance(y, truth[-1:])
        assert true <= model.certificate_.distance
        assert model.result_.solved
        if kind != "sparse":  # means of dense columns cost nothing
            assert model.certificate_.distance <= 1e-9 or scale < 1.0


def regression(kind, centre, scale, seed=0):
    """X as an array, X as it is given to an estimator, and targets, some of them far off."""
    X, given, _ = samples(kind, centre, scale, seed)
    rng = np.random.default_rng(seed)
    y = (X - X.mean(axis=0)) @ [1.0, -0.5, 0.2] / scale + 0.1 * rng.standard_normal(len(X)) + 3.0 * centre
    y[::5] += 20.0
    return X, given, y


def graph_truth(X, y, l2, strength):
    """The saddle point (w, z) of squared loss with the graph of the edges (0, 1) and (1, 2)."""
    D, t = centred_columns(exact(X)), [v - mean(exact(y)) for v in exact(y)]
    N, K = len(D), [[1, -1, 0], [0, 1, -1]]
    P = weighted_gram(D, [Fraction(1, N)] * N)
    for j in range(3):
        P[j][j] += Fraction(l2)
    rows = [[*P[j], *(Fraction(k[j]) for k in K)] for j in range(3)]
    rows += [
        [*(-Fraction(v) for v in K[i]), *(Fraction(int(i == j)) / Fraction(strength) for j in range(2))]
        for i in range(2)
    ]
    return solved(rows, [*(v / N for v in times(transposed(D), t)), Fraction(0), Fraction(0)])


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("centre", MEANS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_squared_loss(centre, kind):
    for scale in (1e-8, 1.0, 1e8):
        X, given, y = regression(kind, centre, scale)
        l2 = 1e-3 * float(np.var(X, axis=0).max())
        strength = 0.3 * l2
        structure = Graph([(0, 1), (1, 2)], strength)
        model = RiskRegressor(l2=l2, structure=structure, max_seconds=0.3).fit(given, y)
        truth = graph_truth(X, y, l2, strength)
        true = distance(model.result_.x, truth[:3]) + distance(model.result_.y, truth[3:])
        assert true <= model.certificate_.distance
        assert model.result_.solved or X.std() > 1e3  # then z is far larger than w


def huber_truth(X, y, l2, delta, near):
    """The minimiser (w, b) of Huber's loss with l2, from the residuals that are beyond delta at a point near it."""
    D, t = centred_columns(exact(X)), [v - mean(exact(y)) for v in exact(y)]
    D, N, delta = [[*row, Fraction(1)] for row in D], len(D), Fraction(delta)
    n, r = len(D[0]), [dot(row, exact(near)) - v for row, v in zip(D, t, strict=True)]
    inside = [Fraction(int(abs(v) <= delta), N) for v in r]
    P = weighted_gram(D, inside)
    for j in range(n):
        P[j][j] += Fraction(l2)
    pulls = [v if abs(u) <= delta else (-delta if u > 0 else delta) for u, v in zip(r, t, strict=True)]
    w = solved(P, [v / N for v in times(transposed(D), pulls)])
    after = [dot(row, w) - v for row, v in zip(D, t, strict=True)]
    assert [u > delta for u in r] == [u > delta for u in after]  # otherwise w is not the minimiser
    assert [u < -delta for u in r] == [u < -delta for u in after]
    return w


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("centre", MEANS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_huber_loss(centre, kind):
    X, given, y = regression(kind, centre, 1.0)
    l2 = 1e-2 * max(1.0, float(np.var(X, axis=0).max()))
    model = RiskRegressor("huber", l2, delta=1.0, max_seconds=0.5).fit(given, y)
    truth = huber_truth(X, y, l2, 1.0, model.result_.x)
    assert distance(model.result_.x, truth) <= model.certificate_.distance
    assert model.result_.solved or X.std() > 1e3


def worst_case_error(X, y, radius, w):
    """rms(x'w + b - y) + radius |w| with the best b."""
    D, t = centred_columns(exact(X)), [v - mean(exact(y)) for v in exact(y)]
    r = [dot(row, exact(w)) - v for row, v in zip(D, t, strict=True)]
    return length(r) / np.sqrt(len(r)) + radius * length(exact(w))


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("centre", MEANS)
def test_robust_least_squares(centre, kind):
    X, given, y = regression(kind, centre, 1.0)
    radius = 0.1 * float(X.std(axis=0).max())
    model = RobustLeastSquares(radius).fit(given, y)
    lower, upper = model.interval_
    error = worst_case_error(X, y, radius, model.coef_)
    assert lower <= error * (1.0 + 1e-14)
    assert error <= upper * (1.0 + 1e-14)
    assert upper - lower <= 1e-8 * upper
    for step in 1e-9 * np.random.default_rng(0).standard_normal((5, 3)) * np.abs(model.coef_):
        assert lower <= worst_case_error(X, y, radius, model.coef_ + step) * (1.0 + 1e-14)


@pytest.mark.parametrize("centre", [0.0, 1e2, 1e4])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_policy_evaluation(make, centre):
    rng = np.random.default_rng(0)
    p, q, r = rng.standard_normal((12, 2)) + centre, rng.standard_normal((12, 2)) + centre, rng.standard_normal(12)
    task = PolicyEvaluation(make(p), make(q), r, 0.5, ridge=1.0, ridge_w=1.0)
    value = task.solve(tol=1e-6, max_seconds=1.0)
    rows, weights = exact(p), [Fraction(1, 12)] * 12
    psi = [[u - v / 2 for u, v in zip(a, b, strict=True)] for a, b in zip(rows, exact(q), strict=True)]
    M, C = weighted_gram(rows, weights, psi), weighted_gram(rows, weights)
    b = [v / 12 for v in times(transposed(rows), exact(r))]
    Mt = transposed(M)
    K = [[Fraction(int(i == j)) for j in range(2)] + [-v for v in Mt[i]] for i in range(2)]
    K += [[*M[i], *(C[i][j] + int(i == j) for j in range(2))] for i in range(2)]
    truth = solved(K, [Fraction(0), Fraction(0), *b])
    assert distance(value.theta, truth[:2]) + distance(value.w, truth[2:]) <= value.certificate.distance
    assert value.solved or centre > 1e3
