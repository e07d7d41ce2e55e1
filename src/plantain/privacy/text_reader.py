"""The text reader of this installation: rapidocr of the extra `ocr`, with the models of its wheel; no downloads."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path

from plantain.files.installed import install_line
from plantain.privacy.text import TextReader

_MODELS = {"Det": "PP-OCRv6_det_small.onnx", "Rec": "PP-OCRv6_rec_small.onnx"}
"""Models that find and read text, inside rapidocr's wheel."""


def why_no_reader() -> str:
    """Return why text cannot be read here; "" if it can."""
    for package in ("rapidocr", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed ({install_line('ocr')})"
    missing = [path.name for path in _models().values() if not path.is_file()]
    return f"rapidocr came without {missing[0]}, and nothing is downloaded" if missing else ""


def open_reader() -> TextReader | None:
    """Return the reader of the extra `ocr`; None if it is not installed, or its wheel has no models."""
    if why_no_reader():
        return None
    os.environ.setdefault(
        "ORT_DISABLE_TELEMETRY", "1"
    )  # onnxruntime reports the machine to its maker otherwise
    from plantain.privacy.rapid_text import RapidReader  # half a second

    return RapidReader(_models())


@cache
def _own_reader() -> TextReader | None:
    return open_reader()


def reader_named(name: str) -> TextReader | None:
    """Return this process's own reader, which is cached; None if it has another name."""
    own = _own_reader()
    return own if own is not None and own.name == name else None


def _models() -> dict[str, Path]:
    spec = importlib.util.find_spec("rapidocr")
    folder = Path(spec.origin).parent / "models" if spec is not None and spec.origin else Path()
    return {part: folder / name for part, name in _MODELS.items()}
