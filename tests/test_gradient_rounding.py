"""Bounds on the rounding errors of gradients, against gradients in exact or high-precision arithmetic."""

import math
import pickle
from decimal import Decimal, Overflow, getcontext, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from test_functions import FUNCTIONS, LABELS, D, P, T
from tiers import slow_except

import saddlepoint as sp
from saddlepoint.ground.arrays import NUMPY64, to_host
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.functions.affine import affine
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.parts.functions.block_sum import block_sum
from saddlepoint.parts.functions.group import GroupHuberConjugate
from saddlepoint.parts.functions.product_rounding import AbsoluteArray, AbsoluteByNorms, AbsoluteSmall, absolute
from saddlepoint.parts.functions.risk import Risk
from saddlepoint.parts.sharded import LocalEngine, ShardedCoupling
from saddlepoint.uses.batch.functions import stacked, stretched_blocks

getcontext().prec = 100
getcontext().traps[Overflow] = False  # exp(1e200) is infinite, and its reciprocal is zero
X = np.array([3.0, -4.0, 0.0])


# -- what a caller says ------------------------------------------------------------------------------------------------


def black_box(accuracy=None, L=2.0):
    return sp.Smooth(lambda x: 2.0 * x, mu=2.0, L=L, accuracy=accuracy)


def test_two_units_are_assumed_where_nothing_is_said():
    f, p = black_box(), 2.0 * X
    assert math.isnan(f.accuracy)
    assert f.rounding is None
    assert f.gradient_error(X, p) == pytest.approx(2 * 2.0**-52 * (10.0 + 2.0 * 5.0), rel=1e-12)
    lower = f.gradient_error(X.astype(np.float32), p)  # x has the lower precision, which decides
    assert lower == pytest.approx(2 * 2.0**-23 * 20.0, rel=1e-6)


def test_a_number_is_relative_to_the_gradient_and_the_point():
    assert black_box(1e-6).gradient_error(X, 2.0 * X) == pytest.approx(1e-6 * 20.0, rel=1e-5)
    assert black_box(0.0).gradient_error(X, 2.0 * X) == 0.0
    assert black_box(1.0).gradient_error(X, 2.0 * X) == math.inf


def test_a_function_bounds_the_entries():
    f = black_box(lambda x: np.full(3, 2.0))
    assert f.accuracy == 0.0
    assert f.gradient_error(X, 2.0 * X) == pytest.approx(math.sqrt(12.0))
    sizes = f.gradient_error(X, 2.0 * X, lambda v: np.abs(v))  # three blocks of one variable
    np.testing.assert_allclose(sizes, [2.0, 2.0, 2.0])


def test_what_cannot_be_computed_is_not_bounded():
    assert black_box(lambda x: np.full(3, math.nan)).gradient_error(X, X) == math.inf
    assert black_box(L=None).gradient_error(X, X) == math.inf
    assert black_box().gradient_error(X, np.array([1.0, math.nan, 1.0])) == math.inf
    blocks = black_box(lambda x: np.array([1.0, math.nan, 1.0])).gradient_error(X, X, np.abs)
    np.testing.assert_array_equal(blocks, [1.0, math.inf, 1.0])


@pytest.mark.parametrize(
    ("accuracy", "message"),
    [
        (-1e-9, "accuracy of Smooth is -1e-09; expected a number from 0 to 1, or a function"),
        (math.nan, "accuracy of Smooth is nan; expected"),
        (2.0, "accuracy of Smooth is 2; expected"),
        ("high", "accuracy of Smooth is 'high'; expected"),
    ],
)
def test_invalid_accuracies_are_refused(accuracy, message):
    with pytest.raises(sp.ProblemError, match=message):
        black_box(accuracy)


def test_invalid_bounds_are_refused():
    with pytest.raises(sp.ProblemError, match=r"accuracy of Smooth returned 1\.0 for a point of shape \(3,\)"):
        black_box(lambda x: 1.0).gradient_error(X, X)
    with pytest.raises(sp.ProblemError, match="returned a negative bound"):
        black_box(lambda x: -np.ones(3)).gradient_error(X, X)
    with pytest.raises(sp.ProblemError, match="both rounding and a function"):
        sp.Smooth(np.sin, mu=None, L=None, accuracy=np.abs, rounding=np.abs)
    with pytest.raises(sp.ProblemError, match="rounding of Smooth is 3; expected a function"):
        sp.Smooth(np.sin, mu=None, L=None, rounding=3)


# -- what copies inherit -----------------------------------------------------------------------------------------------


def wrong_by(c, direction, slope=1.0):
    """x -> slope x, computed with an error of c (|grad| + L |x|) along a direction of length one."""
    return sp.Smooth(lambda x: slope * x + 2.0 * c * slope * np.linalg.norm(x) * direction, mu=slope, L=slope)


DIRECTION = np.array([0.6, 0.0, 0.8])
CHANGES = {
    "sum": lambda f: f + black_box(0.0),
    "sum, from the right": lambda f: black_box(0.0) + f,
    "cancelling sum": lambda f: f + affine(black_box(0.0), linear=-3.0 * X),
    "sum of two": lambda f: f + f,
    "multiple": lambda f: 7.0 * f,
    "scaled": lambda f: affine(f, scale=0.3),
    "scaled by a vector": lambda f: affine(f, scale=np.array([10.0, -1.0, 0.1])),
    "shifted": lambda f: affine(f, shift=-1.5 * X, weight=3.0),
    "tilted": lambda f: affine(f, linear=-X),
    "anchored": lambda f: anchored(f, 0.5, 3.0 * X),
    "cancelled by the anchor": lambda f: anchored(f, 1.0, 2.0 * X),
    "all": lambda f: anchored(3.0 * affine(f, scale=0.7, shift=X, linear=X) + f, 2.0, X),
}


@pytest.mark.parametrize("c", [1e-12, 1e-3, 0.1])
@pytest.mark.parametrize("name", CHANGES)
def test_copies_inherit_a_stated_accuracy(name, c):
    """The error is larger than rounding, so the bound must come from what was stated."""
    wrong, right = wrong_by(c, DIRECTION), wrong_by(0.0, DIRECTION)
    f = CHANGES[name](wrong.replace(accuracy=c))
    found, truth = f.grad(X), CHANGES[name](right).grad(X)
    error = np.linalg.norm(found - truth)
    assert 0.0 < error - 1e-13 <= f.gradient_error(X, found) * (1.0 + 1e-12)
    # The same as bounds on the entries.
    f = CHANGES[name](wrong.replace(accuracy=lambda x: 2.0 * c * np.linalg.norm(x) * DIRECTION))
    assert f.accuracy == 0.0
    assert error - 1e-13 <= f.gradient_error(X, found) * (1.0 + 1e-12)
    assert (np.abs(found - truth) <= f.rounding(X) * (1.0 + 1e-12) + 1e-13).all()


def shifted_wrongly(c):
    """x -> x - X, computed with a constant error, which is at most c (|grad| + L |x|) everywhere."""
    return sp.Smooth(lambda x: x - X + c * 5.0 * DIRECTION, mu=1.0, L=1.0, accuracy=c)


JOINED = {
    "sum": lambda f, g: f + g,
    "sum, from the right": lambda f, g: g + f,
    "blocks": lambda f, g: block_sum([f, g], [3, 3]),
}


@pytest.mark.parametrize("c", [1e-12, 1e-3, 0.1])
@pytest.mark.parametrize("name", JOINED)
def test_a_stated_accuracy_is_not_lost_beside_a_function_of_which_nothing_is_said(name, c):
    """The computed gradient of the wrong function is small, and its error is in the term L |x|."""
    f = JOINED[name](shifted_wrongly(c), sp.Smooth(lambda x: x - X, mu=1.0, L=1.0))
    x = np.concatenate([X, X]) if name == "blocks" else X
    assert math.isnan(f.accuracy)
    error = np.linalg.norm(f.grad(x))  # the true gradient is zero
    assert 0.0 < error <= f.gradient_error(x, f.grad(x)) <= 4.0 * error


@pytest.mark.parametrize("name", JOINED)
def test_an_accuracy_without_L_is_refused_beside_a_function_of_which_nothing_is_said(name):
    f = black_box(1e-3).replace(L=None)
    with pytest.raises(sp.ProblemError, match=r"accuracy of Smooth is 0\.001, .* but L is not known; expected L"):
        JOINED[name](f, black_box())
    assert JOINED[name](f, black_box(1e-3)).accuracy > 0.0  # the accuracy of the sum needs no L of a part


def test_a_certificate_allows_for_what_is_stated_of_a_part():
    """The gradient as computed is zero at a point that is not the solution."""
    c = 1e-3
    g = shifted_wrongly(c) + sp.Smooth(lambda x: x - X, mu=1.0, L=1.0)
    f = sp.Saddle(g, sp.Quadratic(1.0), np.zeros((3, 1)))
    r = sp.solve(f, tol=1e-6, max_calls=200)
    assert np.linalg.norm(r.x - X) == pytest.approx(2.5 * c, rel=1e-3)
    assert r.status != sp.Status.SOLVED
    assert 2.5 * c <= r.certificate.distance <= 20.0 * c
    assert any("stated or proven of its parts" in sentence for sentence in r.certificate.assumes)


def test_black_boxes_stay_black_boxes():
    for change in CHANGES.values():
        f = change(black_box())
        assert math.isnan(f.accuracy)
        assert 0.0 < f.gradient_error(X, f.grad(X)) < 1e-12


# -- ready functions, against 100 digits -------------------------------------------------------------------------------


def dec(values):
    exact = [v if isinstance(v, Decimal) else Decimal(float(v)) for v in np.ravel(values)]
    return np.array(exact, dtype=object).reshape(np.shape(values))


def dense(D):
    return D.toarray() if sparse.issparse(D) else np.asarray(D)


def sigmoid(a):
    return 1 / (1 + (-a).exp())


def slopes(f, r):
    """The derivative of the loss at the residuals r."""
    if isinstance(f, sp.LeastSquares):
        return r
    if isinstance(f, sp.Huber):
        d = Decimal(f.delta)
        return np.array([max(-d, min(d, v)) for v in r])
    if isinstance(f, sp.LogCosh):
        return np.array([1 - 2 * sigmoid(-2 * v) if abs(v) > Decimal("1e-40") else v for v in r])  # tanh(v)
    labels = dec(f.labels)
    if isinstance(f, sp.Logistic):
        return np.array([-s * sigmoid(-s * v) for s, v in zip(labels, r, strict=True)])
    w = Decimal(f.width)
    return np.array([-s * max(Decimal(0), min(Decimal(1), (1 - s * v) / w)) for s, v in zip(labels, r, strict=True)])


def radial(x, labels, slope):
    labels = np.zeros(len(x), dtype=int) if labels is None else labels
    out = np.array(x, dtype=object)
    for k in set(labels.tolist()):
        r = sum((v * v for v in x[labels == k]), Decimal(0)).sqrt()
        if r:
            out[labels == k] = x[labels == k] * (slope(r) / r)
    return out


def truth(f, x):
    """The gradient of a ready function at x, in 100 digits."""
    x = dec(x)
    if isinstance(f, sp.Quadratic):
        P = f.P.matrix() if hasattr(f.P, "matrix") else f.P
        P = dec(dense(P))
        Px = (P + P.T) @ x / 2 if P.ndim == 2 else P * x
        return Px if f.b is None else Px + dec(f.b)
    if isinstance(f, sp.Entropy):
        low, high = Decimal(f.low), Decimal(f.high)
        t = [min(max(v, low), high) for v in x]
        return np.array([1 + u.ln() + (v - u) / u for u, v in zip(t, x, strict=True)])
    if isinstance(f, sp.GroupHuber):
        w, d, l2 = Decimal(f.weight), Decimal(f.width), Decimal(f.l2)
        return radial(x, f.labels, lambda r: w * min(r / d, Decimal(1)) + l2 * r)
    if isinstance(f, GroupHuberConjugate):
        w, d, l2 = Decimal(f.of.weight), Decimal(f.of.width), Decimal(f.of.l2)
        return radial(x, f.of.labels, lambda s: max(s / (l2 + w / d), (s - w) / l2))
    D = None if f.D is None else dec(dense(f.D.matrix()))
    r = x if D is None else D @ x
    r = r if f.t is None else r - dec(f.t)
    if isinstance(f, sp.LogSumExp):
        exponentials = np.array([((v - max(r)) / Decimal(f.tau)).exp() for v in r])
        s = exponentials / sum(exponentials)
    else:
        s = slopes(f, r)
    p = s if D is None else s @ D
    if D is not None and not isinstance(f, sp.LogSumExp):
        p = p / len(D)
    return p + Decimal(f.l2) * x


def length(values):
    return sum((v * v for v in values), Decimal(0)).sqrt()


def holds(f, x, exact):
    """Assert that the bounds hold at x; return the norms of the bounds and of the errors."""
    with np.errstate(all="ignore"):
        p, bounds = f.grad(x), f.rounding(x)
    assert bounds.shape == x.shape
    errors = dec(to_host(p)) - exact
    limits = dec(to_host(bounds))
    wrong = [i for i in range(len(limits)) if not abs(errors[i]) <= limits[i]]
    assert not wrong, [(i, float(errors[i]), float(limits[i])) for i in wrong[:5]]
    assert f.accuracy == 0.0
    assert length(errors) <= Decimal(f.gradient_error(x, p)) * (1 + Decimal(2) ** -40)
    return float(length(limits)), float(length(errors))


def draw(scale, seed, n=6):
    return scale * np.random.default_rng(seed).standard_normal(n)


def total_size(f):
    """The sum of the lengths of the sums that a gradient of f takes, or a few for those without any."""
    D = getattr(f, "D", None)
    return 6 if D is None else sum(D.shape)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("scale", [1.0, 1e-170, 1e-4, 30.0, 1e150])
def test_bounds_of_ready_functions_hold_and_are_not_much_too_large(name, scale):
    f, found = FUNCTIONS[name], []
    for seed in range(3):
        x = draw(scale, seed)
        found.append(holds(f, x, truth(f, x)))
    bounds, errors = map(np.linalg.norm, zip(*found, strict=True))
    if scale > 1e-100:  # the bounds are for the worst case, in which errors grow with the length of a sum
        assert bounds <= 40.0 * total_size(f) * errors


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e4])
def test_bounds_hold_in_float32(name, scale):
    f, x = FUNCTIONS[name], draw(scale, 0).astype(np.float32)
    holds(f, x, truth(f, x))


rng = np.random.default_rng(1)
SHIFTED = 1e8 + rng.standard_normal((30, 6))  # data with a large mean
SCALED = rng.standard_normal((30, 6)) * np.geomspace(1e-8, 1e8, 6)
LARGE_AND_SMALL = np.geomspace(1e-90, 1e90, 30)[:, None] * rng.standard_normal((30, 6))
SIGNS = np.where(rng.random(30) < 0.5, -1.0, 1.0)
BALANCED = np.array([1.0, -1.0, 2.0, -2.0, 0.5, -0.5]) + 1e-9 * rng.standard_normal(6)
GRAM = SHIFTED.T @ SHIFTED / 30
HARD = {
    "Quadratic, large mean": (sp.Quadratic(GRAM, -GRAM @ BALANCED), BALANCED),
    "Quadratic, cancelling": (sp.Quadratic(3.0, -3.0 * BALANCED), BALANCED * (1 + 1e-12)),
    "Quadratic, slightly asymmetric": (sp.Quadratic(np.array([[2.0, 1.0], [1.0 + 1e-13, 2.0]])), np.array([1.0, 2.0])),
    "Quadratic, sparse, scaled": (sp.Quadratic(sparse.diags_array(np.geomspace(1e-8, 1e8, 6))), draw(1, 0)),
    "LeastSquares, large mean": (sp.LeastSquares(SHIFTED, SHIFTED @ BALANCED, 1e-3), BALANCED),
    "LeastSquares, sparse": (sp.LeastSquares(sparse.csr_array(SHIFTED), SHIFTED @ BALANCED, 1e-3), BALANCED),
    "LeastSquares, scaled": (sp.LeastSquares(SCALED, np.ones(30), 1e-3), draw(1, 0) / np.geomspace(1e-8, 1e8, 6)),
    "LeastSquares, all scales": (sp.LeastSquares(LARGE_AND_SMALL, np.ones(30)), draw(1e-50, 3)),
    "Logistic, large mean": (sp.Logistic(SHIFTED, SIGNS, 1e-3), BALANCED),
    "Logistic, far out": (sp.Logistic(100.0 * D, LABELS, 1e-3), draw(1.0, 5)),
    "Logistic, near overflow": (sp.Logistic(np.diag([700, 709.0, 710, 745, -745, 1e5]), LABELS[:6]), np.ones(6)),
    "Huber, large mean": (sp.Huber(SHIFTED, SHIFTED @ BALANCED, 1e-3), BALANCED * (1 + 1e-9)),
    "Huber, at the kink": (sp.Huber(t=np.zeros(3), delta=0.1), np.array([0.1, -0.1, 0.1 * (1 + 2**-52)])),
    "LogCosh, large mean": (sp.LogCosh(SHIFTED, None, 1e-3), BALANCED),
    "SmoothedHinge, at the kinks": (sp.SmoothedHinge(np.eye(3), np.ones(3), width=0.1), np.array([1.0, 0.9, 0.95])),
    "SmoothedHinge, large mean": (sp.SmoothedHinge(SHIFTED, SIGNS), BALANCED),
    "LogSumExp, large mean": (sp.LogSumExp(SHIFTED, None, 1e-3), BALANCED),
    "LogSumExp, nearly a maximum": (sp.LogSumExp(D, T, tau=1e-7), draw(1, 3)),
    "LogSumExp, equal scores": (sp.LogSumExp(np.ones((30, 6)), tau=1e-3), draw(1e5, 3)),
    "LogSumExp, underflow": (sp.LogSumExp(), np.array([0.0, -700.0, -708.0, -709.0, -745.0, -1e20])),
    "Entropy, at 1": (sp.Entropy(0.1, 2.0), np.array([1.0, 1 + 1e-12, 1 / math.e, 0.1, 0.0999, -1e6])),
    "GroupHuber, scales": (sp.GroupHuber([0, 0, 1, 1, 2, 2], l2=0.1), np.array([1e-170, 1e-171, 1, 2, 1e-160, 0])),
    "GroupHuber, large": (sp.GroupHuber([0, 0, 1, 1], l2=0.1), np.array([1e170, 1e171, 1e-100, 2.0])),
    "conjugate, at the kink": (sp.GroupHuber(None, 1.0, 0.5, 1e-6).conjugate(), np.array([0.6, 0.8000004])),
    "conjugate, lost group": (sp.GroupHuber([0, 1], 1.0, 0.5, 0.1).conjugate(), np.array([1.0, 1e-165])),
}  # fmt: skip


@pytest.mark.parametrize("name", HARD)
def test_bounds_hold_for_hard_data(name):
    f, x = HARD[name]
    holds(f, x, truth(f, x))
    if abs(x).max() < 1e38:
        holds(f, x.astype(np.float32), truth(f, x.astype(np.float32)))


@pytest.mark.parametrize("name", ["LeastSquares, scaled", "LeastSquares, large mean", "Logistic, far out"])
def test_bounds_for_hard_data_are_not_much_too_large(name):
    f, x = HARD[name]
    bounds, errors = holds(f, x, truth(f, x))
    assert bounds <= 40.0 * total_size(f) * errors


@pytest.mark.parametrize("as_matrix", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_the_bound_for_a_long_row_of_equal_entries_grows_with_its_length(as_matrix):
    """The sums are rounded in one direction, so that the error grows with their length."""
    n, a, b = 200_000, 0.1, 1.0 / 3.0
    f, x = sp.LeastSquares(as_matrix(np.full((1, n), a)), [n * a * b]), np.full(n, b)
    exact = Decimal(a) * (n * Decimal(a) * Decimal(b) - Decimal(n * a * b))
    p = f.grad(x)
    error = max(abs(Decimal(v) - exact) for v in set(p.tolist()))
    assert Decimal(float(f.rounding(x).min())) >= error
    assert f.gradient_error(x, p) < 1e-4
    if as_matrix is not np.asarray:  # added up one by one
        assert error > 100 * Decimal(2.0**-52) * Decimal(a) * n * Decimal(a * b)


def test_a_certificate_of_data_with_a_long_row_is_true():
    """The computed gradient is zero at x = b (1, ..., 1), but the minimiser is elsewhere."""
    n, a, b = 200_000, 0.1, 1.0 / 3.0
    row, x = sparse.csr_array(np.full((1, n), a)), np.full(n, b)
    l2 = n * a * a
    t = float((row @ x)[0]) + l2 * b / a
    g = sp.LeastSquares(row, [t], l2)
    f = sp.Saddle(g, sp.Quadratic(1.0), sparse.csr_array((n, 1)))
    at = Decimal(a) * Decimal(t) / (n * Decimal(a) ** 2 + Decimal(l2))  # each entry of the minimiser
    distance = Decimal(n).sqrt() * abs(Decimal(b) - at)
    assert np.linalg.norm(g.grad(x)) < 1e-9
    assert distance > 20 * Decimal(2.0**-52) * Decimal(np.linalg.norm(x))
    for tol in (None, 1.0):  # in twice the digits, and by the ordinary bound
        assert Decimal(f.certificate(x, np.zeros(1), tol).distance_x) >= distance
    assert Decimal(f.certificate(x, np.zeros(1)).distance_x) <= 4 * distance


def test_data_of_lower_precision_are_exact():
    narrow, x = D.astype(np.float32), draw(1.0, 4)
    f = sp.LeastSquares(narrow, T.astype(np.float32), 0.1)
    bounds, _ = holds(f, x, truth(f, x))
    assert bounds < 1e-13


def test_nothing_is_said_of_operators():
    f = sp.LeastSquares(aslinearoperator(D), T)
    assert f.rounding is None
    assert math.isnan(f.accuracy)


def test_exact_gradients_have_no_error():
    """At zero a quadratic has no rounding error, so that a certificate there can be zero."""
    for f in (sp.Quadratic(np.eye(3)), sp.Quadratic(2.0), sp.Quadratic(sparse.eye_array(3)), sp.GroupHuber(l2=1.0)):
        assert f.gradient_error(np.zeros(3), f.grad(np.zeros(3))) == 0.0


# -- combinations ------------------------------------------------------------------------------------------------------


class Combination:
    """weight f(scale u + shift) + <linear, u> + anchor/2 |u - centre|^2 + g(u), and its gradient in 100 digits."""

    def __init__(self, f, g, scale, shift, weight, linear, anchor, centre):
        inside = affine(f, scale=scale, shift=shift, weight=weight, linear=linear)
        self.function = anchored(inside, anchor, centre) + g
        self.f, self.g, self.given = f, g, (scale, shift, weight, linear, anchor, centre)

    def truth(self, u):
        scale, shift, weight, linear, anchor, centre = map(dec, self.given)
        return (
            weight * scale * truth(self.f, scale * dec(u) + shift)
            + linear
            + anchor * (dec(u) - centre)
            + truth(self.g, u)
        )


@pytest.mark.parametrize("name", slow_except(FUNCTIONS, "quadratic, dense", "logistic", "entropy", "huber, separable"))
@pytest.mark.parametrize("vector", [False, True])
@given(st.integers(0, 10**6), st.sampled_from([1.0, 1e-3, 1e5]))
@settings(max_examples=3)
def test_bounds_of_combinations_hold(name, vector, seed, size):
    rng = np.random.default_rng(seed)
    scale = np.exp(rng.standard_normal(6)) if vector else float(rng.standard_normal())
    shift, linear, centre, u = (size * rng.standard_normal(6) for _ in range(4))
    whole = Combination(FUNCTIONS[name], FUNCTIONS["log-cosh"], scale, shift, 0.3, linear, 7.0, centre)
    holds(whole.function, u, whole.truth(u))


def test_the_bound_of_a_sum_that_cancels_holds():
    P, x = np.array([1e8, 3e7]), np.array([1.0, 2.0])
    f, g = sp.Quadratic(P, -P * x), sp.Huber(t=x * (1 + 1e-12))
    holds(f + g, x, truth(f, x) + truth(g, x))


def test_a_part_of_a_function_has_its_part_of_the_bounds():
    f = 3.0 * sp.Quadratic(np.linspace(1.0, 2.0, 6), np.ones(6)) + sp.Huber(t=np.ones(6))
    part, x = f.restrict(slice(1, 4)), draw(1.0, 0)
    np.testing.assert_allclose(part.rounding(x[1:4]), f.rounding(x)[1:4])


def test_functions_can_be_sent_with_their_bounds():
    f = 3.0 * sp.Logistic(D, LABELS, 0.1) + sp.Quadratic(P)
    other, x = pickle.loads(pickle.dumps(f)), draw(1.0, 0)
    np.testing.assert_array_equal(other.rounding(x), f.rounding(x))


# -- other libraries, disk, shards, batches ----------------------------------------------------------------------------


def twins(xp):
    """Functions of another library, and the same ones of NumPy."""
    for dtype in (np.float64, np.float32):
        data = [v.astype(dtype) for v in (P, np.arange(6.0), D, T, LABELS)]
        for arrays in ([xp.asarray(v) for v in data], data):
            Q, b, rows, t, labels = arrays
            yield [
                sp.Quadratic(Q, b, mu=1e-3, L=1e3),
                sp.Quadratic(Q[0, :] * Q[0, :], b),
                sp.LeastSquares(rows, t, 0.1),
                sp.Logistic(rows, labels, 0.1),
                sp.SmoothedHinge(rows, labels, 0.1, width=0.5),
                sp.Huber(rows, t, 0.1),
                sp.LogCosh(rows, t, 0.1),
                sp.LogSumExp(rows, t, 0.1, tau=0.3),
                sp.Entropy(0.05, 2.0),
            ]


def test_bounds_hold_in_other_libraries(xp):
    wide, wide_truths, narrow, narrow_truths = twins(xp)
    x = draw(1.0, 0)
    if xp.__name__.startswith("jax"):  # it compiles every operation for every dtype
        wide, wide_truths, narrow, narrow_truths = wide[::7], wide_truths[::7], [], []
    for f, twin in zip(wide, wide_truths, strict=True):
        holds(f, xp.asarray(x), truth(twin, x))
        holds(f, xp.asarray(1e-170 * x), truth(twin, 1e-170 * x))
    for f, twin in zip(narrow, narrow_truths, strict=True):
        holds(f, xp.asarray(x.astype(np.float32)), truth(twin, x.astype(np.float32)))
        holds(f, xp.asarray(x), truth(twin, x))


def test_bounds_hold_with_data_on_disk(tmp_path):
    np.save(tmp_path / "D.npy", SHIFTED)
    f, twin = (
        sp.LeastSquares(sp.stream(tmp_path / "D.npy"), SHIFTED @ BALANCED, 0.1),
        HARD["LeastSquares, large mean"][0],
    )
    holds(f, BALANCED, truth(sp.LeastSquares(SHIFTED, twin.t, 0.1), BALANCED))


def stack_truth(functions, X):
    return np.concatenate([truth(f, x) for f, x in zip(functions, X, strict=True)])


STACKS = {
    "Quadratic, numbers": lambda k: sp.Quadratic(1.0 + k, draw(1.0, k)),
    "Quadratic, diagonals": lambda k: sp.Quadratic(np.exp(draw(1.0, k)), draw(1.0, k)),
    "Quadratic, matrices": lambda k: sp.Quadratic((1.0 + k) * P, draw(1.0, k)),
    "LeastSquares": lambda k: sp.LeastSquares(10.0**k * D, T, 0.1 + k),
    "Logistic": lambda k: sp.Logistic(10.0**k * D, LABELS, 0.1),
    "Huber": lambda k: sp.Huber(t=draw(10.0**k, k), l2=0.1 + k),
    "LogSumExp": lambda k: sp.LogSumExp(D, 10.0**k * T, 0.1, tau=0.1 + k),
    "LogSumExp of coordinates": lambda k: sp.LogSumExp(None, None, 0.1 + k),
    "Entropy": lambda k: sp.Entropy(0.05, 2.0),
}


@pytest.mark.parametrize("name", STACKS)
def test_bounds_of_batches_hold_for_each_block(name):
    functions = [STACKS[name](k) for k in range(3)]
    X = np.stack([draw(scale, k) for k, scale in enumerate([1.0, 1e-100, 1e3])])
    f = stacked(functions, 6, NUMPY64)
    x = X.reshape(-1)
    holds(f, x, stack_truth(functions, X))
    each = f.gradient_error(x, f.grad(x), lambda v: np.linalg.norm(v.reshape(3, 6), axis=1))
    alone = [g.gradient_error(point, g.grad(point)) for g, point in zip(functions, X, strict=True)]
    # The bound of a block does not depend on the scale of another one.
    assert (each <= 4.0 * np.array(alone) + 1e-300).all()
    strength = np.repeat([1.0, 3.0, 0.1], 6)
    stretched = stretched_blocks(f, strength, 0.7 * strength, f.L)
    inside = stack_truth(functions, (dec(strength) * dec(x)).reshape(3, 6))
    holds(stretched, x, dec(0.7 * strength) * dec(strength) * inside)


def test_what_a_caller_said_of_a_block_is_not_lost():
    functions = [sp.Quadratic(1.0), sp.Quadratic(1.0).replace(accuracy=1e-3)]
    assert stacked(functions, 6, NUMPY64) is None


@pytest.mark.parametrize("shards", [1, 3])
def test_bounds_of_shards_are_about_those_of_one_process(shards):
    A = ShardedCoupling(LocalEngine(SHIFTED, shards))
    x, y = SHIFTED @ BALANCED, BALANCED
    g = sp.Saddle(sp.Huber(t=x * (1 + 1e-9), l2=0.1), sp.Quadratic(1.0), A).g
    local = sp.Huber(t=x * (1 + 1e-9), l2=0.1)
    vector = A.library.asarray(x)
    np.testing.assert_allclose(to_host(g.rounding(vector)), local.rounding(x), rtol=1e-12)
    assert g.gradient_error(vector, g.grad(vector)) == pytest.approx(local.gradient_error(x, local.grad(x)))
    scaled = affine(g, scale=3.0, weight=0.1)
    assert scaled.gradient_error(vector, scaled.grad(vector)) > 0.0
    risk, twin = sp.Huber(A, x, 0.1), sp.Huber(SHIFTED, x, 0.1)
    bounds, _ = holds(risk, y, truth(twin, y))
    assert bounds <= 3.0 * np.linalg.norm(twin.rounding(y))


# -- gradients in about twice the digits -------------------------------------------------------------------------------


def holds_in_compensated_arithmetic(f, x, exact):
    """Assert that the compensated gradient is within its bounds; return the norm of the bounds."""
    with np.errstate(all="ignore"):
        hi, lo, error = (dec(to_host(part)) for part in f.compensated(x))
    wrong = [i for i in range(len(hi)) if not abs(hi[i] + lo[i] - exact[i]) <= error[i]]
    assert not wrong, [(i, float(hi[i] + lo[i] - exact[i]), float(error[i])) for i in wrong[:5]]
    return float(length(error))


COMPENSATED = [name for name, f in FUNCTIONS.items() if f.compensated]
EXACT_LOSS = ("quadratic", "least squares", "huber")  # no exponentials, whose errors remain


def test_all_ready_functions_but_the_entropy_have_compensated_gradients():
    assert set(FUNCTIONS) - set(COMPENSATED) == {"entropy"}


@pytest.mark.parametrize("name", COMPENSATED)
@pytest.mark.parametrize("scale", [1.0, 1e-170, 1e-4, 30.0, 1e150])
def test_compensated_gradients_have_smaller_bounds_that_hold(name, scale):
    f, x = FUNCTIONS[name], draw(scale, 2)
    compensated = holds_in_compensated_arithmetic(f, x, truth(f, x))
    with np.errstate(all="ignore"):
        plain = float(length(dec(f.rounding(x))))
    assert compensated <= max(1.1 * plain, 1e-290)
    if name.startswith(EXACT_LOSS) and scale > 1e-100:
        assert compensated <= 1e-3 * plain


@pytest.mark.parametrize("name", [name for name, (f, _) in HARD.items() if f.compensated])
def test_compensated_gradients_are_within_their_bounds_for_hard_data(name):
    f, x = HARD[name]
    holds_in_compensated_arithmetic(f, x, truth(f, x))
    if np.abs(x).max() < np.finfo(np.float32).max:
        holds_in_compensated_arithmetic(f, x.astype(np.float32), truth(f, x.astype(np.float32)))


@pytest.mark.parametrize("labels", [None, np.arange(20_000) % 2], ids=["one group", "two groups"])
def test_more_digits_help_in_large_groups(labels):
    x, width, l2 = np.full(20_000, 0.1), 0.01, 0.5  # all squares are rounded the same way, and so are their sums
    count, entry = (20_000 if labels is None else 10_000), Decimal(float(x[0]))
    with localcontext(prec=60):
        size = (count * entry**2).sqrt()
        slope = min(size / Decimal(width), Decimal(1)) + Decimal(l2) * size
        radius = max(size / (Decimal(l2) + 1 / Decimal(width)), (size - 1) / Decimal(l2))
        f = sp.GroupHuber(labels, 1.0, width, l2)
        for function, length_of in ((f, slope), (f.conjugate(), radius)):
            hi, lo, error = (Decimal(float(part[0])) for part in function.compensated(x))
            assert abs(hi + lo - entry * length_of / size) <= error
            assert error <= Decimal(float(function.rounding(x)[0])) / 100


def test_more_digits_help_where_data_have_a_large_mean():
    f, x = HARD["LeastSquares, large mean"]
    assert holds_in_compensated_arithmetic(f, x, truth(f, x)) <= 1e-6 * np.linalg.norm(f.rounding(x))
    f, x = HARD["Logistic, large mean"]
    assert holds_in_compensated_arithmetic(f, x, truth(f, x)) <= 0.1 * np.linalg.norm(f.rounding(x))


@given(st.integers(0, 10**6), st.sampled_from([1.0, 1e-3, 1e5]))
@settings(max_examples=5)
def test_compensated_gradients_of_combinations_are_within_their_bounds(seed, size):
    rng = np.random.default_rng(seed)
    linear, centre, u = (size * rng.standard_normal(6) for _ in range(3))
    for name in ("quadratic, dense", "entropy"):
        f, g = FUNCTIONS[name], FUNCTIONS["least squares"]
        whole = Combination(f, g, -4.0, np.zeros(6), 0.3, linear, 7.0, centre)
        inside = 0.3 * affine(f, scale=-4.0)
        function = anchored(affine(inside, linear=linear) + g, 7.0, centre)
        compensated = holds_in_compensated_arithmetic(function, u, whole.truth(u))
        assert compensated <= (1e-3 if name != "entropy" else 1.1) * np.linalg.norm(function.rounding(u))
    assert affine(f, shift=u).compensated is None  # the argument of f is rounded
    assert (sp.Smooth(np.sin, mu=None, L=None) + g).compensated is None


@pytest.mark.parametrize("name", [name for name in STACKS if name != "Entropy"])
def test_compensated_gradients_of_batches_are_within_their_bounds(name):
    functions = [STACKS[name](k) for k in range(3)]
    X = np.stack([draw(scale, k) for k, scale in enumerate([1.0, 1e-100, 1e3])])
    f = stacked(functions, 6, NUMPY64)
    compensated = holds_in_compensated_arithmetic(f, X.reshape(-1), stack_truth(functions, X))
    assert compensated <= (1.0 if name.startswith(("Logistic", "LogSumExp")) else 1e-3) * np.linalg.norm(
        f.rounding(X.reshape(-1))
    )


def test_compensated_gradients_of_shards_are_within_their_bounds():
    A = ShardedCoupling(LocalEngine(SHIFTED, 3))
    x, local = SHIFTED @ BALANCED, sp.Huber(t=np.ones(30), l2=0.1)
    g = sp.Saddle(local, sp.Quadratic(1.0), A).g
    holds_in_compensated_arithmetic(g, A.library.asarray(x), truth(local, x))


@pytest.mark.parametrize("shards", [1, 3])
def test_compensated_gradients_of_risks_over_shards_are_within_their_bounds(shards):
    A, y = ShardedCoupling(LocalEngine(SHIFTED, shards)), BALANCED
    t = SHIFTED @ y + np.linspace(-2.0, 2.0, 30)
    labels = np.where(np.arange(30) % 2, 1.0, -1.0)
    for make, least in (
        (lambda D: sp.LeastSquares(D, t, 0.1), 1e-6),
        (lambda D: sp.Huber(D, t, 0.1), 1e-2),  # the low digits of A y are part of its error
        (lambda D: sp.Logistic(D, labels, 0.1), 0.5),
        (lambda D: sp.LogCosh(D, t, 0.1), 0.5),
    ):
        risk, twin = make(A), make(SHIFTED)
        assert holds_in_compensated_arithmetic(risk, y, truth(twin, y)) <= least * np.linalg.norm(risk.rounding(y))


def test_compensated_gradients_in_another_library_are_within_their_bounds():
    xp = pytest.importorskip("array_api_strict")
    wide, truths, *_ = twins(xp)
    x = draw(1.0, 1)
    for f, twin in zip(wide[:-1], truths[:-1], strict=True):
        holds_in_compensated_arithmetic(f, xp.asarray(x), truth(twin, x))


@given(st.integers(0, 2**32), st.sampled_from(["matrix", "stack"]), st.integers(-200, 150))
def test_bounds_on_products_hold_for_small_and_for_large_matrices(seed, shape, exponent):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((3, 4, 5) if shape == "stack" else (4, 5)) * 10.0 ** rng.integers(-9, 9, 5)
    D *= 10.0**exponent
    small, large = AbsoluteSmall(D), AbsoluteArray(D, NUMPY64)
    assert (small.blocks, small.length) == (large.blocks, large.length)
    x = rng.standard_normal(5 * small.blocks)
    blocks = zip(D.reshape(-1, 4, 5), x.reshape(-1, 5), strict=True)
    true = np.concatenate([[sum(abs(Decimal(d) * Decimal(v)) for d, v in zip(row, part, strict=True)) for row in block]
                           for block, part in blocks])  # fmt: skip
    columns = []
    if D.ndim == 2:
        columns = [AbsoluteArray(np.asfortranarray(D), NUMPY64), AbsoluteArray(D.T.copy(), NUMPY64, by_columns=True)]
    for other in columns:  # the same sizes, whatever the order of the entries in memory
        for name in ("columns", "one", "two", "most"):
            assert getattr(other, name) == pytest.approx(getattr(large, name), rel=1e-14)
    if D.ndim == 2:
        norms = [np.array([np.linalg.norm(v / np.abs(D).max()) for v in M]) * np.abs(D).max() for M in (D, D.T)]
        columns.append(AbsoluteByNorms(*((1.0 + 1e-14) * sizes for sizes in norms)))
    for matrix in (small, large, *columns):
        bound = matrix.times(np.abs(x))
        assert all(Decimal(float(b)) * Decimal(1 + 1e-15) >= t for b, t in zip(bound, true, strict=True))
        errors = matrix.errors(x)
        assert all(Decimal(float(e)) >= 5 * Decimal(2.0**-53) * t for e, t in zip(errors, true, strict=True))
    assert (small.times(np.abs(x)) <= (1 + 1e-14) * large.times(np.abs(x))).all()
    assert not small.errors(0.0 * x).any()


def test_the_sizes_of_rows_are_read_along_the_columns_where_these_are_contiguous(monkeypatch):
    monkeypatch.setattr(AbsoluteArray, "_sizes_by_rows", lambda self: pytest.fail("rows of a column-major array"))
    D = np.random.default_rng(0).standard_normal((300, 400))
    AbsoluteArray(np.asfortranarray(D), NUMPY64)
    AbsoluteArray(D, NUMPY64, by_columns=True)
    AbsoluteArray(np.asfortranarray(D.astype(np.float32)), NUMPY64)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_array_is_bounded_by_the_norms_of_its_rows_and_columns(order, monkeypatch):
    monkeypatch.setattr("saddlepoint.parts.functions.product_rounding.LARGE", 1)
    monkeypatch.setattr("saddlepoint.parts.functions.product_rounding.SMALL", 0)
    rng = np.random.default_rng(1)
    D, labels = np.asarray(rng.standard_normal((30, 20)), order=order), np.where(np.arange(30) % 2, 1.0, -1.0)
    f, x = sp.Logistic(D, labels, 0.1), rng.standard_normal(20)
    assert isinstance(absolute(f.D), AbsoluteByNorms)
    assert (absolute(f.D).times(np.abs(x)) >= np.abs(D) @ np.abs(x)).all()
    assert (absolute(f.D.T).times(np.ones(30)) >= np.abs(D).T @ np.ones(30)).all()
    holds(f, x, truth(sp.Logistic(D, labels, 0.1), x))


# -- products that a gradient has made already -------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: sp.Logistic(D, LABELS, 0.1), lambda: sp.Quadratic(P, T[: len(P)])])
def test_bounds_at_a_constant_point_use_the_products_of_the_gradient_there(make, monkeypatch):
    f, count = make(), []
    data = f.D if isinstance(f, sp.Logistic) else f.P
    x = np.linspace(-1.0, 1.0, data.shape[1])
    expected = f.rounding(x)
    for name in ("mul", "tmul"):
        old = getattr(type(data), name)
        monkeypatch.setattr(type(data), name, lambda A, v, old=old: (count.append(1), old(A, v))[1])
    constant = x.copy()
    constant.setflags(write=False)
    f.grad(constant)
    made = len(count)
    np.testing.assert_array_equal(f.rounding(constant), expected)
    assert len(count) == made
    f.grad(x)  # an array that can be written into may hold other numbers afterwards
    x += 1.0
    assert not np.array_equal(f.rounding(x), expected)
    assert len(count) > 2 * made


# -- rough bounds, from the lengths of vectors alone -------------------------------------------------------------------

ROUGH = [name for name, f in FUNCTIONS.items() if isinstance(f, sp.Quadratic | Risk)]


def rough_at(f, x):
    with np.errstate(all="ignore"):
        return f.rounding.rough(norm(x), norm(f.grad(x)), len(x)), norm(f.rounding(x))


@pytest.mark.parametrize("name", ROUGH)
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e-170, 1e-4, 30.0, 1e150])
def test_rough_bounds_are_not_below_those_of_the_entries(name, scale):
    for seed in range(20):
        rough, fine = rough_at(FUNCTIONS[name], draw(scale, seed))
        assert rough >= fine
        if scale == 1.0:
            assert rough <= 200.0 * fine


@pytest.mark.parametrize("name", [name for name, (f, _) in HARD.items() if isinstance(f, sp.Quadratic | Risk)])
def test_rough_bounds_for_hard_data_are_not_below_those_of_the_entries(name):
    rough, fine = rough_at(*HARD[name])
    assert rough >= fine


@settings(max_examples=200)
@given(st.integers(0, 10**6), st.sampled_from([sp.LeastSquares, sp.Logistic, sp.Huber, sp.LogCosh, sp.SmoothedHinge]))
def test_rough_bounds_of_risks_of_any_scale_are_not_below_the_fine_ones(seed, kind):
    rng = np.random.default_rng(seed)
    rows, n = rng.integers(1, 40, 2)
    D = rng.standard_normal((rows, n)) * 10.0 ** rng.uniform(-9, 9, n)
    labels, t = np.where(rng.random(rows) < 0.5, -1.0, 1.0), rng.standard_normal(rows) * 10.0 ** rng.uniform(-9, 9)
    f = kind(D, labels if kind in (sp.Logistic, sp.SmoothedHinge) else t, 10.0 ** rng.uniform(-9, 9))
    rough, fine = rough_at(f, rng.standard_normal(n) * 10.0 ** rng.uniform(-9, 9))
    assert rough >= fine


def test_a_loss_of_which_nothing_is_known_has_no_rough_bound():
    class Cubed(sp.LogCosh):
        slope_units = None

    assert Cubed(D, T).rounding.rough is None
    assert FUNCTIONS["log-cosh"].rounding.rough is not None


@pytest.mark.parametrize("name", ["logistic", "quadratic, dense", "huber, separable"])
def test_certificates_take_rough_bounds_unless_they_are_a_noticeable_share(name, monkeypatch):
    g, taken = FUNCTIONS[name], []
    entries = g.rounding.function
    monkeypatch.setattr(g.rounding, "function", lambda x: taken.append(1) or entries(x))
    f = sp.Saddle(g, sp.Smooth(lambda y: y, mu=1.0, L=1.0, accuracy=0.0), np.eye(6))
    far, x = f.certificate(draw(1.0, 3), np.zeros(6)), np.zeros(6)
    assert not taken
    result = sp.solve(f, tol=1e-12)
    near = f.certificate(result.x, result.y)
    assert taken  # close to the precision of the arithmetic
    monkeypatch.setattr("saddlepoint.problems.residuals.ROUGH", 0.0)
    assert f.certificate(draw(1.0, 3), x).distance <= far.distance <= 1.01 * f.certificate(draw(1.0, 3), x).distance
    assert f.certificate(result.x, result.y) == near


def test_a_function_with_another_offset_or_ridge_has_its_own_rough_bound():
    x = draw(1.0, 0)
    f = sp.Quadratic(P, 1.0)
    f.rounding.rough(norm(x), 1.0, 6)
    moved, risk = f.with_linear(np.ones(6)), sp.LogCosh(D, T, 0.0)
    risk.rounding.rough(norm(x), 1.0, 6)
    assert moved.rounding.rough(0.0, 0.0, 6) < f.rounding.rough(0.0, 0.0, 6)
    assert risk.with_l2(1e6).rounding.rough(1.0, 1.0, 6) > 2.0 * risk.rounding.rough(1.0, 1.0, 6)
    copy = pickle.loads(pickle.dumps(risk))
    assert copy.rounding.rough(1.0, 1.0, 6) == risk.rounding.rough(1.0, 1.0, 6)
