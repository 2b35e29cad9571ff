"""Translate Python functions to JavaScript, so that a page computes with the library's own formulas.

A function may use numbers, texts and functions of its module, which are translated too. Code that could mean something
else in JavaScript is refused: a condition that is neither true nor false, a number in an f-string without a format, and
an integer that is too large.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
import re
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

# Operators and functions of Python, and what they are in JavaScript.
BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "===", ast.NotEq: "!=="}
MATH = ("asinh", "ceil", "exp", "floor", "hypot", "log", "log1p", "pow", "sqrt")
MATH_CONSTANTS = {"e": "Math.E", "inf": "Infinity", "pi": "Math.PI"}
BUILTINS = {"abs": "Math.abs", "max": "Math.max", "min": "Math.min"}
RESERVED = re.compile(  # names that JavaScript or this translation uses
    "arguments|await|break|case|catch|class|const|continue|debugger|default|delete|do|else|enum|eval|export|extends|"
    "false|finally|for|function|if|implements|import|in|instanceof|interface|let|new|null|package|private|protected|"
    "public|return|static|super|switch|this|throw|true|try|typeof|undefined|var|void|while|with|yield|"
    "Infinity|Math|NaN|Number|Object|String|formatG"
)
LARGEST = 2**53  # largest integer up to which all integers are numbers of JavaScript
GENERAL = re.compile(r"(?:\.(\d{1,2}))?g")  # formats of numbers that can be translated

# A JavaScript function that formats a number as Python does with `.3g`. JavaScript rounds a tie up, and Python to the
# even digit.
FORMAT = """\
function formatG(value, precision) {
  if (Number.isNaN(value)) return "nan";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  if (!Number.isFinite(value)) return sign + "inf";
  const digits = Math.max(precision, 1);
  const exact = Math.abs(value).toExponential(60).replace(".", "");
  const tieToEven = /^50*$/.test(exact.slice(digits, 61)) && "02468".includes(exact[digits - 1]);
  const [figures, power] = (
    tieToEven ? exact.slice(0, digits) + exact.slice(61) : Math.abs(value).toExponential(digits - 1).replace(".", "")
  ).split("e");
  const exponent = Number(power);
  const point = (text, after) => `${text.slice(0, after)}.${text.slice(after)}`.replace(/\\.?0*$/, "");
  if (exponent < -4 || exponent >= digits) {
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${point(figures, 1)}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  return sign + (exponent < 0 ? point("0".repeat(-exponent) + figures, 1) : point(figures, exponent + 1));
}"""


class TranslationError(ValueError):
    """A function has something in it that this module does not translate."""


def javascript(name: str, *functions: Callable[..., Any]) -> str:
    """The code of a JavaScript object ``name`` whose members are the functions and all functions that they call."""
    found = _Found()
    for function in functions:
        found.add_function(function)
    members = ", ".join(found.functions)
    body = [FORMAT, *(f"const {key} = {_literal(value)};" for key, value in found.constants.items())]
    code = "\n".join([*body, *found.functions.values(), f"return {{ {members} }};"])
    return f"const {name} = (() => {{\n{code}\n}})();\n"


def as_function(function: Callable[..., Any]) -> str:
    """The JavaScript of one function, without the functions that it calls.

    Example:
        >>> from saddlepoint.theory.table1 import lower_order
        >>> print(as_function(lower_order))
        function lower_order(kx, ky, c) {
          return (c + Math.sqrt((kx + ky)));
        }
    """
    return _Function(function, _Found()).text


class _Found:
    """The functions and constants that were found so far, by name."""

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}
        self.constants: dict[str, Any] = {}
        self.originals: dict[str, Any] = {}

    def is_new(self, name: str, value: Any) -> bool:
        if name not in self.originals:
            self.originals[name] = value
            return True
        if self.originals[name] is not value:
            raise TranslationError(f"{name} means two things in the modules of these functions; rename one")
        return False

    def add_function(self, function: Callable[..., Any]) -> None:
        name = getattr(function, "__name__", "")
        if self.is_new(name, function):
            text = _Function(function, self).text  # this adds the functions that it calls first
            self.functions[name] = text

    def add_constant(self, name: str, value: Any) -> None:
        if self.is_new(name, value):
            self.constants[name] = value


class _Function:
    """The translation of one function."""

    def __init__(self, function: Callable[..., Any], found: _Found) -> None:
        if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
            raise TranslationError(f"{function!r} is no function that was written with `def`")
        self.globals, self.found, self.name = function.__globals__, found, function.__name__
        node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        self.where = f"{function.__module__}.{function.__qualname__}"
        self.first_line = function.__code__.co_firstlineno
        if not isinstance(node, ast.FunctionDef) or node.decorator_list or function.__code__.co_freevars:
            raise TranslationError(f"{self.where}: a plain function is expected, without decorators and closures")
        given = node.args
        if given.vararg or given.kwarg or given.kwonlyargs:
            raise self.refusal(node, "arguments other than plain ones")
        names = [self.checked(one.arg, node) for one in (*given.posonlyargs, *given.args)]
        self.locals = set(names) | {
            self.checked(one.id, one) for one in ast.walk(node) if isinstance(one, ast.Name) and _is_stored(one)
        }
        assigned = sorted(self.locals - set(names))
        required = len(names) - len(given.defaults)
        defaults = ["", *(f" = {self.value(one)}" for one in given.defaults)]
        header = ", ".join(name + defaults[max(0, k - required + 1)] for k, name in enumerate(names))
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if not _returns(body):
            raise self.refusal(node, "an end without `return`")
        lines = [f"let {', '.join(assigned)};"] if assigned else []
        lines += [line for statement in body for line in self.statement(statement)]
        self.text = "\n".join([f"function {self.checked(self.name, node)}({header}) {{", *_indented(lines), "}"])

    def refusal(self, node: ast.AST, what: str) -> TranslationError:
        line = self.first_line + getattr(node, "lineno", 1) - 1
        return TranslationError(f"{self.where}, line {line}: {what} cannot be translated to JavaScript")

    def checked(self, name: str, node: ast.AST) -> str:
        if RESERVED.fullmatch(name) or not name.isascii():
            raise self.refusal(node, f"the name {name!r}")
        return name

    # -- statements --------------------------------------------------------------------------------------------------

    def statement(self, node: ast.stmt) -> list[str]:
        if isinstance(node, ast.Return) and node.value is not None:
            return [f"return {self.value(node.value)};"]
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            return [f"{self.target(node.targets[0])} = {self.value(node.value)};"]
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            return [f"{self.target(node.target)} = {self.value(node.value)};"]
        if isinstance(node, ast.If):
            lines = [f"if ({self.truth(node.test)}) {{", *self.block(node.body), "}"]
            if node.orelse:
                lines[-1:] = ["} else {", *self.block(node.orelse), "}"]
            return lines
        raise self.refusal(node, f"`{ast.unparse(node).splitlines()[0]}`")

    def block(self, body: list[ast.stmt]) -> list[str]:
        return _indented([line for one in body for line in self.statement(one)])

    def target(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Tuple) and all(isinstance(one, ast.Name) for one in node.elts):
            return f"[{', '.join(self.target(one) for one in node.elts)}]"
        raise self.refusal(node, f"an assignment to `{ast.unparse(node)}`")

    # -- expressions -------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return self.constant(node)
        if isinstance(node, ast.Name):
            return self.named(node)
        if isinstance(node, ast.Attribute):
            return self.attribute(node)
        if isinstance(node, ast.BinOp) and type(node.op) in BINARY and not _is_text(node.left) | _is_text(node.right):
            return f"({self.value(node.left)} {BINARY[type(node.op)]} {self.value(node.right)})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            return f"({'-' if isinstance(node.op, ast.USub) else '+'}{self.value(node.operand)})"
        if isinstance(node, ast.IfExp):
            return f"({self.truth(node.test)} ? {self.value(node.body)} : {self.value(node.orelse)})"
        if isinstance(node, ast.Tuple):
            return f"[{', '.join(self.value(one) for one in node.elts)}]"
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.JoinedStr):
            return f"`{''.join(self.part(one) for one in node.values)}`"
        return self.truth(node)

    def truth(self, node: ast.expr) -> str:
        """The translation of a condition, which must be a Boolean and not another value that counts as one."""
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.BoolOp):
            sign = " && " if isinstance(node.op, ast.And) else " || "
            return f"({sign.join(self.truth(one) for one in node.values)})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"(!{self.truth(node.operand)})"
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return self.constant(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = self.globals.get(node.func.id)
            if isinstance(called, FunctionType) and called.__annotations__.get("return") in ("bool", bool):
                return self.call(node)
        raise self.refusal(node, f"`{ast.unparse(node)}`")

    def comparison(self, node: ast.Compare) -> str:
        pairs = []
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if type(operator) not in COMPARED or isinstance(left, ast.Tuple) or isinstance(right, ast.Tuple):
                raise self.refusal(node, f"`{ast.unparse(node)}`")
            pairs.append(f"({self.value(left)} {COMPARED[type(operator)]} {self.value(right)})")
        return pairs[0] if len(pairs) == 1 else f"({' && '.join(pairs)})"

    def constant(self, node: ast.Constant) -> str:
        try:
            return _literal(node.value)
        except TranslationError:
            raise self.refusal(node, f"the constant {node.value!r}") from None

    def named(self, node: ast.Name) -> str:
        name = node.id
        if name in self.locals:
            return name
        if name not in self.globals:
            raise self.refusal(node, f"the name {name!r}, which is no constant of the module,")
        value = self.globals[name]
        try:
            _literal(value)
        except TranslationError:
            raise self.refusal(node, f"{name}, which is neither a number nor a text,") from None
        self.found.add_constant(self.checked(name, node), value)
        return name

    def attribute(self, node: ast.Attribute) -> str:
        if self.is_math(node.value) and node.attr in MATH_CONSTANTS:
            return MATH_CONSTANTS[node.attr]
        raise self.refusal(node, f"`{ast.unparse(node)}`")

    def is_math(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id not in self.locals and self.globals.get(node.id) is math

    def call(self, node: ast.Call) -> str:
        if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
            raise self.refusal(node, f"`{ast.unparse(node)}`, which names or unpacks arguments,")
        return f"{self.callee(node)}({', '.join(self.value(one) for one in node.args)})"

    def callee(self, node: ast.Call) -> str:
        called = node.func
        if isinstance(called, ast.Attribute) and self.is_math(called.value) and called.attr in MATH:
            if called.attr == "log" and len(node.args) != 1:
                raise self.refusal(node, "a logarithm to a base")
            return f"Math.{called.attr}"
        if isinstance(called, ast.Name) and called.id not in self.locals:
            function = self.globals.get(called.id)
            if isinstance(function, FunctionType) and function.__name__ == called.id:
                self.found.add_function(function)
                return called.id
            if function is None and called.id in BUILTINS:
                if called.id != "abs" and len(node.args) < 2:
                    raise self.refusal(node, f"`{called.id}` of a single argument")
                return BUILTINS[called.id]
        raise self.refusal(node, f"a call of `{ast.unparse(called)}`")

    def part(self, node: ast.expr) -> str:
        """The translation of a part of an f-string."""
        if isinstance(node, ast.Constant):
            return re.sub(r"([`$])", r"\\\1", _literal(node.value)[1:-1])
        if isinstance(node, ast.FormattedValue) and node.conversion == -1:
            spec = node.format_spec
            written = spec.values[0] if isinstance(spec, ast.JoinedStr) and len(spec.values) == 1 else None
            form = GENERAL.fullmatch(str(written.value)) if isinstance(written, ast.Constant) else None
            if form:
                return f"${{formatG({self.value(node.value)}, {int(form[1] or 6)})}}"
        raise self.refusal(node, "a value in an f-string whose format is not like `:.3g`")


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Tuple | ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _returns(body: list[ast.stmt]) -> bool:
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _returns(last.body) and _returns(last.orelse)
    return isinstance(last, ast.Return)


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value).replace("<", "\\u003c")  # "<" could end the script element of a page
    if isinstance(value, int) and abs(value) <= LARGEST:
        return repr(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    raise TranslationError(f"{value!r} is no constant of JavaScript's")
