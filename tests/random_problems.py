"""Random problems with their saddle points, for tests that compare every step of a method with its bound."""

import math

import numpy as np
from hypothesis import strategies as st
from reference import saddle_point

import saddlepoint as sp
from saddlepoint.problems.generators import random_logistic, random_quadratic

ROUNDING = 1e-9  # relative to the bound at the start: the bounds are exact, the arithmetic is not


@st.composite
def saddles(draw, quadratic=None, prox=False, most=60.0):
    """A random problem, with its saddle point."""
    kappa = st.floats(1.0, most)
    m, n, seed = draw(st.integers(1, 7)), draw(st.integers(1, 7)), draw(st.integers(0, 10**6))
    kx, ky, c = draw(kappa), draw(kappa), draw(st.sampled_from([0.0, 0.01, 0.5, 2.0, 10.0, 40.0]))
    L_x, L_y = draw(st.sampled_from([1e-3, 1.0, 50.0])), draw(st.sampled_from([1e-2, 1.0, 1e3]))
    quadratic = draw(st.booleans()) if quadratic is None else quadratic
    if prox and not quadratic:
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((m, n))
        g, h = sp.LogCosh(t=3 * rng.standard_normal(m), l2=0.05), sp.Huber(t=rng.standard_normal(n), l2=0.2)
        f = sp.Saddle(g, h, A * (c * math.sqrt(g.mu * h.mu) / np.linalg.norm(A, 2)))
    else:
        make = random_quadratic if quadratic else random_logistic
        f = make(m, n, max(kx, 1.001), max(ky, 1.001), c, L_x=L_x, L_y=L_y, seed=seed)
    return (f, *saddle_point(f))


def in_normal_form(method, f, xs, ys):
    """The problem the method sees, its solution there, and a start."""
    view = method.normal_form(f)
    m, n = f.shape
    return view.problem, *view.to(xs, ys), *view.to(np.full(m, 0.3), np.full(n, -0.5))


def weighted_error(f, x, y, xs, ys):
    """mu_x |x - x*|^2 + mu_y |y - y*|^2."""
    return float(f.mu_x * np.sum((x - xs) ** 2) + f.mu_y * np.sum((y - ys) ** 2))
