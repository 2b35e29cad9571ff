"""A that is known only by its products: a SciPy LinearOperator, or any object with ``@`` and ``.T``."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.parts.coupling.adjoint import ADJOINT, PRODUCTS, wrong_transpose
from saddlepoint.parts.coupling.base import Coupling


class OperatorCoupling(Coupling):
    """Products by ``A @ y`` and ``A.T @ x``."""

    def __init__(self, A: Any, At: Any = None) -> None:
        self.A = A
        self.At = A.T if At is None else At
        self.shape = (int(A.shape[0]), int(A.shape[1]))
        declared = getattr(A, "dtype", None)
        self.dtype = np.dtype(np.float32 if declared == np.float32 else np.float64)

    def mul(self, y: Array) -> Array:
        """A y."""
        return _own(np.asarray(self.A @ y))

    def tmul(self, x: Array) -> Array:
        """A' x."""
        return _own(np.asarray(self.At @ x))

    def _transpose(self) -> Coupling:
        transpose = OperatorCoupling(self.At, self.A)
        transpose.probes = self.probes
        return transpose

    def probe(self) -> None:
        """Raise a ProblemError if products have the wrong shape, or if ``.T`` is not the transpose."""
        m, n = self.shape
        rng = np.random.default_rng(0)
        x, y = (rng.standard_normal(k).astype(self.dtype) for k in (m, n))
        try:
            Ay, Atx = self.mul(y), self.tmul(x)
        except NotImplementedError:
            raise ProblemError("A has no product with its transpose; give the LinearOperator an rmatvec") from None
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise ProblemError(
                f"a product with A fails ({reason}); expected A @ y of {n} and A.T @ x of {m} numbers to be arrays"
            ) from error
        for name, product, size in (("A @ y", Ay, m), ("A.T @ x", Atx, n)):
            if product.shape != (size,):
                raise ProblemError(f"{name} has shape {product.shape}; expected ({size},), since A is {m} x {n}")
            if product.dtype.kind != "f" or not np.isfinite(product).all():
                raise ProblemError(f"{name} is not a vector of finite real numbers")
        self.probes = 1
        length = norm(x) * norm(Ay) + norm(Atx) * norm(y)
        if abs(inner(x, Ay) - inner(Atx, y)) > ADJOINT * float(np.finfo(self.dtype).eps) * length:
            self.probes += PRODUCTS
            wrong = wrong_transpose(self.mul, self.tmul, y, Ay, x, Atx)
            if wrong:
                raise ProblemError(wrong)


def _own(product: Array) -> Array:
    """The product; a copy if it is a view, because the operator may write into the array that is seen in it again."""
    return product if product.base is None else product.copy()
