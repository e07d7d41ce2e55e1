"""The folder through which a program receives edits, and in which it leaves its outputs."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from plantain.files.opening import read_inside
from plantain.files.redaction import redacted
from plantain.models.framed import FramedRequest
from plantain.models.process.program import Program
from plantain.pixels.decode import BadImage, decode_output, one_line
from plantain.pixels.encode import encode_mask, encode_png
from plantain.records import OK, Outcome, OutcomeKind

CONTRACT = 1
"""Version of the manifest; a program refuses one that it does not know."""

REMARKS = {
    "refused": OutcomeKind.REFUSED,
    "not_applicable": OutcomeKind.NOT_APPLICABLE,
    "no_image": OutcomeKind.NO_IMAGE,
}
"""Outcomes that a program may write instead of an image."""

Settings = Mapping[str, str | int | float | bool]


async def run_batch(
    program: Program, settings: Settings, requests: Sequence[FramedRequest]
) -> list[bytes | Outcome]:
    """Return a program's output for each request, in order: PNG of the original's size, or why there is none."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="plantain-"))
    try:
        manifest, faults = await asyncio.to_thread(_write_manifest, folder, program.name, settings, requests)
        fault = await program.run(manifest) if len(faults) < len(requests) else None
        results = await asyncio.to_thread(
            lambda: [
                faults.get(number) or _read_result(folder, number, request)
                for number, request in enumerate(requests)
            ]
        )
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    if fault is None:
        return results
    lost = (OutcomeKind.NO_IMAGE, OutcomeKind.MALFORMED)  # a crash can leave half an image
    return [
        fault if number not in faults and isinstance(result, Outcome) and result.kind in lost else result
        for number, result in enumerate(results)
    ]


def _write_manifest(
    folder: Path, name: str, settings: Settings, requests: Sequence[FramedRequest]
) -> tuple[Path, dict[int, Outcome]]:
    """Write images, regions and the manifest; return its path, and by number the requests that cannot be read."""
    (folder / "in").mkdir()
    (folder / "out").mkdir()
    jobs: list[dict[str, object]] = []
    faults: dict[int, Outcome] = {}
    for number, request in enumerate(requests):
        try:
            jobs.append(_job(folder, number, request))
        except BadImage as error:
            faults[number] = Outcome(OutcomeKind.MALFORMED, str(error))
    manifest = folder / "manifest.json"
    document = {
        "contract": CONTRACT,
        "model": name,
        "settings": dict(settings),
        "out": str(folder / "out"),
        "jobs": jobs,
    }
    manifest.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    return manifest, faults


def _job(folder: Path, number: int, request: FramedRequest) -> dict[str, object]:
    image, mask = folder / "in" / f"{number}.png", folder / "in" / f"{number}-region.png"
    image.write_bytes(encode_png(request.canvas()))
    region = request.canvas_region()
    if region is not None:
        mask.write_bytes(encode_mask(region))
    return {
        "id": str(number),
        "image": str(image),
        "region": None if region is None else str(mask),
        "instruction": request.instruction,
        "seed": request.seed,
        "parameters": dict(request.parameters),
        "width": request.frame.canvas_width,
        "height": request.frame.canvas_height,
    }


def _read_result(folder: Path, number: int, request: FramedRequest) -> bytes | Outcome:
    """Return the program's output for one edit."""
    path = folder / "out" / f"{number}.png"
    remark = _remark(folder / "out" / f"{number}.json")
    if remark is not None:
        return remark
    if not path.is_file():
        return Outcome(OutcomeKind.NO_IMAGE, f"the program wrote no {path.name}")
    try:
        return request.leave(decode_output(read_inside(folder, path), f"output {path.name}"))
    except BadImage as error:
        return Outcome(OutcomeKind.MALFORMED, str(error))


def _remark(path: Path) -> Outcome | None:
    """Return the outcome that the program wrote instead of an image; None if absent or "ok"."""
    if not path.is_file():
        return None
    try:
        document = orjson.loads(read_inside(path.parent, path))
        kind, reason = str(document.get("outcome", "ok")), one_line(redacted(str(document.get("reason", ""))))
    except (ValueError, AttributeError) as error:
        return Outcome(
            OutcomeKind.MALFORMED, f"the program's {path.name} is not a JSON object: {one_line(str(error))}"
        )
    if kind == OK.kind.value:
        return None
    if kind not in REMARKS:
        known = ", ".join(("ok", *REMARKS))
        return Outcome(OutcomeKind.MALFORMED, f"the program's outcome {one_line(kind)!r} is none of {known}")
    return Outcome(REMARKS[kind], reason or "the program gave no reason")
