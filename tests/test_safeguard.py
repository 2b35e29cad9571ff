"""The safeguard of Anderson acceleration: the residual halves within the proven number of steps, whatever is mixed."""

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.ground.states import arrays, with_arrays
from saddlepoint.methods.wrappers.flat import joined
from saddlepoint.methods.wrappers.latest import Latest
from saddlepoint.theory import anderson_halving_steps

SIZE = 6


class Growing(sp.Method):
    """z -> M z, where M is a contraction that lets vectors grow for some steps first."""

    M = 0.6 * np.eye(2 * SIZE) + np.diag(np.full(2 * SIZE - 1, 0.5), 1)

    def init(self, f, x, y):
        return sp.State(x, y)

    def step(self, f, s):
        z = self.M @ np.concatenate([s.x, s.y])
        return sp.State(z[:SIZE], z[SIZE:])


def halving():
    """The steps in which r(M^j z) = M^j r(z) is half as long, wherever it begins."""
    j, power = 1, Growing.M
    while np.linalg.norm(power, 2) > 0.5:
        j, power = j + 1, power @ Growing.M
    return j


def problem(term):
    """A problem with mu = 1, so that lengths are Euclidean; with a term, the memory is another one."""
    g = sp.Quadratic(1.0) + sp.Box(-1e30, 1e30) if term else sp.Quadratic(1.0)
    return sp.Saddle(g, sp.Quadratic(1.0), np.eye(SIZE))


class Hostile(sp.Anderson):
    """Acceleration whose mixed points are worthless: the same point again, or points far away, or both at random."""

    kind = "same"
    rng = np.random.default_rng(7)

    def combined(self, f, s, after, r, size, seen, output):
        z, memory = super().combined(f, s, after, r, size, seen, output)
        if s.plain == 0:
            far = self.kind == "far" or (self.kind == "random" and self.rng.random() < 0.3)
            noise = 10.0 ** self.rng.uniform(-8, 8) if far else 0.0
            z = with_arrays(z, [v + noise * self.rng.standard_normal(SIZE) for v in arrays(s.inner)])
            if isinstance(memory, Latest):
                memory = memory.moved(joined(z, s.weights))
        return z, memory


@pytest.mark.parametrize("kind", ["same", "far", "random"])
@pytest.mark.parametrize("term", [False, True])
@pytest.mark.parametrize("limit", [0, 3])  # of the memory: with one, the columns of a QR factorisation are kept
def test_the_residual_halves_in_time_whatever_the_mixing_does(kind, term, limit, monkeypatch):
    N, window = halving(), 1
    assert N > 16
    most = anderson_halving_steps(window, N)
    monkeypatch.setattr(Hostile, "kind", kind)
    f, method = problem(term), Hostile(Growing(), window, limit)
    s = method.init(f, np.ones(SIZE), np.ones(SIZE))
    s = method.step(f, s)
    longest = waited = 0
    half, start = 0.5 * s.smallest, s.smallest
    while s.smallest > 1e-6 * start:
        s = method.step(f, s)
        waited += 1
        assert waited <= most
        if s.smallest <= half:
            longest, waited, half = max(longest, waited), 0, 0.5 * s.smallest
    if kind == "same":
        assert longest > 0.5 * most  # the bound is not far from what can happen


def test_a_method_that_halves_in_one_step_has_the_shortest_wait():
    assert anderson_halving_steps(1, 1) == 44 + 1 + 0 + 1
    found = [anderson_halving_steps(10, N) for N in range(1, 70)]
    assert found == sorted(found)
    assert anderson_halving_steps(10, 64) < anderson_halving_steps(10, 65)
