"""Reference solutions, by dense Hessians and a damped Newton method on the whole system."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

import saddlepoint as sp
from saddlepoint.parts.coupling import DenseCoupling, SparseCoupling
from saddlepoint.parts.functions.group import GroupHuberConjugate


def dense(A):
    if isinstance(A, DenseCoupling):
        return np.asarray(A.A, dtype=float)
    if isinstance(A, SparseCoupling):
        return A.A.toarray().astype(float)
    return np.stack([A.mul(e) for e in np.eye(A.shape[1])], axis=1)


def hessian(f: sp.Smooth, x: np.ndarray) -> np.ndarray:
    n = x.size
    if isinstance(f, sp.Quadratic):
        if isinstance(f.P, float):
            return f.P * np.eye(n)
        return np.diag(f.P) if isinstance(f.P, np.ndarray) else dense(f.P)
    if isinstance(f, sp.LogSumExp):
        D = np.eye(n) if f.D is None else dense(f.D)
        s = (D @ x - (0 if f.t is None else f.t)) / f.tau
        p = np.exp(s - s.max())
        p /= p.sum()
        return D.T @ (np.diag(p) - np.outer(p, p)) @ D / f.tau + f.l2 * np.eye(n)
    if isinstance(f, sp.Entropy):
        return np.diag(1.0 / np.clip(x, f.low, f.high))
    if isinstance(f, sp.GroupHuber):
        weight, width = f.weight, f.width
        return radial_hessian(x, f.labels, lambda r: weight * min(r / width, 1) + f.l2 * r,
                              lambda r: weight / width * (r <= width) + f.l2)  # fmt: skip
    if isinstance(f, GroupHuberConjugate):
        return np.linalg.inv(hessian(f.of, f.grad(x)))
    D = np.eye(n) if f.D is None else dense(f.D)
    weight = 1.0 if f.D is None else 1.0 / D.shape[0]
    r = D @ x - (0 if f.t is None else f.t)
    curvature = {
        sp.LeastSquares: lambda: np.ones_like(r),
        sp.Logistic: lambda: expit(r) * expit(-r),
        sp.LogCosh: lambda: 1 - np.tanh(r) ** 2,
        sp.Huber: lambda: (np.abs(r) <= f.delta).astype(float),
        sp.SmoothedHinge: lambda: (np.abs(1 - f.labels * r - f.width / 2) <= f.width / 2) / f.width,
    }[type(f)]()
    return weight * (D.T * curvature) @ D + f.l2 * np.eye(n)


def radial_hessian(x, labels, slope, curvature):
    """The Hessian of sum_G phi(|x_G|): along x_G it is the curvature of phi, and across x_G it is phi'(r)/r."""
    labels = np.zeros(x.size, dtype=int) if labels is None else labels
    H = np.zeros((x.size, x.size))
    for group in np.unique(labels):
        (inside,) = np.nonzero(labels == group)
        r = np.linalg.norm(x[inside])
        along = np.outer(x[inside], x[inside]) / r**2 if r > 0 else 0.0
        across = slope(r) / r if r > 0 else curvature(0.0)
        H[np.ix_(inside, inside)] = across * (np.eye(inside.size) - along) + curvature(r) * along
    return H


def saddle_point(f: sp.Saddle) -> tuple[np.ndarray, np.ndarray]:
    """(x*, y*) to rounding, by damped Newton steps on F = 0."""
    m, n = f.shape
    A = dense(f.A)
    x, y = np.zeros(m), np.zeros(n)
    field = np.concatenate(f.field(x, y))
    for _ in range(200):
        J = np.block([[hessian(f.g, x), A], [-A.T, hessian(f.h, y)]])
        step = np.linalg.solve(J, field)
        t = 1.0
        while t > 1e-10:
            new = np.concatenate(f.field(x - t * step[:m], y - t * step[m:]))
            if np.linalg.norm(new) < np.linalg.norm(field):
                break
            t /= 2
        else:
            break
        x, y, field = x - t * step[:m], y - t * step[m:], new
    return x, y


def distance(x, y, xs, ys) -> float:
    return float(np.linalg.norm(x - xs) + np.linalg.norm(y - ys))


def squared(x, y, xs, ys) -> float:
    return float(np.sum((x - xs) ** 2) + np.sum((y - ys) ** 2))


def check_solves(f, xs, ys, method, tol=1e-8):
    """The method solves the problem, with a certificate that is true, and leaves the start as it was."""
    x0, y0 = np.full(f.shape[0], 0.1), np.full(f.shape[1], -0.2)
    kept = x0.copy(), y0.copy()
    result = sp.solve(f, x0, y0, method=method, tol=tol)
    assert result.solved, result
    assert result.certificate.distance <= tol
    assert distance(result.x, result.y, xs, ys) <= result.certificate.distance
    np.testing.assert_array_equal(x0, kept[0])
    np.testing.assert_array_equal(y0, kept[1])
    return result
