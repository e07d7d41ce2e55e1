"""Proposals by an open-vocabulary detector and a segmenter, in the manner of Grounded-SAM.

Loads GroundingDINO and SAM from transformers when it is used, with weights that are on the machine already. It has
never been run where plantain is made, as neither weights nor an accelerator are there; the difference of the pair is
the default for that reason.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from plantain.bench.prepare.regions_proposed import MOST, SAME, RegionProposal
from plantain.files.installing import install_line
from plantain.pixels.arrays import Mask, Pixels
from plantain.records import InputError

DETECTOR = "IDEA-Research/grounding-dino-base"
SEGMENTER = "facebook/sam-vit-huge"
LEAST = 0.05
"""Confidence of a box, as low as in the published preparation."""


class Detector(Protocol):
    """Finds boxes for words."""

    def boxes(self, pixels: Pixels, words: str) -> list[tuple[float, tuple[float, float, float, float]]]:
        """(confidence, (left, top, right, bottom) in pixels), in any order."""
        ...


class Segmenter(Protocol):
    """Cuts out what lies in a box."""

    def mask(self, pixels: Pixels, box: tuple[float, float, float, float]) -> Mask:
        """bool (H, W)."""
        ...


class GroundedProposer:
    """Boxes for words, then a mask for each box: any detector, any segmenter."""

    def __init__(self, detector: Detector, segmenter: Segmenter, name: str) -> None:
        self._detector, self._segmenter, self.name = detector, segmenter, name

    def propose(self, previous: Pixels, changed: Pixels | None, words: str) -> tuple[RegionProposal, ...]:
        """Masks of the most confident boxes that are not nearly the same; the image after is not looked at."""
        kept: list[RegionProposal] = []
        for sure, box in sorted(self._detector.boxes(previous, words), reverse=True):
            if sure < LEAST or len(kept) == MOST:
                break
            mask = self._segmenter.mask(previous, box)
            union = [float((mask & o.mask).sum()) / max(1.0, float((mask | o.mask).sum())) for o in kept]
            if mask.any() and not mask.all() and all(overlap <= SAME for overlap in union):
                kept.append(RegionProposal(mask, round(min(1.0, sure), 4), f"box for {words!r}"))
        return tuple(kept)


def grounded_sam(
    detector: str = DETECTOR, segmenter: str = SEGMENTER, *, device: str = "cpu"
) -> GroundedProposer:
    """GroundingDINO and SAM from weights on this machine; nothing is downloaded.

    Raises:
        InputError: the extra torch is missing, or weights are not here.
    """
    if any(importlib.util.find_spec(module) is None for module in ("torch", "transformers")):
        raise InputError(f"--regions grounded-sam needs the torch extra: {install_line('torch')}")
    for weights in (detector, segmenter):
        if not Path(weights).is_dir() and not _in_hub_cache(weights):
            raise InputError(
                f"--regions grounded-sam: the weights of {weights} are not on this machine (nothing is downloaded)"
            )
    try:
        made = GroundedProposer(
            _TransformersDetector(detector, device),
            _TransformersSegmenter(segmenter, device),
            f"{detector} + {segmenter}",
        )
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"--regions grounded-sam: weights of {detector} or {segmenter} cannot be loaded here: {first}"
        ) from error
    return made


def _in_hub_cache(name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(name, "config.json"), str)


class _TransformersDetector:
    def __init__(self, weights: str, device: str) -> None:
        from transformers import AutoModelForZeroShotObjectDetection, AutoProcessor

        self._processor = AutoProcessor.from_pretrained(weights, local_files_only=True)
        model = AutoModelForZeroShotObjectDetection.from_pretrained(weights, local_files_only=True)
        self._model, self._device = model.to(device).eval(), device

    def boxes(self, pixels: Pixels, words: str) -> list[tuple[float, tuple[float, float, float, float]]]:
        import torch

        # GroundingDINO wants lower case and a full stop after each phrase.
        text = f"{words.casefold().strip(' .')}."
        inputs = self._processor(images=pixels, text=text, return_tensors="pt").to(self._device)
        with torch.inference_mode():
            outputs = self._model(**inputs)
        found = self._processor.post_process_grounded_object_detection(
            outputs,
            inputs["input_ids"],
            threshold=LEAST,
            text_threshold=LEAST,
            target_sizes=[pixels.shape[:2]],
        )[0]
        pairs = zip(found["scores"].tolist(), found["boxes"].tolist(), strict=True)
        return [(float(sure), cast(tuple[float, float, float, float], tuple(box))) for sure, box in pairs]


class _TransformersSegmenter:
    def __init__(self, weights: str, device: str) -> None:
        from transformers import SamModel, SamProcessor

        self._processor = SamProcessor.from_pretrained(weights, local_files_only=True)
        model = SamModel.from_pretrained(weights, local_files_only=True)
        self._model, self._device = model.to(device).eval(), device

    def mask(self, pixels: Pixels, box: tuple[float, float, float, float]) -> Mask:
        import torch

        inputs = self._processor(pixels, input_boxes=[[list(box)]], return_tensors="pt").to(self._device)
        with torch.inference_mode():
            outputs = self._model(**inputs, multimask_output=False)
        masks = self._processor.image_processor.post_process_masks(
            outputs.pred_masks.cpu(), inputs["original_sizes"].cpu(), inputs["reshaped_input_sizes"].cpu()
        )
        return np.asarray(masks[0][0, 0].numpy(), bool)
