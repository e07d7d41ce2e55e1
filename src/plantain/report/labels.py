"""How the report words what the journal stores: labels that a reader meets, all in one place."""

from __future__ import annotations

from plantain.metrics.statistics.clusters import Rate
from plantain.pages.wording import DASH, words

MODALITIES = {"chest_xray": "Chest X-ray", "brain_mri": "Brain MRI", "fundus": "Fundus", "all": "All"}
DIRECTIONS = {"add": "Add", "remove": "Remove", "both": "Both"}
STATES = {
    "success": "Success",
    "failed": "Failed",
    "undecided": "Undecided",
    "not_applicable": "Not applicable",
    "stopped": "Stopped",
    "pending": "Pending",
}
DECISIONS = {True: "qualified", False: "not qualified", None: "undecided"}


def modality(name: str) -> str:
    return MODALITIES.get(name) or words(name)


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


def fact_words(name: str) -> str:
    """What a fact of a verdict says, e.g. "finding seen in the edit"."""
    known = {"has_disease": "finding seen in the edit", "other_disease": "another finding"}
    return known.get(name) or words(name).lower()


def judge_name(name: str) -> str:
    """A judge's name as it is printed beside a verdict."""
    return f"{name} (an instrument, not an expert)" if offline(name) else name
