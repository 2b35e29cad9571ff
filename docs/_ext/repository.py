"""Links of a page lead to where they lead on a code host, and files outside docs/ have a page of the site.

A link is written as a path in the repository. A file that lies outside docs/ has its page in docs/repository, in the
place where it has its place in the repository: Markdown as it is, anything else as a listing. That folder is written
anew at every build.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
ROOM = "repository"
PAGES = ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "RELEASING.md", "benchmarks/peers/RESULTS.md"]
RESULTS = "benchmarks/results/*.md"
# Files whose page on the site is not a copy of the file.
HOMES = {
    "README.md": "index.md",
    "CITATION.cff": "cite.md",
    "docs": "index.md",
    "examples": "gallery/index.rst",
    "benchmarks": "measured.md",
    "benchmarks/results": "measured.md",
    "benchmarks/peers": "repository/benchmarks/peers/RESULTS.md",
    "src/saddlepoint": "api/index.rst",
    "src/saddlepoint/apps": "api/apps.rst",
    "src/saddlepoint/parts/functions": "api/functions.rst",
    "src/saddlepoint/methods": "api/methods.rst",
    "src/saddlepoint/theory": "api/theory.rst",
    "tests": "repository/ARCHITECTURE.md",
}
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".js": "javascript", ".css": "css", ".sh": "bash"}
ROOMS = ("", "src/saddlepoint/", "tests/")  # where a name of a file may start
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w./-]+$")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"^ {0,3}(```+|~~~+)")


def links(text: str, change: Callable[[bool, str], str] | None = None) -> tuple[str, list[tuple[bool, str]]]:
    """The text with each link outside code changed by ``change(is_picture, target)``, and the links it had."""
    found = []

    def one(match: re.Match[str]) -> str:
        mark, words, target = match[1], LINK.sub(one, match[2]), match[3]  # a picture may stand within a link
        if not re.match(r"[a-z]+:|#", target):
            found.append((bool(mark), target))
            target = change(bool(mark), target) if change else target
        return f"{mark}[{words}]({target})"

    return "".join(part if code else LINK.sub(one, part) for code, part in parts(text)), found


def parts(text: str) -> Iterator[tuple[bool, str]]:
    """The text in parts, each with whether it is fenced as code."""
    fence, lines = "", []
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if mark and not fence:
            yield False, "".join(lines)
            fence, lines = mark[1], [line]
        elif fence and line.strip() == fence:
            yield True, "".join([*lines, line])
            fence, lines = "", []
        else:
            lines.append(line)
    yield bool(fence), "".join(lines)


class Repository:
    """The places of files of the repository on the site."""

    def __init__(self, docs: Path) -> None:
        self.docs, self.root = docs, docs.parent

    def folder_of(self, docname: str) -> str:
        """The folder of the repository that links of this page start from."""
        folder = str(PurePosixPath(docname).parent)
        if docname.startswith(f"{ROOM}/"):
            return os.path.normpath(os.path.relpath(folder, ROOM))
        return os.path.normpath(os.path.join("docs", folder))

    def home(self, path: str) -> str:
        """The source file in docs/ of the page for ``path``, which is a path in the repository."""
        if path in HOMES:
            return HOMES[path]
        if path.startswith("docs/"):
            return path.removeprefix("docs/")
        if path.startswith("examples/"):
            folder, _, name = path.removeprefix("examples/").rpartition("/")
            page = name.removesuffix(".py") if name.endswith(".py") else f"{name}/index"
            return f"gallery/{folder}/{page}.rst" if folder else f"gallery/{page}.rst"
        return f"{ROOM}/{path}" if path.endswith(".md") else f"{ROOM}/{path}.md"

    def rewritten(self, docname: str, text: str) -> str:
        """The page with every link leading to a page of the site."""
        here = PurePosixPath(docname).parent

        def change(picture: bool, target: str) -> str:
            path, mark, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(self.folder_of(docname), path))
            if not (self.root / path).exists():
                LOGGER.warning("a link leads to %s, which is not there", path, location=docname)
                return target
            if picture:
                return os.path.relpath(self.root / path, self.docs / here)
            return os.path.relpath(self.home(path), here) + mark + anchor

        return links(text, change)[0]

    def write_pages(self) -> None:
        """Write docs/repository: the pages of the list, and whatever is linked from a page or named in a docstring."""
        waiting = [path for path in PAGES if (self.root / path).exists()]
        waiting += [str(path.relative_to(self.root)) for path in self.root.glob(RESULTS)]
        for page in self.docs.rglob("*.md"):
            name = page.relative_to(self.docs).as_posix()
            if not name.startswith((f"{ROOM}/", "gallery/")):
                waiting += self.linked(name, page.read_text(encoding="utf-8"))
        for module in (self.root / "src").rglob("*.py"):
            waiting += self.named(module.read_text(encoding="utf-8"))
        written: dict[Path, str] = {}
        while waiting:
            path = waiting.pop()
            target = self.docs / self.home(path)
            if not self.home(path).startswith(f"{ROOM}/") or path in HOMES or target in written:
                continue
            source = self.root / path
            if source.is_dir():
                LOGGER.warning(
                    "a link leads to the folder %s; link to a file, or give it a home in repository.py", path
                )
                continue
            text = source.read_text(encoding="utf-8")
            if path.endswith(".md"):
                waiting += self.linked(f"{ROOM}/{path}", text)
            written[target] = text if path.endswith(".md") else listing(path, text)
        room = self.docs / ROOM
        for page in room.rglob("*.md") if room.exists() else []:
            if page not in written:
                page.unlink()
        for target, text in written.items():
            if not target.exists() or target.read_text(encoding="utf-8") != text:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")

    def linked(self, docname: str, text: str) -> list[str]:
        """The files of the repository to which a page links, or which it names."""
        folder = self.folder_of(docname)
        targets = [target.partition("#")[0] for picture, target in links(text)[1] if not picture]
        paths = [os.path.normpath(os.path.join(folder, target)) for target in targets]
        return [path for path in paths + self.named(text) if (self.root / path).exists()]

    def named(self, text: str) -> list[str]:
        """The files of the repository that a text names as code."""
        return [path for code in CODE.findall(text) if (path := self.mentioned(code)) is not None]

    def mentioned(self, code: str) -> str | None:
        """The file that a name such as `methods/dippa.py` means."""
        if not code.endswith(".py") or not FILE.match(code):
            return None
        return next((room + code for room in ROOMS if (self.root / room / code).is_file()), None)


def listing(path: str, text: str) -> str:
    """A page that shows a file. Links lead to it, but the search does not find it."""
    language = LANGUAGES.get(PurePosixPath(path).suffix, "text")
    return f"---\norphan: true\nnosearch: true\n---\n# {path}\n\n``````{language}\n{text.rstrip()}\n``````\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them, and change the links as they are read."""
    repository = Repository(Path(app.srcdir))

    def read(app: Sphinx, docname: str, source: list[str]) -> None:
        if app.env.doc2path(docname).suffix == ".md":
            source[0] = repository.rewritten(docname, source[0])

    app.connect("builder-inited", lambda app: repository.write_pages(), priority=100)
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
