"""Products in compensated arithmetic, compared with exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sps
from hypothesis import given
from hypothesis import strategies as st

from saddlepoint.ground.compensated import Accumulator, Sum, dense_product, sparse_product, two_sum
from saddlepoint.parts.coupling import as_coupling, compiled_loops, dot2_kernels

KINDS = {
    "dense": dense_product,
    "dense columns": lambda A, y: dense_product(np.asfortranarray(A), y),
    "many": lambda A, y: Sum(*(part[1] for part in dense_product(np.stack([A[::-1], A]), np.stack([y, y])))),
    "compressed rows": lambda A, y: sparse_product(sps.csr_array(A), y),
    "compressed columns": lambda A, y: sparse_product(sps.csc_array(A), y),
    "loop over rows": dot2_kernels.dense,
    "loop over columns": lambda A, y: dot2_kernels.dense(np.asfortranarray(A), y),
    "loop over compressed rows": lambda A, y: dot2_kernels.sparse(sps.csr_array(A), y),
    "loop over compressed columns": lambda A, y: dot2_kernels.sparse(sps.csc_array(A), y),
}


def exact(A, y):
    return [
        sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row, y, strict=True)), Fraction()) for row in A
    ]


def shares(A, y, found):
    """For each row: the error divided by its bound, and the bound divided by |A||y|."""
    sizes = exact(abs(A), abs(y))
    for i, (true, size) in enumerate(zip(exact(A, y), sizes, strict=True)):
        error, bound = (
            abs(Fraction(float(found.hi[i])) + Fraction(float(found.lo[i])) - true),
            Fraction(float(found.error[i])),
        )
        yield float(error / bound) if bound else float(error > 0), float(bound / size) if size else 0.0


@pytest.mark.parametrize("kind", KINDS)
@given(
    seed=st.integers(0, 2**32), n=st.sampled_from([1, 2, 33, 300]), spread=st.integers(0, 12), e=st.integers(-240, 240)
)
def test_the_error_is_within_its_bound(kind, seed, n, spread, e):
    if kind.startswith("loop") and not compiled_loops.AVAILABLE:
        pytest.skip("the loops need Numba")
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3, n)) * 10.0 ** rng.integers(-spread, spread + 1, (3, n))
    y = rng.standard_normal(n) * 10.0 ** rng.integers(-spread, spread + 1, n)
    A[1] = A[0] / y[0] * y[::-1] if rng.random() < 0.3 else A[1]
    A, y = A * 10.0 ** (e / 2), y * 10.0 ** (e / 2 if rng.random() < 0.5 else -e / 2)
    for error, bound in shares(A, y, KINDS[kind](A, y)):
        assert error <= 1.0
        assert bound <= order(n)


def order(n):
    """The share of |A||y| that sums of n products may be wrong by: n^2 eps^2, with room for short sums."""
    return (2.0 * n + 100.0) ** 2 * 2.0**-104


def awkward_rows(rng, n):
    """Rows whose sums lose all digits in ordinary arithmetic, and a vector."""
    y = rng.standard_normal(n) * 10.0 ** rng.integers(-60, 60, n)
    cancelling = rng.standard_normal(n)
    cancelling[n // 2 :] = -(cancelling[: n - n // 2] * y[: n - n // 2]) / y[n // 2 :]
    wide = rng.standard_normal(n) * 10.0 ** rng.integers(-140, 140, n)
    largest_beside_zero = 1.0 / y
    largest_beside_zero[0] = 1e60 / y[0]
    return np.stack([cancelling, wide, largest_beside_zero, wide * (rng.random(n) < 0.1)]), y


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32), n=st.sampled_from([2, 7, 64, 300]), e=st.sampled_from([0, 0, -100, 100]))
def test_the_bound_is_of_second_order_in_each_row_whatever_its_exponents(kind, seed, n, e):
    if kind.startswith("loop") and not compiled_loops.AVAILABLE:
        pytest.skip("the loops need Numba")
    A, y = awkward_rows(np.random.default_rng(seed), n)
    for error, bound in shares(A * 10.0**e, y, KINDS[kind](A * 10.0**e, y)):
        assert error <= 1.0
        assert bound <= order(n)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("loop")])
@given(seed=st.integers(0, 2**32), n=st.sampled_from([1, 5, 40]))
def test_the_bound_holds_for_subnormal_numbers_and_for_numbers_near_the_largest(kind, seed, n):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((4, n)) * 10.0 ** rng.integers(-30, 30, (4, n))
    y = rng.standard_normal(n)
    tiny, huge = A * np.array([[1e-290], [1e-320], [1.0], [1e270]]), y * rng.choice([1e300, 1e-300, 1.0, 1e-310])
    with np.errstate(all="ignore"):
        found = KINDS[kind](tiny, huge)
    finite = np.isfinite(found.hi) & np.isfinite(found.error)
    some = Sum(*(part[finite] for part in found))
    assert all(error <= 1.0 for error, _ in shares(tiny[finite], huge, some))
    sums = [float(size) if size < Fraction(1e300) else np.inf for size in exact(abs(tiny), abs(huge))]
    assert finite[np.array(sums) < 1e300].all()


@pytest.mark.slow
def test_the_bound_of_a_row_of_300_000_entries_is_of_second_order():
    n = 300_000
    rng = np.random.default_rng(0)
    y = rng.standard_normal(n) * 10.0 ** rng.integers(-30, 30, n)
    A = rng.permutation(np.repeat([0.1, -0.1], n // 2))[None, :] / y
    true, size = exact(A, y)[0], exact(abs(A), abs(y))[0]
    for kind, product in KINDS.items():
        if not kind.startswith("loop") or compiled_loops.AVAILABLE:
            found = product(A, y)
            error, bound = abs(Fraction(found.hi[0]) + Fraction(found.lo[0]) - true), Fraction(found.error[0])
            assert error <= bound <= order(n) * size, kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_long_row_of_equal_entries_is_added_up_almost_exactly(kind):
    if kind.startswith("loop") and not compiled_loops.AVAILABLE:
        pytest.skip("the loops need Numba")
    n = 20_000
    A, y = np.full((2, n), 0.1), np.ones(n)
    A[1, n // 2 :] = -0.1  # every digit cancels
    found = KINDS[kind](A, y)
    assert max(error for error, _ in shares(A, y, found)) <= 1.0
    assert found.error.max() <= 1e-13
    assert abs(found.hi[1] + found.lo[1]) <= 1e-13


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32), n=st.sampled_from([1, 2, 7, 64, 300]))
def test_the_first_part_is_the_sum_of_both_rounded(kind, seed, n):
    """Certificates that use the first part alone allow for the second, which must not be large where sums cancel."""
    if kind.startswith("loop") and not compiled_loops.AVAILABLE:
        pytest.skip("the loops need Numba")
    rng = np.random.default_rng(seed)
    A, y = 1e8 + rng.standard_normal((3, n)), rng.standard_normal(n)
    found = KINDS[kind](A, y - y.mean())
    assert np.array_equal(found.hi, found.hi + found.lo)


def test_two_sum_loses_nothing():
    a, b = np.array([1.0, 1e300, -3e-20]), np.array([1e-30, -1e284, 7.0])
    s, e = two_sum(a, b)
    assert [Fraction(x) + Fraction(z) for x, z in zip(s, e, strict=True)] == [
        Fraction(x) + Fraction(z) for x, z in zip(a, b, strict=True)
    ]


def test_an_accumulator_carries_the_errors_of_what_it_adds():
    total = Accumulator(np.zeros(1))
    for _ in range(1000):
        total.add_sum(Sum(np.array([0.1]), np.array([1e-18]), np.array([1e-20])))
    found = total.total()
    true = 1000 * (Fraction(0.1) + Fraction(1e-18))
    assert abs(Fraction(found.hi[0]) + Fraction(found.lo[0]) - true) <= Fraction(found.error[0])
    assert 1e-17 <= found.error[0] <= 1.1e-17 + 1e-20


@pytest.mark.parametrize("A", [np.array([[1e300, 1.0]]), np.array([[np.inf, 1.0]]), np.array([[np.nan, 1.0]])])
def test_numbers_that_cannot_be_scaled_are_bounded_by_nothing_false(A):
    with np.errstate(all="ignore"):
        found = dense_product(A, np.array([1e300, 1.0]))
    assert not np.isfinite(found.hi + found.error).any()


def couplings():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 40)) * 10.0 ** rng.integers(-6, 6, (6, 40))
    yield "dense", A, as_coupling(A)
    yield "dense columns", A, as_coupling(np.asfortranarray(A))
    S = sps.random_array((40, 60), density=0.2, rng=rng, format="csr")
    yield "compressed rows", S.toarray(), as_coupling(S)
    yield "compressed columns", S.toarray(), as_coupling(S.tocsc())
    yield "float32", A.astype(np.float32), as_coupling(A.astype(np.float32))


@pytest.mark.parametrize(("A", "coupling"), [pytest.param(A, c, id=name) for name, A, c in couplings()])
@pytest.mark.parametrize("transposed", [False, True])
def test_couplings_bound_the_errors_of_their_products(A, coupling, transposed):
    if transposed:
        A, coupling = A.T, coupling.T
    y = np.random.default_rng(1).standard_normal(A.shape[1])
    true, sizes = exact(A, y), exact(abs(A), abs(y))
    error = np.linalg.norm([float(Fraction(float(a)) - b) for a, b in zip(coupling.mul(y), true, strict=True)])
    size = np.linalg.norm([float(s) for s in sizes])
    assert error <= coupling.product_error(y, np.finfo(float).eps)
    assert size <= coupling.rounding_scale(y) <= 20 * size
    compensated = coupling.compensated_mul(y)
    assert max(error for error, _ in shares(A, y, compensated)) <= 1.0
    assert np.linalg.norm(compensated.error) <= 1e-16 * size
    assert coupling.has_entries
