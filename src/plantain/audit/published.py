"""What a judge says of a published sample of edits, as a look at its limits: the originals are not published."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plantain.findings import Taxonomy
from plantain.offline.language import Intent, compose
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode_untrusted
from plantain.pixels.encode import encode_source, normalise
from plantain.pixels.prepare import settle_grey
from plantain.records import (
    Direction,
    Finding,
    Geometry,
    InputError,
    Licence,
    Observations,
    Rubric,
    SourceImage,
)
from plantain.roles import EncodedImage, Judge, JudgeRequest

MODALITIES = {"Brain-MRI": "brain_mri", "Chest-XRay": "chest_xray", "Fundus": "fundus"}
NAME = re.compile(r"^(?P<source>.+?)-(?P<finding>[^-]+)-(?P<task>edit|remove)\.jpe?g$")
FEWEST = 3
"""Published edits of one source image that it takes to stand in for its original."""


@dataclass(frozen=True, slots=True)
class PublishedEdit:
    """One file of a published tree."""

    path: Path
    modality: str
    source: str
    finding: Finding
    direction: Direction


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the judge said of one published edit; None with a reason where it could not be asked."""

    edit: PublishedEdit
    observations: Observations | None
    reason: str


def is_published_tree(folder: Path) -> bool:
    """True where the folder holds `{dataset}-edit` or `{dataset}-remove` as Med-Banana publishes them."""
    return any((folder / f"{name}-{task}").is_dir() for name in MODALITIES for task in ("edit", "remove"))


def published_edits(folder: Path, taxonomy: Taxonomy) -> list[PublishedEdit]:
    """Every edit of the tree whose name and finding are known, in the order of their paths."""
    found = []
    for dataset, modality in MODALITIES.items():
        known = {finding.name.replace(" ", "_"): finding for finding in taxonomy.of(modality)}
        for path in sorted(folder.glob(f"{dataset}-*/*/*.jp*g")):
            match = NAME.match(path.name)
            if match is None or match["finding"] not in known:
                continue
            direction = Direction.ADD if match["task"] == "edit" else Direction.REMOVE
            found.append(PublishedEdit(path, modality, match["source"], known[match["finding"]], direction))
    if not found:
        raise InputError(
            f"{folder}: no file is named like <image>-<finding>-edit.jpeg in <dataset>-edit/<finding>/"
        )
    return found


async def opinions_of(
    judge: Judge,
    edits: Sequence[PublishedEdit],
    rubric: Rubric,
    progress: Callable[[int, int], None] = lambda done, wanted: None,
) -> list[Opinion]:
    """Asks the judge about every edit that an original can be stood in for.

    The stand-in is the median, pixel by pixel, of three or more published edits of one source image: where
    at most one of them differs, it is what they share. It is not the original, and what all of them changed
    is lost in it.
    """
    groups: dict[tuple[str, str], list[PublishedEdit]] = {}
    for edit in edits:
        groups.setdefault((edit.modality, edit.source), []).append(edit)
    opinions = []
    for number, edit in enumerate(edits):
        siblings = groups[edit.modality, edit.source]
        if len(siblings) < FEWEST:
            opinions.append(Opinion(edit, None, "its original is not published, and too few edits share it"))
        else:
            opinions.append(await _ask(judge, edit, siblings, rubric))
        progress(number + 1, len(edits))
    return opinions


async def _ask(
    judge: Judge, edit: PublishedEdit, siblings: Sequence[PublishedEdit], rubric: Rubric
) -> Opinion:
    original = np.median([_pixels(sibling) for sibling in siblings], axis=0).astype(np.uint8)
    intent = Intent(edit.finding.name, edit.direction)
    reply = await judge.judge(
        JudgeRequest(
            image=_record(edit),
            original=EncodedImage(encode_source(original), "image/jpeg"),
            edited=EncodedImage(normalise(edit.path.read_bytes()), "image/jpeg"),
            instruction=compose(intent, edit.finding),
            finding=edit.finding,
            direction=edit.direction,
            rubric=rubric,
            seed=0,
        )
    )
    if reply.value is None:
        return Opinion(edit, None, reply.outcome.reason)
    return Opinion(edit, reply.value, reply.value.reason)


def _pixels(edit: PublishedEdit) -> Pixels:
    pixels = decode_untrusted(edit.path.read_bytes(), edit.path.name)
    return settle_grey(pixels) if edit.modality != "fundus" else pixels


def _record(edit: PublishedEdit) -> SourceImage:
    return SourceImage(
        id=edit.source,
        dataset="published sample",
        modality=edit.modality,
        labels=(),
        licence=Licence.UNKNOWN,
        source_sha256="",
        prepared_sha256="",
        geometry=Geometry(1024, 1024, "pad", 0, 0, 1024, 1024),
        view="frontal" if edit.modality == "chest_xray" else "unknown",
        synthetic=True,
    )
