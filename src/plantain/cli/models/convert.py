"""`plantain models convert`: InstructDiffusion's published checkpoint as a folder for its preset."""

from __future__ import annotations

import shutil
from pathlib import Path

import typer

from plantain.files.installed import require_extra
from plantain.models.diffusers.quiet import quiet_libraries
from plantain.models.diffusers.weights import find_weights
from plantain.records import InputError
from plantain.records.messages import command_line

PRESET = "diffusers/medebench-instruct-diffusion"
"""The only preset whose weights are published as a checkpoint alone."""


def convert_weights(
    checkpoint: Path = typer.Argument(..., metavar="FILE", help="Checkpoint in CompVis's layout (.ckpt)."),
    to: Path = typer.Option(..., metavar="DIR", help="A new folder."),
    base: str = typer.Option(..., metavar="FOLDER|ID", help="Stable Diffusion 1 or InstructPix2Pix here."),
) -> int:
    """Convert InstructDiffusion's published checkpoint into a folder for its preset.

    Example: plantain models convert v1-5-pruned-emaonly-adaption-task.ckpt --to weights/instruct-diffusion --base
    timbrooks/instruct-pix2pix
    """
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise InputError(f"{to}: is there already and is not empty; name a new folder")
    require_extra(PRESET, "torch", "diffusers")
    found = find_weights(base, "", None)
    if found is None:
        raise InputError(
            f"--base {base}: is not on this machine; name a folder of Stable Diffusion 1 or InstructPix2Pix"
        )
    if not checkpoint.is_file():
        raise InputError(f"{checkpoint}: file not found")
    quiet_libraries()  # before the import, which prints warnings
    from plantain.models.diffusers.converting import convert_instruct_diffusion

    unfinished = to.with_name(to.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        convert_instruct_diffusion(checkpoint, found.folder, unfinished)
        if to.exists():
            to.rmdir()
        unfinished.rename(to)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    generate = command_line("bench", "generate", "BENCH", "--run", "DIR", "--preset", f"{PRESET}@{to}")
    print(f"{to}: every weight was converted; next: {generate}")
    return 0
