"""PEPit on the methods of the library: worst cases by semidefinite programming, compared with the theorems."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.methods.agd import AGD
from saddlepoint.methods.dppa import DPPAState
from saddlepoint.parts.functions.anchored import anchored

PEPit = pytest.importorskip("PEPit")
from symbolic import Coupling, CouplingWithTerms, smooth, worst_case, worst_error  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # cvxpy and its solvers warn
SOLVER = 2e-4  # relative accuracy of the semidefinite solver


@pytest.mark.parametrize(("kappa", "T"), [(10.0, 1), (10.0, 2), (10.0, 4), (4.0, 3), (100.0, 2)])
def test_agd_stays_under_its_theorem(kappa, T):
    problem = PEPit.PEP()
    f, phi = smooth(problem, 1.0 / kappa, 1.0)
    xs = f.stationary_point()
    x0 = problem.set_initial_point()
    problem.set_initial_condition((x0 - xs) ** 2 <= 1)
    agd, s = AGD(), AGD().init(phi, x0)
    for _ in range(T):
        s = agd.step(phi, s)
    problem.set_performance_metric(f(s.x) - f(xs))
    found, bound = worst_case(problem), theory.agd_bound(1.0, 1.0 / kappa, T, 1.0)
    assert 0 < found <= bound * (1 + SOLVER)
    assert found < 0.5 * bound  # the theorem is not tight: 0.09 (kappa 4, T 3) to 0.37 (kappa 10, T 1)


@pytest.mark.parametrize(("kappa", "nu"), [(4.0, 1.0), (10.0, 0.5), (10.0, 3.0), (100.0, 1.0)])
def test_dppa_contracts_exactly_as_its_theorem_says(kappa, nu):
    """On the method's own file, with a coupling of norm nu sqrt(L mu) and symbolic g, h: the worst case is eta."""
    mu, L = 1.0 / math.sqrt(kappa), math.sqrt(kappa)  # alpha = 1
    problem = PEPit.PEP()
    (_, g), (_, h), A = smooth(problem, mu, L), smooth(problem, mu, L), Coupling(problem, nu)
    f = SimpleNamespace(g=g, h=h, A=A, L=L, mu=mu)
    z, w = problem.set_initial_point(), problem.set_initial_point()
    # The solution: (x*, y*) is its own proximal step from (z*, w*).
    xs, ys = PEPit.Point(), PEPit.Point()
    Ays, Atxs = A.both(xs, ys)
    g_star, h_star = -1 * Ays, Atxs
    for symbol, point, gradient in ((g, xs, g_star), (h, ys, h_star)):
        symbol.grad.__self__.add_point((point, gradient, PEPit.Expression()))
    zs, ws = xs - Ays, ys + Atxs
    problem.set_initial_condition((z - zs) ** 2 + (w - ws) ** 2 <= 1)
    after = sp.DPPA().step(f, DPPAState(None, None, z, w))
    problem.set_performance_metric((after.z - zs) ** 2 + (after.w - ws) ** 2)
    assert worst_case(problem) == pytest.approx(theory.dppa_contraction(kappa), rel=SOLVER)


@pytest.mark.parametrize(("kappa", "nu"), [(4.0, 1.0), (10.0, 3.0)])
def test_dppa_contracts_as_its_theorem_says_with_terms_in_the_coupling_step(kappa, nu):
    """Convex functions p and q in the second reflection do not change the worst case."""
    mu, L = 1.0 / math.sqrt(kappa), math.sqrt(kappa)  # alpha = 1
    problem = PEPit.PEP()
    (_, g), (_, h), A = smooth(problem, mu, L), smooth(problem, mu, L), CouplingWithTerms(problem, nu)
    f = SimpleNamespace(g=g, h=h, A=A, L=L, mu=mu)
    z, w = problem.set_initial_point(), problem.set_initial_point()
    xs, ys, s, r = (PEPit.Point() for _ in range(4))
    Ays, Atxs = A.both(xs, ys)
    for symbol, point, gradient in ((g, xs, -1 * Ays - s), (h, ys, Atxs - r)):
        symbol.grad.__self__.add_point((point, gradient, PEPit.Expression()))
    A.p.add_point((xs, s, PEPit.Expression()))
    A.q.add_point((ys, r, PEPit.Expression()))
    zs, ws = xs - Ays - s, ys + Atxs - r
    problem.set_initial_condition((z - zs) ** 2 + (w - ws) ** 2 <= 1)
    after = sp.DPPA().step(f, DPPAState(None, None, z, w))
    problem.set_performance_metric((after.z - zs) ** 2 + (after.w - ws) ** 2)
    assert worst_case(problem) == pytest.approx(theory.dppa_contraction(kappa), rel=SOLVER)


def test_anchored_functions_may_be_symbolic():
    problem = PEPit.PEP()
    f, phi = smooth(problem, 0.1, 1.0)
    x0 = problem.set_initial_point()
    G = anchored(phi, 2.0, x0)
    xs = G.prox(x0, 1.0)
    gradient = G.grad(xs) + (xs - x0)
    problem.set_initial_condition((x0 - f.stationary_point()) ** 2 <= 1)
    problem.set_performance_metric(gradient**2)
    assert abs(worst_case(problem)) < 1e-6
    assert np.isclose(G.mu, 2.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "steps", "share"),
    [  # the share of the bound that the worst case takes up: only extragradient's theorem is nearly tight
        (sp.Extragradient(), 1, 0.964),
        (sp.OGDA(), 2, 0.675),
        (sp.CondatVu(), 2, 0.0126),
        (sp.LPD(), 2, 0.127),
        (sp.LPDGS(), 2, 0.00182),
        (sp.APDG(), 2, 0.245),
        (sp.JST(), 1, 0.215),
        (sp.AGEG(), 2, 0.179),
        (sp.AGOG(), 2, 0.151),
    ],
    ids=lambda value: getattr(value, "label", None),
)
def test_worst_cases_of_the_rivals_stay_under_their_bounds(method, steps, share):
    found, bound = worst_error(method, 4.0, 3.0, 1.5, steps)
    assert found == pytest.approx(share * bound, rel=0.01)
    assert found <= bound
