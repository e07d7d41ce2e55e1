"""Labelled real images of a catalogue, and successful edits, as frames with labels and groups."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plantain.catalogue.groups import Groups
from plantain.catalogue.store import Catalogue
from plantain.journal import JournalReader
from plantain.journal.connect import JOURNAL_NAME
from plantain.pixels.decode import decode
from plantain.records import Direction, InputError, SourceImage, TaskKind, TaskState, derive_seed
from plantain.records.messages import suggest
from plantain.train.releases import TABLES, ReleasePairs, StoredOriginals
from plantain.train.utility.frames import Frame, crop_frame

LEAST = 10  # independent images that each finding, and its absence, must have
MOST = 600  # edits that are used; of more, a sample by hash


@dataclass(frozen=True, slots=True)
class LabelledFrames:
    """Images as the classifier reads them.

    Attributes:
        frames: uint8 (N, SIDE, SIDE).
        labels: bool (N, findings).
        groups: str (N,); images of one patient, or near duplicates, share a group.
        findings: names of the columns of `labels`.
    """

    frames: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.bool_]
    groups: npt.NDArray[np.str_]
    findings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def healthy(self) -> npt.NDArray[np.bool_]:
        """Images with none of the findings, (N,)."""
        return np.asarray(~self.labels.any(axis=1))

    def select(self, which: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> LabelledFrames:
        """Return the images of a mask or of row numbers."""
        return LabelledFrames(self.frames[which], self.labels[which], self.groups[which], self.findings)

    def joined(self, other: LabelledFrames) -> LabelledFrames:
        """Return both sets, one after the other."""
        return LabelledFrames(
            np.concatenate([self.frames, other.frames]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.groups, other.groups]),
            self.findings,
        )

    def split(self, share: float, seed: int) -> tuple[LabelledFrames, LabelledFrames]:
        """Split into about `share` of the images and the others; a group is never divided."""
        names = sorted(set(self.groups.tolist()), key=lambda name: derive_seed(seed, "probe", name))
        sizes = dict(zip(*np.unique(self.groups, return_counts=True), strict=True))
        first, before = set(), 0
        for name in names:
            if before + 1e-9 < share * len(self):
                first.add(name)
            before += int(sizes[name])
        mask = np.array([name in first for name in self.groups.tolist()])
        return self.select(mask), self.select(~mask)


def read_sets(
    catalogue: Path, edits: Path, originals: Path | None, findings: Sequence[str]
) -> tuple[LabelledFrames, LabelledFrames]:
    """Read the real labelled images of a catalogue, and successful edits with the labels they were meant to have.

    Both share one naming of groups, so that edits of a held-out patient can be recognised.

    Args:
        catalogue: with real labelled images of the findings' modality.
        edits: a run, or a release in the `parquet` layout.
        originals: run or catalogue with a release's originals; None for those in the release.
        findings: columns of the labels; edits of any other finding are skipped.

    Raises:
        InputError: no finding, an unknown one, findings of several modalities, only synthetic images, fewer than
            `LEAST` groups with or without a finding; or no edit of the findings whose original is available.
    """
    known, frames = _real_images(catalogue, findings)
    edited = _edits(edits, originals or edits, findings)
    groups = Groups([*known, *(edit.image for edit in edited)])
    real = [image for image in known if not image.synthetic]
    labels = np.array([[name in image.labels for name in findings] for image in real])
    names = np.array([groups.name(image) for image in real])
    for name, has in [*zip(findings, labels.T, strict=True), ("none of them", ~labels.any(axis=1))]:
        if (count := len(set(names[has].tolist()))) < LEAST:
            raise InputError(f"{catalogue}: {count} independent images with {name}; {LEAST} are needed")
    added = [[edit.added and name == edit.finding for name in findings] for edit in edited]
    edit_groups = np.array([groups.name(edit.image) for edit in edited])
    edit_frames = np.stack([edit.frame for edit in edited])
    sets = (np.stack(frames), labels, names), (edit_frames, np.array(added), edit_groups)
    return LabelledFrames(*sets[0], tuple(findings)), LabelledFrames(*sets[1], tuple(findings))


def _real_images(folder: Path, findings: Sequence[str]) -> tuple[list[SourceImage], list[Frame]]:
    """Every labelled image of the findings' modality, and the frames of those that are real."""
    with Catalogue.open(folder) as catalogue:
        known = catalogue.count_by("label")
        for name in findings:
            if name not in known:
                raise InputError(f"--finding: no image of {folder} has {name!r}; {suggest(name, known)}")
        if not findings:
            raise InputError("--finding: name at least one")
        modalities = {image.modality for name in findings for image in catalogue.images(label=name)}
        if len(modalities) > 1:
            several = " and ".join(sorted(modalities))
            raise InputError(f"--finding: {folder} has them in {several}; name findings of one modality")
        images = [image for image in catalogue.images(modality=modalities.pop()) if image.labels]
        frames = [crop_frame(decode(catalogue.read(image))) for image in images if not image.synthetic]
    if not frames:
        raise InputError(f"{folder}: all {len(images)} images are synthetic; name a catalogue of real images")
    return images, frames


@dataclass(frozen=True, slots=True)
class _Edit:
    image: SourceImage
    finding: str
    added: bool
    frame: Frame


def _edits(folder: Path, originals: Path, findings: Sequence[str]) -> list[_Edit]:
    if (folder / JOURNAL_NAME).is_file():
        every = list(_run_edits(folder))
    elif (folder / TABLES).is_dir():
        every = list(_release_edits(folder, originals))
    else:
        raise InputError(f"{folder}: not a run (no {JOURNAL_NAME}) or a release with tables (no {TABLES}/)")
    edits = [edit for edit in every if edit.finding in findings]
    if not edits:
        about = ", ".join(sorted({edit.finding for edit in every})) or "nothing"
        raise InputError(f"{folder}: no successful edit of {', '.join(findings)}; its edits are of {about}")
    return edits


def _run_edits(run: Path) -> Iterator[_Edit]:
    with JournalReader.open(run) as reader:
        successes = [row.id for row in reader.tasks(TaskState.SUCCESS) if row.task.kind is TaskKind.EDIT]
        for name in _sample(successes):
            row = reader.task(name)
            kept = [a.edited for a in reader.attempts(name, row.generation) if a.edited and not a.superseded]
            if kept and reader.has_blob(kept[-1]):
                frame = crop_frame(decode(reader.read_blob(kept[-1])))
                added = row.task.direction is Direction.ADD
                yield _Edit(reader.image(row.task.image_id), row.task.finding, added, frame)


def _release_edits(release: Path, originals: Path) -> Iterator[_Edit]:
    pairs = ReleasePairs(release, StoredOriginals(originals))
    for pair in pairs.read(_sample([listed.id for listed in pairs.listed()])):
        direction, _, finding = pair.task.partition(" ")
        yield _Edit(pairs.source_image(pair.id), finding, direction == Direction.ADD, crop_frame(pair.after))


def _sample(ids: list[str]) -> list[str]:
    by_hash = sorted(ids, key=lambda name: hashlib.sha256(name.encode()).digest())
    return sorted(by_hash[:MOST])
