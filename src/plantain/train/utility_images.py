"""Labelled real images of a catalogue, and successful edits, as frames with labels and groups.

A frame is an image cropped to its content, at one size, with tones normalised by its own quartiles: borders, aspect
ratio, gain and offset cannot reveal where an image came from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from plantain.catalogue.groups import Groups
from plantain.catalogue.store import Catalogue
from plantain.journal import JournalReader
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import Direction, InputError, SourceImage, TaskKind, TaskState, derive_seed
from plantain.records.messages import suggest

SIDE = 112
"""Side of a frame in pixels."""

DARK = 0.12
"""Share of the 99th percentile below which a pixel is background."""

Frame = npt.NDArray[np.uint8]


def crop_frame(pixels: Pixels) -> Frame:
    """Crop an image to its largest bright region, or not if it has no dark background; uint8 (SIDE, SIDE).

    Args:
        pixels: uint8 (H, W) or (H, W, 3).
    """
    gray = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    step = max(1, max(gray.shape) // 256)
    small = cv2.GaussianBlur(np.ascontiguousarray(gray[::step, ::step]), (0, 0), 1.0)
    lit = cv2.morphologyEx(_lit(small), cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    _, _, stats, _ = cv2.connectedComponentsWithStats(lit, connectivity=4)
    cut = gray
    if len(stats) > 1:
        largest = 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))
        x, y, width, height = (int(stats[largest, k]) * step for k in range(4))
        if stats[largest, cv2.CC_STAT_AREA] >= 0.05 * lit.size:
            cut = gray[y : y + height, x : x + width]
    return np.asarray(
        cv2.resize(np.ascontiguousarray(cut), (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8
    )


def normalise_tones(frame: Frame) -> npt.NDArray[np.float32]:
    """Normalise a frame's content to median 0, interquartile range 1, in [-3, 5]; float32 (SIDE, SIDE), -3 outside."""
    inside = _content(frame)
    values = frame[inside] if inside.any() else frame.ravel()
    low, middle, high = np.percentile(values, (25, 50, 75))
    levels = (frame.astype(np.float32) - middle) / max(float(high - low), 8.0)
    return np.where(inside, np.clip(levels, -3.0, 5.0), -3.0).astype(np.float32)


def augment(frame: Frame, rng: np.random.Generator) -> Frame:
    """Augment a frame, uint8 (SIDE, SIDE), at random: shift, tones, and at times blur, noise, resampling or JPEG."""
    out = _tone_curve(_move(frame, rng), rng)
    draws = rng.random(4)
    if draws[0] < 0.35:
        out = np.asarray(cv2.GaussianBlur(out, (0, 0), float(rng.uniform(0.4, 1.2))), np.uint8)
    if draws[1] < 0.3:
        out = np.clip(out + rng.normal(0, rng.uniform(1, 6), out.shape), 0, 255).astype(np.uint8)
    if draws[2] < 0.25:
        side = int(rng.integers(56, 100))
        out = cv2.resize(cv2.resize(out, (side, side), interpolation=cv2.INTER_AREA), (SIDE, SIDE))
    if draws[3] < 0.5:
        quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(25, 95))]
        _, data = cv2.imencode(".jpg", np.ascontiguousarray(out), quality)
        out = np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE), np.uint8)
    return out


def _lit(gray: Frame) -> Frame:
    return (gray > max(6.0, DARK * float(np.percentile(gray, 99)))).astype(np.uint8)


def _content(frame: Frame) -> npt.NDArray[np.bool_]:
    """The lit part of a frame with its holes filled."""
    lit = cv2.morphologyEx(_lit(frame), cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    outlines, _ = cv2.findContours(lit, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    filled = np.zeros_like(lit)
    if outlines:
        cv2.drawContours(filled, [max(outlines, key=cv2.contourArea)], -1, 1, cv2.FILLED)
    return np.asarray(filled > 0)


def _move(frame: Frame, rng: np.random.Generator) -> Frame:
    turn, scale = rng.uniform(-12, 12), rng.uniform(0.9, 1.1, 2)
    matrix = cv2.getRotationMatrix2D((SIDE / 2, SIDE / 2), turn, 1.0)
    matrix[:, :2] *= scale
    matrix[:, 2] += rng.uniform(-6, 6, 2) + (1 - scale) * SIDE / 2
    out = cv2.warpAffine(frame, matrix, (SIDE, SIDE), flags=cv2.INTER_LINEAR)
    return np.asarray(out[:, ::-1] if rng.random() < 0.5 else out, np.uint8)


def _tone_curve(frame: Frame, rng: np.random.Generator) -> Frame:
    at = np.arange(256) / 255.0
    curve = at ** float(np.exp(rng.normal(0, 0.35)))
    curve += rng.normal(0, 0.06) * np.sin(2 * np.pi * at)
    curve = rng.uniform(0.6, 1.1) * np.maximum.accumulate(np.clip(curve, 0, 1))
    return np.asarray(np.clip(curve * 255, 0, 255).astype(np.uint8)[frame])


LEAST = 10  # independent images that each finding, and its absence, must have
MOST = 600  # edits that are used; of more, a sample by hash


@dataclass(frozen=True, slots=True)
class LabelledFrames:
    """Labelled images in the form that the classifier reads.

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
        """Bool (N,), True for images without any finding."""
        return np.asarray(~self.labels.any(axis=1))

    def select(self, which: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> LabelledFrames:
        """Return a new set with the images of a bool mask (N,) or of row numbers."""
        return LabelledFrames(self.frames[which], self.labels[which], self.groups[which], self.findings)

    def joined(self, other: LabelledFrames) -> LabelledFrames:
        """Return a new set with this set's images, then those of `other`; both have the same findings."""
        return LabelledFrames(
            np.concatenate([self.frames, other.frames]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.groups, other.groups]),
            self.findings,
        )

    def split(self, share: float, seed: int) -> tuple[LabelledFrames, LabelledFrames]:
        """Split the images at random by `seed` into about a `share` (0 to 1) of them, and the rest.

        Groups are never divided."""
        names = sorted(set(self.groups.tolist()), key=lambda name: derive_seed(seed, "probe", name))
        sizes = dict(zip(*np.unique(self.groups, return_counts=True), strict=True))
        first, before = set(), 0
        for name in names:
            if before + 1e-9 < share * len(self):
                first.add(name)
            before += int(sizes[name])
        mask = np.array([name in first for name in self.groups.tolist()])
        return self.select(mask), self.select(~mask)


def read_sets(catalogue: Path, run: Path, findings: Sequence[str]) -> tuple[LabelledFrames, LabelledFrames]:
    """Read the real labelled images of a catalogue, and successful edits with the labels they were meant to have.

    Both share one naming of groups, so that edits of a held-out patient can be recognised.

    Args:
        catalogue: folder of a catalogue with real labelled images of the findings' modality.
        run: the run of the edits; `plantain import` makes one of a release.
        findings: findings of the labels' columns; edits of any other finding are skipped.

    Raises:
        InputError: findings are missing, unknown or of several modalities, all images are synthetic, fewer than
            `LEAST` groups are with or without a finding, or the findings have no edit with an available original.
    """
    known, frames = _real_images(catalogue, findings)
    edited = _edits(run, findings)
    groups = Groups([*known, *(edit.image for edit in edited)])
    real = [image for image in known if not image.synthetic]
    labels = np.array([[name in image.labels for name in findings] for image in real])
    names = np.array([groups.name(image) for image in real])
    for name, has in [*zip(findings, labels.T, strict=True), ("none of them", ~labels.any(axis=1))]:
        if (count := len(set(names[has].tolist()))) < LEAST:
            raise InputError(f"{catalogue}: {count} independent images with {name}; {LEAST} are needed")
    added = [
        [
            edit.added if name == edit.finding else bool(edit.image.parent) and name in edit.image.labels
            for name in findings
        ]
        for edit in edited
    ]
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


def _edits(run: Path, findings: Sequence[str]) -> list[_Edit]:
    every = list(_run_edits(run))
    edits = [edit for edit in every if edit.finding in findings]
    if not edits:
        about = ", ".join(sorted({edit.finding for edit in every})) or "nothing"
        raise InputError(f"{run}: no successful edit of {', '.join(findings)}; its edits are of {about}")
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


def _sample(ids: list[str]) -> list[str]:
    by_hash = sorted(ids, key=lambda name: hashlib.sha256(name.encode()).digest())
    return sorted(by_hash[:MOST])
