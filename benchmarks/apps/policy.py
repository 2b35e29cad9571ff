"""Policy evaluation: the saddle form against closed forms and GTD2, from the features to theta."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from scipy import linalg
from scipy.sparse import block_array, csr_array, diags_array, eye_array, hstack
from scipy.sparse.linalg import splu
from timing import cpu_seconds

from saddlepoint.apps.gtd2 import gtd2
from saddlepoint.apps.policy import PolicyEvaluation
from saddlepoint.ground.arrays import Array

REPEATS = 3  # timed calls, of which the fastest counts
GTD2_STEPS = (0.02, 0.1, 0.5)  # step sizes that are tried


class Data(NamedTuple):
    """Transitions: sparse features now and after, and rewards."""

    now: Any
    after: Any
    rewards: Array
    discount: float


def rows(quick: bool) -> Iterator[list[str]]:
    """Application, task, solver, seconds, and the largest error of theta relative to its largest entry."""
    steps, passes = (5_000, 2) if quick else (50_000, 10)
    yield from _compared("Taxi's model, a feature a state (496), ridge 0", _taxi(), 0.0, passes)
    tiles = _mountain_car(steps)
    for ridge in (1e-2, 1e-3):
        name = f"MountainCar, {steps} steps, 8 tilings (d = 2048), ridges {ridge:g}"
        yield from _compared(name, tiles, ridge, passes)
    name = f"walk of {steps // 10} steps, 16 of 2000 hashed features on, ridges 0.001"
    yield from _compared(name, _hashed(steps // 10), 1e-3, passes)


def _compared(task: str, data: Data, ridge: float, passes: int) -> Iterator[list[str]]:
    def evaluation() -> PolicyEvaluation:
        return PolicyEvaluation(*data, ridge=ridge, ridge_w=ridge)

    solvers: dict[str, Callable[[], Array]] = {
        "auto, certified 1e-6": lambda: evaluation().solve().theta,
        "krylov, certified 1e-6": lambda: evaluation().solve(method="krylov").theta,
        "closed form, dense": lambda: _dense(data, ridge),
        "closed form, sparse LU": lambda: _sparse(data, ridge),
    }
    reference = _sparse(data, ridge)
    for solver, run in solvers.items():
        seconds, theta = cpu_seconds(run, REPEATS)
        yield ["policy evaluation", task, solver, f"{seconds:.3g}", f"{_error(theta, reference):.1e}"]
    runs = [cpu_seconds(partial(_gtd2, evaluation(), step, passes), 1) for step in GTD2_STEPS]
    seconds, theta = min(runs, key=lambda run: _error(run[1], reference))
    solver = f"GTD2, {passes} passes, the best of {len(GTD2_STEPS)} step sizes"
    yield ["policy evaluation", task, solver, f"{seconds:.3g}", f"{_error(theta, reference):.1e}"]


def _gtd2(task: PolicyEvaluation, step: float, passes: int) -> Array:
    return next(islice(gtd2(task, step=step), passes - 1, None))


def _moments(data: Data) -> tuple[Any, Any, Array]:
    """The moments M, C without a ridge, and b."""
    now, n = data.now, data.now.shape[0]
    return now.T @ (now - data.discount * data.after) / n, now.T @ now / n, now.T @ data.rewards / n


def _dense(data: Data, ridge: float) -> Array:
    """Normal equations with dense matrices; the equations of LSTD for ridge = 0."""
    M, C, b = _moments(data)
    if ridge == 0.0:
        return np.asarray(linalg.solve(M.toarray(), b))
    identity = ridge * np.eye(len(b))
    CiM = linalg.cho_solve(linalg.cho_factor(C.toarray() + identity), M.toarray())
    return np.asarray(linalg.solve(M.T @ CiM + identity, CiM.T @ b, assume_a="pos"))


def _sparse(data: Data, ridge: float) -> Array:
    """Both optimality conditions at once by a sparse factorisation."""
    M, C, b = _moments(data)
    identity = ridge * eye_array(len(b))
    K = block_array([[identity, -M.T], [M, C + identity]], format="csc")
    return np.asarray(splu(K).solve(np.concatenate((0.0 * b, b)))[: len(b)])


def _taxi(discount: float = 0.99) -> Data:
    """The transition table under the random walk, with expected next features."""
    model = PolicyEvaluation.from_gymnasium(gym.make("Taxi-v4"), discount)
    root = np.sqrt(model.d)  # one row for each state, each of weight 1/d
    now = root * model.phi
    return Data(now, (now - root * model.psi) / discount, root * model.rewards, discount)


def _mountain_car(steps: int) -> Data:
    """Steps of Gymnasium's MountainCar under a policy that pushes along its motion half of the time."""
    env = gym.make("MountainCar-v0")
    rng = np.random.default_rng(0)
    state, seen = env.reset(seed=0)[0], []
    for _ in range(steps):
        along = 2 if state[1] >= 0.0 else 0
        after, reward, ended, cut, _ = env.step(along if rng.random() < 0.5 else int(rng.integers(3)))
        seen.append((*state, *after, float(reward), ended))
        state = env.reset()[0] if ended or cut else after
    table = np.array(seen)
    low, high = np.array([-1.2, -0.07]), np.array([0.6, 0.07])
    now, then = (_tiles((table[:, i : i + 2] - low) / (high - low), 8, 16) for i in (0, 2))
    return Data(now, csr_array(diags_array(1.0 - table[:, 5]) @ then), table[:, 4], 0.99)


def _tiles(points: Array, tilings: int, side: int) -> Any:
    """One-hot cells of shifted grids over the unit square, side by side."""
    n, blocks = len(points), []
    for k in range(tilings):
        shift = np.array([k, (3 * k) % tilings]) / tilings
        cell = np.clip((points * (side - 1) + shift).astype(int), 0, side - 1)
        column = cell[:, 0] * side + cell[:, 1]
        blocks.append(csr_array((np.ones(n), (np.arange(n), column)), shape=(n, side * side)))
    return csr_array(hstack(blocks))


def _hashed(steps: int, d: int = 2000, ones: int = 16) -> Data:
    """A walk over 4000 states whose features are hashed: any two of them may occur together, so that C is dense."""
    rng = np.random.default_rng(0)
    columns = np.array([rng.choice(d, ones, replace=False) for _ in range(4000)])
    states = csr_array((np.full(4000 * ones, ones**-0.5), (np.repeat(np.arange(4000), ones), columns.ravel())))
    walk = np.cumsum(rng.integers(-3, 4, size=steps + 1)) % 4000
    return Data(states[walk[:-1]], states[walk[1:]], np.sin(walk[:-1] / 500.0), 0.9)


def _error(theta: Array, reference: Array) -> float:
    return float(np.abs(theta - reference).max() / np.abs(reference).max())
