"""The command line; needs the extra ``saddlepoint[cli]``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. The exit code is 0 on success (for a solve: solved), 1 if not solved, 2 on bad input."""
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
