"""Every class of a method in this package, found by importing all its modules.

A module that is added to this folder is found without further edits. For type checkers and editors, which run no code,
``classes.pyi`` lists the same names; ``python tools/tables.py`` writes that file.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil

from saddlepoint.methods.base import Method

_PACKAGE = __name__.rpartition(".")[0]

__all__: list[str] = []

for _module in pkgutil.walk_packages(importlib.import_module(_PACKAGE).__path__, f"{_PACKAGE}."):
    if _module.name != __name__:
        for _class in vars(importlib.import_module(_module.name)).values():
            if getattr(_class, "__module__", None) != _module.name:  # most names of a module are imported from others
                continue
            if inspect.isclass(_class) and issubclass(_class, Method) and not inspect.isabstract(_class):
                globals()[_class.__name__] = _class
                __all__.append(_class.__name__)

__all__[:] = sorted(set(__all__))
