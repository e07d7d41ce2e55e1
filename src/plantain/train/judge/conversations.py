"""Verdicts as conversations for a vision-language judge: what it will be asked, and the verdict as its answer.

Each line of `train.jsonl` and `held_out.jsonl` has `messages` and `images` in the form that TRL and other trainers of
vision-language models take; the words are those that `vlm/FOLDER` is asked with, so what is learned is what is used.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from plantain.files.writing import replace_file
from plantain.models.hosted.asking import Question, with_smaller
from plantain.models.hosted.reports import write_report
from plantain.models.hosted.writer_and_judge import HostedJudge
from plantain.roles import EncodedImage
from plantain.train.judge.verdicts import StoredJudgement, VerdictSource

TRAIN, HELD_OUT, IMAGES = "train.jsonl", "held_out.jsonl", "images"

_ENDINGS = {"image/jpeg": "jpeg", "image/png": "png", "image/webp": "webp"}


def write_conversations(
    source: VerdictSource, judge: HostedJudge, some: Sequence[StoredJudgement], side: int | None, file: Path
) -> None:
    """Writes one line for each verdict, and its pictures beside it; what is there already is replaced.

    Args:
        source: of the verdicts.
        judge: who will be asked; its words are written.
        some: what to write, in this order.
        side: longer side in pixels of the pictures; None for as they are.
        file: for the lines; pictures go to `images/` beside it, each once, by hash.
    """
    lines: dict[str, bytes] = {}
    for one, request in source.requests(some):
        question = judge.question(request)
        question = question if side is None else with_smaller(question, side)
        answer = write_report(one.verdict.observations, source.rubric)
        lines[one.id] = orjson.dumps({"id": one.id, **_conversation(question, answer, file.parent)})
    replace_file(file, b"".join(lines[one.id] + b"\n" for one in some))


def _conversation(question: Question, answer: str, folder: Path) -> dict[str, object]:
    images: list[str] = []

    def part(part: str | EncodedImage) -> dict[str, str]:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        name = f"{hashlib.sha256(part.data).hexdigest()}.{_ENDINGS[part.media_type]}"
        path = folder / IMAGES / name
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, part.data)
        images.append(f"{IMAGES}/{name}")
        return {"type": "image"}

    messages = [
        {"role": "system", "content": [{"type": "text", "text": question.system}]},
        {"role": "user", "content": [part(one) for one in question.parts]},
        {"role": "assistant", "content": [{"type": "text", "text": answer}]},
    ]
    return {"messages": messages, "images": images}


@dataclass(frozen=True, slots=True)
class Conversations:
    """A file of conversations; one line at a time is in memory.

    Attributes:
        file: of lines.
        starts: where each begins, in bytes.
    """

    file: Path
    starts: tuple[int, ...]

    @classmethod
    def open(cls, file: Path) -> Conversations:
        """Finds the lines."""
        starts, at = [], 0
        with file.open("rb") as lines:
            for line in lines:
                starts.append(at)
                at += len(line)
        return cls(file, tuple(starts))

    def __len__(self) -> int:
        return len(self.starts)

    def messages(self, number: int) -> list[dict[str, Any]]:
        """One conversation with its pictures, as transformers' chat templates take it."""
        from PIL import Image

        with self.file.open("rb") as lines:
            lines.seek(self.starts[number])
            line = orjson.loads(lines.readline())
        pictures: Iterator[str] = iter(line["images"])
        messages: list[dict[str, Any]] = line["messages"]
        for message in messages:
            for part in message["content"]:
                if part["type"] == "image":
                    with Image.open(self.file.parent / next(pictures)) as picture:
                        part["image"] = picture.convert("RGB")
        return messages

    @property
    def digest(self) -> str:
        """SHA-256 of the file: words, answers and the hashes of pictures."""
        with self.file.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def written(folder: Path) -> bool:
    """Whether both files are there."""
    return all(os.path.lexists(folder / name) for name in (TRAIN, HELD_OUT))
