"""`make release`: builds sdist and wheel into dist/, inspects them, and tries each out in an empty environment.

It uploads nothing; RELEASING.md says what comes before and after.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parent.parent
CORE = {"numpy", "scipy", "array-api-compat"}  # the packages that saddlepoint needs
# What the command line prints without its extra.
WITHOUT_EXTRA = "the command line needs typer and rich: pip install 'saddlepoint[cli]'"
# A problem file for the trial.
PROBLEM = """\
A = [[1.0, 2.0], [0.0, 1.0]]
g = { kind = "quadratic", P = [1.0, 3.0], b = [1.0, 1.0] }
h = { kind = "quadratic", P = 2.0 }
"""


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def run(*command: str | Path, code: int = 0, cwd: Path | None = None) -> str:
    """Run a command and return what it printed; an exit code other than ``code`` ends the release."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, env=_environment())
    if done.returncode != code:
        line = " ".join(map(str, command))
        raise SystemExit(f"{line}\nended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def _environment() -> dict[str, str]:
    """The environment variables, without those that could make an empty environment import from this tree."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


# -- build ------------------------------------------------------------------------------------------------------------


def build(tree: Path, out: Path) -> tuple[Path, Path]:
    """The sdist of a tree, and the wheel built from that sdist, by the Hatchling of this environment."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, tree)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def build_wheel(tree: Path, out: Path) -> Path:
    """The wheel built from a tree without an sdist."""
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", out, tree)
    (wheel,) = out.glob("*.whl")
    return wheel


# -- inspect ----------------------------------------------------------------------------------------------------------


def version(root: Path = ROOT) -> str:
    """The version, as ``saddlepoint/__init__.py`` has it."""
    found = re.search(r'^__version__ = "(.+)"$', (root / "src/saddlepoint/__init__.py").read_text(), re.MULTILINE)
    assert found
    return found[1]


def wheel_faults(wheel: Path, root: Path = ROOT) -> list[str]:
    """The faults of the files in a wheel, which must be the package as it is in the tree, and its metadata."""
    names = set(zipfile.ZipFile(wheel).namelist())
    info = f"saddlepoint-{version(root)}.dist-info"
    source = root / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "saddlepoint").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    } | {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    return [f"{wheel.name} lacks {name}" for name in sorted(expected - names)] + [
        f"{wheel.name} should not hold {name}" for name in sorted(names - expected)
    ]


def sdist_faults(sdist: Path, tracked: set[str]) -> list[str]:
    """The faults of the files in an sdist, which must hold nothing that is not in the repository."""
    stem = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.removeprefix(f"{stem}/") for name in archive.getnames()}
    needed = {name for name in tracked if name.startswith(("src/", "tests/", "tools/"))}
    needed |= {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile", "PKG-INFO"}
    return [f"{sdist.name} lacks {name}" for name in sorted(needed - names)] + [
        f"{sdist.name} should not hold {name}" for name in sorted(names - tracked - {"PKG-INFO"})
    ]


def tracked_files(root: Path = ROOT) -> set[str]:
    """The files that git tracks, or would track after `git add .`"""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=root).splitlines()
    return {name for name in listed if (root / name).is_file()}


def metadata(wheel: Path) -> Metadata:
    """The metadata of a wheel; a field that does not follow the standard raises an error that names it."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Metadata.from_email(archive.read(name), validate=True)


def metadata_faults(wheel: Path, root: Path = ROOT, core: set[str] = CORE) -> list[str]:
    """The faults of the metadata that an index needs."""
    found = metadata(wheel)
    needed = {one.name for one in found.requires_dist or [] if one.marker is None}
    title = (root / "README.md").read_text("utf-8").splitlines()[0]
    wanted = {
        "the version": str(found.version) == version(root),
        "the core's needs": needed == core,
        "a summary": bool(found.summary),
        "the licence": found.license_expression == "MIT",
        "the README": (found.description or "").startswith(title),
        "its format": found.description_content_type == "text/markdown",
        "Python's versions": str(found.requires_python) == ">=3.11",
        "the typed classifier": "Typing :: Typed" in (found.classifiers or []),
    }
    return [f"the metadata of {wheel.name} do not have {what}" for what, holds in wanted.items() if not holds]


def before_the_upload(wheel: Path, root: Path = ROOT) -> list[str]:
    """What still has to be done before an upload, though the build is complete."""
    found = []
    head = re.search(r"^## (\S+) \((.+)\)$", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    if head is None or head[2] == "unreleased":
        found.append("CHANGELOG.md has no date for this version")
    if "date-released:" not in (root / "CITATION.cff").read_text("utf-8"):
        found.append("CITATION.cff has no date-released")
    if run("git", "status", "--porcelain", cwd=root):
        found.append("the working tree has changes that are not committed")
    links = re.findall(r"\]\((?!\w+:|#)([^)]+)\)", metadata(wheel).description or "")
    if links:
        found.append(f"the README has {len(links)} links into this repository, which an index cannot follow")
    return found


# -- try out ----------------------------------------------------------------------------------------------------------


def empty_environment(folder: Path) -> Path:
    """The Python of a new environment with nothing in it, pip included."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    return folder / "bin" / "python"


def install(python: Path, what: str) -> None:
    """Install a package into an environment; Python compiles the modules when they are first imported."""
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile", what)


def installed(python: Path) -> set[str]:
    """The names of the packages in an environment."""
    listed = run(python, "-c", "from importlib import metadata as m; print(*(d.name for d in m.distributions()))")
    return set(listed.split())


def try_out(file: Path, folder: Path, root: Path = ROOT) -> None:
    """Install a wheel or an sdist on its own and use it; then install its command line and use that."""
    python = empty_environment(folder / "env")
    command = python.with_name("saddlepoint")
    install(python, str(file))
    extra = installed(python) - CORE - {"saddlepoint"}
    if extra:
        raise SystemExit(
            f"{file.name} also installs {', '.join(sorted(extra))}; expected only {', '.join(sorted(CORE))}"
        )
    smoke = Path(__file__).with_name("smoke.py")
    run(python, "-I", "-W", "error", smoke, version(root), folder.resolve(), cwd=folder)
    if WITHOUT_EXTRA not in run(command, "--help", code=2, cwd=folder):
        raise SystemExit("without its extra, the command line does not say what it needs")

    install(python, f"saddlepoint[cli] @ {file.resolve().as_uri()}")
    (folder / "problem.toml").write_text(PROBLEM)
    for words in (
        "--version",
        "--help",
        "methods",
        "predict --kx 1e4 --ky 1e2 --coupling 300",
        "solve problem.toml --out result.npz",
        "report result.npz -o report.html",
        "explorer -o explorer.html",
        "game kuhn",
    ):
        output = run(python, "-I", "-W", "error", command, *words.split(), cwd=folder)
        if not output.strip():
            raise SystemExit(f"saddlepoint {words} printed nothing")
    for page in ("report.html", "explorer.html"):
        if not (folder / page).read_text("utf-8").startswith("<!doctype html>"):
            raise SystemExit(f"{page} is not an HTML page")


def main() -> None:
    """Build the sdist and the wheel, inspect them and try them out."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    say(f"building saddlepoint {version()}")
    sdist, wheel = build(ROOT, dist)
    with tempfile.TemporaryDirectory() as scratch:
        again = build_wheel(ROOT, Path(scratch))
        if again.read_bytes() != wheel.read_bytes():
            raise SystemExit("the wheel from the tree is not the wheel from the sdist, byte for byte")
    faults = wheel_faults(wheel) + sdist_faults(sdist, tracked_files()) + metadata_faults(wheel)
    if faults:
        raise SystemExit("\n".join(faults))
    for file in (wheel, sdist):
        say(f"trying out {file.name} in an empty environment")
        with tempfile.TemporaryDirectory() as scratch:
            try_out(file, Path(scratch))
    say(f"built and tried out: {sdist.relative_to(ROOT)}, {wheel.relative_to(ROOT)}")
    for line in before_the_upload(wheel):
        say(f"before the upload: {line}")


if __name__ == "__main__":
    main()
