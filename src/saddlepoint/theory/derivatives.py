r"""How far a computed derivative of the saddle point is from the derivative at the true saddle point.

The derivative along a right-hand side v is the solution u* of J* u = v, where J* is the Jacobian of the field at the
solution z*: J* = [[H_g, A], [-A', H_h]] with the Hessians at x* and y*, or its transpose. Its symmetric part is at
least mu, so that for any u the residual R = J* u - v satisfies

    mu_x |ux - ux*|^2 + mu_y |uy - uy*|^2  <=  <R, u - u*>,

which is the inequality from which the certificate of a saddle point follows. The residual at z* differs from the one
at the computed point z by (H_g(x*) - H_g(x)) ux and (H_h(y*) - H_h(y)) uy, whose lengths are at most M |x - x*| |ux|
and M |y - y*| |uy| if the Hessians have the Lipschitz constants M.
"""

from __future__ import annotations

from saddlepoint.theory.certificate import Certificate, certificate_from_residuals


def derivative_certificate(
    mu_x: float, mu_y: float, rx: float, ry: float, change_x: float, change_y: float
) -> Certificate:
    """Bounds on |ux - ux*| and |uy - uy*|: those of ``certificate_from_residuals`` for larger residuals.

    Args:
        mu_x, mu_y: the strong convexity of g and of h.
        rx, ry: lengths of the residuals of the linear system at the computed point, or bounds on them.
        change_x, change_y: bounds on |(H_g(x*) - H_g(x)) ux| and |(H_h(y*) - H_h(y)) uy|, and on errors of the
            right-hand side.

    Example:
        >>> from saddlepoint.theory import derivative_certificate
        >>> exact = derivative_certificate(1.0, 1.0, 0.0, 0.0, change_x=0.5 * 1e-6 * 2.0, change_y=0.0)  # M e |u|
        >>> 1e-6 <= exact.distance_x <= 1.001e-6
        True
    """
    return certificate_from_residuals(mu_x, mu_y, rx, ry, change_x, change_y)
