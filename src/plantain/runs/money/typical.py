"""What one call is taken to consume before anything is measured: for plans."""

from __future__ import annotations

from plantain.records import Step, Usage

TYPICAL_USAGE = {
    Step.WRITE: Usage(input_tokens=2_200, output_tokens=850, thinking_tokens=600),
    Step.EDIT: Usage(input_tokens=1_500, input_image_tokens=1_300, output_tokens=1_120, images=1),
    Step.LOOK: Usage(input_tokens=3_500, output_tokens=1_400, thinking_tokens=900),
    Step.JUDGE: Usage(input_tokens=3_800, output_tokens=1_250, thinking_tokens=900),
}
"""Our own reckoning from prompt lengths and the tokens of a 1024x1024 image; a pilot replaces it. What an edit writes
goes by the model's own table where there is one."""

SPREAD = (0.7, 1.0, 1.5)
"""How much a guessed cost or latency may be off, low to high."""
