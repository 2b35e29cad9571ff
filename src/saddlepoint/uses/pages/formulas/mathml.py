"""Formulas as MathML, which browsers draw themselves."""

from __future__ import annotations

from html import escape

from saddlepoint.uses.pages.formulas.tree import GREEK, NOTHING, Node, parsed, power_of_ten

POWER = "<msup><mn>10</mn><mn>{}</mn></msup>"  # a power of ten
MARK = {"tilde": "~", "bar": "‾", "hat": "^"}


def mathml(formula: str, block: bool = False) -> str:
    """The formula in MathML.

    Example:
        >>> mathml("x*")
        '<math><mrow><msup><mi>x</mi><mo>∗</mo></msup></mrow></math>'
    """
    style = ' display="block"' if block else ""
    return f"<math{style}>{_mathml(parsed(formula))}</math>"


def _mathml(node: Node) -> str:
    if node.kind == "row":
        return f"<mrow>{''.join(map(_mathml, node.parts))}</mrow>"
    if node.kind == "name":
        return f"<mi>{GREEK.get(node.text, node.text)}</mi>"
    if node.kind == "upright":
        return f'<mi mathvariant="normal">{node.text}</mi>'
    if node.kind == "number":
        return power_of_ten(node.text, f"<mn>{{}}</mn><mo>·</mo>{POWER}", POWER, "<mn>{}</mn>")
    if node.kind == "text":
        return f"<mtext>{escape(node.text)}</mtext>"
    if node.kind == "root":
        return f"<msqrt>{_mathml(node.parts[0])}</msqrt>"
    if node.kind in MARK:
        return f'<mover accent="true">{_mathml(node.parts[0])}<mo>{MARK[node.kind]}</mo></mover>'
    if node.kind == "scripts":
        base, index, power = node.parts
        if index == NOTHING:
            return f"<msup>{_mathml(base)}{_mathml(power)}</msup>"
        if power == NOTHING:
            return f"<msub>{_mathml(base)}{_mathml(index)}</msub>"
        return f"<msubsup>{''.join(map(_mathml, node.parts))}</msubsup>"
    if node.kind == "matrix":
        cells = ("".join(f"<mtd>{_mathml(cell)}</mtd>" for cell in row.parts) for row in node.parts)
        rows = "".join(f"<mtr>{row}</mtr>" for row in cells)
        return f"<mrow><mo>(</mo><mtable>{rows}</mtable><mo>)</mo></mrow>"
    if node.kind == "space":
        return '<mspace width="1em"/>' if len(node.text) > 2 else '<mspace width="0.2em"/>'
    if node.kind in ("open", "close"):
        form = "prefix" if node.kind == "open" else "postfix"
        return f'<mo form="{form}" stretchy="false">{escape(node.text)}</mo>'
    return f"<mo>{'−' if node.text == '-' else escape(node.text)}</mo>"
