"""Names in code type lead to their pages: `sp.solve`, `Saddle`, `lpd-gs`, `methods/dippa.py`, `saddlepoint solve`.

A name is a link where a section mentions it first; names of files always are.
"""

import re
from pathlib import Path

import typer
from docutils import nodes
from repository import Repository
from sphinx import addnodes
from sphinx.application import Sphinx

import saddlepoint as sp
from saddlepoint.commands.app import app as cli

CALL = re.compile(r"(?:sp|saddlepoint)\.([\w.]+?)(?:\(.*\))?$")
COMMAND = re.compile(r"saddlepoint ([a-z]+)\b")


def known_names() -> dict[str, str]:
    """The names that pages may write as code, and the entries of the API reference that they lead to."""
    found = {}
    for home, public in ((sp, sp.__all__), (sp.theory, sp.theory.__all__), (sp.apps, sp.apps.__all__)):
        prefix = home.__name__.removeprefix("saddlepoint").removeprefix(".")
        for name in public:
            place = f"{prefix}.{name}" if prefix else name
            found[f"sp.{place}"] = f"saddlepoint.{place}"
            if name[0].isupper() or home is sp.theory:  # `check` alone may be a command, or a word
                found[name] = f"saddlepoint.{place}"
    for info in sp.methods():
        found[info.name] = f"saddlepoint.{type(sp.make_method(info.name)).__name__}"
    return {name: target for name, target in found.items() if not name.endswith(("sp.theory", "sp.apps"))}


class Crosslinks:
    """Turns names and files that are written as code into links."""

    def __init__(self, docs: Path) -> None:
        self.repository = Repository(docs)
        self.names = known_names()
        self.commands = set(typer.main.get_command(cli).commands)

    def target(self, text: str) -> dict[str, str] | None:
        """The page that a text written as code leads to; None if there is none."""
        path = self.repository.mentioned(text)
        if path is not None:
            page = self.repository.home(path)
            return {"refdomain": "std", "reftype": "doc", "reftarget": "/" + page.rpartition(".")[0]}
        command = COMMAND.match(text)
        if command and command[1] in self.commands:
            return {"refdomain": "std", "reftype": "doc", "reftarget": "/command-line"}
        call = CALL.match(text)
        name = self.names.get(f"sp.{call[1]}" if call else text)
        return name and {"refdomain": "py", "reftype": "obj", "reftarget": name}

    def add(self, app: Sphinx, doctree: nodes.document) -> None:
        """Make links of the names on a page."""
        seen: set[tuple[int, str]] = set()
        for code in list(doctree.findall(nodes.literal)):
            if self.linked_or_heading(code):
                continue
            target = self.target(code.astext())
            if target is None or target["reftarget"] == f"/{app.env.docname}":
                continue
            if target["refdomain"] == "py" or target["reftarget"] == "/command-line":
                mention = (id(self.section(code)), target["reftarget"])
                if mention in seen:
                    continue
                seen.add(mention)
            link = addnodes.pending_xref("", refexplicit=True, refwarn=True, refdoc=app.env.docname, **target)
            code.replace_self(link)
            link.append(code)

    @staticmethod
    def linked_or_heading(node: nodes.Node) -> bool:
        """Whether a node is in a link already, in a title, or a defined term."""
        kinds = (nodes.reference, addnodes.pending_xref, nodes.title, nodes.term, addnodes.download_reference)
        while node.parent is not None:
            node = node.parent
            if isinstance(node, kinds):
                return True
        return False

    @staticmethod
    def section(node: nodes.Node) -> nodes.Node:
        """The section that a node is in."""
        while node.parent is not None and not isinstance(node, nodes.section):
            node = node.parent
        return node


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("doctree-read", Crosslinks(Path(app.srcdir)).add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
