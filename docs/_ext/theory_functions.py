"""``theory-functions``: everything public in ``saddlepoint.theory``, a section for each of its files."""

import sys
from types import ModuleType

from docstrings import marked_up
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from saddlepoint import theory


def by_file() -> dict[str, list[str]]:
    """The public names by the module that has them."""
    found: dict[str, list[str]] = {}
    for name in theory.__all__:
        thing = getattr(theory, name)
        home = getattr(thing, "__module__", None)
        if not (isinstance(home, str) and home.startswith(theory.__name__)):  # a table
            home = next(m.__name__ for m in modules() if name in vars(m) and m is not theory)
        found.setdefault(home, []).append(name)
    return dict(sorted(found.items()))


def modules() -> list[ModuleType]:
    """The modules of ``saddlepoint.theory``."""
    return [module for name, module in sorted(sys.modules.items()) if name.startswith(theory.__name__)]


class TheoryFunctions(SphinxDirective):
    """The directive, for pages in reStructuredText."""

    def run(self) -> list[nodes.Node]:
        """Return, for each file, its docstring, a table of its functions, and their entries."""
        lines = [".. currentmodule:: saddlepoint.theory", ""]
        for home, names in by_file().items():
            title = home.removeprefix("saddlepoint.theory.")
            lines += [title, "-" * len(title), "", *marked_up((sys.modules[home].__doc__ or "").splitlines())]
            lines += [".. autosummary::", "", *(f"   {name}" for name in names), ""]
            for name in names:
                kind = "function" if callable(getattr(theory, name)) else "data"
                kind = "class" if isinstance(getattr(theory, name), type) else kind
                options = ["   :no-value:"] if kind == "data" else []
                lines += [f".. auto{kind}:: {name}", *options, ""]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("theory-functions", TheoryFunctions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
