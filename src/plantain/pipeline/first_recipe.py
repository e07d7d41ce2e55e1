"""A first recipe that fits a catalogue: a small pilot, every choice with a comment on its alternatives."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import islice
from pathlib import Path

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy
from plantain.models.registry import endings, known_models
from plantain.pipeline.plan import candidates, chosen_findings
from plantain.pipeline.recipe import NAME, Data, Recipe
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import Direction, InputError
from plantain.records.messages import command_line, counted

PILOT = 2
"""Tasks of each finding and direction: enough to look at, cheap enough to try."""

_COUNTED = 10_000


def first_recipe(
    catalogue: Catalogue, file: Path, taxonomy: Taxonomy, finding_files: Sequence[Path] = (), *, day: date
) -> str:
    """Return a first recipe for a catalogue as TOML; `load_recipe` accepts it, and it calls no hosted model.

    Args:
        catalogue: the images.
        file: path at which the text will be saved; paths in the recipe are relative to its folder.
        taxonomy: the findings that can be edited, including those of `finding_files`.
        finding_files: the user's files of findings, which the recipe will name.
        day: today; hosted models that are shut down within 60 days of it are not proposed.

    Raises:
        InputError: the catalogue has no image that could be edited.
    """
    here = file.absolute().parent
    for add_to in ("normal", "any"):
        usable = _usable(catalogue, taxonomy, add_to)
        if usable:
            break
    else:
        raise InputError(
            f"{catalogue.root}: {'' if len(catalogue) else 'is empty: '}"
            f"no image to which a finding could be added or from which one could be removed; "
            f"`{command_line('findings')}` lists the known labels, "
            f"`{command_line('run', 'quarantine', catalogue.root)}` the quarantined images"
        )
    name = file.stem if re.fullmatch(NAME, file.stem) else "pilot"  # `plan` names the run's folder by it
    lines = [
        f"# A first recipe for {counted(len(catalogue), 'image')}: {_tally(catalogue.count_by('modality'))}.",
        f"# Before anything is called: {command_line('plan', file)}",
        f"# Then: {command_line('build', file, '--run', f'runs/{name}')}",
        "",
        f"name = {_quoted(name)}",
        "seed = 0                       # another seed draws other images, places and sizes",
        "",
        "[data]",
        f"catalogue = {_quoted(_relative(catalogue.root, here))}",
        "findings = [",
        *(
            f"    {_quoted(name) + ',':<32} # add to {_number(add)}, remove from {_number(remove)}"
            for name, (add, remove) in usable.items()
        ),
        "]",
        *_file_lines(finding_files, here),
        f"per_finding = {PILOT}                # tasks of each finding and direction; without this line: all",
        f'add_to = "{add_to}"              # "normal": only images labelled so; "any": all without the finding',
        *_consent_lines(catalogue),
        "",
        "[models]                       # offline models need no key, no GPU and no network",
        'writer = "offline/templates"',
        'editor = "offline/procedural"',
        'judge = "offline/instruments"',
        *_hosted_lines(day),
        "",
        "[loop]",
        "max_rounds = 5                 # rounds per task; a failed edit is refined with its history (5: the paper)",
        'policy = "all-pass"            # or "weighted", with threshold = 0.7',
        "",
        "[limits]",
        "concurrency = 8                # calls in flight to each model",
        "# budget_usd = 5.0             # the run stops before it would cost more, and resumes when this is raised",
        "",
    ]
    return "\n".join(lines)


def _usable(catalogue: Catalogue, taxonomy: Taxonomy, add_to: str) -> dict[str, tuple[int, int]]:
    """Findings with the images that each can be added to and removed from, counted up to ten thousand."""
    data = Data.model_validate({"catalogue": catalogue.root, "add_to": add_to})
    recipe = Recipe(name="pilot", data=data)
    counts = {}
    for finding in chosen_findings(recipe, catalogue, taxonomy):
        add, remove = (
            sum(1 for _ in islice(candidates(recipe, catalogue, taxonomy, finding, way), _COUNTED))
            for way in (Direction.ADD, Direction.REMOVE)
        )
        if add or remove:
            counts[finding.name] = add, remove
    return counts


def _file_lines(files: Iterable[Path], here: Path) -> Iterator[str]:
    named = ", ".join(_quoted(_relative(file, here)) for file in files)
    if named:
        yield f"finding_files = [{named}]"


def _consent_lines(catalogue: Catalogue) -> Iterator[str]:
    licences = catalogue.count_by("licence")
    closed = sorted(set(licences) - {licence.value for licence in FREE_TO_LEAVE})
    if not closed:
        yield f"# Licences: {_tally(licences)}. All of them may be sent to hosted models."
        return
    yield f"# Licences: {_tally(licences)}. Images that are {' or '.join(closed)} stay on this machine, unless"
    yield "# their owner allows hosted models, by name:"
    yield "# [data.consent]"
    yield '# by = "who decided"'
    yield '# agreement = "the agreement and its number"'


def _hosted_lines(day: date) -> Iterator[str]:
    yield "# Hosted ones send the images away and cost money (`plantain models` lists keys and prices):"
    for role in ("writer", "editor", "judge"):
        names = [
            name
            for name, row in known_models().items()
            if role in row.roles and row.price_on(day) is not None and not endings([name], day)
        ]
        first = [
            next((name for name in names if name.startswith(f"{one}/")), None) for one in ("gemini", "openai")
        ]
        named = [name for name in (first if role != "judge" else first[::-1]) if name]
        if named:
            others = f"   # or {', '.join(named[1:])}" if named[1:] else ""
            yield f"# {role} = {_quoted(named[0])}{others}"


def _tally(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _number(count: int) -> str:
    return f"{count:,} or more" if count >= _COUNTED else f"{count:,}"


def _relative(path: Path, here: Path) -> str:
    return os.path.relpath(path.absolute(), here).replace(os.sep, "/")


def _quoted(text: str) -> str:
    """A basic string of TOML, whatever the text contains."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in plain) + '"'
