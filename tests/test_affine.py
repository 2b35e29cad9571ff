"""Copies of functions: ``replace``, the affine transform, and the transforms of problems keep what they can."""

import inspect
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import hessian
from scipy import sparse
from scipy.optimize import check_grad, minimize
from test_functions import FUNCTIONS, SUMS

import saddlepoint as sp
from saddlepoint.parts.functions.affine import affine
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.parts.functions.given_constants import known
from saddlepoint.problems.audit import Audit
from saddlepoint.problems.corrections import corrected
from saddlepoint.problems.oracle import Meter, metered
from saddlepoint.problems.transforms import Units, in_units, rescaled, swapped
from saddlepoint.problems.transforms import anchored as anchored_problem
from saddlepoint.solving.fused_steps import Evaluator

pytestmark = pytest.mark.slow  # transforms of functions are also tested through the methods

ALL = FUNCTIONS | SUMS
N = 6
ARGUMENTS = [name for name in inspect.signature(sp.Smooth.__init__).parameters if name not in ("self", "dtype")]


def draw(seed, size=N):
    return np.random.default_rng(seed).standard_normal(size)


VECTORS = st.none() | st.integers(0, 10**6).map(draw)
NUMBERS = st.sampled_from([1.0, 0.4, 3.0, -1.0, -0.7])
DIAGONALS = st.integers(0, 10**6).map(lambda seed: np.exp(0.5 * draw(seed)) * np.where(draw(seed + 1) < 0, -1.0, 1.0))
CHANGES = st.fixed_dictionaries(
    {"scale": NUMBERS | DIAGONALS, "shift": VECTORS, "weight": st.sampled_from([1.0, 0.3, 5.0]), "linear": VECTORS}
)
SIMPLE = st.fixed_dictionaries(
    {"scale": NUMBERS, "shift": VECTORS, "weight": st.sampled_from([1.0, 0.3, 5.0]), "linear": VECTORS}
)


class Twin:
    """u -> weight f(scale u + shift) + <linear, u>, computed directly."""

    def __init__(self, f, scale, shift, weight, linear):
        self.f, self.weight = f, weight
        self.S = np.diag(np.broadcast_to(scale, N))
        self.c = np.zeros(N) if shift is None else shift
        self.b = np.zeros(N) if linear is None else linear

    def value(self, u):
        return self.weight * self.f(self.S @ u + self.c) + self.b @ u

    def grad(self, u):
        return self.weight * self.S @ self.f.grad(self.S @ u + self.c) + self.b

    def prox(self, v, t):
        value = lambda u: self.value(u) + (u - v) @ (u - v) / (2 * t)  # noqa: E731
        return minimize(value, v, jac=lambda u: self.grad(u) + (u - v) / t, tol=1e-10).x


@pytest.mark.parametrize("name", ALL)
@given(CHANGES, st.integers(0, 10**6))
@settings(max_examples=15)
def test_values_and_gradients_are_those_of_the_transform_by_hand(name, changes, seed):
    f, u = ALL[name], draw(seed)
    g, twin = affine(f, **changes), Twin(f, **changes)
    assert g(u) == pytest.approx(twin.value(u), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(g.grad(u), twin.grad(u), rtol=1e-12, atol=1e-12)
    assert check_grad(g, g.grad, u, epsilon=1e-6) <= 1e-4 * (1 + g.L)


@pytest.mark.parametrize("name", [name for name, f in ALL.items() if f.has_prox])
@given(SIMPLE, st.integers(0, 10**6), st.sampled_from([0.05, 1.0, 8.0]))
@settings(max_examples=15)
def test_the_prox_is_that_of_the_transform_by_hand(name, changes, seed, t):
    v = draw(seed)
    expected = Twin(ALL[name], **changes).prox(v, t)
    np.testing.assert_allclose(affine(ALL[name], **changes).prox(v, t), expected, atol=1e-5)


@pytest.mark.parametrize("name", [name for name, f in FUNCTIONS.items() if f.hessian])
@given(CHANGES, st.integers(0, 10**6))
@settings(max_examples=15)
def test_the_hessian_is_that_of_the_transform_by_hand_and_mu_and_L_bound_it(name, changes, seed):
    f, u = FUNCTIONS[name], draw(seed)
    g, twin = affine(f, **changes), Twin(f, **changes)
    H = g.hessian(u)
    assert sparse.issparse(H) == sparse.issparse(f.hessian(u))
    H = H.toarray() if sparse.issparse(H) else H
    np.testing.assert_allclose(H, changes["weight"] * twin.S @ hessian(f, twin.S @ u + twin.c) @ twin.S, atol=1e-11)
    values = np.linalg.eigvalsh(H)
    assert g.mu <= values[0] * (1 + 1e-9) + 1e-12
    assert values[-1] <= g.L * (1 + 1e-9)
    squares = changes["weight"] * np.diag(twin.S) ** 2
    assert (g.mu, g.L) == pytest.approx((squares.min() * f.mu, squares.max() * f.L))


@pytest.mark.parametrize("name", [name for name, f in ALL.items() if f.restrict])
@given(CHANGES, st.integers(0, 10**6), st.integers(1, N - 1))
@settings(max_examples=15)
def test_parts_have_the_gradients_and_constants_of_the_whole(name, changes, seed, cut):
    g, u = affine(ALL[name], **changes), draw(seed)
    blocks = [slice(0, cut), slice(cut, N)]
    parts = [g.restrict(rows) for rows in blocks]
    for part, rows in zip(parts, blocks, strict=True):
        np.testing.assert_allclose(part.grad(u[rows]), g.grad(u)[rows], rtol=1e-12, atol=1e-12)
        assert g.mu <= part.mu * (1 + 1e-12)
        assert part.L <= g.L * (1 + 1e-12)
    total = sum(part(u[rows]) for part, rows in zip(parts, blocks, strict=True))
    assert g(u) == pytest.approx(total, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", ALL)
@given(CHANGES)
@settings(max_examples=10)
def test_the_transform_keeps_what_is_known(name, changes):
    f, g = ALL[name], affine(ALL[name], **changes)
    vectors = any(isinstance(change, np.ndarray) for change in changes.values())
    assert g.dim == (N if vectors else f.dim)
    assert (g.space, g.quadratic, g.trusted) == (f.space, f.quadratic, f.trusted)
    assert g.has_prox == (f.has_prox and not isinstance(changes["scale"], np.ndarray))
    for oracle in ("value", "hessian", "restrict"):
        assert (getattr(g, oracle) is None) == (getattr(f, oracle) is None)


def test_unknown_constants_remain_unknown():
    g = affine(sp.Smooth(lambda x: x, mu=None, L=None), scale=2.0, weight=3.0)
    assert math.isnan(g.mu)
    assert math.isnan(g.L)


def test_the_transform_can_be_sent_to_another_process():
    g = affine(sp.LogCosh(l2=0.5), scale=2.0, shift=np.ones(N), weight=3.0, linear=np.arange(N))
    other = pickle.loads(pickle.dumps(g))
    np.testing.assert_array_equal(other.grad(np.ones(N)), g.grad(np.ones(N)))
    np.testing.assert_array_equal(other.prox(np.ones(N), 0.3), g.prox(np.ones(N), 0.3))


class Counting:
    """A symbolic vector that counts the operations on vectors."""

    def __init__(self, done=0):
        self.done = done

    def __add__(self, other):
        return Counting(self.done + (other.done if isinstance(other, Counting) else 0) + 1)

    __sub__ = __add__

    def __mul__(self, number):
        return Counting(self.done + 1)

    __rmul__ = __mul__


@pytest.mark.parametrize(
    ("changes", "in_grad", "in_prox"),
    [
        ({"weight": 3.0}, 1, 0),
        ({"scale": 3.0}, 2, 2),
        ({"scale": 2.0, "weight": 0.5}, 1, 2),
        ({"shift": Counting()}, 1, 2),
        ({"linear": Counting()}, 1, 2),
        ({"scale": 3.0, "shift": Counting(), "weight": 2.0, "linear": Counting()}, 4, 6),
    ],
)
def test_what_is_left_out_costs_no_operation(changes, in_grad, in_prox):
    f = sp.Smooth(lambda x: x, mu=1.0, L=1.0, prox=lambda v, t: v)
    g = affine(f, **changes)
    assert g.grad(Counting()).done == in_grad
    assert g.prox(Counting(), 0.5).done == in_prox
    assert affine(f) is f


def test_a_weight_outside_the_range_of_float64_is_no_obstacle():
    """The weight is 2^-1200, which as a floating-point number is 0."""
    g = affine(sp.Quadratic(2.0**-400), scale=2.0**600, slope=2.0**-600)
    u = np.array([3.0, 4.0])
    assert g(u) == 2.0**-400 * 12.5
    assert (g.mu, g.L) == (2.0**-400, 2.0**-400)
    np.testing.assert_array_equal(g.grad(u), 2.0**-400 * u)
    np.testing.assert_array_equal(g.prox(u, 2.0**400), 0.5 * u)


# -- replace ---------------------------------------------------------------------------------------------------------


def arguments_of(f):
    """The arguments of the constructor that make f."""
    found = {name: getattr(f, name) for name in ARGUMENTS}
    found["rounding"] = getattr(f.rounding, "function", f.rounding)  # without the programs of JAX around it
    numbers = {name: known(getattr(f, name)) for name in ("mu", "L", "accuracy")}
    return found | numbers | {"prox": f.prox if f.has_prox else None}


def everything(**changes):
    """A function of which everything is known."""
    P = np.linspace(1.0, 2.0, N)

    def quadratic(P, **more):
        return sp.Smooth(
            lambda x: P * x,
            value=lambda x: 0.5 * x @ (P * x),
            prox=lambda v, t: v / (1 + t * P),
            hessian=lambda x: np.diag(P),
            hvp=lambda x, u: P * u,
            hessian_lipschitz=0.0,
            second_order=lambda x: quadratic(P),
            quadratic=True,
            accuracy=1e-15,
            rounding=lambda x: 1e-15 * np.abs(x),
            compensated=lambda x: (P * x, 0.0 * x, 1e-15 * np.abs(x)),
            simple=sp.L1(0.5),
            prox_of_sum=lambda v, t: sp.L1(0.5).prox(v, t) / (1 + t * P),
            **({"mu": 1.0, "L": 2.0, "trusted": True} | more),
        )

    more = {"dim": N, "dtype": np.float64, "restrict": lambda rows: quadratic(P[rows])}
    return quadratic(P, **(more | changes))


CHANGED = {
    "grad": lambda x: 2.0 * x, "mu": 0.5, "L": 70.0, "value": lambda x: 0.0, "prox": lambda v, t: v, "dim": N,
    "space": sp.Quadratic(np.ones(N, dtype=np.float32)).space, "quadratic": True, "hessian": lambda x: np.eye(N),
    "hvp": lambda x, u: u, "hessian_lipschitz": 3.0, "second_order": lambda x: sp.Quadratic(1.0),
    "restrict": lambda rows: sp.Quadratic(1.0), "trusted": False, "accuracy": 1e-9, "rounding": lambda x: 0.0 * x,
    "compensated": lambda x: (x, x, x), "simple": sp.L1(2.0), "prox_of_sum": lambda v, t: v, "domain": True,
}  # fmt: skip


def test_every_argument_of_smooth_is_in_the_tests():
    assert sorted(CHANGED) == sorted(ARGUMENTS)
    assert None not in arguments_of(everything()).values()


@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("f", [everything(), *ALL.values(), sp.Smooth(np.sin, mu=None, L=None)])
def test_replace_changes_one_thing_and_keeps_the_rest(f, argument):
    change = {argument: 0.5 * f.mu if argument == "mu" and f.mu >= 0.0 else CHANGED[argument]}
    before, g = arguments_of(f), f.replace(**change)
    lost = {} if argument not in ("grad", "mu", "L") else {"trusted": False}
    if argument == "grad":
        lost |= {"accuracy": None, "rounding": None, "compensated": None}
    if argument == "simple":  # what is known of the function alone is not known of the sum
        lost |= {"restrict": None, "prox_of_sum": None}
    assert arguments_of(g) == before | lost | change
    assert arguments_of(f) == before
    functions = ("grad", "value", "prox", "hessian", "hvp", "second_order", "restrict", "simple", "prox_of_sum")
    functions += ("rounding", "compensated")
    assert type(g) is (sp.Smooth if argument in functions else type(f))
    assert f.replace(**(change | {"trusted": True})).trusted


def test_replace_checks_what_it_is_given():
    f = everything()
    with pytest.raises(sp.ProblemError, match=r"L = 0\.5 of Smooth is below mu = 1"):
        f.replace(L=0.5)
    with pytest.raises(sp.ProblemError, match="value of Smooth is 3; expected a function"):
        f.replace(value=3)
    with pytest.raises(TypeError, match="gradient"):
        f.replace(gradient=np.sin)
    assert f.replace(dtype=np.float32).dtype == np.float32
    assert not f.replace(prox=None).has_prox


def test_a_claim_about_a_ready_function_is_examined_again():
    """The constants of ``Huber`` are true by construction, but not those that someone gives to a copy of it."""
    f = sp.Huber(l2=0.1)
    assert f.trusted
    assert not f.replace(mu=0.1).trusted
    wrong = sp.Saddle(f.replace(mu=0.9), sp.Quadratic(1.0, np.full(3, 9.0)), np.eye(3))
    with pytest.raises(sp.AssumptionError, match="mu of g is too large"):
        sp.solve(wrong)


# -- transforms of problems ------------------------------------------------------------------------------------------


def problem(trusted):
    return sp.Saddle(everything(trusted=trusted), sp.Quadratic(1.0), np.eye(N))


TRANSFORMS = {
    "counted": lambda f: metered(f, Meter()).g,
    "corrected L": lambda f: corrected(f, "g", "L", 3.0).g,
    "corrected mu": lambda f: corrected(f, "g", "mu", 0.5).g,
    "corrected norm": lambda f: corrected(f, "A", "norm", 3.0).g,
    "anchored": lambda f: anchored_problem(f, 0.5, np.ones(N)).g,
    "rescaled": lambda f: rescaled(f, 3.0, 2.0).problem.g,
    "swapped": lambda f: swapped(f).problem.h,
    "in units": lambda f: in_units(f, Units(3, 2, 5)).problem.g,
    "checked by the audit": lambda f: Audit(f, Meter()).seen.g,
    "a multiple": lambda f: 3.0 * f.g,
    "a sum": lambda f: f.g + f.g.replace(),
}


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_keep_what_they_can(name, trusted):
    f = problem(trusted)
    g = TRANSFORMS[name](f)
    missing = {argument for argument, value in arguments_of(g).items() if value is None} - {"compensated", "hvp"}
    assert g.hvp is not None or g.second_order is not None
    lost = {"prox", "prox_of_sum", "restrict"} if name == "a sum" else set()  # no sum of two such has a cheap prox
    assert missing == lost
    assert (g.dim, g.space, g.quadratic) == (f.g.dim, f.g.space, f.g.quadratic)
    constants_changed = name in ("corrected L", "corrected mu")
    assert g.trusted is (trusted and not constants_changed)
    rows, x = slice(1, 4), np.linspace(-1.0, 1.0, N)
    if name != "a sum":
        np.testing.assert_allclose(g.restrict(rows).grad(x[rows]), g.grad(x)[rows], rtol=1e-12)
    np.testing.assert_allclose(g.hessian(x) @ x, g.grad(x) - g.grad(0.0 * x), rtol=1e-12, atol=1e-12)


def test_a_counted_part_counts():
    meter = Meter()
    part = metered(problem(False), meter).g.restrict(slice(0, 2))
    part.grad(np.ones(2))
    part.prox(np.ones(2), 1.0)
    assert (meter.calls["grad_g"], meter.calls["prox_g"]) == (1, 1)


def test_symbolic_steps_know_what_is_quadratic():
    f = problem(True)
    g = Evaluator().problem(f).g
    assert (g.mu, g.L, g.dim, g.space, g.quadratic) == (f.g.mu, f.g.L, f.g.dim, f.g.space, True)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 7.0]))
def test_an_anchored_function_has_its_values_and_its_parts_the_same_gradients(seed, weight):
    f, centre, x = sp.Huber(t=np.ones(N), l2=0.3), draw(seed), draw(seed + 1)
    g = anchored(f, weight, centre)
    assert g(x) == pytest.approx(f(x) + 0.5 * weight * (x - centre) @ (x - centre))
    rows = slice(2, 5)
    np.testing.assert_allclose(g.restrict(rows).grad(x[rows]), g.grad(x)[rows], atol=1e-12)
    assert (g.restrict(rows).mu, g.restrict(rows).L) == (g.mu, g.L)
