"""Which column of a person's table tells the file, its labels, its patient and more, by what people call them.

Published tables agree on nothing: `Patient ID`, `patientId`, `subject_id`, `PTID`, `empi_anon`. What is known here is
matched by letters and digits alone, in any case; `--column group="Fall Nr."` names any other. Where several columns
could tell the file, that one does whose cells name most of the files that are there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.pixels.decode import one_line
from plantain.records import InputError
from plantain.records.suggestions import fold, suggest

OF_SLICES = ("sequence", "plane")
"""What a table may tell of brain slices alone."""
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
"""A patient only where files share it: else it numbers the rows."""
_SPLITS = ("split", "subset", "partition")

_IN_PATH = re.compile(r"(?i)(patient|pat|subject|subj|sub|participant)([-_ ][a-z]*\d\w*|\d+)")


@dataclass(frozen=True, slots=True)
class Columns:
    """What a table's columns tell.

    Attributes:
        file, labels, group, split, sequence, plane: names of columns; None where there is none.
        patient: whether the group is a patient by its name, or a person said so; else it may be a study or a lesion.
        unused: columns of which nothing is read.
        marked: columns that are called as labels are, with a 1 in the rows that have them.
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

    def with_one_for_each_label(self, names: Sequence[str]) -> Columns:
        """The same of a table that has a column for each label, with a 1 where it is there."""
        left = tuple(name for name in self.unused if name not in names)
        return replace(self, marked=tuple(names), unused=left)


def candidates(
    header: Sequence[str], asked: Mapping[str, str], path: Path, of_slices: Collection[str] = ()
) -> dict[str, list[str]]:
    """By role, the columns that may tell it, the likeliest first.

    Args:
        header: the table's columns.
        asked: role -> column, as a person said it.
        path: the table, for messages.
        of_slices: which of `OF_SLICES` are asked for; columns of the others tell nothing.

    Raises:
        InputError: a role or column that is not there, or that tells nothing of such pictures; the message suggests
            the nearest.
    """
    roles = [role for role in ROLES if role not in OF_SLICES or role in of_slices]
    for role, column in asked.items():
        if role in OF_SLICES and role not in roles:
            raise InputError(f"--column {role}: nothing is read from it of these pictures")
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
    """Chooses a column for each role, by name and by what the rows hold.

    Args:
        header: all columns.
        may: their candidates, from `candidates`.
        cells: what stands in these, column by column.
        stems: `stem` of the files that are there.
        asked, path: as for `candidates`.

    Raises:
        InputError: no column tells the file.
    """
    # `max` takes the first of equals, which is the likeliest by its name.
    matches = {name: sum(stem(cell) in stems for cell in cells[name]) for name in may["file"]}
    file = max(matches, key=matches.__getitem__, default=None)
    if file is None or (not matches[file] and file not in asked.values() and _is_whose(file)):
        names = one_line(", ".join(header[:20]))
        raise InputError(
            f"{path}: no column names the files; say which does with --column file=NAME; the header says {names}"
        )
    group = next(
        (name for name in may["group"] if "group" in asked or _names_groups(name, file, cells)), None
    )
    used: dict[str, str | None] = {"file": file, "group": group}
    for role in ("labels", "split", "sequence", "plane"):
        used[role] = next((name for name in may[role] if name not in used.values()), None)
    patient = group is not None and ("group" in asked or _is_patient(group))
    unused = tuple(name for name in header if name not in used.values())
    return Columns(
        file,
        used["labels"],
        group,
        used["split"],
        patient,
        unused,
        sequence=used["sequence"],
        plane=used["plane"],
    )


def stem(file: str) -> str:
    """What a file is called, without folders, a picture's ending, and case: as tables of other systems name it."""
    name = file.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return re.sub(
        r"(?i)\.(jpe?g?|png|bmp|tiff?|webp|gif|hei[cf]|avif|jp2|dcm|dicom|nii(\.gz)?)$", "", name
    ).casefold()


def spelling(file: str) -> tuple[str, ...]:
    """A path by folders and `stem`, in lower case."""
    return (*file.casefold().split("/")[:-1], stem(file))


def patient_in_path(file: str) -> str | None:
    """The patient by whom a folder is called, as in CheXpert's `train/patient00001/study1/view1_frontal.jpg`."""
    folders = file.replace("\\", "/").split("/")[:-1]
    return next((name for name in folders if _IN_PATH.fullmatch(name)), None)


def _names_groups(name: str, file: str, cells: Mapping[str, Sequence[str]]) -> bool:
    """Whether a column tells which files belong together; one that may number the rows must say something twice."""
    if name == file:
        return _is_patient(name)
    if fold(name) not in _WEAK:
        return True
    pairs = set(zip(cells[name], cells[file], strict=True))
    return len({group for group, _ in pairs}) < len(pairs)


def _is_patient(name: str) -> bool:
    return _PATIENT.fullmatch(fold(name)) is not None or fold(name) in _PATIENTS


def _is_whose(name: str) -> bool:
    """Whether a column tells a patient or study; where each has one file, the file may be called so."""
    return _is_patient(name) or fold(name) in _STUDIES


def _named(header: Iterable[str], names: Sequence[str]) -> list[str]:
    """Columns that are called exactly so, as this page of the manual writes them."""
    return [name for name in header if name in names]


def _listed(header: Iterable[str], names: Sequence[str]) -> list[str]:
    """Columns of that list, in its order."""
    return sorted((name for name in header if fold(name) in names), key=lambda name: names.index(fold(name)))
