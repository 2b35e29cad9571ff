"""Running the command line: its exit codes, and errors in one line."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer

from saddlepoint import __version__
from saddlepoint.commands.app import app
from saddlepoint.commands.messages import for_files
from saddlepoint.ground.errors import AssumptionError, ProblemError

LINE = 2000  # most characters of an error message


def run() -> int:
    """Run the command line and return the exit code. An error is printed in one line, never as a traceback."""
    _open_streams()
    try:
        code = int(app(standalone_mode=False) or 0)
        sys.stdout.flush()
        return code
    except (ProblemError, AssumptionError) as error:
        return _print_error(for_files(str(error)), 2)
    except (typer.Abort, KeyboardInterrupt):
        return _print_error("interrupted", 130)
    except BrokenPipeError:  # the reader of the output, such as `head`, has closed it
        _discard_output()
        return 1
    except OSError as error:
        _discard_output()
        return _print_error(f"{error.filename or 'the output'}: {error.strerror or error}", 2)
    except MemoryError:
        return _print_error("there is not enough memory for this; give a smaller problem, or sparse arrays", 2)
    except Exception as error:
        if hasattr(error, "format_message"):  # typer raises such errors for bad options
            return _print_error(_describe_usage(error), 2)
        return _print_error(_describe_bug(error), 3)


def _open_streams() -> None:
    """Replace standard streams that are closed, and escape letters that a stream cannot write."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open to the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Send the rest of the output to the null device; Python would otherwise try again at exit and print an error."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _describe_usage(error: Any) -> str:
    """The message about a bad option, with the value that was given."""
    opts = getattr(getattr(error, "param", None), "opts", ())
    given = [value for option, value in pairwise(sys.argv) if option in opts]
    return f"{error.format_message()}" + (f"; {given[-1]!r} was given" if given else "")


def _describe_bug(error: Exception) -> str:
    """The message about a mistake of this program: what it is, where it is, and that it should be reported."""
    *_, frame = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frame.filename).name}, line {frame.lineno}"
    return f"a mistake in saddlepoint {__version__}, {type(error).__name__} in {where}: {error}; please report it"


def _print_error(message: str, code: int) -> int:
    line = " ".join(message.split())
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line[:LINE])
    with suppress(OSError):
        print(f"error: {line}", file=sys.stderr, flush=True)
    return code
