from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cffconvert.cli.create_citation import create_citation
from ruamel.yaml import YAML

from plantain.privacy.licences import decide_parts
from plantain.release.cards import citation
from release.facts import facts


def validate(path: Path) -> None:
    create_citation(str(path), None).validate()


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        'quo"ted: {',
        "- x\n- y",
        "ünïcode 你好",
    ],
)
def test_citation_stays_valid_whatever_names_hold(name: str, tmp_path: Path) -> None:
    sources = {
        name: {"licence": "open", "version": "v: 1", "images": 4},
        "more": {"licence": "unknown", "images": 1},
    }
    path = tmp_path / "CITATION.cff"
    path.write_text(
        citation(replace(facts(), name=name), decide_parts(sources, ""), sources), encoding="utf-8"
    )
    validate(path)
    told = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    assert told["title"].startswith(name) and told["type"] == "dataset"
    assert {reference["title"] for reference in told["references"]} >= {name, "more"}
