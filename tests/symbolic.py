"""Symbolic problems for PEPit, which computes the worst case of a method by semidefinite programming."""

from types import SimpleNamespace

import pytest

import saddlepoint as sp

PEPit = pytest.importorskip("PEPit")
functions = pytest.importorskip("PEPit.functions")
operators = pytest.importorskip("PEPit.operators")
proximal = pytest.importorskip("PEPit.primitive_steps")


def smooth(problem, mu, L):
    """A symbolic function as the methods see one."""
    f = problem.declare_function(functions.SmoothStronglyConvexFunction, mu=mu, L=L)
    prox = lambda v, t: proximal.proximal_step(v, f, t)[0]  # noqa: E731
    return f, sp.Smooth(f.gradient, mu=mu, L=L, prox=prox)


class Coupling:
    """A symbolic linear map with |A| <= norm, and its exact resolvent."""

    def __init__(self, problem, norm):
        self.A = problem.declare_function(operators.LinearOperator, L=norm)

    def mul(self, y):
        return self.A.gradient(y)

    def tmul(self, x):
        return self.A.T.gradient(x)

    def both(self, x, y):
        return self.mul(y), self.tmul(x)

    def through(self, y, s, e):
        t = self.mul(y)
        return t, self.tmul(s * t + e)

    def resolvent(self, p, q, a):
        x = PEPit.Point()
        y = q + a * self.tmul(x)
        self.A.add_point((y, (p - x) / a, PEPit.Expression()))  # A y = (p - x)/a
        return x, y


class CouplingWithTerms(Coupling):
    """A coupling to whose resolvent two convex functions p and q are added: that of (A y + dp(x), -A' x + dq(y))."""

    def __init__(self, problem, norm):
        super().__init__(problem, norm)
        self.p, self.q = (problem.declare_function(functions.ConvexFunction) for _ in range(2))

    def resolvent(self, p, q, a):
        x, s, r = PEPit.Point(), PEPit.Point(), PEPit.Point()
        y = q + a * (self.tmul(x) - r)
        self.A.add_point((y, (p - x) / a - s, PEPit.Expression()))  # A y = (p - x)/a - s
        self.p.add_point((x, s, PEPit.Expression()))
        self.q.add_point((y, r, PEPit.Expression()))
        return x, y


def worst_case(problem):
    return problem.solve(verbose=0, wrapper="cvxpy", solver="CLARABEL")


def saddle(problem, kx, ky, c):
    """A symbolic problem with mu_x = mu_y = 1, and its solution."""
    (_, g), (_, h), A = smooth(problem, 1.0, kx), smooth(problem, 1.0, ky), Coupling(problem, c)
    numbers = {"mu_x": 1.0, "mu_y": 1.0, "L_x": kx, "L_y": ky, "L": max(kx, ky), "norm": c, "coupling": c}
    f = SimpleNamespace(g=g, h=h, A=A, kappa_x=kx, kappa_y=ky, numbers=(kx, ky, c), **numbers)

    def field(x, y):
        Ay, Atx = A.both(x, y)
        return g.grad(x) + Ay, h.grad(y) - Atx

    f.field = field
    xs, ys = PEPit.Point(), PEPit.Point()
    Ays, Atxs = A.both(xs, ys)
    for function, point, gradient in ((g, xs, -1 * Ays), (h, ys, Atxs)):
        function.grad.__self__.add_point((point, gradient, PEPit.Expression()))
    return f, xs, ys


def worst_error(method, kx, ky, c, steps):
    """The largest |x_k - x*|^2 + |y_k - y*|^2 from a start at distance 1."""
    problem = PEPit.PEP()
    f, xs, ys = saddle(problem, kx, ky, c)
    x, y = problem.set_initial_point(), problem.set_initial_point()
    problem.set_initial_condition((x - xs) ** 2 + (y - ys) ** 2 <= 1)
    state = method.init(f, x, y)
    for _ in range(steps):
        state = method.step(f, state)
    problem.set_performance_metric((state.x - xs) ** 2 + (state.y - ys) ** 2)
    return worst_case(problem), method.bound(f, steps)
