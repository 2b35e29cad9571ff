"""MPI: the same answer on 1, 2 and 4 ranks, one Allreduce a round, and jobs of which a rank fails or dies."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.problems.files import load_problem

pytest.importorskip("mpi4py", reason="mpi4py is not installed")
BESIDE = Path(sys.executable).with_name("mpiexec")
MPIEXEC = str(BESIDE) if BESIDE.exists() else shutil.which("mpiexec")
pytestmark = [pytest.mark.cluster, pytest.mark.skipif(MPIEXEC is None, reason="there is no mpiexec")]

SCRIPT = str(Path(__file__).with_name("on_ranks.py"))
ROWS, COLUMNS = 240, 20


def command(ranks, folder, *arguments):
    start = [] if ranks == 0 else [MPIEXEC, "-n", str(ranks)]
    return [*start, sys.executable, SCRIPT, str(folder), *map(str, arguments)]


def run(ranks, folder, *arguments, timeout=60):
    return subprocess.run(
        command(ranks, folder, *arguments), cwd=folder, capture_output=True, text=True, timeout=timeout, check=False
    )


def outcome(ranks, folder, scenario):
    done = run(ranks, folder, scenario)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def problem(tmp_path):
    """A problem file whose solution takes a second or two."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "A.npy", rng.standard_normal((ROWS, COLUMNS)) / 4.0)
    np.save(tmp_path / "b.npy", rng.standard_normal(ROWS))
    text = 'A = "A.npy"\n[g]\nkind = "huber"\nt = "b.npy"\nl2 = 1e-2\n[h]\nkind = "quadratic"\nP = 0.1\n'
    (tmp_path / "problem.toml").write_text(text)
    return tmp_path


SOLVE = ("cli", "solve", "problem.toml", "--engine", "mpi", "--method", "lpd-gs")


# -- answers -----------------------------------------------------------------------------------------------------------


def test_the_same_bits_on_any_number_of_ranks(tmp_path):
    found = {ranks: outcome(ranks, tmp_path, "solved") for ranks in (0, 1, 2, 3, 4)}
    assert found[1]["status"] == "solved"
    assert all(found[ranks] == found[1] for ranks in found)


def test_the_command_line(problem):
    answers = []
    for ranks in (1, 2, 4):
        done = run(ranks, problem, *SOLVE, "--max-calls", "200", "--out", f"{ranks}.npz", "--json")
        assert done.returncode == 1, done.stderr
        assert json.loads(done.stdout)["status"] == "out of calls"  # and nobody else has printed anything
        answers.append(sp.load_result(problem / f"{ranks}.npz"))
    assert all((found.x == answers[0].x).all() and (found.y == answers[0].y).all() for found in answers)
    plain = sp.solve(load_problem(problem / "problem.toml").problem, method="lpd-gs", max_calls=200)
    assert answers[0].x == pytest.approx(plain.x, rel=1e-10, abs=1e-12)


def test_each_rank_reads_its_own_rows_of_a_store(problem):
    A = np.load(problem / "A.npy")
    (problem / "rows").mkdir()
    for k, rows in enumerate(np.array_split(A, 4)):
        np.save(problem / "rows" / f"{k}.npy", rows)
    text = (problem / "problem.toml").read_text()
    answers = []
    for name in ("A.npy", "rows"):
        (problem / "problem.toml").write_text(text.replace("A.npy", name))
        done = run(2, problem, *SOLVE, "--max-calls", "100", "--out", "answer.npz", "--json")
        assert done.returncode == 1, done.stderr
        answers.append(sp.load_result(problem / "answer.npz"))
    assert (answers[0].x == answers[1].x).all()


def test_without_a_fixed_order_answers_agree_to_rounding(tmp_path):
    one, four = outcome(1, tmp_path, "solved"), outcome(4, tmp_path, "unordered")
    for name in ("x", "y"):
        left, right = ([float.fromhex(text) for text in found[name]] for found in (one, four))
        assert left == pytest.approx(right, rel=1e-10, abs=1e-12)
    assert four["norm"] == pytest.approx(1e-200 * np.linalg.norm(np.arange(90.0)), rel=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_step_is_one_allreduce(ranks, tmp_path):
    found = outcome(ranks, tmp_path, "steps")
    assert found["rounds"] == found["allreduces"] == 10
    assert found["pieces"] == ranks  # of a sum, each of n numbers
    assert found["numbers"] == 10 * 11 * ranks


# -- decisions ---------------------------------------------------------------------------------------------------------


def test_rank_0_has_the_clock(tmp_path):
    assert outcome(2, tmp_path, "clocks_differ")["status"] == "solved"


def test_time_is_up_on_all_ranks(problem):
    done = run(3, problem, *SOLVE, "--tol", "1e-12", "--max-seconds", "0.3")
    assert done.returncode == 1
    assert done.stdout.startswith("out of time")
    assert done.stderr == ""


def test_a_rank_that_fails_ends_the_others(tmp_path):
    found = outcome(3, tmp_path, "one_rank_fails")
    failed = "ArithmeticError: the disk is gone"
    assert found["error"] == [
        f"RuntimeError: rank 1 failed, {failed}",
        failed,
        f"RuntimeError: rank 1 failed, {failed}",
    ]
    assert found["result"]


def test_ranks_that_disagree_say_so(tmp_path):
    assert "the ranks no longer have the same y, to the last bit" in outcome(3, tmp_path, "ranks_disagree")["error"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("cli", "solve", "none.toml", "--engine", "mpi"), "file none.toml does not exist"),
        ((*SOLVE, "--workers", "2"), "the mpi engine has as many workers as mpiexec starts"),
        ((*SOLVE, "--scheduler", "tcp://here:1"), "a scheduler was given with the engine mpi; expected --engine dask"),
        (("cli", "solve", "few.toml", "--engine", "mpi"), "A has shape (1, 2) and there are 2 ranks"),
        (("cli", "solve", "nan.toml", "--engine", "mpi"), "rank 1: A has a nan at index"),
    ],
)
def test_an_error_is_printed_once(arguments, sentence, problem):
    rest = '[g]\nkind = "quadratic"\nP = 1.0\n[h]\nkind = "quadratic"\nP = 1.0\n'
    bad = np.ones((64, 2))
    bad[60, 1] = np.nan
    np.save(problem / "nan.npy", bad)
    (problem / "nan.toml").write_text(f'A = "nan.npy"\n{rest}')
    (problem / "few.toml").write_text(f"A = [[1.0, 2.0]]\n{rest}")
    done = run(2, problem, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("error:") == 1
    assert sentence in done.stderr


def test_without_mpi4py(tmp_path):
    code = "import sys; sys.modules['mpi4py'] = None; from saddlepoint.commands import main; main()"
    (tmp_path / "p.toml").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", code, "solve", "p.toml", "--engine", "mpi"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "the mpi engine needs mpi4py and an MPI library" in done.stderr
    assert "pip install 'saddlepoint[mpi]'" in done.stderr


# -- ranks that die, and signals ---------------------------------------------------------------------------------------

LONG = (*SOLVE, "--tol", "1e-12", "--max-seconds", "60", "--checkpoint", "run", "--checkpoint-every", "0.1")


def started(ranks, folder, *arguments):
    """A job under way: it has written a checkpoint after some steps."""
    job = subprocess.Popen(
        command(ranks, folder, *arguments), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    limit = time.monotonic() + 40.0
    while not (folder / "run.old").exists():  # the second one
        assert job.poll() is None, job.stderr.read()
        assert time.monotonic() < limit
        time.sleep(0.05)
    return job, [int((folder / f"pid-{rank}").read_text()) for rank in range(ranks)]


def process_ended(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z"


def test_a_rank_that_is_killed_ends_the_job_and_loses_nothing(problem):
    job, pids = started(4, problem, *LONG)
    os.kill(pids[2], signal.SIGKILL)
    job.communicate(timeout=30)
    assert job.returncode != 0
    limit = time.monotonic() + 10.0
    while not all(map(process_ended, pids)):
        assert time.monotonic() < limit
        time.sleep(0.05)
    again = run(2, problem, *SOLVE, "--tol", "1e-2", "--checkpoint", "run", "--resume", "--json")
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)
    assert found["solved"]
    assert found["provenance"]["resumed"] == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_any_rank_ends_all_of_them(number, code, problem):
    job, pids = started(3, problem, *LONG)
    os.kill(pids[1], number)
    out, err = job.communicate(timeout=30)
    assert job.returncode == code, err
    assert out.startswith("interrupted")
    assert "the same command with --resume goes on from there" in err
    assert run(1, problem, *SOLVE, "--tol", "1e-2", "--checkpoint", "run", "--resume").returncode == 0
