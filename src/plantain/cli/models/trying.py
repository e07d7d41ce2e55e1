"""`plantain models try`: one edit by weights as they are on disk, and what it took."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.models.diffusers.settings import Settings
from plantain.models.diffusers.trying import Tried, try_editor
from plantain.records import Outcome
from plantain.records.counts import counted
from plantain.runs.settings.terms import load_terms


def try_model(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="an open editor: a preset, hub id, folder or PRESET@FOLDER")
    ],
    steps: Annotated[int, typer.Option(min=1, help="of denoising; from 2 on a step is timed")] = 2,
    device: Annotated[str, typer.Option(help='e.g. "cuda:1" or "cpu"; default: the first GPU')] = "",
    settings: Annotated[
        Path | None, typer.Option("--settings", help="[providers.diffusers] in TOML: dtype, offload, ...")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="for the edited picture, PNG")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> int:
    """Makes one edit with open weights as they are on disk: size, memory, seconds a step, licence, what is missing.

    Nothing is fetched unless the settings allow it. Exit code 1 where nothing could be drawn, with the reason.

    Example: plantain models try flux2-klein-4b --steps 2
    """
    options = load_terms(settings, ()).provider_as("diffusers/", Settings)
    options = options.but(device=device or options.device)
    tried = try_editor(name, options, steps)
    document = _as_dict(tried)
    result = tried.trial.edited.result if tried.trial else None
    if out is not None and isinstance(result, bytes):
        out.write_bytes(result)
    if as_json:
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    else:
        _print(tried, document)
    return 0 if isinstance(result, bytes) else 1


def _as_dict(tried: Tried) -> dict[str, object]:
    document: dict[str, object] = {
        "name": tried.name,
        "weights": list(tried.weights),
        "licence": tried.licence,
        "disk_gb": tried.disk_gb,
        "needs": tried.needs,
        "missing": tried.missing,
    }
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


def _print(tried: Tried, document: dict[str, object]) -> None:
    rows = [
        ("weights", f"{' + '.join(tried.weights) or 'in no hub'}, {tried.disk_gb:g} GB"),
        ("licence", tried.licence),
        ("needs", tried.needs),
        ("missing", tried.missing),
    ]
    trial = tried.trial
    if trial is not None and document["ok"]:
        step = "" if trial.step_s is None else f"; {trial.step_s:.3g} s a step"
        usual = (
            ""
            if tried.usual_s is None
            else f"; about {tried.usual_s:.3g} s at {counted(tried.usual_steps, 'step')}"
        )
        rows += [
            (
                "device",
                f"{tried.device}, {document['precision']}, canvas {tried.canvas[0]} x {tried.canvas[1]}",
            ),
            ("loading", f"{trial.load_s:.3g} s"),
            ("one edit", f"{trial.edit_s:.3g} s with {trial.steps} steps{step}{usual}"),
            ("memory", f"{trial.memory_gb:.3g} GB at most, of {trial.memory_of}"),
        ]
    elif trial is not None:
        rows.append(("no edit", str(document["reason"])))
    print(tried.name)
    for label, value in rows:
        if value:
            print(f"  {label:9} {value}")
