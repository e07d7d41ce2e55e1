"""One manifest's worth of edits: laid out, done by the program, read back."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from plantain.models.process.exchange import ProcessRequest, read_result, write_manifest
from plantain.models.process.program import Program
from plantain.records import Outcome, OutcomeKind


async def run_batch(
    program: Program, settings: Mapping[str, str | int | float | bool], wishes: Sequence[ProcessRequest]
) -> list[bytes | Outcome]:
    """What a program made of each wish, in their order: PNG bytes of the original's size, or why there is none."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="plantain-"))
    try:
        manifest, faults = await asyncio.to_thread(write_manifest, folder, program.name, settings, wishes)
        fault = await program.run(manifest) if len(faults) < len(wishes) else None
        results = [
            faults[number] if number in faults else await asyncio.to_thread(read_result, folder, number, wish)
            for number, wish in enumerate(wishes)
        ]
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    if fault is None:
        return results
    return [
        fault if number not in faults and _missing(result) else result
        for number, result in enumerate(results)
    ]


def _missing(result: bytes | Outcome) -> bool:
    """Whether nothing whole was left for an edit when its program failed: an image half written is none."""
    return isinstance(result, Outcome) and result.kind in (OutcomeKind.NO_IMAGE, OutcomeKind.MALFORMED)
