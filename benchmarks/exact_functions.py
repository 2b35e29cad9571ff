"""Functions of the package that are drawn, with their gradients and Hessians in many digits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from many_digits import digits, exp, identity, number, tanh

import saddlepoint as sp


class Function(ABC):
    """A function: ``f`` is that of the package.

    Args:
        n: the number of variables.
        rng: draws the data.
        dtype: of the data.
        scale: of the data.
    """

    f: sp.Smooth

    def __init__(self, n: int, rng: np.random.Generator, dtype: Any, scale: float) -> None:
        rows = int(rng.integers(1, 12))
        spread = 10.0 ** rng.uniform(-1.5, 1.5, n) if rng.random() < 0.3 else np.ones(n)
        self.D = (scale * spread * rng.standard_normal((rows, n))).astype(dtype)
        self.t = rng.standard_normal(rows).astype(dtype)
        self.l2 = float(np.float32(10.0 ** rng.uniform(-3.0, 0.5)))
        self.labels = np.sign(rng.standard_normal(rows)).astype(dtype)
        self.make(n, rng, dtype, scale)

    @abstractmethod
    def make(self, n: int, rng: np.random.Generator, dtype: Any, scale: float) -> None:
        """Set ``f``."""

    @abstractmethod
    def at(self, x: Any) -> tuple[Any, Any]:
        """The gradient and the Hessian at x."""

    def with_ridge(self, gradient: Any, hessian: Any, x: Any) -> tuple[Any, Any]:
        """The gradient and the Hessian after l2/2 |x|^2 is added."""
        l2 = number(self.l2)
        return gradient + l2 * x, hessian + l2 * identity(len(x))


class Quadratic(Function):
    """A quadratic function of a dense matrix."""

    def make(self, n: int, rng: np.random.Generator, dtype: Any, scale: float) -> None:
        """Half of P + P', where P = D'D + l2, and a linear term."""
        P = (self.D.T @ self.D + np.asarray(self.l2, dtype) * np.eye(n, dtype=dtype)).astype(dtype)
        P, b = 0.5 * (P + P.T), (scale * rng.standard_normal(n)).astype(dtype)
        self.P, self.b, self.f = digits(P), digits(b), sp.Quadratic(P, b)

    def at(self, x: Any) -> tuple[Any, Any]:
        """P x + b, and P."""
        return self.P @ x + self.b, self.P


class Own(Function):
    """A function that is given by its gradient and its second derivatives."""

    def make(self, n: int, rng: np.random.Generator, dtype: Any, scale: float) -> None:
        """The sum of l2/2 |x|^2 and the logarithms of the hyperbolic cosines of the entries."""
        c = np.asarray(self.l2, dtype)
        self.f = sp.Smooth(
            lambda x: c * x + np.tanh(x),
            mu=self.l2,
            L=1.0 + self.l2,
            hvp=lambda x, u: c * u + (1.0 - np.tanh(x) ** 2) * u,
            hessian_lipschitz=0.77,
            accuracy=1e-5 if dtype is np.float32 else 1e-14,
        )

    def at(self, x: Any) -> tuple[Any, Any]:
        """The gradient and the Hessian at x."""
        s = tanh(x)
        return self.with_ridge(s, (1 - s * s)[:, None] * identity(len(x)), x)


class LogSumExp(Function):
    """A smoothed maximum."""

    TAU = 0.5  # how smooth it is

    def make(self, n: int, rng: np.random.Generator, dtype: Any, scale: float) -> None:
        """TAU log sum_i exp((d_i'x - t_i)/TAU) + l2/2 |x|^2."""
        self.f = sp.LogSumExp(self.D, self.t, self.l2, tau=self.TAU)

    def at(self, x: Any) -> tuple[Any, Any]:
        """The gradient and the Hessian at x."""
        D, tau = digits(self.D), number(self.TAU)
        r = D @ x - digits(self.t)
        p = exp((r - max(r)) / tau)
        p = p / p.sum()
        mean = D.T @ p
        return self.with_ridge(mean, ((D.T * p) @ D - np.outer(mean, mean)) / tau, x)


class Loss(Function):
    """The mean of a loss of each row of D, and l2/2 |x|^2."""

    @abstractmethod
    def slopes(self, Dx: Any) -> tuple[Any, Any]:
        """The first and second derivatives of the losses."""

    def at(self, x: Any) -> tuple[Any, Any]:
        """The gradient and the Hessian at x."""
        D = digits(self.D)
        slope, curve = self.slopes(D @ x)
        return self.with_ridge(D.T @ slope / len(D), (D.T * curve) @ D / len(D), x)


class Logistic(Loss):
    """The logistic loss."""

    def make(self, n: int, rng: np.random.Generator, dtype: Any, scale: float) -> None:
        """Logistic regression."""
        self.f = sp.Logistic(self.D, self.labels, self.l2)

    def slopes(self, Dx: Any) -> tuple[Any, Any]:
        """Those of log(1 + exp(-label Dx))."""
        labels = digits(self.labels)
        s = 1 / (1 + exp(labels * Dx))
        return -labels * s, s * (1 - s)


class LogCosh(Loss):
    """The log-cosh loss."""

    def make(self, n: int, rng: np.random.Generator, dtype: Any, scale: float) -> None:
        """Regression with the log-cosh loss."""
        self.f = sp.LogCosh(self.D, self.t, self.l2)

    def slopes(self, Dx: Any) -> tuple[Any, Any]:
        """Those of log(cosh(Dx - t))."""
        slope = tanh(Dx - digits(self.t))
        return slope, 1 - slope * slope


FUNCTIONS: dict[str, type[Function]] = {
    "quadratic": Quadratic,
    "logistic": Logistic,
    "log-cosh": LogCosh,
    "log-sum-exp": LogSumExp,
    "own": Own,
}
