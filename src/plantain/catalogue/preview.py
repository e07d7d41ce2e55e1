"""A page of the images in quarantine with their suspicions, for the user who decides."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import cv2
import numpy as np

from plantain.catalogue.quarantine import Held
from plantain.catalogue.store import Catalogue
from plantain.pages.publishing import page_environment, write_page
from plantain.pixels.decode import decode
from plantain.pixels.encode import compressed, marked
from plantain.records.messages import command_line

PAGE = "quarantine.html"
SHOWN_PX = 640
MOST = 500
"""Images on the page."""

_RED = (230, 30, 30)


def write_preview(catalogue: Catalogue, waiting: Sequence[Held]) -> Path | None:
    """Write the page of quarantined images, which may show identities; without any, remove it and return None."""
    path = catalogue.root / PAGE
    if not waiting:
        path.unlink(missing_ok=True)
        return None
    root = path.parent
    page = page_environment(Path(__file__).parent / "templates", "").get_template("quarantine.html.j2")
    shown = [
        {
            "name": one.image.id,
            "shown": _image(catalogue, one),
            "found": [
                f"{found.kind}: {found.text}" if found.text else f"a {found.kind}" for found in one.found
            ],
            "maskable": one.maskable,
        }
        for one in waiting[:MOST]
    ]
    write_page(
        path,
        page.render(waiting=waiting, shown=shown, command=partial(command_line, "run", "quarantine", root)),
        (),
    )
    return path


def _image(catalogue: Catalogue, waiting: Held) -> str:
    """Return the image with a red frame around every suspicion as a data URI, `SHOWN_PX` wide and high."""
    shown = decode(catalogue.read(waiting.image))
    for box in (suspicion.box for suspicion in waiting.found):
        cv2.rectangle(shown, (box.left - 3, box.top - 3), (box.right + 3, box.bottom + 3), _RED, 2)
    small = cv2.resize(shown, (SHOWN_PX, SHOWN_PX), interpolation=cv2.INTER_AREA)
    jpeg = compressed(".jpg", np.asarray(small, np.uint8), cv2.IMWRITE_JPEG_QUALITY, 85)
    jpeg = marked(jpeg) if waiting.image.synthetic else jpeg
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
