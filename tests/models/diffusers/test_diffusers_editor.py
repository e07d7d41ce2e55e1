"""The editor and its devices: gathered batches, several devices and their processes, crashes, memory given back."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import orjson
import psutil
import pytest

from models.diffusers import waiting_device
from plantain.models.diffusers import devices
from plantain.models.diffusers.device_process import DeviceProcess
from plantain.models.diffusers.devices import Devices, Order, device_names
from plantain.models.diffusers.editor import DiffusersEditor
from plantain.models.diffusers.jobs import Done
from plantain.models.diffusers.plan import plan_editor
from plantain.models.diffusers.settings import Settings
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_png
from plantain.records import Direction, Geometry, InputError, Licence, OutcomeKind, SourceImage
from plantain.roles import Demonstration, EditedImage, EditRequest, EncodedImage, Reply

TESTS = Path(__file__).parents[2]
WAIT_S = 120.0
IMAGE = SourceImage("x", "d", "fundus", (), Licence.OPEN, "a", "b", Geometry(64, 64, "pad", 0, 0, 64, 64))


def request(seed: int, width: int = 64, height: int = 64, **changes: object) -> EditRequest:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    original = EncodedImage(encode_png(pixels), "image/png")
    return EditRequest(IMAGE, original, "Remove the dark mole", seed, **changes)  # type: ignore[arg-type]


def open_editor(name: object, **settings: object) -> DiffusersEditor:
    usual = {"device": "cpu", "steps": 2, "side": 64, **settings}
    return DiffusersEditor(plan_editor(f"diffusers/{name}", Settings(**usual)))  # type: ignore[arg-type]


def record(reply: Reply[EditedImage]) -> dict[str, object]:
    said: dict[str, object] = orjson.loads(reply.raw)
    return said


def processes() -> list[psutil.Process]:
    """Those of devices that this process started."""
    children = psutil.Process().children()
    return [child for child in children if waiting_device.__name__ in " ".join(child.cmdline())]


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the processes of devices, which have no weights here and start soon, note what they do."""
    monkeypatch.setattr(DeviceProcess, "module", waiting_device.__name__)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    monkeypatch.setenv(waiting_device.NOTES, str(tmp_path))
    yield tmp_path
    assert processes() == []  # closing an editor ends its processes


def wait_for(path: Path) -> None:
    until = time.monotonic() + WAIT_S
    while not path.exists():
        assert time.monotonic() < until, f"no {path.name}"
        time.sleep(0.01)


def test_waiting_requests_are_gathered_shared_among_devices_and_survive_a_killed_process(
    tiny_folder: Callable[[str], Path], notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes, though without weights: drawing begins when all have asked, as it does after a slow start."""
    waiting, submit = list[Order](), Devices.submit
    sizes = [(65, 101), (101, 65), (65, 101), (90, 90), (65, 101), (65, 101), (65, 101), (65, 101)]

    def counted(queue: Devices, order: Order) -> Future[Done]:
        answer = submit(queue, order)
        waiting.append(order)
        (notes / f"queued {order.job.seed}").touch()
        if len(waiting) == len(sizes) + 1:
            (notes / "go").touch()
        return answer

    async def scene() -> None:
        folder, both = tiny_folder("instruct-pix2pix"), "cpu:0, cpu:1"
        editor = open_editor(folder, batch_size=3, device=both)
        other = open_editor(folder, batch_size=1, device=both)
        assert editor.adjustable == {"steps", "guidance", "image_guidance"}
        requests = [request(seed, *size) for seed, size in enumerate(sizes)]
        replies = await asyncio.gather(*map(editor.edit, requests), other.edit(request(9, 64, 64)))
        for reply, (width, height) in zip(replies, [*sizes, (64, 64)], strict=True):
            assert reply.value is not None, reply.outcome
            assert decode(reply.value.image.data).shape == (height, width, 3)
        assert max(int(str(record(reply)["together"])) for reply in replies) >= 2
        assert {record(reply)["device"] for reply in replies} == {"cpu:0", "cpu:1"}
        assert len(processes()) == 2
        steered = await editor.edit(request(4, 65, 101, parameters={"guidance": 1.0, "steps": 1.0}))
        assert record(steered)["settings"] == {"steps": 1, "guidance": 1.0}

        await other.aclose()
        assert len(processes()) == 2  # the editor is still there
        endless = {"steps": float(waiting_device.ENDLESS)}
        lost = [
            asyncio.create_task(editor.edit(request(20 + n, parameters=endless | {"guidance": float(n)})))
            for n in (1, 2)
        ]
        for seed in (21, 22):
            await asyncio.to_thread(wait_for, notes / f"drawn {seed}")
        behind = asyncio.create_task(editor.edit(request(30)))
        await asyncio.to_thread(wait_for, notes / "queued 30")
        for process in processes():
            os.kill(process.pid, signal.SIGKILL)
        for reply in await asyncio.gather(*lost):
            assert reply.outcome.kind is OutcomeKind.TRANSPORT
            assert not reply.outcome.fatal
            assert "was killed by signal 9" in reply.outcome.reason
        assert (await behind).outcome.ok  # drawn by a new process
        await editor.aclose()
        await editor.aclose()

    monkeypatch.setattr(Devices, "submit", counted)
    asyncio.run(scene())


@pytest.mark.usefixtures("devices_here")
def test_gathered_requests_are_drawn_as_alone(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        editor = open_editor(tiny_folder("instruct-pix2pix"), batch_size=3)
        requests = [request(seed, 65, 101) for seed in range(3)]
        monkeypatch.setattr(devices, "GATHER_S", WAIT_S)  # until all are there
        replies = await asyncio.gather(*map(editor.edit, requests))
        monkeypatch.setattr(devices, "GATHER_S", 0.0)
        replies += [await editor.edit(requests[2])]
        await editor.aclose()
        told = record(replies[3])
        assert [record(reply)["together"] for reply in replies] == [3, 3, 3, 1]
        assert replies[3].usage.served_model.endswith("float32 cpu")
        assert told["licence"] == "unknown"
        assert told["geometry"]["canvas_width"] == 64  # type: ignore[index]
        values = [reply.value for reply in replies[2:]]
        together, alone = (decode(value.image.data).astype(int) for value in values if value is not None)
        assert alone.shape == (101, 65, 3)
        assert np.abs(alone - together).max() <= 2

    asyncio.run(scene())


def test_what_it_cannot_use_is_said_before_anything_is_loaded(tiny_folder: Callable[[str], Path]) -> None:
    editor = open_editor(tiny_folder("instruct-pix2pix"))
    picture = request(0).original

    async def scene() -> None:
        shown = await editor.edit(request(0, demonstrations=(Demonstration(picture, "Remove it", picture),)))
        assert shown.outcome.kind is OutcomeKind.NOT_APPLICABLE
        broken = await editor.edit(EditRequest(IMAGE, EncodedImage(b"nothing", "image/png"), "Remove it", 0))
        assert broken.outcome.kind is OutcomeKind.MALFORMED
        cut = EncodedImage(picture.data[:200], "image/png")  # its header can be read
        unreadable = await editor.edit(EditRequest(IMAGE, cut, "Remove it", 0))
        assert unreadable.outcome.kind is OutcomeKind.MALFORMED
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
