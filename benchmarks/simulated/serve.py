"""The fake provider of the tests in a process of its own, so that its work is not counted as ours.

Prints its address, serves until its standard input is closed, then prints how many requests it took.
"""

from __future__ import annotations

import argparse
import itertools
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import skimage.data

TESTS = Path(__file__).parents[2] / "tests"

HARMLESS = (
    *("400 setting", "429 ms", "429 bare", "500", "502 html", "503", "dropped"),
    *(
        "truncated body",
        "nothing in it",
        "blocked before",
        "blocked after",
    ),
    *("IMAGE_SAFETY", "NO_IMAGE", "text, no image", "wide image", "no image file", "bad base64"),
    *("same image", "fenced", "prose around", "cut words", "missing key"),
)
"""Faults of the tests' list that concern one call: no bad key, no spent quota, no wait of minutes."""


@contextmanager
def serving(
    latency_s: float = 0.0, faults: float = 0.0, *, images: int = 1, kind: str = ".jpg"
) -> Iterator[tuple[str, str]]:
    """Starts the provider; gives its address and key.

    Args:
        latency_s: of each answer.
        faults: share of the answers.
        images: how many different ones it answers edits with, in turn: photographs of 1024x1024 pixels.
        kind: ".jpg" or ".png".
    """
    command = [sys.executable, __file__, "--latency", str(latency_s), "--faults", str(faults)]
    command += ["--images", str(images), "--kind", kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        url, key = process.stdout.readline().split()
        try:
            yield url, key
        finally:
            process.stdin.close()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float)
    parser.add_argument("--faults", type=float)
    parser.add_argument("--images", type=int)
    parser.add_argument("--kind")
    args = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    from fakes import gemini_format, openai_format
    from fakes.faults import FAULTS, STEPS
    from fakes.server import KEY, Answer, FakeProvider, Request

    rng = random.Random(0)
    photographs = itertools.cycle(photographs_of(args.images, args.kind))

    def spoil(request: Request, good: Answer) -> Answer:
        form = gemini_format if request.path.endswith(":generateContent") else openai_format
        step = form.step_of(request)
        if rng.random() < args.faults:
            name = rng.choice(HARMLESS)
            fault = FAULTS[name]("gemini" if form is gemini_format else "openai")
            if fault is not None and step in STEPS.get(name, ("write", "edit", "judge")):
                return replace(fault(request, good), latency_s=args.latency)
        if step == "edit":
            return replace(form.image_answer(next(photographs)), latency_s=args.latency)
        return good

    routes = [gemini_format.gemini_route, openai_format.openai_route]
    with FakeProvider(routes, spoil=spoil, latency_s=args.latency) as provider:
        provider.calls = Forgetful()
        print(provider.url, KEY, flush=True)
        sys.stdin.read()


def photographs_of(count: int, kind: str) -> list[bytes]:
    """Crops of one photograph, as a provider might send them: never in our own form."""
    retina = skimage.data.retina()
    made = []
    for i in range(count):
        left, top = i % 380, i // 380
        crop = np.ascontiguousarray(retina[top : top + 1024, left : left + 1024, ::-1])
        done, data = cv2.imencode(kind, crop)
        assert done
        made.append(data.tobytes())
    return made


class Forgetful(list):
    """Keeps no requests: a soak sends gigabytes of them."""

    def append(self, request: object) -> None:
        return


if __name__ == "__main__":
    main()
