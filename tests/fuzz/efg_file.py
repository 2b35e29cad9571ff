"""Gambit's games: ``python tests/fuzz/efg_file.py -runs=100000``."""

from __future__ import annotations

from pathlib import Path

from harness import LIMIT, fuzz, read

SEEDS = [
    b"""EFG 2 R "One-card poker" { "first" "second" }
"a comment"
c "" 1 "deal" { "red" 1/2 "black" 0.5 } 0
p "" 1 1 "red" { "bet" "fold" } 0
p "" 2 1 "after a bet" { "call" "pass" } 0
t "" 1 "wins 2" { 2 -2 }
t "" 2 "wins 1" { 1, -1 }
t "" 2
p "" 1 2 "black" { "bet" "fold" } 0
p "" 2 1 0
t "" 3 "loses 2" { -2 2 }
t "" 2
t "" 4 "loses 1" { -1 1e0 }
""",
    b"""EFG 2 D "\\"quoted\\"" { "a" "b" } t "" 1 "" { 1/3 -1/3 }""",
]


def check(data: bytes, folder: Path) -> bool:
    """An .efg file with this content is read, or refused."""
    from saddlepoint.apps import ExtensiveGame

    path = folder / "game.efg"
    path.write_bytes(data)
    return read(lambda: ExtensiveGame.from_file(path, LIMIT))


if __name__ == "__main__":
    fuzz(check, lambda: SEEDS)
