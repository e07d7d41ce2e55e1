"""Texts and images of the fake models: deterministic in the request, good enough for the loop."""

from __future__ import annotations

import hashlib
import json
from functools import cache

import cv2
import numpy as np

CRITERIA = ("instruction_compliance", "structural_plausibility", "realism", "fidelity_preservation")


def instruction(text: str) -> str:
    """An instruction that differs with the prompt."""
    return (
        f"Brighten a small round area near the middle, variant {digest(text)[:8]}, and change nothing else."
    )


def report(text: str) -> dict[str, object]:
    """A judge's report; about half of the prompts pass everything."""
    good = int(digest(text)[0], 16) < 8
    report: dict[str, object] = {
        name: {
            "evidence": "seen at the middle",
            "codes": [] if good or name != "realism" else ["hard_edge"],
            "passed": good or name != "realism",
            "confidence": 0.8,
        }
        for name in CRITERIA
    }
    removing = "remove one finding" in text
    report |= {"has_disease": not removing, "other_disease": False, "reason": "by hash", "qualified": good}
    return report


def scale(text: str) -> dict[str, object]:
    """A judge's scores from 0 to 10, by the prompt."""
    numbers = [int(digit, 16) % 11 for digit in digest(text)[:3]]
    names = ("editing_accuracy", "context_preservation", "visual_quality")
    scores = {name: {"reason": "by hash", "score": n} for name, n in zip(names, numbers, strict=True)}
    return {"differences": "A spot near the middle.", **scores}


def report_text(text: str) -> str:
    return json.dumps(scale(text) if "editing_accuracy" in text else report(text))


@cache
def an_image(kind: str = ".png", width: int = 256, height: int = 256, shade: int = 90) -> bytes:
    """An image with a gradient and a disc, as a file."""
    gray = np.linspace(20, 200, width, dtype=np.float32)[None, :].repeat(height, 0).astype(np.uint8)
    cv2.circle(gray, (width // 2, height // 2), max(2, min(width, height) // 6), shade, -1)
    done, data = cv2.imencode(kind, cv2.merge([gray, gray, gray]))
    assert done
    return data.tobytes()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
