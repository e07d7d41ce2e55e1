"""The page on the two papers: its commands exist, and it misses no table, figure, section, script or file of theirs."""

from __future__ import annotations

import re

import pytest
import yaml

from docs.blocks import ROOT, blocks, parsed

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
        for what, last in (("Figure", last_figure), ("Table", last_table)):
            said = " ".join(re.findall(rf"{what}s? (\d+a?b?(?:(?:, | and )\d+)*)", text))
            assert set(range(1, last + 1)) == {int(number) for number in re.findall(r"\d+", said)}
    for appendix in "ABCDEFGH":
        assert re.search(rf"\b{appendix}(\.\d)?\b", BENCH), appendix


def test_the_page_is_short_and_linked_and_the_papers_are_cited() -> None:
    words = re.findall(r"\w[\w./-]*", re.sub(r"`[^`]*`|\(http\S+\)|```.*?```", " ", TEXT, flags=re.S))
    assert len(words) <= 700 and len([block for block in blocks(PAGE) if block.language == "sh"]) == 2
    assert (
        "docs/papers.md" in (ROOT / "README.md").read_text()
        and "(papers.md)" in (ROOT / "docs/index.md").read_text()
    )
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    assert [one["identifiers"][0]["value"] for one in cited] == ["arXiv:2511.00801", "arXiv:2506.01921"]
