"""Values of Python as JSON and arrays, and back to the same bits.

Plain values, tuples, lists, dicts with text keys, arrays, ``Rows``, random generators, NamedTuples and
dataclasses can be written. Classes are only looked up among those given, by name; nothing is imported or executed. A
function (such as a solver that holds a factorisation) is left out: whoever reads makes it again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import numpy as np

from saddlepoint.ground.arrays import Array, Space, is_foreign, space_of, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.rows import Rows

KINDS = "fiub"  # kinds of numbers that arrays may have, in the letters of NumPy
GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")  # random generators of NumPy that can be written
PACKAGE = "saddlepoint"  # the package whose records can be read and written

Classes = Mapping[str, type]


def known_classes(*values: Any) -> Classes:
    """The NamedTuples and dataclasses of this package and of the modules that define the given values."""
    wanted = {module for value in values for module in _modules(value)}
    modules = [module for name, module in list(sys.modules.items())
               if name in wanted or name.partition(".")[0] == PACKAGE]  # fmt: skip
    found = (kind for module in modules for kind in list(vars(module).values()))
    return {_name(kind): kind for kind in found if isinstance(kind, type) and _is_record(kind)}


def _modules(value: Any) -> Iterator[str]:
    """The modules that define the class of a value and, because a wrapper holds a method, the classes of its fields."""
    yield type(value).__module__
    if is_dataclass(value):
        for field in fields(value):
            yield from _modules(getattr(value, field.name))


def _is_record(kind: type) -> bool:
    if issubclass(kind, tuple):
        return hasattr(kind, "_fields")
    return is_dataclass(kind)


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _record(value: Any) -> dict[str, Any]:
    if isinstance(value, tuple):
        return dict(zip(value._fields, value, strict=True))  # type: ignore[attr-defined]
    return {field.name: getattr(value, field.name) for field in fields(value) if field.init}


class Packer:
    """Turns values into JSON; their arrays are collected in ``arrays``."""

    def __init__(self, classes: Classes) -> None:
        self.classes = classes
        self.arrays: list[Array] = []

    def pack(self, value: Any) -> Any:
        """``value`` in what JSON knows."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return {"float": value.hex()}
        if kind is list and value and _is_table(value):
            return {"table": self._add(np.array(value, dtype=np.float64)), "of": _name(type(value[0]))}
        if kind in (tuple, list):
            return {kind.__name__: [self.pack(item) for item in value]}
        if kind is dict:
            return {"dict": [[str(key), self.pack(item)] for key, item in value.items()]}
        if isinstance(value, np.ndarray):
            return {"array": self._add(value)}
        if isinstance(value, np.generic):
            return {"number": self._add(np.asarray(value))}
        if kind is Rows:
            return {"rows": self.pack(value.matrix), "most": int(value.buffer.shape[0])}
        if kind is np.random.Generator:
            return self._generator(value)
        if _name(kind) not in self.classes and is_foreign(value):
            return {"foreign": self._add(to_host(value))}
        if _name(kind) in self.classes:
            return {"of": _name(kind), "with": {name: self.pack(item) for name, item in _record(value).items()}}
        if callable(value):
            return {"function": getattr(value, "__qualname__", kind.__qualname__)}
        raise ProblemError(
            f"a checkpoint cannot hold a {_name(kind)}; let the state of a method be a NamedTuple, defined at the top "
            "of its module, of arrays, numbers and other such tuples"
        )

    def _generator(self, value: np.random.Generator) -> Any:
        state = dict(value.bit_generator.state)
        return {"random": state["bit_generator"], "state": self.pack(state)}

    def _add(self, array: Array) -> int:
        if array.dtype.kind not in KINDS:
            raise ProblemError(f"a checkpoint cannot hold an array of {array.dtype}; expected numbers")
        self.arrays.append(array)
        return len(self.arrays) - 1


class Unpacker:
    """Turns what a ``Packer`` has written back into values.

    Args:
        classes: the classes of which objects may be made.
        arrays: the arrays that the packer collected.
        space: library and device of arrays that are not those of NumPy.
        limit: most bytes that one value may take.
        fresh: makes a value like the one to be read; its functions are taken, because a file holds none.
    """

    def __init__(
        self, classes: Classes, arrays: list[Array], space: Space, limit: int, fresh: Callable[[], Any] | None = None
    ) -> None:
        self.classes, self.arrays, self.space, self.limit, self.fresh = classes, arrays, space, limit, fresh

    def unpack(self, packed: Any, path: tuple[str, ...] = ()) -> Any:
        """The value; ``path`` names the fields that lead to it."""
        if packed is None or isinstance(packed, bool | int | str):
            return packed
        (kind, content), *rest = packed.items()
        if kind == "float":
            return float.fromhex(content)
        if kind in ("tuple", "list"):
            items = [self.unpack(item, (*path, "")) for item in content]
            return tuple(items) if kind == "tuple" else items
        if kind == "table":
            return _table(self.arrays[content], self.classes[dict(rest)["of"]])
        if kind == "dict":
            return {str(key): self.unpack(item, (*path, "")) for key, item in content}
        if kind == "array":
            return self.arrays[content]
        if kind == "number":
            return self.arrays[content][()]
        if kind == "foreign":
            array = self.arrays[content]
            space = self.space.foreign
            return space._replace(dtype=getattr(space.xp, str(array.dtype))).cast(array)
        if kind == "rows":
            used, most = self.unpack(content), dict(rest)["most"]
            if not used.shape[0] <= most <= self.limit // max(8, 8 * used.shape[1]):
                raise ValueError(f"room for {most} rows")
            return _rows(used, most)
        if kind == "random":
            return self._generator(content, self.unpack(dict(rest)["state"]))
        if kind == "of":
            record = self.classes[content]
            return record(**{name: self.unpack(item, (*path, name)) for name, item in dict(rest)["with"].items()})
        if kind == "function" and self.fresh is not None:
            return _at(self.fresh(), path)
        raise ValueError(f"unknown kind {kind!r}")

    def _generator(self, name: str, state: Any) -> np.random.Generator:
        if name not in GENERATORS:
            raise ValueError(f"unknown random generator {name!r}")
        bits = getattr(np.random, name)()
        bits.state = state
        return np.random.Generator(bits)


def _is_table(rows: list[Any]) -> bool:
    """Whether these are NamedTuples of one kind with nothing but numbers, as the records of a history are."""
    kind = type(rows[0])
    hints = get_type_hints(kind).values() if hasattr(kind, "_fields") else ()
    return bool(hints) and set(hints) <= {int, float} and all(type(row) is kind for row in rows)


def _table(array: Array, kind: Any) -> list[Any]:
    """The NamedTuples whose numbers are the rows of an array."""
    hints = list(get_type_hints(kind).values())
    return [kind(*(number(cell) for number, cell in zip(hints, row, strict=True))) for row in array.tolist()]


def _rows(used: Array, most: int) -> Rows:
    """Rows with room for ``most``, of which some are used."""
    if hasattr(used, "buffer"):  # they lie in several places
        return Rows(used.buffer(most), used.shape[0])
    rows = Rows.empty(most, space_of(used).zeros(used.shape[1]))
    for i in range(used.shape[0]):
        rows = rows.append(used[i, :])
    return rows


def _at(value: Any, path: Iterable[str]) -> Any:
    for name in path:
        value = getattr(value, name)
    return value
