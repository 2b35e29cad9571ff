r"""The lower bound: how many calls every first-order method needs on the hardest problem, a chain.

Problem:    with D the n x n difference matrix, D_ii = 1 and D_{i+1,i} = -1,
            g(x) = x'((L_x - mu_x)/4 D D' + mu_x)x/2 - x_1,   h(y) = y'((L_y - mu_y)/4 D'D + mu_y)y/2,   A = |A|/2 D.
Reach:      let a and b be the last coordinates at which any x and any y of the span of all answers so far differ from
            zero; a = b = 0 at the start. D D' and D'D are tridiagonal and D, D' bidiagonal, so one call gives at most
                grad g: a <- a + 1,               A y: a <- max(a, b + 1) if b > 0,
                grad h: b <- b + 1 if b > 0,      A'x: b <- max(b, a).
Bound:      the part of (x*, y*) beyond the reach is a distance that no combination of the answers can reduce; and
            |x*_i| and |y*_i| fall like q^i, q = 1 + s/2 - sqrt(s + s^2/4), s = 4/N^2,
            N = || [[c, sqrt(ky - 1)], [sqrt(kx - 1), 0]] ||_2,   kx = L_x/mu_x, ky = L_y/mu_y, c = |A|/sqrt(mu_x mu_y).
Reference:  J. Zhang, M. Hong and S. Zhang, On lower iteration complexity bounds for the convex concave saddle point
            problems, Mathematical Programming 2022; A. Ibrahim, W. Azizian, G. Gidel and I. Mitliagkas, Linear lower
            bounds and conditioning of differentiable games, ICML 2020.

A round calls each of the four oracles once. There are two models of a round. In the *simultaneous* model, that of the
literature, all four are called at points of the span as it was before the round, as when the field is evaluated; k
rounds reach coordinate k of x and k - 1 of y. In the *sequential* model each call may use the answer of the one before
it, as Gauss-Seidel methods do; grad g, A'x, grad h, A y in this order extend the reach of x by three coordinates, and
no order does better. So a method that interleaves its oracles needs at least a third of the rounds given below, and its
total number of calls of grad g, grad h and A y is at least the number of coordinates that it has to reach.
"""

from __future__ import annotations

import math

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.theory.counts import countable


def chain_N(kx: float, ky: float, c: float) -> float:
    """N, the larger singular value of [[c, sqrt(ky - 1)], [sqrt(kx - 1), 0]]: the condition number of the class.

    max(c, sqrt(kx - 1), sqrt(ky - 1)) <= N <= sqrt(kx - 1 + ky - 1 + c^2). Sum and difference of the singular values
    are computed as hypotenuses, so that nothing is squared which may overflow or cancel.
    """
    a, b = math.sqrt(kx - 1.0), math.sqrt(ky - 1.0)
    return 0.5 * math.hypot(c, a + b) + 0.5 * math.hypot(c, a - b)


def chain_q(N: float) -> float:
    """The factor q from one coordinate of the solution to the next: (N/(1 + sqrt(1 + N^2)))^2, about 1 - 2/N."""
    return (N / (1.0 + math.hypot(1.0, N))) ** 2


def forced_rounds(kx: float, ky: float, c: float, reduction: float) -> int:
    """The rounds without which no first-order method brings the distance to ``reduction`` times its start.

    It is the smallest k with q^k <= reduction, where log(1/q) = 2 asinh(1/N): about N/2 log(1/reduction). The number
    holds for the infinite chain and in the simultaneous model; the chain is hard for the player with the larger
    condition number. ``tail_rounds`` of a long chain differs from it by at most one round and N/6, however small the
    reduction is; the difference comes from the faster of the two modes of the solution, which adds to the first
    coordinates. A Gauss-Seidel method needs at least a third of the number, because a round of it reaches three times
    as far.
    """
    N = chain_N(kx, ky, c)
    if reduction >= 1.0:
        return 0
    if N == 0.0:
        return 1
    return max(1, math.ceil(countable(-math.log(reduction) / (2.0 * math.asinh(1.0 / N)))))


def rounds_reach(rounds: int) -> tuple[int, int]:
    """The coordinates of x and of y that can differ from zero after so many simultaneous rounds."""
    return rounds, max(rounds - 1, 0)


def calls_reach(grad_g: int, grad_h: int, A: int) -> int:
    """The coordinates that can differ from zero after so many calls in any order; A'x extends nothing."""
    return grad_g + grad_h + A


def tail_rounds(x_star: Array, y_star: Array, tol: float) -> int:
    """The least number of simultaneous rounds after which the solution beyond the reach has norm at most ``tol``.

    It is exact for a finite chain with kx > 1. At kx = 1 the gradient of g no longer extends the reach; the bound
    holds, but more rounds may be needed: twice as many if ky = 1 too.
    """
    n = max(x_star.size, y_star.size) + 2
    squares = np.zeros(n)  # squares[k]: squared norm of the coordinates that round k reaches first
    squares[1 : x_star.size + 1] += x_star * x_star
    squares[2 : y_star.size + 2] += y_star * y_star
    beyond = np.sqrt(np.cumsum(squares[::-1]))[::-1]  # beyond[k]: norm of what is out of reach before round k
    return int(np.count_nonzero(beyond[1:] > tol))
