"""Applications certify the numbers that they were given: the truth is computed from them in rational arithmetic."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from exact import centred_columns, distance, dot, exact, length, mean, solved, times, transposed, weighted_gram
from scipy import sparse
from tiers import slow_except

import saddlepoint as sp
from saddlepoint.apps import AUCClassifier, PolicyEvaluation, auc, auc_pairs
from saddlepoint.apps.constrained_huber import ConstrainedHuber
from saddlepoint.apps.risk import RiskClassifier, RiskRegressor
from saddlepoint.apps.robust_least_squares import RobustLeastSquares
from saddlepoint.apps.structure import Graph, Norms, Squares

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
@pytest.mark.parametrize("kind", slow_except(CONTAINERS, next(iter(CONTAINERS))))
@pytest.mark.parametrize("centre", slow_except(MEANS, MEANS[-1]))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_certificate_of_auc_holds_for_the_given_data(centre, kind, small, monkeypatch):
    monkeypatch.setattr(auc_pairs, "SMALL", small)
    for scale, l2 in ((1e-8, 1e-2), (1.0, 1e-2), (1e8, 1e14)):
        X, given, positive = samples(kind, centre, scale)
        l2 = l2 * max(1.0, float(np.abs(X - X.mean(axis=0)).max()) / scale) ** 2  # so that l2 is not lost in rounding
        model = AUCClassifier(l2, tol=1e-9 if kind != "sparse" and scale >= 1.0 else 1e-6).fit(given, positive)
        pairs = auc_pairs.Pairs(given, positive, l2, auc._block_rows(given, None))
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


@pytest.mark.parametrize("kind", slow_except(CONTAINERS, next(iter(CONTAINERS))))
@pytest.mark.parametrize("centre", slow_except(MEANS, MEANS[-1]))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_certificate_of_the_squared_loss_holds_for_the_given_data(centre, kind):
    for scale in (1e-8, 1.0, 1e8):
        X, given, y = regression(kind, centre, scale)
        l2 = 1e-3 * float(np.var(X, axis=0).max())
        strength = 0.3 * l2
        structure = Graph([(0, 1), (1, 2)], strength)
        easy = X.std() <= 1e3  # elsewhere z is far larger than w, and the run may be slow
        model = RiskRegressor(l2=l2, structure=structure, max_seconds=None if easy else 0.3).fit(given, y)
        truth = graph_truth(X, y, l2, strength)
        true = distance(model.result_.x, truth[:3]) + distance(model.result_.y, truth[3:])
        assert true <= model.certificate_.distance
        assert model.result_.solved or not easy


@pytest.mark.parametrize(("loss", "draws"), [("squared", 30), ("huber", 3)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_certificate_without_a_structure_contains_what_centring_has_rounded(loss, draws):
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = (rng.standard_normal((12, 2)) + 2.0**20 * rng.random()) * (rng.random((12, 2)) < 0.7)
        y = rng.standard_normal(12)
        model = RiskRegressor(loss, 0.01, delta=100.0, tol=1e-9, max_seconds=0.3)  # no residual is larger than delta
        model.fit(X, y)
        D, t = centred_columns(exact(X)), [v - mean(exact(y)) for v in exact(y)]
        P = weighted_gram(D, [Fraction(1, 12)] * 12)
        for j in range(2):
            P[j][j] += Fraction(0.01)
        w = solved(P, [v / 12 for v in times(transposed(D), t)])
        if loss == "huber":
            w = [*w, Fraction(0)]  # with centred data the constant has no weight
        assert distance(model.result_.x, w) <= model.certificate_.distance_x


def root(value):
    """The square root of a positive number to 60 digits."""
    with localcontext(prec=60):
        return Fraction(Decimal(value).sqrt())


def test_the_certificate_with_weights_of_a_graph_is_true():
    """The rows of K are square roots of weights, which are irrational."""
    X, given, y = regression("dense", 0.0, 1.0)
    weights = [0.1, 0.7]
    edges = sparse.coo_array((weights, ([0, 1], [1, 2])), shape=(3, 3))
    l2, strength = 1e-3, 3.0
    model = RiskRegressor(l2=l2, structure=Graph(edges + edges.T, strength), tol=1e-12)
    result = model.fit(given, y).result_
    D, t = centred_columns(exact(X)), [v - mean(exact(y)) for v in exact(y)]
    roots = [root(v) for v in weights]
    P = weighted_gram(D, [Fraction(1, len(D))] * len(D))
    for j in range(3):
        P[j][j] += Fraction(l2)
    for edge, weight in enumerate(exact(weights)):
        for i, j, sign in ((edge, edge, 1), (edge + 1, edge + 1, 1), (edge, edge + 1, -1), (edge + 1, edge, -1)):
            P[i][j] += sign * Fraction(strength) * weight
    w = solved(P, [v / len(D) for v in times(transposed(D), t)])
    z = [Fraction(strength) * r * (w[i] - w[i + 1]) for i, r in enumerate(roots)]
    assert distance(result.x, w) + distance(result.y, z) <= result.certificate.distance
    assert result.certificate.distance <= 1e-11


def test_the_certificate_with_norms_of_differences_is_true():
    X, given, y = regression("dense", 0.0, 1.0)
    K = np.array([[0.1, -0.1, 0.0], [0.0, 0.3, -0.3]])
    l2, strength, width = 1e-3, 1e-3, 0.05
    f = RiskRegressor(l2=l2, structure=Norms(K, strength, width)).problem(given, y)
    result = sp.solve(f, tol=1e-11, max_calls=100_000)
    D, t, N = centred_columns(exact(X)), [v - mean(exact(y)) for v in exact(y)], Fraction(1, len(X))
    slope, moved = Fraction(strength) / Fraction(width), Fraction(f.h.of.l2)  # moved: the part of l2 that is in h
    near = times(exact(K), exact(result.x))
    P, q = weighted_gram(D, [N] * len(D)), [v * N for v in times(transposed(D), t)]
    for j in range(3):
        P[j][j] += Fraction(l2)
    for row, v in zip(exact(K), near, strict=True):
        for i in range(3):
            if abs(v) > Fraction(width):
                q[i] -= Fraction(strength) * row[i] * (1 if v > 0 else -1)
            for j in range(3) if abs(v) <= Fraction(width) else ():
                P[i][j] += slope * row[i] * row[j]
    w = solved(P, q)
    found = times(exact(K), w)
    assert [abs(u) > Fraction(width) for u in near] == [abs(u) > Fraction(width) for u in found]
    z = [min(max(slope * v, -Fraction(strength)), Fraction(strength)) + moved * v for v in found]
    assert distance(result.x, w) + distance(result.y, z) <= result.certificate.distance


def off_bound(found, truth):
    """Whether an entry of a sum of two vectors is farther from the truth than its bound."""
    pairs = zip(exact(found[0]), exact(found[1]), exact(found[2]), truth, strict=True)
    return any(abs(hi + lo - true) > error for hi, lo, error, true in pairs)


def test_rounding_of_a_structure_is_bounded():
    """The products in about twice the digits show what was lost before, when K and its functions were formed."""
    x = np.array([1.0, 0.7, -0.4])
    K = np.repeat([[0.1, -0.1, 0.0], [0.0, 0.3, -0.3]], 2000, axis=0)  # in K'K all rounding goes the same way
    ridge, h = Norms(K, 1e-3, 0.05).split(sparse.csr_array(K), 1e-3)
    gram = [[2000 * sum(row[i] * row[j] for row in exact(K[[0, 2000]])) for j in range(3)] for i in range(3)]
    truth = [Fraction(1e-3) * u - Fraction(h.of.l2) * v for u, v in zip(exact(x), times(gram, exact(x)), strict=True)]
    assert not off_bound(ridge.compensated(x), truth)
    _, squares = Squares(K, 0.3).split(sparse.csr_array(K), 1e-3)
    assert not off_bound(squares.compensated(x), [v / Fraction(0.3) for v in exact(x)])
    assert Fraction(squares.mu) * Fraction(0.3) <= 1
    graph = Graph(sparse.csr_array([[0.0, 0.7, 0.0], [0.7, 0.0, 0.1], [0.0, 0.1, 0.0]]))
    product = graph.coupling(graph.matrix(3)).compensated_mul(np.array([0.3, 0.5]))
    first, second = root(0.7) * Fraction(0.3), root(0.1) * Fraction(0.5)
    assert not off_bound(product, [first, second - first, -second])


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


@pytest.mark.parametrize("kind", slow_except(CONTAINERS, next(iter(CONTAINERS))))
@pytest.mark.parametrize("centre", slow_except(MEANS, MEANS[-1]))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_certificate_of_the_huber_loss_holds_for_the_given_data(centre, kind):
    X, given, y = regression(kind, centre, 1.0)
    l2 = 1e-2 * max(1.0, float(np.var(X, axis=0).max()))
    easy = X.std() <= 1e3
    model = RiskRegressor("huber", l2, delta=1.0, max_seconds=None if easy else 0.5).fit(given, y)
    truth = huber_truth(X, y, l2, 1.0, model.result_.x)
    assert distance(model.result_.x, truth) <= model.certificate_.distance
    assert model.result_.solved or not easy


def slope_and_second_derivative(loss, margin):
    """The first two derivatives of the loss of a classifier at a margin: exact for hinge, to 60 digits for logistic."""
    if loss == "smoothed_hinge":
        inside = 0 < 1 - margin < 1
        return (margin - 1 if inside else Fraction(-int(margin <= 0))), Fraction(int(inside))
    with localcontext(prec=60):
        share = 1 / (1 + (Decimal(margin.numerator) / Decimal(margin.denominator)).exp())
        return Fraction(-share), Fraction(share * (1 - share))


def classifier_truth(loss, X, signs, l2, strength, near):
    """The minimiser w of a loss with a constant feature, l2 and the graph of the edge (0, 1), and z = strength K w.

    Newton's method starts at a point nearby. It is exact for the hinge, whose slope is piecewise linear.
    """
    D = [[s * v for v in [*row, Fraction(1)]] for row, s in zip(exact(X), signs, strict=True)]
    n, w = len(D[0]), exact(near)
    edge = [Fraction(1), Fraction(-1)] + [Fraction(0)] * (n - 2)
    for _ in range(6):
        slopes, second_derivatives = zip(*(slope_and_second_derivative(loss, dot(row, w)) for row in D), strict=True)
        P = weighted_gram(D, [v / len(D) for v in second_derivatives])
        for i in range(n):
            P[i][i] += Fraction(l2)
            for j in range(n):
                P[i][j] += Fraction(strength) * edge[i] * edge[j]
        pull = times(transposed(D), [v / len(D) for v in slopes])
        z = Fraction(strength) * dot(edge, w)
        gradient = [u + Fraction(l2) * v + z * e for u, v, e in zip(pull, w, edge, strict=True)]
        w = [u - v for u, v in zip(w, solved(P, gradient), strict=True)]
        with localcontext(prec=60):
            w = [Fraction(Decimal(v.numerator) / Decimal(v.denominator)) for v in w]
    assert length(gradient) <= 1e-40 * l2 * length(w)  # otherwise w is not the minimiser
    return w, [Fraction(strength) * dot(edge, w)]


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "smoothed_hinge"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("centre", [0.0, 1e7])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_certificate_of_a_classifier_holds_for_the_given_data(centre, kind, loss):
    for scale in (1e-8, 1.0, 1e8):
        X, given, positive = samples(kind, centre, scale)
        l2 = 1e-3 * max(1.0, float(np.abs(X).max()) ** 2)
        easy = centre == 0.0 and scale == 1.0  # elsewhere z and w have different sizes, and the run may be slow
        structure = Graph([(0, 1)], 0.3 * l2)
        model = RiskClassifier(loss, l2, structure=structure, tol=1e-8, max_seconds=None if easy else 0.1)
        result = model.fit(given, positive).result_
        w, z = classifier_truth(loss, X, [1 if v else -1 for v in positive], l2, 0.3 * l2, result.x)
        assert distance(result.x, w) + distance(result.y, z) <= result.certificate.distance
        assert result.solved or not easy


def constrained_truth(X, y, l2, delta, E, e, near):
    """The w of Huber's loss with a free intercept and E w = e, from the residuals beyond delta near the solution."""
    D, t, N, delta = [[*row, Fraction(1)] for row in exact(X)], exact(y), len(X), Fraction(delta)
    n, k = len(D[0]), len(E)
    sides = [(v > delta) - (v < -delta) for v in (dot(row, exact(near)) - u for row, u in zip(D, t, strict=True))]
    P = weighted_gram(D, [Fraction(int(s == 0), N) for s in sides])
    pulls = [-s * delta if s else u for s, u in zip(sides, t, strict=True)]
    for j in range(n - 1):
        P[j][j] += Fraction(l2)
    rows = [[*row, Fraction(0)] for row in exact(E)]
    K = [[*P[i], *(row[i] for row in rows)] for i in range(n)] + [[*row, *[Fraction(0)] * k] for row in rows]
    w = solved(K, [v / N for v in times(transposed(D), pulls)] + exact(e))[:n]
    found = [dot(row, w) - u for row, u in zip(D, t, strict=True)]
    assert sides == [(v > delta) - (v < -delta) for v in found]  # otherwise w is not the solution
    return w[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("apart", [1.0, 1e-6], ids=["equations", "nearly dependent equations"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_certificate_of_regression_with_equations_holds_for_the_given_data(scale, kind, dtype, apart):
    rng = np.random.default_rng(0)
    X, given, y = regression(kind, 0.0, scale)
    X, given, y = X.astype(dtype), given.astype(dtype), (y + 0.1 * rng.standard_normal(len(y))).astype(dtype)
    l2, delta = 1e-2 * float(np.var(X, axis=0).max()), 0.3
    E = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0 + apart]])
    e = np.array([0.5, 0.5]) / scale
    model = ConstrainedHuber((E, e), delta=delta, l2=l2, tol=1e-7).fit(given, y)
    truth = constrained_truth(X, y, l2, delta, E, e, np.append(model.coef_, model.intercept_))
    assert distance(model.coef_, truth) <= model.certificate_.distance
    assert model.certificate_.assumes == ()


def worst_case_error(X, y, radius, w):
    """rms(x'w + b - y) + radius |w| with the best b."""
    D, t = centred_columns(exact(X)), [v - mean(exact(y)) for v in exact(y)]
    r = [dot(row, exact(w)) - v for row, v in zip(D, t, strict=True)]
    return length(r) / np.sqrt(len(r)) + radius * length(exact(w))


@pytest.mark.parametrize("kind", slow_except(CONTAINERS, next(iter(CONTAINERS))))
@pytest.mark.parametrize("centre", slow_except(MEANS, MEANS[-1]))
def test_the_interval_of_robust_least_squares_is_true(centre, kind):
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


def policy_truth(p, q, r, weights, discount, ridge, ridge_w):
    """The saddle point (theta, w) of policy evaluation; all arguments are fractions, and the weights sum to one."""
    psi = [[u - discount * v for u, v in zip(a, b, strict=True)] for a, b in zip(p, q, strict=True)]
    M, C, n = weighted_gram(p, weights, psi), weighted_gram(p, weights), len(p[0])
    b = times(transposed(p), [w * v for w, v in zip(weights, r, strict=True)])
    Mt = transposed(M)
    K = [[ridge * int(i == j) for j in range(n)] + [-v for v in Mt[i]] for i in range(n)]
    K += [[*M[i], *(C[i][j] + ridge_w * int(i == j) for j in range(n))] for i in range(n)]
    return solved(K, [Fraction(0)] * n + b)


def policy_distance(value, truth):
    n = len(value.theta)
    return distance(value.theta, truth[:n]) + distance(value.w, truth[n:])


RIDGES = {  # ridge, ridge_w, and whether M and C are formed
    "both ridges": (1.0, 1.0, True),
    "LSTD": (0.0, 0.0, True),
    "LSTD with ridge_w": (0.0, 1.0, True),
    "products only": (1.0, 1.0, False),
}


@pytest.mark.slow
@pytest.mark.parametrize("ridges", RIDGES)
@pytest.mark.parametrize("centre", [0.0, 1e2, 1e4])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_certificate_of_policy_evaluation_holds_for_the_given_data(make, centre, ridges, monkeypatch):
    ridge, ridge_w, formed = RIDGES[ridges]
    monkeypatch.setattr(PolicyEvaluation, "_compact", lambda self: formed)
    rng = np.random.default_rng(0)
    p, q, r = rng.standard_normal((12, 2)) + centre, rng.standard_normal((12, 2)) + centre, rng.standard_normal(12)
    weights = rng.uniform(0.1, 3.0, 12)
    task = PolicyEvaluation(make(p), make(q), r, 0.5, weights=weights, ridge=ridge, ridge_w=ridge_w)
    assert task.formed is formed
    easy = centre <= 1e3
    value = task.solve(tol=1e-6, max_seconds=None if easy else 0.3)
    shares = [v / sum(exact(weights)) for v in exact(weights)]
    truth = policy_truth(exact(p), exact(q), exact(r), shares, Fraction(1, 2), Fraction(ridge), Fraction(ridge_w))
    if value.certificate is None:  # rounding could make M singular
        assert not easy
    else:
        assert policy_distance(value, truth) <= value.certificate.distance
        assert value.certificate.assumes == ()
        assert value.solved or not easy


@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("features", [False, True], ids=["tabular", "features"])
def test_the_certificate_of_the_values_of_a_model_is_true(features, ridge):
    rng = np.random.default_rng(1)
    P, r, weights = rng.uniform(0.1, 1.0, (6, 6)), 1e6 * rng.standard_normal(6), rng.uniform(0.5, 2.0, 6)
    P /= P.sum(axis=1, keepdims=True)
    F = rng.standard_normal((6, 3)) + 30.0 if features else None
    task = PolicyEvaluation.from_model(P, r, 0.875, F, weights, terminal=[5], ridge=ridge)
    value = task.solve(tol=1e-3)
    states = [*(exact(F)[:5] if features else exact(np.eye(5))), [Fraction(0)] * (3 if features else 5)]
    after = [times(transposed(states), row) for row in exact(P)[:5]]
    shares = [v / sum(exact(weights)[:5]) for v in exact(weights)[:5]]
    truth = policy_truth(states[:5], after, exact(r)[:5], shares, Fraction(7, 8), Fraction(ridge), Fraction(0))
    assert policy_distance(value, truth) <= value.certificate.distance
    assert value.certificate.assumes == ()
    assert value.solved


class Table:
    """An environment with three actions in each of four states, and several ways to the same next state."""

    def __init__(self, rng):
        self.unwrapped, self.P = self, {}
        for s in range(4):
            chances = rng.dirichlet(np.ones(4), size=3)
            self.P[s] = {
                a: [(c, int(k), float(rng.standard_normal()), k == 3) for c, k in zip(row, (0, 1, 1, 3), strict=True)]
                for a, row in enumerate(chances)
            }


@pytest.mark.parametrize("policy", [None, "given"])
def test_the_certificate_of_the_values_of_a_table_is_true(policy):
    rng = np.random.default_rng(2)
    env, chosen = Table(rng), None if policy is None else rng.dirichlet(np.ones(3), size=4)
    value = PolicyEvaluation.from_gymnasium(env, 0.75, chosen).solve(tol=1e-9)
    shares = [[Fraction(1, 3)] * 3] * 4 if chosen is None else exact(chosen)
    after, r = [[Fraction(0)] * 3 for _ in range(3)], [Fraction(0)] * 3
    for s in range(3):
        for a, outcomes in env.P[s].items():
            for chance, k, reward, _ in outcomes:
                r[s] += shares[s][a] * Fraction(chance) * Fraction(reward)
                if k < 3:
                    after[s][k] += shares[s][a] * Fraction(chance)
    eye = exact(np.eye(3))
    truth = policy_truth(eye, after, r, [Fraction(1, 3)] * 3, Fraction(3, 4), Fraction(0), Fraction(0))
    assert policy_distance(value, truth) <= value.certificate.distance
    assert value.certificate.assumes == ()
    assert value.solved
