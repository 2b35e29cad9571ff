"""The command line as ``python -m saddlepoint``."""

from saddlepoint.commands import main

if __name__ == "__main__":
    main()
