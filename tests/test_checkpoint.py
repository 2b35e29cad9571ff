"""A run that is interrupted anywhere and called again gives the same result; files of other runs are refused."""

import dataclasses
import json
import os
import signal
import sys
import threading
from typing import NamedTuple

import forged_checkpoints
import numpy as np
import pytest
from cases import case, gradient_methods, prox_methods, quadratic_methods, stuck
from forged_checkpoints import correction, put
from hypothesis import example, given
from hypothesis import strategies as st
from libraries import in_library, load_library
from tiers import slow_except, thinned

import saddlepoint as sp
from saddlepoint.ground.arrays import NUMPY64
from saddlepoint.ground.rows import Rows
from saddlepoint.problems.audit import Audit
from saddlepoint.problems.generators import random_logistic, random_quadratic
from saddlepoint.solving.checkpoint import file as store
from saddlepoint.solving.checkpoint.values import Packer, Unpacker, known_classes

OTHERS = {
    "auto": "auto",
    "newton": sp.make_method("newton"),
    "restarted-direct": sp.Restarted(sp.Direct()),
    "anderson-direct": sp.Anderson(sp.Direct()),
    "catalyst-direct": sp.Catalyst(sp.Direct()),
    "catalyst-imex-factor": sp.Catalyst(sp.IMEX(coupling="factor")),
    "restarted-rhss": sp.Restarted(sp.RHSS()),
    "catalyst-restarted-apd": sp.Catalyst(sp.Restarted(sp.APD())),
}
METHODS = gradient_methods() | prox_methods() | quadratic_methods() | OTHERS
SAMPLED = slow_except(METHODS, "auto", "catalyst-dippa", "lpd-gs", "anderson-lpd-gs", "newton", "krylov", "direct")


def assert_same(resumed, whole):
    """Assert that two results agree to the last bit, except in their times."""
    assert resumed.x.tobytes() == whole.x.tobytes()
    assert resumed.y.tobytes() == whole.y.tobytes()
    assert resumed.certificate == whole.certificate
    assert (resumed.status, resumed.method, resumed.message) == (whole.status, whole.method, whole.message)
    assert (resumed.calls, resumed.passes, resumed.iterations) == (whole.calls, whole.passes, whole.iterations)
    assert resumed.monitor_calls == whole.monitor_calls
    assert resumed.parameters == whole.parameters
    clock = sp.Record._fields.index("seconds")
    for a, b in zip(resumed.history, whole.history, strict=True):
        assert a[:clock] + a[clock + 1 :] == b[:clock] + b[clock + 1 :]


def test_every_registered_method_is_here():
    assert {info.name for info in sp.methods()} <= set(METHODS)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLED)
def test_a_run_out_of_calls_goes_on_as_if_nothing_had_happened(name, tmp_path):
    """The budget ends in the middle of steps and inner loops, again and again."""
    f, method, file = case("balanced")[0], METHODS[name], tmp_path / "run"
    whole = sp.solve(f, method=method, tol=1e-4)
    budget, interruptions = 1, 0
    while budget < max(whole.calls.values()):
        part = sp.solve(f, method=method, tol=1e-4, max_calls=budget, checkpoint=file, checkpoint_every=1e9)
        assert part.solved or part.status == "out of calls"
        interruptions += not part.solved
        budget = 2 * budget + 3
    assert interruptions > 0
    resumed = sp.solve(f, method=method, tol=1e-4, checkpoint=file)
    assert_same(resumed, whole)
    assert resumed.provenance["resumed"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLED)
def test_a_run_goes_on_from_wherever_it_was_written(name, tmp_path):
    """Every step is written. A callback copies the files and stops the run, and a run continues from each of them."""
    smooth = name in gradient_methods() or name in ("auto", "newton")
    f, method, file = case("huber" if smooth else "mu_x < mu_y")[0], METHODS[name], tmp_path / "run"
    whole = sp.solve(f, method=method, tol=1e-3)
    copies = []

    def callback(result):
        copies.append(file.read_bytes())
        if len(copies) == max(2, len(whole.history) * 2 // 3):
            raise StopIteration

    part = sp.solve(f, method=method, tol=1e-3, callback=callback, checkpoint=file, checkpoint_every=0)
    assert part.status == "stopped by the callback"
    assert_same(sp.solve(f, method=method, tol=1e-3, checkpoint=file), whole)
    for copy in (copies[0], copies[len(copies) // 2]):  # the run above went on from the last one
        file.write_bytes(copy)
        assert_same(sp.solve(f, method=method, tol=1e-3, checkpoint=file), whole)


@pytest.mark.parametrize("window", [6, 30])
def test_memories_of_large_problems_go_on(window, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[sp.Anderson.__module__], "ROOM", 0)
    f, method = case("balanced")[0], sp.Anderson(sp.LPDGS(), window)
    whole = sp.solve(f, method=method, tol=1e-4)
    for budget in (2, 9, 13, 17, 25):
        sp.solve(f, method=method, tol=1e-4, max_calls=budget, checkpoint=tmp_path / "run", checkpoint_every=1e9)
    assert whole.iterations > 25
    assert_same(sp.solve(f, method=method, tol=1e-4, checkpoint=tmp_path / "run"), whole)


def test_the_point_of_a_file_is_certified_where_no_step_is_left(tmp_path):
    """The file was written after the last step that the budget allows."""
    f, file = case("balanced")[0], tmp_path / "run"
    whole = sp.solve(f, method="lpd-gs", tol=1e-12, max_calls=25, checkpoint=file)
    assert whole.history[-1].iteration == whole.iterations
    assert_same(sp.solve(f, method="lpd-gs", tol=1e-12, max_calls=25, checkpoint=file), whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "method"),
    thinned(
        ["logistic, mu_x < mu_y", "L_x >> L_y", "wide", "sparse A", "operator A", "1 x 1"],
        ["auto", "catalyst-dippa", "lpd-slide", "anderson-imex"],
        every=2,
    ),
)
def test_any_kind_of_problem_goes_on(problem, method, tmp_path):
    f = case(problem)[0]
    whole = sp.solve(f, method=method, tol=1e-4)
    for budget in (0, 2, 9, 40, 150, 700):
        sp.solve(f, method=method, tol=1e-4, max_calls=budget, checkpoint=tmp_path / "run", checkpoint_every=1e9)
    assert_same(sp.solve(f, method=method, tol=1e-4, checkpoint=tmp_path / "run"), whole)


@pytest.mark.slow
def test_a_change_of_method_and_its_reasons_survive(tmp_path, monkeypatch):
    """The first choice of auto falls behind; the checkpoint records which method followed, and why."""
    f = random_logistic(20, 15, 100, 50, 200, seed=1)
    for method in (sp.IMEX, sp.CondatVu, sp.Newton, sp.DIPPA):
        monkeypatch.setattr(method, "step", stuck)
    whole = sp.solve(f, tol=1e-7)
    assert "dippa fell behind, then lpd-gs" in whole.message
    total = max(whole.calls.values())
    for budget in (total // 3, total // 2, total - 20):
        sp.solve(f, tol=1e-7, max_calls=budget, checkpoint=tmp_path / "run", checkpoint_every=1e9)
    assert_same(sp.solve(f, tol=1e-7, checkpoint=tmp_path / "run"), whole)


def test_the_plan_of_auto_is_saved_and_not_made_again(tmp_path):
    f = random_logistic(14, 10, 60, 60, 20, seed=6)
    expensive = {"grad_g": 100.0, "grad_h": 100.0}
    whole = sp.solve(f, tol=1e-8, costs=expensive)
    assert whole.method != sp.solve(f, tol=1e-8).method
    sp.solve(f, tol=1e-8, costs=expensive, max_calls=30, checkpoint=tmp_path / "run")
    assert_same(sp.solve(f, tol=1e-8, checkpoint=tmp_path / "run"), whole)  # without costs=, which the file keeps


@pytest.mark.slow
def test_rounds_on_a_copy_of_A_survive(tmp_path):
    f = random_quadratic(30, 20, 300, 300, 100, seed=3)
    whole = sp.solve(f, method="lpd-gs", tol=1e-11, storage="float32")
    for budget in (100, 300, 900, 1500):
        sp.solve(f, method="lpd-gs", tol=1e-11, storage="float32", max_calls=budget, checkpoint=tmp_path / "run")
    assert_same(sp.solve(f, method="lpd-gs", tol=1e-11, storage="float32", checkpoint=tmp_path / "run"), whole)


def steep():
    """A gradient that is flat near the start: the estimate of L is corrected twice or more on the way."""
    return sp.Saddle(
        sp.Smooth(lambda x: 0.1 * x + 5.0 * (np.tanh(8.0 * (x - 3.0)) + 1.0) - 5.0, mu=0.1, L=None),
        sp.Quadratic(1.0, np.ones(4)),
        0.1 * np.eye(4),
    )


@pytest.mark.slow
def test_a_corrected_estimate_survives(tmp_path):
    whole = sp.solve(steep(), method="dippa", tol=1e-8)
    assert whole.provenance["corrections"]
    for budget in range(5, max(whole.calls.values()), 17):
        sp.solve(steep(), method="dippa", tol=1e-8, max_calls=budget, checkpoint=tmp_path / "run")
    resumed = sp.solve(steep(), method="dippa", tol=1e-8, checkpoint=tmp_path / "run")
    assert_same(resumed, whole)
    assert resumed.provenance["corrections"] == whole.provenance["corrections"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float32_goes_on(dtype, tmp_path):
    rng = np.random.default_rng(0)
    P, A = np.geomspace(0.05, 1, 20).astype(dtype), rng.standard_normal((20, 20)).astype(dtype)
    f = sp.Saddle(sp.Quadratic(P, P), sp.Quadratic(P, P), A)
    whole = sp.solve(f, method="anderson-lpd-gs", tol=1e-3)
    for budget in (10, 50):
        sp.solve(f, method="anderson-lpd-gs", tol=1e-3, max_calls=budget, checkpoint=tmp_path / "run")
    resumed = sp.solve(f, method="anderson-lpd-gs", tol=1e-3, checkpoint=tmp_path / "run")
    assert resumed.x.dtype == dtype
    assert_same(resumed, whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "method"),
    [("torch", "krylov"), ("torch", "catalyst-dippa"), ("jax", "lpd-gs"), ("array-api-strict", "anderson-lpd-gs")],
)
def test_other_libraries_go_on(library, method, tmp_path):
    f = in_library(case("balanced")[0], load_library(library))
    for budget in (20, 60):
        sp.solve(f, method=method, tol=1e-8, max_calls=budget, checkpoint=tmp_path / "run")
    result = sp.solve(f, method=method, tol=1e-8, checkpoint=tmp_path / "run")
    assert result.solved
    assert type(result.x) is type(f.space.zeros(1))


# -- what a second call may change ------------------------------------------------------------------------------------


def test_a_finished_run_returns_at_once(tmp_path):
    f = case("balanced")[0]
    first = sp.solve(f, method="dippa", tol=1e-8, checkpoint=tmp_path / "run")
    again = sp.solve(f, method="dippa", tol=1e-8, checkpoint=tmp_path / "run")
    assert_same(again, first)


def test_a_smaller_tol_goes_on_with_the_steps_of_one_run(tmp_path):
    """Where certificates are taken, and with it the number of steps, depends on tol; the steps do not."""
    f = case("balanced")[0]
    coarse = sp.solve(f, method="dippa", tol=1e-3, checkpoint=tmp_path / "run")
    fine = sp.solve(f, method="dippa", tol=1e-9, checkpoint=tmp_path / "run")
    assert coarse.calls["A"] < fine.calls["A"]
    assert fine.solved
    method = sp.make_method("dippa")
    view = method.normal_form(f)
    state = method.init(view.problem, *view.to(np.zeros(f.shape[0]), np.zeros(f.shape[1])))
    for _ in range(fine.iterations):
        state = method.step(view.problem, state)
    x, y = view.back(state.x, state.y)
    assert fine.x.tobytes() == x.tobytes()
    assert fine.y.tobytes() == y.tobytes()


@pytest.mark.slow
def test_time_goes_on_too(tmp_path, clock):
    quick = random_quadratic(150, 100, 1e6, 1e6, 1e6, seed=0)

    def slow(x):
        clock.now += 1e-3
        return quick.g.grad(x)

    f = sp.Saddle(sp.Smooth(slow, mu=quick.mu_x, L=quick.L_x), quick.h, quick.A)
    file = tmp_path / "run"
    first = sp.solve(f, method="aipfb", tol=1e-12, max_seconds=0.3, checkpoint=file)
    assert first.status == "out of time"
    assert f"raise max_seconds and call again to go on from {file}" in first.message
    again = sp.solve(f, method="aipfb", tol=1e-12, max_seconds=0.3, checkpoint=file)
    assert again.status == "out of time"
    assert again.iterations < 1.5 * first.iterations  # with a full budget of seconds it would be twice as many
    more = sp.solve(f, method="aipfb", tol=1e-12, max_seconds=2.0, checkpoint=file)
    assert more.iterations > first.iterations


def test_calls_that_recognise_the_problem_are_counted(tmp_path):
    f = case("balanced")[0]
    plain = sp.solve(f, method="dippa")
    kept = sp.solve(f, method="dippa", checkpoint=tmp_path / "run")
    assert {name: n + 1 for name, n in plain.setup_calls.items()} == kept.setup_calls


# -- signals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_returns_the_best_point(number, tmp_path):
    f = case("logistic")[0]
    whole = sp.solve(f, method="dippa", tol=1e-9)
    before, calls = signal.getsignal(signal.SIGTERM), []

    def grad(x):
        calls.append(1)
        if len(calls) == 100:
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), signal.SIGTERM) if number == signal.SIGTERM else None  # one more changes nothing
        return f.g.grad(x)

    g = sp.Smooth(grad, mu=f.mu_x, L=f.L_x, space=f.g.space)
    part = sp.solve(sp.Saddle(g, f.h, f.A), method="dippa", tol=1e-9, checkpoint=tmp_path / "run")
    assert part.status == "interrupted"
    assert part.certificate.distance < np.inf
    assert f"call again to go on from {tmp_path / 'run'}" in part.message
    assert ("SIGTERM" in part.message) == (part.provenance["signal"] == "SIGTERM") == (number == signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
    rest = sp.solve(sp.Saddle(g, f.h, f.A), method="dippa", tol=1e-9, checkpoint=tmp_path / "run")
    assert rest.solved
    assert rest.x.tobytes() == whole.x.tobytes()


def test_without_a_checkpoint_nobody_handles_sigterm():
    seen = []
    sp.solve(case("balanced")[0], callback=lambda _: seen.append(signal.getsignal(signal.SIGTERM)))
    assert set(seen) == {signal.getsignal(signal.SIGTERM)}


def test_a_thread_leaves_signals_alone(tmp_path):
    seen, f = [], case("balanced")[0]
    before = signal.getsignal(signal.SIGTERM)

    def work():
        result = sp.solve(
            f, checkpoint=tmp_path / "run", callback=lambda _: seen.append(signal.getsignal(signal.SIGTERM))
        )
        seen.append(result.solved)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert set(seen) == {before, True}


# -- files that do not belong to the run ------------------------------------------------------------------------------


def written(folder, **options):
    """A problem, and its checkpoint with an older one beside it."""
    f, file = case("balanced")[0], folder / "run"
    sp.solve(f, tol=1e-9, max_calls=30, checkpoint=file, **({"method": "dippa"} | options))
    sp.solve(f, tol=1e-9, max_calls=90, checkpoint=file, **({"method": "dippa"} | options))
    assert store.older(file).exists()
    return f, file


def other(f, **parts):
    return sp.Saddle(parts.get("g", f.g), parts.get("h", f.h), parts.get("A", f.A.A))


def changed(A):
    A = A.copy()
    A[3, 2] *= 1.0 + 1e-9
    return A


REFUSALS = {
    "is a run of dippa, and aipfb was asked for": lambda f: (f, {"method": "aipfb"}),
    "is a run of dippa, and auto was asked for": lambda f: (f, {"method": "auto"}),
    "is a run of dippa with other options": lambda f: (f, {"method": sp.DIPPA("paper")}),
    "is a run with storage None, not float32": lambda f: (f, {"storage": "float32"}),
    "is of a problem of shape [14, 10], and this one is 10 x 14": lambda f: (other(f, g=f.h, h=f.g, A=f.A.A.T), {}),
    "is of a problem in numpy float64, and this one is in numpy float32": lambda f: (
        sp.Saddle(*(sp.Quadratic(1.0) for _ in "gh"), f.A.A.astype(np.float32)),
        {},
    ),
    "is of a problem with L of g": lambda f: (other(f, g=sp.Smooth(f.g.grad, mu=f.mu_x, L=2 * f.L_x)), {}),
    "is of a problem with mu of h": lambda f: (other(f, h=sp.Smooth(f.h.grad, mu=f.mu_y / 2, L=f.L_y)), {}),
    "is of a problem with |A|": lambda f: (other(f, A=2 * f.A.A), {}),
    "the product with A at a probe differs": lambda f: (other(f, A=changed(f.A.A)), {}),
    "the gradient of g at a probe differs": lambda f: (
        other(f, g=sp.Smooth(lambda x: f.g.grad(x) + 1e-6, mu=f.mu_x, L=f.L_x)),
        {},
    ),
    "the gradient of h at a probe differs": lambda f: (
        other(f, h=sp.Smooth(lambda y: f.h.grad(y) * (1 + 1e-9), mu=f.mu_y, L=f.L_y)),
        {},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("sentence", REFUSALS)
def test_a_checkpoint_of_another_run_is_refused(sentence, tmp_path):
    f, file = written(tmp_path)
    g, options = REFUSALS[sentence](f)
    kept = file.read_bytes()
    with pytest.raises(sp.ProblemError) as caught:
        sp.solve(g, tol=1e-9, checkpoint=file, **({"method": "dippa"} | options))
    assert sentence in str(caught.value)
    assert str(caught.value).endswith("delete it to begin anew, or name another file")
    assert file.read_bytes() == kept


def rewritten(file, change):
    """The same file with other values and a checksum that is right."""
    values, arrays = store.read(file, 1 << 30)
    change(values)
    store.write(file, store.Content(values, arrays), 1 << 30)


def test_another_version_is_refused_and_another_patch_is_not(tmp_path):
    f, file = written(tmp_path)
    rewritten(file, lambda values: values["identity"].update(version="99.1.0"))
    store.older(file).unlink()
    with pytest.raises(sp.ProblemError, match=r"was written by saddlepoint 99\.1\.0, and this is"):
        sp.solve(f, method="dippa", checkpoint=file)
    series = ".".join(sp.__version__.split(".")[:2])
    rewritten(file, lambda values: values["identity"].update(version=f"{series}.99"))
    assert sp.solve(f, method="dippa", checkpoint=file).solved
    rewritten(file, lambda values: values["identity"].update(format=99))
    store.older(file).unlink()
    with pytest.raises(sp.ProblemError, match="has format 99; this version reads 4"):
        sp.solve(f, method="dippa", checkpoint=file)


def test_the_older_file_is_offered_where_it_fits(tmp_path):
    f, file = written(tmp_path)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(sp.ProblemError, match="is damaged: it is cut off") as caught:
        sp.solve(f, method="dippa", tol=1e-9, checkpoint=file)
    assert f"but {store.older(file)} is whole and fits: rename it to run to go on from there" in str(caught.value)
    os.replace(store.older(file), file)
    assert_same(sp.solve(f, method="dippa", tol=1e-9, checkpoint=file), sp.solve(f, method="dippa", tol=1e-9))


def test_a_kill_between_two_names_loses_nothing(tmp_path):
    f, file = written(tmp_path)
    os.replace(file, store.older(file))  # as after a kill between the two renames
    assert_same(sp.solve(f, method="dippa", tol=1e-9, checkpoint=file), sp.solve(f, method="dippa", tol=1e-9))


def test_files_of_others_are_left_alone(tmp_path):
    """The names of these files are like those that a checkpoint might use."""
    for name in ("run.new", "run.old", "run.tmp"):
        (tmp_path / name).write_bytes(b"mine")
    sp.solve(case("balanced")[0], method="dippa", checkpoint=tmp_path / "run", checkpoint_every=0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.new", "run.old", "run.tmp"]
    assert {(tmp_path / name).read_bytes() for name in ("run.new", "run.old", "run.tmp")} == {b"mine"}


def test_every_cut_and_every_changed_byte_is_found_out(tmp_path):
    f, file = written(tmp_path)
    data = file.read_bytes()
    rng = np.random.default_rng(0)
    for at in [0, 1, 22, 23, 30, 60, len(data) // 2, len(data) - 1, *rng.integers(0, len(data), 60).tolist()]:
        flipped = bytearray(data)
        flipped[at] ^= 1 << int(rng.integers(8))
        for bad in (bytes(flipped), data[:at]):
            file.write_bytes(bad)
            with pytest.raises(sp.ProblemError, match=r"is damaged|is not a checkpoint"):
                store.read(file, 1 << 30)
    file.write_bytes(data + b"x")
    with pytest.raises(sp.ProblemError, match="is damaged"):
        sp.solve(f, method="dippa", checkpoint=file)


@given(st.binary(max_size=300))
def test_random_bytes_with_a_right_checksum_are_refused(tmp_path_factory, body):
    import hashlib

    file = tmp_path_factory.mktemp("other") / "run"
    file.write_bytes(store.MAGIC + hashlib.sha256(body).digest() + body)
    with pytest.raises(sp.ProblemError, match="is not a checkpoint"):
        sp.solve(case("balanced")[0], method="dippa", checkpoint=file)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["float", "tuple", "dict", "array", "number", "rows", "most", "random", "of", "with", "function", "foreign"]
    ), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.slow
@example(content=None, where="run")
@given(JSON, st.sampled_from(["run", "method_state", "identity"]))
def test_other_content_in_the_place_of_a_run_is_refused(tmp_path_factory, content, where):
    f, file = written(tmp_path_factory.mktemp("other"))
    rewritten(file, lambda values: values.update({where: content}))
    os.remove(store.older(file))
    if content is None and where == "method_state":
        assert sp.solve(f, method="dippa", tol=1e-9, checkpoint=file).solved  # from the start of the method
        return
    with pytest.raises(sp.ProblemError):
        sp.solve(f, method="dippa", tol=1e-9, checkpoint=file)


def test_a_huge_file_is_not_read(tmp_path):
    file = tmp_path / "run"
    with open(file, "wb") as handle:
        handle.write(store.MAGIC)
        handle.truncate(1 << 40)
    with pytest.raises(sp.ProblemError, match=r"above the limit of 0\.0643 GiB for a problem of this size"):
        sp.solve(case("balanced")[0], checkpoint=file)


def test_names_are_looked_up_and_never_imported(tmp_path):
    f, file = written(tmp_path)
    for name in (
        "os:system",
        "subprocess:Popen",
        "builtins:eval",
        "saddlepoint.problems.saddle:Saddle",
        "pathlib:Path",
    ):
        rewritten(file, lambda values, name=name: values.update(method_state={"of": name, "with": {}}))
        with pytest.raises(sp.ProblemError, match="holds no state of this method"):
            sp.solve(f, method="dippa", tol=1e-9, checkpoint=file)


def forged(file, change):
    """The same file with other arrays and a checksum that is right."""
    values, arrays = store.read(file, 1 << 30)
    store.write(file, store.Content(values, [change(k, array) for k, array in enumerate(arrays)]), 1 << 30)


RESHAPED = {
    "shorter": lambda a: a[:-1],
    "twice": lambda a: np.concatenate([a, a]),
    "a row": lambda a: a[None],
    "a column": lambda a: a.reshape(-1, 1),
    "empty": lambda a: a[:0],
}


@pytest.mark.parametrize(
    ("change", "method"),
    thinned(RESHAPED, ["dippa", "lpd-gs", "anderson-condat-vu", "catalyst-dippa", "auto"], every=2),
)
def test_a_forged_array_is_refused_whichever_it_is(tmp_path, change, method):
    """Every array of a run of other shapes, one at a time, under a checksum that is right."""
    f = sp.Saddle(sp.Smooth(lambda x: x + np.tanh(x), mu=1.0, L=2.0), sp.Quadratic(1.0, np.ones(5)), np.ones((7, 5)))
    file = tmp_path / "run"
    sp.solve(f, method=method, tol=1e-12, max_calls=40, checkpoint=file)
    data = file.read_bytes()
    _, arrays = store.read(file, 1 << 30)
    for at, array in enumerate(arrays):
        if array.ndim != 1:  # the table of the history, and matrices that grow with the steps
            continue
        file.write_bytes(data)
        forged(file, lambda k, a, at=at: RESHAPED[change](a) if k == at else a)
        store.older(file).unlink(missing_ok=True)
        with pytest.raises(sp.ProblemError, match=r"does not fit this run|holds no state|is not a checkpoint"):
            sp.solve(f, method=method, tol=1e-12, checkpoint=file)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "new"), [
    (("with", "iterations"), -1),
    (("with", "iterations"), {"float": "nan"}),
    (("with", "units", "with", "a"), 10**9),
    (("with", "schedule", "with", "methods"), {"tuple": [3]}),
    (("with", "schedule", "with", "notes"), "none"),
    (("with", "monitor", "with", "checks"), {"float": "nan"}),
    (("with", "monitor", "with", "next_check"), None),
    (("with", "monitor", "with", "scale"), {"float": "nan"}),
    (("with", "monitor", "with", "scale"), -1),
    (("with", "counts", "with", "calls"), {"dict": [["grad_g", 1]]}),
    (("with", "learned", "with", "corrections"), {"dict": [["g.mu", 3]]}),
    (("with", "best"), {"tuple": []}),
    (("with", "session"), None),
])  # fmt: skip
def test_a_forged_number_is_refused(tmp_path, path, new):
    f, file = written(tmp_path)
    store.older(file).unlink()
    rewritten(file, lambda values: values.update(run=put(values["run"], path, new)))
    with pytest.raises(sp.ProblemError):
        sp.solve(f, method="dippa", tol=1e-9, checkpoint=file)


def own_gradient(mu=1.0):
    """A problem with a gradient of the caller; its true mu is 1."""
    g = sp.Smooth(lambda x: x + np.tanh(x) - 100.0, mu=mu, L=3.0)
    return sp.Saddle(g, sp.Quadratic(1.0, np.ones(5)), np.ones((7, 5)))


@pytest.mark.slow
@pytest.mark.parametrize(("function", "constant", "used"), [
    ("g", "mu", 1e9), ("g", "mu", 1.0 + 1e-9), ("g", "mu", 0.0), ("g", "mu", -1.0), ("g", "mu", float("nan")),
    ("g", "L", 2.0), ("g", "L", float("inf")), ("h", "mu", 0.5), ("h", "L", 9.0), ("A", "norm", 1e-3),
    ("A", "norm", 1e9), ("A", "mu", 0.5), ("f", "mu", 0.5), ("g", "norm", 0.5),
])  # fmt: skip
def test_a_file_cannot_improve_a_constant(function, constant, used, tmp_path):
    """A file with mu = 1e9 would certify any point. Constants of ready functions and of a matrix are never replaced."""
    f, file = own_gradient(), tmp_path / "run"
    sp.solve(f, method="dippa", tol=1e-9, max_calls=30, checkpoint=file)
    forged = correction(function, constant, used)
    path = ("with", "learned", "with", "corrections")
    rewritten(file, lambda values: values.update(run=put(values["run"], path, forged)))
    store.older(file).unlink()
    with pytest.raises(sp.ProblemError, match="it replaces"):
        sp.solve(f, method="dippa", tol=1e-9, checkpoint=file)


def test_a_file_can_only_weaken_a_certificate(tmp_path):
    f, file = own_gradient(), tmp_path / "run"
    sp.solve(f, method="dippa", tol=1e-9, max_calls=30, checkpoint=file)
    path = ("with", "learned", "with", "corrections")
    rewritten(file, lambda values: values.update(run=put(values["run"], path, correction("g", "mu", 0.01))))
    part = sp.solve(f, method="dippa", tol=1e-9, max_calls=0, checkpoint=file)
    assert part.certificate.distance > 10.0 * f.certificate(part.x, part.y).distance
    assert part.provenance["corrections"] == [{"function": "g", "constant": "mu", "given": 1.0, "used": 0.01}]


@pytest.mark.parametrize("field", ["audited", "diagnosed", "examined", "at_rounding_floor"])
def test_a_file_cannot_say_that_a_problem_was_examined(field, tmp_path):
    f, file = own_gradient(), tmp_path / "run"
    sp.solve(f, method="dippa", tol=1e-9, max_calls=30, checkpoint=file)
    rewritten(file, lambda values: values["run"]["with"]["monitor"]["with"].update({field: True}))
    with pytest.raises(sp.ProblemError, match=field):
        sp.solve(f, method="dippa", tol=1e-9, checkpoint=file)


@pytest.mark.slow
def test_a_problem_is_examined_again_when_a_run_goes_on(tmp_path, monkeypatch):
    """Every session that ends as solved has examined the problem, also if an earlier one had done so."""
    examined, examine = [], Audit.examine
    monkeypatch.setattr(Audit, "examine", lambda self, *point: examined.append(1) or examine(self, *point))
    for sessions, tol in enumerate((1e-2, 1e-6, 1e-9, 1e-9), start=1):
        assert sp.solve(own_gradient(), method="dippa", tol=tol, checkpoint=tmp_path / "run").solved
        assert len(examined) == sessions


@pytest.mark.parametrize("claimed", [0.0, 1.0])
def test_a_file_cannot_hide_noise(claimed, tmp_path):
    """A noise of 0 is measured again, and a larger one stays."""
    f, file = own_gradient(), tmp_path / "run"
    g = sp.Smooth(lambda x: f.g.grad(x) + 1e-6 * np.sin(1e12 * x), mu=1.0, L=3.0)
    noisy = sp.Saddle(g, f.h, f.A)
    first = sp.solve(noisy, method="dippa", tol=1e-2, checkpoint=file)
    assert first.solved
    assert 0.0 < first.certificate.noise_x < 1e-3
    noise, path = {"dict": [["g", {"float": claimed.hex()}]]}, ("with", "learned", "with", "noise")
    rewritten(file, lambda values: values.update(run=put(values["run"], path, noise)))
    again = sp.solve(noisy, method="dippa", tol=1e-2, max_calls=400, checkpoint=file)
    assert again.certificate.noise_x == max(claimed, first.certificate.noise_x)
    assert again.solved == (claimed == 0.0)


def test_exceptions_of_the_caller_are_not_blamed_on_the_file(tmp_path):
    f, file = own_gradient(), tmp_path / "run"
    sp.solve(f, method="dippa", tol=1e-9, max_calls=30, checkpoint=file)
    calls = []

    def grad(x):
        calls.append(1)
        if len(calls) > 10:
            raise KeyError("of the caller")
        return f.g.grad(x)

    with pytest.raises(KeyError, match="of the caller"):
        sp.solve(sp.Saddle(sp.Smooth(grad, mu=1.0, L=3.0), f.h, f.A), method="dippa", tol=1e-9, checkpoint=file)

    def callback(result):
        raise TypeError("of the callback")

    with pytest.raises(TypeError, match="of the callback"):
        sp.solve(f, method="dippa", tol=1e-9, checkpoint=file, callback=callback)


def test_numbers_that_no_step_can_use_are_blamed_on_the_file(tmp_path):
    f, file = written(tmp_path)
    store.older(file).unlink()
    rewritten(file, lambda values: values["method_state"]["with"].update(z=None))
    with pytest.raises(sp.ProblemError, match=rf"cannot go on from {file}: TypeError: .*; delete it to begin anew"):
        sp.solve(f, method="dippa", tol=1e-9, checkpoint=file)


def test_a_run_that_breaks_off_names_the_file_it_came_from(tmp_path):
    f, file = case("balanced")[0], tmp_path / "run"
    words = f"the run went on from {file}; delete it to begin anew"
    fresh = sp.solve(f, method="lpd-gs", tol=1e-16)
    assert fresh.status == sp.Status.STALLED
    assert "begin anew" not in fresh.message
    assert words not in sp.solve(f, method="lpd-gs", tol=1e-16, max_calls=30, checkpoint=file).message
    result = sp.solve(f, method="lpd-gs", tol=1e-16, checkpoint=file)
    assert result.status == sp.Status.STALLED
    assert words in result.message


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_except(forged_checkpoints.CASES, "dippa"))
def test_a_forged_file_ends_in_a_sentence_or_in_a_true_certificate(name):
    """Some of the changes that ``python benchmarks/forged_checkpoints.py`` makes; it makes all of them."""
    found = list(forged_checkpoints.campaign(name, every=401, first=len(name)))
    assert len(found) > 10
    assert not [outcome for outcome in found if forged_checkpoints.bad(name, outcome)]
    assert {"refused", "solved, true", "unsolved, true"} & {outcome.kind for outcome in found}


BAD = [
    (3, "checkpoint is 3; expected a file name"),
    (b"run", "checkpoint is b'run'; expected a file name"),
    ("a\0b", "expected a file name"),
    ("/", "which is a folder; expected a file name"),
    ("/nowhere/run", "is in the folder /nowhere, which does not exist; make it first"),
    ("/dev/null", "is not a file"),
    ("x" * 300, "File name too long"),
]


@pytest.mark.parametrize(("path", "sentence"), BAD, ids=[sentence for _, sentence in BAD])
def test_bad_names_are_refused(path, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        sp.solve(case("balanced")[0], checkpoint=path)


@pytest.mark.parametrize("every", [-1, float("nan"), "often", None])
def test_bad_intervals_are_refused(every, tmp_path):
    with pytest.raises(sp.ProblemError, match=r"checkpoint_every is .*; expected seconds, 0 or more"):
        sp.solve(case("balanced")[0], checkpoint=tmp_path / "run", checkpoint_every=every)


def test_a_link_is_followed_to_its_file(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "run")
    sp.solve(case("balanced")[0], checkpoint=tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "deep" / "run").is_file()


# -- values that are stored -------------------------------------------------------------------------------------------


class Nested(NamedTuple):
    a: object
    b: object = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    c: object


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats()
    | st.lists(st.floats()).map(np.array)
    | st.lists(st.integers(-5, 5)).map(lambda items: np.array(items, np.int32))
    | st.floats(width=32).map(np.float32)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(Nested, inner, inner)
        | st.builds(Frozen, inner)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
)


def bits(value):
    """The types and bits of a value, by which two values are compared."""
    if isinstance(value, np.ndarray | np.generic):
        return type(value), value.dtype, value.shape, value.tobytes()
    if isinstance(value, float):
        return "nan" if value != value else value.hex()
    if isinstance(value, Frozen):
        return Frozen, bits(value.c)
    if isinstance(value, tuple | list):
        return type(value), [bits(item) for item in value]
    if isinstance(value, dict):
        return {name: bits(item) for name, item in value.items()}
    return type(value), value


def through_a_file(value, folder):
    packer = Packer(known_classes(Frozen(0), Nested(0)))
    store.write(folder / "value", store.Content({"value": packer.pack(value)}, packer.arrays), 1 << 30)
    values, arrays = store.read(folder / "value", 1 << 30)
    return Unpacker(packer.classes, arrays, NUMPY64, 1 << 30).unpack(values["value"])


@given(VALUES)
def test_values_come_back_to_the_bit(tmp_path_factory, value):
    assert bits(through_a_file(value, tmp_path_factory.mktemp("values"))) == bits(value)


def test_rows_orders_and_random_states_come_back(tmp_path):
    rows = Rows.empty(5, np.zeros(3)).append(np.arange(3.0)).append(np.ones(3))
    again = through_a_file(rows, tmp_path)
    assert again.count == 2
    assert again.buffer.shape == (5, 3)
    np.testing.assert_array_equal(again.matrix, rows.matrix)
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    back = through_a_file(fortran, tmp_path)
    assert back.flags.f_contiguous
    np.testing.assert_array_equal(back, fortran)
    for bits_ in (np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64):
        rng = np.random.Generator(bits_(3))
        rng.standard_normal(7)
        twin = through_a_file(rng, tmp_path)
        np.testing.assert_array_equal(twin.standard_normal(5), rng.standard_normal(5))


class Wandering(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    seed: int
    k: int


class Wander(sp.Method):
    """Extragradient with noise of its own, from a seed in its state."""

    def init(self, f, x, y):
        return Wandering(x, y, 7, 0)

    def step(self, f, s):
        rng = np.random.default_rng((s.seed, s.k))
        t = 0.5 / (f.L + f.norm)
        Fx, Fy = f.field(s.x, s.y)
        Fx, Fy = f.field(s.x - t * Fx, s.y - t * Fy)
        x = s.x - t * Fx
        return Wandering(x + 1e-9 * rng.standard_normal(x.shape), s.y - t * Fy, s.seed, s.k + 1)


def test_a_method_of_ones_own_goes_on(tmp_path):
    f = case("balanced")[0]
    whole = sp.solve(f, method=Wander(), tol=1e-4)
    for budget in (30, 200):
        sp.solve(f, method=Wander(), tol=1e-4, max_calls=budget, checkpoint=tmp_path / "run")
    assert_same(sp.solve(f, method=Wander(), tol=1e-4, checkpoint=tmp_path / "run"), whole)


def test_a_state_that_cannot_be_written_is_refused_at_once(tmp_path):
    class Odd(Wander):
        def step(self, f, s):
            return Wandering(s.x, s.y, object(), 0)

    with pytest.raises(sp.ProblemError, match="a checkpoint cannot hold a builtins:object; let the state"):
        sp.solve(case("balanced")[0], method=Odd(), checkpoint=tmp_path / "run")


def test_the_text_of_a_file_is_plain(tmp_path):
    _, file = written(tmp_path)
    data = file.read_bytes()
    start = len(store.MAGIC) + store.SUM
    length = int.from_bytes(data[start : start + store.LENGTH], "big")
    values = json.loads(data[start + store.LENGTH :][:length])
    assert values["values"]["identity"]["label"] == "dippa"
    assert b"pickle" not in data


def test_time_that_is_up_before_a_factor_is_made_again(tmp_path):
    f = random_quadratic(60, 40, 1e5, 1e5, 1e5, seed=0)
    method = sp.DIPPA(coupling="factor")
    first = sp.solve(f, method=method, tol=1e-12, max_calls=300, checkpoint=tmp_path / "run")
    assert first.status == "out of calls"
    again = sp.solve(f, method=method, tol=1e-12, max_seconds=1e-6, checkpoint=tmp_path / "run")
    assert again.status == "out of time"
    assert again.certificate == first.certificate


def test_a_checkpoint_of_almost_the_same_game_is_refused_with_numbers_that_differ(tmp_path):
    random = np.random.default_rng(2)
    A, file = random.standard_normal((30, 30)), tmp_path / "run.ckpt"
    payoffs = A, A + 1e-7 * random.standard_normal(A.shape)
    games = [sp.Saddle(sp.Simplex(), sp.Simplex(), payoff) for payoff in payoffs]
    sp.solve(games[0], gap=1e-9, max_calls=9, checkpoint=file)
    with pytest.raises(sp.ProblemError, match="is of a problem with") as refused:
        sp.solve(games[1], gap=1e-9, checkpoint=file)
    then, now = str(refused.value).partition("with |A| = ")[2].split(", and this one has ")
    assert then != now.split(";")[0]
