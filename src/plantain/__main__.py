"""`python -m plantain` and the `plantain` script."""

import os
import sys


def run() -> None:
    """Runs the command line; Ctrl-C before a command can handle it is one line too."""
    os.environ["PYTHONSAFEPATH"] = (
        "1"  # interpreters that a command starts run no file of the working directory
    )
    try:
        from plantain.cli import main

        sys.exit(main())
    except KeyboardInterrupt:
        print("plantain: interrupted", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    run()
