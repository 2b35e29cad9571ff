"""What no line breaks: numbers such as 1e-8, 12 000 and 5 %, and a formula and the comma or bracket beside it."""

import re

from docutils import nodes
from sphinx.application import Sphinx

NUMBER = re.compile(r"\d+(?:\.\d+)?e-\d+|\b\d{1,3}(?: \d{3})+\b(?: %)?|\b\d+(?:\.\d+)? %|(?<![\w-])--[a-z][a-z-]+")
LITERAL = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.title, nodes.comment)

CLOSING = re.compile(r"[.,;:?)]+")


def keep_together(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put a formula and the characters that belong to it into one element."""
    for formula in list(doctree.findall(nodes.math)):
        parent = formula.parent
        place = parent.index(formula)
        before, after = (parent[k] if 0 <= k < len(parent) else None for k in (place - 1, place + 1))
        together = nodes.inline("", classes=["unbroken"])
        closing = CLOSING.match(after) if isinstance(after, nodes.Text) else None
        opening = isinstance(before, nodes.Text) and before.endswith("(")
        if not (closing or opening):
            continue
        parent.replace(formula, together)
        together += [nodes.Text("(")] * opening + [formula]
        if closing:
            together += nodes.Text(closing[0])
            parent.replace(after, nodes.Text(after[closing.end() :]))
        if opening:
            parent.replace(before, nodes.Text(before[:-1]))


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
    app.connect("doctree-resolved", keep_together, priority=899)
    app.connect("doctree-resolved", keep_whole, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
