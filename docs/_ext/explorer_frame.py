"""``{explorer}``: the explorer, written beside the page that shows it."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from saddlepoint.uses.pages.explorer import explorer_page

FILE = "explorer-page.html"
FRAME = f"""<p><a href="{FILE}">Open it in a window of its own</a>, or save that file: it needs nothing else.</p>
<iframe class="explorer" src="{FILE}" title="Explorer of bounds and methods" loading="lazy"></iframe>"""


class Explorer(SphinxDirective):
    """A frame with the explorer in it, for pages in the top folder."""

    def run(self) -> list[nodes.Node]:
        """Return the frame as HTML."""
        return [nodes.raw(FRAME, FRAME, format="html")]


def write(app: Sphinx, failure: Exception | None) -> None:
    """Write the explorer's page at the end of the build."""
    if failure is None and app.builder.format == "html":
        Path(app.outdir, FILE).write_text(explorer_page(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("explorer", Explorer)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
