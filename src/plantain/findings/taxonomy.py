"""The taxonomy: which findings exist for which modality, and which images can show them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from plantain.files.opening import read_toml_table
from plantain.findings.places import SIDES
from plantain.records import Differential, Finding, InputError, SourceImage, Stroke, Visibility
from plantain.records.messages import fold, suggest

BUILT_IN = tuple(Path(__file__).with_name(f"{name}.toml") for name in ("chest_xray", "brain_mri", "fundus"))
POLARITIES = ("brighter", "darker", "mixed")
SUPPORTS = ("local", "diffuse", "warp")
SHAPES = ("opacity", "mass", "band", "line", "spots", "crescent", "darkening", "border", "haze")


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """The findings of all modalities, in the order of their files.

    Attributes:
        findings: every finding, including the normal class of each modality, which cannot be added or removed.
        titles: display name by modality.
    """

    findings: tuple[Finding, ...]
    titles: dict[str, str]

    @property
    def modalities(self) -> tuple[str, ...]:
        """The names of the modalities, e.g. "chest_xray", in the order of their files."""
        return tuple(dict.fromkeys(finding.modality for finding in self.findings))

    def of(self, modality: str) -> tuple[Finding, ...]:
        """Return every finding of a modality, its normal class included. InputError if the modality is unknown."""
        if modality not in self.titles:
            raise InputError(f"modality {modality!r}: unknown; {suggest(modality, list(self.titles))}")
        return tuple(finding for finding in self.findings if finding.modality == modality)

    def targets(self, modality: str, *, optional: bool = False) -> tuple[Finding, ...]:
        """Return the findings that can be added or removed. Raise InputError if the modality is unknown.

        `optional` adds the findings that a recipe uses only if it names them.
        """
        return tuple(f for f in self.of(modality) if not f.normal and (optional or not f.optional))

    def normal(self, modality: str) -> Finding:
        """Return the normal class of a modality: images without a finding. InputError if the modality is unknown."""
        return next(finding for finding in self.of(modality) if finding.normal)

    def get(self, modality: str, name: str) -> Finding:
        """Return the finding of exactly this name. InputError, with the nearest one, if it or `modality` is unknown."""
        for finding in self.of(modality):
            if finding.name == name:
                return finding
        names = [finding.name for finding in self.of(modality)]
        near = self.match_label(modality, name)
        raise InputError(
            f"finding {name!r}: {modality} has no such finding; {suggest(name, names, near.name if near else None)}"
        )

    def match_label(self, modality: str, text: str) -> Finding | None:
        """Return the finding that a label names, ignoring case, spaces and punctuation.

        Names win over titles, titles over labels of sources, labels over synonyms. Return None if `text` names no
        finding, or several. Raise InputError if the modality is unknown.
        """
        wanted = fold(text)
        if not wanted:
            return None
        found = self.of(modality)
        for words in (
            {f.name: (f.name,) for f in found},
            {f.name: (f.title,) for f in found},
            {f.name: tuple(f.labels.values()) for f in found},
            {f.name: f.synonyms for f in found},
        ):
            matches = [f for f in found if any(fold(word) == wanted for word in words[f.name])]
            if matches:
                return matches[0] if len(matches) == 1 else None
        return None


@cache
def _built_in() -> Taxonomy:
    taxonomy = Taxonomy((), {})
    for path in BUILT_IN:
        taxonomy = _join(taxonomy, path)
    return taxonomy


def load_taxonomy(extra: Sequence[Path] = ()) -> Taxonomy:
    """Load the built-in findings, followed by a user's.

    Args:
        extra: TOML files that add findings to a modality, or a new modality, in the format of the built-in files. An
            existing finding cannot be redefined; a new modality must contain its normal class.

    Raises:
        InputError: a file cannot be read, or a field is missing, unknown or outside its vocabulary.
    """
    taxonomy = _built_in()
    for path in extra:
        taxonomy = _join(taxonomy, Path(path))
    return taxonomy


def _join(taxonomy: Taxonomy, path: Path) -> Taxonomy:
    modality, title, added = _read(path)
    known = {(f.modality, fold(f.name)): f.name for f in taxonomy.findings}
    for index, finding in enumerate(added):
        key = (modality, fold(finding.name))
        if key in known:
            raise InputError(
                f"{path}: finding[{index}].name: {finding.name!r} is already defined for {modality}"
                f" (as {known[key]!r}); a finding is never redefined, choose another name"
            )
        known[key] = finding.name
    findings = (*taxonomy.findings, *added)
    mine = [finding for finding in findings if finding.modality == modality]
    normals = [finding.name for finding in mine if finding.normal]
    if len(normals) != 1:
        given = f"{len(normals)} ({', '.join(normals)})" if normals else "none"
        raise InputError(
            f"{path}: normal: {modality} needs exactly one finding with normal = true, not {given}"
        )
    names = [finding.name for finding in mine]
    for finding in added:
        for implied in finding.implies:
            if implied not in names:
                raise InputError(
                    f"{path}: finding {finding.name!r}: implies: {implied!r} is not a finding of {modality};"
                    f" {suggest(implied, names)}"
                )
    titles = dict(taxonomy.titles)
    titles.setdefault(modality, title or modality)
    return Taxonomy(findings, titles)


def _read(path: Path) -> tuple[str, str, list[Finding]]:
    table = read_toml_table(path)
    for key in table:
        if key not in ("modality", "title", "finding"):
            raise InputError(f"{path}: {key}: unknown key; {suggest(key, ('modality', 'title', 'finding'))}")
    modality = table.get("modality")
    if not isinstance(modality, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", modality):
        raise InputError(f'{path}: modality: a name in lower case is needed, e.g. "chest_xray"')
    title = table.get("title", "")
    if not isinstance(title, str):
        raise InputError(f"{path}: title: must be text")
    rows = table.get("finding")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: finding: at least one [[finding]] table is needed")
    return modality, title, [_finding(path, index, modality, row) for index, row in enumerate(rows)]


_ADAPTER = TypeAdapter(Finding)


def _finding(path: Path, index: int, modality: str, row: dict[str, object]) -> Finding:
    where = f"{path}: finding[{index}]"
    if isinstance(row.get("name"), str) and row["name"]:
        where = f"{path}: finding {row['name']!r}"
    if row.get("modality", modality) != modality:
        raise InputError(f"{where}: modality: {row['modality']!r} differs from the file's {modality!r}")
    try:
        finding = _ADAPTER.validate_python({**row, "modality": modality})
    except ValidationError as error:
        raise InputError(f"{where}: {_first_fault(error)}") from None
    _check_words(where, finding)
    return finding


_TABLES: dict[str, tuple[str, ...]] = {
    "": tuple(f.name for f in fields(Finding)),
    "visibility": tuple(f.name for f in fields(Visibility)),
    "zone_visibility": tuple(f.name for f in fields(Visibility)),
    "differentials": tuple(f.name for f in fields(Differential)),
    "draw": tuple(f.name for f in fields(Stroke)),
}


def _first_fault(error: ValidationError) -> str:
    """The fault to report: a misspelt key before the field that is missing because of it."""
    faults = error.errors(include_url=False)
    unknown = [
        fault for fault in faults if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument")
    ]
    fault = (unknown or faults)[0]
    parts = [str(part) for part in fault["loc"]]
    where = ".".join(parts)
    if unknown:
        allowed = _TABLES["" if len(parts) == 1 else parts[0]]
        return f"{where}: unknown key; {suggest(parts[-1], allowed)}"
    if fault["type"] in ("missing", "missing_argument"):
        return f"{where}: is missing"
    return f"{where}: {fault['msg'][:1].lower()}{fault['msg'][1:]}"


def _check_words(where: str, finding: Finding) -> None:
    for name in ("name", "title", "anatomy", "source"):
        if not getattr(finding, name).strip():
            raise InputError(f"{where}: {name}: must not be empty")
    if not re.fullmatch(r"[^\W_][\w &'()+-]*", finding.name):
        raise InputError(f"{where}: name: letters, digits, spaces and & ' ( ) + - only; it names folders")
    for side in finding.sides:
        if side not in SIDES:
            raise InputError(f"{where}: sides: {side!r}; {suggest(side, SIDES)}")
    for zone in finding.zones:
        if not re.fullmatch(r"[a-z][a-z -]*", zone):
            raise InputError(f"{where}: zones: {zone!r}: lower-case letters, spaces and hyphens only")
    for word in finding.synonyms:
        if not fold(word):
            raise InputError(f"{where}: synonyms: {word!r} holds no letters")
    for zone in finding.zone_visibility:
        if zone not in finding.zones:
            raise InputError(
                f"{where}: zone_visibility: {zone!r} is not in zones; {suggest(zone, finding.zones)}"
            )
    if finding.polarity not in POLARITIES:
        raise InputError(f"{where}: polarity: {finding.polarity!r}; {suggest(finding.polarity, POLARITIES)}")
    if finding.support not in SUPPORTS:
        raise InputError(f"{where}: support: {finding.support!r}; {suggest(finding.support, SUPPORTS)}")
    for stroke in finding.draw:
        if stroke.shape not in SHAPES:
            raise InputError(f"{where}: draw: shape: {stroke.shape!r}; {suggest(stroke.shape, SHAPES)}")
        if len(stroke.level) not in (1, 3):
            raise InputError(f"{where}: draw: level: one grey level, or three of red, green and blue")
    if not finding.normal and not (finding.signs and finding.restores):
        raise InputError(f"{where}: signs and restores: each needs at least one line")


def why_not_shown(finding: Finding, image: SourceImage) -> str:
    """Return the reason why a finding cannot be shown on an image, as one line; "" if it can."""
    if finding.modality != image.modality:
        return f"{finding.name} belongs to {finding.modality}, the image is {image.modality}"
    return _obstacle(finding.visibility, image)


def out_of_view(finding: Finding, image: SourceImage) -> bool:
    """Return True if an image's view is known not to show the finding's anatomy."""
    return _is_one_of(image.view, finding.visibility.never)


def zones_on(finding: Finding, image: SourceImage) -> tuple[str, ...]:
    """Return the finding's zones that can be shown on this image, in their order."""
    never = Visibility()
    return tuple(
        zone for zone in finding.zones if not _obstacle(finding.zone_visibility.get(zone, never), image)
    )


def sides_on(finding: Finding, image: SourceImage) -> tuple[str, ...]:
    """Return the finding's sides that an instruction may name on this image.

    Only the midline remains on a sagittal slice, on a fundus photograph (one eye) and where laterality is not recorded.
    """
    if image.plane == "sagittal" or image.modality == "fundus" or image.laterality == "not recorded":
        return tuple(side for side in finding.sides if side == "midline")
    return finding.sides


MIRRORED = "mirrored"
"""Laterality of an image that is known to be mirrored."""


def shown_sides(image: SourceImage) -> str:
    """Return a sentence that locates the patient's sides in the image.

    "" for an image without a left and right half (fundus, sagittal slice, lateral film) and for a user's modality.
    """
    if (
        image.modality not in ("chest_xray", "brain_mri")
        or image.plane == "sagittal"
        or image.view == "lateral"
    ):
        return ""
    if image.laterality == "not recorded":
        return (
            "Which half of this image is the patient's left is not recorded: left and right are those of the image "
            "as shown."
        )
    if image.laterality == MIRRORED:
        return "This image is shown mirrored: the patient's left is on its left, the patient's right on its right."
    return "The patient's left is on the right of the image as shown, and the patient's right on its left."


_SIDE = re.compile(r"\b(left|right)\b", re.IGNORECASE)


def sides_to_name(instruction: str, image: SourceImage) -> str:
    """Return the sentence about sides that an editor needs with this instruction; "" if it names no side."""
    return shown_sides(image) if _SIDE.search(instruction) else ""


def sequence_of(image: SourceImage) -> str:
    """Return the sequence as visibility conditions name it: "T1" with contrast given is "T1+C"."""
    if image.sequence == "T1" and image.contrast.casefold() in ("yes", "true", "gadolinium", "post", "c"):
        return "T1+C"
    return image.sequence


def _obstacle(condition: Visibility, image: SourceImage) -> str:
    note = f" ({condition.note})" if condition.note else ""
    if _is_one_of(image.view, condition.never):
        return f"view is {image.view}{note}"
    for what, allowed, known in (
        ("view", condition.views, image.view),
        ("projection", condition.projections, image.projection),
        ("position", condition.positions, image.position),
        ("sequence", condition.sequences, sequence_of(image)),
        ("plane", condition.planes, image.plane),
    ):
        if allowed and not _is_one_of(known, allowed):
            return f"{what} is {known}, it needs {' or '.join(allowed)}{note}"
    return ""


def _is_one_of(known: str, names: tuple[str, ...]) -> bool:
    return known.casefold() in {name.casefold() for name in names}


_PREFIX = re.compile(r"^([A-Za-z0-9+, -]{1,60}?): (.+)$", re.DOTALL)
_LATE = "late"
_POSITIONS = ("erect", "supine")
_SEQUENCES = {"T1": "T1", "T1 with contrast": "T1+C", "T2": "T2", "FLAIR": "FLAIR", "PD": "PD"}


def lines_on(
    lines: Sequence[str], zones: Sequence[str], image: SourceImage, zone: str | None
) -> tuple[str, ...]:
    """Select the signs that apply to an image and zone, without the conditions at their start.

    A line may start with positions ("erect: "), sequences ("T2 and FLAIR: ", "T1 with contrast: "), zones of the
    finding ("upper, mid and lower: "), or "late: " for advanced forms, which no edit asks for. An unknown position
    counts as erect, as most frontal films are; an unknown sequence matches no condition; without a zone the lines of
    every zone apply. Any other text before a colon is text.

    Args:
        lines: signs or secondary signs of a finding.
        zones: all zones of that finding.
    """
    held = []
    for line in lines:
        match = _PREFIX.match(line)
        conditions = re.split(r", | and ", match.group(1)) if match else []
        known = all(c == _LATE or c in _POSITIONS or c in _SEQUENCES or c in zones for c in conditions)
        if match is None or not known:
            held.append(line)
        elif any(_holds(condition, image, zone) for condition in conditions):
            held.append(match.group(2))
    return tuple(held)


def _holds(condition: str, image: SourceImage, zone: str | None) -> bool:
    if condition == _LATE:
        return False
    if condition in _POSITIONS:
        return condition == (image.position if image.position in _POSITIONS else "erect")
    if condition in _SEQUENCES:
        return _SEQUENCES[condition] == sequence_of(image)
    return zone is None or condition == zone
