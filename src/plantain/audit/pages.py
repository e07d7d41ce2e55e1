"""A judge's card, and flips between judges, as self-contained HTML pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from jinja2 import Environment

from plantain.audit.flips import Record
from plantain.audit.gate import ACCEPTED, IDENTICAL, UNEDITED, thresholds
from plantain.audit.trials import Trial
from plantain.journal import BadBlob, JournalReader
from plantain.journal.cards import cards_of, standing_of
from plantain.journal.questions.tasks import images_used
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.pages.thumbnails import box_around, changed_region, data_uri
from plantain.pages.wording import DASH
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage, decode, decode_untrusted
from plantain.records import Figure, JudgeCard
from plantain.rubrics import recorded

TEMPLATES = Path(__file__).parent / "templates"
SIDE, LIMIT = 224, 14_000
"""Longest side of a thumbnail in pixels, and bytes that it may take."""

EXAMPLE = 176
"""Longest side of an image in a card's table."""

MEANINGS = {
    "defects": "How often every criterion that a planted defect violates failed.",
    "controls": "How often an edit of that kind was accepted; right edits first.",
    "repeats": "Consistency study (Med-Banana-50K, 4.3; there 87.2 % identical, the others one "
    "dimension apart): the same edit judged twice.",
    "agreement": "Agreement beyond chance with the readers of a study.",
}


def write_card_page(
    folder: Path, card: JudgeCard, examples: Mapping[str, Trial] = MappingProxyType({})
) -> Path:
    """Write `card.html` into a folder and return its path.

    Args:
        folder: folder for the page.
        card: the judge's card.
        examples: an edit of each kind, shown with the kind's results if it differs visibly from the original.
    """
    page, template = folder / "card.html", _environment().get_template("card.html.j2")
    images = {
        kind: _around_change(
            decode(one.original), decode(one.edited), one.recipe.source.image.synthetic, EXAMPLE
        )
        for kind, one in sorted(examples.items())
        if kind.split()[0] not in (IDENTICAL, UNEDITED, ACCEPTED)
    }
    shows = [(one.recipe.source.image.dataset, one.recipe.source.image.licence) for one in examples.values()]
    tables = list(_tables(card))
    write_page(page, template.render(card=card, tables=tables, limits=thresholds(), images=images), shows)
    return page


def _around_change(before: Pixels, after: Pixels, synthetic: bool, side: int) -> list[str]:
    """Return the original and the edit around the change, as data URIs; `synthetic` is the original."""
    both = [before, after]
    if before.shape == after.shape:
        both = list(map(box_around(changed_region(before, after)).cut, both))
    return [
        data_uri(one, side, LIMIT, synthetic=mark) for one, mark in zip(both, (synthetic, True), strict=True)
    ]


def _tables(card: JudgeCard) -> Iterator[tuple[str, str, list[tuple[str, Figure]]]]:
    for name, meaning in MEANINGS.items():
        if rows := list(getattr(card, name).items()):
            yield name.capitalize(), meaning, rows
    gaps = []
    for modality, own in card.gaps.items():
        for criterion, figure in own.items():
            gaps.append((f"{modality}, {criterion.replace('_', ' ')}", figure))
    if gaps:
        meaning = "By modality and criterion. The gate tests the lower bound over all modalities."
        yield "Right minus wrong", meaning, gaps


def in_words(figure: Figure) -> str:
    """Format a figure's value as "80 %", "+12 points" or "0.61"; without a value, its reason or a dash."""
    if figure.value is None:
        return figure.reason or DASH
    if figure.kind == "gap":
        return f"{100 * figure.value:+z.0f} points"
    return f"{100 * figure.value:z.0f} %" if figure.kind == "rate" else f"{figure.value:z.2f}"


def between(figure: Figure) -> str:
    """Format a figure's interval in the unit of `in_words`; a dash without an interval."""
    if figure.low is None or figure.high is None:
        return DASH
    if figure.kind in ("rate", "gap"):
        return f"{100 * figure.low:z.0f} to {100 * figure.high:z.0f}"
    return f"{figure.low:z.2f} to {figure.high:z.2f}"


def _cost(card: JudgeCard) -> str:
    cost = "unknown" if card.cost_usd is None else f"{card.cost_usd:z.2f} USD"
    return cost if card.seconds is None else f"{cost}, {card.seconds:z.1f} s a verdict"


def write_rejudged(
    reader: JournalReader,
    tallies: Sequence[Record],
    flips: Sequence[Record],
    to: Path | None = None,
    studies: Sequence[Record] = (),
) -> Path:
    """Write the page that compares judges, and return its path.

    Args:
        reader: journal of the run.
        tallies: counts by judge, from `flips.tallies`.
        flips: differences between judges, from `flips.flips`.
        to: the HTML file; default: `rejudged.html` in the run.
        studies: consistency of repeated verdicts, from `flips.consistency`.
    """
    target = html_target(to if to is not None else reader.run / "rejudged.html")
    cards, rubric = cards_of(reader.run), recorded(reader.header.frozen).name
    names = [str(one["judge"]) for one in tallies]
    lines = [standing_of(cards, name, rubric).line for name in names if "/" in name and " " not in name]

    def pair(original: str, edited: str, synthetic: bool) -> list[str]:
        """Return both images around the change as data URIs; nothing if one is not in the run."""
        try:
            before, after = (decode_untrusted(reader.read_blob(sha), sha) for sha in (original, edited))
        except (BadBlob, BadImage):
            return []
        return _around_change(before, after, synthetic, SIDE)

    values = {"tallies": tallies, "lines": lines, "flips": flips, "studies": studies, "pair": pair}
    page = _environment().get_template("rejudged.html.j2").render(name=reader.header.name, **values)
    write_page(target, page, [(used.dataset, used.licence) for used in images_used(reader)])
    return target


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = page_environment(TEMPLATES, "")
    environment.filters |= {"in_words": in_words, "between": between, "cost": _cost}
    return environment
