"""The demo as a user runs it: killed half way, started again, opened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plantain.journal import JournalReader, verify
from plantain.records import BUILD_DIRECTIONS, TaskState


@pytest.mark.slow
def test_demo_killed_half_way_resumes_and_writes_a_page(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    command = [sys.executable, "-m", "plantain", "demo", str(folder), "--json"]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    closed = 0
    while first.poll() is None and closed < 8:
        time.sleep(0.2)
        closed = closed_tasks(folder / "run")
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert closed >= 8
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["tasks"]["total"] >= 30 and data["tasks"]["pending"] == 0
    assert data["modalities"] == ["brain_mri", "chest_xray", "fundus"]
    assert data["tasks"]["success"] >= 15 and data["tasks"]["failed"] >= 1
    assert sum(n for number, n in data["rounds"].items() if number != "1") >= 1, (
        "none succeeded after round 1"
    )
    page = Path(data["report"]).read_text(encoding="utf-8")
    # Four patients' images are too few for any judge; the blob's rate is shown next to the judge's own.
    (card,) = data["cards"]
    assert card["gate"]["standing"] == "neither" and card["gate"]["why"][0].startswith("n = ")
    assert card["controls"]["blob"]["n"] == 4 and card["controls"]["clean edit"]["rate"] > 0.5
    assert card["line"].split(";")[0] in page and "edits that only draw a blob" in page
    assert "Qualified (judge not validated)" in page
    assert "that plantain rendered" in page and "instrument, not an expert" in page
    with JournalReader.open(folder / "run") as reader:
        assert verify(reader).ok
        rows = list(reader.tasks())
        assert len({row.task.image_id for row in rows}) >= 6
        assert {row.task.direction for row in rows} == set(BUILD_DIRECTIONS)
        answered = [call for row in rows for call in reader.calls(row.task.id) if call.final]
        assert len({call.key for call in answered}) == len(answered)


def closed_tasks(run: Path) -> int:
    if not (run / "journal.sqlite").exists():
        return 0
    with JournalReader.open(run) as reader:
        counts = reader.counts()
    return sum(n for state, n in counts.items() if state is not TaskState.PENDING)
