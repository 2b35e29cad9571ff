"""A that is known only by its products: a SciPy LinearOperator, or any object with ``@`` and ``.T``."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.validation import refuse_masked
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
        return _own(self.A @ y, "A @ y")

    def tmul(self, x: Array) -> Array:
        """A' x."""
        return _own(self.At @ x, "A.T @ x")

    def _transpose(self) -> Coupling:
        transpose = OperatorCoupling(self.At, self.A)
        transpose.probes = self.probes
        return transpose

    def probe(self) -> None:
        """Raise a ProblemError if products have the wrong shape, or if ``.T`` is not the transpose."""
        m, n = self.shape
        rng = np.random.default_rng(0)
        x, y = (rng.standard_normal(k).astype(self.dtype) for k in (m, n))
        given_x, given_y = x.copy(), y.copy()
        try:
            Ay, Atx = self.mul(given_y), self.tmul(given_x)
        except ProblemError:
            raise
        except NotImplementedError:
            raise ProblemError("A has no product with its transpose; give the LinearOperator an rmatvec") from None
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise ProblemError(
                f"a product with A fails ({reason}); expected A @ y of {n} and A.T @ x of {m} numbers to be arrays"
            ) from error
        for name, given, before in (("A @ y", given_y, y), ("A.T @ x", given_x, x)):
            if (given != before).any():
                raise ProblemError(f"{name} changed the array it was given; it must leave it alone: work on a copy")
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


def _own(answer: Any, name: str) -> Array:
    """The product; a copy if it is a view, because the operator may write into the array that is seen in it again."""
    refuse_masked(answer, name)
    product = np.asarray(answer)
    return product if product.base is None else product.copy()
