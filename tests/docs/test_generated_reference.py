"""The generated reference is complete, compared with `--help`, the JSON schema and entry points."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from plantain.cli import COMMANDS, main
from plantain.findings import load_taxonomy
from plantain.models.registry import provider_names, settings_class
from plantain.pipeline.recipe import Recipe
from plantain.runs.settings_file import Settings

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def pages() -> Iterator[dict[str, str]]:
    sys.path.insert(0, str(DOCS))
    try:
        from reference_from_code import pages

        yield pages()
    finally:
        sys.path.remove(str(DOCS))


def helped(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*words, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_help_is_on_the_command_page(
    name: str, pages: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    page = pages[f"commands/{name}.md"]
    assert f"({name}.md)" in pages["commands/index.md"]
    text = helped([name], capsys)
    listed = text.partition("Commands")[2]
    inner = re.findall(r"^  ([a-z][\w-]*) {2,}", listed, flags=re.M)
    for words in [[name], *([name, one] for one in inner)]:
        assert f"# plantain {' '.join(words)}\n" in page
        options = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", helped(words, capsys), flags=re.M)) - {"--help"}
        assert [option for option in sorted(options) if not re.search(rf"`[^`]*{option}\b", page)] == []


def schema_keys(schema: dict[str, Any], part: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(title of the section, key) of everything in a JSON schema, references followed."""
    if "$ref" in part:
        part = schema["$defs"][part["$ref"].rpartition("/")[2]]
    for key, value in part.get("properties", {}).items():
        yield part["title"], key
        yield from schema_keys(schema, value)
    for value in (part.get("additionalProperties"), *part.get("anyOf", ()), *part.get("oneOf", ())):
        if isinstance(value, dict):
            yield from schema_keys(schema, value)


@pytest.mark.parametrize(("model", "page"), [(Recipe, "recipe.md"), (Settings, "settings-file.md")])
def test_every_key_has_type_and_meaning(model: type[Recipe], page: str, pages: dict[str, str]) -> None:
    schemas = [one.model_json_schema() for one in (model, *map(settings_class, provider_names()))]
    known = {key for schema in schemas for _, key in schema_keys(schema, schema)}
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*)$", pages[page], flags=re.M))
    sections = set(re.findall(r"[\w]+", " ".join(re.findall(r"^## `\[(.*)\]`$", pages[page], flags=re.M))))
    assert known - set(rows) - sections == set()
    empty = [
        key
        for key, row in re.findall(r"^\| `(\w+)` \| (.*) \|$", pages[page], flags=re.M)
        if not re.split(r" (?<!\\)\| ", row)[-1].strip() or row.startswith(" |")
    ]
    assert empty == [], (
        "say what these mean: name them in the section's docstring, or put a string below the field"
    )


@pytest.mark.parametrize("group", ["layouts", "metrics", "models", "rubrics", "sources"])
def test_every_registered_name_is_listed(group: str, pages: dict[str, str]) -> None:
    ours = {one.name for one in entry_points(group=f"plantain.{group}") if one.value.startswith("plantain.")}
    assert ours == set(re.findall(r"^\| `([\w-]+)` \|", pages[f"{group}.md"], flags=re.M))


def test_the_keys_of_rubric_and_finding_files_have_a_meaning(pages: dict[str, str]) -> None:
    for name in ("rubric-file.md", "finding-file.md"):
        rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", pages[name].partition("that come along")[0], flags=re.M)
        assert len(rows) > 10
        assert [key for key, row in rows if row.endswith("|")] == []


def test_page_of_findings_shows_every_drawable_finding(pages: dict[str, str]) -> None:
    shown = re.findall(r"findings/([\w-]+)-(add|remove)\.jpg\n:alt: \S", pages["every-finding.md"])
    names = {
        f"{one.modality}-{one.name.lower().replace(' ', '-')}" for one in load_taxonomy().findings if one.draw
    }
    assert {name for name, direction in shown if direction == "add"} == names
    # docs/concepts/offline-models.md: 2 tumours, 3 opacities, a lesion, 3 retinopathies, 2 borders and cataract
    assert len([direction for _, direction in shown if direction == "remove"]) == 12
