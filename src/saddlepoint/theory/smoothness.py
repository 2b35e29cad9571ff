"""Lemmas on one smooth and strongly convex function."""

from __future__ import annotations


def smooth_lemma(inner: float, dx2: float, dg2: float, mu: float, L: float) -> float:
    """Lemma `smooth`: the slack of <dg, dx> >= L mu/(L + mu) |dx|^2 + |dg|^2/(L + mu), which is never negative.

    Args:
        inner: <dg, dx> for two points that differ by dx and gradients that differ by dg.
        dx2, dg2: |dx|^2 and |dg|^2.
    """
    return inner - (L * mu * dx2 + dg2) / (L + mu)


def least_error(off: float, length: float, mu: float, L: float) -> float:
    """The least |e| for which dg - e satisfies Lemma `smooth`; 0 if dg itself does.

    The lemma says that dg lies in the ball around (L + mu)/2 dx with the radius (L - mu)/2 |dx|. This is the distance
    of dg from the ball: one of the two gradients is wrong by at least half of it, unless mu or L is wrong.

    Args:
        off: |dg - (L + mu)/2 dx|.
        length: |dx|.
    """
    return max(off - 0.5 * (L - mu) * length, 0.0)


def circulation_bound(slack: float, mu: float, L: float) -> float:
    """The largest |sum of <(p_i + p_j)/2, x_j - x_i>| over the sides (i, j) of a closed polygon x_1, ..., x_N, x_1.

    The p_i are gradients of one mu-strongly convex and L-smooth function. Its values satisfy
    f_j >= f_i + <p_i, x_j - x_i> + q_ij, with q_ij >= 0 from Theorem 4 of A. Taylor, J. Hendrickx and F. Glineur
    (Smooth strongly convex interpolation and exact worst-case performance of first-order methods, Math. Program. 2017).
    Around the polygon, in either direction, the values cancel. What is left is this bound; ``slack`` is the slack of
    ``smooth_lemma``, summed over the sides.
    """
    return 0.0 if mu >= L else 0.5 * (L + mu) / (L - mu) * slack


def observed_mu(inner: float, dx2: float, dg2: float, L: float) -> float:
    """The largest mu that Lemma `smooth` allows for this pair when L is right."""
    return (L * inner - dg2) / (L * dx2 - inner)


def observed_L(inner: float, dx2: float, dg2: float, mu: float) -> float:
    """The smallest L that Lemma `smooth` allows for this pair when mu is right."""
    return (dg2 - mu * inner) / (inner - mu * dx2)


def prox_lipschitz(mu: float, t: float) -> float:
    """Lemma `prox:Lipschitz`, sharpened: prox_{t f} of a mu-strongly convex f shrinks distances by this factor.

    The paper's lemma is the case mu = 0.
    """
    return 1.0 / (1.0 + t * mu)
