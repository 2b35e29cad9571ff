r"""Penalties phi(K w) that express knowledge about the features; their prox is costly, their conjugate is not.

Squares:    phi(z) = strength/2 |z|^2, phi*(y) = |y|^2/(2 strength): mu_y = L_y = 1/strength.
            ``Graph`` is the case where K is the incidence matrix of a graph.
Norms:      phi(z) = strength sum_G huber(|z_G|) over groups G of rows, huber(r) = r^2/(2 width) for r <= width and
            r - width/2 beyond. Its conjugate is not smooth, so a part of the ridge term l2/2 |w|^2 is moved to it:
            l2/2 |w|^2 + phi(K w) = (l2/2 |w|^2 - s/2 |K w|^2) + (phi(K w) + s/2 |K w|^2),   s = l2 / (2 |K|_1 |K|_oo).
            The first bracket belongs to g and is l2/2-strongly convex, since |K|^2 <= |K|_1 |K|_oo; the second has a
            conjugate with mu_y = 1/(s + strength/width) and L_y = 1/s. This does not change the model.
            ``Groups`` is the case where K copies the features of each group.
Reference:  R. Ando and T. Zhang, Learning on graph with Laplacian regularization, NIPS 2006; R. Jenatton,
            J.-Y. Audibert and F. Bach, Structured variable selection with sparsity-inducing norms, JMLR 2011.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, eye_array, issparse
from sklearn.base import BaseEstimator

from saddlepoint.apps.data_errors import UP, CouplingWithError, with_error
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.directed import div_down
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.validation import in_floats, positive
from saddlepoint.parts.coupling import Coupling, as_coupling
from saddlepoint.parts.functions import GroupHuber, Quadratic, Smooth
from saddlepoint.parts.functions.given_constants import as_nonnegative
from saddlepoint.parts.simple import Box, GroupBalls, Simple


class Structure(BaseEstimator, ABC):  # type: ignore[misc]
    """A penalty phi(K w) on the weights w of the features.

    It has scikit-learn's ``get_params`` and ``set_params``, so that ``structure__strength`` can be searched over.
    """

    @abstractmethod
    def matrix(self, n_features: int) -> Any:
        """K, sparse, with a column for each feature."""

    @abstractmethod
    def split(self, K: Any, l2: float) -> tuple[Smooth, Smooth]:
        """The part of l2/2 |w|^2 that remains in g, and h: the conjugate of phi plus the part that was moved."""

    def coupling(self, K: Any) -> Coupling:
        """K', with bounds on what rounding changed in its entries when they were computed."""
        return as_coupling(K.T)


class Squares(Structure):
    """strength/2 |K w|^2.

    Args:
        K: a matrix, dense or sparse, with a column for each feature.
        strength: the factor of the squares.
    """

    def __init__(self, K: Any, strength: float = 1.0) -> None:
        self.K = K
        self.strength = strength

    def matrix(self, n_features: int) -> Any:
        """K as given."""
        return _as_matrix(self.K, n_features)

    def split(self, K: Any, l2: float) -> tuple[Smooth, Smooth]:
        """l2/2 |w|^2 and |y|^2/(2 strength)."""
        strength = positive(self.strength, "strength")
        rounded = Quadratic(1.0 / strength)
        h = with_error(rounded, lambda y: EPS / strength * np.abs(y), mu=div_down(1.0, strength), L=rounded.L)
        return Quadratic(l2), h


class Graph(Squares):
    """strength/2 sum over edges (i, j) of weight_ij (w_i - w_j)^2: neighbours get similar weights.

    Args:
        edges: pairs (i, j) of features, an array with two columns; or the symmetric adjacency matrix of the graph,
            SciPy sparse, with the weights as entries (its diagonal is ignored). Each occurrence of a pair has the
            weight 1.
        strength: the factor of the squares.
    """

    def __init__(self, edges: Any, strength: float = 1.0) -> None:
        self.edges = edges
        self.strength = strength

    def matrix(self, n_features: int) -> Any:
        """The incidence matrix: a row sqrt(weight_ij) (w_i - w_j) for each edge."""
        if issparse(self.edges):
            i, j, weight = _adjacent(self.edges, n_features)
        else:
            i, j = _pairs(self.edges, "edges of Graph", n_features)
            weight = np.ones(i.size)
        if not i.size:
            raise ProblemError("edges of Graph is empty; expected at least one edge, or structure=None")
        return _incidence(i, j, np.sqrt(weight), n_features)

    def coupling(self, K: Any) -> Coupling:
        """K', whose entries are square roots of weights, each of them rounded once."""
        return as_coupling(K.T) if (abs(K).data == 1.0).all() else CouplingWithError(as_coupling(K.T), EPS * abs(K).T)


class Norms(Structure):
    """strength sum_G huber(|(K w)_G|) over groups G of rows of K: a sum of norms, rounded within ``width`` of zero.

    Without labels each row is a group, and the penalty is a rounded strength |K w|_1. With differences as K this is
    total variation, and with second differences it is trend filtering.

    Args:
        K: a matrix, dense or sparse, with a column for each feature.
        strength: the factor of the norms.
        width: below this norm the penalty is quadratic; it is at most strength width/2 below the sum of norms for each
            group. 0 for norms as they are: then the distance of w is proven by the duality gap.
        labels: the group of each row of K, as any numbers; None makes each row a group.
    """

    def __init__(self, K: Any, strength: float = 1.0, width: float = 1e-2, labels: Any = None) -> None:
        self.K = K
        self.strength = strength
        self.width = width
        self.labels = labels

    def matrix(self, n_features: int) -> Any:
        """K as given."""
        return _as_matrix(self.K, n_features)

    def split(self, K: Any, l2: float) -> tuple[Smooth, Smooth]:
        """l2/2 |w|^2 - s/2 |K w|^2, and the conjugate of phi + s/2 |.|^2."""
        size = abs(K)
        bound = float(size.sum(axis=0).max()) * float(size.sum(axis=1).max())
        if bound == 0.0:
            raise ProblemError("K of the structure is zero; expected a nonzero matrix, or structure=None")
        s = 0.5 * l2 / bound  # any number is right if it is the same in both functions
        P = (l2 * eye_array(K.shape[1]) - s * (K.T @ K)).tocsr()  # the eigenvalues are l2/2 at least, up to rounding
        ridge = Quadratic(P, mu=(0.5 - 4.0 * gamma(sum(K.shape) + 8, EPS)) * l2, L=l2).replace(trusted=True)
        terms = int(np.bincount(K.indices).max(initial=0))
        off = UP * gamma(terms + 3, EPS) * (s * (size.T @ size) + l2 * eye_array(K.shape[1]))
        ridge = with_error(ridge, lambda w: np.asarray(off @ np.abs(w)))
        strength, width = positive(self.strength, "strength"), positive(self.width, "width of the structure")
        return ridge, GroupHuber(self._row_labels(K.shape[0]), strength, width, s).conjugate()

    @property
    def is_exact(self) -> bool:
        """Whether the norms are not rounded, so that the conjugate is the constraint that y is in balls."""
        return as_nonnegative(self.width, "width of the structure") == 0.0

    def balls(self, K: Any) -> Simple:
        """The conjugate of exact norms: a ball of the radius ``strength`` for each group of rows of K."""
        strength, labels = positive(self.strength, "strength"), self._row_labels(K.shape[0])
        if np.unique(labels).size == len(labels):
            return Box(-strength, strength)
        return GroupBalls(labels, strength)

    def _row_labels(self, rows: int) -> Any:
        if self.labels is None:
            return np.arange(rows)
        if np.shape(self.labels) != (rows,):
            raise ProblemError(f"labels of Norms has shape {np.shape(self.labels)}; expected one for each row, {rows}")
        return self.labels


class Groups(Norms):
    """strength sum_G huber(|w_G|) over groups G of features, which may overlap.

    The features of a group are used or left out together.

    Args:
        groups: lists of features; a feature may be in several of them, or in none.
        strength: the factor of the norms.
        width: below this norm the penalty is quadratic; it is at most strength width/2 below the group lasso's for each
            group. 0 for norms as they are. If the groups do not overlap, ``groups=`` of the estimators is simpler and
            much faster.
    """

    def __init__(self, groups: Any, strength: float = 1.0, width: float = 1e-2) -> None:
        self.groups = groups
        self.strength = strength
        self.width = width

    def matrix(self, n_features: int) -> Any:
        """The features of the first group, then those of the second, and so on."""
        chosen = np.concatenate(self._indices(n_features))
        entries = (np.ones(chosen.size), (np.arange(chosen.size), chosen))
        return coo_array(entries, shape=(chosen.size, n_features)).tocsr()

    def _indices(self, n_features: int) -> list[Array]:
        found: list[Array] = []
        if not np.iterable(self.groups):
            raise ProblemError(f"groups of Groups is {self.groups!r}; expected lists of features")
        for number, group in enumerate(self.groups):
            indices = _features(group, f"group {number} of Groups", n_features)
            if indices.ndim != 1 or not indices.size:
                raise ProblemError(f"group {number} of Groups is {group!r}; expected a list of one feature or more")
            if np.unique(indices).size < indices.size:
                raise ProblemError(f"group {number} of Groups names a feature twice; expected each once")
            found.append(indices)
        if not found:
            raise ProblemError("groups of Groups is empty; expected one list of features at least, or structure=None")
        return found

    def _row_labels(self, rows: int) -> Any:
        sizes = [len(group) for group in self.groups]
        return np.repeat(np.arange(len(sizes)), sizes)


class Fused(Norms):
    """strength sum over edges (i, j) of |w_i - w_j|, exactly: neighbours get equal weights. This is the fused lasso.

    Args:
        strength: the factor of the sum.
        edges: pairs (i, j) of features, an array with two columns; None for each feature and the next one.
    """

    def __init__(self, strength: float = 1.0, edges: Any = None) -> None:
        self.strength = strength
        self.edges = edges

    width = 0.0
    labels = None

    def matrix(self, n_features: int) -> Any:
        """The differences along the edges."""
        features = np.arange(n_features)
        edges = np.stack((features[:-1], features[1:]), axis=1) if self.edges is None else self.edges
        i, j = _pairs(edges, "edges of Fused", n_features)
        if not i.size:
            raise ProblemError("Fused has no edges; expected at least one pair of features, or structure=None")
        return _incidence(i, j, np.ones(i.size), n_features)


def disjoint_groups(groups: Any, n_features: int) -> list[list[int]]:
    """Lists of features without common ones, from such lists or from a label for each feature."""
    if not np.iterable(groups) or isinstance(groups, str):
        raise ProblemError(f"groups is {groups!r}; expected a label for each feature, or lists of features")
    parts = list(groups)
    if not any(np.iterable(part) and not isinstance(part, str) for part in parts):
        if len(parts) != n_features:
            raise ProblemError(f"groups has {len(parts)} labels; expected one for each of the {n_features} features")
        labels = np.asarray(parts)
        return [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)]
    seen = np.full(n_features, -1)
    found = []
    for number, part in enumerate(parts):
        indices = _features(part, f"group {number} of groups", n_features)
        if indices.ndim != 1 or not indices.size:
            raise ProblemError(f"group {number} of groups is {part!r}; expected a list of one feature or more")
        taken = indices[seen[indices] >= 0]
        if taken.size or np.unique(indices).size < indices.size:
            other = f"groups {seen[taken[0]]} and {number}" if taken.size else f"group {number} twice"
            raise ProblemError(
                f"a feature is in {other}; expected groups without common features. For groups that overlap, use "
                "structure=Groups(groups, strength, width=0)"
            )
        seen[indices] = number
        found.append(indices.tolist())
    if not found:
        raise ProblemError("groups is empty; expected one list of features at least, or groups=None")
    return found


def _as_matrix(K: Any, n_features: int) -> Any:
    """K as a sparse array of float64, with a column for each feature."""
    matrix = csr_array(as_coupling(K, "K of the structure").matrix()).astype(np.float64)
    if matrix.shape[1] != n_features:
        raise ProblemError(
            f"K of the structure has {matrix.shape[1]} columns; expected one for each feature, {n_features}"
        )
    return matrix


def _features(indices: Any, name: str, n_features: int) -> Array:
    """Numbers of features, checked."""
    try:
        array = np.asarray(indices)
    except ValueError:
        raise ProblemError(f"{name} is {indices!r}; expected an array of features") from None
    if array.size and array.dtype.kind not in "iu":
        raise ProblemError(f"{name} holds {array.dtype}; expected the numbers of features, which are integers")
    if array.size and not (array.min() >= 0 and array.max() < n_features):
        odd = array[(array < 0) | (array >= n_features)].flat[0]
        raise ProblemError(f"{name} holds {odd}; expected features from 0 to {n_features - 1}")
    return array


def _incidence(i: Array, j: Array, weights: Array, n_features: int) -> Any:
    """A matrix with a row weight (w_i - w_j) for each edge (i, j)."""
    rows = np.arange(i.size)
    entries = (np.concatenate((weights, -weights)), (np.concatenate((rows, rows)), np.concatenate((i, j))))
    return coo_array(entries, shape=(i.size, n_features)).tocsr()


def _pairs(edges: Any, name: str, n_features: int) -> tuple[Array, Array]:
    """The first and the second features of edges that were given as pairs."""
    pairs = _features(edges, name, n_features)
    if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2):
        also = ", or an adjacency matrix that is SciPy sparse" if name == "edges of Graph" else ""
        raise ProblemError(f"{name} has shape {pairs.shape}; expected two columns{also}")
    i, j = pairs.reshape(-1, 2).T
    return i, j


def _adjacent(adjacency: Any, n_features: int) -> tuple[Array, Array, Array]:
    """The first and the second features and the weights of the edges of an adjacency matrix."""
    if adjacency.shape != (n_features, n_features):
        raise ProblemError(
            f"edges of Graph is an adjacency matrix of shape {adjacency.shape}; "
            f"expected a row and a column for each of the {n_features} features"
        )
    weights = csr_array(in_floats(adjacency)).astype(np.float64)
    if not np.isfinite(weights.data).all() or (weights.data < 0.0).any():
        raise ProblemError("edges of Graph holds a weight that is negative or not finite; expected numbers >= 0")
    if (weights != weights.T).nnz:
        raise ProblemError("edges of Graph is not symmetric; use edges.maximum(edges.T)")
    upper = weights.tocoo()
    edge = (upper.row < upper.col) & (upper.data > 0.0)
    return upper.row[edge], upper.col[edge], upper.data[edge]
