"""Labelled pictures of a catalogue as frames, with their groups; what cannot teach a probe is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plantain.catalogue.groups import JOINED, Groups
from plantain.catalogue.store import Catalogue
from plantain.models.probe.frame import SIDE, framed
from plantain.pixels.decode import decode
from plantain.records import InputError, SourceImage, derive_seed
from plantain.records.counts import counted
from plantain.records.suggestions import suggest

LEAST = 60
"""Independent pictures that each finding, and its absence, must have: fewer leave about ten to measure by."""


@dataclass(frozen=True, slots=True)
class LabelledFrames:
    """Pictures as a probe sees them.

    Attributes:
        frames: uint8 (N, SIDE, SIDE).
        labels: bool (N, findings).
        groups: of each picture: one patient, or near duplicates of each other.
        findings: names, in the order of the columns.
        modality: of all pictures.
        digest: of the catalogue they came from.
        patients: whether every picture's source said whose it is.
    """

    frames: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.bool_]
    groups: npt.NDArray[np.str_]
    findings: tuple[str, ...]
    modality: str
    digest: str
    patients: bool

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def healthy(self) -> npt.NDArray[np.bool_]:
        """Pictures with none of the findings, (N,)."""
        return np.asarray(~self.labels.any(axis=1))

    def chosen(self, which: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> LabelledFrames:
        """Some of the pictures."""
        return LabelledFrames(
            self.frames[which],
            self.labels[which],
            self.groups[which],
            self.findings,
            self.modality,
            self.digest,
            self.patients,
        )

    def parts(self, seed: int, shares: Sequence[float] = (0.7, 0.12, 0.18)) -> list[LabelledFrames]:
        """Cut into parts of about these shares; a group is in one of them."""
        names = sorted(set(self.groups.tolist()), key=lambda name: derive_seed(seed, "probe", name))
        ends = np.cumsum(shares) * len(self)
        sizes = dict(zip(*np.unique(self.groups, return_counts=True), strict=True))
        before, part = 0, {}
        for name in names:
            part[name] = min(int(np.searchsorted(ends, before + 1e-9, side="right")), len(shares) - 1)
            before += int(sizes[name])
        whose = np.array([part[name] for name in self.groups.tolist()])
        return [self.chosen(whose == number) for number in range(len(shares))]


def labelled_frames(
    folder: Path,
    findings: Sequence[str],
    *,
    least: int = LEAST,
    advanced: Callable[[int, int], None] = lambda done, of: None,
) -> LabelledFrames:
    """Every real picture of one modality in a catalogue that has a label.

    Args:
        folder: of the catalogue.
        findings: to tell apart; of one modality.
        least: groups that each finding, and its absence, must have.
        advanced: told how many pictures of how many are read.

    Raises:
        InputError: a finding that no picture has, findings of several modalities, edited or drawn pictures alone, or
            too few groups.
    """
    with Catalogue.open(folder) as catalogue:
        known = catalogue.count_by("label")
        for name in findings:
            if name not in known:
                raise InputError(f"--findings: no picture of {folder} has {name!r}; {suggest(name, known)}")
        if not findings or len(set(findings)) < len(findings):
            raise InputError("--findings: name each finding once, with commas between")
        images = [image for image in _of_one_modality(catalogue, findings, folder) if image.labels]
        real = [image for image in images if not image.synthetic]
        if not real:
            raise InputError(
                f"{folder}: all {len(images)} pictures are drawn or edited; a probe that learned from edits would "
                "call right whatever drew them: give it real labelled pictures"
            )
        groups = Groups(images)
        labels = np.array([[name in image.labels for name in findings] for image in real])
        names = np.array([groups.name(image) for image in real])
        _enough(labels, names, findings, folder, least)
        frames = np.empty((len(real), SIDE, SIDE), np.uint8)
        for number, frame in enumerate(_read(catalogue, real)):
            frames[number] = frame
            advanced(number + 1, len(real))
        whose = [catalogue.own_group(image) for image in real]
        patients = all(group is not None and not group.startswith(JOINED) for group in whose)
        modality = real[0].modality
        return LabelledFrames(frames, labels, names, tuple(findings), modality, catalogue.digest(), patients)


def _of_one_modality(catalogue: Catalogue, findings: Sequence[str], folder: Path) -> Iterator[SourceImage]:
    modalities = {image.modality for name in findings for image in catalogue.images(label=name)}
    if len(modalities) > 1:
        raise InputError(
            f"--findings: in {folder} these are findings of {' and '.join(sorted(modalities))}; a probe reads one "
            "modality"
        )
    return catalogue.images(modality=modalities.pop())


def _read(catalogue: Catalogue, images: Sequence[SourceImage]) -> Iterator[npt.NDArray[np.uint8]]:
    with ThreadPoolExecutor(2) as pool:
        for first in range(0, len(images), 64):
            yield from pool.map(
                lambda image: framed(decode(catalogue.read(image))), images[first : first + 64]
            )


def _enough(
    labels: npt.NDArray[np.bool_],
    groups: npt.NDArray[np.str_],
    findings: Sequence[str],
    folder: Path,
    least: int,
) -> None:
    columns = [*zip(findings, labels.T, strict=True), ("none of them", ~labels.any(axis=1))]
    for name, has in columns:
        found = len(set(groups[has].tolist()))
        if found < least:
            raise InputError(
                f"{folder}: {counted(found, 'independent picture')} with {name}; a probe needs {least} of each "
                f"finding and as "
                "many without any, or nothing could be said of how good it is"
            )
