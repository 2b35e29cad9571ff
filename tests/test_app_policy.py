"""Policy evaluation: constants, closed forms, Gymnasium's tables, random decision processes, and invalid input."""

from itertools import islice

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import saddlepoint as sp
from saddlepoint.apps import PolicyEvaluation, policy
from saddlepoint.apps.gtd2 import gtd2
from saddlepoint.ground.arrays import dense

pytestmark = pytest.mark.slow  # `make check` runs the examples in the docstrings of the applications
ENVIRONMENTS = {
    "frozen lake 4x4": ("FrozenLake-v1", {"map_name": "4x4", "is_slippery": True}),
    "frozen lake 8x8": ("FrozenLake-v1", {"map_name": "8x8", "is_slippery": True}),
    "cliff walking": ("CliffWalking-v1", {}),
    "taxi": ("Taxi-v4", {}),
}


def environment(name):
    made, options = ENVIRONMENTS[name]
    return gym.make(made, **options)


def by_hand(env, gamma, actions=None):
    """The values (I - gamma P)^-1 r of the random walk (or of one action a state), read from the table in plain loops.

    Nothing is won after a terminated transition, and nothing in a state that one leads to.
    """
    table = env.unwrapped.P
    S = len(table)
    K, r = np.eye(S), np.zeros(S)
    over = {after for row in table.values() for outcomes in row.values() for _, after, _, ended in outcomes if ended}
    for s in set(range(S)) - over:
        chosen = table[s] if actions is None else [actions[s]]
        for a in chosen:
            for p, after, reward, ended in table[s][a]:
                r[s] += p * reward / len(chosen)
                if not ended:
                    K[s, after] -= gamma * p / len(chosen)
    return np.linalg.solve(K, r)


def moments(features, after, rewards, gamma, weights=None, ridge_w=0.0):
    """M, C, b by their definition, one transition at a time."""
    n, d = features.shape
    c = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    c = c / c.sum()
    M, C, b = np.zeros((d, d)), ridge_w * np.eye(d), np.zeros(d)
    for p, q, r, k in zip(features, after, rewards, c, strict=True):
        M += k * np.outer(p, p - gamma * q)
        C += k * np.outer(p, p)
        b += k * r * p
    return M, C, b


def minimiser(M, C, b, ridge):
    """argmin 1/2 |M theta - b|^2_{C^-1} + ridge/2 |theta|^2, of least length, as a least squares problem."""
    R = np.linalg.inv(np.linalg.cholesky(C))
    rows, right = np.vstack((R @ M, np.sqrt(ridge) * np.eye(len(b)))), np.concatenate((R @ b, 0.0 * b))
    return np.linalg.lstsq(rows, right, rcond=1e-12)[0]


def transitions(seed=0, n=60, d=5, ended=0.2):
    rng = np.random.default_rng(seed)
    features, after = rng.standard_normal((2, n, d))
    after = 0.5 * after + 0.5 * features
    after[rng.random(n) < ended] = 0.0
    return features, after, rng.standard_normal(n)


def hashed(seed=0, n=40, d=60, ones=3):
    """Sparse features with few transitions: M and C would hold more numbers than the features do."""
    rng = np.random.default_rng(seed)
    features, after = (np.zeros((n, d)) for _ in range(2))
    for row in (*features, *after):
        row[rng.choice(d, ones, replace=False)] = rng.standard_normal(ones)
    return sparse.csr_array(features), sparse.csr_array(after), rng.standard_normal(n)


TASKS = {
    "ridge": lambda: PolicyEvaluation(*transitions(), 0.9, ridge=0.1),
    "ridge and ridge_w": lambda: PolicyEvaluation(*transitions(), 0.9, ridge=1e-3, ridge_w=0.2),
    "LSTD": lambda: PolicyEvaluation(*transitions(), 0.9),
    "LSTD with ridge_w": lambda: PolicyEvaluation(*transitions(), 0.9, ridge_w=0.2),
    "weights": lambda: PolicyEvaluation(*transitions(), 0.9, weights=np.arange(60.0), ridge=0.1),
    "products only": lambda: PolicyEvaluation(*hashed(), 0.9, ridge=0.1, ridge_w=0.05),
    "products only, dense": lambda: PolicyEvaluation(*transitions(n=8, d=20), 0.9, ridge=0.1, ridge_w=0.05),
    "model": lambda: PolicyEvaluation.from_gymnasium(environment("frozen lake 4x4"), 0.95, ridge=1e-3),
    "model, LSTD": lambda: PolicyEvaluation.from_gymnasium(environment("cliff walking"), 0.95),
}


# -- the problem ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_the_constants_hold(name):
    f = TASKS[name]().problem
    for function, mu, L, n in ((f.g, f.mu_x, f.L_x, f.shape[0]), (f.h, f.mu_y, f.L_y, f.shape[1])):
        zero = function.grad(np.zeros(n))
        hessian = np.stack([function.grad(e) - zero for e in np.eye(n)])
        np.testing.assert_allclose(hessian, hessian.T, atol=1e-12)
        low, *_, high = np.linalg.eigvalsh(hessian)
        rounding = 1e-12 * high
        assert 0.0 < mu <= low + rounding
        assert high - rounding <= L
    A = np.stack([f.A.mul(e) for e in np.eye(f.shape[1])], axis=1)
    assert np.linalg.norm(A, 2) <= f.norm * (1 + 1e-12)


@pytest.mark.parametrize("name", ["LSTD", "LSTD with ridge_w", "model, LSTD"])
def test_the_constants_of_lstd_are_sharp(name):
    task = TASKS[name]()
    f, M, C = task.problem, dense(task.M), dense(task.C)
    c, s = np.linalg.eigvalsh(C), np.linalg.svd(M, compute_uv=False)
    tau = 0.5 / c[-1]
    found = [f.mu_x, f.L_x, f.mu_y, f.L_y]
    np.testing.assert_allclose(found, [tau * s[-1] ** 2, tau * s[0] ** 2, c[0] - tau * c[0] ** 2, c[-1] / 2], rtol=1e-6)


@pytest.mark.parametrize("name", TASKS)
def test_the_saddle_point_minimises_the_projected_bellman_error(name):
    task = TASKS[name]()
    M, C = dense(task.M), dense(task.C)
    theta = minimiser(M, C, task.b, task.ridge)
    w = np.linalg.solve(C, task.b - M @ theta)
    Fx, Fy = task.problem.field(theta, w)
    scale = np.linalg.norm(M) * np.linalg.norm(theta) + np.linalg.norm(task.b)
    assert np.hypot(np.linalg.norm(Fx), np.linalg.norm(Fy)) <= 1e-12 * scale
    np.testing.assert_allclose(task.closed_form(), theta, atol=1e-9 * (1 + np.linalg.norm(theta)))


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("method", ["auto", "dippa", "krylov", "catalyst-dippa", "lpd-gs"])
def test_methods_agree_with_the_closed_form(name, method):
    task = TASKS[name]()
    found = task.solve(tol=1e-7, method=method)
    assert found.solved
    assert found.certificate.distance <= 1e-7
    assert isinstance(found.run, sp.Result)
    np.testing.assert_allclose(found.theta, task.closed_form(), rtol=0, atol=1e-6)
    assert found.mspbe == pytest.approx(task.mspbe(task.closed_form()), abs=1e-6)


@pytest.mark.parametrize("name", ["ridge", "products only", "model"])
def test_extragradient_finds_the_closed_form(name):
    task = TASKS[name]()
    np.testing.assert_allclose(task.solve(method="extragradient").theta, task.closed_form(), rtol=0, atol=1e-6)


def test_moments_are_the_averages_they_claim_to_be():
    features, after, rewards = transitions()
    weights = np.arange(60.0)
    task = PolicyEvaluation(features, after, rewards, 0.8, weights=weights, ridge_w=0.3)
    for found, expected in zip(
        (task.M, task.C, task.b), moments(features, after, rewards, 0.8, weights, 0.3), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-13)


def test_a_weight_is_a_repetition():
    features, after, rewards = transitions()
    weights = np.arange(60) % 4
    again = [np.repeat(array, weights, axis=0) for array in (features, after, rewards)]
    once = PolicyEvaluation(features, after, rewards, 0.9, weights=weights, ridge=0.1)
    np.testing.assert_allclose(once.closed_form(), PolicyEvaluation(*again, 0.9, ridge=0.1).closed_form(), atol=1e-12)


def test_mspbe_is_its_definition():
    theta = np.arange(5.0)
    features, after, rewards = transitions()
    M, C, b = moments(features, after, rewards, 0.9, ridge_w=0.2)
    miss = M @ theta - b
    expected = 0.5 * miss @ np.linalg.solve(C, miss)
    for task in (
        PolicyEvaluation(features, after, rewards, 0.9, ridge_w=0.2),
        PolicyEvaluation(sparse.csr_array(features), sparse.csr_array(after), rewards, 0.9, ridge_w=0.2),
    ):
        assert task.mspbe(theta) == pytest.approx(expected, rel=1e-12)


# -- how the data are stored ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_sparse_features_give_the_same(ridge):
    features, after, rewards = transitions()
    features, after = (np.where(np.abs(array) > 0.7, array, 0.0) for array in (features, after))
    expected = PolicyEvaluation(features, after, rewards, 0.9, ridge=ridge).closed_form()
    for now, then in (
        (sparse.csr_array, sparse.coo_array),
        (sparse.csc_array, np.asarray),
        (np.asarray, sparse.csr_array),
    ):
        task = PolicyEvaluation(now(features), then(after), rewards, 0.9, ridge=ridge)
        np.testing.assert_allclose(task.solve(tol=1e-9).theta, expected, atol=1e-8)


def test_products_only_and_formed_matrices_give_the_same(monkeypatch):
    theta = np.linspace(-1.0, 1.0, 60)
    products = PolicyEvaluation(*hashed(), 0.9, ridge=0.1, ridge_w=0.05)
    monkeypatch.setattr(PolicyEvaluation, "_compact", lambda self: True)
    formed = PolicyEvaluation(*hashed(), 0.9, ridge=0.1, ridge_w=0.05)
    assert formed.formed
    assert not products.formed
    np.testing.assert_allclose(products.solve(tol=1e-9).theta, formed.solve(tol=1e-9).theta, atol=1e-8)
    assert products.mspbe(theta) == pytest.approx(formed.mspbe(theta), rel=1e-8)
    assert products.problem.mu_y == pytest.approx(0.05, abs=1e-15)  # C has rank 40 of 60, so that mu_y is ridge_w
    assert formed.problem.mu_y == pytest.approx(0.05, abs=1e-12)


def test_products_only_never_form_a_matrix(monkeypatch):
    def refuse(self):
        raise AssertionError("formed")

    monkeypatch.setattr(policy, "FORMING", 0.0)  # no products are allowed for trying
    monkeypatch.setattr(PolicyEvaluation, "M", property(refuse))
    monkeypatch.setattr(PolicyEvaluation, "C", property(refuse))
    assert PolicyEvaluation(*hashed(), 0.9, ridge=0.1, ridge_w=0.05).solve(method="krylov").solved


def test_few_tiles_are_formed_although_the_features_are_many():
    cells = np.random.default_rng(0).integers(300, size=2000)
    features, after = (sparse.csr_array((np.ones(2000), (np.arange(2000), k))) for k in (cells, np.roll(cells, -1)))
    task = PolicyEvaluation(features, after, np.ones(2000), 0.9, ridge=1e-3, ridge_w=1e-3)
    assert task.formed
    assert task.C.nnz == 300


def test_the_closed_form_of_sparse_matrices_is_that_of_dense_ones():
    for ridge in (0.0, 1e-3):
        task = PolicyEvaluation.from_gymnasium(environment("frozen lake 8x8"), 0.95, ridge=ridge)
        np.testing.assert_allclose(task.closed_form(dense_up_to=10), task.closed_form(), atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 1e-7])
def test_a_large_tabular_model_stays_sparse(ridge):
    S = 4000
    left = np.maximum(np.arange(S) - 1, 0)
    right = np.minimum(np.arange(S) + 1, S - 1)
    P = sparse.csr_array((np.full(2 * S, 0.5), (np.tile(np.arange(S), 2), np.concatenate((left, right)))))
    task = PolicyEvaluation.from_model(P, np.arange(S) / S, 0.9, ridge=ridge)
    found = task.solve(tol=1e-6)
    assert found.solved
    assert task.problem.kappa_y == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(found.theta, task.closed_form(), atol=1e-6)


def test_dependence_is_seen_among_many_features():
    d = 1600  # beyond the size up to which eigenvalues are computed
    pairs = sparse.diags_array([np.ones(d), np.ones(d - 1)], offsets=[0, 1], format="csr")
    PolicyEvaluation(pairs, 0.0 * pairs, np.ones(d), 0.9)  # each row but the last adds a feature to the one before
    with pytest.raises(sp.ProblemError, match="the 1600 features are linearly dependent"):
        PolicyEvaluation(pairs[:-1], 0.0 * pairs[:-1], np.ones(d - 1), 0.9)


# -- Gymnasium --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.9, 0.99])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_tabular_values_are_exact(name, gamma):
    env = environment(name)
    task = PolicyEvaluation.from_gymnasium(env, gamma)
    found = task.solve(tol=1e-6)
    assert found.solved, found.message
    np.testing.assert_allclose(found.values(), by_hand(env, gamma), rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.theta, task.closed_form(), rtol=0, atol=1e-6)


def aggregated(S, rng):
    return np.eye(max(S // 5, 3))[np.arange(S) * max(S // 5, 3) // S]


def random_features(S, rng):
    return rng.standard_normal((S, max(S // 8, 4)))


@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("make", [aggregated, random_features])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_with_fewer_features_than_states_the_closed_form_is_found(name, make, ridge):
    env, rng = environment(name), np.random.default_rng(1)
    S = env.observation_space.n
    task = PolicyEvaluation.from_gymnasium(
        env, 0.95, features=make(S, rng), state_weights=rng.uniform(0.5, 1.5, S), ridge=ridge
    )
    found = task.solve(tol=1e-6)
    assert found.solved, found.message
    expected = minimiser(dense(task.M), dense(task.C), task.b, ridge)
    np.testing.assert_allclose(found.theta, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.theta, task.closed_form(), rtol=0, atol=1e-6)


def test_the_values_are_those_of_the_given_policy():
    env = environment("frozen lake 4x4")
    actions = np.arange(16) % 4
    found = PolicyEvaluation.from_gymnasium(env, 0.9, policy=np.eye(4)[actions]).solve()
    np.testing.assert_allclose(found.values(), by_hand(env, 0.9, actions), rtol=0, atol=1e-6)


def test_the_episode_is_over_in_terminal_states():
    found = PolicyEvaluation.from_gymnasium(environment("cliff walking"), 0.9).solve()
    assert found.values()[47] == 0.0  # the goal
    assert (found.values()[:47] < -1.0).all()  # every step costs, and the goal is more than one away on average


@pytest.mark.parametrize("ridge", [0.0, 0.01])
@pytest.mark.parametrize("name", ["frozen lake 4x4", "cliff walking"])
def test_sampled_trajectories_are_evaluated(name, ridge):
    env, rng = environment(name), np.random.default_rng(0)
    state, rows = env.reset(seed=0)[0], []
    for _ in range(3000):
        after, reward, ended, _, _ = env.step(int(rng.integers(4)))
        rows.append((state, after, reward, ended))
        state = env.reset()[0] if ended else after
    now, after, rewards, ended = map(np.array, zip(*rows, strict=True))
    onehot = np.eye(env.observation_space.n)[:, np.unique(now)]
    data = onehot[now], onehot[after] * ~ended[:, None], rewards
    task = PolicyEvaluation(*data, 0.9, ridge=ridge)
    found = task.solve(tol=1e-6)
    assert found.solved, found.message
    expected = minimiser(*moments(*data, 0.9), ridge)
    np.testing.assert_allclose(found.theta, expected, rtol=0, atol=1e-6)


def test_samples_tend_to_the_model():
    env = environment("frozen lake 4x4")
    exact = PolicyEvaluation.from_gymnasium(env, 0.9).solve().values()
    table, rng = env.unwrapped.P, np.random.default_rng(0)
    alive = np.array([s for s in range(16) if not table[s][0][0][3] or len(table[s][0]) > 1])
    now = np.repeat(alive, 4000)
    after, rewards, ended = np.zeros_like(now), np.zeros(now.size), np.zeros(now.size, dtype=bool)
    for t, s in enumerate(now):
        outcomes = table[s][rng.integers(4)]
        after[t], rewards[t], ended[t] = outcomes[rng.integers(len(outcomes))][1:]
    onehot = np.eye(16)[:, alive]
    task = PolicyEvaluation(sparse.csr_array(onehot[now]), onehot[after] * ~ended[:, None], rewards, 0.9)
    assert abs(task.solve().values(onehot) - exact).max() <= 0.01


# -- random decision processes ----------------------------------------------------------------------------------------


@st.composite
def processes(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    S = draw(st.integers(2, 12))
    P = rng.dirichlet(np.full(S, draw(st.sampled_from([0.2, 1.0]))), size=S)
    P /= P.sum(axis=1, keepdims=True)
    weights = rng.uniform(0.2, 1.0, S)  # off-policy: not the stationary distribution
    return P, rng.standard_normal(S), draw(st.floats(0.0, 0.99)), weights, rng


@given(processes())
def test_values_of_a_random_process_solve_its_bellman_equation(process):
    P, r, gamma, weights, _ = process
    found = PolicyEvaluation.from_model(P, r, gamma, state_weights=weights).solve(tol=1e-6)
    assert found.solved, found.message
    np.testing.assert_allclose(found.values(), np.linalg.solve(np.eye(len(r)) - gamma * P, r), rtol=0, atol=1e-6)


@given(processes(), st.sampled_from([0.0, 1e-3, 1.0]), st.sampled_from([0.0, 0.1]))
def test_weights_of_features_are_the_minimiser_and_certified(process, ridge, ridge_w):
    P, r, gamma, weights, rng = process
    S = len(r)
    F = rng.standard_normal((S, rng.integers(1, S + 1)))
    task = PolicyEvaluation.from_model(P, r, gamma, F, weights, ridge=ridge, ridge_w=ridge_w)
    M, C, b = moments(F, P @ F, r, gamma, weights, ridge_w)
    expected = minimiser(M, C, b, ridge)
    found = task.solve(tol=1e-6)
    # An allowance for the error of the reference.
    slack = 1e-13 * np.linalg.cond(C) * np.linalg.cond(M) * (1.0 + np.linalg.norm(expected))
    if found.certificate is not None:  # the certificate must be true whether tol was reached or not
        assert np.linalg.norm(found.theta - expected) <= found.certificate.distance + slack
    if ridge > 0.0 or np.linalg.cond(M) ** 2 * (1.0 + np.linalg.norm(expected)) <= 1e8:
        assert found.solved, found.message


@given(processes())
def test_scaling_the_features_leaves_the_values_of_lstd(process):
    P, r, gamma, weights, rng = process
    F = np.linalg.qr(rng.standard_normal((len(r), len(r))))[0]
    scales = rng.uniform(0.5, 2.0, len(r))
    plain, scaled = (PolicyEvaluation.from_model(P, r, gamma, G, weights).solve() for G in (F, F * scales))
    np.testing.assert_allclose(plain.values(), scaled.values(), atol=1e-5)


# -- problems whose theta is not unique -------------------------------------------------------------------------------


def test_where_theta_is_not_unique_the_proximal_point_method_finds_the_shortest_one():
    features, after, rewards = transitions()
    twice = np.hstack((features, features[:, :2]))
    task = PolicyEvaluation(twice, np.hstack((after, after[:, :2])), rewards, 0.9, ridge_w=0.1)
    with pytest.raises(sp.ProblemError, match="theta is not unique; give a positive ridge"):
        _ = task.problem
    with pytest.raises(sp.ProblemError, match="theta is not unique; give a positive ridge"):
        task.closed_form()
    found = task.solve(tol=1e-10)
    assert found.solved
    assert found.certificate is None
    assert found.residual <= 1e-10
    np.testing.assert_allclose(found.theta, minimiser(task.M, task.C, task.b, 0.0), atol=1e-6)  # the shortest one
    assert "residual" in repr(found)


def test_the_proximal_point_method_works_with_products_only():
    task = PolicyEvaluation(*hashed(), 0.9, ridge_w=0.05)
    assert not task.formed
    with pytest.raises(sp.ProblemError, match="M is not formed; give a positive ridge"):
        _ = task.problem
    found = task.solve(tol=1e-8)
    assert found.solved
    M, C = dense(task.M), dense(task.C)
    assert np.linalg.norm(M.T @ np.linalg.solve(C, M @ found.theta - task.b)) <= 1e-6


# -- GTD2 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparsely", [False, True])
def test_averages_of_gtd2_are_near_the_closed_form(sparsely):
    features, after, rewards = transitions()
    kind = sparse.csr_array if sparsely else np.asarray
    weights = np.linspace(0.5, 1.5, 60)
    task = PolicyEvaluation(kind(features), kind(after), rewards, 0.5, weights=weights, ridge=0.05, ridge_w=0.1)
    average = np.mean(list(islice(gtd2(task), 100, 500)), axis=0)
    assert np.linalg.norm(average - task.closed_form()) <= 0.05 * np.linalg.norm(task.closed_form())


def test_gtd2_converges_where_no_noise_is_left_at_the_solution():
    P = np.array([[0.1, 0.6, 0.3], [0.5, 0.0, 0.5], [0.2, 0.2, 0.6]])
    task = PolicyEvaluation.from_model(P, [1.0, 0.0, -2.0], 0.5)
    theta = next(islice(gtd2(task), 999, None))
    np.testing.assert_allclose(theta, np.linalg.solve(np.eye(3) - 0.5 * P, [1.0, 0.0, -2.0]), atol=1e-3)


def test_gtd2_is_reproducible_and_yields_copies():
    task = TASKS["ridge"]()
    first, second = (list(islice(gtd2(task, seed=3), 2)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first[0], first[1])


# -- invalid input ----------------------------------------------------------------------------------------------------

F, G, R = transitions(n=6, d=2)
NAN, SHORT = F.copy(), F[:5]
NAN[3, 1] = np.nan
SPARSE_NAN = sparse.csr_array(NAN)
P2 = np.full((2, 2), 0.5)

REFUSED = {
    "discount of one": (lambda: PolicyEvaluation(F, G, R, 1.0), "discount is 1; expected 0 <= discount < 1"),
    "negative discount": (lambda: PolicyEvaluation(F, G, R, -0.1), "discount is -0.1; expected a finite number"),
    "NaN discount": (lambda: PolicyEvaluation(F, G, R, np.nan), "discount is nan"),
    "no number": (lambda: PolicyEvaluation(F, G, R, "high"), "discount is 'high'; expected a number"),
    "negative ridge": (lambda: PolicyEvaluation(F, G, R, 0.9, ridge=-1.0), "ridge is -1; expected a finite number"),
    "infinite ridge_w": (lambda: PolicyEvaluation(F, G, R, 0.9, ridge_w=np.inf), "ridge_w is inf"),
    "NaN": (lambda: PolicyEvaluation(NAN, G, R, 0.9), r"features has a nan at index \(3, 1\)"),
    "NaN, sparse": (lambda: PolicyEvaluation(F, SPARSE_NAN, R, 0.9), "the data of next_features has a nan"),
    "NaN reward": (lambda: PolicyEvaluation(F, G, NAN[:, 1], 0.9), "rewards has a nan at index 3"),
    "NaN in P": (lambda: PolicyEvaluation.from_model(P2 * np.nan, [0, 1], 0.9), "P has a nan"),
    "lengths": (lambda: PolicyEvaluation(F, SHORT, R, 0.9), r"features are \(6, 2\) and next_features \(5, 2\)"),
    "few rewards": (lambda: PolicyEvaluation(F, G, R[:5], 0.9), "rewards has 5 entries; expected 6"),
    "few weights": (lambda: PolicyEvaluation(F, G, R, 0.9, weights=[1, 2]), "weights has 2 entries; expected 6"),
    "negative weight": (lambda: PolicyEvaluation(F, G, R, 0.9, weights=-R**2), "weights are negative or all zero"),
    "no weight": (lambda: PolicyEvaluation(F, G, R, 0.9, weights=0 * R), "weights are negative or all zero"),
    "empty": (lambda: PolicyEvaluation(F[:0], G[:0], R[:0], 0.9), r"features has shape \(0, 2\); expected a matrix"),
    "a vector": (lambda: PolicyEvaluation(R, R, R, 0.9), r"features has shape \(6,\); expected a matrix"),
    "words": (lambda: PolicyEvaluation([["a"]], [["b"]], [1], 0.9), "features has dtype"),
    "dependent": (
        lambda: PolicyEvaluation(np.hstack((F, F)), np.hstack((G, G)), R, 0.9),
        "the 4 features are linearly dependent on the transitions given, or so nearly that rounding hides it; "
        "drop them, or give ridge_w > 0",
    ),
    "unseen": (
        lambda: PolicyEvaluation(F * [1, 0], G, R, 0.9),
        r"1 of 2 features are zero in all transitions \(1\): their states are never visited",
    ),
    "state of no weight": (
        lambda: PolicyEvaluation.from_model(P2, [0, 1], 0.9, state_weights=[1, 0]),
        "1 of 2 features are zero in all transitions",
    ),
    "more features than transitions": (lambda: PolicyEvaluation(F.T, G.T, [0, 1], 0.9), "linearly dependent"),
    "row sums": (lambda: PolicyEvaluation.from_model([[1, 0], [0.5, 0.4]], [0, 1], 0.9), "row 1 of P sums to 0.9"),
    "negative chance": (lambda: PolicyEvaluation.from_model([[2, -1], [0, 1]], [0, 1], 0.9), "negative entry, -1"),
    "P not square": (lambda: PolicyEvaluation.from_model(P2[:1], [0], 0.9), r"P has shape \(1, 2\)"),
    "P empty": (lambda: PolicyEvaluation.from_model(np.zeros((0, 0)), [], 0.9), r"P has shape \(0, 0\)"),
    "few r": (lambda: PolicyEvaluation.from_model(P2, [0], 0.9), "r has 1 entries; expected 2"),
    "features of too few states": (
        lambda: PolicyEvaluation.from_model(P2, [0, 1], 0.9, features=[[1.0]]),
        "features have 1 rows; expected 2, one for each state",
    ),
    "no such terminal": (lambda: PolicyEvaluation.from_model(P2, [0, 1], 0.9, terminal=[2]), "states 0 to 1"),
    "all terminal": (lambda: PolicyEvaluation.from_model(P2, [0, 1], 0.9, terminal=[0, 1]), "some, not all"),
    "no table": (lambda: PolicyEvaluation.from_gymnasium(gym.make("CartPole-v1"), 0.9), "has no transition table"),
    "policy's shape": (
        lambda: PolicyEvaluation.from_gymnasium(environment("cliff walking"), 0.9, policy=P2),
        r"policy has shape \(2, 2\); expected \(48, 4\), states by actions",
    ),
    "policy's sums": (
        lambda: PolicyEvaluation.from_gymnasium(environment("cliff walking"), 0.9, policy=np.ones((48, 4))),
        "row 0 of policy sums to 4; expected 1",
    ),
    "values without features": (lambda: PolicyEvaluation(F, G, R, 0.9).solve().values(), "values needs features"),
    "values of other features": (
        lambda: PolicyEvaluation(F, G, R, 0.9).solve().values(np.eye(3)),
        "features have 3 columns; expected 2",
    ),
    "theta of another size": (lambda: PolicyEvaluation(F, G, R, 0.9).mspbe([1.0]), "theta has 1 entries; expected 2"),
    "negative tol": (lambda: PolicyEvaluation(F, G, R, 0.9).solve(tol=-1.0), "tol is -1.0; expected a positive"),
    "no number of seconds": (lambda: PolicyEvaluation(F, G, R, 0.9).solve(max_seconds="soon"), "max_seconds is 'soon'"),
    "no such method": (lambda: PolicyEvaluation(F, G, R, 0.9).solve(method="td"), "td"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_input_is_refused_in_a_sentence(name):
    attempt, message = REFUSED[name]
    with pytest.raises(sp.ProblemError, match=message):
        attempt()


def test_two_tilings_are_dependent_and_ridges_help():
    point = np.random.default_rng(0).random(200)
    tiles = np.hstack((np.eye(4)[(4 * point).astype(int)], np.eye(5)[(4 * point + 0.5).astype(int)]))
    data = tiles[:-1], tiles[1:], point[:-1]
    with pytest.raises(sp.ProblemError, match="linearly dependent"):
        PolicyEvaluation(*data, 0.9)
    assert PolicyEvaluation(*data, 0.9, ridge=1e-3, ridge_w=1e-3).solve().solved


def test_the_advice_on_dependent_features_works():
    features, after, rewards = transitions(n=30)
    twice = [np.hstack((array, array)) for array in (features, after)]
    found = PolicyEvaluation(*twice, rewards, 0.9, ridge=1e-3, ridge_w=1e-3).solve()
    assert found.solved
    assert found.certificate.distance <= 1e-6


def test_out_of_time_is_said():
    found = TASKS["LSTD"]().solve(tol=1e-9, method="extragradient", max_seconds=1e-6)
    assert not found.solved
    assert "time is up" in found.message
    assert "Certificate(" in repr(found)


def test_the_input_is_left_alone():
    features, after, rewards = transitions()
    kept = features.copy(), after.copy(), rewards.copy()
    PolicyEvaluation(features, after, rewards, 0.9, ridge=0.1).solve()
    for array, before in zip((features, after, rewards), kept, strict=True):
        np.testing.assert_array_equal(array, before)
