"""What `plantain models convert` does: a published checkpoint as a folder that an open editor's preset runs."""

from __future__ import annotations

import shutil
from pathlib import Path

from plantain.models.diffusers.quiet import quiet_libraries
from plantain.models.diffusers.weights import find_weights
from plantain.models.extras import require_extra
from plantain.records import InputError
from plantain.runs.trial import EXTRA, check_new_folder

PRESET = "diffusers/medebench-instruct-diffusion"
"""The only preset whose weights are published as a checkpoint alone."""


def convert_checkpoint(checkpoint: Path, folder: Path, base: str) -> str:
    """Writes InstructDiffusion's checkpoint as a folder, whole or not at all; how to name it as an editor.

    Args:
        checkpoint: a file in CompVis's layout.
        folder: where to; new or empty.
        base: a folder of Stable Diffusion 1 or of InstructPix2Pix, or the hub id of one that is on this machine.

    Raises:
        InputError: the folder holds something, the base is not here, or the checkpoint is another model's.
    """
    check_new_folder(folder)
    require_extra(PRESET, *EXTRA)
    found = find_weights(base, "", None)
    if found is None:
        raise InputError(
            f"--base {base}: is not on this machine; name a folder of Stable Diffusion 1 or InstructPix2Pix"
        )
    if not checkpoint.is_file():
        raise InputError(f"{checkpoint}: there is no such file")
    quiet_libraries()  # before the classes are imported, about which there are remarks
    from plantain.models.diffusers.converting import convert_instruct_diffusion

    unfinished = folder.with_name(folder.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        convert_instruct_diffusion(checkpoint, found.folder, unfinished)
        if folder.exists():
            folder.rmdir()
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return f"{PRESET}@{folder}"
