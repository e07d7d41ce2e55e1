"""The page of what differs from run to run."""

from __future__ import annotations

import re
from pathlib import Path

from plantain.report.page import write_report
from report.run_on_paper import build_run


def test_telemetry_has_a_page_and_the_report_only_names_it(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run")
    report = write_report(run, tmp_path / "report.html").read_text(encoding="utf-8")
    page = (tmp_path / "report.telemetry.html").read_text(encoding="utf-8")
    assert 'href="report.telemetry.html"' in report
    assert "Calls and cost" in page
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", page.partition("<main>")[2])
