"""Regions of interest: read masks and a sample's proposals, and store a reader's choice."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
from PIL import Image

from plantain.bench.benchmark.native_format import OWN, read_document
from plantain.files.opening import open_folder, read_inside, replace_file
from plantain.pixels.arrays import Mask
from plantain.pixels.decode import declared_size, decode_untrusted
from plantain.pixels.encode import encode_mask
from plantain.records import InputError

Grey = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]

SOFT = 0.001
"""Share of pixels between the darkest and the brightest eighth from which a mask counts as soft."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredMask:
    """A mask's file, read.

    Attributes:
        grey: uint8 (H, W), the luminance, which the published code uses; it ignores transparency.
        region: bool (H, W), the intended region.
        kind: "binary", "soft", "0 and 1", "transparency", "empty", "full".
        remark: why the two differ, or another peculiarity; "" for a plain binary mask.
    """

    grey: Grey
    region: Mask
    kind: str
    remark: str


def read_mask(data: bytes, name: str) -> StoredMask:
    """Return a mask's file at its own size.

    The region exceeds half of the brightest level, so 0 and 1, 0 and 255 and soft edges give the same region. If all
    colours are equal, transparency is the mask.

    Raises:
        BadImage: the bytes are not an image.
    """
    shown = decode_untrusted(data, name)
    grey, alpha = _bands(data, shown)
    carrier, kind, remark = grey, "binary", ""
    if alpha is not None and int(alpha.min()) != int(alpha.max()):
        if int(grey.min()) == int(grey.max()):
            carrier, kind = alpha, "transparency"
            remark = "the mask is its transparency, which the published code ignores"
        else:
            carrier = np.rint(grey.astype(np.float32) * alpha / 255).astype(np.uint8)
            remark = "it is partly transparent, which the published code ignores"
    top = int(carrier.max())
    if top == 0:
        return StoredMask(grey, np.zeros(grey.shape, bool), "empty", "it marks nothing")
    region: Mask = carrier > top / 2
    if region.all():
        return StoredMask(grey, region, "full", "it marks the whole image")
    if top == 1:
        kind, remark = "0 and 1", "stored as 0 and 1, which the published code reads as almost empty"
    elif kind == "binary":
        middle = float(((carrier > top / 8) & (carrier < top * 7 / 8)).mean())
        if middle > SOFT:
            kind = "soft"
            remark = (
                f"soft edges: {middle:.1%} of pixels have intermediate levels; cut at half of the brightest"
            )
        elif top != 255 and not remark:
            remark = (
                f"its brightest level is {top}, not 255, so the published code hides only part of the region"
            )
    return StoredMask(grey, region, kind, remark)


def _bands(data: bytes, shown: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> tuple[Grey, Grey | None]:
    """Return the luminance of a valid file, and its transparency if it has one."""
    image: Image.Image = Image.open(io.BytesIO(data))
    if image.mode.startswith("I"):
        return shown[..., 0], None
    alpha = None
    if image.mode in ("LA", "La", "PA", "RGBa", "RGBA") or "transparency" in image.info:
        alpha = np.asarray(image.convert("RGBA"))[..., 3]
        image = image.convert("RGBA").convert("RGB")
    return np.asarray(image.convert("L")), alpha


def resized_grey(grey: Grey, size: tuple[int, int]) -> Grey:
    """Return a grey mask at another (width, height) by nearest neighbour, as published."""
    if (grey.shape[1], grey.shape[0]) == size:
        return grey
    return np.asarray(Image.fromarray(grey).resize(size, Image.Resampling.NEAREST))


def resized_region(region: Mask, size: tuple[int, int]) -> Mask:
    """Return a region at another (width, height) by nearest neighbour."""
    return np.asarray(resized_grey(region.astype(np.uint8), size) > 0)


def proposed_regions(root: Path, sample_id: str) -> tuple[Mask, ...]:
    """Return the proposals of a sample, the best first. Raises InputError if they cannot be read."""
    path = root / "proposals.json"
    if not path.is_file():
        return ()
    try:
        entries = orjson.loads(read_inside(root, path))["samples"].get(sample_id, [])
        files = [root / entry["file"] for entry in entries]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: samples: not plantain's format") from error
    return tuple(read_mask(read_inside(root, file), str(file)).region for file in files)


def choose_region(root: Path, sample_id: str, region: Mask, who: str, how: str) -> None:
    """Store a mask as a sample's region of interest, with the reader's name in its notes.

    This changes the benchmark's digest.

    Args:
        root: the folder of a benchmark in our own format.
        sample_id: the sample.
        region: bool (H, W), resized to the image's size by nearest neighbour.
        who: the reader's pseudonym.
        how: "proposal 2", "drawn", "proposal 1, corrected".

    Raises:
        InputError: the benchmark or sample is unknown, or the region is empty or the whole image.
    """
    path, data = root / OWN, read_document(root)
    row = next((row for row in data["samples"] if row["id"] == sample_id), None)
    if row is None:
        raise InputError(f"{path}: no sample {sample_id!r}")
    if not region.any() or region.all():
        raise InputError(f"{path}: sample {sample_id}: a region must mark a part of the image")
    size = declared_size(read_inside(root, root / row["previous"]))
    mask = encode_mask(resized_region(region, size))
    row["roi"] = f"previous_mask/{sample_id}.png"
    row["sha256"]["roi"] = hashlib.sha256(mask).hexdigest()
    notes = [note for note in row.get("notes", []) if not note.startswith("region:")]
    row["notes"] = [*notes, f"region: chosen by {who} ({how})"]
    target = root / row["roi"]
    open_folder(root, target.parent.name)
    replace_file(target, mask)
    replace_file(path, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
