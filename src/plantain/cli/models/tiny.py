"""`plantain models make-tiny`: random weights in a preset's classes, to see that a way of running is in order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plantain.runs.trial import make_tiny


def make_tiny_pipeline(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="a new folder")],
    like: Annotated[str, typer.Option(metavar="NAME", help="a preset of open weights, e.g. flux2-klein-4b")],
    seed: Annotated[int, typer.Option(min=0, help="of the weights")] = 0,
) -> int:
    """Writes a tiny pipeline of a preset's classes with random weights: it draws noise, on any machine.

    Example: plantain models make-tiny tiny/klein --like flux2-klein-4b
    """
    name = make_tiny(folder, like, seed)
    print(f"{folder}: random weights, which draw only noise. To try them: plantain models try {name}")
    return 0
