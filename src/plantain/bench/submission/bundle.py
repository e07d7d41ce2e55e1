"""A submission on disk: a folder of outputs, scores, judges' replies and what they were made with, every file hashed.

A bundle comes from a stranger: it is data. Nothing in it is run, no link is followed, and no file is opened that its
own list of checksums does not name.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plantain.bench.generate.arms import Arm, arm_from_json, arm_to_json
from plantain.bench.generate.runfile import SampleFacts
from plantain.files.opening import open_plain
from plantain.files.writing import replace_file
from plantain.records import InputError

FORMAT, VERSION = "plantain-submission", 1
HEADER, OUTPUTS, SCORES, REPLIES, PAIRS, SUMS = (
    *("bundle.json", "outputs.jsonl", "scores.jsonl", "replies.jsonl", "comparisons.jsonl", "SHA256SUMS"),
)
PICTURES = "outputs"
MOST_FILES = 200_000
LARGEST_TEXT, LARGEST_PICTURE = 1 << 30, 256 << 20
"""Bytes of a text, and of a picture, that are read."""

_LINE = re.compile(r"([0-9a-f]{64})  ([^\x00-\x1f\x7f]{1,400})")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


_Row = TypeVar("_Row", bound=_Strict)


class OutputRow(_Strict):
    """One output: the PNG that shows it, or the reason why there is none; `k` counts from 0.

    `blob` is the SHA-256 of the PNG without the mark that says that it is synthetic: what scores were made of.
    """

    arm: str
    sample: str
    k: int = Field(ge=0)
    file: str = ""
    blob: str = ""
    reason: str = ""


class ScoreRow(_Strict):
    """One score of an output; `detail` is what the journal keeps beside it."""

    arm: str
    sample: str
    k: int = Field(ge=0)
    metric: str
    value: float | None = Field(allow_inf_nan=False)
    reason: str = ""
    detail: dict[str, object] = Field(default_factory=dict)


class ReplyRow(_Strict):
    """What a judge answered in one draw: its report as it was stored, or how the call ended."""

    arm: str
    sample: str
    k: int = Field(ge=0)
    model: str
    draw: int = Field(ge=0)
    request: str
    answer: str = ""
    reason: str = ""


class ComparisonRow(_Strict):
    """One reader's comparison of two arms on a case: `outcome` is 1 for left, 0 for a tie, -1 for right."""

    left: str
    right: str
    outcome: int = Field(ge=-1, le=1)
    reader: str
    case: str


@dataclass(frozen=True, slots=True)
class BundleHeader:
    """What a bundle says of itself.

    Attributes:
        name: of the submission, for a reader.
        benchmark, edition, digest: name, semantic version ("" for none) and content hash of the benchmark.
        seed: of the run; outputs' seeds are drawn from it.
        arms: by label.
        samples: all of the benchmark, as the submitter's copy of it says.
        models: a line on each arm's model, by label.
        judges: label and fingerprint of each judge.
        cards: the judges' cards, as `plantain judge audit --json` prints them.
        environment: versions of what made it.
        rescored: the submission that a benchmark's holder made these scores of; "" for a submission.
    """

    name: str
    benchmark: str
    edition: str
    digest: str
    seed: int
    arms: Mapping[str, Arm]
    samples: Mapping[str, SampleFacts]
    models: Mapping[str, str] = field(default_factory=dict)
    judges: tuple[Mapping[str, str], ...] = ()
    cards: tuple[Mapping[str, object], ...] = ()
    environment: Mapping[str, object] = field(default_factory=dict)
    rescored: str = ""


class BundleWriter:
    """Writes a bundle file by file; the checksums come last, so that what was cut short is no bundle.

    Args:
        out: a folder that does not exist or is empty.

    Raises:
        InputError: the folder holds something.
    """

    def __init__(self, out: Path) -> None:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InputError(f"{out}: exists and is not an empty folder; give a new one")
        self.out = out
        self._sums: dict[str, str] = {}

    def write(self, name: str, data: bytes) -> str:
        """Writes one file and returns its SHA-256."""
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
        self._sums[name] = hashlib.sha256(data).hexdigest()
        return self._sums[name]

    def rows(self, name: str, rows: Iterable[_Strict]) -> None:
        """Writes a table, a line of JSON for each row."""
        self.write(name, b"".join(orjson.dumps(row.model_dump()) + b"\n" for row in rows))

    def close(self, header: BundleHeader) -> None:
        """Writes header and checksums."""
        self.write(HEADER, header_json(header))
        lines = (f"{self._sums[name]}  {name}\n" for name in sorted(self._sums))
        replace_file(self.out / SUMS, "".join(lines).encode())


def header_json(header: BundleHeader) -> bytes:
    """`bundle.json` of a header."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        **asdict(header),
        "arms": {label: arm_to_json(arm) for label, arm in header.arms.items()},
        "samples": [asdict(facts) for facts in header.samples.values()],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that was read: its header, its rows, and what its list of checksums names."""

    root: Path
    header: BundleHeader
    outputs: tuple[OutputRow, ...]
    scores: tuple[ScoreRow, ...]
    replies: tuple[ReplyRow, ...]
    pairs: tuple[ComparisonRow, ...]
    sums: Mapping[str, str]

    def read(self, output: OutputRow) -> bytes:
        """The PNG of an output. Raises InputError."""
        return read_listed(self.root, output.file, self.sums, LARGEST_PICTURE)


def open_bundle(root: Path) -> Bundle:
    """Reads a bundle without its pictures.

    Raises:
        InputError: it is none, a file of it is missing or was changed, or says what cannot be.
    """
    sums = read_sums(root)
    header = _header(root, sums)
    return Bundle(
        root,
        header,
        tuple(_rows(root, OUTPUTS, OutputRow, sums)),
        tuple(_rows(root, SCORES, ScoreRow, sums)),
        tuple(_rows(root, REPLIES, ReplyRow, sums) if REPLIES in sums else ()),
        tuple(_rows(root, PAIRS, ComparisonRow, sums) if PAIRS in sums else ()),
        sums,
    )


def read_sums(root: Path) -> dict[str, str]:
    """SHA-256 by path, of every file that a bundle consists of.

    Raises:
        InputError: there is no such list, or a line of it names what cannot be part of a bundle.
    """
    if not (root / SUMS).is_file() or (root / SUMS).is_symlink():
        raise InputError(f"{root}: no submission: {SUMS} is missing; make one with `plantain bench pack`")
    sums: dict[str, str] = {}
    for number, line in enumerate(
        _bytes(root, SUMS, LARGEST_TEXT).decode("utf-8", "replace").splitlines(), 1
    ):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in sums or not _plain(match[2]):
            raise InputError(f"{root / SUMS}: line {number}: not a checksum and the path of a file beside it")
        sums[match[2]] = match[1]
        if number > MOST_FILES:
            raise InputError(f"{root / SUMS}: more than {MOST_FILES:,} files")
    return sums


def read_listed(root: Path, name: str, sums: Mapping[str, str], most: int) -> bytes:
    """The bytes of a file that the checksums name. Raises InputError where it is another, or missing."""
    if name not in sums:
        raise InputError(f"{root.name}: {name[:200]!r}: {SUMS} names no such file")
    data = _bytes(root, name, most)
    if hashlib.sha256(data).hexdigest() != sums[name]:
        raise InputError(f"{root.name}/{name}: its checksum is not the one in {SUMS}: the file was changed")
    return data


def entries_of(root: Path) -> Iterator[tuple[str, str]]:
    """(path, what is wrong with it or "") of everything in a bundle's folder; links are named, not followed."""
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            name = str(Path(entry.path).relative_to(root))
            if entry.is_symlink():
                yield name, "a link; nothing in a submission is followed"
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                yield name, ""
            else:
                yield name, "neither a file nor a folder"


def _plain(name: str) -> bool:
    """Whether a path stays in its folder, whatever the system, and is written in one way only."""
    parts = name.split("/")
    return (
        str(PurePosixPath(name)) == name
        and not name.startswith("/")
        and "\\" not in name
        and ":" not in name
        and not {"", ".", ".."} & set(parts)
        and name != SUMS
    )


def _bytes(root: Path, name: str, most: int) -> bytes:
    """A file below the root, with no link anywhere on the way."""
    folder = root
    for part in PurePosixPath(name).parts[:-1]:
        folder = folder / part
        if folder.is_symlink():
            raise InputError(
                f"{root.name}/{name}: a link on its path; links in a submission are not followed"
            )
    try:
        with open_plain(root / name) as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise InputError(f"{root.name}/{name}: {size:,} bytes; at most {most:,} are read")
            return file.read(most)
    except OSError as error:
        raise InputError(f"{root.name}/{name}: cannot be read ({error.strerror or error})") from error


def _header(root: Path, sums: Mapping[str, str]) -> BundleHeader:
    data = read_listed(root, HEADER, sums, LARGEST_TEXT)
    try:
        document = orjson.loads(data)
        if not isinstance(document, dict):
            raise InputError(f"{root.name}/{HEADER}: an object is needed")
        if document.pop("format") != FORMAT or document.pop("version") != VERSION:
            raise InputError(
                f"{root.name}/{HEADER}: not a submission that this plantain reads (version {VERSION})"
            )
        rows = [SampleFacts(**{**row, "size": tuple(row["size"])}) for row in document.pop("samples")]
        return _HeaderTypes.model_validate(
            {
                **document,
                "arms": {
                    label: arm_from_json(label, arm, f"{root.name}/{HEADER}")
                    for label, arm in document.pop("arms").items()
                },
                "samples": {facts.id: facts for facts in rows},
            }
        ).made()
    except InputError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{root.name}/{HEADER}: {_first_line(error)}") from error


class _HeaderTypes(_Strict):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    name: str = Field(min_length=1, max_length=200)
    benchmark: str = Field(max_length=400)
    edition: str = Field(max_length=100)
    digest: str = Field(pattern="^[0-9a-f]{64}$")
    seed: int
    arms: dict[str, Arm]
    samples: dict[str, SampleFacts]
    models: dict[str, str]
    judges: tuple[dict[str, str], ...]
    cards: tuple[dict[str, object], ...]
    environment: dict[str, object]
    rescored: str

    def made(self) -> BundleHeader:
        return BundleHeader(**{name: getattr(self, name) for name in type(self).model_fields})


def _rows(root: Path, name: str, kind: type[_Row], sums: Mapping[str, str]) -> Iterator[_Row]:
    for number, line in enumerate(read_listed(root, name, sums, LARGEST_TEXT).splitlines(), 1):
        try:
            yield kind.model_validate_json(line)
        except ValidationError as error:
            raise InputError(f"{root.name}/{name}: line {number}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))[:80]}: {first['msg']}"[:300]
    return f"{type(error).__name__}: {error}"[:200].replace("\n", " ")
