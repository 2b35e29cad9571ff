"""A distance to the minimiser of a logistic regression that is not strongly convex everywhere."""

from __future__ import annotations

import math

UP = 1.0 + 1e-12  # factor that exceeds the relative rounding of the formula


def logistic_distance(gradient: float, curvature: float, radius: float) -> float:
    r"""|v - v*| is at most this for the minimiser v* of F(v) = sum_i c_i log(1 + exp(d_i'v)) + a quadratic function.

    F has no mu if a direction, such as an intercept, is not penalised, but its Hessian changes slowly: the third
    derivative of the logistic loss is at most the second one. With u = v* - v and h(t) = F(v + t u), hence
    |h'''| <= R |u| h'' for R = max |d_i|, so that h''(t) >= h''(0) exp(-R |u| t), and

        -<grad F(v), u> = h'(1) - h'(0) >= h''(0) (1 - exp(-R |u|))/(R |u|) >= lambda |u| (1 - exp(-R |u|))/R,

    where lambda is the smallest eigenvalue of the Hessian at v. So |grad F(v)| >= lambda (1 - exp(-R |u|))/R, and if
    R |grad F(v)| < lambda, this says |u| <= -log(1 - R |grad F(v)|/lambda)/R.

    Args:
        gradient: |grad F(v)|, or a bound on it.
        curvature: lambda, or a lower bound of it.
        radius: R, or a bound on it.

    Returns:
        The bound; infinite if R |grad F(v)| >= lambda.

    References:
        F. Bach, Self-concordant analysis for logistic regression, Electronic Journal of Statistics 2010.

    Example:
        >>> from saddlepoint.theory import logistic_distance
        >>> round(logistic_distance(0.01, 1.0, 2.0), 6), logistic_distance(1.0, 1.0, 2.0)
        (0.010101, inf)
    """
    if not curvature > 0.0 or not math.isfinite(gradient + radius):
        return math.inf
    if radius == 0.0:
        return UP * gradient / curvature
    share = UP * radius * gradient / curvature
    return math.inf if share >= 1.0 else UP * -math.log1p(-share) / radius
