"""Pictures of how limits moved, and the page that holds them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from plantain.journal import SessionRow
from plantain.report.limits import limit_pictures
from plantain.report.page import write_report
from report.run_on_paper import build_run

CHANGES = [
    [0.5, "window", 5, "grown"],
    [2.0, "window", 9, "grown"],
    [30.0, "requests_per_minute", 590.0, "refused"],
    [62.0, "requests_per_minute", 600.0, "raised"],
    [90.0, "window", 6, "refused"],
]


def session(number: int, **limits: object) -> SessionRow:
    detail = json.loads(json.dumps({"limits": limits}))
    return SessionRow(number, 1, "host", "2026-05-01T10:00:00.000", None, 0, None, detail)


def told(changes: object) -> dict[str, object]:
    return {"granted": 700, "accepted": 690, "rate_limited": 3, "changes": changes}


def test_one_picture_for_each_model_whose_limits_moved_latest_process_first() -> None:
    pictures = limit_pictures(
        [session(1, b=told(CHANGES), a=told(CHANGES)), session(2, quiet=told([]), a=told(CHANGES[:2]))]
    )
    assert [picture.model for picture in pictures] == ["a", "a", "b"]
    assert (pictures[0].granted, pictures[0].accepted, pictures[0].limited) == (700, 690, 3)
    assert "calls in flight" in pictures[0].svg and "requests a minute" not in pictures[0].svg
    assert "calls in flight" in pictures[1].svg and "requests a minute" in pictures[1].svg
    ids = [name for picture in pictures for name in re.findall(r'\bid="([^"]+)"', picture.svg)]
    assert len(ids) == len(set(ids))


def test_what_an_older_journal_or_another_hand_wrote_is_passed_over() -> None:
    assert limit_pictures([session(1)]) == []
    assert (
        limit_pictures([session(1, a=3, b={"changes": "none"}, c=told([[1, "weather", 2, "x"], ["late"]]))])
        == []
    )


def test_telemetry_has_a_page_and_the_report_only_names_it(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run")
    report = write_report(run, tmp_path / "report.html").read_text(encoding="utf-8")
    page = (tmp_path / "report.telemetry.html").read_text(encoding="utf-8")
    assert 'href="report.telemetry.html"' in report
    assert "Calls and cost" in page
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", page.partition("<main>")[2])
