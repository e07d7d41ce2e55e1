"""The editor and its devices: several devices and their processes, crashes, memory given back."""

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
from plantain.models.diffusers.devices import DeviceProcess, Devices
from plantain.models.diffusers.editor import DiffusersEditor
from plantain.models.diffusers.jobs import Done, Job
from plantain.models.diffusers.plan import plan_editor
from plantain.models.diffusers.provider import Settings
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_png
from plantain.records import Geometry, Licence, OutcomeKind, SourceImage
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply

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
    data: dict[str, object] = orjson.loads(reply.raw)
    return data


def processes() -> list[psutil.Process]:
    """Those of devices that this process started."""
    children = psutil.Process().children()
    return [child for child in children if waiting_device.__name__ in " ".join(child.cmdline())]


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which processes of devices, which have no weights here, log their steps."""
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


def test_waiting_requests_are_shared_among_devices_and_survive_a_killed_process(
    tiny_folder: Callable[[str], Path], notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes, though without weights: drawing starts after all requests, as it does after a slow start."""
    waiting, submit = list[Job](), Devices.submit
    sizes = [(65, 101), (101, 65), (65, 101), (90, 90), (65, 101), (65, 101), (65, 101), (65, 101)]

    def counted(queue: Devices, job: Job) -> Future[Done]:
        answer = submit(queue, job)
        waiting.append(job)
        (notes / f"queued {job.seed}").touch()
        if len(waiting) == len(sizes) + 1:
            (notes / "go").touch()
        return answer

    async def scene() -> None:
        folder, both = tiny_folder("instruct-pix2pix"), "cpu:0, cpu:1"
        editor = open_editor(folder, device=both)
        other = open_editor(folder, device=both)
        assert editor.adjustable == {"steps", "guidance", "image_guidance"}
        requests = [request(seed, *size) for seed, size in enumerate(sizes)]
        replies = await asyncio.gather(*map(editor.edit, requests), other.edit(request(9, 64, 64)))
        for reply, (width, height) in zip(replies, [*sizes, (64, 64)], strict=True):
            assert reply.value is not None, reply.outcome
            assert decode(reply.value.image.data).shape == (height, width, 3)
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
