"""A probe's card as one page."""

from __future__ import annotations

from pathlib import Path

import plantain.train as room
from plantain.models.probe.card import ProbeCard
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.version import __version__

TEMPLATES = Path(room.__file__).parent / "templates"
PAGE = "probe.html"


def write_probe_page(card: ProbeCard, to: Path) -> Path:
    """Writes the page beside the probe and returns its path. Raises InputError where it cannot be written."""
    target = html_target(to / PAGE)
    rows = {"held out": card.held_out, **card.areas_under}
    template = page_environment(TEMPLATES, "").get_template("probe.html.j2")
    write_page(target, template.render(card=card, rows=rows, version=__version__))
    return target
