"""Which column of a table names the file, its labels, its patient and more, by the names that people use.

Published tables agree on nothing: `Patient ID`, `patientId`, `subject_id`, `PTID`, `empi_anon`. Known names are matched
by letters and digits alone, in any case; `--column group="Fall Nr."` names any other. Of several columns that could
name the file, the one whose cells name most of the files wins.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plantain.pixels.decode import one_line
from plantain.records import InputError
from plantain.records.messages import fold, suggest

OF_SLICES = ("sequence", "plane")
"""Roles for brain slices alone."""
ROLES = ("file", "labels", "group", "split", *OF_SLICES)


def _list(words: str) -> list[str]:
    return re.findall(r"\w+", words)


_FILES = _list(
    "filename filepath file path imagepath imagefilepath imagefile imagefilename imageindex imagename imgname imgpath "
    "image img picture imageid imgid imagedataid dicomid dicompath anondicompath pathtoimage pngpath jpgpath idcode "
    "isicid filestem fname sopinstanceuid sopuid mriid challengeid filelocation basename datei dateiname bild "
    "fichier archivo imagen uid id studyinstanceuid"
)
_LABELS = _list(
    "label labels findinglabels findinglabel findings finding diagnosis diagnoses dx disease diseases "
    "pathology pathologies class classes classname category condition befund diagnose "
    "diagnostico diagnostic"
)
_PATIENTS = _list(
    "patient patients subject subjects participant participants person case ptid pid mrn rid eid usubjid empi empianon "
    "ixiid caseid casenumber caseno paciente idpaciente patientenid patientennummer idpatient numeropatient "
    "患者 患者id 患者编号 病人 病人id 病人编号 환자id 환자번호 пациент group groupid groups"
)
_PATIENT = re.compile(
    r".*(patient|patienten|subject|subj|participant|person|proband|paciente)s?"
    r"(id|no|nr|num|number|nummer|code|key|identifier|uid|hash|pseudonym|anon|anonymized|deid)"
)
_STUDIES = _list(
    "studyid studyinstanceuid study examid examination exam accession accessionnumber accanon lesionid lesion"
)
_WEAK = ("id", "recordid", "name", "uid")
"""A group only if files share it: otherwise it numbers the rows."""
_SPLITS = ("split", "subset", "partition")

_NO_PATIENT = re.compile(
    "anon[a-z]*|de|deid[a-z]*|identified|remov[a-z]*|redact[a-z]*|delet[a-z]*|mask[a-z]*|hidden|blank|confidential|"
    "empty|unknown|undefined|unspecified|no|not|none|null|nil|nan|na|n/a|available|patient|subject|test|id|name|0+|x+"
)
"""Words of a PatientID that does not identify a patient."""

_IN_PATH = re.compile(r"(?i)(patient|pat|subject|subj|sub|participant)([-_ ][a-z]*\d\w*|\d+)")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table by role.

    Attributes:
        file, labels, group, split, sequence, plane: names of columns; None where there is none.
        patient: True if the group is a patient, by the column's name or by --column; else it may be a study or lesion.
        unused: columns that are not read.
        marked: columns named like labels, with a 1 in the rows that have the label.
    """

    file: str
    labels: str | None
    group: str | None
    split: str | None
    patient: bool
    unused: tuple[str, ...]
    marked: tuple[str, ...] = ()
    sequence: str | None = None
    plane: str | None = None


def candidates(
    header: Sequence[str], asked: Mapping[str, str], path: Path, slices: bool
) -> dict[str, list[str]]:
    """Return, for each role, the columns of a table that may have it, the likeliest first.

    Args:
        header: the table's columns.
        asked: role -> column, from --column.
        path: the table, for messages.
        slices: True if the roles in `OF_SLICES` are read.

    Raises:
        InputError: no such role or column, or a role that these images do not have.
    """
    roles = ROLES if slices else ROLES[: -len(OF_SLICES)]
    for role, column in asked.items():
        if role in OF_SLICES and role not in roles:
            raise InputError(f"--column {role}: not read for these images")
        if role not in roles:
            raise InputError(f"--column {role}: no such role; {suggest(role, roles)}")
        if column not in header:
            raise InputError(
                f"--column {role}={column!r}: {path} has no such column; {suggest(column, header)}"
            )
    free = [name for name in header if name not in asked.values()]
    found = {
        "file": [*_named(free, ("file",)), *_listed(free, _FILES), *filter(_is_whose, free)],
        "labels": [*_named(free, ("labels",)), *_listed(free, _LABELS)],
        "group": [
            *_named(free, ("group",)),
            *(name for name in free if _PATIENT.fullmatch(fold(name))),
            *_listed(free, _PATIENTS),
            *_listed(free, (*_STUDIES, *_WEAK)),
        ],
        "split": [*_named(free, ("split",)), *_listed(free, _SPLITS)],
        **{role: _named(free, (role,)) if role in roles else [] for role in OF_SLICES},
    }
    return {role: [asked[role]] if role in asked else list(dict.fromkeys(found[role])) for role in ROLES}


def choose(
    header: Sequence[str],
    may: Mapping[str, Sequence[str]],
    cells: Mapping[str, Sequence[str]],
    stems: Collection[str],
    asked: Mapping[str, str],
    path: Path,
) -> Columns:
    """Choose a table's column for each role, by name and by content.

    Args:
        header: all columns.
        may: the result of `candidates`.
        cells: content of these columns.
        stems: `stem` of the source's files.
        asked, path: as for `candidates`.

    Raises:
        InputError: no column names the files.
    """
    # `max` takes the first of equals, which is the likeliest by its name.
    matches = {name: sum(stem(cell) in stems for cell in cells[name]) for name in may["file"]}
    file = max(matches, key=matches.__getitem__, default=None)
    if file is None or (not matches[file] and file not in asked.values() and _is_whose(file)):
        names = one_line(", ".join(header[:20]))
        raise InputError(
            f"{path}: no column names the files; name it with --column file=NAME; the header has {names}"
        )
    group = next(
        (name for name in may["group"] if "group" in asked or _names_groups(name, file, cells)), None
    )
    used: dict[str, Any] = {"file": file, "group": group}
    for role in ("labels", "split", *OF_SLICES):
        used[role] = next((name for name in may[role] if name not in used.values()), None)
    patient = group is not None and ("group" in asked or _is_patient(group))
    unused = tuple(name for name in header if name not in used.values())
    return Columns(patient=patient, unused=unused, **used)


def stem(file: str) -> str:
    """Return a file's name in lower case, without folders and the ending of an image format."""
    name = file.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return re.sub(
        r"(?i)\.(jpe?g?|png|bmp|tiff?|webp|gif|hei[cf]|avif|jp2|dcm|dicom|nii(\.gz)?)$", "", name
    ).casefold()


def spelling(file: str) -> tuple[str, ...]:
    """Split a path into its folders and its `stem`, in lower case."""
    return (*file.casefold().split("/")[:-1], stem(file))


def patient_in_path(file: str) -> str | None:
    """Return the first folder in a path that names a patient, e.g. "patient00001" in CheXpert; None if none does."""
    folders = file.replace("\\", "/").split("/")[:-1]
    return next((name for name in folders if _IN_PATH.fullmatch(name)), None)


def is_placeholder(identifier: str) -> bool:
    """Return True if an identifier is empty or a placeholder such as zeros or words left by de-identification."""
    return all(_NO_PATIENT.fullmatch(word) for word in re.findall(r"(?:[^\W\d_]|/)+|\d+", identifier.lower()))


def _names_groups(name: str, file: str, cells: Mapping[str, Sequence[str]]) -> bool:
    """Return True if a column groups files; one that may number the rows must have a value twice."""
    if name == file:
        return _is_patient(name)
    if fold(name) not in _WEAK:
        return True
    pairs = set(zip(cells[name], cells[file], strict=True))
    return len({group for group, _ in pairs}) < len(pairs)


def _is_patient(name: str) -> bool:
    return _PATIENT.fullmatch(fold(name)) is not None or fold(name) in _PATIENTS


def _is_whose(name: str) -> bool:
    """Return True if a column names a patient or study; if each has one file, it may name the file."""
    return _is_patient(name) or fold(name) in _STUDIES


def _named(header: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return the columns with exactly these names, which are ours."""
    return [name for name in header if name in names]


def _listed(header: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return the columns of a list, in its order."""
    return sorted((name for name in header if fold(name) in names), key=lambda name: names.index(fold(name)))
