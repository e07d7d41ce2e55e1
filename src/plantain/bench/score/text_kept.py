"""A metric of text in an image: 1 where no marker moved, changed or vanished and no text was added, else 0.

A build fails such edits; a benchmark keeps them, and the mean is the share of outputs that left text alone.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from plantain.metrics import Metric, MetricSample
from plantain.metrics.metric import Measured, Networks
from plantain.pixels.arrays import Pixels
from plantain.privacy.rapid_text import open_reader, why_no_reader
from plantain.privacy.text import TextReader, text_changes
from plantain.records import Score

_READERS = ThreadPoolExecutor(min(4, os.cpu_count() or 1), "text")
"""Few threads, as the text reader of each needs about 200 MB."""


class TextKept(Metric):
    """Score 1 if an output kept all text and added none, else 0; the version names the text reader."""

    name, label, low, high = "text_kept", "share that left burned-in text alone and drew none", 0.0, 1.0
    uses = "text reader"

    def __init__(self, reader: TextReader) -> None:
        super().__init__()
        self.version = f"1, {reader.name}"
        self._reader = reader

    @classmethod
    def open(cls, networks: Networks) -> Metric | str:
        reader = open_reader()
        return cls(reader) if reader is not None else why_no_reader()

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        changes = _READERS.submit(text_changes, sample.before, output, None, self._reader).result()
        return Score(0.0 if changes else 1.0), {"changes": [str(change) for change in changes]}
