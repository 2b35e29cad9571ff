"""Numbers are asked for together: on a GPU, every number that the host reads is a wait."""

from __future__ import annotations

import math

import numpy as np
import pytest
from draws import SEED
from hypothesis import given
from hypothesis import strategies as st
from libraries import load_library

import saddlepoint as sp
from saddlepoint.ground.linalg import inners, lengths, norm
from saddlepoint.methods.resolvent import Start, by_cg
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.functions.circulation import circulation
from saddlepoint.parts.functions.curvature_estimate import curvature
from saddlepoint.parts.simple.bounds import sum_difference
from saddlepoint.problems.audit import Audit
from saddlepoint.problems.compared_lines import compare_along
from saddlepoint.problems.gradient_check import GradientCheck
from saddlepoint.problems.oracle import Meter, MeteredCoupling

strict = pytest.importorskip("array_api_strict")
READERS = ("__float__", "__bool__", "__int__", "__index__", "__array__", "__buffer__")


@pytest.fixture
def waits(monkeypatch):
    """A list with an entry for each time that a number or an array is read from the library."""
    found = []
    kind = type(strict.asarray([1.0]))
    for name in READERS:
        if hasattr(kind, name):
            monkeypatch.setattr(kind, name, counting(getattr(kind, name), found))
    return found


def counting(reader, found):
    inside = []

    def read(*arguments, **options):
        if not inside:
            found.append(reader.__name__)
        inside.append(1)  # one reader may call another one
        try:
            return reader(*arguments, **options)
        finally:
            inside.pop()

    return read


def problem(m=100, n=80):
    """A problem with gradients that were written by hand for another library than NumPy, and a point."""
    rng = np.random.default_rng(0)
    A, b, c = (strict.asarray(rng.standard_normal(shape)) for shape in ((m, n), m, n))

    def own(b):
        return sp.Smooth(lambda x: 0.1 * x + b + strict.tanh(x), mu=0.1, L=1.1)

    return sp.Saddle(own(b), own(c), A), strict.asarray(rng.standard_normal(m)), strict.asarray(rng.standard_normal(n))


def test_a_certificate_asks_for_few_numbers(waits):
    f, x, y = problem()
    f.certificate(x, y)
    waits.clear()
    f.certificate(x, y)
    assert len(waits) <= 6


def test_a_checked_certificate_asks_for_few_numbers(waits):
    f, x, y = problem()
    audit = Audit(f, Meter())
    for k in range(5):  # in the first ones it is tested whether the gradients change their arguments
        waits.clear()
        audit.certificate(x * (1.0 / (k + 1)), y * (1.0 / (k + 1)))
    assert len(waits) <= 10


def test_an_examination_asks_for_few_numbers(waits):
    f, x, y = problem()
    audit = Audit(f, Meter())
    audit.certificate(x, y)
    waits.clear()
    audit.examine(x, y)
    assert len(waits) <= 80  # for some thirty gradients of each function


def test_curvatures_are_those_of_numpy_with_one_wait(waits):
    rng = np.random.default_rng(SEED)
    B, x = rng.standard_normal((60, 60)), rng.standard_normal(60)
    P = B @ B.T / 60 + 0.1 * np.eye(60)
    matrix, point = strict.asarray(P), strict.asarray(x)
    here = curvature(lambda z: P @ z + np.tanh(z), x, 1.0, 10, L=6.0)
    waits.clear()
    there = curvature(
        lambda z: matrix @ z + strict.tanh(z), point, 1.0, 10, L=6.0, p=matrix @ point + strict.tanh(point)
    )
    assert len(waits) <= 6  # a few more are for lengths
    assert here.calls == there.calls + 1
    for name in ("low", "high", "skew"):
        assert getattr(here, name) == pytest.approx(getattr(there, name), rel=1e-6, abs=here.error)
    assert np.array_equal(here.unit, np.asarray(there.unit))


def test_curvatures_where_the_gradient_ends_are_found_on_its_other_side():
    x = strict.asarray(np.linspace(1.0, 2.0, 30))

    def grad(z):
        if bool(strict.sum(z) > strict.sum(x)):
            raise ValueError("outside of the domain")
        return 2.0 * z

    found = curvature(grad, x, 1.0, 10, L=3.0)
    assert found.low == pytest.approx(2.0, rel=1e-6)
    assert found.high == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("corners", [12, 40])
@pytest.mark.parametrize("skew", [0.0, 0.3])
def test_sums_around_polygons_are_those_of_numpy(corners, skew, waits):
    rng = np.random.default_rng(SEED)
    B, x = rng.standard_normal((30, 30)), rng.standard_normal(30)
    J = np.eye(30) + 0.1 * (B + B.T) + skew * (B - B.T)
    plane = np.linalg.qr(rng.standard_normal((30, 2)))[0].T
    found = []
    for xp in (np, strict):
        matrix, centre, (u, v) = xp.asarray(J), xp.asarray(x), map(xp.asarray, plane)
        waits.clear()

        def grad(z, matrix=matrix, xp=xp):
            return matrix @ z + xp.tanh(z)

        found.append(circulation(grad, centre, (u, v), 0.5, corners, (0.1, 3.0), 1e-12))
    assert len(waits) <= (6 if corners <= 16 else 3 * corners)
    here, there = found
    assert tuple(there) == pytest.approx(tuple(here), rel=1e-9, abs=1e-12)

    def ends(z):
        if bool(strict.sum((z - centre) * u) > 0.1):
            raise ValueError("outside of the domain")
        return z

    assert circulation(ends, centre, (u, v), 0.5, corners, (0.1, 3.0), 1e-12) is None


@pytest.mark.parametrize(("mu", "L"), [(0.5, 1.1), (0.1, 0.7)])
def test_constants_that_are_wrong_are_found_with_few_waits(mu, L):
    rng = np.random.default_rng(SEED)
    A, b, x, y = (rng.standard_normal(shape) for shape in ((40, 30), 40, 40, 30))
    scales = np.linspace(0.1, 1.1, 40)
    found = []
    for xp in (np, strict):
        d, shift, point = xp.asarray(scales), xp.asarray(b), (xp.asarray(x), xp.asarray(y))
        g = sp.Smooth(lambda x, d=d, shift=shift: d * x + shift, mu=mu, L=L)
        audit = Audit(sp.Saddle(g, sp.Quadratic(1.0), xp.asarray(A)), Meter())
        audit.certificate(*point)
        with pytest.raises(sp.AssumptionError) as error:
            audit.examine(*point, thoroughly=True)
        found.append(error.value)
    here, there = found
    assert (here.function, here.constant) == (there.function, there.constant)
    assert here.constant == ("mu" if mu > 0.1 else "L")
    assert here.suggested == pytest.approx(there.suggested, rel=0.1)


def test_lines_that_leave_the_domain_are_shortened_on_every_device():
    x0 = np.linspace(0.1, 1.0, 30)
    calls = []
    for xp in (np, strict):
        x = xp.asarray(x0)

        def grad(z, xp=xp):
            if bool(xp.any(z < 0.0999)):
                raise ValueError("outside of the domain")
            return 1.0 * z

        check = GradientCheck("g", 1.0, 1.0, grad, lambda name, calls: None)
        directions = [xp.asarray(row / np.linalg.norm(row)) for row in np.random.default_rng(SEED).normal(size=(3, 30))]
        count = []
        assert compare_along(check, x, grad(x), 1.0 * x, [(d, 1.0) for d in directions], lambda: count.append(1))  # noqa: B023
        calls.append(len(count))
    assert calls == [3, 3]


@given(seed=st.integers(0, 2**32), n=st.integers(1, 50), total=st.floats(-2.0, 2.0))
def test_sums_are_bounded_alike_with_one_wait(seed, n, total):
    a = np.random.default_rng(seed).standard_normal(n)
    assert sum_difference(strict.asarray(a), total) == pytest.approx(sum_difference(a, total), rel=1e-12, abs=1e-300)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 1), (70, 30), (30, 70)])
def test_conjugate_gradients_of_one_program_are_those_of_numpy(shape):
    rng = np.random.default_rng(SEED)
    A = rng.standard_normal(shape)
    start = [rng.standard_normal(k) for k in (*shape, *shape)]
    found = []
    for xp in (np, load_library("jax")):
        coupling, (p, q, x, y) = as_coupling(xp.asarray(A)), map(xp.asarray, start)
        aAy, aAtx = (0.5 * product for product in coupling.both(x, y))
        meter = Meter()
        counted = MeteredCoupling(coupling, meter)
        solution = by_cg(counted, p, q, 0.5, Start(x, y, aAy, aAtx), relative=0.01, origin=(x, y))
        found.append((np.asarray(solution.x), np.asarray(solution.y), meter.calls["A"], meter.calls["At"]))
    (x, y, *calls), (other_x, other_y, *other_calls) = found
    assert np.allclose(x, other_x, rtol=1e-9, atol=1e-9)
    assert np.allclose(y, other_y, rtol=1e-9, atol=1e-9)
    assert calls == other_calls


@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.tuples(st.sampled_from([1, 3, 50]), st.booleans(), st.integers(-300, 300)), min_size=1),
)
def test_lengths_are_norms_in_their_order(seed, sizes):
    rng = np.random.default_rng(seed)
    vectors = []
    for n, single, e in sizes:
        vector = rng.standard_normal(n)
        vectors.append((vector * 10.0 ** (e / 10)).astype(np.float32) if single else vector * 10.0**e)
    with np.errstate(all="ignore"):  # squares may overflow or underflow
        exact = [norm(vector.astype(float)) for vector in vectors]
        assert lengths([strict.asarray(vector) for vector in vectors]) == pytest.approx(exact, rel=1e-6)
        assert lengths(vectors) == pytest.approx(exact, rel=1e-6)


def test_lengths_of_vectors_that_are_not_finite_are_not_finite():
    found = lengths([strict.asarray([1.0, math.inf]), strict.asarray([math.nan, 1.0]), strict.asarray([3.0, 4.0])])
    assert found[0] == math.inf
    assert math.isnan(found[1])
    assert found[2] == 5.0


def test_inner_products_of_all_pairs_are_those_of_numpy():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((3, 7))
    for some in (list(vectors), [strict.asarray(v) for v in vectors]):
        assert np.allclose(inners(some), vectors @ vectors.T, rtol=1e-14)
