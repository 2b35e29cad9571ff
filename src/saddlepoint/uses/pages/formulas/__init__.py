"""Formulas that are written in plain text, for pages: as LaTeX, as MathML, and within sentences."""

from saddlepoint.uses.pages.formulas.latex import latex
from saddlepoint.uses.pages.formulas.mathml import mathml
from saddlepoint.uses.pages.formulas.sentences import as_html, as_markdown, pieces, segments
from saddlepoint.uses.pages.formulas.tree import FormulaError

__all__ = ["FormulaError", "as_html", "as_markdown", "latex", "mathml", "pieces", "segments"]
