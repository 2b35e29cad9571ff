"""Formulas as LaTeX."""

from __future__ import annotations

import re

from saddlepoint.uses.pages.formulas.tree import GREEK, MARKS, NOTHING, Node, parsed, power_of_ten

NAMES = {"eps": "varepsilon", "phi": "varphi"}  # Greek letters whose names differ in LaTeX
SIGNS = {  # signs that LaTeX writes as commands
    "∑": r"\sum", "∞": r"\infty", "∇": r"\nabla", "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "→": r"\to",
    "←": r"\leftarrow", "≈": r"\approx", "·": r"\cdot", "…": r"\ldots", "⟨": r"\langle", "⟩": r"\rangle",
    "∗": r"\ast", "⊤": r"\top", "{": r"\{", "}": r"\}", "′": r"\prime",
}  # fmt: skip


def latex(formula: str) -> str:
    """The formula in LaTeX.

    Example:
        >>> print(latex("sqrt(kx) + |A|/mu_x"))
        \\sqrt{\\kappa_x} + \\lVert A\\rVert/\\mu_x
    """
    return _latex(parsed(formula)).strip()


def _latex(node: Node) -> str:
    if node.kind == "row":
        return _latex_row(node.parts)
    if node.kind == "name":
        if node.text in GREEK:
            return f"\\{NAMES.get(node.text, node.text)}"
        return SIGNS.get(node.text, node.text)
    if node.kind == "upright":
        return f"\\{node.text}" if node.text in ("min", "max", "log", "exp") else f"\\mathrm{{{node.text}}}"
    if node.kind == "number":
        return power_of_ten(node.text, "{} \\cdot 10^{{{}}}", "10^{{{}}}")
    if node.kind == "text":
        return f"\\text{{{node.text}}}"
    if node.kind in ("root", *MARKS.values()):
        return f"\\{'sqrt' if node.kind == 'root' else node.kind}{{{_latex(node.parts[0])}}}"
    if node.kind == "scripts":
        base, index, power = node.parts
        below = "" if index == NOTHING else f"_{_argument(_latex(index))}"
        return f"{_latex(base)}{below}" + ("" if power == NOTHING else f"^{_argument(_latex(power))}")
    if node.kind == "matrix":
        rows = (" & ".join(map(_latex, row.parts)) for row in node.parts)
        return "\\begin{pmatrix} " + " \\\\ ".join(rows) + " \\end{pmatrix}"
    if node.kind == "space":
        return " \\quad " if len(node.text) > 2 else " "
    if node.text == "‖":
        return "\\lVert " if node.kind == "open" else "\\rVert"
    found = SIGNS.get(node.text, node.text)
    return found + " " if found[-1].isalpha() else found


def _argument(text: str) -> str:
    """An index or an exponent, in braces if it is longer than a letter."""
    return text if len(text) == 1 else f"{{{text.strip()}}}"


def _latex_row(parts: tuple[Node, ...]) -> str:
    """The parts one after the other; words keep the spaces around them."""
    found = []
    for i, part in enumerate(parts):
        if part.kind == "space" and any(0 <= j < len(parts) and parts[j].kind == "text" for j in (i - 1, i + 1)):
            found.append("\\ " if len(part.text) <= 2 else " \\quad ")
        elif part.kind == "space" and i and parts[i - 1].kind == "upright":
            found.append("\\, ")
        else:
            found.append(_latex(part))
    text = ""
    for piece in found:  # a command ends where no letter follows
        text += f" {piece}" if re.search(r"\\[A-Za-z]+$", text) and piece[:1].isalpha() else piece
    return re.sub(" +", " ", text)
