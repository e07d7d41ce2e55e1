"""A bench run's outputs as the files that others know: `{model}/{id}_{k}.png`, marked as synthetic."""

from __future__ import annotations

import zlib
from pathlib import Path

from plantain.bench.generate.arms import ArmKind
from plantain.bench.generate.runfile import BenchRun
from plantain.files.writing import replace_file
from plantain.pixels.encode import XMP_PACKET

_XMP_CHUNK = b"iTXt"
_XMP_KEY = b"XML:com.adobe.xmp\x00\x00\x00\x00\x00"
"""Keyword, then: not compressed, no language, no translated keyword (PNG 11.3.3.4; XMP part 3, PNG)."""

_HEADER_END = 33
"""Signature (8 bytes) and IHDR (25): other chunks may follow from here."""


def export_outputs(bench: BenchRun, to: Path) -> int:
    """Writes every output of every arm that is an image.

    Pixels are those of the journal; what a model made bears the same mark as a build's images. The baselines' files,
    which are real images, bear none.

    Args:
        bench: the run.
        to: the folder, made when absent; files of the same names are replaced.

    Returns:
        How many files were written.
    """
    written = 0
    for label, arm in bench.arms.items():
        folder = to / arm.folder
        for output in bench.outputs(label):
            if output.edited is None:
                continue
            folder.mkdir(parents=True, exist_ok=True)
            data = bench.read(output)
            if arm.kind is not ArmKind.BASELINE:
                data = marked(data)
            replace_file(folder / f"{output.sample_id}_{output.k}.png", data)
            written += 1
    return written


def marked(png: bytes) -> bytes:
    """A PNG with the XMP packet that says that it is synthetic, right behind its header; pixels untouched."""
    body = _XMP_KEY + XMP_PACKET
    checked = _XMP_CHUNK + body
    chunk = len(body).to_bytes(4, "big") + checked + zlib.crc32(checked).to_bytes(4, "big")
    return png[:_HEADER_END] + chunk + png[_HEADER_END:]
