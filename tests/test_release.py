"""The files of `make release`: their contents, and their use in an environment without anything else."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

import saddlepoint as sp

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow
pytest.importorskip("build")
pytest.importorskip("hatchling")
import release  # noqa: E402 - it imports build


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist and the wheel."""
    return release.build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def tracked():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no git repository")
    return release.tracked_files()


def test_the_version_is_the_same_everywhere():
    assert release.version() == sp.__version__
    assert re.fullmatch(r"0\.\d+\.\d+", sp.__version__)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == sp.__version__
    head = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    version, when = re.fullmatch(r"(\S+) \((unreleased|\d{4}-\d{2}-\d{2})\)", head).groups()
    assert version == sp.__version__
    assert str(citation.get("date-released", "unreleased")) == when


def test_a_build_gives_the_same_bytes_again_and_from_the_sdist(built, tmp_path):
    sdist, wheel = built
    again = release.build(ROOT, tmp_path / "again")
    straight = release.build_wheel(ROOT, tmp_path / "straight")
    assert again[0].read_bytes() == sdist.read_bytes()
    assert again[1].read_bytes() == straight.read_bytes() == wheel.read_bytes()


def test_the_wheel_holds_the_package_and_nothing_else(built, tmp_path):
    wheel = Path(shutil.copy(built[1], tmp_path))
    assert release.wheel_faults(wheel) == []
    names = zipfile.ZipFile(wheel).namelist()
    assert {"saddlepoint/py.typed", "saddlepoint/apps/games/kuhn.json", "saddlepoint/uses/pages/assets/style.css"} <= {
        *names
    }
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tests/test_methods.py", "")
    assert release.wheel_faults(wheel) == [f"{wheel.name} should not hold tests/test_methods.py"]


def test_a_wheel_without_a_file_is_noticed(built, tmp_path):
    poor = tmp_path / built[1].name
    with zipfile.ZipFile(built[1]) as archive, zipfile.ZipFile(poor, "w") as other:
        for name in archive.namelist():
            if not name.endswith("py.typed"):
                other.writestr(name, archive.read(name))
    assert release.wheel_faults(poor) == [f"{poor.name} lacks saddlepoint/py.typed"]


def test_the_sdist_holds_what_the_repository_does(built, tracked):
    assert release.sdist_faults(built[0], tracked) == []
    strays = release.sdist_faults(built[0], tracked - {"tests/cases.py"} | {"src/saddlepoint/new.py"})
    assert [line.partition(".tar.gz ")[2] for line in strays] == [
        "lacks src/saddlepoint/new.py",
        "should not hold tests/cases.py",
    ]


def test_the_metadata_are_complete(built):
    assert release.metadata_faults(built[1]) == []
    faults = release.metadata_faults(built[1], core={"numpy"})
    assert faults == [f"the metadata of {built[1].name} do not have the core's needs"]


def test_what_prevents_an_upload_is_listed(built, tracked):
    said = "\n".join(release.before_the_upload(built[1]))
    assert ("no date" in said) == ("(unreleased)" in (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1])


def test_a_command_that_fails_ends_the_release():
    with pytest.raises(SystemExit, match="ended with 3, not 0:\nno"):
        release.run(sys.executable, "-c", "print('no'); raise SystemExit(3)")


def test_it_installs_in_an_empty_environment_and_works(built, tmp_path):
    """This test uses the wheel; `make release` does the same with the sdist."""
    probe = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "-d",
        str(tmp_path / "probe"),
        "array-api-compat",
    ]
    asked = subprocess.run(probe, capture_output=True, text=True)
    if asked.returncode != 0:
        pytest.skip("no package index can be reached from here")
    release.try_out(built[1], tmp_path)
    assert {"saddlepoint", "typer"} <= release.installed(tmp_path / "env" / "bin" / "python")
