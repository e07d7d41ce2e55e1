"""What kind of slice this is: sequence, contrast and plane as recorded, or estimated and marked as such."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.brain.anatomy import STEP, Brain
from plantain.offline.rendering import CannotShow
from plantain.records import SourceImage
from plantain.sources.brain_slice import UNKNOWN, SliceEstimate, estimate_slice

_ENHANCED = {
    "yes",
    "with",
    "gadolinium",
    "gd",
    "contrast",
    "post",
    "post-contrast",
    "enhanced",
    "t1+c",
    "true",
}

_LENGTH_MM = {"axial": 165.0, "sagittal": 165.0, "coronal": 135.0}
"""Usual length of an adult brain along the longer measured side, for images without a pixel spacing."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """The slice's kind and its tissue levels.

    Attributes:
        sequence: "T1", "T2", "FLAIR" or "PD".
        enhanced: contrast medium was given; only then is anything drawn as enhancing.
        either: it is not recorded whether contrast medium was given, so a tumour that is there may be bright or dark.
        plane: "axial", "coronal" or "sagittal".
        estimated: which of "sequence" and "plane" the record did not say.
        fluid, grey, white: grey levels of CSF, grey and white matter.
        mm: millimetres per pixel (from the record, else from the usual size of a brain).
    """

    sequence: str
    enhanced: bool
    either: bool
    plane: str
    estimated: tuple[str, ...]
    fluid: float
    grey: float
    white: float
    mm: float

    @property
    def remark(self) -> str:
        """What a reader must know of the estimates, or ""."""
        values = {"sequence": self.sequence, "plane": self.plane}
        words = [f"{name} estimated as {values[name]}" for name in self.estimated]
        return f" ({', '.join(words)})" if words else ""


@dataclass(frozen=True, slots=True)
class _Measured:
    tail: float
    bright_depth: float
    middle_depth: float
    classes: tuple[float, float, float]
    overlap: float
    likeness: float


def read_protocol(image: SourceImage, brain: Brain) -> Protocol:
    """Takes sequence, contrast and plane from the record and estimates what it does not say.

    Where the skull was taken off, fluid and tissue tell by themselves; a whole head is told as a source tells it.

    Raises:
        CannotShow: the sequence or the plane is not recorded and the slice does not show clearly which it is.
    """
    measured = _measure(brain)
    estimated = []
    whole = (
        SliceEstimate()
        if brain.stripped
        else estimate_slice(np.clip(np.rint(brain.gray), 0, 255).astype(np.uint8))
    )
    recorded = image.sequence.strip().upper().replace(" ", "")
    sequence = {"T1+C": "T1", "T1C": "T1", "T1W": "T1", "T2W": "T2"}.get(recorded, recorded)
    if sequence not in {"T1", "T2", "FLAIR", "PD"}:
        sequence = _estimate_sequence(measured) if brain.stripped else whole.sequence
        estimated.append("sequence")
    plane = image.plane.strip().lower()
    if plane not in _LENGTH_MM:
        plane = _estimate_plane(brain, measured) if brain.stripped else whole.plane
        estimated.append("plane")
    for what, value in (("sequence", sequence), ("plane", plane)):
        if value == UNKNOWN:
            raise _untold(what)
    contrast = image.contrast.strip().lower()
    enhanced = recorded in {"T1+C", "T1C"} or contrast in _ENHANCED
    either = not enhanced and contrast in {"", UNKNOWN}
    fluid, grey, white = _levels(brain, sequence, measured.classes)
    length = brain.height if plane == "axial" else brain.width
    mm = image.spacing_mm or 0.0
    if not 60.0 < mm * length < 230.0:  # not recorded, or not of the prepared image
        mm = float(np.clip(_LENGTH_MM[plane] / length, 0.12, 0.6))
    given, perhaps = (sequence == "T1" and one for one in (enhanced, either))
    return Protocol(sequence, given, perhaps, plane, tuple(estimated), fluid, grey, white, mm)


def _untold(what: str) -> CannotShow:
    """Neither record nor slice tells it; who knows sequence and plane can say so, for all pictures of a source."""
    return CannotShow(
        f"the {what} is not recorded and cannot be told from this slice; if you know it: "
        "plantain ingest KIND PATH --set sequence=T1 --set plane=axial --out NEW"
    )


def _measure(brain: Brain) -> _Measured:
    size = (brain.gray.shape[1] // STEP, brain.gray.shape[0] // STEP)
    small = cv2.GaussianBlur(cv2.resize(brain.gray, size, interpolation=cv2.INTER_AREA), (0, 0), 1.0)
    inside = brain.inside[::STEP, ::STEP]
    depth = (brain.depth[::STEP, ::STEP] / np.sqrt(float(brain.inside.sum())))[inside]
    values = small[inside].astype(np.float64)
    low, middle, high = np.percentile(values, [3, 50, 97])
    centres = _three_means(values)
    nearest = np.argmin(np.abs(values[:, None] - np.asarray(centres)), axis=1)
    parts = [float(np.median(depth[nearest == k])) if (nearest == k).any() else 0.0 for k in range(3)]
    overlap, likeness = _mirror_likeness(small, inside, int(brain.centre[0] / STEP))
    tail = float(((high - middle) - (middle - low)) / max(high - low, 1.0))
    return _Measured(tail, parts[2], parts[1], centres, overlap, likeness)


def _three_means(values: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    centres = np.percentile(values, [5, 45, 85])
    for _ in range(25):
        nearest = np.argmin(np.abs(values[:, None] - centres), axis=1)
        centres = np.array(
            [values[nearest == k].mean() if (nearest == k).any() else centres[k] for k in range(3)]
        )
    ordered = np.sort(centres)
    return float(ordered[0]), float(ordered[1]), float(ordered[2])


def _mirror_likeness(
    small: npt.NDArray[np.float32], inside: npt.NDArray[np.bool_], middle: int
) -> tuple[float, float]:
    half = min(middle, small.shape[1] - middle)
    left, right = inside[:, middle - half : middle], inside[:, middle : middle + half][:, ::-1]
    calm = cv2.GaussianBlur(small, (0, 0), 4)
    one, other = calm[:, middle - half : middle], calm[:, middle : middle + half][:, ::-1]
    both = left & right
    if both.sum() < 100:
        return 0.0, 0.0
    return float(both.sum() / (left | right).sum()), float(np.corrcoef(one[both], other[both])[0, 1])


def _estimate_sequence(measured: _Measured) -> str:
    """Fluid's brightness by the tail of the histogram, then white against grey by where each lies."""
    fluid, middle, bright = measured.classes
    if measured.tail > 0.3 and bright > 1.6 * middle:
        return "T2"
    deeper = measured.bright_depth - measured.middle_depth
    if measured.tail < 0.1 and fluid < 0.85 * middle:
        if deeper > 0.03:
            return "T1"
        if deeper < -0.005 and fluid < 0.7 * middle:
            return "FLAIR"
    raise _untold("sequence")


def _estimate_plane(brain: Brain, measured: _Measured) -> str:
    if measured.overlap < 0.86 and measured.likeness < 0.7:
        return "sagittal"
    ratio = brain.height / brain.width
    rows = brain.inside.sum(axis=1)
    used = np.flatnonzero(rows)
    foot = float(rows[used[int(0.92 * len(used))]] / rows.max())
    if ratio >= 1.1:
        return "axial"
    if ratio <= 1.0 or foot < 0.3:
        return "coronal"
    return "axial"


def _levels(brain: Brain, sequence: str, classes: tuple[float, float, float]) -> tuple[float, float, float]:
    dark, middle, bright = classes
    tissue = float(np.median(brain.gray[brain.depth > 0.25 * brain.depth.max()]))
    if sequence == "T1":
        # A slice without much CSF spends its darkest class on cortex; fluid is then put where T1 has it.
        return min(dark, 0.62 * middle), middle, max(bright if bright < 1.4 * middle else middle, tissue)
    if sequence == "T2":
        # A class far darker than the deep brain is vessels and bone, not white matter.
        whites = dark > max(0.45 * middle, 0.6 * tissue)
        return max(bright, 1.5 * middle), middle, dark if whites else 0.85 * middle
    if sequence == "FLAIR":
        # Wide sulci make a class of what lies between fluid and tissue.
        white = max(middle, tissue)
        return min(dark, 0.6 * middle), max(bright if bright < 1.4 * white else 1.1 * white, white), white
    return middle, bright, middle
