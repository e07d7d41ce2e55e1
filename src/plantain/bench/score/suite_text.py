"""What an output did to the text in its image: a marker that moved, changed or vanished, or text that a model drew.

A build fails such edits. A benchmark measures, so it is a number beside the others, 1 where text was left alone, and
its mean the share of outputs that did; an output is never dropped for it.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from plantain.bench.score.suite import TEXT, Case, Detail, SuiteMetric
from plantain.journal import JsonValue
from plantain.pixels.arrays import Pixels
from plantain.privacy.text import TextReader
from plantain.privacy.text_changes import text_changes
from plantain.privacy.text_reader import open_reader, why_no_reader
from plantain.records import Score

_READERS = ThreadPoolExecutor(min(4, os.cpu_count() or 1), "text")
"""Who reads: every thread of them holds an engine of some two hundred megabytes, so that there are few."""


def find_text_metric(wanted: set[str]) -> tuple[list[SuiteMetric], list[tuple[str, str]]]:
    """The metric where it is wanted and text can be read here; else why it is not measured, for who wanted it."""
    if TEXT not in wanted:
        return [], []
    reader = open_reader()
    return ([text_metric(reader)], []) if reader is not None else ([], [(TEXT, why_no_reader())])


def text_metric(reader: TextReader) -> SuiteMetric:
    """The metric with this reader; another reader is another version of it."""

    def measure(case: Case, output: Pixels) -> tuple[Score, Detail]:
        changes = _READERS.submit(text_changes, case.before, output, None, reader).result()
        said: list[JsonValue] = [str(change) for change in changes]
        return Score(0.0 if changes else 1.0), {"changes": said}

    return SuiteMetric(TEXT, f"1, {reader.name}", measure)
