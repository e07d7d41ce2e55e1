"""What was learned about pictures and edits, as pages: a probe's card, separability, utility."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import plantain.train as room
from plantain.models.probe.card import ProbeCard
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.train.finished import write_json
from plantain.train.probe.separability import Separability
from plantain.version import __version__

if TYPE_CHECKING:  # it needs torch
    from plantain.train.probe.utility import Utility

TEMPLATES = Path(room.__file__).parent / "templates"


def write_probe_page(card: ProbeCard, to: Path) -> Path:
    """Writes the page beside the probe and returns its path. Raises InputError where it cannot be written."""
    return _write("probe", to, card=card, rows={"held out": card.held_out, **card.areas_under})


def write_separability_page(found: Sequence[Separability], name: str, to: Path) -> Path:
    """Writes separability.html and separability.json; raises as `write_probe_page` does."""
    to.mkdir(parents=True, exist_ok=True)
    write_json(to / "separability.json", {"editors": [asdict(row) for row in found]})
    return _write("separability", to, found=found, name=name)


def write_utility_page(found: Utility, name: str, to: Path) -> Path:
    """Writes utility.html and utility.json; raises as `write_probe_page` does."""
    to.mkdir(parents=True, exist_ok=True)
    write_json(to / "utility.json", asdict(found))
    return _write("utility", to, found=found, name=name, findings=list(next(iter(found.areas.values()))))


def _write(page: str, to: Path, **context: object) -> Path:
    target = html_target(to / f"{page}.html")
    template = page_environment(TEMPLATES, "").get_template(f"{page}.html.j2")
    write_page(target, template.render(version=__version__, **context))
    return target
