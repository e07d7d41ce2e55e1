"""`[loop] restore = "outside"` in a build: the kept, judged, frozen and released parts."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.quick import CallLog, judging, quick_method, quick_recipe
from plantain.journal import JournalReader, verify
from plantain.offline.editor import ProceduralEditor
from plantain.pipeline.recipe import Method, Recipe
from plantain.pipeline.run import run_build
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_png
from plantain.records import Attempt, InputError, TaskKind
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions
from plantain.release.proof.verify import verify_release
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply


class Redrawing:
    """The offline editor, whose answers come back a pixel to the side and brighter, as hosted editors' do."""

    name = "quick/editor"
    fingerprint = "1"

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        reply = await ProceduralEditor().edit(request)
        if reply.value is None:
            return reply
        pixels = np.roll(decode(reply.value.image.data), 1, axis=1).astype(np.int16) + 6
        data = encode_png(np.clip(pixels, 0, 255).astype(np.uint8))
        return replace(reply, value=EditedImage(EncodedImage(data, "image/png")))


def recipe_of(catalogue: Path, restore: str) -> Recipe:
    return quick_recipe(catalogue, findings=("AMD",), max_rounds=1, restore=restore)


@pytest.fixture(scope="module")
def run(one_image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("restore")
    judge = judging(True)
    method = replace(method_of("outside"), judges=(judge,))
    asyncio.run(run_build(recipe_of(one_image, "outside"), folder / "run", method=method))
    with JournalReader.open(folder / "run") as reader:
        assert verify(reader).ok
        seen = [reader.read_blob(one.edited) for one in edits(reader) if one.edited]
    assert [request.edited.data for request in judge.requests] == seen  # judged bytes are kept bytes
    return folder / "run"


def method_of(restore: str) -> Method:
    return replace(quick_method(CallLog(), max_rounds=1), editor=Redrawing(), restore=restore)


def edits(reader: JournalReader) -> list[Attempt]:
    rows = [row for row in reader.tasks() if row.task.kind is TaskKind.EDIT]
    return [attempt for row in rows for attempt in reader.attempts(row.id)]


def test_answer_restored_image_mask_share_and_residual_are_kept(run: Path) -> None:
    with JournalReader.open(run) as reader:
        (attempt,) = edits(reader)
        original = decode(
            reader.read_blob(reader.image(reader.task(attempt.task_id).task.image_id).prepared_sha256)
        )
        assert attempt.raw is not None and attempt.edited is not None and attempt.mask is not None
        answer, restored = decode(reader.read_blob(attempt.raw)), decode(reader.read_blob(attempt.edited))
        mask = decode(reader.read_blob(attempt.mask))[..., 0] > 0
        (score,) = [one for one in reader.scores(attempt.task_id) if one.metric == "restored"]
    assert np.abs(answer.astype(int) - original).mean() > 3
    assert np.abs(restored.astype(int) - original)[~mask].mean() < 1  # the JPEG
    assert score.score.value == pytest.approx(1 - mask.mean())
    assert score.score.value > 0.7
    assert score.detail["how"] == "outside 6"
    assert 0 <= float(str(score.detail["residual_px"])) < 0.3


def test_a_release_contains_the_restored_image_and_how_it_was_restored(run: Path, tmp_path: Path) -> None:
    export_run(run, tmp_path / "out", ExportOptions(("parquet",), licences=("CC-BY-4.0",)))
    assert verify_release(tmp_path / "out").ok
    lines = [path.read_text() for path in (tmp_path / "out").rglob("*.jsonl")]
    with JournalReader.open(run) as reader:
        (attempt,) = edits(reader)
    text = "".join(lines)
    assert attempt.edited is not None and attempt.edited != attempt.raw
    assert attempt.edited in text and "residual_px" in text


def test_a_run_keeps_its_setting(one_image: Path, run: Path) -> None:
    off = recipe_of(one_image, "none")
    with JournalReader.open(run) as reader:
        assert json.loads(reader.meta("method") or "")["restore"] == "outside 6"
    with pytest.raises(InputError, match="restore"):
        asyncio.run(run_build(off, run, method=method_of("none")))
