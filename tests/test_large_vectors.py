"""Long vectors: what would be computed or stored twice is computed and stored once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import saddlepoint as sp
from saddlepoint.ground.rows import Rows
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.functions import probes


def own_problem(m=6000, n=5000):
    rng = np.random.default_rng(0)
    A = sparse.random_array((m, n), density=2.0 / n, rng=rng, format="csr")

    def own(b):
        return sp.Smooth(lambda x: 0.1 * x + np.tanh(x - b), mu=0.1, L=1.1)

    return sp.Saddle(own(rng.standard_normal(m)), own(rng.standard_normal(n)), A)


def test_an_examination_draws_long_directions_once_for_each_function(monkeypatch):
    sizes, draws = [], probes._draws
    monkeypatch.setattr(probes, "_draws", lambda size, seed: sizes.append(size) or draws(size, seed))
    assert sp.solve(own_problem(), tol=1e-4).solved
    assert sorted(sizes) == [5000, 6000]


def test_long_directions_are_forgotten_after_an_examination():
    x = np.zeros(5000)
    with probes.keeping_directions():
        kept = probes.random_directions(x, 0)
        assert probes.random_directions(x, 0)[0] is kept[0]
        assert probes.random_directions(x.astype(np.float32), 0)[0].dtype == np.float32
        assert np.array_equal(probes.random_directions(x, 0)[1], kept[1])
    assert probes.random_directions(x, 0)[0] is not kept[0]
    assert np.array_equal(probes.random_directions(x, 0)[0], kept[0])


def test_a_multiple_is_in_the_place_of_the_next_row():
    a, rows = np.array([1.0, 2.0, 3.0]), Rows.empty(2, np.zeros(3))
    rows = rows.append(np.ones(3))
    found = rows.multiple(0.3, a)
    assert np.array_equal(found, 0.3 * a)
    assert np.shares_memory(found, rows.buffer)
    assert np.array_equal(rows.matrix, np.ones((1, 3)))
    full = rows.append(a)
    assert not np.shares_memory(full.multiple(0.3, a), full.buffer)
    assert np.array_equal(full.matrix, [np.ones(3), a])


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("transposed", [False, True])
def test_norms_of_sparse_columns_are_those_of_the_dense_matrix(scale, transposed):
    rng = np.random.default_rng(1)
    A = scale * sparse.random_array((40, 30), density=0.2, rng=rng, format="csr")
    coupling, dense = as_coupling(A), A.toarray()
    coupling, dense = (coupling.T, dense.T) if transposed else (coupling, dense)
    assert np.allclose(coupling.column_norms / scale, np.linalg.norm(dense / scale, axis=0), rtol=1e-14)
    sums = abs(dense / scale)
    assert coupling._mean_sum / scale == pytest.approx(np.sqrt(sums.sum(0).max() * sums.sum(1).max()))
