"""The parts of a reader study, and its frozen file, which changes by withdrawals only."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from plantain.files.opening import read_inside, replace_file
from plantain.records import InputError
from plantain.records.messages import like_folder

STUDY, SECRET, IMAGES, RATINGS = "study.json", "secret", "images", "ratings.sqlite"
FORMAT = "plantain-study/1"
ORIGINAL = "original"
"""Key of the image before the edit, among the models whose outputs a case has."""


class ReaderTask(StrEnum):
    """The kinds of tasks for readers: accept, rate, compare, rank, draw and others."""

    ACCEPT = "accept"
    RATE = "rate"
    PAIR = "pair"
    RANK = "rank"
    REAL_OR_EDITED = "real-or-edited"
    CHOOSE_ROI = "choose-roi"
    DESCRIBE_OK = "describe-ok"


COMPARES = (ReaderTask.PAIR, ReaderTask.RANK)
"""Tasks that need the outputs of several models for one case."""


@dataclass(frozen=True, slots=True)
class Case:
    """One original and the edits made of it.

    Attributes:
        id: "c0001" and so on.
        source: id of its task or sample, to link results back; readers never see it.
        image: id of the original in the run, for withdrawals; "" if unknown; readers never see it.
        stratum: stratum of the case; cases are drawn evenly from the strata.
        cluster: patient or group; cases of one cluster are not independent.
        modality, finding, direction, instruction, description: those of the edit, "" if unknown.
        size: (width, height) of all its images in pixels.
        served_bytes: length in bytes to which each image is padded when it is served.
        images: ORIGINAL and models -> file below `images/`.
        ground_truth: file of the real image after the procedure; "" without one.
        verdicts: model -> the run's decision about its edit, if any.
        proposals: files of proposed regions, best first.
        spacing_mm: size of a pixel in mm, if known.
        credentialed: True if only readers who confirmed the data use agreement may see it.
    """

    id: str
    source: str
    stratum: str
    cluster: str
    modality: str
    finding: str
    direction: str
    instruction: str
    description: str
    size: tuple[int, int]
    served_bytes: int
    images: Mapping[str, str]
    ground_truth: str = ""
    verdicts: Mapping[str, bool] | None = None
    proposals: tuple[str, ...] = ()
    spacing_mm: float | None = None
    credentialed: bool = False
    image: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One question about one case.

    Attributes:
        id: "b1-00001" and so on.
        shown: models whose images are judged, in frozen order; each reader sees them in a different order.
        reference: True if the original is shown next to them, named as such.
        truth: "real" or "edited" if that is the question; "" otherwise.
    """

    id: str
    case: str
    shown: tuple[str, ...]
    reference: bool = True
    truth: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Items of one task, which each reader reads in a different order and closes together.

    Attributes:
        id: "b1" and so on; `title`: its name for readers.
        criteria: (name, question) to accept, rate or rank; a block that ranks has one.
        dimension: short name of the criterion that is ranked, e.g. "EA"; "" for other tasks.
        scale: smallest and largest rating.
        codes: reasons why an edit is wrong.
    """

    id: str
    task: ReaderTask
    title: str
    items: tuple[Item, ...]
    criteria: tuple[tuple[str, str], ...] = ()
    dimension: str = ""
    scale: tuple[int, int] = (0, 10)
    codes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Study:
    """A frozen reader study.

    Attributes:
        sources: names of the runs, benchmarks or tables of its cases.
        digest: SHA-256 of the frozen document.
        damaged: images that are damaged in the source, whose cases were skipped.
    """

    folder: Path
    name: str
    seed: int
    sources: tuple[str, ...]
    cases: tuple[Case, ...]
    blocks: tuple[Block, ...]
    digest: str = ""
    damaged: tuple[str, ...] = ()

    @cached_property
    def by_case(self) -> dict[str, Case]:
        return {case.id: case for case in self.cases}

    @cached_property
    def by_item(self) -> dict[str, tuple[Block, Item]]:
        return {item.id: (block, item) for block in self.blocks for item in block.items}

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The names of all models with an output in the study, sorted."""
        return tuple(sorted({key for case in self.cases for key in case.images} - {ORIGINAL}))

    @property
    def credentialed(self) -> bool:
        """True if some images may only be served to readers who confirmed the data use agreement."""
        return any(case.credentialed for case in self.cases)

    @cached_property
    def secret(self) -> bytes:
        """The secret key from which orders, image addresses and item names are derived."""
        return bytes.fromhex(read_inside(self.folder, self.folder / SECRET).decode("ascii").strip())

    def keyed(self, *parts: object) -> str:
        """Return a keyed hash of the parts, 32 hex digits, which cannot be guessed without the study's secret."""
        text = "\x1f".join(str(part) for part in parts)
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()[:32]


def unfinished_folder(folder: Path) -> Path:
    """Return the temporary folder in which a study is made before it is renamed to `folder`."""
    return folder.with_name(folder.name + ".unfinished")


def freeze(study: Study) -> Study:
    """Write a study whose images are already in its folder; return it with its digest."""
    # The secret is not derived from the seed: a copy of the study must not reveal the order of images.
    replace_file(study.folder / SECRET, secrets.token_hex(32).encode() + b"\n", 0o600)
    study = with_digest(study)
    write_document(study)
    return study


def with_digest(study: Study) -> Study:
    """Return the study with its digest, the SHA-256 of its document, computed again."""
    return replace(study, digest=_digest(_document(study)))


def write_document(study: Study) -> None:
    """Write `study.json` with the study's digest."""
    text = orjson.dumps({**_document(study), "hash": study.digest}, option=orjson.OPT_INDENT_2)
    replace_file(study.folder / STUDY, text + b"\n")


def _document(study: Study) -> dict[str, object]:
    settings = {entry.name: getattr(study, entry.name) for entry in fields(study)}
    del settings["folder"], settings["digest"]
    return dict(orjson.loads(orjson.dumps({"format": FORMAT, **settings})))


def open_study(folder: Path) -> Study:
    """Read a study. Raise InputError if it is not one, of another format, or was changed after freezing."""
    path = folder / STUDY
    if not path.is_file():
        hint = like_folder(folder, STUDY) or "; make one with `plantain review new`"
        raise InputError(f"{folder} is not a study: {STUDY} is missing{hint}")
    try:
        document = orjson.loads(read_inside(folder, path))
        digest = document.pop("hash")
        if _digest(document) != digest:
            raise InputError(f"{path}: was changed since it was frozen (its hash differs)")
        if document.pop("format") != FORMAT:
            raise InputError(f"{path}: format: this plantain reads {FORMAT}")
        return TypeAdapter(Study).validate_python({**document, "folder": folder, "digest": digest})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not as plantain wrote it ({error})") from error


def _digest(document: Mapping[str, object]) -> str:
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()
