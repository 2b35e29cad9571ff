"""The formulas of the paper, its misprints, and the predictions of the theory."""

import math

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.problems.generators import chain, demo, random_quadratic
from saddlepoint.theory.minimax_appa import reduction
from saddlepoint.uses.bench.table import _fitted, exponent, measured_table, sweeps

GRID = [(k, nu) for k in (1.0, 1.7, 10.0, 1e3, 1e6) for nu in (0.0, 1e-3, 0.5, 1.0, 30.0, 1e4)]


def test_formulas_are_those_of_the_paper():
    """The paper's own expressions, in L, mu and |A|."""
    L, mu, A, C0, k = 7.0, 0.2, 3.0, 5.0, 4
    kappa, nu = L / mu, A / math.sqrt(L * mu)
    rho = 1 / (2 * math.sqrt(kappa))
    C = 4 * math.sqrt(kappa) + 1 + A**2 / (L * mu)
    level = theory.dippa_level(k, kappa, C0)
    assert theory.dppa_alpha(L, mu) == pytest.approx(1 / math.sqrt(L * mu))
    assert theory.dppa_contraction(kappa) == pytest.approx(((math.sqrt(kappa) - 1) / (math.sqrt(kappa) + 1)) ** 2)
    assert theory.dippa_rho(kappa) == pytest.approx(rho)
    assert theory.dippa_C(kappa, nu) == pytest.approx(C)
    assert theory.dippa_eps(level, mu) == pytest.approx(C0 * mu / 16 * (1 - rho) ** (k + 1))
    assert theory.dippa_delta(level, kappa, nu) == pytest.approx(
        C0 * L * mu / (2 * (1 + math.sqrt(kappa)) * (L * mu + A**2)) * (1 - rho) ** (k + 1)
    )
    mu_x, mu_y = 0.3, 0.7
    gamma, sigma, theta = theory.apfb_parameters(mu_x, mu_y, A)
    assert gamma == pytest.approx(math.sqrt(mu_y / mu_x) / A)
    assert sigma == pytest.approx(math.sqrt(mu_x / mu_y) / A)
    assert theta == pytest.approx(A / (math.sqrt(mu_x * mu_y) + A))
    c = A / math.sqrt(mu_x * mu_y)
    assert theory.aipfb_rho(c) == pytest.approx(math.sqrt(mu_x * mu_y) / (2 * math.sqrt(mu_x * mu_y) + 4 * A))
    assert theory.aipfb_eps(k, c, C0) == pytest.approx(
        C0 * theory.aipfb_rho(c) * (1 - theta) / 16 * (1 - theory.aipfb_rho(c)) ** (k - 1)
    )
    beta = theory.catalyst_beta(L, mu_x, mu_y)
    assert beta == pytest.approx(L * (mu_y - mu_x) / (L - mu_y))
    assert (L + beta) / (mu_x + beta) == pytest.approx(L / mu_y)
    q = theory.catalyst_q(mu_x, beta)
    assert theory.catalyst_theta(q) == pytest.approx((1 - math.sqrt(q)) / (1 + math.sqrt(q)))


# -- errata: where the printed numbers do not do what the proofs need -------------------------------------------------


def apfb_gap(nu, K2):
    """What Theorem `apfb` leaves of the squared distance after K2 steps on the coupling subproblem."""
    return theory.apfb_bound(nu, K2, 1.0)


@pytest.mark.parametrize(("kappa", "nu"), GRID)
def test_K1_and_K2_close_the_proof(kappa, nu):
    """With the bounds on the start that are true, K1 and K2 reach eps_k and delta_k; k = 1 is the hard case."""
    rho, C = theory.dippa_rho(kappa), theory.dippa_C(kappa, nu)
    L, mu, C0 = math.sqrt(kappa), 1 / math.sqrt(kappa), 1.0
    for k in (1, 2, 10):
        a = (1 + nu**2) * C0 if k == 1 else C * (1 - rho) ** k * C0  # a_1, and a_k by the theorem
        level = theory.dippa_level(k, kappa, C0)
        left = theory.agd_bound(L + 1, mu + 1, theory.dippa_K1(kappa, nu), 4 * a)  # alpha = 1
        assert left <= theory.dippa_eps(level, mu) * (1 + 1e-12)
        start = 4 * a + level
        assert start * apfb_gap(nu, theory.dippa_K2(kappa, nu)) <= theory.dippa_delta(level, kappa, nu) * (1 + 1e-12)
        root = math.sqrt(1 + nu**2)
        shrink = 2 * root * ((root - 1) / (root + 1)) ** theory.dippa_K2_cg(kappa, nu)
        assert (1 + nu**2) * start * shrink**2 <= theory.dippa_residual(level, kappa) * (1 + 1e-12)


def test_K2_as_printed_is_too_small_at_strong_coupling():
    kappa, nu = 100.0, 1e4
    rho, C = theory.dippa_rho(kappa), theory.dippa_C(kappa, nu)
    printed = math.floor((nu + 1) * math.log(20 * C * (1 + math.sqrt(kappa)) * (1 + nu**2) / (1 - rho))) + 2
    level = theory.dippa_level(5, kappa, 1.0)
    start = 4 * C * (1 - rho) ** 5 + level
    assert start * apfb_gap(nu, printed) > 100 * theory.dippa_delta(level, kappa, nu)
    assert theory.dippa_K2(kappa, nu) > printed


def test_K1_as_printed_is_too_small_in_the_first_step_at_strong_coupling():
    """Where nu^2 > 8 kappa, a_1 <= (1 + nu^2) C_0 is more than the C (1 - rho) C_0 that the lemma counts on."""

    def left_over(kappa, nu, steps):
        start = 4 * (1 + nu**2)
        left = theory.agd_bound(math.sqrt(kappa) + 1, 1 / math.sqrt(kappa) + 1, steps, start)
        return left / theory.dippa_eps(theory.dippa_level(1, kappa, 1.0), 1 / math.sqrt(kappa))

    short = []
    for kappa in np.geomspace(1.0, 4.0, 40):
        nu = 1e4
        rho, C = theory.dippa_rho(kappa), theory.dippa_C(kappa, nu)
        printed = theory.agd_steps(math.sqrt(kappa), 32 * C * (math.sqrt(kappa) + 1) ** 2 / (1 - rho))
        short.append(left_over(kappa, nu, printed))
        assert left_over(kappa, nu, theory.dippa_K1(kappa, nu)) <= 1 + 1e-12
    assert max(short) > 1.05


@pytest.mark.parametrize("c", [1e-3, 0.1, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("kappa", [1.0, 10.0, 1e5])
def test_aipfb_K1_and_K2_close_the_proof(kappa, c):
    rho, C = theory.aipfb_rho(c), theory.aipfb_C(c)
    known = lambda T: C if T <= 1 else C * (1 - rho) ** T  # noqa: E731 - of mu_x|dx|^2 + mu_y|dy|^2, with C_0 = 1
    for k in (1, 2, 3, 10):
        eps = theory.aipfb_eps(k, c, 1.0)
        start_y = 32 * known(k - 1) + 8 * known(max(k - 2, 0))
        left = theory.agd_bound(kappa + c, 1 + c, theory.aipfb_K1(kappa, c), start_y)  # mu_y = 1, 1/sigma = c
        assert left <= eps * (1 + 1e-12)
        start_x = 6 * known(k - 1) + 4 * known(k)
        left = theory.agd_bound(kappa + c, 1 + c, theory.aipfb_K2(kappa, c), start_x)
        assert left <= eps * (1 + 1e-12)


def test_aipfb_C_needs_its_factor_two():
    """(1 - 2 rho)(mu_x + 2/gamma) |dx|^2 is 2 c mu_x |dx|^2, not c mu_x |dx|^2."""
    mu_x, mu_y, A = 0.3, 0.7, 5.0
    gamma, _, _ = theory.apfb_parameters(mu_x, mu_y, A)
    c = A / math.sqrt(mu_x * mu_y)
    assert (1 - 2 * theory.aipfb_rho(c)) * (mu_x + 2 / gamma) == pytest.approx(2 * c * mu_x)
    assert theory.aipfb_C(c) == pytest.approx(2 * c + 1)


def test_aipfb_K1_as_printed_misses_eps():
    """The formula has 1 - rho where the proof has 1/(1 - rho); at weak coupling this is a factor of four."""
    kappa, c = 1e4, 1e-3
    rho, C = theory.aipfb_rho(c), theory.aipfb_C(c)
    printed = theory.agd_steps((kappa + c) / (1 + c), 320 * C * (1 - rho) * (kappa + 2 * c + 1) * (1 + c) / rho)
    k = 5
    start = 40 * C * (1 - rho) ** (k - 2)
    assert theory.agd_bound(kappa + c, 1 + c, printed, start) > 2 * theory.aipfb_eps(k, c, 1.0)
    assert theory.agd_bound(kappa + c, 1 + c, theory.aipfb_K1(kappa, c), start) <= theory.aipfb_eps(k, c, 1.0)


def test_the_predicted_steps_bring_the_sum_of_distances_to_eps():
    """K steps bring the sum of squares to eps^2/2, and so |x-x*| + |y-y*| to eps."""
    kappa, nu, C0, eps = 50.0, 2.0, 3.0, 1e-3
    K = theory.dippa_K(kappa, nu, C0, eps)
    assert theory.dippa_bound(kappa, nu, K, C0) <= eps**2 / 2
    assert theory.dippa_bound(kappa, nu, K // 2, C0) > eps**2 / 2
    mu_x, mu_y, c = 0.1, 2.0, 5.0
    K = theory.aipfb_K(c, mu_x, mu_y, C0, eps)
    assert math.sqrt((1 / mu_x + 1 / mu_y) * theory.aipfb_bound(c, K, C0)) <= eps


def test_catalyst_beta_is_right_at_extreme_conditions():
    assert theory.catalyst_beta(1.0, 0.1, 0.1) == 0.0
    assert theory.catalyst_beta(1.0, 0.3, 0.1) == 0.0  # the caller swaps the players
    assert theory.catalyst_beta(1.0, 1e-4, 1.0) == 1.0  # kappa_y = 1: the formula divides by zero
    assert theory.catalyst_beta(1.0, 1e-4, 1.0 - 1e-15) == 1.0
    assert theory.catalyst_steps(1.0, 1e6) == 1
    q = theory.catalyst_q(1e-4, 1.0)
    K = theory.catalyst_steps(q, 1e6)
    assert theory.catalyst_bound(K, q, 1.0) <= 1e-6 < theory.catalyst_bound(K // 2, q, 1.0)


@pytest.mark.parametrize("steps", [theory.agd_steps, theory.apfb_steps, theory.catalyst_steps, theory.cg_steps])
def test_what_is_small_enough_already_takes_as_many_steps_as_a_reduction_by_one(steps):
    for constant in (1e-300, 0.5, 1.0, 1e300):
        for small in (0.0, 1e-300, 0.5):
            assert 1 <= steps(constant, small) <= steps(constant, 1.0) <= steps(constant, 1e300)
    assert reduction(0.0, 1.0) == 1.0


@pytest.mark.parametrize("c", [0.0, 1e-300, 1e-6])
def test_no_coupling_divides_nothing_by_zero(c):
    gamma, sigma, theta = theory.apfb_parameters(2.0, 3.0, c)
    assert 0 < gamma < math.inf
    assert 0 < sigma < math.inf
    assert 0 < theta < 1
    assert theory.aipfb_K1(10.0, c) > 0
    assert theory.aipfb_K2(10.0, c) > 0
    assert theory.dippa_K2(10.0, c) > 0
    assert theory.cg_steps(c, 1.0) >= 1


# -- Table 1 and predictions ------------------------------------------------------------------------------------------


def test_table_1_is_that_of_the_paper_in_its_own_letters():
    kx, ky, c = 1e4, 1e2, 300.0
    L, mu_x, mu_y = 1.0, 1 / kx, 1 / ky
    A = c * math.sqrt(mu_x * mu_y)
    s = math.sqrt(mu_x * mu_y)
    printed = {
        "extragradient": A / mu_x + A / mu_y + kx + ky,
        "ogda": A / mu_x + A / mu_y + kx + ky,
        "minimax-appa": A / s + math.sqrt(kx * ky),
        "pbr": math.sqrt(A * max(A, L) / (mu_x * mu_y)) + math.sqrt(kx + ky),
        "catalyst-aipfb": math.sqrt(A * max(A, L) / (mu_x * mu_y)) + math.sqrt(kx + ky),
        "catalyst-dippa": A / s + (kx * ky * (kx + ky)) ** 0.25,
        "lower bound": A / s + math.sqrt(kx + ky),
    }
    assert [row.key for row in theory.TABLE1] == list(printed)
    for row in theory.TABLE1:
        assert row.order(kx, ky, c) == pytest.approx(printed[row.key])
    k = 400.0
    assert theory.dippa_order(k, k, c) == pytest.approx(c + k**0.75)  # |A|/mu + kappa^(3/4)
    assert theory.aipfb_order(kx, ky, c) == pytest.approx(c + math.sqrt(c * (kx + ky)) + math.sqrt(kx + ky))


def test_orders_of_later_methods_are_those_of_their_papers():
    kx, ky, c = 1e4, 1e2, 300.0
    accelerated = math.sqrt(kx) + c
    expected = {
        "extragradient": kx + ky + c,
        "ogda": kx + ky + c,
        "condat-vu": kx + ky + c,
        "agraal": kx + c,
        "rhss": c + math.sqrt(kx + ky),
        "krylov": c + math.sqrt(kx + ky),
        "jst": accelerated + math.sqrt(ky),
        "apdg": accelerated + math.sqrt(ky),
        "lpd": math.sqrt(kx - 1) + math.sqrt(ky - 1) + 2 * c,
        "lpd-gs": theory.chain_N(kx, ky, c),
        "lower bound": theory.chain_N(kx, ky, c) / 2,
    } | dict.fromkeys(("ag-eg", "ag-og", "rapd", "sliding", "lpd-slide"), accelerated)
    rows = {row.method: row for row in sp.predict(kx=kx, ky=ky, coupling=c).rows}
    assert {name: rows[name].order for name in expected} == pytest.approx(expected)
    assert list(rows)[-1] == "lower bound"
    for name, row in rows.items():
        fewer = {"sliding": math.sqrt(kx), "lpd-slide": math.sqrt(kx), "imex": kx, "anderson-imex": kx}
        if name == "separated":  # every oracle at its own rate
            assert (row.grad_g, row.grad_h, row.products) == pytest.approx((kx**0.5, ky**0.5, c))
            continue
        assert row.products == row.order
        assert row.grad_g == row.grad_h == pytest.approx(fewer.get(name, row.order))
    table = {row.key: row.order(kx, ky, c) for row in theory.TABLE1}
    assert all(rows[name].order <= order for name, order in table.items())  # later rows improve on the table's


def test_regimes_are_named_by_the_strength_of_the_coupling():
    kx, ky = 1e4, 1e2
    assert theory.regime(kx, ky, 1.0) == "weak"
    assert theory.regime(kx, ky, 200.0) == "intermediate"
    assert theory.regime(kx, ky, 1e3) == "strong"
    better = [
        c
        for c in (150.0, 250.0, 600.0)
        if theory.catalyst_dippa_order(kx, ky, c) < theory.best_response_order(kx, ky, c)
    ]
    assert better  # the paper's claim for the intermediate regime


def test_a_prediction_for_a_problem_is_that_for_its_numbers():
    f = random_quadratic(10, 8, 100, 50, 20, seed=0)
    of_problem = sp.predict(f, 1e-4)
    of_numbers = sp.predict(kx=f.kappa_x, ky=f.kappa_y, coupling=f.coupling, tol=1e-4)
    assert of_problem.rows == of_numbers.rows
    assert of_problem.recommended == "direct"  # the numbers do not tell that g and h are small quadratics
    assert of_numbers.recommended == "anderson-condat-vu"
    assert "because the coupling is mild" in repr(of_numbers)
    assert of_numbers == sp.predict({"kx": f.kappa_x, "ky": f.kappa_y, "coupling": f.coupling}, 1e-4)
    row = {row.method: row for row in of_problem.rows}
    assert row["dippa"].calls == pytest.approx(row["dippa"].order * math.log(1e4))
    assert row["dippa"].worst_case["grad_g"] > row["dippa"].calls  # constants and logarithms
    assert row["catalyst-dippa"].worst_case is None
    assert "recommended" in repr(of_problem)
    assert of_problem.to_dict()["regime"] == of_problem.regime


def test_the_worst_case_is_kept():
    """The paper's rule never calls more than the prediction with all constants."""
    f = random_quadratic(6, 5, 20, 20, 3, seed=0)
    start = f.certificate(np.zeros(6), np.zeros(5))
    tol = 1e-4
    result = sp.solve(f, method=sp.DIPPA("paper"), tol=tol)
    target = tol / 40  # a certified distance is up to 2 kappa = 40 times the true one
    promised = theory.dippa_calls(20.0, 3 / 20**0.5, start.distance**2, target)
    for name, count in result.calls.items():
        assert count <= getattr(promised, name)


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ({"kx": 0.5, "ky": 1, "coupling": 1}, "kx is 0.5; expected a finite number >= 1"),
        ({"kx": 2, "ky": math.inf, "coupling": 1}, "ky is inf"),
        ({"kx": 2, "ky": 2}, "coupling is missing"),
        ({"kx": 2, "ky": 2, "coupling": -1}, "coupling is -1"),
        ({"kx": 2, "ky": 2, "coupling": 1, "tol": 2.0}, "tol is 2"),
        ({"kx": 2, "ky": 2, "coupling": 1, "tol": 0.0}, "tol is 0"),
    ],
)
def test_bad_numbers_are_refused(numbers, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        sp.predict(**numbers)


def test_recommendations_follow_the_strength_of_the_coupling():
    assert sp.predict(kx=1e4, ky=1e4, coupling=1.0).recommended == "anderson-condat-vu"
    assert sp.predict(kx=1e4, ky=1e4, coupling=1e5).recommended == "anderson-imex"


# -- measurements -----------------------------------------------------------------------------------------------------


def test_exponents_are_slopes():
    assert exponent([1.0, 10.0, 100.0], [5.0, 50.0, 500.0]) == pytest.approx(1.0)


@pytest.mark.slow
def test_the_measured_table_agrees_with_theory_where_theory_is_sharp():
    table = measured_table(["dippa", "aipfb"], tol=1e-4, quick=True, max_seconds=60.0)
    rows = {row.method: row for row in table.rows}
    assert list(rows) == ["aipfb", "dippa", "lower bound"]
    kappa = rows["dippa"].measured[0], rows["dippa"].theory[0]
    assert kappa[0] == pytest.approx(kappa[1], abs=0.2)  # kappa^(3/4) at weak coupling
    assert rows["aipfb"].measured[0] == pytest.approx(rows["aipfb"].theory[0], abs=0.2)  # kappa^(1/2)
    assert rows["lower bound"].measured == pytest.approx(rows["lower bound"].theory, abs=0.03)  # exact on the chain
    assert all(run.solved for run in table.runs)
    assert len(table.runs) == 2 * sum(len(line.points) for line in sweeps(quick=True))
    assert all(row.points == table.sizes for row in table.rows)
    least, most = rows["dippa"].ratios
    assert 1.0 < least < most < 20.0


def test_a_method_that_is_out_of_time_skips_the_larger_problems():
    table = measured_table(["dippa"], quick=True, max_seconds=1e-9)
    dippa, low = table.rows
    assert dippa.measured == (None,) * 4
    assert dippa.points == (0, 0, 0, 0)
    assert dippa.ratios is None
    assert len(table.runs) == 4  # the first point of each sweep
    assert None not in low.measured


def test_an_exponent_may_rest_on_the_points_that_were_in_time():
    lines = sweeps()
    counts = [[10, 30, 100], [10, 30], [1, 2, 3, 4, 5], []]
    row = _fitted("a method", "somebody", lambda kx, ky, c: kx, lines, counts)
    assert row.measured[0] == pytest.approx(1.0, abs=0.01)
    assert row.measured[1] is row.measured[3] is None
    assert row.points == (3, 2, 5, 0)
    assert row.theory == pytest.approx((1.0, 1.0, 0.0, 0.0))


def test_a_method_without_a_row_is_measured_all_the_same():
    table = measured_table(["apfb"], tol=1e-2, quick=True, max_seconds=60.0)
    row, _ = table.rows
    assert row.method == "apfb"
    assert row.theory == (None,) * 4
    assert row.measured[3] == pytest.approx(1.0, abs=0.1)  # |A|/sqrt(mu_x mu_y) + 1, with the prox


def test_generators_have_the_constants_asked_for():
    f = random_quadratic(12, 9, 300, 20, 7, L_x=5.0, L_y=0.1, seed=2)
    assert (f.kappa_x, f.kappa_y) == pytest.approx((300, 20))
    assert f.coupling == pytest.approx(7, rel=0.03)
    assert (f.L_x, f.L_y) == pytest.approx((5.0, 0.1))
    c = chain(300, 100, 50, 20)
    assert (c.kappa_x, c.kappa_y) == pytest.approx((100, 50))
    assert np.linalg.eigvalsh(c.g.P.A.toarray())[[0, -1]] == pytest.approx([0.01, 1.0], rel=0.02)
    assert c.coupling == pytest.approx(20, rel=0.03)
    d = demo()
    assert d.kappa_x > 20 * d.kappa_y
    assert not d.g.has_prox
    assert not d.h.has_prox


@pytest.mark.parametrize("kappa", [1.0, 30.0, 1e8, 1e33, 1e300])
def test_dippas_next_bound_falls_at_any_condition_number(kappa):
    """Beyond 1e32 the contraction factor is 1 in floating-point numbers."""
    bound, level, moved = 4.0, 1e-3, 0.5
    found = theory.dippa_next_bound(bound, level, moved, kappa)
    assert 0.0 < found <= (1.0 - 2.0 * theory.dippa_rho(kappa)) * bound + 2.0 * level
    if kappa <= 1e8:
        root = math.sqrt(kappa)
        r, error = (root - 1.0) / (root + 1.0), theory.dippa_inner_error(level, kappa)
        by_contraction = (r * (moved + error) / (1.0 - r) + error) ** 2
        assert found <= by_contraction * (1.0 + 1e-6)


def test_a_run_of_dippa_at_an_extreme_condition_number_ends_with_a_true_certificate():
    P = np.array([1e-24, 1.0, 1e14])
    own = sp.Smooth(lambda x: P * x + 1.0, mu=1e-24, L=1e14)
    f = sp.Saddle(own, sp.Quadratic(1e-10, np.ones(2)), 1e-3 * np.ones((3, 2)))
    assert not sp.solve(f, method="dippa", tol=1e-3, max_calls=300, max_seconds=1.0).solved
