"""The folder through which a program is told what to edit, and in which it leaves what it made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from plantain.files.opening import read_inside
from plantain.files.redaction import redacted
from plantain.models.frames import Frame
from plantain.pixels.decode import BadImage, decode_mask, decode_untrusted, one_line
from plantain.pixels.encode import encode_mask, encode_png
from plantain.records import OK, Outcome, OutcomeKind

CONTRACT = 1
"""Version of what a manifest says; a program refuses one that it does not know."""

REMARKS = {
    "refused": OutcomeKind.REFUSED,
    "not_applicable": OutcomeKind.NOT_APPLICABLE,
    "no_image": OutcomeKind.NO_IMAGE,
}
"""What a program may say instead of an image."""


@dataclass(frozen=True, slots=True)
class ProcessRequest:
    """One edit for a program.

    Attributes:
        picture: file bytes of the original.
        frame: its way to the size that the program works at.
        instruction, seed: as the program gets them.
        region: PNG mask of the original's size; None for none.
        parameters: settings for this edit only.
    """

    picture: bytes = field(repr=False)
    frame: Frame
    instruction: str
    seed: int
    region: bytes | None = field(default=None, repr=False)
    parameters: Mapping[str, float] = field(default_factory=dict)


def write_manifest(
    folder: Path,
    name: str,
    settings: Mapping[str, str | int | float | bool],
    wishes: Sequence[ProcessRequest],
) -> tuple[Path, dict[int, Outcome]]:
    """Lays out images, regions and the manifest.

    Returns:
        The manifest's path, and by number the wishes whose files cannot be read: they are not in it.
    """
    (folder / "in").mkdir()
    (folder / "out").mkdir()
    jobs: list[dict[str, object]] = []
    faults: dict[int, Outcome] = {}
    for number, wish in enumerate(wishes):
        try:
            jobs.append(_job(folder, number, wish))
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


def _job(folder: Path, number: int, wish: ProcessRequest) -> dict[str, object]:
    image, region = folder / "in" / f"{number}.png", None
    image.write_bytes(encode_png(wish.frame.enter(decode_untrusted(wish.picture, "original"))))
    if wish.region is not None:
        region = folder / "in" / f"{number}-region.png"
        region.write_bytes(encode_mask(wish.frame.enter_region(decode_mask(wish.region))))
    return {
        "id": str(number),
        "image": str(image),
        "region": str(region) if region else None,
        "instruction": wish.instruction,
        "seed": wish.seed,
        "parameters": dict(wish.parameters),
        "width": wish.frame.canvas_width,
        "height": wish.frame.canvas_height,
    }


def read_result(folder: Path, number: int, wish: ProcessRequest) -> bytes | Outcome:
    """What the program left for one edit: PNG bytes of the original's size, or why there is none."""
    path = folder / "out" / f"{number}.png"
    remark = _remark(folder / "out" / f"{number}.json")
    if remark is not None:
        return remark
    if not path.is_file():
        return Outcome(OutcomeKind.NO_IMAGE, f"the program wrote no {path.name}")
    try:
        canvas = decode_untrusted(read_inside(folder, path), f"output {path.name}")
        return encode_png(wish.frame.leave(canvas))
    except (BadImage, ValueError) as error:
        return Outcome(OutcomeKind.MALFORMED, str(error))


def _remark(path: Path) -> Outcome | None:
    """What the program said instead of an image; None when it said nothing, or that all is well."""
    if not path.is_file():
        return None
    try:
        document = orjson.loads(read_inside(path.parent, path))
        kind, reason = str(document.get("outcome", "ok")), one_line(redacted(str(document.get("reason", ""))))
    except (ValueError, AttributeError) as error:
        return Outcome(
            OutcomeKind.MALFORMED, f"the program's {path.name} is no JSON object: {one_line(str(error))}"
        )
    if kind == OK.kind.value:
        return None
    if kind not in REMARKS:
        known = ", ".join(("ok", *REMARKS))
        return Outcome(OutcomeKind.MALFORMED, f"the program's outcome {one_line(kind)!r} is none of {known}")
    return Outcome(REMARKS[kind], reason or "the program gave no reason")
