"""Real images, and tables written as the datasets publish them, for trees that tests build in published layouts."""

from __future__ import annotations

import csv
import functools
import gzip
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import cv2
import numpy as np
import openpyxl
from PIL import Image

from fakes.samples import sample_of
from plantain.catalogue.store import Catalogue
from plantain.pixels.arrays import Pixels
from plantain.sources.registry import LeftOut, Reader, Refused, SourceEntry


@functools.cache
def real(modality: str) -> Pixels:
    """Return a real image of a modality, at most 512 pixels wide: uint8 (H, W, 3)."""
    sample = sample_of(modality)
    height, width = sample.pixels.shape[:2]
    scale = 512 / max(height, width)
    return cv2.resize(
        sample.pixels, (round(width * scale), round(height * scale)), interpolation=cv2.INTER_AREA
    )


def jpeg(modality: str, seed: int, *, grey: bool = True) -> bytes:
    """Return another real image for every seed: the same one, shifted, turned and lit differently, as a JPEG."""
    rng = np.random.default_rng(seed)
    pixels = real(modality)
    height, width = pixels.shape[:2]
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), rng.uniform(-8, 8), rng.uniform(0.95, 1.1))
    turn[:, 2] += rng.uniform(-20, 20, 2)
    moved = cv2.warpAffine(pixels, turn, (width, height))
    lit = np.clip(moved * rng.uniform(0.85, 1.1), 0, 255).astype(np.uint8)
    image = Image.fromarray(lit[:, :, 0] if grey else lit)
    data = io.BytesIO()
    image.save(data, "JPEG", quality=92)
    return data.getvalue()


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def digest_of(catalogue: Path) -> str:
    with Catalogue.open(catalogue) as opened:
        return opened.digest()


def csv_bytes(rows: Iterable[Sequence[object]], *, bom: bool = False) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8-sig" if bom else "utf-8")


def csv_gz(rows: Iterable[Sequence[object]]) -> bytes:
    return gzip.compress(csv_bytes(rows), mtime=0)


def xlsx_bytes(rows: Sequence[Sequence[object]]) -> bytes:
    """Return a workbook with these rows, as openpyxl writes it; empty cells are left out."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(
            [None if cell == "" else str(cell) if isinstance(cell, list) else cell for cell in row]
        )
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def scanned(reader: Reader) -> tuple[dict[str, SourceEntry], dict[str, str], dict[str, int]]:
    """Return entries by id, refused names with reasons, images left out by reason; check unique ids and the count."""
    found = list(reader.scan())
    entries = [item for item in found if isinstance(item, SourceEntry)]
    refused = [item for item in found if isinstance(item, Refused)]
    left_out = {item.reason: item.count for item in found if isinstance(item, LeftOut)}
    assert len({entry.image.id for entry in entries}) == len(entries)
    assert reader.count() in (None, len(entries) + len(refused))
    return (
        {entry.image.id: entry for entry in entries},
        {item.name: item.reason for item in refused},
        left_out,
    )
