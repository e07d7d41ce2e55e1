"""Outputs that were made elsewhere: folders of `{model}/{id}_{k}.png`, one arm for each model's folder.

Where a model gave one output a sample, `{id}.png` is the same as `{id}_0.png`.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from plantain.bench.generate.arms import Arm, ArmKind, GridPoint
from plantain.pixels.decode import MAX_PIXELS, declared_pixels, one_line
from plantain.records import InputError, Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EncodedImage, Reply, failed

PROVIDER = "outputs"
FINGERPRINT = "intake@1"

SUFFIXES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_K = 9_999

MISSING = "missing: no file for this sample"
"""One reason for all, so that tables count it instead of listing every name."""

_NAME = re.compile(r"(?P<id>.+)_(?P<k>\d{1,4})\Z", re.DOTALL)
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,99}\Z")
"""Names that a person may give an arm: they become folders and headings."""


@dataclass(frozen=True, slots=True)
class TakenFile:
    """One file that is to be taken in, and its hash."""

    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class ImportedOutputs:
    """One model's outputs as they lie in a folder.

    Attributes:
        label: of its arm, "outputs/NAME".
        files: by sample id and k.
        strangers: names of files of no sample of this benchmark.
    """

    label: str
    files: Mapping[tuple[str, int], TakenFile]
    strangers: tuple[str, ...]

    @property
    def arm(self) -> Arm:
        """The arm: as many outputs a sample as the highest number says."""
        most = max(k for _, k in self.files)
        grid = tuple(GridPoint(k) for k in range(most + 1))
        return Arm(self.label, self.label, ArmKind.OUTPUTS, grid=grid, fingerprint=FINGERPRINT)

    async def output(self, sample_id: str, k: int) -> Reply[EditedImage]:
        """The file, as it is; `no_image` where there is none."""
        taken = self.files.get((sample_id, k))
        if taken is None:
            return failed(Outcome(OutcomeKind.NO_IMAGE, MISSING))
        data = await asyncio.to_thread(taken.path.read_bytes)
        media_type = SUFFIXES[taken.path.suffix.lower()]
        note = f"taken in from {taken.path.name}"
        return Reply(EditedImage(EncodedImage(data, media_type), note=note), usage=Usage(images=1))


def parse_outputs(text: str) -> tuple[Path, str]:
    """Reads "PATH" or "PATH=NAME"; a folder whose own name holds "=" is taken as it is."""
    path, equals, name = text.rpartition("=")
    if not equals or Path(text).exists():
        return Path(text), ""
    if not LABEL.match(name):
        raise InputError(
            f"--outputs: the name {one_line(name)!r}; letters, digits, space and . _ + - are allowed"
        )
    return Path(path), name


def find_outputs(root: Path, name: str, sample_ids: Collection[str]) -> list[ImportedOutputs]:
    """The outputs in a folder: either its own files, or those of each folder in it.

    Every file is looked at before any is taken: one that could harm is refused, and nothing is taken in.

    Args:
        root: the folder.
        name: of the arm; of several models, what stands before each folder's name. "" for the folders' names.
        sample_ids: of the benchmark.

    Raises:
        InputError: one line that names the file: a link, too large, announcing too many pixels, the same output twice;
            or there is no output of any sample.
    """
    if not root.is_dir():
        raise InputError(f"--outputs: {root}: no such folder; expected {{model}}/{{id}}_{{k}}.png in it")
    folders = [path for path in sorted(root.iterdir()) if path.is_dir()]
    flat = any(path.suffix.lower() in SUFFIXES for path in root.iterdir() if not path.is_dir())
    if flat and folders:
        raise InputError(
            f"--outputs: {root}: holds pictures and folders; give the folder of one, or of all models"
        )
    found: list[ImportedOutputs] = []
    for folder in [root] if flat else folders:
        if folder.is_symlink():
            raise InputError(f"--outputs: {folder}: a link; links are not followed")
        own = one_line(folder.resolve().name if flat else folder.name)
        label = (name or own) if flat else (f"{name}-{own}" if name else own)
        if not LABEL.match(label):
            raise InputError(
                f"--outputs: {folder}: a name of letters, digits, space and . _ + - is needed; give =NAME"
            )
        intake = _look(folder, f"{PROVIDER}/{label}", frozenset(sample_ids))
        if intake.files:
            found.append(intake)
        elif intake.strangers:  # an arm that was meant to be there must not be missed in silence
            raise InputError(
                f"--outputs: {folder}: no file {{id}}_{{k}}.png or {{id}}.png of any sample of this benchmark; "
                f"it holds {intake.strangers[0]}, and an id is e.g. {min(sample_ids, default='')}"
            )
    if not found:
        raise InputError(f"--outputs: {root}: no file {{id}}_{{k}}.png of any sample of this benchmark")
    return found


def _look(folder: Path, label: str, sample_ids: frozenset[str]) -> ImportedOutputs:
    files: dict[tuple[str, int], TakenFile] = {}
    strangers: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in SUFFIXES:
            continue
        key = _key(path.stem, sample_ids)
        if key is None:
            strangers.append(one_line(path.name))
            continue
        if key in files:
            raise InputError(
                f"--outputs: {path}: the same output as {files[key].path.name}; keep one of them"
            )
        files[key] = TakenFile(path, _checked(path))
    return ImportedOutputs(label, files, tuple(strangers))


def _key(stem: str, sample_ids: frozenset[str]) -> tuple[str, int] | None:
    """The sample and number that a file's name says; the sample's bare id is its first output."""
    match = _NAME.match(stem)
    if match is not None and match["id"] in sample_ids:
        return match["id"], int(match["k"])
    return (stem, 0) if stem in sample_ids else None


def _checked(path: Path) -> str:
    """The file's hash, when it is a file that may be taken in; whether it can be decoded is seen later."""
    if path.is_symlink() or not path.is_file():
        raise InputError(f"--outputs: {one_line(str(path))}: a link or no plain file; links are not followed")
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise InputError(
            f"--outputs: {path}: {size // 2**20} MiB; at most {MAX_FILE_BYTES // 2**20} MiB are read"
        )
    data = path.read_bytes()
    if declared_pixels(data) == 0 and _announces_too_much(data):
        raise InputError(f"--outputs: {path}: announces more than {MAX_PIXELS // 10**6} million pixels")
    return hashlib.sha256(data).hexdigest()


def _announces_too_much(data: bytes) -> bool:
    """Whether a PNG's header announces more pixels than are read; other formats are refused when they are decoded."""
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or len(data) < 24:
        return False
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    return width * height > MAX_PIXELS
