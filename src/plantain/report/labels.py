"""How the report words what the journal stores: labels that a reader meets, all in one place."""

from __future__ import annotations

from plantain.metrics.clusters import Rate

MODALITIES = {"chest_xray": "Chest X-ray", "brain_mri": "Brain MRI", "fundus": "Fundus", "all": "All"}
DIRECTIONS = {"add": "Add", "remove": "Remove", "both": "Both"}
STATES = {
    "success": "Success",
    "failed": "Failed",
    "not_applicable": "Not applicable",
    "stopped": "Stopped",
    "pending": "Pending",
}
DASH = "–"


def words(name: str) -> str:
    """An identifier as words: "blending_artefact" becomes "Blending artefact"."""
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]


def modality(name: str) -> str:
    return MODALITIES.get(name) or words(name)


def percent(value: float | None, digits: int = 0) -> str:
    """A share as a percentage; a dash where there is none, never 0."""
    return DASH if value is None else f"{100 * value:.{digits}f} %"


def decimal(value: float | None, digits: int = 2) -> str:
    return DASH if value is None else f"{value:.{digits}f}"


def count(value: int) -> str:
    """A count with thin spaces between thousands."""
    return f"{value:,}".replace(",", "\u202f")


def interval(rate: Rate) -> str:
    """The bounds of a rate's interval, e.g. "41–78 %"; a dash where there is none."""
    if rate.low is None or rate.high is None:
        return DASH
    return f"{100 * rate.low:.0f}–{100 * rate.high:.0f} %"


def offline(model: str) -> bool:
    return model.startswith("offline/")


def model_note(model: str, role: str) -> str:
    """What a reader must know of a model beside its name; empty when the name says enough."""
    if role == "judge" and offline(model):
        return "offline: image measurements on this machine. An instrument, not an expert"
    if offline(model):
        return "offline: rules and image processing on this machine, no learned model"
    return ""


def judge_name(name: str) -> str:
    """A judge's name as it is printed beside a verdict."""
    return f"{name} (an instrument, not an expert)" if offline(name) else name


def plain(text: str) -> str:
    """Text of a model or a source without control and direction-changing characters, which could disguise it."""
    return "".join(c if c in "\n\t" or not _disguises(c) else "\ufffd" for c in text)


def _disguises(character: str) -> bool:
    code = ord(character)
    return (
        code < 32
        or 0x7F <= code <= 0x9F
        or 0x202A <= code <= 0x202E
        or 0x2066 <= code <= 0x2069
        or 0xD800 <= code <= 0xDFFF
    )
