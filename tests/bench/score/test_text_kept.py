"""Text that a model draws is a number of the benchmark: in journal, table and page, and nothing is dropped."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from bench.small_bench import made, small_bench
from plantain.bench.benchmark.native_format import encode_png
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.score.score import ScoreRequest, open_metrics, score_run
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.metrics.metric import Networks
from plantain.pixels.decode import decode
from plantain.privacy import text
from plantain.privacy.rapid_text import open_reader, why_no_reader
from plantain.privacy.text import TextKept
from plantain.records import Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply

TEXT = "text_kept"


class Signer:
    """An editor that signs every other image."""

    name = "quick/signer"
    fingerprint = "1"

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        pixels = decode(request.original.data).copy()
        cv2.circle(pixels, (60, 200), 30, (150, 120, 90), -1)
        if request.image.id == "1":
            cv2.putText(pixels, "J. MARTIN 2024", (20, 60), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (250,) * 3, 2)
        return Reply(
            EditedImage(EncodedImage(encode_png(pixels), "image/png"), None, "global"),
            usage=Usage(served_model="quick/signer@1"),
        )


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if open_reader() is None:
        pytest.skip(why_no_reader())
    folder = tmp_path_factory.mktemp("signed")
    bench = small_bench(folder / "bench", 2, size=(360, 288))
    made(bench, folder / "run", ArmRequest(own={"quick/signer": Signer()}), seed=1)
    asyncio.run(score_run(folder / "run", bench, ScoreRequest(["psnr", TEXT], networks=Networks())))
    return folder


def test_drawn_text_is_reported_by_place_and_scored(scored: Path) -> None:
    with JournalReader.open(scored / "run") as reader:
        rows = {
            row.task.image_id: score
            for row in reader.tasks()
            if row.task.finding == "quick/signer"
            for score in reader.scores(row.id)
            if score.metric == TEXT
        }
    assert {image_id: row.score.value for image_id, row in rows.items()} == {"1": 0.0, "2": 1.0}
    (change,) = rows["1"].detail["changes"]
    assert str(change).startswith("text added at (")
    assert "MARTIN" not in str(rows["1"].detail)  # it may look like a real name
    assert rows["2"].detail["changes"] == []


def test_table_and_page_show_drawn_text(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "table", str(scored / "run"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    found = {row["model"]: row for row in rows if (row["metric"], row["organ"]) == (TEXT, "overall")}
    assert (found["quick/signer"]["mean"], found["quick/signer"]["n"]) == (0.5, 2)
    assert found["copy-input"]["mean"] == 1.0
    assert main(["bench", "table", str(scored / "run"), "--to", str(scored / "page")]) == 0
    page = next((scored / "page").glob("*.html")).read_text(encoding="utf-8")
    assert "share that left burned-in text alone and drew none" in page
    assert page.count("text drawn or changed") == 1


@pytest.mark.usefixtures("scored")
def test_another_reader_is_another_version() -> None:
    class Other:
        name = "another reader"

        def read(self, pixels: np.ndarray) -> tuple[text.Text, ...]:
            return ()

    (metric,) = open_metrics({TEXT}, Networks())[0]
    assert TextKept(Other()).version != metric.version
