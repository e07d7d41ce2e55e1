"""`plantain models try` and `convert`: local weights, timed by one edit, or converted for a preset."""

from __future__ import annotations

import shutil
from pathlib import Path

import typer

from plantain.cli.terminal.options import AsJson, SettingsFile
from plantain.cli.terminal.tables import print_json
from plantain.files.installed import require_extra
from plantain.files.opening import replace_file
from plantain.models.diffusers.provider import Settings
from plantain.models.diffusers.quiet import quiet_libraries
from plantain.models.diffusers.trying import EXTRA, Tried, check_new_folder, try_editor
from plantain.models.diffusers.weights import find_weights
from plantain.pixels.encode import marked
from plantain.records import InputError, Outcome
from plantain.records.messages import next_line
from plantain.runs.terms import load_terms


def try_model(
    name: str = typer.Argument(..., metavar="NAME", help="A preset, hub id, folder or PRESET@FOLDER."),
    steps: int = typer.Option(2, min=1, help="Denoising steps; 2 or more to time a step."),
    device: str = typer.Option("", help='E.g. "cuda:1" or "cpu"; default: the first GPU.'),
    settings: SettingsFile = None,
    out: Path | None = typer.Option(None, "--to", metavar="FILE", help="File for the edited image (PNG)."),
    as_json: AsJson = False,
) -> int:
    """Make one edit with local open weights; print size, memory, seconds per step, licence and missing parts.

    Nothing is downloaded unless the settings allow it. Exit code 1, with the reason, if there is no image.

    Example: plantain models try flux2-klein-4b --steps 2
    """
    options = load_terms(settings, ()).provider_as("diffusers/", Settings)
    options = options.but(device=device or options.device)
    tried = try_editor(name, options, steps)
    document = _as_dict(tried)
    result = tried.trial.edited.result if tried.trial else None
    if out is not None and isinstance(result, bytes):
        replace_file(out, marked(result))
    if as_json:
        print_json(document)
    else:
        _print(document)
        if document["ok"]:
            print(next_line("bench", "generate", "BENCH", "--run", "RUN", "--editor", tried.name))
    return 0 if isinstance(result, bytes) else 1


def _as_dict(tried: Tried) -> dict[str, object]:
    names = ("name", "weights", "licence", "disk_gb", "needs", "missing")
    document = {name: getattr(tried, name) for name in names}
    if tried.trial is None or tried.plan is None:
        return {**document, "ok": False, "reason": tried.missing}
    trial, record, result = tried.trial, tried.trial.edited.record, tried.trial.edited.result
    return {
        **document,
        "ok": isinstance(result, bytes),
        "reason": result.reason if isinstance(result, Outcome) else "",
        "folder": str(tried.plan.weights.folder),
        "digest": tried.plan.weights.digest,
        "method": tried.plan.method.name,
        "settings": dict(tried.plan.steering.settings),
        "device": tried.device,
        "precision": record.get("precision", ""),
        "canvas": list(tried.canvas),
        "load_s": round(trial.load_s, 3),
        "edit_s": round(trial.edit_s, 3),
        "steps": trial.steps,
        "step_s": None if trial.step_s is None else round(trial.step_s, 4),
        "usual_steps": tried.usual_steps,
        "usual_s": None if tried.usual_s is None else round(tried.usual_s, 1),
        "memory_gb": trial.memory_gb,
        "memory_of": trial.memory_of,
        "said": record.get("said", []),
    }


_HIDDEN = frozenset({"name", "ok", "folder", "digest", "settings", "said"})


def _print(document: dict[str, object]) -> None:
    print(document["name"])
    for label, value in document.items():
        if label not in _HIDDEN and value not in (None, "", [], ()):
            shown = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
            print(f"  {label:12} {shown}")


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
    check_new_folder(to)
    require_extra(PRESET, *EXTRA)
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
    print(f"{to}: every weight was converted; {next_line('models', 'try', f'{PRESET}@{to}')}")
    return 0
