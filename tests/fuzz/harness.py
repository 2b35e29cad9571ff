"""What the fuzzers share. Each file beside this one holds a reader's ``SEEDS`` and ``check(data, folder)``.

``check`` returns whether the data could be read.

Run one by hand, where atheris is installed: ``python tests/fuzz/problem_file.py -runs=100000``. It stops at the first
input that ends in anything but success or a ProblemError, and says where it saved it. ``tests/test_fuzz.py`` runs the
same checks on mutations that Hypothesis makes.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

LIMIT = 1 << 24  # bytes that a reader may take

Check = Callable[[bytes, Path], bool]


def read(action: Callable[[], object]) -> bool:
    """Whether the action succeeds; a ProblemError of one line is the only other end that is allowed."""
    from saddlepoint import ProblemError

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            action()
        except ProblemError as error:
            complaint = str(error)
        else:
            return True
    assert complaint, "an error without a message"
    assert "\n" not in complaint, f"an error message of several lines: {complaint!r}"
    return False


def fuzz(check: Check, seeds: Callable[[], list[bytes]]) -> None:
    """Feed ``check`` with what atheris makes of the seeds, by the options on the command line.

    The seeds come from a function because saddlepoint must not be imported before it is instrumented.
    """
    try:
        import atheris
    except ImportError:
        sys.exit("this needs atheris: pip install atheris")
    with atheris.instrument_imports(include=["saddlepoint", "tomllib", "json", "zipfile"]):
        import saddlepoint
        import saddlepoint.apps
        import saddlepoint.problems.files  # noqa: F401
    folder, corpus = (Path(tempfile.mkdtemp()) for _ in range(2))
    for i, seed in enumerate(seeds()):
        (corpus / f"seed-{i}").write_bytes(seed)
    atheris.Setup([*sys.argv, str(corpus)], lambda data: check(data, folder))
    atheris.Fuzz()
