"""The provenance of a result: versions, machine, problem, method with its options, and works to cite."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import scipy

from saddlepoint.methods.base import Method
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.citations import citations
from saddlepoint.solving.target import Target

SEED = 0  # the seed of the random starts of the estimates of |A| and of L


@cache
def environment() -> dict[str, str]:
    """Versions of Python and of the libraries, and the kind of machine."""
    from saddlepoint import __version__

    return {
        "saddlepoint": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "platform": f"{sys.platform} {platform.machine()}",
    }


def provenance(
    f: Saddle,
    method: Method,
    *,
    parameters: dict[str, float],
    target: Target,
    begun: float,
    storage: str | None = None,
    corrections: Sequence[dict[str, Any]] = (),
    resumed: int = 0,
    signal: str = "",
) -> dict[str, Any]:
    """The provenance in values that JSON can hold."""
    bounds = f.A.norm_estimate
    return {
        "versions": dict(environment()) | _version(f.space.library),
        "method": described(method),
        "parameters": dict(parameters),
        "tol": target.most,
        "target": target.argument,
        "dtype": str(f.dtype).rpartition(".")[2],
        "shape": list(f.shape),
        "coupling": type(f.A).__name__,
        "simple": {name: repr(p.simple) for name, p in (("g", f.g), ("h", f.h)) if p.simple is not None},
        "constants": {
            "mu_x": f.mu_x,
            "L_x": f.L_x,
            "mu_y": f.mu_y,
            "L_y": f.L_y,
            "norm": {"lower": bounds.lower, "upper": bounds.upper, "failure": bounds.failure},
            "estimated": sorted(f"L of {name}" for name in f.estimated),
        },
        "corrections": list(corrections),
        "storage": storage,
        "seed": SEED,
        "started": datetime.fromtimestamp(begun, UTC).isoformat(timespec="seconds"),
        "resumed": resumed,
        "signal": signal,
        "citations": citations(method),
    }


def described(method: Method) -> dict[str, Any]:
    """The name and the options of a method; an option of a wrapper is a method too."""
    options = {option.name: getattr(method, option.name) for option in fields(method)}
    return {"name": method.name} | {name: _plain(value) for name, value in options.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Method):
        return described(value)
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


@cache
def _version(name: str) -> dict[str, str]:
    """The version of a library, by its name."""
    return {name: str(getattr(import_module(name), "__version__", "unknown"))}
