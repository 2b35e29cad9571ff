"""Numbers that no line breaks: 1e-8, 12 000 and 5 % stay on one line."""

import re

from docutils import nodes
from sphinx.application import Sphinx

NUMBER = re.compile(r"\d+(?:\.\d+)?e-\d+|\b\d{1,3}(?: \d{3})+\b(?: %)?|\b\d+(?:\.\d+)? %|(?<![\w-])--[a-z][a-z-]+")
LITERAL = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.title, nodes.comment)


def keep_whole(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put such numbers into elements of their own, which the style sheet does not let break."""
    for text in list(doctree.findall(nodes.Text)):
        above = text.parent
        while above is not None and not isinstance(above, LITERAL):
            above = above.parent
        if above is not None or not NUMBER.search(text):
            continue
        parts, place = [], 0
        for match in NUMBER.finditer(text):
            parts += [nodes.Text(text[place : match.start()]), nodes.inline("", match[0], classes=["unbroken"])]
            place = match.end()
        text.parent.replace(text, [part for part in (*parts, nodes.Text(text[place:])) if part.astext()])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("doctree-resolved", keep_whole, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
