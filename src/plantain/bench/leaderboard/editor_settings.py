"""Settings of each open editor as its calls recorded them: weights, precision, and what else changes an answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EditorSettings:
    """One way in which an arm's edits were made; an arm has several if a run was resumed with others.

    Attributes:
        model: label of the arm.
        method: of editing.
        weights: name and digest; licence: of the weights.
        precision: of the weights, e.g. "bfloat16".
        device: its kind, e.g. "cuda".
        loras: LoRA weights with their scale.
        settings: of the calls, e.g. steps and guidance; the points of a sweep are separate rows.
        running: what makes it smaller or faster: bits, compile, attention_backend, tf32, vae_tiling, step_cache.
        region: the editor received the region.
        outputs: made so.
    """

    model: str
    method: str
    weights: str
    licence: str
    precision: str
    device: str
    loras: list[str]
    settings: dict[str, object]
    running: dict[str, object]
    region: bool
    outputs: int


def editor_settings(records: Iterable[tuple[str, str]]) -> tuple[EditorSettings, ...]:
    """Count outputs by settings.

    Args:
        records: (label of the arm, what the editor recorded of a call); those of other editors are skipped.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for model, text in records:
        try:
            record = json.loads(text)
        except ValueError:
            continue
        if not isinstance(record, dict) or not {"method", "weights"} <= record.keys():
            continue
        row = {name: record.get(name, "") for name in ("method", "weights", "licence", "precision")} | {
            "device": str(record.get("device", "")).partition(":")[0],
            "loras": record.get("loras", [record["lora"]] if "lora" in record else []),
            "settings": record.get("settings", {}),
            "running": record.get("running", {}),
            "region": "region" in record,
        }
        counts[model, json.dumps(row, sort_keys=True)] += 1
    return tuple(
        EditorSettings(model, **json.loads(row), outputs=n) for (model, row), n in sorted(counts.items())
    )
