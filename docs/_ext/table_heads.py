"""Heads of tables that everybody can read: empty ones are left out, and formulas have words for screen readers."""

import re

from docutils import nodes
from sphinx.application import Sphinx


def mend(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Change the heads of all tables of a page."""
    for head in list(doctree.findall(nodes.thead)):
        cells = list(head.findall(nodes.entry))
        if not any(cell.astext().strip() for cell in cells):
            head.parent.remove(head)
            continue
        for cell in cells:
            formulas = list(cell.findall(nodes.math))
            plain = cell.astext()
            for formula in formulas:
                plain = plain.replace(formula.astext(), "")
            if not plain.strip(" ,"):
                words = ", ".join(re.sub(r"[\\{}]|lVert|rVert", "", formula.astext()) for formula in formulas)
                cell.append(nodes.paragraph("", words or "name", classes=["visually-hidden"]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension, which changes pages once their references are known."""
    app.connect("doctree-resolved", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
