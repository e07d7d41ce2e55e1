"""Readers of a study by HTTP alone: they sign in, answer what they are shown, and send again until it is confirmed."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from plantain.review.freezing import StudySettings, new_study
from plantain.review.sources import Material
from plantain.review.study import ORIGINAL, ReaderTask, Study
from plantain.rubrics import MED_BANANA


def noise_study(folder: Path, cases: int, side: int = 64) -> Study:
    """A study of pairs over pictures of noise."""

    def picture(case: int, model: int) -> np.ndarray:
        return np.random.default_rng([case, model]).integers(0, 255, (side, side, 3), dtype=np.uint8)

    found = [
        Material(
            f"t{case}", "all", f"p{case}", "chest_xray", "Pneumothorax", "add", "Add it.",
            {name: lambda c=case, m=m: picture(c, m) for m, name in enumerate((ORIGINAL, "a", "b"))},
        )
        for case in range(cases)
    ]  # fmt: skip
    return new_study(folder, found, ["noise"], StudySettings("Noise", 1, (ReaderTask.PAIR,), MED_BANANA))


@dataclass
class ScriptedReader:
    """One reader. `seconds` are of each answer that was confirmed, `confirmed` their rows by position."""

    address: str
    token: str
    cookie: str = ""
    again: int = 0
    seconds: list[float] = field(default_factory=list)
    confirmed: dict[int, int] = field(default_factory=dict)
    _line: http.client.HTTPConnection | None = None

    def ask(self, path: str, body: object = None, patience: float = 60.0) -> dict[str, Any]:
        """One request, sent again through whatever cuts it off."""
        host, deadline = urlsplit(self.address).netloc, time.monotonic() + patience
        headers = {"Cookie": self.cookie, "Content-Type": "application/json"}
        while True:
            try:
                self._line = self._line or http.client.HTTPConnection(host, timeout=20)
                self._line.request(
                    "POST" if body is not None else "GET",
                    path,
                    json.dumps(body) if body is not None else None,
                    headers,
                )
                answer = self._line.getresponse()
                said = answer.read()
                if answer.status != 200:
                    raise RuntimeError(f"{path}: {answer.status} {said[:200]!r}")
                if cookie := answer.headers.get("set-cookie"):
                    self.cookie = cookie.split(";")[0]
                return dict(json.loads(said))
            except (OSError, http.client.HTTPException):
                self._line = None
                self.again += 1
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def sign_in(self) -> None:
        """Takes a session."""
        self.ask("/enter", {"token": self.token})

    def read(self, items: int) -> Iterator[int]:
        """Answers items one after the other; yields each row's id once it is confirmed."""
        for position in range(items):
            case = self.ask(f"/api/case/b1/{position}")
            body = {
                "item": case["item"],
                "key": f"{position:016d}",
                "value": {"better": "tie"},
                "focus_ms": 900,
            }
            begun = time.monotonic()
            row = self.ask("/api/answer", body)["saved"]
            self.seconds.append(time.monotonic() - begun)
            if position % 5 == 0:  # a double click
                assert self.ask("/api/answer", body)["saved"] == row
            self.confirmed[position] = row
            yield row
