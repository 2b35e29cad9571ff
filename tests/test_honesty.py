"""A slice of the campaign of ``benchmarks/honesty.py``: no bound below the truth, no true problem reported as wrong."""

import itertools
import time
from pathlib import Path

import honesty
import numpy as np
import pytest
from honest import ways_in
from honest.table import Tally, is_false_claim
from honest.ways_in import storage
from tiers import slow_except

import saddlepoint as sp

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"

SEED = 16
KINDS = [kind for kind in honesty.KINDS if kind not in honesty.ON_JAX]  # JAX compiles for a minute


def check(kind, cases):
    """Every answer on these cases is true; what is wrong about a wrong problem is found, or did no harm."""
    tally = Tally()
    for number in cases:
        for row in honesty.work((kind, SEED, number)):
            tally.add(row)
    assert not tally.failures, tally.failed()
    return tally


@pytest.mark.slow
@pytest.mark.parametrize("kind", slow_except(KINDS, *[kind for kind in KINDS if "long" not in kind][::4]))
def test_answers_are_true(kind):
    check(kind, [0])


def test_a_case_has_answers_of_every_way_in():
    assert check("ordinary", [0]).total("runs") >= 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in honesty.SLOW])
def test_more_answers_are_true(kind):
    check(kind, [1])


def test_the_campaign_sees_a_false_bound(monkeypatch):
    """With certificates a thousand times too small, most answers on most kinds of true problems are false."""
    from saddlepoint.problems.saddle import Saddle

    certificate = Saddle.certificate

    def optimistic(self, *arguments, **options):
        proof = certificate(self, *arguments, **options)
        return proof._replace(distance=1e-3 * proof.distance, distance_x=1e-3 * proof.distance_x)

    monkeypatch.setattr(Saddle, "certificate", optimistic)
    seen = [row["outcome"] for kind in ("ordinary", "kinks", "float32") for row in honesty.work((kind, SEED, 0))]
    assert seen.count("false") > len(seen) / 2


def test_wrong_claims_are_told_apart_by_their_names():
    assert {is_false_claim(kind) for kind in honesty.KINDS} == {True, False}
    tally = Tally()
    row = {"kind": "false claim: mu", "seed": 0, "way": "solve", "case": 0, "words": ""}
    tally.add(row | {"outcome": "false", "solved": True})
    tally.add(row | {"outcome": "false", "solved": False})
    tally.add(row | {"outcome": "unexamined", "solved": False})
    tally.add(row | {"outcome": "accused"})
    tally.add(row | {"outcome": "true", "solved": True})
    names = ("false solved", "found", "harmless", "false", "unexamined")
    assert [tally.total(name) for name in names] == [1, 3, 1, 1, 1]
    assert len(tally.failures) == 2
    tally.add(row | {"kind": "false claim: noise", "outcome": "unexamined", "solved": False})  # noise is measured
    assert (tally.total("false"), len(tally.failures)) == (2, 3)


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX warns of it, and the worker does not use JAX
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # Python 3.12 warns where there are several threads
def test_a_time_limit_holds_while_a_case_takes_longer(monkeypatch):
    def slow(rng):
        time.sleep(20.0)
        yield from ()

    monkeypatch.setitem(honesty.EVERY_APPLICATION, "slow", slow)
    cases = (("slow", 0, number) for number in itertools.count())
    assert list(honesty.finished(cases, 1, time.perf_counter() + 0.1)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("case", "runs"), [(39, 2), (178, 3), (264, 2)])
def test_a_copy_of_A_that_overflows_is_not_the_fault_of_the_problem(case, runs):
    """Vectors that float32 cannot hold made gradients look as if they changed their argument, or as if A were wrong."""
    kind = "extreme scales"
    rng = honesty.generator(kind, 401, case)
    problem = honesty.KINDS[kind](rng)
    problem.exact.size()
    with np.errstate(all="ignore"):
        answers = [answer for _ in range(runs) for answer in storage(problem, rng)]
    assert len(answers) == runs
    assert {honesty.judge(problem, answer, False).outcome for answer in answers} <= {"true", "uncertified"}


def test_units_in_which_products_overflow_are_not_taken():
    """A has subnormal entries, and units that would make its rows alike are beyond the range of the arithmetic."""
    kind = "degenerate"
    problem = honesty.KINDS[kind](honesty.generator(kind, 2026113010, 61))
    with np.errstate(all="ignore"):
        result = sp.solve(problem.f, method="preconditioned-halpern-pdhg", tol=1e-9, max_calls=20)
    assert result.status in ("solved", "out_of_calls", "stalled")


def test_the_counts_of_several_processes_are_added_up(tmp_path):
    """Each process has a seed of its own; one that is given twice would count cases twice."""
    paths = []
    for seed in (1, 2):
        tally = Tally()
        tally.seeds = [seed]
        for k in range(5):
            row = {"kind": "ordinary", "seed": seed, "way": "solve", "case": k, "outcome": "true", "ratio": 2.0}
            tally.add(row | {"solved": True, "seconds": 0.1})
        tally.add({"kind": "kinks", "seed": seed, "way": "solve", "case": 3, "outcome": "false", "words": "too small"})
        paths.append(tmp_path / f"{seed}.json")
        tally.save(paths[-1])
    total = honesty.merged(paths)
    assert total.runs == sum(Tally(path).runs for path in paths)
    assert total.seeds == [1, 2]
    assert [failure["seed"] for failure in total.failures] == [1, 2]
    assert len(total.ratios["ordinary"]) == 10
    page = honesty.report(total, honesty.KINDS, "0")
    assert "| kinks | 2 | 0 | 0 | 2 |" in page
    with pytest.raises(ValueError, match="the cases of seed 1 are counted already"):
        total.merge(Tally(paths[0]))
    with pytest.raises(SystemExit, match="1"):
        honesty.conclude(total, tmp_path / "all.json", tmp_path / "page.md")
    assert Tally(tmp_path / "all.json").runs == total.runs
    assert "By `python benchmarks/honesty.py --seed N`" in (tmp_path / "page.md").read_text()


def test_kinds_whose_packages_are_missing_are_left_out(monkeypatch):
    assert set(honesty.ON_JAX) <= set(honesty.KINDS)
    monkeypatch.setattr(honesty, "find_spec", lambda name: None if name == "jax" else object())
    assert honesty.installed() == KINDS


@pytest.mark.parametrize("form", ["zarr", "h5"])
def test_A_in_a_store_has_true_answers(form, monkeypatch):
    pytest.importorskip({"zarr": "zarr", "h5": "h5py"}[form])
    monkeypatch.setattr(ways_in, "formats", [form])
    rng = honesty.generator("ordinary", SEED, 3)
    problem = honesty.KINDS["ordinary"](rng)
    answers = list(ways_in.streams(problem, rng))
    assert [answer.way for answer in answers] == [f"stream, {form}"]
    assert [honesty.judge(problem, answer, True).outcome for answer in answers] == ["true"]
