"""The seconds of a result, measured with a clock that only gradients move: one second each."""

import numpy as np

import saddlepoint as sp


def problem(clock):
    """A problem with functions of one's own whose gradients move the clock by a second."""

    def grad(x):
        clock.now += 1.0
        return x + np.tanh(x - 1.0)

    g, h = (sp.Smooth(grad, mu=1.0, L=2.0) for _ in range(2))
    return sp.Saddle(g, h, np.arange(12.0).reshape(4, 3) / 10.0)


def gradients(counts):
    return counts["grad_g"] + counts["grad_h"]


def test_seconds_are_those_of_the_whole_call_and_method_seconds_those_of_the_steps(clock):
    f = problem(clock)
    before = clock.now
    result = sp.solve(f, method="lpd-gs", tol=1e-8)
    assert result.solved
    assert result.seconds == clock.now - before
    assert result.seconds == gradients(result.calls) + 2 * result.monitor_calls + gradients(result.setup_calls)
    assert result.method_seconds == gradients(result.calls)
    assert result.to_dict()["method_seconds"] == result.method_seconds


def test_the_time_axis_of_the_history_is_that_of_the_call(clock):
    result = sp.solve(problem(clock), method="lpd-gs", tol=1e-8)
    for number, record in enumerate(result.history, start=1):
        assert record.seconds == 2 + record.grad_g + record.grad_h + 2 * number  # 2: the check of the first gradients


def test_the_seconds_of_sessions_add_up(clock, tmp_path):
    """What a session does after its last checkpoint is not known to the next one."""
    before = None
    for budget in (5, 20, 10_000):
        began = clock.now
        result = sp.solve(problem(clock), method="lpd-gs", tol=1e-8, max_calls=budget, checkpoint=tmp_path / "run")
        assert result.method_seconds == gradients(result.calls)
        earlier = result.seconds - (clock.now - began)
        if before is None:
            assert earlier == 0
        else:
            assert before.method_seconds <= earlier <= before.seconds
        before = result
    assert result.solved


def test_the_time_limit_is_that_of_the_call(clock):
    f = problem(clock)
    result = sp.solve(f, method="lpd-gs", tol=1e-8, max_seconds=20.0)
    assert result.status is sp.Status.OUT_OF_TIME
    first, last = 2, 2  # gradients of the check at the start, and of the last certificate, after the limit
    until_the_limit = first + gradients(result.calls) + 2 * result.monitor_calls - last
    assert until_the_limit == 21.0 <= result.seconds
