"""The command line; needs the extra ``saddlepoint[cli]``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit.

    The exit code is 0 on success (for a solve: solved), 1 if not solved, 2 on bad input, 3 on a mistake of this
    program, and 128 plus the number of the signal that ended the run, such as 130 after Ctrl-C.
    """
    try:
        from saddlepoint.commands.run import run
    except KeyboardInterrupt:
        sys.exit(130)
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        print("the command line needs typer and rich: pip install 'saddlepoint[cli]'", file=sys.stderr)
        sys.exit(2)
    sys.exit(run())
