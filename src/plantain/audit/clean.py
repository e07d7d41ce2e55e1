"""Real images for an audit, from a run, a catalogue or plantain's dependencies, and clean edits of them.

A clean edit is made without a judge: drawn by the procedural editor, or the exact undoing of a drawing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from plantain.audit.planted_defects import CleanEdit
from plantain.catalogue.store import NAME as CATALOGUE
from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy, sides_on, why_not_shown, zones_on
from plantain.journal import JournalReader
from plantain.journal.connect import JOURNAL_NAME
from plantain.offline.anatomy.maps import CannotShow
from plantain.offline.drawing.adding import Rendering, add
from plantain.offline.language import Intent, compose, read_instruction
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import BUILD_DIRECTIONS, Direction, Finding, InputError, SourceImage, derive_seed
from plantain.sources.samples import PackageSample, brain_average, sample_images

MOST = 400
"""Most images read from a run or catalogue; more do not separate a judge from chance any better."""


BRAIN_CUTS: dict[str, tuple[tuple[str, int], ...]] = {
    "tuning": (("axial", 0), ("axial", 15), ("axial", 30), ("axial", 50), ("coronal", -30), ("coronal", 10)),
    "held-out": (("axial", 8), ("axial", 23), ("axial", 37), ("axial", 45), ("coronal", -20), ("coronal", 0)),
}
"""Slices of the MNI average, in millimetres; seven or more apart from every slice of the other set in axial plane."""

SELLA_CUTS: dict[str, tuple[tuple[str, int], ...]] = {
    "tuning": (("axial", -24), ("axial", -20), ("sagittal", 0), ("coronal", -4), ("coronal", 6)),
    "held-out": (("axial", -26), ("sagittal", 2), ("coronal", 1), ("axial", -22)),
}
"""Slices of the same average that show the sella, for pituitary tumours; two to five millimetres apart."""

VIEWS: dict[str, tuple[tuple[float, float, float, float, float], ...]] = {
    "tuning": ((0, 1.0, 0.5, 0.5, 1.0), (-2, 1.06, 0.48, 0.45, 0.92)),
    "held-out": ((3, 1.1, 0.52, 0.52, 1.08), (-4, 1.14, 0.47, 0.48, 1.0), (1.5, 1.03, 0.5, 0.55, 0.88)),
}
"""Views of a modality's one image: degrees counter-clockwise, zoom, its centre x, y (shares of the frame), gamma."""


@dataclass(frozen=True, slots=True, eq=False)
class AuditImage:
    """An image's record and its prepared bytes, as a catalogue stores them."""

    image: SourceImage
    data: bytes


def cluster_of(image: SourceImage) -> str:
    """Return the key that dependent images share: the patient where known, else the source file."""
    return f"{image.dataset}/{image.group}" if image.group else image.source_sha256 or image.id


def images_in(folder: Path | None, taxonomy: Taxonomy) -> list[AuditImage]:
    """Return the real images of a run or a catalogue; of the packages for None.

    Where a modality has images without a finding, only those are returned, so that drawn findings are the only ones.

    Raises:
        InputError: the folder has no such image.
    """
    if folder is None:
        return package_images("held-out")
    if (folder / JOURNAL_NAME).is_file():
        with JournalReader.open(folder) as reader:
            images = [image for image in reader.images() if reader.has_blob(image.prepared_sha256)]
            found = _healthy(images, taxonomy, lambda image: reader.read_blob(image.prepared_sha256))
        if not found:
            raise InputError(f"{folder}: this run has no original images yet; build it first")
        return found
    if (folder / CATALOGUE).is_file():
        with Catalogue.open(folder) as catalogue:
            found = _healthy(catalogue.images(), taxonomy, catalogue.read)
        if not found:
            raise InputError(f"{folder}: this catalogue has no real image")
        return found
    raise InputError(f"{folder}: neither a run nor a catalogue; plantain ingest makes a catalogue of images")


def _healthy(
    images: Iterable[SourceImage], taxonomy: Taxonomy, read: Callable[[SourceImage], bytes]
) -> list[AuditImage]:
    """Return at most `MOST` of the real images, drawn by hash, in the order of their ids."""
    normal = {finding.name for finding in taxonomy.findings if finding.normal}
    real = [image for image in images if not image.synthetic]
    healthy = {image.modality for image in real if set(image.labels) & normal}
    kept = [image for image in real if image.modality not in healthy or set(image.labels) <= normal]
    kept.sort(key=lambda image: hashlib.sha256(image.id.encode()).digest())
    return [AuditImage(image, read(image)) for image in sorted(kept[:MOST], key=lambda image: image.id)]


def package_images(split: str) -> list[AuditImage]:
    """Return the images of one set, "held-out" or "tuning", that the dependencies contain.

    Slices of the average brain differ between the sets. There is only one chest radiograph and one fundus photograph:
    both sets use it with different geometry and tone, so the sets share the patient in these modalities.

    Raises:
        InputError: a package is not installed.
    """
    found = []
    for sample in sample_images():
        if sample.image.modality != "brain_mri":
            found += [_viewed(sample, number, view) for number, view in enumerate(VIEWS[split])]
        elif sample.image.dataset == "dipy" and split == "held-out":
            found.append(AuditImage(*sample.prepared()))
    cuts = BRAIN_CUTS[split] + SELLA_CUTS[split]
    found += [AuditImage(*sample.prepared()) for sample in brain_average(cuts)]
    return found


def _viewed(sample: PackageSample, number: int, view: tuple[float, float, float, float, float]) -> AuditImage:
    degrees, zoom, x, y, gamma = view
    height, width = sample.pixels.shape[:2]
    matrix = cv2.getRotationMatrix2D((x * width, y * height), degrees, zoom)
    turned = cv2.warpAffine(sample.pixels, matrix, (width, height), flags=cv2.INTER_LINEAR)
    toned = np.rint(255.0 * (turned / 255.0) ** gamma).astype(np.uint8)
    image = replace(sample.image, id=f"{sample.image.id}-view{number}", spacing_mm=None)
    return AuditImage(*replace(sample, image=image, pixels=toned).prepared())


@dataclass(frozen=True, slots=True, eq=False)
class CleanEditRecipe:
    """Inputs of one clean edit; rendering it twice gives the same bytes.

    Attributes:
        source: the real image.
        finding, direction: of the edit.
        seed: of side, zone and extent, and of the rendering.
        name: unique in the audit, readable.
    """

    source: AuditImage
    finding: Finding
    direction: Direction
    seed: int
    name: str


def recipes(
    images: Sequence[AuditImage], taxonomy: Taxonomy, seed: int, findings: Sequence[str] = ()
) -> Iterator[CleanEditRecipe]:
    """Yield recipes without end: modalities in turn, within each all findings and directions, then all images.

    Args:
        images: real images.
        taxonomy: contains the findings.
        seed: of all random choices.
        findings: names to use; empty for all that the editor draws.
    """
    by_modality: dict[str, list[AuditImage]] = {}
    for source in images:
        by_modality.setdefault(source.image.modality, []).append(source)
    turn = 0
    while True:
        dealt = False
        for modality, own in by_modality.items():
            renderable = {name for name in drawable(taxonomy, modality) if not findings or name in findings}
            targets = [
                (finding, direction)
                for finding in taxonomy.of(modality)
                if finding.name in renderable
                for direction in BUILD_DIRECTIONS
            ]
            if not targets:
                continue
            dealt = True
            finding, direction = targets[turn % len(targets)]
            source = own[(turn // len(targets) + turn) % len(own)]
            yield CleanEditRecipe(
                source,
                finding,
                direction,
                derive_seed(seed, source.image.id, finding.name, direction.value, turn),
                f"{source.image.id} {finding.name} {direction.value} {turn}",
            )
        if not dealt:
            return
        turn += 1


def drawable(taxonomy: Taxonomy, modality: str) -> frozenset[str]:
    """Return the names of the findings of a modality that the procedural editor draws."""
    return frozenset(finding.name for finding in taxonomy.of(modality) if finding.draw)


def render(recipe: CleanEditRecipe) -> CleanEdit:
    """Return a clean edit.

    A removal is made by drawing the finding: the drawing is the original, and the real image is its perfect removal.

    Raises:
        CannotShow: the finding cannot be shown on this image.
    """
    image, finding = recipe.source.image, recipe.finding
    obstacle = why_not_shown(finding, image)
    if obstacle:
        raise CannotShow(obstacle)
    rng = np.random.default_rng(recipe.seed)
    intended = _intent(recipe, rng)
    original = decode(recipe.source.data)
    # The editor reads the intent from the instruction, so the audit does too.
    intent = read_instruction(_instruction(recipe, intended, Direction.ADD), [finding])
    added = add(original, image, finding, intent, np.random.default_rng(derive_seed(recipe.seed, "draw")))
    if recipe.direction is Direction.ADD:
        return _clean(recipe, intended, original, added)
    drawn = decode(encode_source(added.pixels))
    return _clean(recipe, intended, drawn, replace(added, pixels=original))


def _intent(recipe: CleanEditRecipe, rng: np.random.Generator) -> Intent:
    finding, image = recipe.finding, recipe.source.image
    sides, zones = sides_on(finding, image), zones_on(finding, image)
    return Intent(
        finding=recipe.finding.name,
        direction=recipe.direction,
        side=sides[int(rng.integers(len(sides)))] if sides else None,
        zone=zones[int(rng.integers(len(zones)))] if zones else None,
        extent=("moderate", "large")[int(rng.integers(2))],
        conspicuity=("moderate", "marked")[int(rng.integers(2))],
    )


def _instruction(recipe: CleanEditRecipe, intent: Intent, direction: Direction) -> str:
    return compose(replace(intent, direction=direction), recipe.finding, phrasing=recipe.seed % 4)


def _clean(recipe: CleanEditRecipe, intent: Intent, original: np.ndarray, rendering: Rendering) -> CleanEdit:
    instruction = _instruction(recipe, intent, recipe.direction)
    drawn = recipe.direction is Direction.REMOVE
    return CleanEdit(
        image=replace(recipe.source.image, synthetic=True) if drawn else recipe.source.image,
        finding=recipe.finding,
        direction=recipe.direction,
        intent=read_instruction(instruction, [recipe.finding]),
        instruction=instruction,
        original=original,
        edited=decode(encode_jpeg(rendering.pixels)),
        mask=rendering.mask,
        support=rendering.support,
        name=recipe.name,
    )


def rendered_or_reason(recipe: CleanEditRecipe) -> CleanEdit | str:
    """Return the clean edit, or the reason why there is none."""
    try:
        return render(recipe)
    except CannotShow as reason:
        return str(reason)
    except (ArithmeticError, ValueError, IndexError, cv2.error, np.linalg.LinAlgError) as error:
        return f"drawing failed: {type(error).__name__}: {error}"
