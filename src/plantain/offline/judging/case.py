"""One edit to judge: the request, the map of the image, and the measured change."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plantain.findings import zones_on
from plantain.offline.anatomy.maps import SIDE, AnatomyMap, CannotShow, grow
from plantain.offline.drawing.adding import completed, map_of, strokes_on
from plantain.offline.judging.change import Change, Pair, change_of, pair_of
from plantain.offline.language import Intent
from plantain.pixels.arrays import Mask, Pixels
from plantain.records import Direction, Finding, SourceImage, Stroke


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """An edit to judge, with all measurements that the criteria need.

    Attributes:
        intent: the intent read from the instruction.
        finding: the requested finding; image: the record of the original.
        added: True if the finding was added, not removed.
        sequence: the recorded or estimated sequence of a slice.
        strokes: drawing steps of the finding on this image; empty if its shape is unknown.
        anatomy: map of the image without the finding.
        place: bool (256, 256), True where the finding may be.
        pair, change: the two images and the measured edit; the change is None if the images are equal.
    """

    intent: Intent
    finding: Finding
    image: SourceImage
    added: bool
    sequence: str
    strokes: tuple[Stroke, ...]
    anatomy: AnatomyMap
    place: Mask
    pair: Pair
    change: Change | None

    @property
    def whole_field(self) -> bool:
        """True if the finding changes the whole image."""
        return any(stroke.shape == "haze" for stroke in self.strokes)


def case_of(
    before: Pixels, after: Pixels, intent: Intent, image: SourceImage, finding: Finding, direction: Direction
) -> Case:
    """Measure an edit, with the anatomy map and the possible place of its finding.

    Raises:
        CannotShow: the image cannot be mapped.
        ValueError: the images differ in size.
    """
    added = direction is not Direction.REMOVE
    pair = pair_of(before, after, added=added, fundus=image.modality == "fundus")
    clean = before if added else after
    plane, sequence = completed(image, clean)
    anatomy = map_of(clean, replace(image, plane=plane))
    strokes = strokes_on(finding, sequence, intent.zone)
    place = _place(finding, image, intent.zone, strokes, anatomy)
    return Case(
        intent,
        finding,
        image,
        added,
        sequence,
        strokes,
        anatomy,
        place,
        pair,
        change_of(pair, anatomy, place),
    )


def unmapped(
    before: Pixels, after: Pixels, image: SourceImage, finding: Finding | None, *, added: bool
) -> Case:
    """Measure an edit without an anatomy map or a known finding; `added` is False for a removal.

    Raises:
        ValueError: the images differ in size.
    """
    everywhere = np.ones((SIDE, SIDE), bool)
    anatomy = AnatomyMap(everywhere, everywhere, {}, float(SIDE), None)
    known = finding or Finding("", image.modality, "", "", "")
    pair = pair_of(before, after, added=added, fundus=image.modality == "fundus")
    change = change_of(pair, anatomy, everywhere)
    return Case(
        Intent(None, None), known, image, added, image.sequence, (), anatomy, everywhere, pair, change
    )


def _place(
    finding: Finding, image: SourceImage, zone: str | None, strokes: tuple[Stroke, ...], anatomy: AnatomyMap
) -> Mask:
    zones = (zone,) if zone else zones_on(finding, image)
    names = {stroke.at for stroke in strokes if stroke.at} | (
        {*zones} if any(not s.at for s in strokes) else set()
    )
    found = [anatomy.places[name] for name in sorted(names) if name in anatomy.places]
    outside = max((-min(stroke.size) for stroke in strokes), default=0.0)
    if outside > 0:  # a crescent outside its structure
        return np.asarray(grow(found[0], outside * anatomy.yard) & ~found[0], bool)
    if not found:
        if strokes and names:
            raise CannotShow(f"no {' or '.join(sorted(names))} region was found in this image")
        return anatomy.field
    return np.asarray(np.logical_or.reduce(found), bool)
