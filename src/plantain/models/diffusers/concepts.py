"""The concept of an edit, for methods that take a word and a direction instead of a sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass

from plantain.models.diffusers.jobs import Job

# fmt: off
REMOVING = frozenset((
    "remove", "erase", "eliminate", "delete", "clear", "heal", "treat", "reduce", "resolve", "excise", "extract",
    "take", "eradicate", "correct",
))
ADDING = frozenset((
    "add", "insert", "create", "draw", "place", "introduce", "give", "make", "show", "simulate", "reconstruct",
    "restore",
))
_ARTICLES = frozenset((
    "a", "an", "the", "any", "all", "some", "this", "that", "these", "those", "his", "her", "their", "its",
))
_ENDS = frozenset((
    "from", "in", "on", "at", "of", "with", "to", "within", "over", "under", "near", "along", "across", "into", "by",
    "for", "while", "and", "so", "without", "around",
))
# fmt: on


class NoConcept(ValueError):
    """Raised if an instruction names no concept to add or remove."""


@dataclass(frozen=True, slots=True)
class Concept:
    """The concept of an edit, e.g. "pleural effusion", and True if the edit removes it."""

    words: str
    removes: bool


def concept_of(job: Job) -> Concept:
    """Return the concept that the job names, else the words after the instruction's first editing verb.

    Raises:
        NoConcept: the job names none, and the instruction has no verb of `REMOVING` or `ADDING` followed by words.
    """
    words = re.findall(r"[\w'-]+|[.,;:]", job.instruction.casefold())
    verb = next((place for place, word in enumerate(words) if word in REMOVING | ADDING), None)
    removes = job.removes if job.removes is not None else verb is not None and words[verb] in REMOVING
    if job.concept:
        return Concept(job.concept.casefold(), removes)
    if verb is None:
        raise NoConcept("the instruction has no verb for adding or removing")
    phrase: list[str] = []
    for word in words[verb + 1 :]:
        if word in _ENDS or not word[0].isalnum():
            if phrase:
                break
        elif word not in _ARTICLES:
            phrase.append(word)
    if not phrase:
        raise NoConcept(f"the instruction has no words after {words[verb]!r}")
    return Concept(" ".join(phrase), removes)
