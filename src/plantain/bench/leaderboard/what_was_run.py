"""What was run as each open editor: weights, precision and settings that change an answer, as its calls recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EditorRun:
    """One way in which an arm's edits were made; an arm has several where a run went on elsewhere.

    Attributes:
        model: label of the arm.
        method: of editing.
        weights: name and digest.
        licence: of the weights.
        precision: of the weights, e.g. "bfloat16".
        device: its kind, e.g. "cuda".
        loras: LoRA weights with what each counts.
        settings: of the calls, e.g. steps and guidance; a sweep's points are rows of their own.
        running: what makes it smaller or faster: bits, compile, attention_backend, tf32, vae_tiling, step_cache.
        region: it was told where to edit.
        outputs: made so.
    """

    model: str
    method: str
    weights: str
    licence: str
    precision: str
    device: str
    loras: tuple[str, ...]
    settings: Mapping[str, object]
    running: Mapping[str, object]
    region: bool
    outputs: int


def editor_runs(records: Iterable[tuple[str, str]]) -> tuple[EditorRun, ...]:
    """From (label of the arm, what the editor recorded of a call); records of other editors are left out."""
    counts: dict[tuple[str, str], int] = {}
    for model, text in records:
        record = _read(text)
        if record is None:
            continue
        one = {
            "method": str(record["method"]),
            "weights": str(record["weights"]),
            "licence": str(record.get("licence", "")),
            "precision": str(record.get("precision", "")),
            "device": str(record.get("device", "")).partition(":")[0],
            "loras": record.get("loras", [record["lora"]] if "lora" in record else []),
            "settings": record.get("settings", {}),
            "running": record.get("running", {}),
            "region": "region" in record,
        }
        key = model, json.dumps(one, sort_keys=True)
        counts[key] = counts.get(key, 0) + 1
    return tuple(_row(model, json.loads(text), n) for (model, text), n in sorted(counts.items()))


def _row(model: str, one: dict[str, object], outputs: int) -> EditorRun:
    loras, settings, running = one["loras"], one["settings"], one["running"]
    assert isinstance(loras, list)
    assert isinstance(settings, dict)
    assert isinstance(running, dict)
    return EditorRun(
        model=model,
        method=str(one["method"]),
        weights=str(one["weights"]),
        licence=str(one["licence"]),
        precision=str(one["precision"]),
        device=str(one["device"]),
        loras=tuple(map(str, loras)),
        settings=settings,
        running=running,
        region=bool(one["region"]),
        outputs=outputs,
    )


def _read(text: str) -> dict[str, object] | None:
    """A record of open weights, which names its method and its weights; None for anything else."""
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) and {"method", "weights"} <= record.keys() else None
