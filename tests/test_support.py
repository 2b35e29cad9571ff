"""Proven supports: never a false proof, complete where the solution is not degenerate, and kept in files."""

import json
import math

import numpy as np
import pytest
from draws import SEED
from known_problems import TERMS, known_problem
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator

import saddlepoint as sp
from saddlepoint.problems.support import proven_support
from saddlepoint.uses.pages.report import report_page
from saddlepoint.uses.plots.support import plot_support

ENDS = {"l1": (-math.inf, math.inf), "box": (-1.0, 1.0), "nonnegative": (0.0, math.inf), "simplex": (0.0, math.inf)}
ENDS["l1 and box"] = (-2.0, 2.0)
KINKS = {"l1": 2.0, "l1 and box": 1.0}  # weight of the norm


def subgradient(f, x, y):
    """The exact subgradients of the simple terms at the solution of a problem in whole numbers and halves."""
    return -(f.g.grad(x) + f.A.mul(y)), -(f.h.grad(y) - f.A.tmul(x))


def nearly_active(kind, x, s, rng):
    """Another subgradient at x, which is at the end of its range but for 2^-k, or exactly there."""
    lower, upper = ENDS[kind]
    gap = np.where(rng.random(x.size) < 0.2, 0.0, 2.0 ** -rng.integers(5, 40, x.size).astype(float))
    weight = KINKS.get(kind, 0.0)
    if kind == "simplex":
        return np.where(x == 0.0, 1.0 - gap, s)
    moved = np.where((x == 0.0) & (weight > 0.0), np.sign(s) * (weight - gap), s)
    moved = np.where(x == lower, -weight - gap, moved)
    return np.where(x == upper, weight + gap, moved)


def nearly_degenerate(f, kinds, xs, ys, rng):
    """The same problem with other linear terms and the same solution, where the subgradients are nearly active."""
    s, r = subgradient(f, xs, ys)
    new = nearly_active(kinds[0], xs, s, rng), nearly_active(kinds[1], ys, r, rng)
    g, h = (q + sp.Quadratic(0.0, old - other) for q, old, other in zip((f.g, f.h), (s, r), new, strict=True))
    return sp.Saddle(g, h, f.A), new


def check_proofs(kind, found, xs):
    """Every proof is true of the solution."""
    lower, upper = ENDS[kind]
    kinked = kind in KINKS
    assert np.all(xs[found == sp.Support.ZERO] == 0.0)
    assert np.all(xs[found == sp.Support.LOWER] == lower)
    assert np.all(xs[found == sp.Support.UPPER] == upper)
    off = xs[found == sp.Support.OFF]
    assert np.all((off > lower) & (off < upper) & ((off != 0.0) | (not kinked)))


def decided(kind, x, s):
    """Coordinates that a good enough certificate decides: inside the domain, or with a subgradient inside its range."""
    lower, upper = ENDS[kind]
    weight = KINKS.get(kind, 0.0)
    if kind == "simplex":
        return (x > 0.0) | (s < 1.0)
    inside = (x > lower) & (x < upper) & ((x != 0.0) | (weight == 0.0))
    kink = (x == 0.0) & (np.abs(s) < weight)
    return inside | kink | ((x == lower) & (s < -weight)) | ((x == upper) & (s > weight))


@pytest.mark.parametrize("kind_y", TERMS)
@pytest.mark.parametrize("kind_x", TERMS)
@pytest.mark.parametrize("draws", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_no_proof_is_false(kind_x, kind_y, draws):
    rng, proven = np.random.default_rng([SEED, *map(list(TERMS).index, (kind_x, kind_y))]), 0
    for _ in range(draws):
        f, xs, ys = known_problem(kind_x, kind_y, rng)
        f, _ = nearly_degenerate(f, (kind_x, kind_y), xs, ys, rng)
        for size in (0.0, 1e-13, 1e-9, 1e-5, 1e-2):
            x, y = f.project(xs + size * rng.standard_normal(8), ys + size * rng.standard_normal(6))
            of_x, of_y = proven_support(f, x, y, f.certificate(x, y))
            check_proofs(kind_x, of_x, xs)
            check_proofs(kind_y, of_y, ys)
            proven += np.count_nonzero(of_x) + np.count_nonzero(of_y)
    assert proven > 0


@pytest.mark.parametrize(("kind_x", "kind_y"), [("l1", "box"), ("simplex", "nonnegative"), ("l1 and box", "simplex")])
def test_a_run_to_a_small_tolerance_decides_all_coordinates_that_are_not_degenerate(kind_x, kind_y):
    for seed in range(3):
        f, xs, ys = known_problem(kind_x, kind_y, np.random.default_rng(seed))
        s, r = subgradient(f, xs, ys)
        result = sp.solve(f, tol=1e-10)
        for kind, found, z, t in ((kind_x, result.support_x, xs, s), (kind_y, result.support_y, ys, r)):
            check_proofs(kind, found, z)
            np.testing.assert_array_equal(found != sp.Support.UNDECIDED, decided(kind, z, t))


@pytest.mark.parametrize("wrap", [csr_array, aslinearoperator, np.float32], ids=["sparse", "operator", "float32"])
def test_every_kind_of_coupling_has_supports(wrap):
    f, xs, ys = known_problem("l1", "box", np.random.default_rng(2))
    narrow = wrap is np.float32
    A = f.A.matrix().astype(np.float32) if narrow else wrap(f.A.matrix())
    result = sp.solve(sp.Saddle(f.g, f.h, A), tol=1e-5 if narrow else 1e-10)
    check_proofs("l1", result.support_x, xs)
    assert np.count_nonzero(result.support_x) >= 4
    check_proofs("box", result.support_y, ys)


@pytest.mark.parametrize("wrap", [np.asarray, csr_array, np.float32], ids=["dense", "sparse", "float32"])
def test_the_lengths_of_rows_are_upper_bounds(wrap):
    A = np.random.default_rng(0).standard_normal((7, 5)) * 10.0 ** np.arange(-3, 4)[:, None]
    A = A.astype(np.float32) if wrap is np.float32 else A
    coupling = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), A if wrap is np.float32 else wrap(A)).A
    for C, M in ((coupling, A), (coupling.T, A.T)):
        exact = [math.sqrt(math.fsum(float(a) ** 2 for a in row)) for row in M]
        assert np.all(C.row_lengths() >= exact)
        np.testing.assert_allclose(C.row_lengths(), exact, rtol=1e-12)


def test_an_estimated_smoothness_proves_no_coordinate_to_be_at_a_bound():
    f, xs, _ = known_problem("l1", "box", np.random.default_rng(3))
    g = sp.Smooth(f.g.grad, mu=f.g.mu, L=None) + sp.L1(2.0)
    result = sp.solve(sp.Saddle(g, f.h, f.A), tol=1e-8)
    assert set(result.support_x) == {sp.Support.OFF, sp.Support.UNDECIDED}
    assert sp.Support.UPPER in result.support_y
    check_proofs("l1", result.support_x, xs)


def test_files_and_summaries_keep_supports(tmp_path):
    f, _, _ = known_problem("l1", "box", np.random.default_rng(1))
    f = sp.Saddle(f.g, f.h.replace(simple=None), f.A)
    result = sp.solve(f, tol=1e-8)
    assert result.support_y is None
    assert "support of x proven" in repr(result)
    found = json.loads(json.dumps(result.to_dict(arrays=True)))
    assert found["support_x"] == result.support_x.tolist()
    assert sum(found["support"]["x"].values()) == 8
    file = tmp_path / "answer.npz"
    result.save(file)
    again = sp.load_result(file)
    assert again.support_x.dtype == np.int8
    np.testing.assert_array_equal(again.support_x, result.support_x)
    assert again.support_y is None


def test_the_report_shows_terms_and_supports():
    f, _, _ = known_problem("l1", "box", np.random.default_rng(1))
    page = report_page({"mine": sp.solve(f, tol=1e-8)})
    assert "simple term of g" in page
    assert "L1(2)" in page
    assert "Proven support" in page
    assert "Fenchel" in page
    assert "Fenchel" not in report_page({"plain": sp.solve(sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), np.eye(2)))})


@pytest.mark.parametrize("forged", [np.full(8, 9, np.int8), np.ones(7, np.int8), np.ones(8, np.int64)])
def test_forged_supports_are_refused(tmp_path, forged):
    f, _, _ = known_problem("l1", "box", np.random.default_rng(1))
    file = tmp_path / "answer.npz"
    sp.solve(f, tol=1e-6).save(file)
    arrays = dict(np.load(file))
    np.savez(file, **(arrays | {"support_x": forged}))
    with pytest.raises(sp.ProblemError, match="support_x is not one value of Support"):
        sp.load_result(file)


def test_results_without_simple_terms_have_no_supports():
    result = sp.solve(sp.Saddle(sp.Quadratic(1.0, [1.0]), sp.Quadratic(1.0), np.eye(1)))
    assert result.support_x is None
    assert result.support_y is None
    assert result.to_dict()["support"] == {}


def test_the_picture_counts_the_coordinates_that_are_decided():
    pytest.importorskip("matplotlib")
    f, x, _ = known_problem("l1", "box", np.random.default_rng(3))
    figure = plot_support(f, tol=1e-9)
    assert [axis.get_ylabel() for axis in figure.axes] == ["coordinates of x", "coordinates of y"]
    at_bound = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert at_bound.max() == (x == 0.0).sum()
    with pytest.raises(sp.ProblemError, match="no simple term, so that there is no support to prove"):
        plot_support(sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), np.eye(2)))
