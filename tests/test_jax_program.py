"""Functions as one program of JAX: the same values, whatever the function does."""

import operator
import pickle

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.ground.jax_program import JaxProgram

jax = pytest.importorskip("jax", reason="JAX is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture
def x():
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.linspace(-2.0, 3.0, 7)


def twice_plus(offset):
    return lambda x: 2.0 * x + offset


def test_one_program_is_kept_for_each_shape_and_has_the_same_values(x):
    calls = []
    program = JaxProgram(lambda x: calls.append(1) or 2.0 * x + 1.0)
    for _ in range(3):
        np.testing.assert_array_equal(program(x), 2.0 * x + 1.0)
    assert len(calls) == 1
    np.testing.assert_array_equal(program(x[:3]), 2.0 * x[:3] + 1.0)
    assert len(calls) == 2


def test_arrays_that_the_function_refers_to_are_arguments_and_not_constants_of_the_program(x):
    program = JaxProgram(twice_plus(jax.numpy.arange(7.0)))
    np.testing.assert_array_equal(program(x), 2.0 * x + np.arange(7.0))


def test_a_function_that_looks_at_numbers_is_run_step_by_step(x):
    program = JaxProgram(lambda x: x if float(x[0]) > 0.0 else -x)
    np.testing.assert_array_equal(program(x), -x)
    np.testing.assert_array_equal(program(-x), -x)


def test_within_another_program_it_is_a_plain_function(x):
    np.testing.assert_array_equal(jax.jit(JaxProgram(lambda x: 2.0 * x))(x), 2.0 * x)


def test_arrays_of_numpy_are_passed_on():
    point = np.arange(3.0)
    assert JaxProgram(lambda x: x)(point) is point


def test_a_function_with_a_program_can_be_pickled(x):
    program = JaxProgram(operator.neg)
    program(x)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(program))(x), -x)


def test_the_bounds_are_those_of_numpy(x):
    g, plain = sp.Quadratic(2.0, x) + sp.LogCosh(), sp.Quadratic(2.0, np.asarray(x)) + sp.LogCosh()
    np.testing.assert_allclose(g.rounding(x), plain.rounding(np.asarray(x)), rtol=1e-12, atol=1e-300)


def test_steps_that_are_kept_take_no_program_for_each_number_of_them():
    """Anderson's mixing with simple terms: the matrices of the latest steps grow, and the programs stay the same."""
    jax.config.update("jax_enable_x64", True)
    jnp, rng = jax.numpy, np.random.default_rng(0)
    P, A, b = (
        jnp.asarray(np.exp(4.0 * rng.random(30))),
        jnp.asarray(rng.standard_normal((30, 20))),
        rng.standard_normal(30),
    )
    h = sp.Smooth(lambda y: P[:20] * y, mu=1.0, L=55.0) + sp.Box(-0.3, 0.4)

    def programs(steps):
        compiled = []
        note = lambda event, seconds, **more: compiled.append(1) if "backend_compile" in event else None  # noqa: E731
        g = sp.Smooth(lambda x: P * x + 3.0 * jnp.asarray(b), mu=1.0, L=55.0) + sp.L1(0.5)
        jax.monitoring.register_event_duration_secs_listener(note)
        try:
            result = sp.solve(sp.Saddle(g, h, A), tol=1e-14, method="anderson-condat-vu", max_calls=steps)
        finally:
            jax.monitoring.unregister_event_duration_listener(note)
        return len(compiled), result.iterations

    programs(20)
    compiled, iterations = programs(60)
    assert iterations > 40
    assert compiled < 20
