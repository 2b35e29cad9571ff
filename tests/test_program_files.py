"""Programs from TOML files, on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TRANSPORT = """
kind = "program"
q = [4.0, 6.0, 5.0, 3.0]
A = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
lower = [-inf, -inf, 2.0, 3.0]
upper = [3.0, 4.0, inf, inf]
x_lower = 0.0
"""


def test_a_transport_problem_has_a_proven_interval(run: Any, tmp_path: Path) -> None:
    (tmp_path / "transport.toml").write_text(TRANSPORT + "[solve]\nrtol = 1e-8\n")
    code, out, err = run("program", "transport.toml", "--json", "--out", "answer.npz")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["status"] == "optimal"
    assert found["lower"] <= 17.0 <= found["upper"]  # 2 * 4 + 3 * 3
    assert found["upper"] - found["lower"] <= 1e-6
    with np.load(tmp_path / "answer.npz") as saved:
        assert saved["x"] == pytest.approx([2.0, 0.0, 0.0, 3.0], abs=1e-4)
    code, out, _ = run("program", "transport.toml", "--gap", "1e-3", "--method", "first-order")
    assert code == 0
    assert "optimal value  in [" in out


def test_a_quadratic_program_may_have_its_data_in_array_files(run: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", P=np.diag([2.0, 0.0]), A=np.array([[1.0, 1.0]]))
    (tmp_path / "qp.toml").write_text(
        'kind = "program"\nP = "data.npz:P"\nA = "data.npz:A"\nlower = 1\nx_lower = 0\nq = [0, 1]'
    )
    code, out, _ = run("program", "qp.toml", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["lower"] <= 0.75 <= found["upper"]  # x = (1/2, 1/2)


def test_an_infeasible_program_is_proven_to_be_so(run: Any, tmp_path: Path) -> None:
    text = 'kind = "program"\nq = [1.0]\nA = [[1.0]]\nlower = 2.0\nx_lower = 0.0\nx_upper = 1.0\n'
    (tmp_path / "none.toml").write_text(text)
    code, out, _ = run("program", "none.toml")
    assert code == 0
    assert out.startswith("infeasible: ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("q = [1.0]", "key 'kind' is missing; expected kind = \"program\""),
        ('kind = "program"\nQ = [1.0]', "key 'Q' is unknown"),
        ('kind = "program"\nq = ["one"]', "key 'q' has 'one' as entry 1; expected numbers"),
        ('kind = "program"\nq = [1.0]\n[solve]\ntol = 1', "key 'solve.tol' is unknown"),
        ('kind = "program"\nq = [1.0]\n[solve]\nmethod = "magic"', "method is 'magic'; expected one of"),
        ('kind = "program"\nA = "gone.npy"', "gone.npy"),
        ('kind = "program"\nq = [1.0]\nA = [[1.0, 2.0]]', "bad.toml"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(run: Any, tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    code, out, err = run("program", "bad.toml", "--out", "answer.npz")
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "answer.npz").exists()
