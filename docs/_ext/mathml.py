"""Formulas as MathML, which browsers draw themselves: nothing has to be loaded from a network.

docutils translates LaTeX to MathML. Where its output differs from what LaTeX would print, `corrected` changes it.
"""

import re
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

THIN = '<mspace width="0.167em"/>'  # the thin space of LaTeX
# Norm bars and angle brackets keep the height of a letter, as in LaTeX, where only \left and \right make them grow.
CORRECTIONS = [
    (r'<mo class="mathopen">‖</mo>', '<mo form="prefix" stretchy="false">‖</mo>'),
    (r"<mo>‖</mo>", '<mo form="postfix" stretchy="false">‖</mo>'),
    (r'<mo class="mathopen">\|</mo>', '<mo form="prefix" stretchy="false">|</mo>'),
    (r"<mo>\|</mo>", '<mo form="postfix" stretchy="false">|</mo>'),
    (r'<mo stretchy="false">\|</mo>', '<mo stretchy="false" lspace="0" rspace="0">|</mo>'),
    (r"<mo>([⟨⟩])</mo>", r'<mo stretchy="false">\1</mo>'),
    (r"(<mi>\w</mi>)\s*<mo>'</mo>", r"<msup>\1<mo>′</mo></msup>"),
    (r'<mtable class="ams-align">', '<mtable class="ams-align" displaystyle="true">'),
    # A thin space before the name of a function, and after it where no bracket follows: n log n.
    (r"(</(?:mi|mn|msub|msup|mrow)>)(\s*<mi[^>]*>\w{2,}</mi>\s*<mo>&ApplyFunction;</mo>)", rf"\1{THIN}\2"),
    (r"(<mo>&ApplyFunction;</mo>)(?!\s*<mo[^>]*>\()", rf"\1{THIN}"),
]


# An index of a letter with a tilde, a bar or a hat stands beside it; docutils puts it below.
MARKED = re.compile(r'<munderover>((?:(?!</?munder).)*?)(<mo stretchy="false">[~ˆˉ¯^]</mo>)\s*</munderover>', re.DOTALL)


def corrected(latex: str, as_block: bool = False) -> str:
    """The formula in MathML."""
    text = tex2mathml(latex, as_block=as_block)
    text = MARKED.sub(_index_beside, text)
    for pattern, replacement in CORRECTIONS:
        text = re.sub(pattern, replacement, text)
    return text


def _index_beside(found: re.Match[str]) -> str:
    base, index = ElementTree.fromstring(f"<mrow>{found[1]}</mrow>")
    parts = [ElementTree.tostring(part, "unicode").strip() for part in (base, index)]
    return f'<msub><mover accent="true">{parts[0]}{found[2]}</mover>{parts[1]}</msub>'


def inline(translator: Any, node: nodes.math) -> None:
    """A formula within a line."""
    translator.body.append(corrected(node.astext()))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own."""
    translator.body.append(f'<div class="math"><div>{corrected(node.astext(), as_block=True)}</div></div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the renderer; conf.py chooses it."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
