"""`process/NAME` with a real second process: its edits, and every way in which it can fail."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import cv2
import numpy as np
import psutil
import pytest

from fakes.caller import resolve_editor
from plantain.engines.contract import engine_in_place
from plantain.engines.local import LocalEngine
from plantain.models.process.editor import ProcessEditor
from plantain.models.process.provider import Settings, WorkerCommand
from plantain.pixels.decode import decode, pixel_sha256
from plantain.pixels.encode import encode_mask, normalise
from plantain.records import Direction, Geometry, Licence, Outcome, OutcomeKind, SourceImage
from plantain.roles import EditedImage, EditRequest, EncodedImage, NormalForm, Reply

WORKER = Path(__file__).parents[2] / "fakes" / "process_worker.py"
IMAGE = SourceImage("x", "d", "fundus", (), Licence.OPEN, "a", "b", Geometry(64, 64, "pad", 0, 0, 64, 64))


def command(timeout_s: float = 60.0, **settings: str | int | float | bool) -> WorkerCommand:
    return WorkerCommand(command=(sys.executable, "-I", str(WORKER)), timeout_s=timeout_s, settings=settings)


def open_editor(name: str = "process/mine", worker: str = "mine", **settings: object) -> ProcessEditor:
    options = Settings(workers={worker: command(**settings)})  # type: ignore[arg-type]
    editor = resolve_editor(name, options)
    assert isinstance(editor, ProcessEditor)
    return editor


def request(seed: int = 0, width: int = 65, height: int = 101, **changes: object) -> EditRequest:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    data = cv2.imencode(".png", pixels[:, :, ::-1])[1].tobytes()
    return EditRequest(IMAGE, EncodedImage(data, "image/png"), f"Edit {seed}", seed, **changes)  # type: ignore[arg-type]


def edit_all(editor: ProcessEditor, *requests: EditRequest) -> list[Reply[EditedImage]]:
    before = set(psutil.Process().children())  # of other tests

    async def scene() -> list[Reply[EditedImage]]:
        try:
            return await asyncio.gather(*map(editor.edit, requests))
        finally:
            await editor.aclose()
            assert not set(psutil.Process().children()) - before

    return asyncio.run(scene())


def outcome_of(**settings: object) -> Outcome:
    (reply,) = edit_all(open_editor(**settings), request())
    assert reply.value is None
    return reply.outcome


def test_program_is_started_once_and_given_one_edit_after_another(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    editor = open_editor(log=str(log), strength=0.5)
    assert editor.adjustable == {"strength"}
    sizes = [(65, 101), (300, 200), (64, 64), (1500, 900)]
    requests = [request(seed, *size) for seed, size in enumerate(sizes)]
    replies = edit_all(editor, *requests)
    for reply, asked in zip(replies, requests, strict=True):
        assert reply.value is not None, reply.outcome
        before, after = decode(asked.original.data), decode(reply.value.image.data)
        assert np.array_equal(after, 255 - before)
    manifests = [json.loads(line) for line in log.read_text().splitlines()]
    assert [len(manifest["jobs"]) for manifest in manifests] == [1, 1, 1, 1]
    assert len({manifest["pid"] for manifest in manifests}) == 1
    assert manifests[0]["settings"]["strength"] == 0.5
    given = {(one["instruction"], one["seed"]) for manifest in manifests for one in manifest["jobs"]}
    assert given == {(f"Edit {seed}", seed) for seed in range(4)}
    assert not Path(manifests[0]["out"]).exists()  # images are not left lying about


def test_a_preset_sets_the_prompt_and_the_canvas(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    editor = open_editor("process/medebench-seed-x", "seed-x", log=str(log))
    (reply,) = edit_all(editor, request(0, 300, 200, parameters={"steps": 7}))
    assert reply.value is not None
    assert decode(reply.value.image.data).shape == (200, 300, 3)
    (manifest,) = [json.loads(line) for line in log.read_text().splitlines()]
    (job,) = manifest["jobs"]
    assert (job["width"], job["height"]) == (1024, 1024)
    assert job["instruction"] == "Edit this image: Edit 0"
    assert job["parameters"] == {"steps": 7}
    assert manifest["settings"]["steps"] == 50
    assert '"mode":"pad"' in reply.raw


def test_an_editor_of_regions_receives_the_region_on_its_canvas() -> None:
    editor = open_editor("process/brushnet", "brushnet")
    assert editor.takes_region
    mask = np.zeros((100, 200), np.bool_)
    mask[20:60, 50:150] = True
    region = EncodedImage(encode_mask(mask), "image/png")
    with_region, without = edit_all(editor, request(1, 200, 100, region=region), request(1, 200, 100))
    assert without.outcome.kind is OutcomeKind.NOT_APPLICABLE
    assert with_region.value is not None
    after = decode(with_region.value.image.data).astype(int)
    assert np.abs(after[25:55, 55:145] - (255, 0, 0)).max() <= 30  # enlarged and reduced: ringing at most
    red = np.abs(after - (255, 0, 0)).sum(2) < 90
    assert 0.9 < red.sum() / mask.sum() < 1.15


@pytest.mark.parametrize(
    ("mode", "kind", "message"),
    [
        ("garbage", OutcomeKind.MALFORMED, "output 0.png"),
        ("missing", OutcomeKind.NO_IMAGE, "wrote no 0.png"),
        ("refuse", OutcomeKind.REFUSED, "I would rather not"),
        ("size", OutcomeKind.MALFORMED, "returned 32x32 pixels for 65x101"),
    ],
)
def test_bad_answer_is_an_outcome(mode: str, kind: OutcomeKind, message: str) -> None:
    outcome = outcome_of(mode=mode)
    assert outcome.kind is kind
    assert message in outcome.reason
    assert not outcome.fatal


def test_a_crash_is_reported_with_its_reason_and_the_program_restarted(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    editor = open_editor(mode="crash", log=str(log))

    async def scene() -> list[Reply[EditedImage]]:
        try:
            return [await editor.edit(request(seed)) for seed in range(3)]
        finally:
            await editor.aclose()

    done, lost, again = asyncio.run(scene())
    assert done.outcome.ok
    assert again.outcome.ok
    assert lost.outcome.kind is OutcomeKind.TRANSPORT
    assert "ended with status 1" in lost.outcome.reason
    assert "illegal memory access" in lost.outcome.reason
    assert len({json.loads(line)["pid"] for line in log.read_text().splitlines()}) == 2


def test_fingerprint_changes_with_the_program(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text("1")
    options = Settings(workers={"mine": WorkerCommand(command=("python", "worker.py"), folder=tmp_path)})
    before = resolve_editor("process/mine", options).fingerprint
    assert resolve_editor("process/mine", options).fingerprint == before
    script.write_text("2")
    assert resolve_editor("process/mine", options).fingerprint != before


def test_a_worker_of_an_engine_makes_the_same_edit() -> None:
    asked = request(3, 128, 128, direction=Direction.ADD)
    (here,) = edit_all(open_editor(), asked)

    async def scene() -> tuple[Reply[EditedImage], Reply[EditedImage]]:
        engine = LocalEngine()
        engine_in_place.set(engine)
        editor = open_editor()
        try:
            crashing = open_editor(mode="missing")
            return await editor.edit(asked), await crashing.edit(asked)
        finally:
            await editor.aclose()
            engine.close()

    there, none = asyncio.run(scene())
    assert here.value is not None and there.value is not None
    assert (there.value.image, there.usage, there.raw) == (here.value.image, here.usage, here.raw)
    normal = normalise(here.value.image.data)
    assert there.value.normal == NormalForm(normal, pixel_sha256(normal))
    assert none.outcome.kind is OutcomeKind.NO_IMAGE
