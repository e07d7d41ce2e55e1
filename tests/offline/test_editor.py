"""The procedural editor from file bytes to file bytes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fakes.samples import prepared_samples
from offline.images import IMAGES, TAXONOMY
from plantain.offline.editor import ProceduralEditor, edit_encoded
from plantain.offline.language import Intent, compose
from plantain.offline.workers import close_workers
from plantain.pixels.decode import decode, decode_mask
from plantain.pixels.encode import encode_jpeg, is_normal_form, normalise
from plantain.pixels.restore import dilate
from plantain.records import Direction, Outcome, OutcomeKind, SourceImage
from plantain.roles import EditedImage, EditRequest, EncodedImage

SEED = 11


def prepared() -> dict[str, tuple[SourceImage, bytes]]:
    return {image.id: (image, data) for image, data in prepared_samples()}


def instruct(modality: str, name: str, direction: Direction = Direction.ADD) -> str:
    intent = Intent(name, direction, extent="moderate", conspicuity="marked")
    return compose(intent, TAXONOMY.get(modality, name))


@pytest.mark.parametrize(
    ("modality", "name"), [("chest_xray", "Pneumothorax"), ("brain_mri", "glioma"), ("fundus", "AMD")]
)
def test_an_edit_changes_only_its_mask_beyond_encoding(modality: str, name: str) -> None:
    image, data = prepared()[IMAGES[modality]]
    edited = edit_encoded(data, instruct(modality, name), image, SEED, normal=True)
    assert not isinstance(edited, Outcome), edited
    assert is_normal_form(edited.image.data)
    assert edited.normal is not None
    assert edited.normal.data == normalise(edited.image.data)
    assert edited.mask is not None
    after, before = decode(edited.image.data), decode(encode_jpeg(decode(data)))
    assert (after != before).any(), "nothing was drawn"
    outside = ~dilate(decode_mask(edited.mask.data), 20)
    assert np.abs(after.astype(np.int16) - before)[outside].max(initial=0) <= 1


def test_edit_is_the_same_in_a_worker_process() -> None:
    image, data = prepared()["retina-left"]
    request = EditRequest(image, EncodedImage(data, "image/jpeg"), instruct("fundus", "AMD"), SEED)
    try:
        reply = asyncio.run(ProceduralEditor().edit(request))
    finally:
        close_workers()
    here = edit_encoded(data, request.instruction, image, SEED)
    assert isinstance(here, EditedImage)
    assert reply.value == here
    assert reply.usage.served_model == "offline/procedural@1"


@pytest.mark.parametrize("instruction", ["Make it look nicer.", "Add a small drusen cluster at the macula."])
def test_an_instruction_without_a_known_finding_is_not_applicable(instruction: str) -> None:
    image, data = prepared()["rg1-chest-pa"]
    outcome = edit_encoded(data, instruction, image, SEED)
    assert isinstance(outcome, Outcome)
    assert outcome.kind is OutcomeKind.NOT_APPLICABLE
    assert "names no finding" in outcome.reason


SCRIPT = """
import asyncio, os, time
from plantain.offline.workers import workers
from plantain.roles import on_worker

if __name__ == "__main__":
    print(asyncio.run(on_worker(workers(), "judge", os.getpid)), flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_workers_end_with_a_process_that_was_killed(tmp_path: Path) -> None:
    """Killed with -9, which no handler can catch: an orphaned worker would keep 270 MB."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    assert worker != process.pid and alive(worker)
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 30
    while alive(worker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(worker)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "zombie" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (ProcessLookupError, FileNotFoundError):
        return False
