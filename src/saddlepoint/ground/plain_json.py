"""JSON that every program can read: it has no infinities and no NaN."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(value: Any) -> str:
    """The value as JSON. An infinite number or a NaN is null; in a table a word beside it says which of them it was.

    Example:
        >>> import math
        >>> print(json_text({"distance": math.inf, "gap": 0.5}))
        {"distance": null, "distance_is": "infinite", "gap": 0.5}
    """
    return json.dumps(finite(value, words=True), allow_nan=False)


def finite(value: Any, words: bool = False) -> Any:
    """The value with None instead of infinite numbers and NaN, in tables and lists too.

    Args:
        value: plain Python values.
        words: whether a table gets a key "NAME_is" beside every NAME whose number was replaced.
    """
    if isinstance(value, Mapping):
        table: dict[str, Any] = {}
        for key, item in value.items():
            table[str(key)] = finite(item, words)
            if words and _word(item):
                table[f"{key}_is"] = _word(item)
        return table
    if isinstance(value, list | tuple):
        return [finite(item, words) for item in value]
    return None if _word(value) else value


def _word(value: Any) -> str:
    """What a number is that JSON does not have; "" for all other values."""
    if not isinstance(value, float) or math.isfinite(value):
        return ""
    return "not a number" if math.isnan(value) else "infinite" if value > 0.0 else "minus infinite"
