"""CliffWalking under a random walk: its values from sampled steps, by saddle methods, by LSTD and by GTD2."""

import sys
from itertools import islice

import gymnasium as gym
import numpy as np

import saddlepoint as sp
from saddlepoint.apps import PolicyEvaluation
from saddlepoint.apps.gtd2 import gtd2
from saddlepoint.plots.style import RC, looks, pyplot, save

STEPS, DISCOUNT, PASSES = 10_000, 0.9, 30


def random_walk(env, seed=0):
    """State, next state, reward and whether the episode ended: an array of each."""
    rng = np.random.default_rng(seed)
    state, rows = env.reset(seed=seed)[0], []
    for _ in range(STEPS):
        after, reward, ended, _, _ = env.step(int(rng.integers(env.action_space.n)))
        rows.append((state, after, reward, ended))
        state = env.reset()[0] if ended else after
    return (np.array(column) for column in zip(*rows, strict=True))


def main(path="out/policy.png"):
    env = gym.make("CliffWalking-v1")
    now, after, rewards, ended = random_walk(env)
    visits = np.bincount(now, minlength=48) / STEPS
    seen = np.flatnonzero(visits)
    onehot = np.eye(48)[:, seen]
    scaled = onehot / np.sqrt(visits[seen])  # of mean square one, which makes C the identity

    def evaluation(features):
        return PolicyEvaluation(features[now], features[after] * ~ended[:, None], rewards, DISCOUNT)

    task = evaluation(scaled)
    answer = task.solve(tol=1e-8)
    print(f"{STEPS} steps, {seen.size} states visited\n{answer.run}")
    lstd = scaled @ task.closed_form()
    print(f"largest difference from LSTD: {abs(answer.values(scaled) - lstd).max():.1e}")
    truth = PolicyEvaluation.from_gymnasium(env, DISCOUNT).solve(tol=1e-8).values()

    def error(values):
        return np.sqrt(visits @ (values - lstd) ** 2) / np.sqrt(visits @ lstd**2)

    def curve(method):
        """Passes over the steps (a gradient of h or a product counts as one) and errors, at every certificate."""
        points = []

        def look(result):
            points.append((sum(result.calls[name] for name in ("grad_h", "A", "At")), error(scaled @ result.x)))

        sp.solve(task.problem, method=method, tol=1e-8, callback=look)
        return np.array(points).T

    curves = {method: curve(method) for method in ("auto", "dippa", "extragradient")}
    stochastic = [error(onehot @ theta) for theta in islice(gtd2(evaluation(onehot)), PASSES)]
    curves["GTD2 (stochastic)"] = np.arange(PASSES + 1), np.array([1.0, *stochastic])
    for name, (passes, errors) in curves.items():
        print(f"{name}: relative error {errors[-1]:.1e} after {passes[-1]:.0f} passes")
    print(f"error of the sample, LSTD against the exact values: {np.sqrt(visits @ (lstd - truth) ** 2):.2f}")

    plt = pyplot()
    with plt.rc_context(RC | {"savefig.dpi": 115}):
        figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 6), height_ratios=[2, 1], constrained_layout=True)
        for (name, (passes, errors)), (colour, dash, _) in zip(curves.items(), looks(), strict=False):
            style = {"color": colour, "linestyle": dash, "drawstyle": "steps-post" if name == "auto" else "default"}
            top.loglog(np.maximum(passes, 1), np.maximum(errors, 1e-14), label=name, **style)
        top.plot(1, 1e-14, "k*", markersize=10, clip_on=False, label="LSTD")
        top.set(xlabel="passes over the sampled steps", ylabel="relative error of the values", ylim=(1e-14, 3))
        top.legend(loc="center left", bbox_to_anchor=(0.0, 0.42), fontsize=9)
        grid = np.full(48, np.nan)
        grid[seen] = answer.values(scaled)[seen]
        picture = bottom.imshow(grid.reshape(4, 12), cmap="viridis", aspect="auto")
        bottom.set_title("values by auto; white: the cliff and the goal", fontsize=11)
        bottom.set(xticks=range(12), yticks=range(4))
        bottom.grid(False)
        figure.colorbar(picture, ax=bottom)
        save(figure, path)
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
