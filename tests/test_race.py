"""Methods that take turns: predictions, shares, the guarantee, and checkpoints in the middle of a race."""

import math

import numpy as np
import pytest
from cases import stuck
from hypothesis import given
from hypothesis import strategies as st

import saddlepoint as sp
from saddlepoint.methods import LPDGS, Anderson, CondatVu
from saddlepoint.problems.oracle import CallCounts
from saddlepoint.solving import race
from saddlepoint.solving.auto import choose
from saddlepoint.solving.checkpoint import file as store
from saddlepoint.solving.plan import Plan, mixed_steps
from saddlepoint.solving.schedule import RunProgress, Schedule, SwitchMethod, TurnOver
from saddlepoint.solving.state import Mark, Racer, ScheduleState

TOL = 1e-6
ALIKE = dict.fromkeys(("grad_g", "grad_h", "A", "At"), 1.0)  # costs, which are given so that no run measures them


def kinked(seed=0, strength=0.05, kappa=1000.0, m=14, n=10):
    """Own functions, one of them with kinks, on which Anderson's mixing gets stuck for a while."""
    rng = np.random.default_rng(seed)
    t, u, A = rng.standard_normal(m), rng.standard_normal(n), rng.standard_normal((m, n))
    g = sp.Smooth(lambda x: np.maximum(x - t, 0.0) + x / kappa, mu=1.0 / kappa, L=1.0 + 1.0 / kappa)
    h = sp.Smooth(lambda y: np.tanh(y - u) + y / 30.0, mu=1.0 / 30.0, L=1.0 + 1.0 / 30.0)
    return sp.Saddle(g, h, strength * A / np.linalg.norm(A, 2))


def after(distances, first=0.0, each=10.0):
    """A method whose certificates were these, one after each ``each`` of work, and the first one after ``first``."""
    racer = Racer(LPDGS())
    for k, distance in enumerate(distances):
        racer = race.marked(racer, first + each * (k + 1), distance)
    return racer


# -- predictions and turns --------------------------------------------------------------------------------------------


@given(st.floats(0.1, 2.0), st.integers(4, 40))
def test_a_linear_fall_is_predicted_exactly(rate, count):
    """Of a distance exp(-rate w/10) the rest to tol is known, whatever was done before the first certificate."""
    distances = [math.exp(-rate * k) for k in range(count)]
    wanted = 10.0 * math.log(distances[-1] / 1e-40) / rate
    for first in (0.0, 1e4):
        assert race.predicted(after(distances, first), 1e-40) == pytest.approx(wanted)


def test_no_fall_in_the_second_half_means_no_end():
    assert race.predicted(after([1.0, 0.1, 0.01, 0.01, 0.01, 0.01, 0.01]), TOL) == math.inf
    assert race.predicted(after([1.0]), TOL) == math.inf
    assert race.predicted(Racer(LPDGS()), TOL) == math.inf
    assert race.predicted(after([1.0, 1e-9]), TOL) == 0.0


def test_few_certificates_are_kept():
    racer = after([0.9**k for k in range(1000)], each=1.0)
    assert len(racer.marks) < 510
    assert racer.marks[0].work == 1.0


def test_a_turn_goes_on_while_the_end_is_near():
    good, bad = after([math.exp(-k) for k in range(10)]), after([1.0, 0.99, 0.98, 0.97, 0.96, 0.95, 0.95, 0.95, 0.95])
    assert not race.turn_is_over([good, Racer(LPDGS())], 0, TOL)
    assert race.turn_is_over([bad, Racer(LPDGS())], 0, TOL)
    assert not race.turn_is_over([bad._replace(turn_end=1e3), Racer(LPDGS())], 0, TOL)
    assert race.next_turn([bad, Racer(LPDGS())], 0, TOL) == 1


def test_the_leader_may_do_twice_the_work_of_the_other():
    leader, other = after([math.exp(-k) for k in range(30)], each=10.0), after([1.0] * 30, each=10.0)
    assert race.next_turn([other, leader], 0, TOL) == 1
    assert race.next_turn([other, leader], 1, TOL) == 1
    ahead = after([math.exp(-0.1 * k) for k in range(70)], each=10.0)  # its work is 690, and that of the other is 290
    assert race.next_turn([other, ahead], 1, TOL) == 0


def test_a_method_whose_calls_take_less_time_has_longer_turns():
    """Newton's method has matrices at hand; 100 rounds of calls take it as long as 10 of another method."""
    methods = Anderson(CondatVu()), sp.Newton()
    f = kinked()
    start = progress(f.certificate(np.zeros(14), np.zeros(10)), 1.0)
    state = ScheduleState((methods[1], LPDGS()), race=race.starters(methods, {sp.Newton(): 0.1}, 20.0), turn=1)
    assert [racer.rate for racer in state.race] == [1.0, 0.1]
    assert [racer.turn_end for racer in state.race] == [20.0, 10.0]
    schedule, counts = Schedule(f, TOL, state), CallCounts()
    for rounds in (50, 100):
        counts.calls.update(dict.fromkeys(("grad_g", "grad_h", "A", "At"), rounds))
        schedule.mark(1.0, counts)
        assert state.race[1].work == pytest.approx(0.1 * rounds)
    run = type("Run", (), {"units": state.race[1].units, "method_state": "kept", "counts": counts})
    schedule.next_turn(run, start)
    assert state.turn == 0
    schedule.mark(1.0, counts)
    assert state.race[0].work == 0.0
    counts.calls.update(dict.fromkeys(("grad_g", "grad_h", "A", "At"), 140))
    schedule.mark(1.0, counts)
    assert state.race[0].work == 40.0
    state.turn = 1
    schedule.begin_turn(counts, start)
    counts.calls.update(dict.fromkeys(("grad_g", "grad_h", "A", "At"), 190))
    schedule.mark(1.0, counts)
    assert [racer.work for racer in state.race] == [40.0, pytest.approx(15.0)]


def test_the_first_turn_of_another_method_is_not_put_off_for_long():
    # At its rate it needs 130 units of work more, after 70.
    slow = after([0.9**k for k in range(8)], each=10.0)._replace(turn_end=32.0)
    others = Racer(LPDGS(), turn_end=16.0)
    assert race.turn_is_over([slow, others], 0, TOL)
    assert race.next_turn([slow, others], 0, TOL) == 1
    assert not race.turn_is_over([slow, after([1.0] * 3)], 0, 0.4 * slow.marks[-1].distance)


def test_work_is_weighted_by_what_calls_cost():
    calls = {"grad_g": 10, "grad_h": 10, "A": 30, "At": 30}
    assert race.work_of(calls, {}) == 20.0
    assert race.work_of(calls, {"grad_g": 99.0, "grad_h": 99.0}) == pytest.approx(10.2)


# -- the guarantee ----------------------------------------------------------------------------------------------------


def progress(best, present):
    """Where a run stands whose present point has this certified distance."""
    return RunProgress(best, best.distance, present, TOL)


def test_the_method_with_the_guarantee_is_never_given_up():
    f = kinked()
    start = f.certificate(np.zeros(14), np.zeros(10))
    methods = Anderson(CondatVu()), LPDGS()
    schedule = Schedule(f, TOL, ScheduleState(methods[:1], race=race.starters(methods)))
    counts = CallCounts()
    schedule.check_progress(progress(start, start.distance), counts, 16)
    for calls in (100, 150):
        counts.calls.update(dict.fromkeys(("grad_g", "grad_h", "A", "At"), calls))
        schedule.check_progress(progress(start, 1.0), counts, calls + 10)  # a turn of 64 is not over
    counts.calls.update(dict.fromkeys(("grad_g", "grad_h", "A", "At"), 170))
    with pytest.raises(TurnOver):
        schedule.check_progress(progress(start, 1.0), counts, 180)
    run = type("Run", (), {"units": schedule.state.race[0].units, "method_state": "kept", "counts": counts})
    racer = schedule.next_turn(run, progress(start, 1.0))
    assert racer.method == LPDGS()
    assert schedule.state.race[0].state == "kept"
    assert "anderson-condat-vu in turns with lpd-gs" in schedule.state.notes
    spent = int(3.0 * schedule.state.budget)
    counts.calls["A"] = spent
    schedule.check_progress(progress(start, 1.0), counts, spent + 16)  # no exception: the other methods are removed
    assert schedule.method == LPDGS()
    assert schedule.fallbacks == 0
    assert schedule.state.race == []


def test_spent_calls_leave_only_the_guarantee():
    f = kinked(strength=3.0)
    start = f.certificate(np.zeros(14), np.zeros(10))
    methods = sp.make_method("anderson-imex"), Anderson(CondatVu())
    state = ScheduleState((methods[0], sp.DIPPA(), LPDGS()), race=race.starters(methods))
    schedule, counts = Schedule(f, TOL, state), CallCounts()
    schedule.check_progress(progress(start, start.distance), counts, 16)
    counts.calls["A"] = int(state.budget)
    with pytest.raises(SwitchMethod):
        schedule.check_progress(progress(start, 1.0), counts, int(state.budget) + 16)
    schedule.switch("fell behind", counts, progress(start, 1.0))
    assert schedule.method == LPDGS()
    assert schedule.fallbacks == 0


# -- whole runs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_three_in_turns_are_no_worse_than_the_best_one(seed):
    """By name, Anderson's mixing takes thousands of calls here, and LPD-GS hundreds."""
    f = kinked(seed)
    assert choose(f).turns == 3
    auto = sp.solve(f, tol=TOL)
    names = ("anderson-condat-vu", "anderson-imex", "lpd-gs")
    named = [sp.solve(f, tol=TOL, method=name, max_calls=2000) for name in names]
    best = min(max(result.calls.values()) for result in named if result.solved)
    assert auto.solved
    assert "in turns with" in auto.message
    assert max(auto.calls.values()) <= 2.0 * best


def test_a_method_that_gets_stuck_costs_little(monkeypatch):
    f = kinked(1, strength=3.0)
    sweep = max(sp.solve(f, tol=TOL, method="anderson-condat-vu").calls.values())
    monkeypatch.setattr(sp.IMEX, "step", stuck)
    auto = sp.solve(f, tol=TOL)
    assert auto.solved
    assert auto.method == "anderson-condat-vu"
    assert max(auto.calls.values()) <= 3 * sweep


def test_the_same_input_takes_the_same_turns():
    first, again = (sp.solve(kinked(3), tol=TOL) for _ in range(2))
    assert first.x.tobytes() == again.x.tobytes()
    assert (first.calls, first.message) == (again.calls, again.message)


def test_a_race_goes_on_where_the_calls_were_used_up(tmp_path):
    """The waiting method is in the file too: its state, its work and its certificates."""
    f, file = kinked(3, kappa=300.0), tmp_path / "run"
    whole = sp.solve(f, tol=TOL, costs=ALIKE)
    sp.solve(f, tol=TOL, costs=ALIKE, checkpoint=file, max_calls=150)
    assert any(store.read(file, 1 << 30).values["waiting"])
    resumed = sp.solve(f, tol=TOL, costs=ALIKE, checkpoint=file)
    assert resumed.x.tobytes() == whole.x.tobytes()
    assert (resumed.calls, resumed.method, resumed.message) == (whole.calls, whole.method, whole.message)


@pytest.mark.slow
def test_a_race_goes_on_from_every_checkpoint(tmp_path):
    f, file, copies = kinked(1, kappa=3000.0), tmp_path / "run", []
    whole = sp.solve(f, tol=TOL, costs=ALIKE)
    every = {"checkpoint": file, "checkpoint_every": 0}
    sp.solve(f, tol=TOL, costs=ALIKE, **every, callback=lambda result: copies.append(file.read_bytes()))
    waiting = 0
    for copy in copies:
        file.write_bytes(copy)
        waiting += sum(state is not None for state in store.read(file, 1 << 30).values["waiting"])
        resumed = sp.solve(f, tol=TOL, costs=ALIKE, checkpoint=file)
        assert resumed.x.tobytes() == whole.x.tobytes()
        assert (resumed.calls, resumed.method, resumed.message) == (whole.calls, whole.method, whole.message)
        assert [record.distance for record in resumed.history] == [record.distance for record in whole.history]
    assert waiting > 2


@pytest.mark.slow
@pytest.mark.parametrize("change", [
    lambda schedule: schedule.update(turn=7),
    lambda schedule: schedule.update(turn=-1),
    lambda schedule: schedule.update(others={"float": "nan"}),
    lambda schedule: schedule.update(prices={"dict": [["A", {"float": (-1.0).hex()}]]}),
    lambda schedule: schedule.update(race={"list": [3]}),
    lambda schedule: schedule["race"]["list"][0]["with"].update(work={"float": "nan"}),
    lambda schedule: schedule["race"]["list"][0]["with"].update(work=None),
    lambda schedule: schedule["race"]["list"][0]["with"].update(rate={"float": (0.0).hex()}),
    lambda schedule: schedule["race"]["list"][0]["with"].update(rate={"float": (2.0).hex()}),
    lambda schedule: schedule["race"]["list"][0]["with"].update(units={"tuple": [1, 2, 3]}),
    lambda schedule: schedule["race"]["list"][0]["with"].update(method=schedule["race"]["list"][1]["with"]["method"]),
    lambda schedule: schedule["race"]["list"][1]["with"].update(marks={"tuple": [None]}),
    lambda schedule: schedule["race"]["list"][0]["with"]["marks"]["tuple"].reverse(),
    lambda schedule: schedule["race"]["list"].pop(),
])  # fmt: skip
def test_a_forged_race_is_refused(change, tmp_path):
    f, file = kinked(1), tmp_path / "run"
    sp.solve(f, tol=TOL, checkpoint=file, max_calls=100)
    values, arrays = store.read(file, 1 << 30)
    schedule = values["run"]["with"]["schedule"]["with"]
    assert len(schedule["race"]["list"][0]["with"]["marks"]["tuple"]) > 2
    assert schedule["turn"] == 1
    change(schedule)
    store.write(file, store.Content(values, arrays), 1 << 30)
    store.older(file).unlink()
    with pytest.raises(sp.ProblemError, match=r"is not a checkpoint of this program|holds no state of this method"):
        sp.solve(f, tol=TOL, checkpoint=file)


def test_a_corrected_constant_begins_the_race_anew():
    f = kinked(1)
    low = sp.Saddle(sp.Smooth(f.g.grad, mu=f.mu_x, L=None), f.h, f.A.A)
    result = sp.solve(low, tol=TOL)
    assert result.solved


# -- plans ------------------------------------------------------------------------------------------------------------


def test_a_plan_says_which_methods_take_turns():
    methods = sp.make_method("anderson-imex"), LPDGS(), sp.DIPPA()
    plan = Plan(methods, "", turns=2)
    assert plan.racing == methods[:2]
    assert plan.in_order == (methods[0], methods[2])
    assert Plan(methods, "").racing == ()
    assert Plan(methods, "").in_order == methods


def test_anderson_remembers_less_where_products_cost_less_than_mixing():
    from scipy.sparse import eye_array

    def size(A):
        return mixed_steps(sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), A))

    assert size(np.ones((40, 30))) == 100
    assert size(eye_array(1000).tocsr()) == 100
    assert 20 < size(eye_array(6000).tocsr()) < 50
    assert size(eye_array(20_000).tocsr()) == 20
    assert size(eye_array(100_000).tocsr()) == 10  # where even 20 of these long vectors take longer to read


def test_a_step_that_takes_many_products_is_worth_a_longer_memory():
    """The implicit step of IMEX takes many products, so that the mixing is a small part of it."""
    from scipy.sparse import eye_array

    own = [sp.Smooth(lambda v: 1e-3 * v + np.tanh(v), mu=1e-3, L=1.001) for _ in range(2)]
    plan = choose(sp.Saddle(*own, 50.0 * eye_array(10_000).tocsr()))
    windows = {method.label: method.window for method in plan.methods if isinstance(method, Anderson)}
    assert windows["anderson-imex"] > windows["anderson-condat-vu"]


def test_a_turn_ends_where_another_method_is_predicted_to_end_much_sooner():
    slow = Racer(sp.CondatVu(), work=300.0, turn_end=64.0, marks=(Mark(0.0, 1.0), Mark(150.0, 1e-2), Mark(300.0, 1e-4)))
    quick = Racer(sp.Newton(), work=40.0, turn_end=32.0, marks=(Mark(0.0, 1.0), Mark(20.0, 1e-2), Mark(40.0, 1e-4)))
    assert not race.turn_is_over([slow, slow], 0, 1e-8)  # 300 more is soon after 300
    assert race.turn_is_over([slow, quick], 0, 1e-8)  # 40 more is much sooner
    assert not race.turn_is_over([quick, slow], 0, 1e-8)


def test_a_turn_goes_on_for_hardly_longer_than_was_predicted():
    """Where mixing is stuck, the end is predicted again and again to be near."""
    racer = after([0.5**k for k in range(11)])._replace(turn_end=50.0)  # 100 units of work for ten halvings
    others, tol = Racer(sp.CondatVu()), 0.5**20
    assert not race.turn_is_over([racer, others], 0, tol)
    begun = race.extended(racer, tol)
    assert begun.deadline == pytest.approx(100.0 + race.SLACK * 100.0)
    assert race.extended(begun._replace(work=150.0), tol) == begun._replace(work=150.0)  # no second time
    stuck = begun._replace(work=begun.deadline + 20.0)
    assert race.turn_is_over([stuck, others], 0, tol)
    assert not race.turn_is_over([stuck._replace(deadline=math.inf), others], 0, tol)


def test_the_method_with_a_promise_is_predicted_to_keep_it():
    """The distance of LPD-GS falls late, so that its fall says nothing at first."""
    stuck = after([1.0, 1.0, 1.0])
    assert race.predicted(stuck, TOL) == math.inf
    promised = stuck._replace(promise=400.0, rate=0.5)
    assert race.predicted(promised, TOL) == pytest.approx(0.5 * 400.0 - stuck.work)
    assert race.next_turn([stuck, promised], 0, TOL) == 1


def test_a_method_without_mixing_does_less_work_in_a_round():
    own = [sp.Smooth(lambda v: 1e-3 * v + np.tanh(v), mu=1e-3, L=1.001) for _ in range(2)]
    small, large = (choose(sp.Saddle(*own, 0.05 * np.eye(n))) for n in (10, 1000))
    assert 0.3 < small.rates[LPDGS()] < 0.7
    assert small.rates[LPDGS()] < large.rates[LPDGS()] < 1.0  # products with A take most of the time
    assert LPDGS() not in choose(sp.Saddle(*own, 0.05 * np.eye(10)), costs=ALIKE).rates
