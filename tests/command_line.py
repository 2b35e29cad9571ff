"""Runs the command line in a test."""

import sys

import pytest

from saddlepoint.commands import run as cli

PROBLEM = """
A = [[1.0, 2.0], [0.0, 1.0]]

[g]
kind = "quadratic"
P = [1.0, 3.0]
b = [1.0, 1.0]

[h]
kind = "log-cosh"
l2 = 0.5
"""


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "problem.toml").write_text(PROBLEM)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["saddlepoint", *map(str, words)])
        code = cli.run()
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
