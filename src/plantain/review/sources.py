"""What a study can be made from, as cases with their pictures: runs and lists of pairs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plantain.files.opening import read_inside, read_regular
from plantain.journal import JournalReader
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import decode, decode_untrusted
from plantain.records import InputError, Licence, SourceImage, TaskKind, TaskState
from plantain.review.study import ORIGINAL

Read = Callable[[], Pixels]


@dataclass(frozen=True)
class Material:
    """One case before it is drawn. Pictures are read only if it is.

    Attributes:
        source: what links answers back: a task's id, or a sample's.
        image: id of the original, where cases of several models share one.
        pictures: ORIGINAL and models -> how to read the picture.
    """

    source: str
    image: str
    stratum: str
    cluster: str
    modality: str
    finding: str
    direction: str
    instruction: str
    pictures: Mapping[str, Read]
    description: str = ""
    truth: str = ""
    spacing_mm: float | None = None
    credentialed: bool = False
    proposals: tuple[Mask, ...] = field(default=())


def materials(source: Path) -> list[Material]:
    """The cases of a build's run, or of a CSV of pairs. Raises InputError for anything else."""
    if source.is_file():
        return list(_of_pairs(source))
    return list(_of_run(source))


def joined(parts: list[list[Material]]) -> list[Material]:
    """Cases of several sources: what is the same task in several has all their models."""
    if len(parts) == 1:
        return parts[0]
    whole: dict[str, Material] = {}
    for number, part in enumerate(parts):
        for one in part:
            known = whole.get(one.source)
            if known is None:
                whole[one.source] = one
                continue
            more = {
                (key if key not in known.pictures else f"{key} ({number + 1})"): read
                for key, read in one.pictures.items()
                if key != ORIGINAL
            }
            whole[one.source] = Material(**{**vars(known), "pictures": {**known.pictures, **more}})
    return list(whole.values())


def restricted(image: SourceImage) -> bool:
    """Whether pictures of it go only to readers who confirmed the agreement."""
    return image.licence not in (Licence.OPEN, Licence.ATTRIBUTION)


def blob_reader(run: Path, digest: str) -> Read:
    def read() -> Pixels:
        with JournalReader.open(run) as reader:
            return decode(reader.read_blob(digest))

    return read


def _of_run(run: Path) -> Iterator[Material]:
    """The last attempt with a picture of every task, successful or not."""
    with JournalReader.open(run) as reader:
        told = reader.header.frozen.get("models")
        editor = str(told.get("editor")) if isinstance(told, dict) and told.get("editor") else "editor"
        images = {image.id: image for image in reader.images()}
        for row in reader.tasks():
            if row.task.kind is not TaskKind.EDIT or row.state not in (TaskState.SUCCESS, TaskState.FAILED):
                continue
            made = [attempt for attempt in reader.attempts(row.id, row.generation) if attempt.edited]
            image = images[row.task.image_id]
            if (
                not made
                or not reader.has_blob(image.prepared_sha256)
                or not reader.has_blob(made[-1].edited or "")
            ):
                continue
            yield Material(
                source=row.id,
                image=image.id,
                stratum=f"{row.task.modality} {row.task.direction.value} {row.task.finding}",
                cluster=image.group or image.id,
                modality=row.task.modality,
                finding=row.task.finding,
                direction=row.task.direction.value,
                instruction=made[-1].instruction,
                pictures={
                    ORIGINAL: blob_reader(run, image.prepared_sha256),
                    editor: blob_reader(run, made[-1].edited or ""),
                },
                truth=image.labels[0] if len(image.labels) == 1 else "",
                spacing_mm=image.spacing_mm,
                credentialed=restricted(image),
            )


PAIR_COLUMNS = ("original", "edited")


def _of_pairs(path: Path) -> Iterator[Material]:
    """A CSV of `original,edited` and, where known, `model,instruction,finding,modality,case,group,licence`."""
    try:
        text = read_regular(path, str(path)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if missing := [name for name in PAIR_COLUMNS if name not in (reader.fieldnames or ())]:
        raise InputError(
            f"{path}: no column {missing[0]!r}; a list of pairs has at least original and edited"
        )
    cases: dict[str, dict[str, str]] = {}
    edits: dict[str, dict[str, Read]] = {}
    root = path.parent
    for line, row in enumerate(reader, 2):
        key = row.get("case") or row["original"]
        if row["original"] != cases.setdefault(key, row)["original"]:
            raise InputError(f"{path}: line {line}: case {key!r} has two originals")
        model = row.get("model") or "edited"
        if model in edits.setdefault(key, {}) or model == ORIGINAL:
            raise InputError(f"{path}: line {line}: model {model!r} stands twice for case {key!r}")
        edits[key][model] = _file(root, row["edited"])
    for key, row in cases.items():
        yield Material(
            source=key,
            image=row["original"],
            stratum=row.get("finding") or "all",
            cluster=row.get("group") or row["original"],
            modality=row.get("modality") or "",
            finding=row.get("finding") or "",
            direction=row.get("direction") or "",
            instruction=row.get("instruction") or "",
            pictures={ORIGINAL: _file(root, row["original"]), **edits[key]},
            credentialed=(row.get("licence") or "unknown")
            not in (Licence.OPEN.value, Licence.ATTRIBUTION.value),
        )


def _file(root: Path, name: str) -> Read:
    return lambda: decode_untrusted(read_inside(root, root / name), name)
