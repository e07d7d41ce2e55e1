"""What a study can be made from, as cases with their pictures: runs and lists of pairs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from plantain.files.opening import MAX_FILE_BYTES, read_inside, read_regular
from plantain.files.system_files import files_like
from plantain.files.tables import read_table
from plantain.journal import JournalReader
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import decode, decode_untrusted
from plantain.pixels.wide import WideOriginal, read_wide
from plantain.records import Geometry, InputError, Licence, SourceImage, TaskKind, TaskState
from plantain.review.study import ORIGINAL

Read = Callable[[], Pixels]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The file that an original was prepared from: its hash, the frame, and how it was prepared."""

    sha256: str
    frame: int
    geometry: Geometry


@dataclass(frozen=True)
class Material:
    """One case before it is drawn. Pictures are read only if it is.

    Attributes:
        source: what links answers back: a task's id, or a sample's.
        image: id of the original, where cases of several models share one.
        pictures: ORIGINAL and models -> how to read the picture.
        file: that the original was prepared from, where it is known.
        wide: with the prepared original, all grey levels of that file; None where it has no more than 256.
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
    file: SourceFile | None = None
    wide: Callable[[Pixels], WideOriginal | None] | None = None


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


def with_originals(found: Sequence[Material], folder: Path) -> list[Material]:
    """The same cases; those whose original's own file lies in a folder, found by its hash, know its grey levels.

    Raises:
        InputError: no such folder, or none of the files in it.
    """
    if not folder.is_dir():
        raise InputError(f"--originals {folder}: no such folder")
    wanted = {one.file.sha256 for one in found if one.file is not None}
    files: dict[str, Path] = {}
    for path in files_like(folder, "**/*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_FILE_BYTES:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest in wanted:
                files[digest] = path
    if not files:
        raise InputError(
            f"--originals {folder}: holds none of the files that these originals were prepared from"
        )

    def wide(path: Path, file: SourceFile) -> Callable[[Pixels], WideOriginal | None]:
        return lambda prepared: read_wide(
            read_regular(path, str(path)), path.name, file.frame, file.geometry, prepared
        )

    return [
        replace(one, wide=wide(files[one.file.sha256], one.file))
        if one.file and one.file.sha256 in files
        else one
        for one in found
    ]


def restricted(image: SourceImage) -> bool:
    """Whether pictures of it go only to readers who confirmed the agreement."""
    return image.licence not in (Licence.OPEN, Licence.ATTRIBUTION)


def blob_reader(run: Path, digest: str) -> Read:
    def read() -> Pixels:
        with JournalReader.open(run) as reader:
            return decode(reader.read_blob(digest))

    return read


def editor_of(reader: JournalReader) -> str:
    """Under what name a study knows the edits of a run."""
    models = reader.header.frozen.get("models")
    return str(models.get("editor")) if isinstance(models, dict) and models.get("editor") else "editor"


def _of_run(run: Path) -> Iterator[Material]:
    """The last attempt with a picture of every task, successful or not."""
    with JournalReader.open(run) as reader:
        editor = editor_of(reader)
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
                file=SourceFile(image.source_sha256, image.frame, image.geometry),
            )


PAIR_COLUMNS = ("original", "edited")


def _of_pairs(path: Path) -> Iterator[Material]:
    """A CSV of `original,edited` and, where known, `model,instruction,finding,modality,case,group,licence`."""
    cases: dict[str, dict[str, str]] = {}
    edits: dict[str, dict[str, Read]] = {}
    root = path.parent
    for line, row, _ in read_table(path).require(*PAIR_COLUMNS).whole_rows():
        if empty := [name for name in PAIR_COLUMNS if not row[name]]:
            raise InputError(f"{path}: line {line}: {empty[0]} is empty")
        key = row.get("case") or row["original"]
        if row["original"] != cases.setdefault(key, row)["original"]:
            raise InputError(f"{path}: line {line}: case {key!r} has two originals")
        model = row.get("model") or "edited"
        if model in edits.setdefault(key, {}) or model == ORIGINAL:
            raise InputError(f"{path}: line {line}: model {model!r} is listed twice for case {key!r}")
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
