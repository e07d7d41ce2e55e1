"""Names in reports for the values that the journal stores."""

from __future__ import annotations

import re

from plantain.journal.cards import Standing
from plantain.metrics.statistics.clusters import Rate
from plantain.pages.wording import DASH, words
from plantain.records.judging import AUDIT_IMAGES

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


def interval(rate: Rate) -> str:
    """Format a rate's interval, e.g. "41–78 %"; a dash without an interval."""
    if rate.low is None or rate.high is None:
        return DASH
    return f"{100 * rate.low:.0f}–{100 * rate.high:.0f} %"


def command(instruction: str) -> str:
    """Shorten an instruction for a caption: up to the first colon or full stop."""
    return re.split(r"[.:;]\s", instruction, maxsplit=1)[0].rstrip(".")


def badge(judge: Standing) -> str:
    """Summarise a judge's audit in a few words, e.g. "Judge may qualify edits (60 images)"."""
    if judge.card is None:
        return f"Judge not audited (0 of {AUDIT_IMAGES} images)"
    images = sum(judge.card.images.values())
    if judge.qualifies:
        return f"Judge may qualify edits ({images} images)"
    if images < AUDIT_IMAGES:
        return f"Judge not validated ({images} of {AUDIT_IMAGES} images)"
    return f"Judge {judge.card.gate.phrase} ({images} images)"


def offline(model: str) -> bool:
    return model.startswith("offline/")


def model_note(model: str, role: str) -> str:
    """Return a note that explains a model; "" if its name is enough."""
    if role == "judge" and offline(model):
        return "offline: image measurements on this machine. An instrument, not an expert"
    if offline(model):
        return "offline: rules and image processing on this machine, no learned model"
    return ""


def fact_words(name: str) -> str:
    """Return a fact of a verdict in words, e.g. "finding seen in the edit"."""
    known = {"has_disease": "finding seen in the edit", "other_disease": "another finding"}
    return known.get(name) or words(name).lower()


def judge_name(name: str) -> str:
    """Return a judge's name for display; "(an instrument, not an expert)" is added to an offline one."""
    return f"{name} (an instrument, not an expert)" if offline(name) else name
