"""What the theorems of aGRAAL and rAPD say about each step of a run, beside what the step has done."""

import numpy as np

import saddlepoint as sp
from saddlepoint import theory


def lengths(f, xs, ys):
    """The squared length in which the field is 1-strongly monotone, of (dx, dy) and of the error of (x, y)."""

    def length(dx, dy):
        return float(f.mu_x * np.sum(dx**2) + f.mu_y * np.sum(dy**2))

    return length, lambda x, y: length(x - xs, y - ys)


def agraal_energies(f, xs, ys, x, y, steps):
    """The energy after each step, and the largest that the theorem allows."""
    length, error = lengths(f, xs, ys)
    s = sp.AGRAAL().init(f, x, y)
    for _ in range(steps):
        last, s = s, sp.AGRAAL().step(f, s)
        energy = theory.agraal_energy(last.t, error(s.bx, s.by), length(last.x - last.px, last.y - last.py))
        fall = theory.agraal_decrease(s.s, s.t, error(last.x, last.y), length(last.x - s.bx, last.y - s.by))
        next_average = error(s.x / 3.0 + s.bx / 1.5, s.y / 3.0 + s.by / 1.5)
        yield theory.agraal_energy(s.t, next_average, length(s.x - last.x, s.y - last.y)), energy - fall


def rapd_errors(f, xs, ys, x, y, steps):
    """The error after each step, its bound, and the residuals of the last two epochs where a new one begins."""
    _, error = lengths(f, xs, ys)
    method = sp.Restarted(sp.APD())
    s, farthest = method.init(f, x, y), error(x, y)
    for _ in range(steps):
        last, s = s, method.step(f, s)
        bound = theory.apd_bound(max(f.kappa_x, f.kappa_y), f.coupling, last.k + 1) * farthest
        restarts = s.k == 0
        yield error(s.x, s.y), bound, (last.residual, s.residual) if restarts else None
        farthest = max(0.0 if restarts else farthest, error(s.inner.zx, s.inner.zy))
