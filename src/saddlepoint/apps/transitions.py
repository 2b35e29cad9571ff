"""Checks of the transitions, models and policies that a caller gave, and their conversion to one form."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_float_array, as_vector, finite, in_floats, short_repr

SUM_ERROR = 1e-8  # |sum - 1| up to which the entries of a row count as probabilities


def transition_table(env: Any, policy: Any) -> tuple[Any, Array, list[int]]:
    """The transition matrix, the expected rewards and the terminal states of ``env.unwrapped.P``.

    Probabilities and rewards are added up as fractions, so that each number that is returned is rounded once. The
    uniform policy, which stands for None, is exact.
    """
    table = getattr(getattr(env, "unwrapped", env), "P", None)
    if not isinstance(table, dict):
        raise ProblemError(
            f"{env!r} has no transition table env.unwrapped.P; sample transitions and give them to PolicyEvaluation"
        )
    S, actions = len(table), len(table[0])
    if policy is not None:
        policy = as_matrix(policy, "policy")
        if policy.shape != (S, actions):
            raise ProblemError(f"policy has shape {policy.shape}; expected ({S}, {actions}), states by actions")
        check_distributions(policy, "policy")
    terminal, r = set(), [Fraction(0)] * S
    entries: dict[tuple[int, int], Fraction] = {}
    for s, choices in table.items():
        for a, outcomes in choices.items():
            choice = Fraction(1, actions) if policy is None else Fraction(float(policy[s, a]))
            for chance, after, reward, terminated in outcomes:
                share = choice * Fraction(float(chance))
                r[s] += share * Fraction(float(reward))
                entries[s, after] = entries.get((s, after), Fraction(0)) + share
                if terminated:
                    terminal.add(int(after))
    P = csr_array((list(map(float, entries.values())), tuple(zip(*entries, strict=True))), shape=(S, S))
    return P, np.array(list(map(float, r))), sorted(terminal)


def as_matrix(value: Any, name: str) -> Any:
    """A matrix of float64, dense or in compressed rows."""
    shape = value.shape if issparse(value) else as_float_array(value, name).shape
    if len(shape) != 2 or 0 in shape:
        raise ProblemError(f"{name} has shape {shape}; expected a matrix with at least one row and one column")
    if not issparse(value):
        return finite(as_float_array(value, name).astype(np.float64), name)
    matrix = csr_array(in_floats(value)).astype(np.float64)
    matrix.sum_duplicates()
    finite(matrix.data, f"the data of {name}")
    return matrix


def as_weights(value: Any, size: int, name: str) -> Array:
    """Weights >= 0 that sum to one; equal weights if None. Each of them has a relative error of a few units."""
    weights = np.ones(size) if value is None else as_vector(value, name, size).astype(np.float64)
    if weights.min() < 0.0 or weights.max() == 0.0:
        raise ProblemError(f"{name} are negative or all zero; expected numbers >= 0, at least one of them positive")
    return np.asarray(weights / math.fsum(weights))


def nonterminal_states(terminal: Any, S: int) -> Array:
    """True for the states that are not terminal."""
    listed = np.unique(as_float_array(terminal, "terminal"))
    if not np.isin(listed, np.arange(S)).all() or listed.size == S:
        raise ProblemError(f"terminal is {short_repr(terminal)}; expected some, not all, of the states 0 to {S - 1}")
    return ~np.isin(np.arange(S), listed)


def check_distributions(matrix: Any, name: str) -> None:
    """Refuse a matrix whose rows are not probabilities."""
    if matrix.min() < 0.0:
        raise ProblemError(f"{name} has a negative entry, {matrix.min():.3g}; expected probabilities")
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > SUM_ERROR:
        raise ProblemError(f"row {worst} of {name} sums to {sums[worst]:.9g}; expected 1")


def scaled_rows(matrix: Any, factors: Array, name: str = "") -> Any:
    """The matrix with each row multiplied by its factor."""
    if matrix.shape[0] != factors.shape[0]:
        raise ProblemError(f"{name} have {matrix.shape[0]} rows; expected {factors.shape[0]}, one for each state")
    return csr_array(diags_array(factors) @ matrix) if issparse(matrix) else factors[:, None] * matrix
