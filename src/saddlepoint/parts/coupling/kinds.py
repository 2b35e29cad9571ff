"""The register of coupling kinds: objects of other libraries, and how they become couplings.

``as_coupling`` asks the registered kinds first, so a kind may also take over objects that it could handle by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling.base import Coupling


class CouplingKind(NamedTuple):
    """One kind of object that can serve as A.

    Attributes:
        accepts: whether an object is of this kind. It is called for every A, so it should be cheap and import nothing.
        build: the coupling of such an object; its second argument is the name of the object in error messages.
    """

    accepts: Callable[[Any], bool]
    build: Callable[[Any, str], Coupling]


_KINDS: dict[str, CouplingKind] = {}


def register_coupling(name: str, accepts: Callable[[Any], bool], build: Callable[[Any, str], Coupling]) -> None:
    """Let ``as_coupling``, and with it ``Saddle`` and ``solve``, take another kind of object as A.

    Args:
        name: of the kind, such as "dask array"; a name that is taken is refused.
        accepts: whether an object is of this kind.
        build: (object, its name in error messages) -> coupling.
    """
    if name in _KINDS:
        raise ProblemError(f"the kind of coupling {name!r} is registered already; expected another name")
    _KINDS[name] = CouplingKind(accepts, build)


def find_kind(A: Any) -> CouplingKind | None:
    """The first registered kind that accepts the object, or None."""
    return next((kind for kind in _KINDS.values() if kind.accepts(A)), None)
