"""An edit on a model's own canvas: the original is resized to it, and the output exactly back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plantain.findings import sides_to_name
from plantain.models.frames import Frame, FramePolicy
from plantain.models.presets import Preset
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import declared_size, decode_mask, decode_untrusted
from plantain.pixels.encode import encode_png
from plantain.records import Direction, Outcome, OutcomeKind
from plantain.roles import EditRequest
from plantain.roles.exchange import NO_REGION

NO_EXAMPLES = Outcome(OutcomeKind.NOT_APPLICABLE, "open editors do not use demonstrations")
UNREADABLE = Outcome(OutcomeKind.MALFORMED, "the original is not a readable image")


@dataclass(frozen=True, slots=True)
class FramedRequest:
    """One edit for a model that works at its own size.

    Attributes:
        original: file bytes.
        frame: the geometry of the canvas.
        instruction: the text for the model.
        seed: of this edit.
        region: PNG mask of the original's size, for models that require one; None for others.
        concept: the finding or key concept, for methods that do not read sentences.
        removes: True if the edit removes the concept; None if unknown.
        side: of the canvas; None for the method's own.
        parameters: settings of this edit only.
    """

    original: bytes = field(repr=False)
    frame: Frame
    instruction: str
    seed: int
    region: bytes | None = field(default=None, repr=False)
    concept: str = ""
    removes: bool | None = None
    side: int | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)

    def canvas(self) -> Pixels:
        """Return the original on the canvas, uint8 (H, W, 3). Raise BadImage if it cannot be decoded."""
        return self.frame.enter(decode_untrusted(self.original, "original"))

    def canvas_region(self) -> Mask | None:
        """Return the region on the canvas, bool (H, W)."""
        return None if self.region is None else self.frame.enter_region(decode_mask(self.region))

    def leave(self, canvas: Pixels) -> bytes | Outcome:
        """Return an output canvas as PNG of the original's size, or the outcome of one of a wrong size."""
        try:
            return encode_png(self.frame.leave(canvas))
        except ValueError as error:
            return Outcome(OutcomeKind.MALFORMED, str(error))


def framed_request(
    request: EditRequest,
    preset: Preset,
    policy: FramePolicy,
    side: int | None,
    *,
    names_sides: bool,
    takes_region: bool,
) -> FramedRequest | Outcome:
    """Return a request on a model's canvas, or the outcome of one that it cannot serve.

    Args:
        request: of the editor.
        preset: its prompt contains the instruction.
        policy: of the model's canvas.
        side: instead of the policy's own.
        names_sides: add where the patient's left and right are, if the instruction names a side.
        takes_region: the model requires a region.
    """
    if request.demonstrations:
        return NO_EXAMPLES
    if takes_region and request.region is None:
        return NO_REGION
    width, height = declared_size(request.original.data)
    if not (width and height):
        return UNREADABLE
    sides = sides_to_name(request.instruction, request.image) if names_sides else ""
    known = request.direction not in (None, Direction.CHANGE)
    return FramedRequest(
        request.original.data,
        policy.frame(width, height, side),
        preset.words(request.instruction, sides),
        request.seed,
        request.region.data if takes_region and request.region else None,
        request.concept,
        request.direction is Direction.REMOVE if known else None,
        side,
        request.parameters,
    )
