"""From files to canvases and back: what an edit costs beside the device, apart from it so that it runs meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from plantain.models.diffusers.jobs import Batch, Done, Job
from plantain.models.diffusers.methods import METHODS
from plantain.models.frames import Frame
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import BadImage, decode_mask, decode_untrusted
from plantain.pixels.encode import encode_png
from plantain.records import OK, Outcome, OutcomeKind


@dataclass(frozen=True, slots=True)
class Original:
    """A picture that is ready to be edited.

    Attributes:
        job: what is to be done to it.
        frame: its way onto the canvas and back.
        canvas: uint8 (H, W, 3), RGB whatever the file holds.
        region: bool (H, W) of the canvas, where to edit; None for methods that find the place themselves.
    """

    job: Job
    frame: Frame
    canvas: Pixels
    region: Mask | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch whose pictures were read.

    Attributes:
        batch: as it was asked.
        originals: by their place in the batch.
        faults: what is wrong with those that cannot be read, by their place.
    """

    batch: Batch
    originals: dict[int, Original]
    faults: dict[int, Outcome]


@dataclass(frozen=True, slots=True)
class Drawing:
    """What the device drew for one edit.

    Attributes:
        pixels: uint8 (H, W, 3) of the canvas; None where there is none.
        outcome: why there is none.
        record: what was done, for the journal.
        frame: the way back; None only where nothing was drawn.
    """

    pixels: Pixels | None
    outcome: Outcome
    record: dict[str, object]
    frame: Frame | None = None


def prepare(batch: Batch) -> Prepared:
    """Decodes a batch's pictures and brings them, and their regions, onto the canvas."""
    method = METHODS[batch.loading.method]
    originals: dict[int, Original] = {}
    faults: dict[int, Outcome] = {}
    for place, job in enumerate(batch.jobs):
        try:
            pixels = decode_untrusted(job.picture, "original")
        except BadImage as error:
            faults[place] = Outcome(OutcomeKind.MALFORMED, str(error))
            continue
        frame = method.frame.frame(pixels.shape[1], pixels.shape[0], job.side)
        region = None
        if method.region:
            assert job.region is not None
            region = frame.enter_region(decode_mask(job.region))
        originals[place] = Original(job, frame, frame.enter(pixels), region)
    return Prepared(batch, originals, faults)


def finish(drawing: Drawing) -> Done:
    """Brings what was drawn back to the original's size and encodes it."""
    if drawing.pixels is None or drawing.frame is None:
        return Done(None, drawing.outcome, drawing.record)
    try:
        return Done(encode_png(drawing.frame.leave(drawing.pixels)), OK, drawing.record)
    except ValueError as error:
        return Done(None, Outcome(OutcomeKind.MALFORMED, str(error)), drawing.record)
