"""`plantain models convert`: InstructDiffusion's published checkpoint as a folder that its preset runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plantain.runs.converting import convert_checkpoint


def convert_weights(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="FILE", help="a checkpoint in CompVis's layout: .ckpt")
    ],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="a new folder")],
    base: Annotated[
        str,
        typer.Option(
            metavar="FOLDER|ID",
            help="Stable Diffusion 1 or InstructPix2Pix on this machine, for tokenizer and settings",
        ),
    ],
) -> int:
    """Writes InstructDiffusion's checkpoint, as its authors publish it, as a folder that its preset runs.

    Example: plantain models convert v1-5-pruned-emaonly-adaption-task.ckpt weights/instruct-diffusion --base
    timbrooks/instruct-pix2pix
    """
    name = convert_checkpoint(checkpoint, folder, base)
    print(f"{folder}: every weight found its place. To try them: plantain models try {name}")
    return 0
