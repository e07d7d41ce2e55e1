"""Cases that a study can be made from, and those of a build's or an imported run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from plantain.journal import TaskRow
from plantain.journal.statements import NO_VERDICT
from plantain.pixels.arrays import Mask, Pixels
from plantain.records import InputError, Licence, SourceImage, TaskState
from plantain.records.messages import suggest
from plantain.review.study import ORIGINAL

Read = Callable[[], Pixels]
Cases = Callable[[Collection[str] | None], Iterator["Material"]]
"""Yields the cases of a source: all, or those of the tasks or samples that are named."""


def is_final(row: TaskRow) -> bool:
    """Return True if a task's result is final: decided, undecided, or imported without a verdict."""
    closed = (TaskState.SUCCESS, TaskState.FAILED, TaskState.UNDECIDED)
    return row.state in closed or row.reason == NO_VERDICT


@dataclass(frozen=True, slots=True)
class Material:
    """A possible case of a study; its images are only read if the case is drawn.

    Attributes:
        source: id of its task or sample, to link answers back.
        stratum: cases are drawn from the strata in turn.
        cluster: patient or group: cases of one cluster are not independent.
        description: description of the expected change; "" if unknown.
        original: id of the image before the edit; "" if unknown.
        joined: further tasks whose edits were added to the case.
        images: ORIGINAL and models -> function that reads the image.
        ground_truth: function that reads the real image after the procedure; None without one.
        verdicts: model -> the run's decision about its edit.
        spacing_mm: size of a pixel in mm; None if unknown.
        credentialed: True if only readers who confirmed the data use agreement may see it.
        proposals: proposed regions, bool (H, W) each.
    """

    source: str
    stratum: str
    cluster: str
    modality: str
    finding: str
    direction: str
    instruction: str
    images: Mapping[str, Read]
    description: str = ""
    original: str = ""
    ground_truth: Read | None = None
    verdicts: Mapping[str, bool] = field(default_factory=dict)
    spacing_mm: float | None = None
    credentialed: bool = False
    proposals: tuple[Mask, ...] = ()
    joined: tuple[str, ...] = ()


def outlines(cases: Iterable[Material]) -> Iterator[Material]:
    """Yield reduced cases, without instructions and access to images, that suffice for drawing a sample."""
    known: dict[object, Any] = {}
    names = ("stratum", "cluster", "modality", "finding", "direction")
    for one in cases:
        texts = {name: known.setdefault(getattr(one, name), getattr(one, name)) for name in names}
        images = known.setdefault(tuple(one.images), dict.fromkeys(one.images, _not_loaded))
        verdicts = known.setdefault(tuple(one.verdicts.items()), one.verdicts)
        yield replace(one, **texts, instruction="", images=images, verdicts=verdicts)


def _not_loaded() -> Pixels:
    raise AssertionError("an outline has no images")


def loaded(drawn: Sequence[Material], parts: Sequence[Cases], *, compare: bool) -> list[Material]:
    """Return the complete cases for reduced ones that were drawn, in the same order and with the same models.

    Args:
        drawn: the drawn cases, as `outlines` reduced them.
        parts: for each source a function that returns the complete cases with the given ids.
        compare: as for `joined`.
    """
    wanted = {source for one in drawn for source in (one.source, *one.joined)}
    whole = {one.source: one for one in joined([part(wanted) for part in parts], compare=compare)}
    return [
        replace(
            whole[one.source],
            stratum=one.stratum,
            images={key: read for key, read in whole[one.source].images.items() if key in one.images},
        )
        for one in drawn
    ]


def joined(parts: Sequence[Iterable[Material]], *, compare: bool = False) -> list[Material]:
    """Merge the cases of several sources: a task that several have becomes one case with all their models.

    Args:
        compare: True to also merge edits of one original for the same finding and direction whose tasks differ, as in
            imported pairs of several models. The case then has the first one's task.
    """
    whole: dict[object, Material] = {}
    for number, part in enumerate(parts, 1):
        for one in part:
            key = (one.original, one.finding, one.direction) if compare and one.original else one.source
            known = whole.setdefault(key, one)
            if known is not one:
                names = {key: key if key not in known.images else f"{key} ({number})" for key in one.images}
                del names[ORIGINAL]
                images = {name: one.images[key] for key, name in names.items()}
                verdicts = {name: one.verdicts[key] for key, name in names.items() if key in one.verdicts}
                whole[key] = replace(
                    known,
                    images={**known.images, **images},
                    verdicts={**known.verdicts, **verdicts},
                    joined=(*known.joined, one.source),
                )
    return list(whole.values())


def with_arms(found: Sequence[Material], arms: Collection[str]) -> list[Material]:
    """Keep only the outputs of these models in all cases. Raise InputError for a model that no case has."""
    known = sorted({key for one in found for key in one.images} - {ORIGINAL})
    for name in arms:
        if name not in known:
            raise InputError(f"--arms {name}: no output is by it; {suggest(name, known)}")
    kept = {ORIGINAL, *arms}
    return [
        one
        if one.images.keys() <= kept
        else replace(one, images={key: read for key, read in one.images.items() if key in kept})
        for one in found
    ]


def restricted(image: SourceImage) -> bool:
    """Return True if only readers who confirmed the data use agreement may see an image and its edits."""
    return image.licence not in (Licence.OPEN, Licence.ATTRIBUTION)
