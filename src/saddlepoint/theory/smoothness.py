"""Lemmas on one smooth and strongly convex function."""

from __future__ import annotations


def smooth_lemma(inner: float, dx2: float, dg2: float, mu: float, L: float) -> float:
    """Lemma `smooth`: the slack of <dg, dx> >= L mu/(L + mu) |dx|^2 + |dg|^2/(L + mu), which is never negative.

    Args:
        inner: <dg, dx> for two points that differ by dx and gradients that differ by dg.
        dx2, dg2: |dx|^2 and |dg|^2.
    """
    return inner - (L * mu * dx2 + dg2) / (L + mu)


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
