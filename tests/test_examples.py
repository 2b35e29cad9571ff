"""The gallery: its scripts run, their claims hold, they draw a picture, and they become pages and notebooks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from forked import run_script

import saddlepoint as sp

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*/*.py"))
PROOF = re.compile(r"Certificate\(|certificate  |exploitability  ")

every_script = pytest.mark.parametrize("script", SCRIPTS, ids=[f"{path.parent.name}/{path.stem}" for path in SCRIPTS])


@pytest.mark.slow
@every_script
def test_a_script_runs_proves_and_draws(script, tmp_path):
    """Run a script in a process of its own, with warnings as errors. The time limit only ends what hangs."""
    folder, output = tmp_path / "folder", tmp_path / "output"
    folder.mkdir()
    output.mkdir()
    draw = ROOT / "docs/applications/draw.py"
    code, out, err = run_script(draw, script, "--out", folder, folder=folder, output=output, timeout=300)
    assert code == 0, err
    assert PROOF.search(out), out
    pictures = sorted(folder.glob("*.png"))
    assert pictures
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert sorted(folder.iterdir()) == pictures  # and nothing else is left behind


@every_script
def test_a_script_has_a_title_a_question_sections_and_an_answer(script):
    """A script has a title, a question, sections and an answer, and is short."""
    from sphinx_gallery.gen_rst import extract_intro_and_title
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    text = script.read_text()
    assert 40 <= len(text.splitlines()) <= 120
    assert "saddlepoint" in text
    _, blocks = split_code_and_text_blocks(str(script))
    assert blocks[0].type == "text"
    intro, title = extract_intro_and_title(str(script), blocks[0].content)
    underline = blocks[0].content.strip().splitlines()[1]
    assert underline == "=" * len(title)
    assert "?" in intro
    prose = [block.content for block in blocks[1:] if block.type == "text"]
    assert len(prose) >= 3
    assert any("The answer\n----------" in block for block in prose)
    assert sum(block.type == "code" for block in blocks) >= 3


@every_script
def test_the_page_and_the_notebook_of_a_script_have_its_code_and_plain_text(script, tmp_path):
    """The text is reST without a complaint, and the notebook has the same code and no reST left in its text."""
    from docutils.core import publish_doctree
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.notebook import jupyter_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    _, blocks = split_code_and_text_blocks(str(script))
    prose = "\n\n".join(block.content for block in blocks if block.type == "text")
    publish_doctree(prose, settings_overrides={"halt_level": 2, "report_level": 5, "_disable_config": True})
    cells = jupyter_notebook(blocks, dict(DEFAULT_GALLERY_CONF), str(tmp_path))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert [part.strip() for part in code] == [block.content.strip() for block in blocks if block.type == "code"]
    for cell in cells:
        if cell["cell_type"] == "markdown":
            assert not re.search(r":\w+:`|^\.\. ", "".join(cell["source"]), re.MULTILINE)


def test_every_folder_of_the_gallery_has_its_header():
    for folder in (EXAMPLES, EXAMPLES / "applications", EXAMPLES / "ideas"):
        title, underline = (folder / "GALLERY_HEADER.rst").read_text().splitlines()[:2]
        assert underline in ("=" * len(title), "-" * len(title))
    assert not list(EXAMPLES.glob("*.py"))  # each script is in one of them


def test_every_application_has_its_page_picture_example_and_benchmark():
    pages = {path.stem for path in (ROOT / "docs/applications").glob("*.md")}
    examples = {path.stem for path in SCRIPTS if path.parent.name == "applications"}
    assert examples == pages | {"fair"}  # it belongs to the page about risk
    for name in pages:
        text = (ROOT / f"docs/applications/{name}.md").read_text()
        assert (ROOT / f"docs/applications/{name}.png").stat().st_size < 200_000
        assert f"{name}.png" in text
        assert f"examples/applications/{name}.py" in text
    assert (ROOT / "benchmarks/programs.py").exists()
    benchmarks = {path.stem for path in (ROOT / "benchmarks/apps").glob("*.py")}
    assert benchmarks == pages - {"coupled_costs", "matrix_game", "poker", "programs"} | {"games"}


def test_applications_are_listed_and_found():
    for name in sp.apps.__all__:
        assert getattr(sp.apps, name).__name__ == name
        assert name in dir(sp.apps)
    with pytest.raises(AttributeError, match="no attribute 'Chess'"):
        sp.apps.Chess  # noqa: B018


@pytest.mark.slow
def test_without_scikit_learn_the_rest_works(tmp_path):
    """A finder that hides scikit-learn stands for an environment without it."""
    script = """
import sys
sys.modules["sklearn"] = None
import saddlepoint as sp
sp.apps.CoupledCosts([[1.0]], 1.0, 1.0).solve()
sp.apps.ExtensiveGame.load("kuhn")
try:
    sp.apps.AUCClassifier
except sp.ProblemError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert run.stdout == "AUCClassifier needs scikit-learn; pip install 'saddlepoint[sklearn]'\n", run.stderr
