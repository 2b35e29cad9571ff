"""Games and other problems with mu = 0 in the functions that solve many problems: prepare, path, solve_many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.ground.arrays import Array

PAYOFF = np.random.default_rng(3).standard_normal((7, 5))


def game(payoff: Array) -> sp.Saddle:
    return sp.Saddle(sp.Simplex(), sp.Simplex(), payoff)


def test_a_prepared_game_is_solved_to_a_gap_again_and_again() -> None:
    prepared = sp.prepare(game(PAYOFF), gap=1e-7)
    assert "gap=1e-07" in repr(prepared)
    for other in (PAYOFF, PAYOFF + 0.1, -PAYOFF):
        result = prepared.update(A=other).solve()
        assert result.solved
        x, y = np.asarray(result.x), np.asarray(result.y)
        assert (other.T @ x).max() - (other @ y).min() <= 1e-7
    with pytest.raises(sp.ProblemError, match="its variables are not bounded"):
        prepared.update(g=sp.Quadratic(0.0, np.ones(7)))
    with pytest.raises(sp.ProblemError, match="ask for the duality gap with gap=1e-6"):
        sp.prepare(game(PAYOFF))


def test_a_path_of_games_reports_gaps(tmp_path: Path) -> None:
    family = sp.path(lambda t: game(PAYOFF + t * np.eye(7, 5)), [0.0, 0.5, 1.0], gap=1e-6)
    assert family.solved
    assert (family.gaps <= 1e-6).all()
    assert (family.proven == family.gaps).all()
    assert np.isinf(family.distances).all()
    assert "largest certified duality gap" in repr(family)
    family.plot(tmp_path / "path.png")
    with pytest.raises(sp.ProblemError, match="tol and gap were given"):
        sp.path(lambda t: game(PAYOFF), [0.0], tol=1e-6, gap=1e-6)


def test_many_games_are_solved_to_a_gap() -> None:
    rng = np.random.default_rng(5)
    games = [game(rng.standard_normal((6, 4))) for _ in range(3)]
    results = sp.solve_many(games, gap=1e-6)
    assert all(result.solved and result.certificate.gap <= 1e-6 for result in results)
    with pytest.raises(sp.ProblemError, match="gap=1e-6"):
        sp.solve_many(games)


@pytest.mark.parametrize("asked", [{"gap": 1e-8}, {"rtol": 1e-7}, {"tol": 1e-7}])
def test_strongly_convex_problems_reach_what_each_was_asked_for(asked: dict[str, float]) -> None:
    rng = np.random.default_rng(6)
    problems = [
        sp.Saddle(sp.LogCosh(rng.standard_normal((9, 4)), np.ones(9)) + sp.Quadratic(0.1), sp.Quadratic(s), A)
        for s, A in ((1.0, rng.standard_normal((4, 3))), (2.0, rng.standard_normal((4, 3))))
    ] + [sp.Saddle(sp.Quadratic(s, np.ones(4)), sp.Quadratic(s), rng.standard_normal((4, 3))) for s in (1.0, 3.0)]
    for together in (problems[:2], problems[2:]):
        for result in sp.solve_many(together, **asked):  # type: ignore[arg-type]
            proof = result.certificate
            assert result.solved
            size = float(np.linalg.norm(result.x) + np.linalg.norm(result.y))
            reached = {"gap": proof.gap, "tol": proof.distance, "rtol": proof.distance / (size - proof.distance)}
            (name, most), *_ = asked.items()
            assert reached[name] <= most
    prepared = sp.prepare(problems[2], **asked)  # type: ignore[arg-type]
    assert prepared.solve().solved


def test_a_batch_of_ones_own_takes_a_gap_but_no_relative_distance() -> None:
    rng = np.random.default_rng(7)
    quadratics = [
        sp.Saddle(sp.Quadratic(s, np.ones(4)), sp.Quadratic(s), rng.standard_normal((4, 3))) for s in (1.0, 3.0)
    ]
    batch = sp.Batch.of(quadratics)
    assert batch is not None
    results = sp.solve_many(batch, gap=1e-8)
    assert all(result.solved and result.certificate.gap <= 1e-8 for result in results)
    assert "certified duality gap" in results[0].message
    with pytest.raises(sp.ProblemError, match="rtol was given with a Batch"):
        sp.solve_many(batch, rtol=1e-8)


def test_predictions_for_games_name_the_way_out() -> None:
    with pytest.raises(sp.ProblemError, match="a run of solve with gap=1e-6 shows"):
        sp.predict(game(PAYOFF))
