"""DATASHEET.md: the contents of a release, how it was made, and its intended and forbidden uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from plantain.journal import JournalReader
from plantain.journal.questions.release import closed_only, sources_to_mention
from plantain.journal.questions.tables import (
    Composition,
    FindingRow,
    Judged,
    RoundRow,
    by_finding,
    rounds_to_success,
)
from plantain.journal.questions.tables import table1 as composition_of
from plantain.journal.questions.tables import table2 as judged_of
from plantain.journal.questions.units import snapshot
from plantain.privacy.licences import SourcePart
from plantain.release.plan import RunFacts
from plantain.release.splits import empty_splits
from plantain.rubrics import recorded

TEMPLATES = Path(__file__).parent / "templates"

USES_INTENDED = (
    "Training and evaluating models that edit medical images by instruction.",
    "Preference learning and reward modelling from accepted and rejected edits.",
    "Studying how far automatic judges of edits can be trusted.",
)
USES_FORBIDDEN = (
    "Diagnosis, treatment, triage or any other clinical decision.",
    "Passing an edited image off as a recording of a patient, or putting one into a clinical record or a trial.",
    "Finding out who a source image shows.",
    "Estimating how often a finding occurs: edits were chosen, not sampled.",
)
BIASES = (
    "Findings look the way that the editing model draws them, which need not be the way that patients have them.",
    "A success is an edit that the judge model accepted; its blind spots are in the labels.",
    "Findings that are easy to draw succeed more often, so successes are not spread as tasks were.",
    "The sources fix who is represented; their age, sex, ethnicity and devices are mostly not recorded here.",
)
LIMITS = (
    "No radiologist or ophthalmologist has looked at every image; verdicts are a model's.",
    "Images are 8-bit JPEGs of 1024 x 1024 pixels: window, bit depth and geometry of the originals are gone.",
    "A failed attempt of a task that never succeeded has no counterpart, and so forms no preference pair.",
    "Each round has its own instruction, so the two sides of a pair usually answer different instructions.",
)

MARKED_PROVIDERS = ("gemini", "imagen", "google", "gpt-image", "openai")
"""Parts of editor names whose providers are known to watermark or label their images."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Tables of the released tasks.

    `synthetic_sources` and `unchecked_sources` count rendered source images, and those that were not searched for
    burned-in text.
    """

    composition: Composition
    judged: Judged
    rounds: tuple[RoundRow, ...]
    findings: tuple[FindingRow, ...]
    synthetic_sources: int
    unchecked_sources: int


@dataclass(frozen=True, slots=True)
class ImageCounts:
    """Edited images of a release, each counted once.

    Attributes:
        roles: how many by role.
        signed: images with a C2PA manifest of ours.
        unmarked: images without the XMP mark, from a release that did not set it.
    """

    roles: Mapping[str, int]
    signed: int = 0
    unmarked: int = 0


def gather(reader: JournalReader) -> Numbers:
    """Return Tables 1 and 2, rounds and findings over the closed edit tasks."""
    weights = {c.name: c.weight for c in recorded(reader.header.frozen).criteria}
    with closed_only(reader), snapshot(reader):
        synthetic, unchecked = sources_to_mention(reader)
        return Numbers(
            composition_of(reader),
            judged_of(reader, weights),
            rounds_to_success(reader),
            by_finding(reader),
            synthetic,
            unchecked,
        )


def datasheet(
    facts: RunFacts,
    numbers: Numbers,
    parts: Sequence[SourcePart],
    images: ImageCounts,
    embedded: int,
    judged_by: Sequence[str] = (),
) -> str:
    """Return the text of DATASHEET.md.

    Args:
        embedded: number of edits that came with a manifest of their provider.
        judged_by: a line for each judge.
    """
    return render(
        "DATASHEET.md.j2",
        facts=facts,
        numbers=numbers,
        parts=parts,
        images=images,
        embedded=embedded,
        judged_by=judged_by,
        rubric=recorded(facts.frozen),
    )


def render(template: str, **context: object) -> str:
    """Render a template of this folder with the context that all cards share."""
    facts, numbers = context["facts"], context["numbers"]
    assert isinstance(facts, RunFacts) and isinstance(numbers, Numbers)
    loop = facts.frozen.get("loop")
    return (
        environment()
        .get_template(template)
        .render(
            uses_intended=USES_INTENDED,
            uses_forbidden=USES_FORBIDDEN,
            biases=BIASES,
            limits=LIMITS,
            composition_rows=(*numbers.composition.rows, numbers.composition.total),
            judged_rows=(*numbers.judged.criteria, numbers.judged.qualified),
            models=models(facts),
            watermark=watermark(facts),
            loop=loop if isinstance(loop, Mapping) else {},
            no_split=empty_splits(facts.splits, facts.split_groups),
            **context,
        )
    )


def models(facts: RunFacts) -> list[tuple[str, str, str]]:
    """Return (step, requested model, model that answered), for a table."""
    order = {"write": 0, "edit": 1, "look": 2, "judge": 3}
    rows = [(step, pair[0], pair[1]) for step, pairs in facts.models.items() for pair in pairs]
    return sorted(rows, key=lambda row: (order.get(row[0], 9), row))


def watermark(facts: RunFacts) -> bool:
    """Return True if an editor's provider is known to mark its images invisibly, or the editor is unknown."""
    editors = [name.lower() for step, *names in models(facts) if step == "edit" for name in names if name]
    return not editors or any(part in name for name in editors for part in MARKED_PROVIDERS)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return Jinja for Markdown: nothing is escaped for HTML, and text from data goes through `cell`."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    made.filters.update(cell=cell, percent=_percent, decimal=_decimal, interval=_interval)
    return made


def cell(value: object) -> str:
    """Return text from data as one line of Markdown without table, markup, link or HTML."""
    line = " ".join(str(value).split())
    return "".join(f"\\{c}" if c in "\\`*_[]{}<>#|!~" else c for c in line)


def _percent(value: float | None) -> str:
    return "not defined" if value is None else f"{100 * value:.1f} %"


def _decimal(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.2f}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}"
