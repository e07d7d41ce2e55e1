"""A provider that inserts the corpus of echoes into all its texts, and the search for keys in the results."""

from __future__ import annotations

import html
import json
import re
import sqlite3
import tarfile
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from fakes import gemini_format, openai_format
from fakes.content import report, scale
from fakes.server import Answer, Request
from files.echoes import ENCODINGS, KEYS, corpus, shows
from pipeline.quick import at_url, quick_recipe
from plantain.pipeline.recipe import Recipe

ECHOES = [text for _, _, text in corpus()]
VARIABLES = {"gemini": "GEMINI_API_KEY", "openai": "OPENAI_API_KEY"}


def recipe(catalogue: Path, url: str, *findings: str) -> Recipe:
    """A writer and a judge of Gemini, an editor of OpenAI: two SDKs and three forms of bodies in one run."""
    models = {"writer": "gemini/w", "editor": "openai/e", "judge": ["gemini/j"]}
    parts = {"seed": 3, "models": models, "providers": at_url(url)}
    return quick_recipe(catalogue, findings=findings, limits={"concurrency": 4}, parts=parts)


class Echoing:
    """Insert the corpus into answers, thoughts, reports and errors of every second edit."""

    def __init__(self) -> None:
        self.echoes = cycle(ECHOES)
        self.heard = self.edits = 0

    def some(self, number: int) -> str:
        self.heard += number
        return "\n".join(islice(self.echoes, number))

    def __call__(self, request: Request, good: Answer) -> Answer:
        if request.path.endswith(":generateContent"):
            if gemini_format.step_of(request) == "judge":
                text = gemini_format.prompt_text(request)
                if "editing_accuracy" in text:
                    scores = scale(text) | {"differences": self.some(20)}
                    return gemini_format.text_answer(json.dumps(scores))
                answer = report(text)
                answer["reason"] = self.some(20)
                criterion = answer["realism"]
                assert isinstance(criterion, dict)
                criterion["evidence"] = self.some(20)
                return gemini_format.text_answer(json.dumps(answer))
            return gemini_format.text_answer(f"Brighten the middle. {self.some(40)}")
        self.edits += 1
        if self.edits % 3 == 2:
            return openai_format.error(500, self.some(8), "server_error", X_Debug=KEYS[0])
        return good


def texts_of(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file but images as text, a journal's rows and a shard's cells too."""
    import pyarrow.parquet as pq

    for path in sorted(
        p for p in folder.rglob("*") if p.is_file() and p.suffix not in (".jpg", ".jpeg", ".png")
    ):
        if "blobs" in path.parts:
            continue
        data = path.read_bytes()
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            kept = [name for name in table.column_names if "string" in str(table.schema.field(name).type)]
            yield path, json.dumps(table.select(kept).to_pylist(), default=str)
        elif path.suffix == ".tar":
            with tarfile.open(path) as tar:
                for member in tar:
                    file = tar.extractfile(member)
                    if file is not None and not member.name.endswith((".jpg", ".png")):
                        yield path / member.name, file.read().decode("utf-8", "replace")
        elif path.suffix == ".sqlite":
            yield path, data.decode("latin-1")
            with sqlite3.connect(path) as connection:
                yield path.with_suffix(".dump.sqlite"), "\n".join(connection.iterdump())
        else:
            yield path, data.decode("utf-8", "replace")


FORMS = {form for key in KEYS for encode in ENCODINGS.values() if (form := encode(key))}
BASE64_IMAGE = re.compile(r"data:image/[a-z]+;base64,[A-Za-z0-9+/=]+|[A-Za-z0-9+/]{3000,}={0,2}")


def holds_a_key(text: str) -> bool:
    """Search for the corpus in every form, also escaped again by a page or JSON; decode short texts deeply."""
    bare = BASE64_IMAGE.sub("", text)
    layers = (bare, html.unescape(bare), bare.replace("\\\\", "\\").replace('\\"', '"'))
    if any(form in layer for layer in layers for form in FORMS):
        return True
    return len(bare) < 40_000 and any(shows(bare, key) for key in KEYS)
