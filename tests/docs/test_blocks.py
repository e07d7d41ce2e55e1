"""Every block of commands in README and on the site runs, offline, in a fresh folder, and says what its page says.

The tutorial comes first. The other pages find what it made: `catalogue`, `pilot.toml`, a run, a release, a benchmark.
README stands alone: it has a folder of its own, with pictures and nothing else.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from docs.blocks import (
    ROOT,
    Block,
    blocks,
    ids_in,
    inside,
    missing,
    parsed,
    perform,
    shape,
    walk,
    with_own_ids,
)
from docs.shapes import COMMANDS, KEPT, differences, shape_of, shapes
from plantain.offline.workers import close_workers

TUTORIAL = sorted((ROOT / "docs/tutorial").glob("[0-9]*.md"))
OTHERS = sorted(
    page
    for page in (ROOT / "docs").rglob("*.md")
    if page not in TUTORIAL and "generated" not in page.parts and "design" not in page.parts
)
"""Design pages are for reading: they show parts of files, not walks."""
README = ROOT / "README.md"


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk left: what is wrong on each page, and the shapes of what `--json` prints in its folder."""

    problems: dict[Path, list[str]]
    shapes: dict[str, dict[str, str]]


@pytest.fixture(scope="session")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    """The pages in one folder, in this order; README in another, where there are pictures and nothing else."""
    try:
        with inside(tmp_path_factory.mktemp("readme")):
            problems = walk((TUTORIAL[0], README))
        with inside(tmp_path_factory.mktemp("walk")):
            problems |= walk((*TUTORIAL, *OTHERS))
            return Walked(problems, shapes())
    finally:
        close_workers()


@pytest.mark.slow
@pytest.mark.parametrize("page", [*TUTORIAL, *OTHERS, README], ids=lambda page: str(page.relative_to(ROOT)))
def test_what_stands_on_a_page_runs(page: Path, walked: Walked) -> None:
    assert walked.problems[page] == []


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_json_has_the_shape_that_the_reference_says(command: str, walked: Walked) -> None:
    kept, found = json.loads(KEPT.read_text(encoding="utf-8"))[command], walked.shapes[command]
    assert differences(found, kept) == [], "`make shapes` writes them anew"


def test_what_was_empty_may_be_filled_and_nothing_else_may_differ() -> None:
    kept = {"ok": "true or false", "why": "list", "price": "null, number", "rows[].id": "text"}
    assert (
        differences(
            {"ok": "true or false", "why[]": "text", "price.low": "number", "rows[].id": "text"}, kept
        )
        == []
    )
    assert (
        differences({"ok": "true or false", "why": "list", "price": "null", "rows[].id": "text"}, kept) == []
    )
    assert differences({"ok": "text", "why": "list", "price": "number", "rows[].name": "text"}, kept) == [
        "ok",
        "rows[].id",
        "rows[].name",
    ]
    assert differences({**kept, "more": "number"}, kept) == ["more"]


def test_shapes_name_what_is_always_there_and_what_is_keyed_by_data() -> None:
    document = {
        "ok": True,
        "by_label": {"glioma": 2},
        "rows": [{"id": "a", "p": None}, {"id": "b", "p": 0.5}],
        "why": [],
    }
    assert shape_of(document) == {
        "ok": {"true or false"},
        "by_label.NAME": {"number"},
        "rows[].id": {"text"},
        "rows[].p": {"null", "number"},
        "why": {"list"},
    }


def test_a_block_is_read_with_its_comment(tmp_path: Path) -> None:
    page = ROOT / "docs/tutorial/1-pictures.md"
    assert [block.language for block in blocks(page)] == ["text", "python", "console"]
    text = "<!-- needs: a key -->\n```sh\nplantain models\n```\n"
    assert re.search("needs", text)


def test_output_is_compared_by_its_shape() -> None:
    said = "catalogue:  5 images\nOK: 43 files, 2.2 MB; release f4b4c3a1a016416e\n"
    assert (
        missing(["catalogue: 16 images", "...", "OK: 9 files, 13 MB; release 0123456789abcdef"], said) == []
    )
    assert missing(["OK: 43 files", "catalogue: 5 images"], said) == ["catalogue: 5 images"]  # in this order
    assert shape("cost $1,234.50, round 2") == "cost N round N"


def test_ids_that_a_page_shows_stand_for_those_of_the_run() -> None:
    shown = [
        "66b3abac427ad34c7c6b  success  1  add meningioma",
        "de8986bd6677a87a4f2c  success  1  add glioma",
    ]
    own = "0e1f" + 16 * "a" + "  success  2  add meningioma\n" + "1" + 19 * "b" + "  success  1  add glioma\n"
    ids = ids_in(shown, own)
    assert list(ids.values()) == ["0e1f" + 16 * "a", "1" + 19 * "b"]
    assert (
        with_own_ids("plantain show runs/x de89 --to t.html", ids)
        == f"plantain show runs/x {'1' + 19 * 'b'} --to t.html"
    )
    assert (
        with_own_ids("plantain show runs/x dead --to t.html", ids) == "plantain show runs/x dead --to t.html"
    )


def test_what_is_not_run_says_what_it_needs() -> None:
    """What a page shows runs, but for what needs a key, hardware, data or somebody who is not here."""
    needs = {block.needs for page in [*TUTORIAL, *OTHERS, README] for block in blocks(page)} - {""}
    assert needs == {
        "a cluster",
        "a key",
        "a key and ratings",
        "a minute, which tests/bench/test_bench_demo.py has",
        "a token of the Hub",
        "an installation",
        "data of yours",
        "somebody who stops it",
        "weights",
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("plantain bild pilot.toml", "no command 'bild'"),
        ("plantain build pilot.toml --rum runs/x", "plantain build: no option --rum"),
        ("plantain bench scor runs/bench", "no command 'scor'"),
        ("pip install -e '.[gemni]'", "no extra 'gemni'"),
        ("make demos", "no make target 'demos'"),
        ("curl example.org", "'curl' is no command that a page may show"),
    ],
)
def test_what_is_only_read_must_exist(line: str, problem: str) -> None:
    assert list(parsed(line)) == [problem]


def test_a_command_that_fails_is_a_problem(tmp_path: Path) -> None:
    with inside(tmp_path):
        (problem,) = perform(Block("page.md", 3, "console", "$ plantain plan nothing.toml\n"), {})
    assert problem.startswith("page.md:3: plantain plan nothing.toml: exit code 2")
