r"""How soon safeguarded Anderson acceleration halves its residual, whatever its mixing does.

Setting:    r(z) = T(z) - z, where T is a step of the wrapped method. From every state z, one of the first N further
            steps halves the residual: |r(T^j z)| <= |r(z)|/2 for some j <= N. A method that converges linearly has
            such an N: |r(T^j z)| <= C q^j |r(z)| with q < 1 gives the least N with C q^N <= 1/2.
Theorem:    Let W = 4 window + 40 and F = ceil(log2 N). After the first step, the smallest |r| of the accelerated
            method halves at least once in every M = W (2^(F+1) - 1) + 2^F + F + 1 steps.
Proof:      Let s be the smallest |r| so far, of a point z, and f the number of failures. Each new s either halves the
            last halved one, or is larger than half of it. Without a halving, a failure comes after at most W 2^f + 1
            steps; then 2^f plain steps from T(z) follow, in which nothing can fail, and f grows by one. They compute
            r(T^j z) for j = 1, ..., 2^f. If 2^f >= N, so from f = F on, one of these is at most s/2: a halving, which
            takes one from f again. By induction f is at most F after each halving, so that before the next one there
            is at most one failure for each f from 0 to F, and
            sum_f (W 2^f + 1) + 2^F = M.
"""

from __future__ import annotations


def anderson_halving_steps(window: int, halving: int) -> int:
    """The steps M in which Anderson's smallest residual halves, if ``halving`` = N steps of the method do so.

    Example:
        >>> from saddlepoint.theory import anderson_halving_steps
        >>> anderson_halving_steps(window=1, halving=1), anderson_halving_steps(window=40, halving=100)
        (46, 51136)
    """
    patience, failures = 4 * window + 40, (halving - 1).bit_length()
    return patience * ((2 << failures) - 1) + (1 << failures) + failures + 1
