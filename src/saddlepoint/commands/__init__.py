"""The command line; needs the extra ``saddlepoint[cli]``."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point: exit code 0 if all went well (for a solve: solved), 1 if not solved, 2 on bad input."""
    try:
        from saddlepoint.commands.app import run
    except KeyboardInterrupt:
        sys.exit(130)
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        print("the command line needs typer and rich: pip install 'saddlepoint[cli]'", file=sys.stderr)
        sys.exit(2)
    sys.exit(run())
