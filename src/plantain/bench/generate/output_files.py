"""Outputs as files: export them, and import those made elsewhere, as `{model}/{id}_{k}.png`.

For a model with one output a sample, `{id}.png` is the same as `{id}_0.png`.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plantain.bench.generate.editors import BASELINES, GROUND_TRUTH
from plantain.bench.generate.runfile import Arm, ArmKind, BenchRun, GridPoint
from plantain.files.opening import files_like, open_folder, replace_file
from plantain.pixels.decode import one_line
from plantain.pixels.encode import marked
from plantain.records import InputError, Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed

PROVIDER = "outputs"
FINGERPRINT = "intake@1"
SUFFIXES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}
MAX_FILE_BYTES = 64 * 1024 * 1024

MISSING = "missing: no file for this sample"

LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,99}\Z")
"""Names that a user may give an arm: they become folders and headings."""

_NUMBERED = re.compile(r"(?P<id>.+)_(?P<k>\d{1,4})\Z", re.DOTALL)


def export_outputs(bench: BenchRun, to: Path) -> int:
    """Write the images of all arms to a folder; return how many files were written.

    Files are marked as synthetic, except those of baselines that were made from a real image.

    Args:
        bench: the run.
        to: the folder; files of the same names are replaced.
    """
    written = 0
    for label, arm in bench.arms.items():
        for output in bench.outputs(label):
            if output.edited is None:
                continue
            folder = open_folder(to, arm.folder)
            data = bench.read(output)
            data = data if _is_real(bench, arm, output.sample_id) else marked(data)
            replace_file(folder / f"{output.sample_id}_{output.k}.png", data)
            written += 1
    return written


def _is_real(bench: BenchRun, arm: Arm, sample_id: str) -> bool:
    """Return True for a baseline's output where the image that it was made of is real."""
    if arm.kind is not ArmKind.BASELINE:
        return False
    if arm.label == GROUND_TRUTH:
        return not bench.samples[sample_id].synthetic_truth
    return not bench.reader.image(sample_id).synthetic


@dataclass(frozen=True, slots=True)
class ImportedOutputs:
    """One model's outputs in a folder.

    Attributes:
        label: label of the model's arm, "outputs/NAME".
        files: path and SHA-256 of each file, by sample id and k.
        strangers: names of files that belong to no sample of this benchmark.
    """

    label: str
    files: Mapping[tuple[str, int], tuple[Path, str]]
    strangers: tuple[str, ...]

    @property
    def arm(self) -> Arm:
        """The arm of these files; it has as many outputs per sample as the highest k plus 1."""
        grid = tuple(GridPoint(k) for k in range(max(k for _, k in self.files) + 1))
        return Arm(self.label, self.label, ArmKind.OUTPUTS, grid=grid, fingerprint=FINGERPRINT)

    async def output(self, request: EditRequest, k: int) -> Reply[EditedImage]:
        """Return output k as its file is stored; a `no_image` outcome if the sample has no such file."""
        if (request.image.id, k) not in self.files:
            return failed(Outcome(OutcomeKind.NO_IMAGE, MISSING))
        path, _ = self.files[request.image.id, k]
        image = EncodedImage(await asyncio.to_thread(path.read_bytes), SUFFIXES[path.suffix.lower()])
        return Reply(EditedImage(image, note=f"imported from {path.name}"), usage=Usage(images=1))


def outputs_at(given: Sequence[str], sample_ids: Sequence[str]) -> tuple[ImportedOutputs, ...]:
    """Find the outputs that the values of `--outputs` name, one entry per model; errors as in `find_outputs`."""
    return tuple(one for text in given for one in find_outputs(*parse_outputs(text), sample_ids))


def parse_outputs(text: str) -> tuple[Path, str]:
    """Split "PATH" or "PATH=NAME" into (path, name or ""); an existing folder is a path even if it contains "=".

    Raises:
        InputError: the name has other characters than letters, digits, space and "._+-".
    """
    path, equals, name = text.rpartition("=")
    if not equals or Path(text).exists():
        return Path(text), ""
    if not LABEL.match(name):
        raise InputError(
            f"--outputs: the name {one_line(name)!r}; letters, digits, space and . _ + - are allowed"
        )
    return Path(path), name


def find_outputs(root: Path, name: str, sample_ids: Collection[str]) -> list[ImportedOutputs]:
    """Find the outputs in a folder, one entry per model: the folder itself, or each folder in it but the baselines'.

    Args:
        root: the folder.
        name: name of the arm, or for several models a prefix of the folders' names; "" for the folders' names.
        sample_ids: ids of the benchmark's samples.

    Raises:
        InputError: one line that names the file: a link, too large, too many pixels, the same output twice; or there is
            no output of any sample.
    """
    if not root.is_dir():
        raise InputError(f"--outputs: {root}: no such folder; expected {{model}}/{{id}}_{{k}}.png in it")
    folders = [path for path in files_like(root, "*") if path.is_dir() and path.name not in BASELINES]
    flat = any(p.suffix.lower() in SUFFIXES for p in files_like(root, "*") if not p.is_dir())
    if flat and folders:
        raise InputError(
            f"--outputs: {root}: contains images and folders; give the folder of one, or of all models"
        )
    found: list[ImportedOutputs] = []
    for folder in [root] if flat else folders:
        if folder.is_symlink():
            raise InputError(f"--outputs: {folder}: a link; links are not followed")
        own = one_line(folder.resolve().name if flat else folder.name)
        label = (name or own) if flat else "-".join(filter(None, (name, own)))
        if not LABEL.match(label):
            raise InputError(
                f"--outputs: {folder}: a name of letters, digits, space and . _ + - is needed; give =NAME"
            )
        outputs = _in_folder(folder, f"{PROVIDER}/{label}", frozenset(sample_ids))
        if outputs.files:
            found.append(outputs)
        elif outputs.strangers:
            raise InputError(
                f"--outputs: {folder}: no file {{id}}_{{k}}.png or {{id}}.png of any sample of this benchmark; "
                f"it contains {outputs.strangers[0]}, and an id is e.g. {min(sample_ids, default='')}"
            )
    if not found:
        raise InputError(f"--outputs: {root}: no file {{id}}_{{k}}.png of any sample of this benchmark")
    return found


def _in_folder(folder: Path, label: str, sample_ids: frozenset[str]) -> ImportedOutputs:
    files: dict[tuple[str, int], tuple[Path, str]] = {}
    strangers: list[str] = []
    for path in files_like(folder, "*"):
        if path.suffix.lower() not in SUFFIXES:
            continue
        match = _NUMBERED.match(path.stem)
        if match is not None and match["id"] in sample_ids:
            key = match["id"], int(match["k"])
        elif path.stem in sample_ids:
            key = path.stem, 0
        else:
            strangers.append(one_line(path.name))
            continue
        if key in files:
            raise InputError(f"--outputs: {path}: the same output as {files[key][0].name}; keep one of them")
        files[key] = path, _checked(path)
    return ImportedOutputs(label, files, tuple(strangers))


def _checked(path: Path) -> str:
    """Return the file's hash. Raise InputError if it must not be imported; it is decoded later."""
    if path.is_symlink() or not path.is_file():
        raise InputError(f"--outputs: {one_line(str(path))}: a link or no plain file; links are not followed")
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise InputError(
            f"--outputs: {path}: {size // 2**20} MiB; at most {MAX_FILE_BYTES // 2**20} MiB are read"
        )
    return hashlib.sha256(path.read_bytes()).hexdigest()
