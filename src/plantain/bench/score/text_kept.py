"""What an output did to the text in its image: a marker that moved, changed or vanished, or text that a model drew.

A build fails such edits. A benchmark measures, so it is a number beside the others, 1 where text was left alone, and
its mean the share of outputs that did; an output is never dropped for it.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from plantain.metrics import Metric, MetricSample
from plantain.metrics.metric import Measured
from plantain.metrics.networks.encoders import Networks
from plantain.pixels.arrays import Pixels
from plantain.privacy.text import TextReader
from plantain.privacy.text_changes import text_changes
from plantain.privacy.text_reader import open_reader, why_no_reader
from plantain.records import Score

_READERS = ThreadPoolExecutor(min(4, os.cpu_count() or 1), "text")
"""Who reads: every thread of them holds an engine of some two hundred megabytes, so that there are few."""


class TextKept(Metric):
    """1 where an output left text alone and drew none, else 0; another reader is another version of it."""

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
