"""The register of methods: from a name to a method, and tables of all methods.

``register`` adds a class, ``register_expression`` adds a wrapper around a method under a name of its own. Everything
else about a method is read from its class. A wrapper around a registered method needs no registration to be found, by
the name that results show for it: "anderson-pdhg" is ``Anderson(PDHG())``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, fields
from typing import Any, NamedTuple, TypeVar

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import did_you_mean, short_repr
from saddlepoint.methods.base import Method
from saddlepoint.methods.references import reference
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import FORCED, TABLE1, Row

RESERVED = ("auto", "agd")  # names that no method may have: the automatic choice, and a minimiser of one function


class Entry(NamedTuple):
    """The entry of the register for a name."""

    make: Callable[..., Method]
    complexity: Complexity
    options: dict[str, Field[Any]]
    origin: str  # where it was defined; a second definition from elsewhere is refused


_REGISTER: dict[str, Entry] = {}
_WRAPPERS: dict[str, type[Method]] = {}  # classes of methods that take a method, by their names

M = TypeVar("M", bound=type[Method])


def register(method: M) -> M:
    """Class decorator: make the method known by its name.

    A name belongs to one class. The same class may be registered again, as happens when a cell of a notebook is
    executed twice or a module is reloaded; the later definition replaces the earlier one.
    """
    options = {option.name: option for option in fields(method)}
    _enter(method.name, Entry(method, method.complexity, options, f"{method.__module__}.{method.__qualname__}"))
    return method


def register_wrapper(wrapper: type[Method]) -> None:
    """Make the class of a method that takes a method known by its name."""
    _WRAPPERS[wrapper.name] = wrapper


def register_expression(
    name: str, wrapper: type[Method], inner: type[Method] | str, complexity: Complexity, **defaults: Any
) -> None:
    """Make ``wrapper(inner())`` known by a name of its own.

    Its options are those of the inner method and of the wrapper.

    Args:
        name: the name.
        wrapper: the class of the wrapper, whose first option is the inner method.
        inner: the class of the inner method, or its registered name.
        complexity: the oracle calls of the wrapped method.
        defaults: values of options that differ from those of the two classes.
    """
    if isinstance(inner, str):
        inside = _entry(inner)._replace(origin=inner)
    else:
        options = {option.name: option for option in fields(inner)}
        inside = Entry(inner, inner.complexity, options, f"{inner.__module__}.{inner.__qualname__}")
    _enter(name, _around(wrapper, inside, complexity, defaults))


def _around(wrapper: type[Method], inside: Entry, complexity: Complexity, defaults: dict[str, Any]) -> Entry:
    """The entry of a wrapper around the method of another entry."""
    outer = {option.name: option for option in fields(wrapper)[1:]}
    wrap: Callable[..., Method] = wrapper

    def make(**given: Any) -> Method:
        given = defaults | given
        wrapped = inside.make(**{key: value for key, value in given.items() if key not in outer})
        return wrap(wrapped, **{key: value for key, value in given.items() if key in outer})

    origin = f"{wrapper.__module__}.{wrapper.__qualname__} around {inside.origin}"
    return Entry(make, complexity, inside.options | outer, origin)


def _enter(name: str, entry: Entry) -> None:
    known = _REGISTER.get(name)
    if name in RESERVED:
        raise ProblemError(f"a method is to be registered as {name!r}, which means something else; give another name")
    if known is not None and known.origin != entry.origin:
        raise ProblemError(
            f"the name {name!r} is taken by {known.origin}; give {entry.origin} another name in its attribute `name`"
        )
    _REGISTER[name] = entry


def method_names() -> list[str]:
    """All registered names, sorted."""
    return sorted(_REGISTER)


def method_options(name: str) -> dict[str, Field[Any]]:
    """The options of the registered method of that name."""
    return _entry(name).options


def make_method(name: str, **options: Any) -> Method:
    """The registered method of that name, with its options."""
    entry = _entry(name)
    unknown = [option for option in options if option not in entry.options]
    if unknown:
        raise ProblemError(
            f"method {name!r} got the options {', '.join(unknown)}; it knows {', '.join(entry.options) or 'none'}"
        )
    return entry.make(**options)


def as_method(method: Any) -> Method:
    """The method itself, or the registered method of that name."""
    if isinstance(method, Method):
        return method
    if isinstance(method, type) and issubclass(method, Method):
        raise ProblemError(f"method is the class {method.__name__}; give an object, {method.__name__}()")
    if not isinstance(method, str):
        raise ProblemError(f"method is {short_repr(method)}; expected a name or a Method object")
    return make_method(method)


def method_or_auto(method: Any) -> Method | None:
    """The method that was asked for; None for "auto", the choice that ``solve`` makes."""
    return None if isinstance(method, str) and method == "auto" else as_method(method)


def _entry(name: Any) -> Entry:
    if not isinstance(name, str):
        raise ProblemError(f"the name of a method is {short_repr(name)}; expected a text")
    if name == "agd":
        raise ProblemError("agd minimises one function and is no saddle method; use the component saddlepoint.AGD")
    if name == "auto":
        raise ProblemError(
            f"auto is no single method, but the choice that solve makes among them; expected one of "
            f"{', '.join(method_names())}"
        )
    entry = _find(name)
    if entry is None:
        names = ["auto", *method_names()]
        raise ProblemError(f"unknown method {name!r}; the known ones are {', '.join(names)}{did_you_mean(name, names)}")
    return entry


def _find(name: str) -> Entry | None:
    """The registered entry, or that of a wrapper around a method that has one."""
    if name in _REGISTER:
        return _REGISTER[name]
    outer, _, inner = name.partition("-")
    wrapper, inside = _WRAPPERS.get(outer), _find(inner) if inner else None
    return None if wrapper is None or inside is None else _around(wrapper, inside, inside.complexity, {})


# -- tables -----------------------------------------------------------------------------------------------------------


class MethodInfo(NamedTuple):
    """One row of the table of methods."""

    name: str
    oracle: str
    complexity: str
    reference: str


class MethodTable(tuple[MethodInfo, ...]):
    """The table of methods, which is printed with aligned columns."""

    def __repr__(self) -> str:
        rows = [MethodInfo("method", "oracle", "complexity (without logarithms)", "reference"), *self]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row.reference])
            for row in rows
        )


def methods() -> MethodTable:
    """Every registered method: its name, the oracle it needs, its complexity and its reference."""
    made = [(name, make_method(name)) for name in method_names()]
    return MethodTable(
        MethodInfo(name, m.needs.oracle, _REGISTER[name].complexity.formula, reference(m.works)) for name, m in made
    )


def promised_rows() -> tuple[Row, ...]:
    """The bounds of the theory for every registered method: those of Table 1 first, and the lower bound last."""
    first = [row.key for row in TABLE1 if row.key in _REGISTER]
    names = [*first, *(name for name in method_names() if name not in first)]
    rows = [Row(name, reference(make_method(name).works), _REGISTER[name].complexity) for name in names]
    return (*(row for row in rows if row.complexity.order is not None), FORCED)
