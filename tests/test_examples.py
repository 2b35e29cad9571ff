"""The examples run, say something, and draw a picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import saddlepoint as sp

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", [path.stem for path in EXAMPLES])
def test_example(example, tmp_path):
    picture = tmp_path / "picture.png"
    command = [sys.executable, "-W", "error", ROOT / "examples" / f"{example}.py", picture]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"MPLBACKEND": "Agg"})
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_every_application_has_its_page_picture_example_and_benchmark():
    pages = {path.stem for path in (ROOT / "docs/applications").glob("*.md")}
    assert pages == {path.stem for path in EXAMPLES}
    for name in pages:
        assert (ROOT / f"docs/applications/{name}.png").stat().st_size < 200_000
        assert f"{name}.png" in (ROOT / f"docs/applications/{name}.md").read_text()
    benchmarks = {path.stem for path in (ROOT / "benchmarks/apps").glob("*.py")}
    assert benchmarks == pages - {"matrix_game", "poker"} | {"games"}


def test_applications_are_listed_and_found():
    for name in sp.apps.__all__:
        assert getattr(sp.apps, name).__name__ == name
        assert name in dir(sp.apps)
    with pytest.raises(AttributeError, match="no attribute 'Chess'"):
        sp.apps.Chess  # noqa: B018


def test_without_scikit_learn_the_rest_works(tmp_path):
    """A finder that hides scikit-learn stands for an environment without it."""
    script = """
import sys
sys.modules["sklearn"] = None
import saddlepoint as sp
sp.apps.MatrixGame([[1.0]], 1.0, 1.0).solve()
sp.apps.ExtensiveGame.load("kuhn")
try:
    sp.apps.AUCClassifier
except sp.ProblemError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert run.stdout == "AUCClassifier needs scikit-learn; pip install 'saddlepoint[sklearn]'\n", run.stderr
