"""The files of rubrics and findings, from the records that they become."""

from __future__ import annotations

import dataclasses
import re
import typing
from pathlib import Path

from plantain.findings import load_taxonomy
from plantain.findings.taxonomy import BUILT_IN
from plantain.records import Asked, Differential, Finding, Rubric, RubricCriterion, Visibility
from plantain.rubrics import MED_BANANA
from reference_from_code.keys import type_name
from reference_from_code.markdown import cell, code, table
from reference_from_code.meanings import meanings


def rows(record: type) -> list[list[str]]:
    """Name, type, default and meaning of every field of a record."""
    hints = typing.get_type_hints(record)
    return [
        [
            code(field.name),
            cell(type_name(hints[field.name])),
            _default(field),
            cell(meanings(record).get(field.name, "")),
        ]
        for field in dataclasses.fields(record)
    ]


def _default(field: dataclasses.Field[object]) -> str:
    if field.default is not dataclasses.MISSING:
        empty = field.default is None or field.default == () or field.default == ""
        return "" if empty or dataclasses.is_dataclass(field.default) else code(str(field.default))
    return "" if field.default_factory is not dataclasses.MISSING else "required"


def _keys(title: str, record: type) -> str:
    return f"## {title}\n\n" + table(["key", "type", "default", "meaning"], rows(record))


def rubric_page() -> str:
    """The page of the rubric file, with ours as the example."""
    return "\n".join(
        [
            "# Rubric file\n",
            "A rubric is a TOML file: criteria that pass or fail or have a scale, codes for what went "
            "wrong, facts, and the policy that "
            'makes a verdict of them. A recipe names one by `rubric = "own.toml"`. How to write one: '
            "[a rubric of your own](../../how-to/write-a-rubric.md).\n",
            _keys("At the top", Rubric),
            _keys("`[[criteria]]`", RubricCriterion),
            _keys("`[asked]`", Asked),
            f"## Example\n\nThe rubric of builds, `{MED_BANANA.name}`:\n",
            "```{literalinclude} /../src/plantain/rubrics/med_banana.toml\n:language: toml\n```\n",
        ]
    )


def finding_page() -> str:
    """The page of the finding file, with what comes along."""
    taxonomy = load_taxonomy()
    listed = [
        [code(modality), cell(finding.name), cell(finding.title), cell(finding.anatomy)]
        for modality in taxonomy.modalities
        for finding in taxonomy.targets(modality, optional=True)
    ]
    return "\n".join(
        [
            "# Finding file\n",
            "A finding file is a TOML file with `modality`, `title` (of the modality) and one `[[finding]]` "
            "for each. `--findings FILE` "
            "of a command and `finding_files` of a recipe take it. It extends a modality or adds a new "
            "one with its normal class. "
            "No finding is ever redefined.\n",
            _keys("`[[finding]]`", Finding),
            _keys("`[finding.visibility]`", Visibility),
            _keys("`[[finding.differentials]]`", Differential),
            "## Findings that come along\n\nWritten by non-clinicians from named works; no clinician has "
            "read them yet.\n",
            table(["modality", "finding", "title", "where"], listed),
            f"## Example\n\nThe first findings of `{BUILT_IN[-1].name}`:\n",
            f"```{{literalinclude}} /../src/plantain/findings/{BUILT_IN[-1].name}\n:language: "
            f"toml\n:end-before: 'name = \"Cataract\"'\n```\n",
        ]
    )


EXAMPLES = Path(__file__).parents[1] / "images/findings"
"""Examples of edits, made by `make gallery`."""


def example_name(finding: Finding, direction: str) -> str:
    """The file name of a finding's example, e.g. "chest_xray-pleural-effusion-add.jpg"."""
    return f"{finding.modality}-{re.sub(r'[^a-z]+', '-', finding.name.lower())}-{direction}.jpg"


def examples_page() -> str:
    """The page that shows every finding added and, where the offline editor can do it, removed."""
    taxonomy = load_taxonomy()
    parts = [
        "# Every finding\n",
        "Each pair shows an image before and after an edit by `offline/procedural`, around the change. All findings "
        "are synthetic, drawn by rules without a learned model. For a removal, the finding was drawn first. Of six "
        "drawings, the first that the offline judge accepts is shown, if any. A finding without a removal has none: "
        "[limits](../../concepts/offline-models.md). No clinician has reviewed them yet.\n",
    ]
    for modality in taxonomy.modalities:
        parts.append(f"## {taxonomy.titles[modality]}\n")
        for finding in taxonomy.targets(modality, optional=True):
            shown = [
                f":::{{figure}} ../../images/findings/{path.name}\n:alt: {finding.title}, {word}: before and after\n"
                f":figclass: pair\n\n{word.capitalize()}\n:::\n"
                for direction, word in (("add", "added"), ("remove", "removed"))
                if (path := EXAMPLES / example_name(finding, direction)).exists()
            ]
            name, signs = f"{finding.title[:1].upper()}{finding.title[1:]}", "; ".join(finding.signs)
            parts += [f"### {name}\n", f"`{finding.name}`: {cell(signs)}.\n"]
            parts += shown
    return "\n".join(parts)
