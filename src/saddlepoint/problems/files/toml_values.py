"""Values of TOML documents in error messages, and what is wrong with lists of numbers."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

from saddlepoint.ground.validation import short_repr


def toml_repr(value: Any) -> str:
    """The value as TOML writes it, shortened for an error message.

    Example:
        >>> from saddlepoint.problems.files.toml_values import toml_repr
        >>> toml_repr(True), toml_repr("one"), toml_repr(2.5)
        ('true', "'one'", '2.5')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    return "a table" if isinstance(value, dict) else short_repr(value)


def list_fault(values: list[Any]) -> str:
    """What is wrong with a list that is to have numbers, or rows of equally many numbers; empty if nothing is.

    Example:
        >>> from saddlepoint.problems.files.toml_values import list_fault
        >>> list_fault([1.0, "two"])
        "has 'two' as entry 2; expected numbers"
        >>> list_fault([[1.0, 2.0], [3.0]])
        'has rows of 2 and 1 numbers; expected rows of one length'
        >>> list_fault([[1.0, 2.0], [3.0, 4.0]])
        ''
    """
    if not values or not any(isinstance(entry, list) for entry in values):
        return _entry_fault(values, "entry")
    for number, row in enumerate(values, 1):
        if not isinstance(row, list):
            return f"has {toml_repr(row)} as row {number}; expected a list of numbers, as the other rows are"
        fault = _entry_fault(row, f"entry of row {number},")
        if fault:
            return fault
        if len(row) != len(values[0]):
            return f"has rows of {len(values[0])} and {len(row)} numbers; expected rows of one length"
    return ""


def _entry_fault(values: list[Any], what: str) -> str:
    for number, entry in enumerate(values, 1):
        if isinstance(entry, bool) or not isinstance(entry, int | float):
            return f"has {toml_repr(entry)} as {what} {number}; expected numbers"
    return ""
