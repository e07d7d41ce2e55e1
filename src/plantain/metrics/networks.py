"""The networks behind the learned metrics, loaded from this machine; each needs torch, and nothing is downloaded."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image as Pillow

from plantain.files.installed import install_line
from plantain.metrics.metric import Networks, registered
from plantain.pixels.arrays import Image
from plantain.records import InputError

CLIP = "openai/clip-vit-large-patch14"


def find_networks(
    wanted: set[str],
    *,
    clip: str = CLIP,
    inception: Path | None = None,
    inception_sha256: str | None = None,
    encoder: Path | None = None,
) -> Networks:
    """Load the networks that the requested metrics need; `why_not` of the result lists those that are missing.

    Args:
        wanted: names of metrics; nothing is loaded for others.
        clip: weights of CLIP: a name on the Hugging Face hub that was downloaded before, or a folder.
        inception: TorchScript file of the Inception network of FID.
        inception_sha256: hash of the published file; without it FID has the file's own name.
        encoder: folder of a vision encoder of transformers, for `frechet_encoder`.

    Raises:
        InputError: the Inception file is missing or has another hash, or the encoder cannot be loaded.
    """
    known = registered()
    used = {known[name].uses for name in wanted if name in known}
    if "fid" in wanted:
        used.add("features")
    if "frechet_encoder" in wanted:
        used.add("encoder")
    loaders = (
        ("clip", "clip", lambda: _clip(clip)),
        ("perceptual", "lpips", _lpips),
        ("reward", "image_reward", _reward),
        ("features", "fid", lambda: _inception(inception, inception_sha256)),
        ("encoder", "frechet_encoder", lambda: _encoder(encoder)),
    )
    loaded: dict[str, Any] = {field: load() for field, _, load in loaders if field in used}
    missing = [
        (metrics, loaded.pop(field)) for field, metrics, _ in loaders if isinstance(loaded.get(field), str)
    ]
    return Networks(**loaded, why_not=tuple(missing))


def _missing(*modules: str) -> bool:
    return any(importlib.util.find_spec(module) is None for module in modules)


def _clip(weights: str) -> ClipEncoder | str:
    if _missing("torch", "transformers"):
        return f"needs the torch extra: {install_line('torch')}"
    from huggingface_hub import try_to_load_from_cache

    if not Path(weights).is_dir() and not isinstance(try_to_load_from_cache(weights, "config.json"), str):
        return f"the weights of {weights} are not on this machine (nothing is downloaded unasked)"
    try:
        return ClipEncoder(weights)
    except (OSError, ValueError) as error:
        return f"the weights of {weights} cannot be loaded: {str(error).splitlines()[0]}"


def _lpips() -> LpipsNetwork | str:
    if _missing("torch", "torchvision", "lpips"):
        return f"needs torch, torchvision and lpips: {install_line('torch')} torchvision lpips"
    import torch

    folder = Path(torch.hub.get_dir()) / "checkpoints"
    if not any(folder.glob("alexnet-*.pth")):
        return f"the weights of AlexNet are not in {folder} (nothing is downloaded unasked)"
    return LpipsNetwork()


def _reward() -> ImageRewardModel | str:
    if _missing("torch", "ImageReward"):
        return "needs torch and ImageReward: install the package from its repository"
    file = Path("~/.cache/ImageReward/ImageReward.pt").expanduser()
    if not file.exists():
        return f"the weights are not at {file} (nothing is downloaded unasked)"
    return ImageRewardModel()


def _inception(path: Path | None, sha256: str | None) -> InceptionEncoder | str:
    if _missing("torch"):
        return f"needs the torch extra: {install_line('torch')}"
    if path is None:
        return "needs the file of the Inception network: --inception FILE"
    if not path.is_file():
        raise InputError(f"--inception: {path}: no such file")
    return InceptionEncoder(path, sha256)


def _encoder(folder: Path | None) -> TransformersEncoder | str:
    if _missing("torch", "transformers"):
        return f"needs the torch extra: {install_line('torch')}"
    if folder is None:
        return "needs the folder of a vision encoder: --encoder FOLDER"
    return TransformersEncoder(folder)


INCEPTION = "inception-v3-2015-12-05"
"""Name of the network of the published FID."""


class ClipEncoder:
    """A CLIP model of transformers with its own preprocessing, from files on this machine.

    Args:
        weights: a name on the Hugging Face hub that was downloaded before, or a folder; also the encoder's name.
    """

    def __init__(self, weights: str) -> None:
        from transformers import CLIPModel, CLIPProcessor

        self.name = weights
        self.model = CLIPModel.from_pretrained(weights, local_files_only=True).eval()
        self.processor = CLIPProcessor.from_pretrained(weights, local_files_only=True)

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.float32]:
        """Return projected features, float32 (n, d), of uint8 RGB images (H, W, 3); not normalised."""
        import torch

        batch = self.processor(images=list(images), return_tensors="pt")
        with torch.inference_mode():
            inner = self.model.vision_model(pixel_values=batch["pixel_values"])
            rows = self.model.visual_projection(inner.pooler_output)
        return np.asarray(rows.float().numpy(), np.float32)

    def texts(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return projected text features, float32 (n, d), not normalised; texts are cut at the model's context."""
        import torch

        batch = self.processor(text=list(texts), return_tensors="pt", padding=True, truncation=True)
        with torch.inference_mode():
            inner = self.model.text_model(
                input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]
            )
            rows = self.model.text_projection(inner.pooler_output)
        return np.asarray(rows.float().numpy(), np.float32)

    def truncated(self, text: str) -> bool:
        """Return True if the text has more tokens than the model's context."""
        tokens = self.processor.tokenizer(text, truncation=False)["input_ids"]
        return len(tokens) > int(self.model.config.text_config.max_position_embeddings)


class InceptionEncoder:
    """Pooled 2,048-dimensional features of an Inception network in a TorchScript file.

    Args:
        path: the file `inception-2015-12-05.pt`; its forward takes uint8 (N, 3, H, W) and `return_features`, and
            resizes by itself.
        sha256: hash of the published file. The metric is only called "fid" if it is given and matches;
            otherwise the file's hash is added.

    Raises:
        InputError: the file has another hash than `sha256`.
    """

    def __init__(self, path: Path, sha256: str | None = None) -> None:
        import torch

        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if sha256 is not None and digest != sha256.lower():
            raise InputError(f"{path}: sha256 is {digest}, not {sha256}")
        self.name = INCEPTION if sha256 is not None else f"torchscript-{digest[:12]}"
        self.network = torch.jit.load(str(path), map_location="cpu").eval()

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.float32]:
        """Return features, float32 (n, d), of uint8 RGB images (H, W, 3), which may differ in size."""
        import torch

        rows = []
        with torch.inference_mode():
            for image in images:
                pixels = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)[np.newaxis]))
                rows.append(self.network(pixels, return_features=True).float().numpy())
        return np.asarray(np.concatenate(rows), np.float32)


class TransformersEncoder:
    """Any vision encoder of transformers, from a folder, e.g. Rad-DINO; of an image-text model only the image part.

    Features are the pooled output or, without one, the first token (CLS) of the last layer.

    Args:
        folder: weights as safetensors, `config.json` and `preprocessor_config.json`.

    Attributes:
        name: the folder's name and the start of a SHA-256 of these files.

    Raises:
        InputError: the folder has no weights, or transformers cannot load it.
    """

    def __init__(self, folder: Path) -> None:
        from transformers import AutoConfig, AutoImageProcessor, AutoModel

        weights = sorted(folder.glob("*.safetensors"))
        if not weights:
            raise InputError(f"--encoder: {folder}: no file *.safetensors")
        try:
            config = AutoConfig.from_pretrained(folder, local_files_only=True)
            if hasattr(config, "mask_ratio"):
                config.mask_ratio = 0.0  # a masked autoencoder, such as RETFound, would hide random patches
            model = AutoModel.from_pretrained(folder, config=config, local_files_only=True).eval()
            self.processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError, ImportError) as error:
            raise InputError(f"--encoder: {folder}: {str(error).strip().splitlines()[0]}") from error
        self.model = getattr(model, "vision_model", model)
        digest = hashlib.sha256()
        for file in (*weights, folder / "config.json", folder / "preprocessor_config.json"):
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        self.name = f"{folder.resolve().name}-{digest.hexdigest()[:12]}"

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.float32]:
        """Return features, float32 (n, d), of uint8 RGB images (H, W, 3), prepared by the folder's image processor."""
        import torch

        pixels = self.processor(images=list(images), return_tensors="pt")["pixel_values"]
        with torch.inference_mode():
            found = self.model(pixel_values=pixels)
        pooled = getattr(found, "pooler_output", None)
        rows = pooled.flatten(1) if pooled is not None else found.last_hidden_state[:, 0]
        return np.asarray(rows.float().numpy(), np.float32)


class LpipsNetwork:
    """LPIPS from the package `lpips`, with the backbone that MedEBench uses (AlexNet)."""

    name = "lpips-alex-0.1"

    def __init__(self) -> None:
        import lpips

        self.network = lpips.LPIPS(net="alex", version="0.1", pretrained=True, pnet_rand=False).eval()

    def distance(self, before: npt.NDArray[np.float32], after: npt.NDArray[np.float32]) -> float:
        """Return the distance, 0 or more, of two float32 images (1, 3, H, W) in [-1, 1]."""
        import torch

        with torch.inference_mode():
            return float(self.network(torch.from_numpy(before), torch.from_numpy(after)).item())


class ImageRewardModel:
    """The published ImageReward. Install `image-reward` from source: its last release needs an old transformers."""

    name = "ImageReward-v1.0"

    def __init__(self) -> None:
        import ImageReward

        self.model = ImageReward.load(self.name, device="cpu")

    def reward(self, image: Image, text: str) -> float:
        """Return the reward of a uint8 RGB image (H, W, 3) for a text; higher is better."""
        import torch

        with torch.inference_mode():
            return float(self.model.score(text, Pillow.fromarray(image)))
