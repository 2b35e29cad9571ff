"""Certified first-order solvers for min_x max_y g(x) + <x, A y> - h(y).

import saddlepoint as sp

f = sp.Saddle(g, h, A)             # g, h: sp.Smooth or a ready function; A: array, sparse, operator
result = sp.solve(f, tol=1e-8)     # the point, with a proof of how far it is from the solution

The modules behind these names are loaded when a name is used for the first time. For type checkers and editors, which
run no code, ``__init__.pyi`` lists the same names.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

_HOMES = {  # the module of each public name; the classes of methods are found by ``methods.classes``
    "AGD": "methods",
    "AssumptionError": "ground.errors",
    "Ball": "parts.simple",
    "Batch": "uses.batch",
    "Blocks": "parts.simple",
    "Box": "parts.simple",
    "Certificate": "theory.certificate",
    "CertifiedEstimator": "uses.estimators",
    "CertifiedPoint": "problems.certify",
    "Coupling": "parts.coupling",
    "Entropy": "parts.functions",
    "Finding": "problems.findings",
    "GroupBalls": "parts.simple",
    "GroupHuber": "parts.functions",
    "Groups": "parts.simple",
    "History": "solving.result",
    "Huber": "parts.functions",
    "Hyperplane": "parts.simple",
    "InfeasibleError": "ground.errors",
    "L1": "parts.simple",
    "Layer": "uses.layer",
    "LeastSquares": "parts.functions",
    "LogCosh": "parts.functions",
    "LogSumExp": "parts.functions",
    "Logistic": "parts.functions",
    "Method": "methods",
    "Needs": "methods",
    "NonNegative": "parts.simple",
    "Norm2": "parts.simple",
    "Nuclear": "parts.simple",
    "Prediction": "uses.prediction",
    "Prepared": "uses.prepared",
    "ProblemError": "ground.errors",
    "Quadratic": "parts.functions",
    "Record": "solving.result",
    "Report": "problems.findings",
    "Result": "solving.result",
    "Saddle": "problems.saddle",
    "Simple": "parts.simple",
    "Simplex": "parts.simple",
    "Smooth": "parts.functions",
    "SmoothedHinge": "parts.functions",
    "SolutionPath": "uses.path",
    "State": "methods",
    "Status": "solving.result",
    "Support": "parts.simple",
    "as_coupling": "parts.coupling",
    "as_simple": "parts.simple",
    "certify": "uses.certify",
    "check": "problems.check",
    "complex_view": "parts.coupling.complex_view",
    "from_cvxpy": "uses.from_cvxpy",
    "layer": "uses.layer",
    "load_result": "solving.result_file",
    "make_method": "methods",
    "methods": "methods",
    "path": "uses.path",
    "predict": "uses.prediction",
    "prepare": "uses.prepared",
    "real_view": "parts.coupling.complex_view",
    "register": "methods",
    "solve": "solving.solve",
    "solve_many": "uses.batch",
    "stream": "problems.files.stores",
}
_MODULES = {"apps": "apps", "model": "uses.model", "theory": "theory"}  # public modules, and where they are


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return _names()
    if name in _MODULES:
        return import_module(f"{__name__}.{_MODULES[name]}")
    home = _HOMES.get(name)
    if home is None:
        home = "methods.classes"
        if name.startswith("_") or name not in import_module(f"{__name__}.{home}").__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return _names()


def _names() -> list[str]:
    """All public names."""
    return sorted({*_HOMES, *_MODULES, *import_module(f"{__name__}.methods.classes").__all__})


class _Package(ModuleType):
    """This package, in which ``methods`` is the function: loading the folder of that name does not replace it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name == "methods" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
