"""Processes that are killed or terminated, or whose disk is full, lose nothing that was written."""

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.problems.generators import random_logistic

HERE = Path(__file__).parent
pytestmark = pytest.mark.slow
KILLS = 20
METHODS = ("auto", "dippa", "catalyst-aipfb")


def test_twenty_kills_leave_the_bits_of_the_answer(tmp_path):
    """SIGKILL at random moments, each time gone on from the file: the same certified answer, to the bit."""
    kills, tried = 0, set()
    for seed in count():
        method = METHODS[seed % len(METHODS)]
        folder = tmp_path / str(seed)
        folder.mkdir()
        command = [sys.executable, str(HERE / "killed.py"), str(folder), method, str(seed)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=3000, check=False)
        assert run.returncode == 0, run.stderr
        found = json.loads(run.stdout)
        assert found["solved"]
        assert found["same"]
        assert found["broken"] == 0  # after every kill the file was complete
        kills += found["kills"]
        tried.add(method)
        if kills >= KILLS and tried == set(METHODS):
            break
        assert seed < 40


# -- signals to a real process ----------------------------------------------------------------------------------------

PROBLEM = """
A = "A.npy"
[g]
kind = "quadratic"
P = "P.npy"
b = "P.npy"
[h]
kind = "quadratic"
P = 1e-5
"""
COMMAND = [sys.executable, "-c", "from saddlepoint.commands import main; main()", "solve", "problem.toml"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_line_is_stopped_and_goes_on(number, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "P.npy", np.geomspace(1e-5, 1.0, 60))
    np.save(tmp_path / "A.npy", rng.standard_normal((60, 60)))
    (tmp_path / "problem.toml").write_text(PROBLEM)
    command = [
        *COMMAND,
        "--method",
        "ogda",
        "--tol",
        "1e-3",
        "--checkpoint",
        "run.ckpt",
        "--checkpoint-every",
        "0.1",
        "--json",
    ]
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "run.ckpt.old").exists() and run.poll() is None:
        time.sleep(0.01)
    run.send_signal(number)
    out, err = run.communicate(timeout=300)
    assert run.returncode == 128 + number, err
    assert json.loads(out)["status"] == "interrupted"
    assert err == "the run is in run.ckpt; the same command with --resume goes on from there\n"
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert again.returncode == 2
    assert again.stderr == "error: run.ckpt exists already; add --resume to go on from it, or delete it to begin anew\n"
    more = [*command, "--resume", "--max-calls", str(json.loads(out)["calls"]["A"] + 100)]
    last = subprocess.run(more, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    found = json.loads(last.stdout)
    assert last.returncode == 1
    assert found["status"] == "out of calls"
    assert found["provenance"]["resumed"] == 1
    assert found["iterations"] > json.loads(out)["iterations"]


def test_resume_needs_a_file(tmp_path):
    run = subprocess.run([*COMMAND, "--resume"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 2
    assert run.stderr == "error: --resume needs a file to go on from; add --checkpoint FILE\n"


def test_the_command_line_adapts_a_wrong_constant(tmp_path):
    np.save(tmp_path / "A.npy", np.eye(3))
    (tmp_path / "problem.toml").write_text(
        'A = "A.npy"\n[g]\nkind = "quadratic"\nP = [1.0, 5.0, 30.0]\nb = [1.0, 1.0, 1.0]\nmu = 1.0\nL = 2.0\n'
        '[h]\nkind = "quadratic"\nP = 1.0\n[solve]\nx0 = [5.0, 5.0, 5.0]\nmethod = "dippa"\n'
    )
    runs = [
        subprocess.run([*COMMAND, *more], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        for more in ([], ["--on-violation", "adapt"], ["--on-violation", "ignore"])
    ]
    assert [run.returncode for run in runs] == [2, 0, 2]
    assert runs[0].stderr.startswith("error: L of g is too small: L = 2 was given")
    assert "L of g = 2 was refuted, and" in runs[1].stdout
    assert runs[2].stderr == "error: on_violation is 'ignore'; expected one of raise, adapt\n"


# -- a full disk ------------------------------------------------------------------------------------------------------


def test_a_full_disk_loses_the_new_checkpoint_and_never_the_old(tmp_path):
    """The system refuses to write more than a few bytes, after a first run has left a checkpoint."""
    script = textwrap.dedent("""
        import resource, signal, sys, warnings
        import saddlepoint as sp
        from saddlepoint.problems.generators import random_logistic

        f = random_logistic(30, 20, 1000, 300, 30, seed=5)
        first = sp.solve(f, method="dippa", tol=1e-7, max_calls=200, checkpoint="run")
        kept = open("run", "rb").read()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = sp.solve(f, method="dippa", tol=1e-7, checkpoint="run", checkpoint_every=0)
        whole = sp.solve(f, method="dippa", tol=1e-7)
        assert result.solved, result
        assert result.x.tobytes() == whole.x.tobytes()
        assert "the last checkpoint was lost: File too large" in result.message, result.message
        assert ["the run goes on" in str(w.message) for w in caught] == [True], caught
        assert open("run", "rb").read() == kept
        again = sp.solve(f, method="dippa", tol=1e-7, checkpoint="run", checkpoint_every=1e9, max_calls=200)
        assert again.status == "out of calls"
        try:
            sp.solve(f, method="dippa", checkpoint="new")
        except sp.ProblemError as error:
            print(error)
    """)
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "new cannot be written: File too large; name another" in run.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.old"]


@pytest.mark.parametrize("call", ["fsync", "replace", "second replace", "open"])
def test_whatever_call_fails_one_whole_file_is_left(call, tmp_path, monkeypatch):
    f, file = random_logistic(14, 10, 60, 60, 10, seed=6), tmp_path / "run"
    whole = sp.solve(f, method="dippa", tol=1e-8)
    sp.solve(f, method="dippa", tol=1e-8, max_calls=40, checkpoint=file)
    real, calls = {name: getattr(os, name) for name in ("fsync", "replace")}, count()

    def fails(*arguments):
        if call == "second replace" and next(calls) % 3 != 1:  # move away, put in place (which fails), move back
            return real["replace"](*arguments)
        raise OSError(errno.ENOSPC, "No space left on device")

    if call == "open":
        monkeypatch.setattr(os, "open", fails)
    else:
        monkeypatch.setattr(os, call.split()[-1], fails)
    with pytest.warns(RuntimeWarning, match="a checkpoint was lost: .* \\(No space left on device\\); the run goes on"):
        part = sp.solve(f, method="dippa", tol=1e-8, max_calls=80, checkpoint=file, checkpoint_every=0)
    assert "the last checkpoint was lost: No space left on device" in part.message
    monkeypatch.undo()
    assert {path.name for path in tmp_path.iterdir()} <= {"run", "run.old"}
    rest = sp.solve(f, method="dippa", tol=1e-8, checkpoint=file)
    assert rest.x.tobytes() == whole.x.tobytes()
    assert rest.calls == whole.calls
