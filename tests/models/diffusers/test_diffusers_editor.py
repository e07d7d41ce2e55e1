"""The editor with its devices' real processes: gathered batches, several devices, crashes, and giving memory back."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import orjson
import psutil
import pytest

from plantain.models.diffusers.devices import device_names
from plantain.models.diffusers.editor import DiffusersEditor
from plantain.models.diffusers.plan import plan_editor
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_png
from plantain.records import Direction, Geometry, InputError, Licence, OutcomeKind, SourceImage
from plantain.roles import Demonstration, EditedImage, EditRequest, EncodedImage, Reply
from plantain.roles.options import ProviderOptions

IMAGE = SourceImage("x", "d", "fundus", (), Licence.OPEN, "a", "b", Geometry(64, 64, "pad", 0, 0, 64, 64))


def request(seed: int, width: int = 64, height: int = 64, **changes: object) -> EditRequest:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    original = EncodedImage(encode_png(pixels), "image/png")
    return EditRequest(IMAGE, original, "Remove the dark mole", seed, **changes)  # type: ignore[arg-type]


def open_editor(name: object, **settings: object) -> DiffusersEditor:
    usual = {"device": "cpu", "steps": 2, "side": 64, **settings}
    return DiffusersEditor(plan_editor(f"diffusers/{name}", ProviderOptions(**usual)))  # type: ignore[arg-type]


def record(reply: Reply[EditedImage]) -> dict[str, object]:
    said: dict[str, object] = orjson.loads(reply.raw)
    return said


def workers() -> list[psutil.Process]:
    """The processes of devices that this process started."""
    children = psutil.Process().children()
    return [child for child in children if "plantain.models.diffusers.worker" in " ".join(child.cmdline())]


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield
    assert workers() == []  # closing an editor ends its processes


@pytest.mark.slow
def test_waiting_requests_are_gathered_shared_among_devices_and_survive_a_killed_process(
    tiny_folder: Callable[[str], Path],
) -> None:
    """One scene, because starting a device's process takes seconds."""

    async def scene() -> None:
        folder, devices = tiny_folder("instruct-pix2pix"), "cpu:0, cpu:1"
        editor = open_editor(folder, batch_size=3, device=devices)
        other = open_editor(folder, batch_size=1, device=devices)
        assert editor.adjustable == {"steps", "guidance", "image_guidance"}
        sizes = [(65, 101), (101, 65), (65, 101), (90, 90), (65, 101), (65, 101), (65, 101), (65, 101)]
        requests = [request(seed, *size) for seed, size in enumerate(sizes)]
        replies = await asyncio.gather(*map(editor.edit, requests), other.edit(request(9, 64, 64)))
        for reply, (width, height) in zip(replies, [*sizes, (64, 64)], strict=True):
            assert reply.value is not None, reply.outcome
            assert decode(reply.value.image.data).shape == (height, width, 3)
            assert reply.usage.served_model.endswith("float32 cpu")
        assert max(int(str(record(reply)["together"])) for reply in replies) >= 2
        assert {record(reply)["device"] for reply in replies} == {"cpu:0", "cpu:1"}
        assert len(workers()) == 2
        told = record(replies[0])
        assert told["licence"] == "unknown"
        assert told["geometry"]["canvas_width"] == 64  # type: ignore[index]

        alone = await editor.edit(requests[4])
        assert alone.value is not None
        assert replies[4].value is not None
        apart = decode(alone.value.image.data).astype(int) - decode(replies[4].value.image.data)
        assert np.abs(apart).max() <= 2
        steered = await editor.edit(request(4, 65, 101, parameters={"guidance": 1.0, "steps": 1.0}))
        assert record(steered)["settings"] == {"steps": 1, "guidance": 1.0}

        await other.aclose()
        assert len(workers()) == 2  # the editor is still there
        lost = [asyncio.create_task(editor.edit(request(n, parameters={"steps": 999.0 + n}))) for n in (1, 2)]
        await asyncio.sleep(0.5)
        behind = asyncio.create_task(editor.edit(requests[1]))
        await asyncio.sleep(0.5)
        for worker in workers():
            os.kill(worker.pid, signal.SIGKILL)
        for reply in await asyncio.gather(*lost):
            assert reply.outcome.kind is OutcomeKind.TRANSPORT
            assert not reply.outcome.fatal
            assert "was killed by signal 9" in reply.outcome.reason
        assert (await behind).outcome.ok  # it was not drawn when its process died, so another one draws it
        await editor.aclose()
        await editor.aclose()

    asyncio.run(scene())


def test_what_it_cannot_use_is_said_before_anything_is_loaded(tiny_folder: Callable[[str], Path]) -> None:
    editor = open_editor(tiny_folder("instruct-pix2pix"))
    picture = request(0).original

    async def scene() -> None:
        shown = await editor.edit(request(0, demonstrations=(Demonstration(picture, "Remove it", picture),)))
        assert shown.outcome.kind is OutcomeKind.NOT_APPLICABLE
        broken = await editor.edit(EditRequest(IMAGE, EncodedImage(b"nothing", "image/png"), "Remove it", 0))
        assert broken.outcome.kind is OutcomeKind.MALFORMED
        with pytest.raises(InputError, match=r"no parameter alpha; it takes guidance, image_guidance, steps"):
            await editor.edit(request(0, parameters={"alpha": 1.0}))
        await editor.aclose()

    asyncio.run(scene())


def test_direction_and_concept_reach_the_job(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class Devices:
        names = ("cpu",)

        def submit(self, order: object) -> None:
            seen.append(order)
            raise KeyboardInterrupt

    editor = open_editor(f"ledits-pp@{tiny_folder('ledits')}")
    monkeypatch.setattr(editor, "_devices", Devices())
    for direction in (Direction.REMOVE, Direction.ADD, Direction.CHANGE, None):
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(editor.edit(request(0, concept="Pneumothorax", direction=direction)))
    assert [order.job.removes for order in seen] == [True, False, None, None]
    assert seen[0].job.concept == "Pneumothorax"


def test_devices_are_named_or_found() -> None:
    assert device_names("cuda:0, cuda:1") == ("cuda:0", "cuda:1")
    assert device_names("cuda") == ("cuda:0",)
    assert device_names("")
    with pytest.raises(InputError, match=r"providers\.diffusers\.device"):
        device_names("cuda:0,,cpu")
