"""Flips between judges, counted by hand, and a page with their pictures."""

from __future__ import annotations

import asyncio
from pathlib import Path

from audit.stored_run import RuleJudge, seen, stored_run
from plantain.audit.rejudging.flips import IN_RUN, judged_rows
from plantain.audit.rejudging.rejudge import RejudgeRequest, run_rejudge
from plantain.audit.rejudging.rejudge_page import write_rejudged
from plantain.audit.rejudging.table import JudgedTable
from plantain.journal import JournalReader
from plantain.runs.settings.terms import Terms


def test_flips_are_counted_for_every_two_judges_and_every_cell(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "run", images=2)
    amd = RuleJudge("rule/amd", lambda request: seen("AMD" in request.instruction))
    yes = RuleJudge("rule/yes", lambda request: seen(True))
    partly = RuleJudge("rule/partly", lambda request: seen(True, None, True, True))
    done = asyncio.run(run_rejudge(run, RejudgeRequest((amd, yes, partly)), Terms(())))
    with JournalReader.open(run) as reader:
        table = JudgedTable()
        for own in judged_rows(reader, done.seated, None):
            table.add(own)
        told, found = table.tallies(), table.flips()
        page = write_rejudged(reader, told, found, {}).read_text()
    by = {one.judge: one.as_json() for one in told}
    # 2 images x 2 findings x 2 rounds = 8 attempts; half of them ask for AMD; the run's own judge accepted none.
    assert (by["rule/amd"]["judged"], by["rule/amd"]["qualified"]) == (8, 4)
    assert (by["rule/partly"]["qualified"], by["rule/partly"]["unscored"]) == (0, 8)
    assert by[f"old/judge {IN_RUN}"]["qualified"] == 0
    whole = next(f for f in found if (f.first, f.second, f.finding) == ("rule/amd", "rule/yes", "all"))
    assert (whole.both, whole.first_only, whole.second_only, whole.neither) == (4, 0, 4, 0)
    assert whole.rate.n == 8 and whole.rate.value == 0.5 and whole.rate.clusters == 2
    cells = {
        f.finding: (f.both, f.second_only) for f in found if (f.first, f.second) == ("rule/amd", "rule/yes")
    }
    assert cells == {"all": (4, 4), "AMD": (4, 0), "Cataract": (0, 4)}
    assert len(whole.pictures) == 4 and all(
        row.finding == "Cataract" and not by_first for row, by_first in whole.pictures
    )
    # What is unscored flips with nobody.
    assert all(f.rate.n == 0 for f in found if "rule/partly" in (f.first, f.second))
    assert page.count("data:image/jpeg") >= 8 and "rule/amd: no card" in page
