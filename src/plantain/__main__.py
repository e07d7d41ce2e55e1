"""`python -m plantain` and the `plantain` script."""

import sys


def run() -> None:
    """Runs the command line; Ctrl-C before a command can handle it is one line too."""
    try:
        from plantain.cli import main

        sys.exit(main())
    except KeyboardInterrupt:
        print("plantain: interrupted", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    run()
