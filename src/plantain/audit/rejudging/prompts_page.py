"""The page of a comparison of prompts: counts, agreement, cost, and every attempt that flips with its pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment

from plantain.audit.rejudging.prompts import ComparedAttempt, PromptComparison, changed
from plantain.journal import BlobStore
from plantain.pages.publishing import page_environment, write_page
from plantain.pages.thumbnails import data_uri
from plantain.pixels.decode import decode
from plantain.records import CriterionResult, Verdict
from plantain.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
SIDE, BYTES = 240, 30_000
"""Longest side of a picture on the page, and the bytes that it may take."""
MOST = 200
"""Flips that are shown; all of them stand in the JSON."""


@dataclass(frozen=True, slots=True)
class ShownFlip:
    """One attempt that one wording lets through and the other does not, as it is shown."""

    compared: ComparedAttempt
    original: str
    edited: str
    lines: tuple[tuple[str, str, str], ...]


def write_prompts_page(comparison: PromptComparison, run: Path, original_of: dict[str, str]) -> Path:
    """Writes `prompts.html` into the comparison's folder.

    Args:
        comparison: what came of it.
        run: the comparison's folder, which holds the pictures.
        original_of: hash of the original of each image id.
    """
    path = run / "prompts.html"
    flips = list(_flips(comparison, BlobStore(run / "blobs"), original_of))
    page = _environment().get_template("prompts.html.j2")
    write_page(
        path,
        page.render(
            comparison=comparison,
            names=_shown_names(comparison.names),
            qualified=comparison.qualified(),
            criteria=comparison.criteria(),
            flips=flips,
            flipped=sum(one.flips for one, _, _ in comparison.both),
            version=__version__,
        ),
    )
    return path


def _shown_names(names: tuple[str, str]) -> tuple[str, str]:
    """The two sets of prompts as the page calls them: a folder by its own name, not by where it lies, if that tells."""
    short = tuple(Path(name).name or name for name in names)
    return (short[0], short[1]) if short[0] != short[1] else names


def _flips(
    comparison: PromptComparison, blobs: BlobStore, original_of: dict[str, str]
) -> Iterator[ShownFlip]:
    flipped = [one for one in comparison.both if one[0].flips]
    for one, first, second in flipped[:MOST]:
        yield ShownFlip(
            one,
            _picture(blobs, original_of.get(one.stored.task.image_id, ""), synthetic=False),
            _picture(blobs, one.stored.attempt.edited or "", synthetic=True),
            tuple(_lines(first, second)),
        )


def _lines(first: Verdict, second: Verdict) -> Iterator[tuple[str, str, str]]:
    for name in map(str, changed(first, second)):
        pair = (verdict.observations.criteria[name] for verdict in (first, second))
        ours, theirs = (_describe(result) for result in pair)
        yield name.replace("_", " "), ours, theirs


def _describe(result: CriterionResult) -> str:
    mark = {True: "passed", False: "failed", None: "unscored"}[result.passed]
    codes = f" ({', '.join(result.codes)})" if result.codes else ""
    return f"{mark}{codes}. {result.evidence}".strip()


def _picture(blobs: BlobStore, sha256: str, *, synthetic: bool) -> str:
    if not sha256 or not blobs.path(sha256).exists():
        return ""
    return data_uri(decode(blobs.read(sha256)), SIDE, BYTES, synthetic=synthetic)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return page_environment(TEMPLATES, "")
