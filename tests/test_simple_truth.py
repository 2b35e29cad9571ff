"""A slice of ``benchmarks/simple_terms.py``: certificates with simple terms are above the exact distance."""

import numpy as np
import pytest
from known_terms import ACTIVE, FAMILIES, known_problem
from simple_terms import judge


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_certificates_are_above_the_exact_distance(family):
    found = judge(family, 8, np.random.default_rng(20))
    assert found["certificates"] == 40
    assert found["false"] == found["supports"] == 0
    assert found["solved"] == found["runs"] == 1
    assert found["at_solution"] <= 1e-10


@pytest.mark.parametrize("active", ACTIVE)
def test_the_saddle_point_is_exact(active):
    """The field plus the subgradients is exactly 0 there, so that the certificate is tiny."""
    f, x, y = known_problem("l1", "box", np.random.default_rng(1), active)
    assert f.certificate(x, y).distance <= 1e-18
