"""What a judge says of a published sample of edits, as a look at its limits: the originals are not published."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plantain.audit.asking import Asking
from plantain.audit.pictures import TrialPicture
from plantain.files.opening import check_inside, read_regular
from plantain.findings import Taxonomy
from plantain.offline.language import Intent, compose
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode_untrusted
from plantain.pixels.encode import encode_source, normalise
from plantain.pixels.prepare import settle_grey
from plantain.privacy.lineage import made_from
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
from plantain.roles import EncodedImage, JudgeRequest

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

    def read(self) -> bytes:
        """Its bytes. Raises InputError."""
        return read_regular(self.path, self.path.name)


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
            check_inside(folder, path)
            direction = Direction.ADD if match["task"] == "edit" else Direction.REMOVE
            found.append(PublishedEdit(path, modality, match["source"], known[match["finding"]], direction))
    if not found:
        raise InputError(
            f"{folder}: no file is named like <image>-<finding>-edit.jpeg in <dataset>-edit/<finding>/"
        )
    return found


def askable(edits: Sequence[PublishedEdit]) -> list[PublishedEdit]:
    """Those that an original can be stood in for."""
    groups = _by_source(edits)
    return [edit for edit in edits if len(groups[edit.modality, edit.source]) >= FEWEST]


def _by_source(edits: Sequence[PublishedEdit]) -> dict[tuple[str, str], list[PublishedEdit]]:
    groups: dict[tuple[str, str], list[PublishedEdit]] = {}
    for edit in edits:
        groups.setdefault((edit.modality, edit.source), []).append(edit)
    return groups


async def opinions_of(asking: Asking, edits: Sequence[PublishedEdit], rubric: Rubric) -> list[Opinion]:
    """Asks the judge about every edit that an original can be stood in for.

    The stand-in is the median, pixel by pixel, of three or more published edits of one source image: where
    at most one of them differs, it is what they share. It is not the original, and what all of them changed
    is lost in it.
    """
    groups = _by_source(edits)
    opinions: dict[int, Opinion] = {}
    asking.opened.observer.begun("published edits", len(edits))

    async def carry(item: tuple[int, PublishedEdit]) -> None:
        number, edit = item
        siblings = groups[edit.modality, edit.source]
        if len(siblings) < FEWEST:
            why = "its original is not published, and too few edits share it"
            opinions[number] = Opinion(edit, None, why)
        else:
            opinions[number] = await _ask(asking, edit, siblings, rubric)
        asking.opened.observer.advanced(1)

    await asking.opened.walk(enumerate(edits), carry)
    return [opinions[number] for number in sorted(opinions)]


async def _ask(
    asking: Asking, edit: PublishedEdit, siblings: Sequence[PublishedEdit], rubric: Rubric
) -> Opinion:
    median = np.median([_pixels(sibling) for sibling in siblings], axis=0).astype(np.uint8)
    image = _record(edit)
    original = await asking.taken_in(TrialPicture(image, encode_source(median)))
    observed, why_not = await asking.observations(
        "/".join(edit.path.parts[-3:]),
        JudgeRequest(
            image=image,
            original=EncodedImage(original, "image/jpeg"),
            edited=EncodedImage(made_from(normalise(edit.read()), original), "image/jpeg"),
            instruction=compose(Intent(edit.finding.name, edit.direction), edit.finding),
            finding=edit.finding,
            direction=edit.direction,
            rubric=rubric,
            seed=0,
        ),
    )
    return Opinion(edit, observed, why_not if observed is None else observed.reason)


def _pixels(edit: PublishedEdit) -> Pixels:
    pixels = decode_untrusted(edit.read(), edit.path.name)
    return settle_grey(pixels) if edit.modality != "fundus" else pixels


def _record(edit: PublishedEdit) -> SourceImage:
    return SourceImage(
        id=f"{edit.modality}/{edit.source}",
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
