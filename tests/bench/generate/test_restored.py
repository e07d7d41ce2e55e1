"""`bench generate --restore outside`: a restored arm beside the editor's, made of what the run has, and called so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bench.small_bench import Brightener, by, made, small_bench
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import encode_png
from plantain.bench.generate.runfile import BenchRun
from plantain.journal import verify
from plantain.pixels.decode import decode
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply


@dataclass(eq=False)
class Disc(Brightener):
    """Draws what the prompts ask for, a bright disc, into a picture that it has brightened by 9 levels."""

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        reply = await super().edit(request)
        if reply.value is None:
            return reply
        pixels = decode(reply.value.image.data).astype(int)
        height, width = pixels.shape[:2]
        y, x = np.mgrid[:height, :width]
        pixels[np.hypot(y - height / 2, x - width / 2) < height / 8] += 70
        data = encode_png(np.clip(pixels, 0, 255).astype(np.uint8))
        return Reply(EditedImage(EncodedImage(data, "image/png")), usage=reply.usage)


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    return small_bench(tmp_path_factory.mktemp("restored") / "bench", 2, size=(360, 288))


def test_the_restored_arm_stands_beside_the_editors_and_asks_it_nothing(
    benchmark: Benchmark, tmp_path: Path
) -> None:
    editor, run = Disc(), tmp_path / "run"
    made(benchmark, run, by(editor))
    assert len(editor.requests) == 2
    with BenchRun.open(run) as bench:
        alone = {label: arm.kind.value for label, arm in bench.arms.items()}
    made(benchmark, run, by(editor, restore=True))
    assert len(editor.requests) == 2  # the outputs that the run had
    label = f"{editor.name}+restored"
    with BenchRun.open(run) as bench:
        kinds = {one: arm.kind.value for one, arm in bench.arms.items()}
        assert kinds == {**alone, label: "restored"}
        assert bench.arms[label].model == f"restored/{editor.name}"
        for output in bench.outputs(label):
            sample = benchmark.sample(output.sample_id)
            assert output.attempt is not None
            assert output.attempt.mask is not None
            before, after = benchmark.previous(sample).astype(int), decode(bench.read(output)).astype(int)
            mask = decode(bench.reader.read_blob(output.attempt.mask))[..., 0] > 0
            assert np.array_equal(before[~mask], after[~mask])
            assert 0.3 < (~mask).mean() < 0.99
            middle = np.s_[before.shape[0] // 2, before.shape[1] // 2]
            assert (after[middle] - before[middle]).max() > 40  # green or blue; red is burnt out
        assert verify(bench.reader).ok


def test_a_restored_arm_waits_for_the_editor_and_tells_how_it_ended(
    benchmark: Benchmark, tmp_path: Path
) -> None:
    editor, run = Disc(refuses=frozenset({"2"})), tmp_path / "run"
    made(benchmark, run, by(editor, restore=True), limit=1)
    label = f"{editor.name}+restored"

    def reasons(arm: str) -> dict[str, str]:
        with BenchRun.open(run) as bench:
            return {one.sample_id: one.reason for one in bench.outputs(arm)}

    assert sorted(reasons(editor.name).values())[-1] != ""
    assert reasons(label) == reasons(editor.name)
    made(benchmark, run, by(editor, restore=True))
    assert reasons(label) == reasons(editor.name) == {"1": "", "2": "refused: not this one"}
