"""Links from the pages of source code back to the reference, for a module that the reference has under two names.

viewcode remembers one name for each module and makes its links of it. If `sp.Certificate` and `sp.theory.gap_bound` are
in one file, half of these links would have no target, so each entry gets the name that viewcode expects as well.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.viewcode import OUTPUT_DIRNAME, viewcode_anchor


def add_names(app: Sphinx, doctree: nodes.document) -> None:
    """Give each entry with a link to its source the anchor of the link back."""
    modules = getattr(app.env, "_viewcode_modules", {})
    for signature in doctree.findall(addnodes.desc_signature):
        for anchor in signature.findall(viewcode_anchor):
            entry = modules.get(anchor["reftarget"].removeprefix(f"{OUTPUT_DIRNAME}/").replace("/", "."))
            name = f"{entry[3]}.{anchor['refid']}" if entry else ""
            if name and name not in signature["ids"]:
                signature["ids"].append(name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension, which runs after viewcode."""
    app.connect("doctree-read", add_names, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
