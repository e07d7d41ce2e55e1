"""Regions proposed by Grounded-SAM: GroundingDINO finds the structure that the task names, and SAM outlines it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from plantain.bench.prepare.regions_proposed import MOST, SAME, RegionProposal, overlap
from plantain.files.installed import install_line
from plantain.pixels.arrays import Mask, Pixels
from plantain.records import InputError

DETECTORS = {
    "tiny": "IDEA-Research/grounding-dino-tiny",
    "base": "IDEA-Research/grounding-dino-base",
}
SEGMENTERS = {
    "base": "facebook/sam-vit-base",
    "large": "facebook/sam-vit-large",
    "huge": "facebook/sam-vit-huge",
}
"""Published sizes by short name. The paper does not state which it used."""

BOXES = 12
"""Most confident boxes that SAM segments, so that three of their masks differ."""

Box = tuple[float, float, float, float]


class GroundedProposer:
    """Propose regions with GroundingDINO and SAM from weights on this machine; nothing is downloaded.

    Args:
        detector: a short name of `DETECTORS`, or a folder of weights.
        segmenter: a short name of `SEGMENTERS`, or a folder of weights.

    Raises:
        InputError: the extra torch is missing, or the weights are missing or cannot be loaded.
    """

    def __init__(self, detector: str = "base", segmenter: str = "huge") -> None:
        if any(importlib.util.find_spec(module) is None for module in ("torch", "transformers")):
            raise InputError(f"--regions grounded-sam needs the torch extra: {install_line('torch')}")
        first = _weights("--detector", detector, DETECTORS)
        second = _weights("--segmenter", segmenter, SEGMENTERS)
        self.name = " + ".join(Path(one).name if Path(one).is_dir() else one for one in (first, second))

        from transformers import AutoModelForZeroShotObjectDetection, AutoProcessor, SamModel, SamProcessor

        try:
            self._words = AutoProcessor.from_pretrained(first, local_files_only=True)
            model = AutoModelForZeroShotObjectDetection.from_pretrained(first, local_files_only=True)
            self._detector = model.eval()
            self._points = SamProcessor.from_pretrained(second, local_files_only=True)
            self._segmenter = SamModel.from_pretrained(second, local_files_only=True).eval()
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"--regions grounded-sam: {first} or {second} cannot be loaded: {reason}"
            ) from error

    def propose(self, previous: Pixels, changed: Pixels | None, task: str) -> tuple[RegionProposal, ...]:
        """Return up to three masks of the structure that the task names, the most confident first.

        `changed` is not used. A mask similar to a more confident one is only returned if fewer than three differ. Empty
        and full masks are skipped.
        """
        boxes = self._boxes(previous, task)
        masks = self._masks(previous, [box for _, box in boxes])
        distinct: list[RegionProposal] = []
        similar: list[RegionProposal] = []
        for (score, _), mask in zip(boxes, masks, strict=True):
            if not mask.any() or mask.all():
                continue
            repeated = any(overlap(mask, other.mask) > SAME for other in distinct)
            proposal = RegionProposal(mask, round(min(1.0, score), 4), f"box for {task!r}")
            (similar if repeated else distinct).append(proposal)
        return (*distinct, *similar)[:MOST]

    def _boxes(self, pixels: Pixels, task: str) -> list[tuple[float, Box]]:
        """Return the most confident boxes as (confidence, (left, top, right, bottom) in pixels)."""
        import torch

        text = f"{task.casefold().strip(' .')}."  # GroundingDINO expects lower case and a full stop
        inputs = self._words(images=pixels, text=text, return_tensors="pt")
        with torch.inference_mode():
            outputs = self._detector(**inputs)
        (found,) = self._words.post_process_grounded_object_detection(
            outputs, inputs["input_ids"], threshold=0.0, target_sizes=[pixels.shape[:2]]
        )
        boxes = zip(found["scores"].tolist(), map(tuple, found["boxes"].tolist()), strict=True)
        return sorted(boxes, reverse=True)[:BOXES]

    def _masks(self, pixels: Pixels, boxes: list[Box]) -> list[Mask]:
        """Return the mask of each box, bool (H, W)."""
        import torch

        inputs = self._points(pixels, input_boxes=[[list(box) for box in boxes]], return_tensors="pt")
        with torch.inference_mode():
            outputs = self._segmenter(**inputs, multimask_output=False)
        (masks,) = self._points.image_processor.post_process_masks(
            outputs.pred_masks, inputs["original_sizes"], inputs["reshaped_input_sizes"]
        )
        return [np.asarray(mask[0].numpy(), bool) for mask in masks]


def _weights(option: str, name: str, published: dict[str, str]) -> str:
    """Return the folder, or the published name of weights on this machine."""
    from huggingface_hub import try_to_load_from_cache

    if Path(name).is_dir():
        return name
    if name not in published:
        raise InputError(f"{option}: {name!r} is neither {', '.join(published)} nor a folder of weights")
    if not isinstance(try_to_load_from_cache(published[name], "config.json"), str):
        raise InputError(f"{option}: the weights of {published[name]} are not on this machine")
    return published[name]
