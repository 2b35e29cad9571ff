"""The site: `make docs` builds it into out/site, and a warning is an error. Nothing is fetched from a network."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent / "src")]

from pygments.lexers.special import TextLexer  # noqa: E402

from saddlepoint import __version__  # noqa: E402

project = "saddlepoint"
author = copyright = "The saddlepoint developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # ours, in _ext
    "repository",
    "docstrings",
    "executed",
    "citing",
    "commands",
    "crosslinks",
    "explorer_frame",
    "mathml",
    "method_pages",
    "source_links",
    "table_heads",
    "theory_functions",
    "unbroken",
]
exclude_patterns = ["_ext", "_templates"]
templates_path = ["_templates"]
highlight_language = "text"
smartquotes = False  # the prime of A' is not a quotation mark

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

add_module_names = False
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("Array", "Gradient", "Value", "Prox", "Hessian", "Part")}
autosummary_ignore_module_all = False
maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",  # every one is run
    "abort_on_example_error": True,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("saddlepoint",),
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "capture_repr": (),  # outputs are what the examples print
    "remove_config_comments": True,
    "download_all_examples": True,
    "thumbnail_size": (800, 560),  # sharp where a thumbnail fills a phone
    "within_subsection_order": "gallery_order.place",
}

html_theme = "pydata_sphinx_theme"
html_title = "saddlepoint"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_math_renderer = "mathml"
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses to do from files
html_theme_options = {
    "logo": {"text": "saddlepoint", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "start": []}  # pages without pages below them


def widen(app, docname, source):
    """Scripts have long lines: their pages do without a second sidebar."""
    if docname.startswith("gallery/"):
        source[0] = f":html_theme.sidebar_secondary.remove: true\n\n{source[0]}"


def setup(app):
    """Connect ``widen``, and register a lexer for Gambit's files."""
    app.connect("source-read", widen)
    app.add_lexer("efg", TextLexer)  # Gambit's files have none
