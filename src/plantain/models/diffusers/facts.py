"""Facts about an open editor before it is loaded: size, memory, licence, and state on disk."""

from __future__ import annotations

from plantain.models.diffusers.licences import terms_of
from plantain.models.diffusers.methods import METHODS
from plantain.models.diffusers.weights import (
    Weights,
    find_weights,
    missing_part,
    size_gb,
)
from plantain.models.registry import KnownWeights, Preset, known_weights
from plantain.records import InputError


def facts_of(preset: Preset) -> dict[str, object]:
    """Return the facts of a preset from the table of presets and the hub's cache, without loading weights.

    They are: "weights", hub ids of base and LoRA; "licence", names joined, "unknown" if none is stated; "conditions",
    True if its terms must be accepted by naming it; "disk_gb", gigabytes measured if the weights are there, else as
    published, 0 if unknown; "memory" needed on the device, as text; "on_disk", "yes", "no", "incomplete: FILE", or the
    origin of weights that have no hub id; "note", a remark.
    """
    if not preset.weights:
        place = "yours: NAME@FOLDER" if preset.method else "with its program"
        own = {"licence": preset.licence, "conditions": False, "disk_gb": 0.0, "memory": preset.memory}
        return {"weights": [], **own, "on_disk": place, "note": ""}
    names = list(filter(None, (preset.weights, preset.lora)))
    known = [known_weights().get(name, KnownWeights(name, "unknown")) for name in names]
    found = {name: find_weights(name, "", None) for name in names}
    by_class = METHODS[preset.method].licence if preset.method else ""
    terms = [terms_of(name, weights.folder if weights else None, by_class) for name, weights in found.items()]
    return {
        "weights": names,
        "licence": " + ".join(dict.fromkeys(each.licence for each in terms)),
        "conditions": any(each.conditions for each in terms),
        "disk_gb": sum(size_gb(here) if (here := found[one.id]) else one.disk_gb for one in known),
        "memory": known[0].memory,
        "on_disk": _on_disk(found),
        "note": "; ".join(filter(None, (one.note for one in known))),
    }


def _on_disk(found: dict[str, Weights | None]) -> str:
    absent = [name for name, weights in found.items() if weights is None]
    if absent:
        return "no" if len(absent) == len(found) else f"incomplete: {absent[0]}"
    for weights in list(found.values())[:1]:
        assert weights is not None
        try:
            part = missing_part(weights)
        except InputError as error:
            return f"incomplete: {error}"
        if part:
            return f"incomplete: {part}"
    return "yes"
