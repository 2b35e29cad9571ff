"""``{bibtex} METHOD``: what to cite for a run of that method, as ``result.cite()`` says it."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from saddlepoint import make_method
from saddlepoint.solving.citations import citations


class BibTeX(SphinxDirective):
    """The entries of a registered method, with the one of this software."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the block of BibTeX, which a reader can copy."""
        text = "\n\n".join(citations(make_method(self.arguments[0])).values())
        return [nodes.literal_block(text, text, language="bibtex")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("bibtex", BibTeX)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
