"""``{run}``: Python that is run when the site is built, shown with what it printed."""

import contextlib
import io

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Run(SphinxDirective):
    """The code with its output below. If the code fails, the build fails."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Run it in a namespace of its own."""
        code, said = "\n".join(self.content), io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, self.get_location(), "exec"), {"__name__": "site"})
        printed = said.getvalue().rstrip()
        shown = nodes.literal_block(code, code, language="python")
        output = nodes.literal_block(printed, printed, language="text", classes=["printed"])
        return [shown, output] if printed else [shown]


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("run", Run)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
