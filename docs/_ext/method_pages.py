"""What the register knows about methods: ``{methods-table}``, and the page of one method for the API reference."""

import sys
from dataclasses import fields, is_dataclass
from typing import Any

from docstrings import marked_up
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import saddlepoint as sp
from saddlepoint.uses.pages.formulas import as_markdown


def reference(target: str, shown: nodes.Node) -> nodes.Node:
    """A link to the entry of ``target`` in the API reference."""
    link = addnodes.pending_xref("", shown, refdomain="py", reftype="obj", reftarget=target, refexplicit=True)
    link["refwarn"] = True
    return link


def table(head: list[str], rows: list[list[nodes.Node]], widths: list[int]) -> nodes.table:
    """A table of inline nodes."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=width) for width in widths]

    def row(cells: list[nodes.Node]) -> nodes.row:
        return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))

    group += [nodes.thead("", row([nodes.Text(word) for word in head])), nodes.tbody("", *map(row, rows))]
    return nodes.table("", group, classes=["methods"])


def class_of(method: Any) -> str:
    """The name of the class of a registered method, as the API reference has it."""
    return f"saddlepoint.{type(method).__name__}"


class MethodsTable(SphinxDirective):
    """``sp.methods()`` as a table."""

    def run(self) -> list[nodes.Node]:
        """Return the table, with a row for each method."""
        rows = []
        for info in sp.methods():
            name = reference(class_of(sp.make_method(info.name)), nodes.literal(info.name, info.name))
            rows.append([name, nodes.Text(info.oracle), mathematics(info.complexity), nodes.Text(info.reference)])
        return [table(["name", "oracle", "calls, without logarithms", "reference"], rows, [18, 12, 40, 30])]


def code(text: str) -> nodes.literal:
    """The text as code."""
    return nodes.literal(text, text)


def mathematics(text: str) -> nodes.inline:
    """The text, with its formulas as mathematics."""
    parts = as_markdown(text).split("$")
    return nodes.inline(
        "", "", *(nodes.math(part, part) if i % 2 else nodes.Text(part) for i, part in enumerate(parts))
    )


class MethodPage(SphinxDirective):
    """The page of one method, from its class and the docstring of its file."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the registered names, the options, and the docstring of the file."""
        cls = getattr(sp, self.arguments[0])
        found: list[nodes.Node] = []
        known = [info for info in sp.methods() if type(sp.make_method(info.name)) is cls]
        for info in known:
            words = [
                nodes.Text("In the register as "),
                code(info.name),
                nodes.Text(f"; oracle: {info.oracle}; calls: "),
            ]
            found.append(nodes.paragraph("", "", *words, mathematics(info.complexity)))
        options = [option for option in fields(cls) if "doc" in option.metadata] if is_dataclass(cls) else []
        if options:
            rows = [[code(o.name), code(repr(o.default)), mathematics(o.metadata["doc"])] for o in options]
            found.append(table(["option", "default", "meaning"], rows, [15, 15, 70]))
        text = (sys.modules[cls.__module__].__doc__ or "").strip()
        found.append(nodes.rubric("", "The page of its paper"))
        return [*found, *self.parse_text_to_nodes("\n".join(marked_up(text.splitlines())))]


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives."""
    app.add_directive("methods-table", MethodsTable)
    app.add_directive("method-page", MethodPage)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
