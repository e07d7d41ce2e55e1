"""Arms whose outputs are those of another arm, with the original restored outside of the edit.

No model is called: the editor's outputs are taken from the run. A sample's region limits the edit where it has one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import encode_png
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.arms import Arm, ArmKind, bench_task_id
from plantain.findings import load_taxonomy
from plantain.journal import JournalReader, TaskRow
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_mask
from plantain.pixels.restore import VERSION, restore_outside
from plantain.records import Attempt, Finding, InputError, Outcome, OutcomeKind, TaskState, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed

SUFFIX = "+restored"
PROVIDER = "restored"


def restored_arm(base: Arm) -> Arm:
    """Return the restored arm of an editor's arm."""
    return Arm(
        base.label + SUFFIX,
        f"{PROVIDER}/{base.label}",
        ArmKind.RESTORED,
        prompt=base.prompt,
        words=base.words,
        grid=base.grid,
        samples=base.samples,
        fingerprint=VERSION,
        rule=base.rule,
    )


@dataclass(frozen=True, slots=True)
class RestoredSource:
    """Another arm's outputs, restored."""

    benchmark: Benchmark
    reader: JournalReader
    base: Arm

    def ready(self, row: TaskRow) -> bool:
        """Return True if the editor's own task on this sample is done."""
        return self._task(row.task.image_id).state is not TaskState.PENDING

    def is_outdated(self, sample_id: str, attempts: Sequence[Attempt]) -> bool:
        """Return True if the editor has since made an output that was missing for one of these attempts."""
        made = {one.round for one in self._attempts(sample_id) if one.edited is not None}
        return any(one.edited is None and one.round in made for one in attempts)

    async def output(self, request: EditRequest, k: int) -> Reply[EditedImage]:
        """Return output k of the editor, restored; the editor's outcome if it made none."""
        return await asyncio.to_thread(self._output, request, k)

    def _output(self, request: EditRequest, k: int) -> Reply[EditedImage]:
        sample = self.benchmark.sample(request.image.id)
        made = next((one for one in self._attempts(sample.id) if one.round == k + 1), None)
        if made is None or made.edited is None:
            why = made.edit_outcome if made is not None else None
            return failed(why or Outcome(OutcomeKind.NO_IMAGE, f"{self.base.label} made no such output"))
        answer = self.reader.read_blob(made.edited)
        region = self.benchmark.roi(sample) if sample.roi is not None else None
        original = decode(request.original.data)
        done = restore_outside(original, decode(answer), _finding(sample), region)
        usage = Usage(images=1)
        if done.why_not:
            note = f"as it came: {done.why_not}"
            return Reply(EditedImage(EncodedImage(answer, "image/png"), note=note), usage=usage)
        note = f"{done.share:.1%} restored; registered to {done.residual:.2f} pixels"
        mask = EncodedImage(encode_mask(done.mask), "image/png")
        image = EncodedImage(encode_png(done.pixels), "image/png")
        return Reply(EditedImage(image, mask=mask, note=note), usage=usage)

    def _task(self, sample_id: str) -> TaskRow:
        return self.reader.task(bench_task_id(self.benchmark.sample(sample_id), self.base.label))

    def _attempts(self, sample_id: str) -> list[Attempt]:
        row = self._task(sample_id)
        return self.reader.attempts(row.id, row.generation)


def _finding(sample: Sample) -> Finding | None:
    """Return the taxonomy's finding of a sample, None if it is unknown."""
    try:
        return load_taxonomy().get(sample.image.modality, sample.finding)
    except InputError:
        return None
