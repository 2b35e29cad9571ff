"""Games in sequence form: ``python tests/fuzz/game_file.py -runs=100000``."""

from __future__ import annotations

from pathlib import Path

from harness import LIMIT, fuzz, read

SEEDS = [
    b"""{"format": "saddlepoint-game", "version": 1, "title": "One-card poker", "first": [
{"name": "red", "parent": 0, "actions": {"bet": 1, "fold": 2}},
{"name": "black", "parent": 0, "actions": {"bet": 3, "fold": 4}}],
"second": [{"name": "after a bet", "parent": 0, "actions": {"call": 1, "pass": 2}}],
"payoffs": [[1, 1, 1.0], [2, 1, 0.5], [0, 2, 0.5], [1, 3, -1.0], [2, 3, 0.5], [0, 4, -0.5]]}""",
    b"""{"format": "saddlepoint-game", "version": 1, "title": "", "first": [], "second": [],
"payoffs": [[0, 0, 1e-3]]}""",
]


def check(data: bytes, folder: Path) -> bool:
    """A game file with this content is read, or refused."""
    from saddlepoint.apps import ExtensiveGame

    path = folder / "game.json"
    path.write_bytes(data)
    return read(lambda: ExtensiveGame.from_file(path, LIMIT))


if __name__ == "__main__":
    fuzz(check, lambda: SEEDS)
