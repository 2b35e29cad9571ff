"""Smooth terms as functions of the variables that they tie together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack, issparse
from scipy.sparse.linalg import LinearOperator

from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.definite import ALL_EIGENVALUES, eigenvalue_ends
from saddlepoint.ground.definite_factors import IndefiniteError, TooLargeError
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.gershgorin import UNIT
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.spectrum import largest_eigenvalue
from saddlepoint.parts.functions import Entropy, Huber, LeastSquares, LogCosh, LogSumExp, Quadratic
from saddlepoint.parts.functions.accuracy import require_L
from saddlepoint.parts.functions.affine import affine
from saddlepoint.parts.functions.block_sum import block_sum
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.functions.softplus import Softplus
from saddlepoint.parts.functions.zero import Zero
from saddlepoint.uses.model.expressions import Affine, Variable
from saddlepoint.uses.model.maps import is_identity
from saddlepoint.uses.model.terms import Term

SMOOTH = ("sum_squares", "quad_form", "logistic", "huber", "log_cosh", "log_sum_exp", "negative_entropy", "function")


def tied_function(terms: Sequence[Term], linear: Array, variables: Sequence[Variable]) -> Smooth:
    """The sum of |factor| times each term and of a linear function, of the variables one after the other.

    Its mu is the sum of the mu of the terms; where that is zero, the smallest eigenvalue of the sum of their quadratic
    parts is proven instead.
    """
    total: Smooth | None = None
    for term in terms:
        try:
            f = _function(term, variables)
        except ProblemError as error:
            raise ProblemError(f"the term {term.text} is not of the class: {error}") from None
        total = f if total is None else total + f
    if linear.any():
        total = Quadratic(0.0, linear) if total is None else total + Quadratic(0.0, linear)
    if total is None:
        return Zero()
    if not total.mu > 0.0:
        mu = max(_joint_curvature(terms, variables), 0.0)
        total = total.replace(mu=mu, L=max(total.L, mu), trusted=total.trusted)
    return total


def _function(term: Term, variables: Sequence[Variable]) -> Smooth:
    e, c = term.of.ravel(), abs(term.factor)
    (variable, M) = next(iter(e.maps.items()))
    if len(e.maps) == 1 and is_identity(M):
        f = _of_variable(term, c, e.constant)
        if len(variables) == 1:
            return f
        parts = [f if v is variable else Zero() for v in variables]
        return block_sum(parts, [v.size for v in variables])
    return _of_map(term, c, joined(e, variables), e.constant)


def _of_variable(term: Term, c: float, constant: Array) -> Smooth:
    """The term as a function of a whole variable plus a constant."""
    t, data = (-constant if constant.any() else None), term.data
    if term.kind == "sum_squares":
        return _times(c, Quadratic(2.0, None if t is None else -2.0 * t))
    if term.kind == "quad_form":
        q = _quadratic(data["P"])
        return _times(c, _times(2.0, q)) + _zero_or_linear(None if t is None else -2.0 * c * (data["P"] @ t))
    if term.kind == "function":
        return _times(c, data["f"] if t is None else affine(data["f"], shift=constant))
    if term.kind == "negative_entropy":
        if t is not None:
            raise ProblemError("the entropy is taken of whole variables only; expected entropy(x) with a variable x")
        return _times(c, Entropy(data["low"], data["high"]))
    if term.kind == "huber":
        return _times(c, Huber(None, t, delta=data["delta"]))
    makers = {"logistic": Softplus, "log_cosh": LogCosh, "log_sum_exp": LogSumExp}
    return _times(c, makers[term.kind](None, t))


def _of_map(term: Term, c: float, D: Any, constant: Array) -> Smooth:
    """The term as a function of D x plus a constant."""
    t, rows, data = -constant, D.shape[0], term.data
    if term.kind == "quad_form":
        P = data["P"]
        product = D.T @ (P @ D)
        product = 0.5 * (product + product.T)
        q = _times(c, _times(2.0, _quadratic(csr_array(product) if issparse(product) else np.asarray(product))))
        return q + _zero_or_linear(2.0 * c * np.asarray(D.T @ (P @ constant)) if constant.any() else None)
    if term.kind == "negative_entropy":
        raise ProblemError("the entropy is taken of whole variables only; expected entropy(x) with a variable x")
    if term.kind == "function" or isinstance(D, LinearOperator):
        return _times(c, composed(_of_variable(term, 1.0, constant), D))
    if term.kind == "log_sum_exp":
        return _times(c, LogSumExp(D, t))
    if term.kind == "huber":
        return _times(c * rows, Huber(D, t, delta=data["delta"]))
    if term.kind == "sum_squares":
        return _times(2.0 * c * rows, LeastSquares(D, t))
    makers = {"logistic": Softplus, "log_cosh": LogCosh}
    return _times(c * rows, makers[term.kind](D, t))


def composed(f: Smooth, D: Any) -> Smooth:
    """The function x -> f(D x). Its L is that of f times a bound on |D|^2, and nothing is known of its curvature.

    The errors of the gradient of f are multiplied by |D| at most; those of products with D are not known.
    """
    n = int(D.shape[1])
    require_L(f)
    top = largest_eigenvalue(lambda x: np.asarray(D.T @ (D @ x)), n).upper
    value = f.value

    def errors(x: Array) -> Array:
        z = np.asarray(D @ x)
        return np.full(n, math.sqrt(top / n) * f.gradient_error(z, f.grad(z)))  # a vector of the length of the bound

    return Smooth(
        lambda x: np.asarray(D.T @ f.grad(np.asarray(D @ x))),
        mu=0.0,
        L=None if math.isnan(f.L) else f.L * top,
        value=None if value is None else lambda x: value(np.asarray(D @ x)),
        dim=n,
        trusted=f.trusted,
        rounding=None if math.isnan(f.accuracy) and f.rounding is None else errors,
    )


def joined(e: Affine, variables: Sequence[Variable]) -> Any:
    """The map of the expression from all the variables one after the other; sparse if all its parts are."""
    parts = [e.maps[v] if v in e.maps else csr_array((e.size, v.size)) for v in variables]
    if any(isinstance(part, LinearOperator) for part in parts):
        if len(parts) > 1:
            raise ProblemError("an operator acts on one of several variables of the term; expected matrices there")
        return parts[0]
    if len(parts) == 1:
        return parts[0]
    if all(issparse(part) for part in parts):
        return csr_array(hstack(parts))
    return np.hstack([dense(part) for part in parts])


def _joint_curvature(terms: Sequence[Term], variables: Sequence[Variable]) -> float:
    """A proven lower bound of the smallest eigenvalue of the sum of the quadratic parts of the terms.

    An entry of the sum is wrong by at most gamma sqrt(H_ii H_jj), because all parts are positive semidefinite.
    """
    n = sum(v.size for v in variables)
    H: Any = None
    roundings = 4
    for term in terms:
        e, c = term.of.ravel(), abs(term.factor)
        if any(isinstance(M, LinearOperator) for M in e.maps.values()):
            continue
        if term.kind in ("sum_squares", "quad_form"):
            D = joined(e, variables)
            part = D.T @ D if term.kind == "sum_squares" else D.T @ (term.data["P"] @ D)
            roundings += 2 * D.shape[0] + 4
        elif term.kind in ("negative_entropy", "function") and e.bare is not None:
            f = Entropy(term.data["low"], term.data["high"]) if term.kind == "negative_entropy" else term.data["f"]
            own = [max(f.mu, 0.0) if v in e.maps else 0.0 for v in variables]
            part = diags_array(np.repeat(own, [v.size for v in variables]), format="csr")
        else:
            continue
        weighted = (2.0 * c if term.kind in ("sum_squares", "quad_form") else c) * part
        H = weighted if H is None else H + weighted
    if H is None or (n > ALL_EIGENVALUES and not issparse(H)):
        return 0.0
    H = csr_array(H) if issparse(H) else np.asarray(H)
    if issparse(H) and n <= ALL_EIGENVALUES:
        H = H.toarray()
    growth = gamma(roundings, UNIT)
    try:
        return float(eigenvalue_ends(H, 2.0 * growth * n * np.asarray(H.diagonal())).low)
    except (IndefiniteError, TooLargeError):
        return 0.0


def _quadratic(P: Any) -> Quadratic:
    """Half the quadratic form of P; a P whose smallest eigenvalue cannot be told from zero is taken to have mu = 0."""
    q = Quadratic(P)
    return q if q.mu >= 0.0 else Quadratic(P, mu=0.0, L=q.L)


def _times(c: float, f: Smooth) -> Smooth:
    return f if c == 1.0 else c * f


def _zero_or_linear(b: Array | None) -> Smooth:
    return Zero() if b is None else Quadratic(0.0, b)
