"""A page that shows the images in quarantine with what was found in them, for the person who decides."""

from __future__ import annotations

import base64
import html
import shlex
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from plantain.catalogue.quarantine import Held
from plantain.catalogue.store import Catalogue
from plantain.files.writing import replace_file
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records.counts import counted

PAGE = "quarantine.html"
SHOWN_PX = 640
MOST = 500
"""Images on the page; the rest follow when these are decided on."""

_RED = (230, 30, 30)
_STYLE = (
    "body{font:15px/1.4 sans-serif;margin:2em;max-width:60em}img{width:100%;max-width:640px;display:block}"
    "article{margin:2em 0;border-top:1px solid #999}code{background:#eee;padding:0 .3em}"
)


def write_preview(catalogue: Catalogue, waiting: Sequence[Held]) -> Path | None:
    """Writes the page, or removes it where nothing waits any more. It shows identities: it stays in the catalogue."""
    path = catalogue.root / PAGE
    if not waiting:
        path.unlink(missing_ok=True)
        return None
    articles = "".join(_article(catalogue, one) for one in waiting[:MOST])
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Quarantine</title><style>{_STYLE}</style>'
        f"<h1>{counted(len(waiting), 'image')} in quarantine</h1><p>They may show who somebody is. Do not pass "
        f"this page on.</p>"
        f"<p>They take no part in a build until released or masked. All at once: {_commands(path.parent, 'all')}.</p>"
        f"{articles}</html>\n"
    )
    replace_file(path, page.encode())
    return path


def framed(pixels: Pixels, waiting: Held) -> Pixels:
    """A prepared image with a red frame around everything that was found in it: uint8 (H, W, 3)."""
    shown = np.ascontiguousarray(pixels)
    for suspicion in waiting.found:
        box = suspicion.box
        cv2.rectangle(shown, (box.left - 3, box.top - 3), (box.right + 3, box.bottom + 3), _RED, 2)
    return shown


def _article(catalogue: Catalogue, waiting: Held) -> str:
    shown = framed(decode(catalogue.read(waiting.image)), waiting)
    small = cv2.resize(shown, (SHOWN_PX, SHOWN_PX), interpolation=cv2.INTER_AREA)
    _, data = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 85])
    picture = base64.b64encode(data.tobytes()).decode()
    lines = "".join(
        f"<li>{html.escape(f'{one.kind}: {one.text}' if one.text else f'a {one.kind}')}</li>"
        for one in waiting.found
    )
    name = html.escape(waiting.image.id)
    commands = _commands(catalogue.root, waiting.image.id, maskable=waiting.maskable)
    return (
        f'<article><h2>{name}</h2><img alt="{name}" src="data:image/jpeg;base64,{picture}"><ul>{lines}</ul>'
        f"<p>{commands}</p></article>"
    )


def _commands(root: Path, name: str, *, maskable: bool = True) -> str:
    """Commands that a person can paste, as HTML; a photograph cannot be masked."""
    ways = ("--release", "--mask") if maskable else ("--release",)
    commands = (shlex.join(["plantain", "quarantine", str(root), way, name]) for way in ways)
    return " or ".join(f"<code>{html.escape(command)}</code>" for command in commands)
