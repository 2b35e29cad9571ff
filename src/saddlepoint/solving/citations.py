"""What to cite for a run: this software, and the works behind the method, as BibTeX."""

from __future__ import annotations

from functools import cache

from saddlepoint.methods.base import Method
from saddlepoint.methods.references import Work, bibtex

YEAR = 2026  # the year of this version


def citations(method: Method) -> dict[str, str]:
    """BibTeX by key: this software first, then the works behind the method."""
    return dict(_entries(tuple(method.works)))


@cache
def _entries(works: tuple[str, ...]) -> dict[str, str]:
    from saddlepoint import __version__

    fields = {
        "author": "{The saddlepoint developers}",
        "title": "{saddlepoint: certified first-order solvers for bilinear saddle-point problems}",
        "year": str(YEAR),
        "version": __version__,
    }
    software = {"saddlepoint": Work("software", "saddlepoint", fields).bibtex}
    return software | bibtex(works)
