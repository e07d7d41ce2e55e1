"""The page on the two papers, the names that pages import, and the tutorial's numbers agree with the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

import pytest
import yaml

from docs.blocks import ROOT, blocks, parsed
from plantain.metrics.statistics.means import ClusteredMeans

PAGE = ROOT / "docs/papers.md"
TEXT = PAGE.read_text(encoding="utf-8")
BANANA, BENCH = TEXT.split("## MedEBench")


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`(plantain [^`]+)`", TEXT))))
def test_every_command_of_the_tables_exists(command: str) -> None:
    assert list(parsed(command)) == []


def test_every_part_of_the_papers_is_named() -> None:
    # From the papers: Med-Banana-50K has sections 1 to 8, Tables 1 and 2, Figures 1 to 3; its scripts and files are
    # those of sections 5.1 and 5.3. MedEBench has sections 1 to 7, appendices A to H, Tables 1 to 7, Figures 1 to 13.
    names = (
        "add_disease remove_disease retry_failed make_assets",
        "all_conversations final_prompts progress",
    )
    for name in " ".join((*names, "api_failures failed_summary has_disease looks_realistic")).split():
        assert name in BANANA, name
    for text, last_figure, last_table in ((BANANA, 3, 2), (BENCH, 13, 7)):
        for kind, last in (("Figure", last_figure), ("Table", last_table)):
            numbers = " ".join(re.findall(rf"{kind}s? (\d+a?b?(?:(?:, | and )\d+)*)", text))
            assert set(range(1, last + 1)) == {int(number) for number in re.findall(r"\d+", numbers)}
    for appendix in "ABCDEFGH":
        assert re.search(rf"\b{appendix}(\.\d)?\b", BENCH), appendix


def test_page_is_short_and_linked_and_papers_are_cited() -> None:
    words = re.findall(r"\w[\w./-]*", re.sub(r"`[^`]*`|\(http\S+\)|```.*?```", " ", TEXT, flags=re.S))
    assert len(words) <= 700 and len([block for block in blocks(PAGE) if block.language == "sh"]) == 2
    assert (
        "docs/papers.md" in (ROOT / "README.md").read_text()
        and "(papers.md)" in (ROOT / "docs/index.md").read_text()
    )
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    assert [one["identifiers"][0]["value"] for one in cited] == ["arXiv:2511.00801", "arXiv:2506.01921"]


FILES = [path for kind in ("docs/**/*.md", "docs/**/*.ipynb", "examples/**/*.py") for path in ROOT.glob(kind)]
IMPORT = re.compile(r'^[\s"]*from (plantain[\w.]*) import ([\w, ]+)', re.M)
ENTRY = re.compile(r"^\.\. auto(\w+):: (\S+)\n(?:   :members: (.+))?", re.M)


def entries() -> Iterator[object]:
    """The objects that the two pages of the Python API describe."""
    pages = [(ROOT / f"docs/reference/{name}.md").read_text(encoding="utf-8") for name in ("api", "plug-ins")]
    for kind, path, members in ENTRY.findall("".join(pages)):
        module, name = (path, "") if kind == "module" else path.rsplit(".", 1)
        home = import_module(module)
        yield from (
            getattr(home, one)
            for one in ([name] if name else members.split(", ") if members else home.__all__)
        )


def test_every_imported_name_has_an_entry() -> None:
    found = [match for path in FILES for match in IMPORT.findall(path.read_text(encoding="utf-8"))]
    imported = {(module, name) for module, names in found for name in names.split(", ")}
    described = {id(one) for one in entries()}
    assert {("plantain.roles", "Reply"), ("plantain.sources.registry", "SourceKind")} <= imported
    assert [
        one for one in sorted(imported) if id(getattr(import_module(one[0]), one[1])) not in described
    ] == []


STATISTICS = ROOT / "docs/tutorial/7-leaderboard.md"


def row(start: str) -> list[float]:
    """Return the cells of the page's table row whose first cell starts with `start`."""
    (line,) = re.findall(rf"^\| {start}[^|]*\|(.*)\|$", STATISTICS.read_text(encoding="utf-8"), re.MULTILINE)
    return [float(cell) for cell in line.split("|")]


@pytest.mark.parametrize(("start", "pairs"), [("between two editors", 1), ("for a pair among seven", 21)])
def test_detectable_differences_on_the_page_equal_the_computed_ones(start: str, pairs: int) -> None:
    # 7 editors make 7 * 6 / 2 = 21 pairs.
    for patients, shown in zip(row("patients"), row(start), strict=True):
        found = ClusteredMeans(range(int(patients))).detectable(0.2, pairs=pairs)
        assert found == pytest.approx(shown, abs=0.005)
