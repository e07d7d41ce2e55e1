"""A judge's card as one self-contained HTML page and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment

from plantain.audit.gate import thresholds
from plantain.pages.publishing import page_environment, write_page
from plantain.pages.wording import DASH
from plantain.records import Figure, JudgeCard
from plantain.records.counts import counted

TEMPLATES = Path(__file__).parent / "templates"

MEANINGS = {
    "controls": "How often an edit of that kind was accepted; right edits first.",
    "defects": "How often every criterion that a planted defect violates failed.",
    "repeats": "The same edit judged twice: share of identical answers, and agreement beyond chance per criterion.",
    "agreement": "Agreement beyond chance with other judges, and with readers where a study was given.",
    "drift": "Clean edits accepted, by served model and day.",
}


def write_card_pages(folder: Path, card: JudgeCard) -> Path:
    """Write `card.html` and `card.md` into a folder and return the page's path."""
    page, template = folder / "card.html", _environment().get_template("card.html.j2")
    write_page(page, template.render(card=card, tables=list(_tables(card)), limits=thresholds()))
    write_page(folder / "card.md", markdown(card))
    return page


def markdown(card: JudgeCard) -> str:
    """Return the card as Markdown."""
    lines = [f"# Card of {_cell(card.judge)}", "", f"**{card.gate.standing}**", "", _cell(card.line), ""]
    lines += [f"- {_cell(reason)}" for reason in card.gate.why]
    pictures = ", ".join(f"{n} of {modality}" for modality, n in card.pictures.items()) or "none"
    judged = f"{counted(card.verdicts, 'verdict')}, {card.unanswered} unanswered."
    lines += ["", f"Independent pictures: {pictures} ({_cell(card.set)}). {judged}"]
    lines += [f"Rubric {card.rubric}; fingerprint `{_cell(card.fingerprint)}`; cost {_cost(card)}.", ""]
    for title, meaning, rows in _tables(card):
        lines += [f"## {title}", "", meaning, "", "| | value | 95 % interval | n | pictures |"]
        lines.append("|---|---:|---|---:|---:|")
        lines += [
            f"| {_cell(name)} | {in_words(f)} | {between(f)} | {f.n} | {f.pictures} |" for name, f in rows
        ]
        lines.append("")
    if card.left_out:
        reasons = [f"- {counted(n, 'time')}: {_cell(why)}" for why, n in card.left_out.items()]
        lines += ["## Left out", "", *reasons, ""]
    return "\n".join(lines)


def _tables(card: JudgeCard) -> Iterator[tuple[str, str, list[tuple[str, Figure]]]]:
    gaps = []
    for modality, own in card.gaps.items():
        for criterion, figure in own.items():
            standing = card.gate.cells.get(modality, {}).get(criterion, "")
            gaps.append((f"{modality}, {criterion.replace('_', ' ')}: {standing}", figure))
    if gaps:
        meaning = "By modality and criterion, and what follows. The gate tests the lower bound."
        yield "Right minus wrong", meaning, gaps
    for name, meaning in MEANINGS.items():
        if rows := list(getattr(card, name).items()):
            yield name.capitalize(), meaning, rows


def in_words(figure: Figure) -> str:
    """Return the value: shares and gaps in per cent, coefficients as they are."""
    if figure.value is None:
        return figure.reason or DASH
    if figure.kind == "gap":
        return f"{100 * figure.value:+z.0f} points"
    return f"{100 * figure.value:z.0f} %" if figure.kind == "rate" else f"{figure.value:z.2f}"


def between(figure: Figure) -> str:
    """Return the interval, in the same unit."""
    if figure.low is None or figure.high is None:
        return DASH
    if figure.kind in ("rate", "gap"):
        return f"{100 * figure.low:z.0f} to {100 * figure.high:z.0f}"
    return f"{figure.low:z.2f} to {figure.high:z.2f}"


def _cost(card: JudgeCard) -> str:
    cost = "unknown" if card.cost_usd is None else f"{card.cost_usd:z.2f} USD"
    return cost if card.seconds is None else f"{cost}, {card.seconds:z.1f} s a verdict"


def _cell(text: str) -> str:
    """Escape untrusted text for Markdown: no column, no line break, no tag."""
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = page_environment(TEMPLATES, "")
    environment.filters |= {"in_words": in_words, "between": between, "cost": _cost}
    return environment
