"""A benchmark in MedEBench's published layout, written from real images, for tests of its readers."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import skimage

from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import decode_untrusted

SIZE = (160, 120)
"""Width and height of the images."""

_DATA = Path(skimage.__file__).parent / "data"


def sample_image(name: str, *, left: int = 0, top: int = 0, size: tuple[int, int] = SIZE) -> Pixels:
    """A part of an image that comes with scikit-image, uint8 (H, W, 3)."""
    path = next(_DATA.glob(f"{name}.*"))
    pixels = decode_untrusted(path.read_bytes(), name)
    return np.ascontiguousarray(pixels[top : top + size[1], left : left + size[0]])


def spot(pixels: Pixels, centre: tuple[int, int], radius: int) -> tuple[Pixels, Mask]:
    """The image with a dark soft mole painted on it, and the mask of the mole."""
    mask = np.zeros(pixels.shape[:2], np.uint8)
    cv2.circle(mask, centre, radius, 255, -1)
    alpha = cv2.GaussianBlur(mask.astype(np.float32) / 255, (0, 0), 1.0)[..., None]
    marked = pixels * (1 - alpha) + np.array([60.0, 30.0, 20.0], np.float32) * alpha
    wide = cv2.dilate(mask, np.ones((9, 9), np.uint8)) > 0
    return np.rint(marked).astype(np.uint8), wide


def published_rows() -> list[dict[str, object]]:
    """Six samples with the published file's keys; 3 and 4 are one pair and its reverse, 5 is a removal labelled Add."""
    stated = [
        ("Skin", "Remove moles, nevi, or black marks.", "Remove the mole.", "https://example.org/a.jpg"),
        ("Skin", "Remove moles, nevi, or black marks.", "Take the mole away.", "https://example.org/b.jpg"),
        ("Teeth", "Add or remove braces.", "Add a mark.", "https://example.org/shared.jpg"),
        ("Teeth", "Add or remove braces.", "Remove the mark.", "https://www.example.org/shared.jpg#top"),
        ("Spine", "Add a mark.", "Remove the dark mark.", "https://example.org/patient/jane-doe.jpg"),
        ("Bones", "Fix fractures with screws or splints.", "Fix the fracture.", ""),
    ]
    rows: list[dict[str, object]] = []
    for number, (organ, task, prompt, url) in enumerate(stated, 1):
        rows.append(
            {
                "id": number,
                "Organ": organ,
                "Task": task,
                "prompt": prompt,
                "rephrased_prompt": f"Please: {prompt}",
                "detailed_prompt": f"The photograph was changed: {prompt}",
                "previous_image": f"editing/previous/{number}.png",
                "changed_image": f"editing/changed/{number}.png",
                "previous_mask": f"editing/previous_mask/{number}.png",
                "url": url,
            }
        )
    return rows


def write_tree(root: Path) -> Path:
    """Writes the whole tree and returns its folder `editing`, as in the published repository."""
    editing = root / "editing"
    places = [
        ("chelsea", 90, 60),
        ("coffee", 200, 120),
        ("astronaut", 20, 250),
        (None, 0, 0),
        ("coffee", 20, 20),
    ]
    places.append(("chelsea", 250, 150))
    last: tuple[Pixels, Pixels, Mask] | None = None
    for number, (name, left, top) in enumerate(places, 1):
        if name is None:
            assert last is not None
            previous, changed, mask = last[1], last[0], last[2]
        else:
            clean = sample_image(name, left=left, top=top)
            marked, mask = spot(clean, (40 + 12 * number, 60), 14)
            previous, changed = (clean, marked) if number == 3 else (marked, clean)
            last = (previous, changed, mask)
        write_png(editing / "previous" / f"{number}.png", previous)
        write_png(editing / "changed" / f"{number}.png", changed)
        write_png(editing / "previous_mask" / f"{number}.png", mask.astype(np.uint8) * 255)
    write_rows(editing, {"samples": published_rows()})
    return editing


def write_rows(editing: Path, data: object) -> Path:
    """Writes the metadata."""
    editing.mkdir(parents=True, exist_ok=True)
    path = editing / "editing_metadata.json"
    path.write_text(json.dumps(data, indent=2), encoding="utf-8")
    return path


def write_png(path: Path, pixels: np.ndarray) -> None:
    """Writes uint8 (H, W), (H, W, 3) RGB or (H, W, 4) RGBA."""
    path.parent.mkdir(parents=True, exist_ok=True)
    order = {3: cv2.COLOR_RGB2BGR, 4: cv2.COLOR_RGBA2BGRA}
    shown = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, order[pixels.shape[2]])
    done, data = cv2.imencode(".png", shown)
    assert done
    path.write_bytes(data.tobytes())
