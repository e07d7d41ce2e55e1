"""Wordings of a judge's prompts, and the judges that ask by them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from plantain.audit.jury import Jury, jury_of
from plantain.records import InputError, Rubric
from plantain.records.suggestions import suggest
from plantain.runs.door import Door
from plantain.runs.settings.terms import Terms

SHIPPED = "shipped"


@dataclass(frozen=True, slots=True)
class Wording:
    """One set of prompts: ours, or a folder's over ours."""

    name: str
    folder: Path | None


def wording_of(name: str) -> Wording:
    """The prompts that somebody named. Raises InputError where there are none."""
    if name == SHIPPED:
        return Wording(name, None)
    folder = Path(name)
    if folder.is_dir():
        return Wording(name, folder)
    hint = suggest(name, (SHIPPED,), otherwise=f"name a folder of prompts, or {SHIPPED}")
    raise InputError(f"prompts {name!r}: no such folder; {hint}")


def juries_of(
    door: Door,
    judge: str,
    rubric: Rubric,
    wordings: tuple[Wording, Wording],
    missing: list[str] | None = None,
) -> list[Jury]:
    """The judge under either wording. Raises InputError where it would be asked in the same words."""
    juries = [
        jury_of(
            door,
            judge,
            rubric,
            wording.folder,
            f"{judge}, prompts {wording.name}",
            missing=missing,
        )
        for wording in wordings
    ]
    if juries[0].fingerprint == juries[1].fingerprint:
        first, second = (wording.name for wording in wordings)
        raise InputError(
            f"{first} and {second} ask {judge} in the same words: they differ in no prompt that it reads"
        )
    return juries


def without_prompts(terms: Terms) -> Terms:
    """The terms without prompts of their own: those to be compared are named."""
    sections = {
        name: section.model_copy(update={"prompts": None}) for name, section in terms.providers.items()
    }
    return replace(terms, providers=sections)
