"""The pictures of these pages, drawn with the library itself: python docs/theory/pictures.py [FOLDER]."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import numpy as np
from PIL import Image

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.ground.plot_style import COLOURS, RC, pyplot, save
from saddlepoint.methods.wrappers.catalyst import certified_gap
from saddlepoint.problems.generators import chain, chain_solution, random_logistic
from saddlepoint.problems.transforms import anchored

HERE = Path(__file__).parent
RESULTS = HERE.parent.parent / "benchmarks" / "results"
BLUE, RED, GREEN, PINK, ORANGE = COLOURS[:5]
GREY = "#777777"


def one_by_one(mu=0.15, delta=0.5, curvature=0.5, coupling=0.9):
    """A problem with one variable on each side, whose solution is (0, 0)."""
    return sp.Saddle(sp.Huber(l2=mu, delta=delta), sp.Quadratic(curvature), [[coupling]])


def keep(figure, path):
    """Save a picture with few colours, in few bytes."""
    save(figure, path)
    pyplot().close(figure)
    with Image.open(path) as drawn:
        small = drawn.convert("RGB").quantize(128, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def arrow(axis, start, end, colour, label="", dashed=False):
    """From one point to another."""
    look = {"color": colour, "lw": 2.2, "ls": (0, (3, 2)) if dashed else "-"}
    style = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, "mutation_scale": 16} | look
    axis.annotate("", end, start, arrowprops=style, zorder=4)
    if label:
        axis.plot([], [], label=label, **look)


def plane(axis, reach, title):
    """Axes through the origin, both of the same scale."""
    axis.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="x", ylabel="y", title=title)
    axis.set_aspect("equal")
    axis.axhline(0, color=GREY, lw=0.6)
    axis.axvline(0, color=GREY, lw=0.6)


def field(path):
    """The field of a problem is a descent for each player, plus a rotation."""
    plt, f, reach = pyplot(), one_by_one(), 2.0
    grid = np.linspace(-reach, reach, 25)
    X, Y = np.meshgrid(grid, grid)
    a = f.norm
    parts = {
        "g and h alone: each player descends": (f.g.grad(X), f.h.grad(Y)),
        "coupling alone: a rotation": (a * Y, -a * X),
        "their sum: a spiral into the saddle point": (f.g.grad(X) + a * Y, f.h.grad(Y) - a * X),
    }
    with plt.rc_context(RC | {"axes.grid": False}):
        figure, axes = plt.subplots(1, 3, figsize=(12.0, 4.3), constrained_layout=True, sharey=True)
        for axis, (title, (U, V)), colour in zip(axes, parts.items(), (BLUE, RED, GREEN), strict=True):
            plane(axis, reach, title)
            axis.streamplot(X, Y, -U, -V, color=colour, density=0.9, linewidth=1.1, arrowsize=1.1)
            axis.plot(0, 0, "o", color="black", markersize=6, zorder=5)
        for axis in axes[1:]:
            axis.set_ylabel("")
        keep(figure, path)


def two_steps(path):
    """One step of DPPA: a reflection that contracts, and one that rotates."""
    plt, f, reach = pyplot(), one_by_one(), 2.1
    L, mu = f.L, f.mu
    alpha, r = theory.dppa_alpha(L, mu), math.sqrt(theory.dppa_contraction(L / mu))
    z = np.array([1.75, 0.85])
    t = np.array([f.g.prox(z[:1], alpha)[0], f.h.prox(z[1:], alpha)[0]])
    p = 2.0 * t - z
    x, y = f.A.resolvent(p[:1], p[1:], alpha)
    s = np.array([x[0], y[0]])
    after = 2.0 * s - p
    with plt.rc_context(RC | {"axes.grid": False}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11.4, 5.6), constrained_layout=True)
        plane(left, reach, "1. prox of g and h: each player alone")
        circle(left, np.linalg.norm(z), GREY, "|(z, w)|")
        circle(left, r * np.linalg.norm(z), BLUE, "r |(z, w)|: p is within", dashed=True)
        arrow(left, z, t, BLUE, "to the proximal point (x̃, ỹ)")
        arrow(left, t, p, BLUE, "and as far again: the reflection", dashed=True)
        points(left, ("(z, w)", z, GREY, (-6, 12)), ("(x̃, ỹ)", t, BLUE, (4, -18)), ("p", p, RED, (-16, -14)))
        plane(right, reach, "2. prox of the coupling: both together")
        circle(right, np.linalg.norm(p), RED, "|p|: the next (z, w) is on it")
        arrow(right, p, s, RED, "to the proximal point (x, y)")
        arrow(right, s, after, RED, "and as far again: the reflection", dashed=True)
        points(
            right, ("p", p, RED, (-16, 6)), ("(x, y)", s, GREEN, (2, 10)), ("the next (z, w)", after, GREY, (10, -8))
        )
        for axis in (left, right):
            axis.plot(0, 0, "*", color="black", markersize=12, zorder=5)
            axis.legend(loc="lower left", fontsize=9, frameon=True, edgecolor="none")
        keep(figure, path)


def circle(axis, radius, colour, label, dashed=False):
    """A circle around the solution."""
    angle = np.linspace(0, 2 * np.pi, 200)
    axis.plot(
        radius * np.cos(angle), radius * np.sin(angle), color=colour, lw=1.0, ls="--" if dashed else "-", label=label
    )


def points(axis, *named):
    """Points with their names beside them, so far to the right and up."""
    for name, point, colour, aside in named:
        axis.plot(*point, "o", color=colour, markersize=7, zorder=5)
        axis.annotate(name, point, xytext=aside, textcoords="offset points", fontsize=12, zorder=6)


def steps(method, f, x, y, count):
    """The points (x, y) of a method, in the coordinates of f."""
    view = method.normal_form(f)
    state = method.init(view.problem, *view.to(np.array([x]), np.array([y])))
    path = [(x, y)]
    for _ in range(count):
        state = method.step(view.problem, state)
        u, v = view.back(state.x, state.y)
        path.append((u[0], v[0]))
    return np.array(path)


def paths(path):
    """DPPA beside extragradient: in the plane, and by gradients on a larger problem."""
    plt = pyplot()
    f = one_by_one(0.05, 0.3, 0.05, 0.6)
    start = (1.7, 1.2)
    large = random_logistic(150, 100, 100.0, 100.0, 1000.0, seed=3)
    goal = 1e-6 * large.certificate(np.zeros(150), np.zeros(100)).distance
    with plt.rc_context(RC):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11.4, 4.8), constrained_layout=True)
        plane(left, 2.1, "one variable each, steps of both")
        for label, method, colour, mark in (
            ("extragradient", sp.Extragradient(), ORANGE, "."),
            ("DPPA, of which DIPPA is the inexact form", sp.DPPA(), BLUE, "o"),
        ):
            way = steps(method, f, *start, 60 if mark == "." else 12)
            left.plot(*way.T, "-", marker=mark, color=colour, lw=1.2, markersize=5 if mark == "o" else 4, label=label)
        left.plot(0, 0, "*", color="black", markersize=12, zorder=5)
        left.legend(loc="lower left", fontsize=9)
        for name, colour, dash in (("extragradient", ORANGE, "--"), ("condat-vu", GREEN, "-."), ("dippa", BLUE, "-")):
            run = sp.solve(large, method=name, tol=goal, max_calls=20_000)
            calls, distance = run.history.column("grad_g") + 1, run.history.column("distance")
            label = f"{name}: {run.calls['grad_g']} gradients, {run.calls['A']} products"
            right.loglog(calls, distance, color=colour, ls=dash, lw=1.8, label=label)
        right.set(xlabel="gradients of g", ylabel="certified |x − x*| + |y − y*|", ylim=(1e-7, 200))
        right.set_title("logistic against log-cosh, |A| = 10 L, kappa = 100")
        right.legend(loc="lower left", fontsize=9)
        keep(figure, path)


def catalyst(path):
    """What Catalyst adds to a flat player, and the accuracies at which its inner solves end."""
    plt = pyplot()
    with plt.rc_context(RC):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11.4, 4.6), constrained_layout=True)
        _outer(left)
        _inner(right)
        keep(figure, path)


def _outer(axis):
    """Exact proximal points of a flat parabola, with momentum."""
    mu, beta, x, anchor = 0.04, 0.5, 4.0, 4.0
    theta = theory.catalyst_theta(theory.catalyst_q(mu, beta))
    grid = np.linspace(-1.2, 5.0, 300)
    axis.plot(grid, 0.5 * mu * grid**2, color="black", lw=2.0, label="Φ(x) = max over y of f(x, y), flat")
    for k, colour in zip(range(1, 5), (BLUE, RED, GREEN, PINK), strict=True):
        now = beta * anchor / (mu + beta)
        inside = grid[abs(grid - anchor) < 1.35]
        axis.plot(inside, 0.5 * mu * inside**2 + 0.5 * beta * (inside - anchor) ** 2, color=colour, lw=1.4, ls="--")
        axis.plot(anchor, 0.5 * mu * anchor**2, "|", color=colour, markersize=16, mew=2)
        axis.plot(
            now,
            0.5 * mu * now**2 + 0.5 * beta * (now - anchor) ** 2,
            "o",
            color=colour,
            label=f"minimum of f_{k}: x_{k}",
        )
        x, anchor = now, now + theta * (now - x)
    axis.set(ylim=(-0.04, 0.75), xlabel="x", title="outer: minima around moving anchors ( | )")
    axis.legend(fontsize=9, loc="upper left")


def _inner(axis):
    """The certified gap of f_k along a run, and the eps_k at which step k ends."""
    method = sp.Catalyst(sp.Extragradient())
    f = method.normal_form(chain(300, 300.0, 10.0, 10.0)).problem
    beta = method.weight(f)
    q = theory.catalyst_q(f.mu_x, beta)
    state = method.init(f, np.zeros(f.shape[0]), np.zeros(f.shape[1]))
    seen = []  # the outer step, the gap of its f_k, and the gap allowed
    for _ in range(150):
        k, fk = state.k, anchored(f, beta, state.anchor)
        state = method.step(f, state)
        seen.append(
            (k, certified_gap(fk, state.x, state.y, *fk.field(state.x, state.y)), theory.catalyst_eps(k, q, state.gap))
        )
    outer, gaps, allowed = np.array(seen[90:]).T
    inner = np.arange(91, 151)
    for k in np.unique(outer):
        mine = outer == k
        axis.semilogy(inner[mine], gaps[mine], "o-", color=BLUE if k % 2 else ORANGE, markersize=4, lw=1.2)
    axis.step(inner, allowed, where="mid", color="black", lw=1.4, label="ε_k: below it outer step k ends")
    axis.plot([], [], "o-", color=BLUE, label="certified gap of f_k; the colour changes with k")
    axis.set(xlabel="steps of the inner method", ylabel="duality gap", title="inner: extragradient, kx = 300, ky = 10")
    axis.legend(fontsize=9, loc="lower left")


def measured(name, product):
    """(label, bytes, seconds of two products, seconds of one pass, bandwidth) of every float row of a benchmark."""
    text = (RESULTS / name).read_text()
    on_gpu = name == "fused_gpu.md"
    found = re.search(r"copy ([\d.]+) TB/s" if on_gpu else r"read bandwidth: ([\d.]+) GB/s", text)
    bandwidth = float(found[1]) * (1e12 if on_gpu else 1e9)
    rows = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if on_gpu and cells[0] == product and cells[1] in ("float32", "float64") and cells[3] == "rows":
            (m, n), two, one = map(int, cells[2].split(" x ")), float(cells[4]) * 1e-6, float(cells[5]) * 1e-6
            rows.append((f"{cells[2]} {cells[1]}", m * n * (4 if cells[1] == "float32" else 8), two, one))
        elif not on_gpu and len(cells) > 3 and cells[1] == product and re.fullmatch(r"\d+ x \d+ float\d\d", cells[0]):
            m, n = (int(part) for part in re.findall(r"\d+", cells[0])[:2])
            rows.append((cells[0], m * n * int(cells[0][-2:]) // 8, float(cells[2]) * 1e-3, float(cells[3]) * 1e-3))
    return rows, bandwidth


def one_pass(path):
    """A is read in blocks, and what that gains: time against bytes, measured."""
    plt = pyplot()
    with plt.rc_context(RC):
        figure, (blocks, cpu, gpu) = plt.subplots(1, 3, figsize=(13.2, 4.5), constrained_layout=True)
        _blocks(blocks)
        for axis, name, title in (
            (cpu, "fused_cpu.md", "two CPU cores"),
            (gpu, "fused_gpu.md", "one NVIDIA H200"),
        ):
            rows, bandwidth = measured(name, "both")
            size, two, one = (np.array([row[i] for row in rows]) for i in (1, 2, 3))
            ends = np.array([size.min(), size.max()])
            axis.loglog(
                ends / 1e6, ends / bandwidth * 1e3, color="black", lw=1.2, label="A read once, at full bandwidth"
            )
            axis.loglog(ends / 1e6, 2 * ends / bandwidth * 1e3, color=GREY, lw=1.2, ls="--", label="read twice")
            axis.loglog(size / 1e6, two * 1e3, "s", color=RED, markersize=5, label="two products")
            axis.loglog(size / 1e6, one * 1e3, "o", color=BLUE, markersize=5, label="one pass: A.both(x, y)")
            axis.set(xlabel="A in MB", ylabel="milliseconds for A y and A' x", title=title)
            axis.legend(fontsize=8.5, loc="upper left")
        keep(figure, path)


def _blocks(axis):
    """Rows of A in blocks: while a block is near, it is used twice."""
    axis.set(xlim=(0, 10), ylim=(0, 10), title="one pass over A")
    axis.axis("off")
    for k in range(5):
        near = k == 2
        colour = BLUE if near else "#D0D7DE"
        axis.add_patch(pyplot().Rectangle((1.4, 7.6 - 1.5 * k), 4.6, 1.3, facecolor=colour, edgecolor="white"))
    axis.text(3.7, 5.25, "block of A, in cache", color="white", ha="center", va="center", fontsize=10)
    arrow(axis, (6.1, 5.6), (7.4, 6.3), RED)
    arrow(axis, (6.1, 4.9), (7.4, 4.0), GREEN)
    axis.text(7.5, 6.3, "1. its rows\nof A y", color=RED, va="center", fontsize=10)
    axis.text(7.5, 3.9, "2. its share\nof A' x", color=GREEN, va="center", fontsize=10)
    axis.text(3.7, 0.6, "then the next block: every byte of A is read once", ha="center", fontsize=10)


def lower(path):
    """The solution of the chain beyond the reach of a method, and how close LPD-GS comes."""
    plt, n, kx, ky, c = pyplot(), 900, 100.0, 100.0, 50.0
    xs, ys = chain_solution(n, kx, ky, c)
    f, whole = chain(n, kx, ky, c), math.hypot(np.linalg.norm(xs), np.linalg.norm(ys))
    state, done = sp.LPDGS().init(f, np.zeros(n), np.zeros(n)), []
    for _ in range(700):
        done.append(math.hypot(np.linalg.norm(state.x - xs), np.linalg.norm(state.y - ys)) / whole)
        state = sp.LPDGS().step(f, state)
    rounds, reach = np.arange(450), "beyond the reach of any method\n(the calls of a round made together)"
    beyond = [math.hypot(np.linalg.norm(xs[k:]), np.linalg.norm(ys[max(k - 1, 0) :])) / whole for k in rounds]
    with plt.rc_context(RC):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11.4, 4.3), constrained_layout=True)
        left.semilogy(np.arange(1, 201), abs(xs[:200]), color=BLUE, lw=1.8, label="|x*_i|")
        left.semilogy(np.arange(1, 201), abs(ys[:200]), color=RED, lw=1.8, ls="--", label="|y*_i|")
        left.axvspan(60, 200, color=GREY, alpha=0.2, lw=0)
        left.text(66, abs(xs[3]), "still zero after 60 rounds\nof simultaneous calls", fontsize=10, va="top")
        left.set(xlabel="coordinate i", title="the solution of the chain decays like q^i")
        left.legend(loc="lower left")
        right.semilogy(
            rounds,
            beyond,
            color="black",
            lw=1.8,
            label=reach,
        )
        right.semilogy(np.arange(len(done)), done, color=GREEN, lw=1.8, ls="-.", label="LPD-GS")
        right.set(xlabel="rounds of all four oracles", ylabel="distance, relative to the start", ylim=(1e-7, 2))
        right.set_title(f"kx = ky = 100, c = 50: N = {theory.chain_N(kx, ky, c):.0f}")
        right.legend()
        keep(figure, path)


PICTURES = {
    "field.png": field,
    "two-steps.png": two_steps,
    "paths.png": paths,
    "catalyst.png": catalyst,
    "one-pass.png": one_pass,
    "lower-bound.png": lower,
}


def main(folder=HERE):
    """Draw all pictures."""
    for name, draw in PICTURES.items():
        draw(Path(folder) / name)


if __name__ == "__main__":
    main(*sys.argv[1:])
