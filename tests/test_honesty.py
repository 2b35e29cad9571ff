"""A slice of the campaign of ``benchmarks/honesty.py``: no bound below the truth, no true problem reported as wrong."""

import sys
from pathlib import Path

import pytest
from tiers import slow_except

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import honesty  # noqa: E402
from honest.table import Tally, is_lie  # noqa: E402

SEED = 16
KINDS = [kind for kind in honesty.KINDS if kind != "JAX"]  # JAX compiles for a minute


def check(kind, cases):
    """Every answer on these cases is true; what is wrong about a wrong problem is found, or did no harm."""
    tally = Tally()
    for number in cases:
        for row in honesty.work((kind, SEED, number)):
            tally.add(row)
    assert not tally.failures, tally.failed()
    return tally


@pytest.mark.parametrize("kind", slow_except(KINDS, *[kind for kind in KINDS if "long" not in kind][::4]))
def test_answers_are_true(kind):
    check(kind, [0])


def test_a_case_has_answers_of_every_way_in():
    assert check("ordinary", [0]).total("runs") >= 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in honesty.SLOW])
def test_more_answers_are_true(kind):
    check(kind, [1, 2])


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
    assert {is_lie(kind) for kind in honesty.KINDS} == {True, False}
    tally = Tally()
    row = {"kind": "lie: mu", "door": "solve", "case": 0, "words": ""}
    tally.add(row | {"outcome": "false", "solved": True})
    tally.add(row | {"outcome": "false", "solved": False})
    tally.add(row | {"outcome": "accused"})
    tally.add(row | {"outcome": "true", "solved": True})
    assert [tally.total(name) for name in ("false solved", "found", "harmless")] == [1, 2, 1]
    assert len(tally.failures) == 1
