"""The code in the documentation runs: Python blocks, console lines, the problem file, the worked example."""

import re
import shlex
import sys
from pathlib import Path

import pytest

import saddlepoint as sp
from saddlepoint.commands import run as cli

ROOT = Path(__file__).parent.parent


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


@pytest.mark.slow
def test_the_python_of_the_readme_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    space, said = {}, []
    found = blocks("README.md", "python")
    assert len(found) == 4
    for block in found:
        exec(compile(block, "README.md", "exec"), space)
        assert space["result"].solved
        said.append(capsys.readouterr().out)
    assert space["sparse"].solved
    assert space["game"].solved
    (printed,) = blocks("README.md", "text")
    assert shape(said[0]) == shape(printed)
    (cited,) = blocks("README.md", "bibtex")
    assert cited in sp.solve(space["f"], method="dippa", max_calls=1).cite() + "\n"
    assert (tmp_path / "run.png").exists()


def shape(text):
    """The printed text without its numbers, which other machines round in other ways."""
    return re.sub(r"[-+.\de]*\d[-+.\de]*", "#", text).split()


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        "docs/arrays.md",
        "docs/check.md",
        "docs/my-problem.md",
        "docs/repeated.md",
        "docs/trust.md",
        *(f"docs/scaling/{name}.md" for name in ("dask", "index", "jax", "streamed")),
        *sorted(f"docs/applications/{p.name}" for p in (ROOT / "docs/applications").glob("*.md")),
    ],
)
def test_the_python_on_the_pages_runs(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = blocks(page, "python")
    assert found
    for block in found:
        exec(compile(block, page, "exec"), {})


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/problem-file.md"])
def test_console_lines_print_what_the_page_shows(page, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "python") if page != "README.md" else []:
        exec(compile(block, page, "exec"), {})
    for name, block in zip(
        ("problem.toml", "terms.toml", "blocks.toml", "transport.toml"),
        blocks(page, "toml"),
        strict=page != "README.md",
    ):
        (tmp_path / name).write_text(block)
    lines = [line[2:].partition("#")[0] for block in blocks(page, "console") for line in block.splitlines()]
    assert lines
    for line in lines:
        words = shlex.split(line)
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        else:
            monkeypatch.setattr(sys, "argv", words)
            assert cli.run() == 0, line
            assert capsys.readouterr().out


def test_the_readme_names_every_method():
    text = (ROOT / "README.md").read_text()
    for info in sp.methods():
        assert f"`{info.name}`" in text


def written_pages():
    """The pages of docs, without those that `make docs` writes there."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    made = {"repository", "gallery", "generated"}
    return [page for page in pages if not made & set(page.relative_to(ROOT / "docs").parts)]


def test_no_page_installs_from_an_index():
    """There is no release yet: pages say how to install from a copy of the repository."""
    for page in (ROOT / "README.md", *written_pages()):
        for command in re.findall(r"pip install[^`\n]*", page.read_text()):
            assert "saddlepoint" not in command, f"{page}: {command}"


def test_pages_name_files_that_exist():
    for page in (
        "README.md",
        "docs/paper.md",
        "docs/methods.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/problem-file.md",
        "docs/game-file.md",
        "docs/arrays.md",
        "docs/check.md",
        "docs/repeated.md",
        "docs/trust.md",
        *(f"docs/{room}/{p.name}" for room in ("applications", "scaling") for p in (ROOT / "docs" / room).glob("*.md")),
    ):
        text = (ROOT / page).read_text()
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            if "://" not in link:
                assert ((ROOT / page).parent / link).exists(), f"{page}: {link}"
    text = (ROOT / "docs/paper.md").read_text()
    source = ROOT / "src/saddlepoint"
    for name in set(re.findall(r"`((?:\w+/)*\w+\.py)`", text)):
        assert (source / name).exists() or (ROOT / "tests" / name).exists() or (ROOT / name).exists(), name
    for name in set(re.findall(r"`((?:dippa|aipfb|catalyst|start|weighted)_\w+)`", text)):
        assert hasattr(sp.theory, name), name


def test_formulas_can_be_rendered():
    """docutils knows only a part of LaTeX; what it does not know would end the build of the site."""
    from docutils.utils.math.latex2mathml import tex2mathml
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    reader = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)
    formulas = 0
    for path in written_pages():
        for block in reader.parse(path.read_text()):
            inline = [part for part in block.children or [] if part.type.startswith("math")]
            fenced = [block] if block.type == "math_block" or block.info == "{math}" else []
            for formula in inline + fenced:
                assert tex2mathml(formula.content.strip()).startswith("<math"), f"{path}: {formula.content}"
                # docutils reads \frac12 as the fraction of 12 and of what follows.
                assert not re.search(r"\\[dt]?frac[^{]", formula.content), f"{path}: {formula.content}"
                formulas += 1
            for part in block.children or []:
                assert part.type != "text" or "$" not in part.content, f"{path}: {part.content}"
    assert formulas > 100


def test_every_page_with_seconds_says_by_which_clock():
    """The page itself says it, or the docstring of the script that writes it, which the next version of it shows."""
    timed = []
    for page in (*(ROOT / "benchmarks/results").glob("*.md"), ROOT / "benchmarks/peers/RESULTS.md"):
        text, script = page.read_text(), ROOT / "benchmarks" / f"{page.stem}.py"
        if re.search(r"^\|.*(?<!')\b(s|ms|seconds|milliseconds|microseconds)\b", text, re.MULTILINE):
            timed.append(page.name)
            about = text + (script.read_text().split('"""')[1] if script.exists() else "")
            assert re.search(r"\b[Ww]all\b|\bCPU (time|seconds|s)\b", about), page
    assert len(timed) > 15
