"""Gradients that change the array they are given are detected early, and the message says so."""

import numpy as np
import pytest
from libraries import xp  # noqa: F401 - a fixture
from scipy.sparse import diags_array

import saddlepoint as sp
from saddlepoint.ground.arrays import NUMPY64
from saddlepoint.problems.audit import Audit
from saddlepoint.problems.first_call import check_gradient
from saddlepoint.problems.gradient_check import GradientCheck
from saddlepoint.problems.oracle import Meter

MESSAGE = "the gradient of {} changed the array it was given; it must leave its argument alone: work on a copy"
P = np.array([1.0, 1.5, 2.0])


def shifts(x):
    x += 1.0
    return 2.0 * x


def scales(x):  # zero, where most runs start, stays zero
    x *= 2.0
    return x


def clears(x):
    gradient = 2.0 * x + 1.0
    x[0] = 0.0
    return gradient


def adds_up(x):
    gradient = 2.0 * x + 1.0
    x -= 0.1 * gradient
    return gradient


WRITERS = {"shifts": shifts, "scales": scales, "clears": clears, "adds up": adds_up}


def problem(grad, L=2.0, side="g"):
    wrong, right = sp.Smooth(grad, mu=1.0, L=L), sp.Quadratic(1.0, np.ones(3))
    return sp.Saddle(*((wrong, right) if side == "g" else (right, wrong)), np.diag(P))


@pytest.mark.parametrize(("side", "method"), [("g", "apfb"), ("h", "apfb"), ("h", "adapdm")])
@pytest.mark.parametrize("answer", [None, 1.0, np.ones(2)])
def test_a_prox_that_is_no_vector_is_named(side, method, answer):
    own = sp.Smooth(lambda x: x - 1.0, mu=1.0, L=1.0, prox=lambda v, t: answer)
    right = sp.Quadratic(1.0, np.ones(3))
    f = sp.Saddle(own, right, np.eye(3)) if side == "g" else sp.Saddle(right, own, np.eye(3))
    with pytest.raises(sp.ProblemError, match=f"the prox of {side} returned .* expected an array of the same shape"):
        sp.solve(f, method=method)


@pytest.mark.parametrize("answer", [None, 1.0, np.ones(2)])
def test_a_product_with_the_hessian_that_is_no_vector_is_named(answer):
    g = sp.Smooth(lambda x: 2.0 * x + np.tanh(x), mu=2.0, L=3.0, hvp=lambda x, u: answer)
    result = sp.solve(sp.Saddle(g, sp.Quadratic(1.0, np.ones(3)), np.eye(3)))
    with pytest.raises(sp.ProblemError, match=r"hvp of Smooth returned .* for a vector of shape \(3,\)"):
        result.vjp(np.ones(3))


def test_a_bound_on_the_change_of_the_hessian_that_is_no_number_is_named():
    def hvp(x, u):
        return (3.0 - np.tanh(x) ** 2) * u

    g = sp.Smooth(lambda x: 2.0 * x + np.tanh(x), mu=2.0, L=3.0, hvp=hvp, hessian_lipschitz=lambda x, u, e: None)
    result = sp.solve(sp.Saddle(g, sp.Quadratic(1.0, np.ones(3)), np.eye(3)))
    with pytest.raises(sp.ProblemError, match="hessian_lipschitz of Smooth returned None; expected a number"):
        result.vjp(np.ones(3))


NO_HESSIANS = {
    "None": (lambda x: None, "None"),
    "a vector": (lambda x: 2.0 * np.ones(3), r"an array of shape \(3,\)"),
    "lists": (lambda x: np.eye(3).tolist(), r"\[\[1.0, "),
    "too small": (lambda x: np.eye(2), r"an array of shape \(2, 2\)"),
    "a number": (lambda x: 2.0, "2.0"),
}


@pytest.mark.parametrize("name", NO_HESSIANS)
def test_a_hessian_that_is_no_matrix_is_named(name):
    hessian, found = NO_HESSIANS[name]
    g = sp.Smooth(lambda x: 2.0 * x + np.tanh(x) - 1.0, mu=2.0, L=3.0, hessian=hessian)
    f = sp.Saddle(g, sp.Quadratic(1.0), np.eye(3))
    for use in (
        lambda: sp.solve(f, method="newton"),
        lambda: sp.check(f),
        lambda: sp.solve(f, method="lpd-gs").vjp(np.ones(3)),
    ):
        with pytest.raises(sp.ProblemError, match=f"hessian of Smooth returned {found}.* expected a 3 x 3 array"):
            use()


@pytest.mark.parametrize("make", [np.diag, diags_array])
def test_a_hessian_may_be_dense_or_sparse(make):
    g = sp.Smooth(lambda x: 2.0 * x + np.tanh(x), mu=2.0, L=3.0, hessian=lambda x: make(3.0 - np.tanh(x) ** 2))
    assert sp.solve(sp.Saddle(g, sp.Quadratic(1.0, np.ones(3)), np.eye(3)), method="newton", tol=1e-10).solved


@pytest.mark.parametrize("method", ["auto", "lpd-gs", "dippa", "extragradient"])
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("side", ["g", "h"])
def test_a_run_says_which_gradient_changed_its_argument(writer, method, side):
    x0 = y0 = np.ones(3)
    with pytest.raises(sp.ProblemError, match=MESSAGE.format(side)):
        sp.solve(problem(WRITERS[writer], side=side), method=method)
    with pytest.raises(sp.ProblemError, match=MESSAGE.format(side)):
        sp.solve(problem(WRITERS[writer], side=side), x0, y0, method=method)
    np.testing.assert_array_equal(x0, np.ones(3))


@pytest.mark.parametrize("writer", WRITERS)
def test_check_says_which_gradient_changed_its_argument(writer):
    for x0 in (None, np.ones(3)):
        report = sp.check(problem(WRITERS[writer]), x0)
        (wrong,) = report.problems
        assert wrong.what == "gradient of g"
        assert wrong.found == "its argument changed"
        assert wrong.advice == MESSAGE.format("g")


@pytest.mark.parametrize("writer", WRITERS)
def test_it_is_found_before_L_is_estimated(writer):
    with pytest.raises(sp.ProblemError, match=MESSAGE.format("g")):
        problem(WRITERS[writer], L=None)


def test_it_is_said_before_any_other_conclusion():
    """Two gradients that seem to refute L: the one that changes its argument is not compared any further."""
    check = GradientCheck("g", 1.0, 2.0, shifts, lambda oracle, calls: None)
    with pytest.raises(sp.ProblemError, match=MESSAGE.format("g")):
        check.compare(np.ones(3), np.full(3, 9.0), np.zeros(3), np.zeros(3))


def test_the_point_that_is_returned_is_examined():
    """A gradient that changes its argument only late in a run, long after the first calls."""
    calls = []

    def late(x):
        calls.append(1)
        gradient = P * x + 1.0
        if len(calls) > 25:
            x += 1e-9
        return gradient

    f = problem(late)
    with pytest.raises(sp.ProblemError, match=MESSAGE.format("g")):
        sp.solve(f, method="lpd-gs", tol=1e-9)
    assert len(calls) > 25
    with pytest.raises(sp.ProblemError, match=MESSAGE.format("g")):
        Audit(f, Meter()).examine(np.ones(3), np.ones(3))


def test_a_gradient_may_need_a_buffer_that_it_could_write_into():
    """Compiled code often asks for such a buffer and only reads it; the points of a run are read-only."""

    def compiled(x):
        if not x.flags.writeable:
            raise ValueError("buffer source array is read-only")
        return P * x + 1.0

    result = sp.solve(problem(compiled), method="lpd-gs", tol=1e-9)
    assert result.solved

    def broken(x):
        raise ValueError("broken")

    check = GradientCheck("g", 1.0, 2.0, broken, lambda oracle, calls: None)
    check.seen = 100
    with pytest.raises(ValueError, match="broken"):
        check.gradient(np.ones(3))


@pytest.mark.parametrize("answer", [None, "large"], ids=repr)
@pytest.mark.parametrize("examine", [sp.solve, sp.check])
def test_a_value_that_is_no_number_is_named(answer, examine):
    g = sp.Smooth(lambda x: x + np.tanh(x) - 1.0, mu=1.0, L=2.0, value=lambda x: answer)
    with pytest.raises(sp.ProblemError, match=f"value of g returned {answer!r}; expected a number"):
        examine(sp.Saddle(g, sp.Quadratic(1.0), np.eye(3)))


def test_a_value_outside_its_domain_is_not_examined():
    def value(x):
        raise ValueError("outside")

    g = sp.Smooth(lambda x: x + np.tanh(x) - 1.0, mu=1.0, L=2.0, value=value)
    assert sp.solve(sp.Saddle(g, sp.Quadratic(1.0), np.eye(3))).solved


def test_gradients_that_leave_their_argument_alone_are_accepted():
    assert sp.solve(problem(lambda x: P * x + 1.0)).solved
    assert sp.solve(problem(lambda x: x)).solved  # the argument itself is returned, but not changed
    assert check_gradient("g", problem(lambda x: P * x).g, np.ones(3), NUMPY64) >= 0.0


def test_a_gradient_that_changes_its_argument_is_found_in_other_libraries(xp):  # noqa: F811
    ones = xp.asarray([1.0, 1.0, 1.0], dtype=xp.float64)
    if "jax" in type(ones).__module__:
        pytest.skip("arrays of JAX cannot be changed")
    g = sp.Smooth(clears, mu=1.0, L=2.0)
    f = sp.Saddle(g, sp.Quadratic(1.0, ones), xp.asarray(np.diag(P).tolist(), dtype=xp.float64))
    with pytest.raises(sp.ProblemError, match=MESSAGE.format("g")):
        sp.solve(f, ones)
    assert not sp.check(f, ones).ok


# -- answers in memory that is used again, and without numbers in all entries ------------------------------------------


def kept_view():
    """A gradient whose answers are new views of one array."""
    memory = np.zeros(6)

    def grad(x):
        memory[::2] = 2.0 * x + 1.0
        return memory[::2]

    return grad


@pytest.mark.parametrize("method", ["auto", "lpd-gs", "dippa"])
def test_a_gradient_in_memory_that_is_used_again_is_named(method):
    with pytest.raises(sp.ProblemError, match="the gradient of g returned the same array twice"):
        sp.solve(problem(kept_view()), method=method)


def test_views_of_new_arrays_and_of_the_point_are_allowed():
    for grad in (lambda x: np.tile(2.0 * x, 2)[:3], lambda x: np.broadcast_to(2.0 * x, 3), lambda x: x.reshape(-1)):
        assert sp.solve(problem(grad), np.ones(3), np.ones(3), tol=1e-8).solved


@pytest.mark.parametrize("entry", [0, 2])
def test_masked_entries_are_refused_everywhere(entry):
    """Norms would leave them out, so that a certificate would be about the other entries."""
    hidden = np.arange(3) == entry
    masked = problem(lambda x: np.ma.masked_array(2.0 * x + 1.0, mask=hidden))
    with pytest.raises(sp.ProblemError, match="the gradient of g has masked entries"):
        sp.solve(masked)
    with pytest.raises(sp.ProblemError, match="the gradient of g has masked entries"):
        masked.certificate(np.zeros(3), np.zeros(3))
    later = [0]

    def masked_later(x):
        later[0] += 1
        return np.ma.masked_array(2.0 * x + 1.0, mask=hidden & (later[0] > 7))

    assert not sp.check(problem(masked_later)).ok
    point = np.ma.masked_array(np.ones(3), mask=hidden)
    with pytest.raises(sp.ProblemError, match="x has masked entries"):
        sp.certify(problem(lambda x: 2.0 * x), point, np.ones(3))


class Operator:
    """A matrix that is given as an object, with something done at each product."""

    def __init__(self, A, answer):
        self.A, self.answer, self.shape = A, answer, A.shape

    def __matmul__(self, y):
        return self.answer(self.A @ y, y)

    @property
    def T(self):
        return Operator(self.A.T, self.answer)


def zeroes(product, y):
    y *= 0.0
    return product


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (zeroes, "A @ y changed the array it was given"),
        (lambda product, y: np.ma.masked_array(product, mask=product > -np.inf), "A @ y has masked entries"),
    ],
)
def test_products_that_change_their_vector_or_are_masked_are_refused(answer, message):
    f, quadratic = Operator(np.diag(P), answer), sp.Quadratic(1.0, np.ones(3))
    with pytest.raises(sp.ProblemError, match=message):
        sp.certify(sp.Saddle(quadratic, quadratic, f), np.ones(3), np.ones(3))
