"""The judge of `benchmarks/fresh.py`: its problems are within their ranges, and its table says who was slower."""

import drawn
import fresh
import numpy as np
import pytest


def test_a_seed_is_one_problem_within_the_ranges():
    small = [seed for seed in range(200) if max(drawn_sizes(seed)) < 120][:6]
    for seed in small:
        f, again = drawn.draw(seed).make(), drawn.draw(seed).make()
        x, y = np.ones(f.shape[0]), np.ones(f.shape[1])
        assert f.certificate(x, y).distance == again.certificate(x, y).distance
        assert min(f.mu_x, f.mu_y) >= 0.9e-6
        assert min(f.shape) >= 10
        assert 0.9e-3 <= f.norm / np.sqrt(f.L_x * f.L_y) <= 1.5e3


def drawn_sizes(seed):
    rng = np.random.default_rng(seed)
    return [round(10.0 ** rng.uniform(1.0, np.log10(3000.0))) for _ in range(2)]


def test_problems_with_terms_are_one_for_each_seed():
    for seed in range(3):
        problem = drawn.draw_with_terms(seed)
        f, again = problem.make(), drawn.draw_with_terms(seed).make()
        assert f.has_simple
        x, y = f.project(np.ones(f.shape[0]), np.ones(f.shape[1]))
        assert f.certificate(x, y).distance == again.certificate(x, y).distance
        assert 0.9e-2 <= f.norm / np.sqrt(f.L_x * f.L_y) <= 1.5e2
    assert all(term(np.random.default_rng(0), 12, 0.1).diameter_in(12) >= 0.0 for term in drawn.TERMS.values())


def test_the_page_lists_the_slow_ones():
    problem = drawn.Problem(7, lambda: None, "small", own=True, quadratic=False)
    fast = fresh.Outcome(10.0, 1.0, "solved", "krylov")
    peers = dict.fromkeys(fresh.PEERS, fast)
    rows = [
        fresh.Row(problem, fast, (10.0, "krylov"), (1.0, "krylov"), peers),
        fresh.Row(problem, fast._replace(calls=50.0, seconds=2.0), (10.0, "krylov"), (1.0, "krylov"), peers),
    ]
    text = fresh.page(rows, [], "python benchmarks/fresh.py --seed 7", fresh.titled(False))
    assert "| all | 2 | 0 | 2.24 | 5 | 1 | 1.41 | 2 | 0 |" in text
    assert text.index("5.00 (krylov)") < text.index("1.00 (krylov)")
    assert "By `python benchmarks/fresh.py --seed 7`" in text


def test_the_rows_of_several_processes_make_one_page(tmp_path):
    fast = fresh.Outcome(10.0, 1.0, "solved", "krylov")
    peers = dict.fromkeys(fresh.PEERS, fresh.Outcome(float("inf"), float("inf"), "out_of_time", "krylov"))
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for first, file in zip((100, 200), files, strict=True):
        part = fresh.Part(file, f"python benchmarks/fresh.py --seed {first} --limit 2")
        problem = drawn.Problem(first, lambda: None, "small", own=True, quadratic=False)
        part.add(problem, fresh.Row(problem, fast, (5.0, "krylov"), (1.0, "direct"), peers))
        part.add(problem._replace(seed=first + 1), None)
    rows, skipped, commands = fresh.merged(files)
    assert [row.problem.seed for row in rows] == [100, 200]
    assert [problem.seed for problem in skipped] == [101, 201]
    assert commands[1] == "python benchmarks/fresh.py --seed 200 --limit 2 --problems 2"
    assert rows[0].auto == fast
    assert rows[0].peers == peers
    assert (rows[0].more_calls, rows[0].seconds) == (2.0, (1.0, "direct"))
    with pytest.raises(SystemExit, match="problems in common"):
        fresh.merged([files[0], files[0]])
