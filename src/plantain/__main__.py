"""`python -m plantain` and the `plantain` script."""

import os
import sys


def run() -> None:
    """Run the command line. An early Ctrl-C also prints one line."""
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
