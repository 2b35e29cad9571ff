"""Formulas in plain text become the LaTeX and the MathML that were meant, and words stay words."""

import ast
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import saddlepoint as sp
from saddlepoint.uses.pages.formulas import FormulaError, as_html, latex, mathml, pieces, segments

SOURCE = Path(sp.__file__).parent


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        ("sqrt(c (kx + ky)) + c", r"\sqrt{c (\kappa_x + \kappa_y)} + c"),
        ("|x_{k+1} - x*|^2 <= eps", r"\lVert x_{k+1} - x^{\ast}\rVert^2 \le \varepsilon"),
        ("<x, A y> - h(y)", r"\langle x, A y\rangle - h(y)"),
        ("A' x, w'(x - c), (A A')^-1", r"A^{\top} x, w^{\top}(x - c), (A A^{\top})^{-1}"),
        ("h''(0) >= h'(1)", r"h^{\prime \prime}(0) \ge h^{\prime}(1)"),
        ("xt_k = xb + yh", r"\tilde{x}_k = \bar{x} + \hat{y}"),
        ("k1, Fx, tx, l2", r"k_1, F_x, t_x, l_2"),
        ("C y = Cy", r"C y = Cy"),
        ("x+ = x - t grad g(x)", r"x^+ = x - t \nabla g(x)"),
        ("N = |[[c, 1], [2, 0]]|", r"N = \lVert \begin{pmatrix} c & 1 \\ 2 & 0 \end{pmatrix}\rVert"),
        ("(kx ky)^(1/4), c^2, 2^-k", r"(\kappa_x \kappa_y)^{1/4}, c^2, 2^{-k}"),
        ("prox_{t p}(v) ~ argmin G", r"\mathrm{prox}_{t p}(v) \approx \mathrm{argmin}\, G"),
        ("O~(n), n -> inf, 1e-8, 2.5e-8", r"\tilde{O}(n), n \to \infty, 10^{-8}, 2.5 \cdot 10^{-8}"),
        ("|M| |z| + ||A||_2", r"\lVert M\rVert \lVert z\rVert + \lVert A\rVert_2"),
        ("a * b <= c, J* u", r"a \cdot b \le c, J^{\ast} u"),
    ],
)
def test_formulas_become_latex_and_mathml(plain, expected):
    assert latex(plain) == expected
    ElementTree.fromstring(mathml(plain))


@pytest.mark.parametrize("broken", ["sqrt(c", "x_", "x^{2", "[[1, 2], [3, 4]", "'a", "_x"])
def test_what_is_no_formula_is_an_error(broken):
    with pytest.raises(FormulaError):
        latex(broken)


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("one prox of g, of h and of the coupling", ["g", "h"]),
        ("falls by 1/(1 + r) a step, up to a constant", ["1/(1 + r)"]),
        ("O((kx + ky + c) log 1/eps) queries (Theorem `dippa:0`).", ["O((kx + ky + c) log 1/eps)"]),
        ("A copy of A. A is a matrix; A round calls it.", ["A", "A"]),
        ("the paper's g is L-smooth and mu-strongly convex", ["g", "L", "mu"]),
        ("N. J. Higham et al., Gauss-Seidel, log-cosh, 10 to 20, 5 %", []),
        ("it is x_lower, and <|x| is not a formula, nor (a_i is", ["a_i"]),
        ("min_w max_v sum w_i (a_i't - b_i)^2 over a set", ["min_w max_v sum w_i (a_i't - b_i)^2"]),
    ],
)
def test_formulas_are_found_in_sentences(text, formulas):
    found = segments(text)
    assert "".join(part for _, part in found) == text
    assert [part for formula, part in found if formula] == formulas


def test_long_formulas_have_places_where_a_line_may_end():
    whole = "mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 <= C (1 - rho)^k (mu_x |x_0 - x*|^2 + mu_y |y_0 - y*|^2)"
    parts = pieces(whole)
    assert parts[:2] == ["mu_x |x_k - x*|^2", "+ mu_y |y_k - y*|^2"]
    assert " ".join(parts) == whole
    assert pieces("kx + ky") == ["kx + ky"]
    assert as_html("<bold> is |A|/mu").startswith("&lt;bold&gt; is <math>")


def test_every_formula_of_a_docstring_can_be_read():
    count = 0
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else None
            for paragraph in re.split(r"\n\s*\n", text or ""):
                for formula, part in segments(" ".join(paragraph.split())):
                    if formula:
                        ElementTree.fromstring(mathml(part))
                        assert all(map(latex, pieces(part)))
                        count += 1
    assert count > 3000
