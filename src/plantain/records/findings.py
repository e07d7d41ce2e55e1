"""A finding that edits add or remove, the views that show it, and how the offline models draw it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

FORBID_UNKNOWN: dict[str, Any] = {"extra": "forbid", "strict": False}


@dataclass(frozen=True, slots=True)
class Differential:
    """A similar finding: its `name`, and `how` to distinguish it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_UNKNOWN

    name: str
    how: str


@dataclass(frozen=True, slots=True)
class Visibility:
    """The views, positions and sequences on which a finding can be seen. An empty tuple sets no condition.

    Attributes:
        views: e.g. ("frontal",); "unknown" must be listed to be allowed.
        projections: e.g. ("PA", "AP").
        positions: e.g. ("erect", "supine").
        sequences: e.g. ("T1", "T1+C", "T2", "FLAIR", "PD").
        planes: e.g. ("axial", "coronal", "sagittal").
        note: the condition in words, where no field expresses it (slice level).
        never: views that do not show its place, e.g. ("without sella",): it cannot be added there, and no such task is
            planned.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_UNKNOWN

    views: tuple[str, ...] = ()
    projections: tuple[str, ...] = ()
    positions: tuple[str, ...] = ()
    sequences: tuple[str, ...] = ()
    planes: tuple[str, ...] = ()
    note: str = ""
    never: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stroke:
    """One step in which the offline editor draws a finding, and the change that the offline judge expects.

    Attributes:
        shape: "opacity", "mass", "band", "line", "spots", "crescent", "darkening", "border" (moved) or "haze".
        level: grey levels to add, one value or (red, green, blue).
        size: smallest and largest radius, length or displacement, in thorax widths, brain widths or disc diameters; of
            a haze the share of contrast that it removes.
        at: the place, by its name in the anatomy map; "" for the zone of the instruction.
        on: zones and sequences ("T1+C") on which this step is drawn; empty for all.
        count, spread: how many spots, and how far from their middle, in the unit of `size`.
        oval: length over width; 0 for a random value.
        hides: share of the contrast of the structure under it that disappears, 0 to 1.
        based: True if it has a broad base on the organ's border.
        towards: direction of a crescent on its structure: lateral (or temporal) and down.
        soft: width of a crescent's inner border in pixels.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_UNKNOWN

    shape: str
    level: tuple[float, ...]
    size: tuple[float, float]
    at: str = ""
    on: tuple[str, ...] = ()
    count: int = 0
    spread: float = 0.0
    oval: float = 0.0
    hides: float = 0.3
    based: bool = False
    towards: tuple[float, float] = (0.0, 0.0)
    soft: float = 12.0

    @property
    def meniscus(self) -> bool:
        """True if the step draws a meniscus, the crescent that free fluid forms: it faces down."""
        return self.shape == "crescent" and self.towards[1] > abs(self.towards[0])


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding that can be added to or removed from an image of one modality.

    Attributes:
        name: the label used in recipes, folders and releases, e.g. "Pleural Effusion".
        modality: e.g. "chest_xray", "brain_mri", "fundus".
        title: how the finding is named in a sentence, e.g. "pleural effusion".
        normal: True for the class that means "none of the others" (No Finding, notumor, normal);
            it is a source for `add` and is never a target.
        anatomy: the structure that contains it.
        sides: allowed lateralities out of "left", "right", "bilateral", "midline"; patient's sides.
        zones: allowed places inside the anatomy, in plain words ("apical", "upper", "macula").
        visibility: on which views, positions, sequences, planes it can be shown.
        signs: signs that must be visible.
        secondary_signs: signs that must accompany it; each belongs to the target region, not to collateral change.
        polarity: "brighter", "darker" or "mixed" against the tissue that it replaces.
        support: "local", "diffuse" (whole field) or "warp" (moves borders).
        implies: names of findings that this one entails in the label (Pneumonia: Lung Opacity).
        differentials: similar findings, each with a distinguishing sign.
        restores: anatomy that a removal must restore.
        limits: facts about the finding that an image cannot show or an editor cannot know.
        labels: the finding's label in each source, e.g. {"odir-5k": "D"}.
        source: glossary, guideline or textbook, with the statements that were checked.
        synonyms: other words for it, lower case; shared ones ("tumour") are settled by the rest of the sentence.
        optional: True if only a recipe that names it uses it; it is not among the paper's 23.
        zone_visibility: zones that can only be shown under further conditions, e.g. a supine film.
        draw: how the offline editor draws it; empty where it cannot.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_UNKNOWN

    name: str
    modality: str
    title: str
    anatomy: str
    source: str
    normal: bool = False
    sides: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    visibility: Visibility = field(default_factory=Visibility)
    signs: tuple[str, ...] = ()
    secondary_signs: tuple[str, ...] = ()
    polarity: str = "mixed"
    support: str = "local"
    implies: tuple[str, ...] = ()
    differentials: tuple[Differential, ...] = ()
    restores: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    synonyms: tuple[str, ...] = ()
    optional: bool = False
    zone_visibility: dict[str, Visibility] = field(default_factory=dict)
    draw: tuple[Stroke, ...] = ()
