"""The terms of an export: its options and the entries of its file list.

The layouts write data files and record each one, and each image inside one, in a staging database. Then `export.py`
writes manifest, sums, licences and cards. Both read a snapshot of the journal, so a build may continue meanwhile.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plantain.files.installed import install_line, require_extra
from plantain.records import InputError

SHARD_BYTES = 700_000_000
"""Payload of a Parquet or tar shard: within the 0.5 to 1 GB that hubs recommend."""

SHARD_ROWS = 10_000
"""Most rows of a Parquet or tar shard, however small its images: readers keep a few names for each row."""

IMPORTED = "imported_release"
"""Meta key of an imported run: the facts of the original run."""

ORIGINAL = "original"
"""Role of a source image as it was prepared."""

ORIGINALS_FOLDER = "originals"
ORIGINALS_INDEX = f"{ORIGINALS_FOLDER}/{ORIGINALS_FOLDER}.jsonl"
"""A line for every image of the folder: its path, its hash, and the source images that it is the original of."""

MEDIA = {"image/jpeg": "jpeg", "image/png": "png"}
"""Media types of prepared images, and the endings of their names."""

FACTS = "run.json"
"""In every release: facts of the run, and the state of the run that was exported."""

TRAJECTORIES = "trajectories/trajectories.jsonl"
"""In every release: each task's record, one a line."""

STAGING = ".export"
"""Folder of an unfinished release with its progress; removed last."""

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""Characters that no name in a release contains."""

_PNG = b"\x89PNG\r\n\x1a\n"


def media_type_of(data: bytes) -> str:
    """Return the media type of a prepared image, by its first bytes."""
    return "image/png" if data.startswith(_PNG) else "image/jpeg"


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """A file of a release, or an image inside one: a line of its manifest.

    Attributes:
        path: of the file, POSIX, relative to the release.
        sha256, bytes: of the whole file; of the image alone when `row` or `member` is set.
        role: "success", "failed", "undecided", "superseded", "unjudged", "control" for edited images; "mask";
            ORIGINAL; "shard" for a Parquet or tar file with images; "record" for JSON.
        pixel_sha256: of the decoded uint8 (H, W, 3) RGB bytes, as recorded at normalisation; None when it was not.
        task, generation, round: the attempt of an image; None for other files, and for an original unless it is in
            the row of its edit.
        row: 0-based row of the Parquet file that embeds the image.
        member: name of the image inside its tar, or its column of the Parquet row ("image", "jpg_0").
        source_sha256: blob in the journal when signing changed the bytes; "" when they are the blob's own.
    """

    path: str
    sha256: str
    bytes: int
    role: str
    pixel_sha256: str | None = None
    task: str | None = None
    generation: int | None = None
    round: int | None = None
    row: int | None = None
    member: str | None = None
    source_sha256: str = ""

    @property
    def embedded(self) -> bool:
        """True for an image inside a file, which has no line in SHA256SUMS."""
        return self.row is not None or self.member is not None

    @property
    def is_edit(self) -> bool:
        """True for an edited image."""
        return self.task is not None and self.role not in ("mask", ORIGINAL)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of an export.

    Attributes:
        layouts: names of layouts, kept sorted; see `layouts/contract.py`.
        redistribution_approved: reference of the agreement that allows a credentialed source; "" when there is none.
        sign_cert, sign_key: PEM chain and key for C2PA; None leaves the images unsigned.
        shard_bytes: payload of one shard.
        licences: terms that the images' owner names, each "LICENCE" or "DATASET=LICENCE".
        originals: "auto": include source images where their licence allows it; "none": do not.
        original_licences: the owner's licence of the source images, each "DATASET=LICENCE".
        doi: of the dataset; kept without its address.
        documents: further files of the release by path: reader studies.

    Raises:
        InputError: the extra `release`, or for the layout of that name `dicom`, is not installed, only one of
            certificate and key is given, `originals` is neither "auto" nor "none", or `doi` is not one.
    """

    layouts: tuple[str, ...]
    redistribution_approved: str = ""
    sign_cert: Path | None = None
    sign_key: Path | None = None
    shard_bytes: int = SHARD_BYTES
    licences: tuple[str, ...] = ()
    originals: str = "auto"
    original_licences: tuple[str, ...] = ()
    doi: str = ""
    documents: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.originals not in ("auto", "none"):
            raise InputError(
                f"--originals {self.originals}: choose auto (where their licence allows it) or none"
            )
        if importlib.util.find_spec("pyarrow") is None:
            raise InputError(f"plantain export needs pyarrow: {install_line('release')}")
        if (self.sign_cert is None) != (self.sign_key is None):
            raise InputError("--sign and --key belong together: a certificate chain and its private key")
        if "dicom" in self.layouts:
            require_extra("--layout dicom", "dicom", "highdicom")
        object.__setattr__(self, "layouts", tuple(sorted(set(self.layouts))))
        object.__setattr__(self, "doi", _plain_doi(self.doi))


def _plain_doi(doi: str) -> str:
    """Return a DOI without the address around it."""
    plain = re.sub(r"^(https?://(dx\.)?doi\.org/|doi:)", "", doi.strip(), flags=re.IGNORECASE)
    if plain and not re.fullmatch(r"10\.\d{4,9}/[!-~]{1,200}", plain):
        raise InputError(f"--doi {doi}: a DOI starts with 10. and four digits, as in 10.5281/zenodo.1234567")
    return plain
