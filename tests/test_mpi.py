"""MPI: the same answer on 1, 2 and 4 ranks, one Allreduce a round, and jobs of which a rank fails or dies."""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
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
SCENARIOS = {  # the number of ranks (0 is a process without mpiexec), and what one job with so many does
    0: ("solved",),
    1: ("solved", "steps"),
    2: ("solved", "steps", "clocks_differ"),
    3: ("solved", "one_rank_fails", "ranks_disagree"),
    4: ("solved", "steps", "unordered"),
}


def command(ranks, folder, *arguments):
    start = [] if ranks == 0 else [MPIEXEC, "-n", str(ranks)]
    return [*start, sys.executable, SCRIPT, str(folder), *map(str, arguments)]


def run(ranks, folder, *arguments, timeout=300):
    return subprocess.run(
        command(ranks, folder, *arguments), cwd=folder, capture_output=True, text=True, timeout=timeout, check=False
    )


@functools.cache
def outcomes(ranks):
    """The outcomes of all scenarios of one job: it is started once, because the start is what takes time."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(ranks, folder, *SCENARIOS[ranks], timeout=600)
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


def test_any_number_of_ranks_finds_the_same_bits():
    found = {ranks: outcomes(ranks)["solved"] for ranks in SCENARIOS}
    assert found[1]["status"] == "solved"
    assert all(found[ranks] == found[1] for ranks in found)


def test_the_command_line_gives_the_same_answer_on_any_number_of_ranks(problem):
    answers = []
    for ranks in (1, 3):
        done = run(ranks, problem, *SOLVE, "--max-calls", "200", "--out", f"{ranks}.npz", "--json")
        assert done.returncode == 1, done.stderr
        assert json.loads(done.stdout)["status"] == "out of calls"  # no other rank has printed anything
        answers.append(sp.load_result(problem / f"{ranks}.npz"))
    assert all((found.x == answers[0].x).all() and (found.y == answers[0].y).all() for found in answers)
    plain = sp.solve(load_problem(problem / "problem.toml").problem, method="lpd-gs", max_calls={"total": 200})
    assert answers[0].x == pytest.approx(plain.x, rel=1e-10, abs=1e-12)


def test_each_rank_reads_its_own_rows_of_a_store(problem):
    A = np.load(problem / "A.npy")
    (problem / "rows").mkdir()
    for k, rows in enumerate(np.array_split(A, 4)):
        np.save(problem / "rows" / f"{k}.npy", rows)
    text = (problem / "problem.toml").read_text()
    (problem / "rows.toml").write_text(text.replace("A.npy", "rows"))
    commands = [
        ("solve", f"{name}.toml", *SOLVE[3:], "--max-calls", "100", "--out", f"{name}.npz", "--json")
        for name in ("problem", "rows")
    ]
    done = run(2, problem, "commands", json.dumps(commands))
    assert done.returncode == 0, done.stderr
    assert [code for ranks in json.loads(done.stdout) for code, _, _ in ranks] == [1, 1, 1, 1]  # out of calls
    answers = [sp.load_result(problem / f"{name}.npz") for name in ("problem", "rows")]
    assert (answers[0].x == answers[1].x).all()


def test_without_a_fixed_order_answers_agree_to_rounding():
    one, four = outcomes(1)["solved"], outcomes(4)["unordered"]
    for name in ("x", "y"):
        left, right = ([float.fromhex(text) for text in found[name]] for found in (one, four))
        assert left == pytest.approx(right, rel=1e-10, abs=1e-12)
    assert four["norm"] == pytest.approx(1e-200 * np.linalg.norm(np.arange(90.0)), rel=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_step_is_one_allreduce(ranks):
    found = outcomes(ranks)["steps"]
    assert found["rounds"] == found["allreduces"] == 10
    assert found["pieces"] == ranks  # parts of a sum, each of n numbers
    assert found["numbers"] == 10 * 11 * ranks


# -- decisions ---------------------------------------------------------------------------------------------------------


def test_rank_0_has_the_clock():
    assert outcomes(2)["clocks_differ"]["status"] == "solved"


def test_time_is_up_on_all_ranks(problem):
    done = run(2, problem, *SOLVE, "--tol", "1e-12", "--max-seconds", "0.3")
    assert done.returncode == 1
    assert done.stdout.startswith("out of time")
    assert done.stderr == ""


def test_a_rank_that_fails_ends_the_others():
    found = outcomes(3)["one_rank_fails"]
    failed = "ArithmeticError: the disk is gone"
    assert found["error"] == [
        f"RuntimeError: rank 1 failed, {failed}",
        failed,
        f"RuntimeError: rank 1 failed, {failed}",
    ]
    assert found["result"]


def test_ranks_that_disagree_say_so():
    assert "the ranks no longer have the same y, to the last bit" in outcomes(3)["ranks_disagree"]["error"]


REST = '[g]\nkind = "quadratic"\nP = 1.0\n[h]\nkind = "quadratic"\nP = 1.0\n'
REFUSED = [  # arguments, and the sentence that refuses them
    (("solve", "none.toml", "--engine", "mpi"), "file none.toml does not exist"),
    ((*SOLVE[1:], "--workers", "2"), "the mpi engine has as many workers as mpiexec starts"),
    ((*SOLVE[1:], "--scheduler", "tcp://here:1"), "a scheduler was given with the engine mpi; expected --engine dask"),
    (("solve", "few.toml", "--engine", "mpi"), "A has shape (1, 2) and there are 2 ranks"),
]


def test_errors_are_printed_once(problem):
    """Every rank ends with exit code 2, and one of them prints the sentence."""
    (problem / "few.toml").write_text(f"A = [[1.0, 2.0]]\n{REST}")
    done = run(2, problem, "commands", json.dumps([arguments for arguments, _ in REFUSED]))
    assert done.returncode == 0, done.stderr
    for (_, sentence), ranks in zip(REFUSED, json.loads(done.stdout), strict=True):
        codes, out, err = zip(*ranks, strict=True)
        assert codes == (2, 2)
        assert "".join(out) == ""
        assert "".join(err).count("error:") == 1
        assert sentence in "".join(err)


def test_an_error_of_one_rank_ends_the_job_and_is_printed_once(problem):
    bad = np.ones((64, 2))
    bad[60, 1] = np.nan
    np.save(problem / "nan.npy", bad)
    (problem / "nan.toml").write_text(f'A = "nan.npy"\n{REST}')
    done = run(2, problem, "cli", "solve", "nan.toml", "--engine", "mpi")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("error:") == 1
    assert "rank 1: A has a nan at index" in done.stderr


def test_the_command_says_that_mpi4py_is_missing(tmp_path):
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

LONG = (*SOLVE, "--tol", "1e-12", "--max-seconds", "600", "--checkpoint", "run", "--checkpoint-every", "0.1")


def started(ranks, folder, *arguments):
    """A job under way: it has written a checkpoint after some steps."""
    job = subprocess.Popen(
        command(ranks, folder, *arguments), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    limit = time.monotonic() + 200.0
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
    job, pids = started(3, problem, *LONG)
    os.kill(pids[2], signal.SIGKILL)
    job.communicate(timeout=150)
    assert job.returncode != 0
    limit = time.monotonic() + 60.0
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
    out, err = job.communicate(timeout=150)
    assert job.returncode == code, err
    assert out.startswith("interrupted")
    assert "the same command with --resume goes on from there" in err
    assert run(1, problem, *SOLVE, "--tol", "1e-2", "--checkpoint", "run", "--resume").returncode == 0
