"""`python -m plantain` and the `plantain` script."""

import sys


def run() -> None:
    from plantain.cli import main

    sys.exit(main())


if __name__ == "__main__":
    run()
