"""The adapters of real networks, with small seeded ones in their place; skipped where torch is not installed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from plantain.records import InputError

torch = pytest.importorskip("torch")


def images(n: int, side: int = 24) -> list[np.ndarray]:
    return list(np.random.default_rng(3).integers(0, 256, (n, side, side, 3), dtype=np.uint8))


def test_inception_is_named_by_its_hash_until_the_hash_is_confirmed(tmp_path):
    from plantain.metrics.networks import InceptionEncoder

    class Pooled(torch.nn.Module):
        def forward(self, pixels: torch.Tensor, return_features: bool) -> torch.Tensor:
            assert return_features
            return pixels.float().mean(dim=[2, 3])

    path = tmp_path / "network.pt"
    torch.jit.script(Pooled()).save(str(path))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    encoder = InceptionEncoder(path)
    assert encoder.images(images(4)) == pytest.approx(np.stack(images(4)).mean(axis=(1, 2)), abs=1e-3)
    assert encoder.name == f"torchscript-{digest[:12]}"
    assert InceptionEncoder(path, digest).name == "inception-v3-2015-12-05"
    with pytest.raises(InputError, match="sha256"):
        InceptionEncoder(path, "0" * 64)


SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
SEEN = {"image_size": 32, "patch_size": 8}


def tiny(kind: str, folder: Path) -> Path:
    """Save a model of random weights with its image processor, as a download from a hub has them."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    if kind == "CLIP":
        text = {**SMALL, "vocab_size": 50, "eos_token_id": 2}
        config = transformers.CLIPConfig(text_config=text, vision_config={**SMALL, **SEEN}, projection_dim=8)
    elif kind == "ViTMAE":
        small = {f"decoder_{name}": size for name, size in SMALL.items()}
        config = transformers.ViTMAEConfig(**SMALL, **SEEN, **small, mask_ratio=0.75)
    else:
        config = transformers.Dinov2Config(**SMALL, **SEEN)
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["DINOv2", "ViTMAE", "CLIP"])
def test_any_vision_encoder_is_named_by_its_folder_and_files(kind, tmp_path):
    from plantain.metrics.networks import TransformersEncoder

    folder = tiny(kind, tmp_path / "rad-dino")
    encoder = TransformersEncoder(folder)
    rows = encoder.images(images(3))
    assert rows.shape == (3, 16)
    # No patch is hidden, and an image's features do not depend on those next to it.
    assert encoder.images(images(3)[1:]) == pytest.approx(rows[1:], abs=1e-5)
    assert np.abs(rows[0] - rows[1]).max() > 1e-3
    files = [folder / name for name in ("model.safetensors", "config.json", "preprocessor_config.json")]
    digest = hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files))
    assert encoder.name == f"rad-dino-{digest.hexdigest()[:12]}"
    files[0].unlink()
    with pytest.raises(InputError, match=r"rad-dino: no file \*\.safetensors"):
        TransformersEncoder(folder)


def test_features_are_those_of_the_class_token(tmp_path):
    transformers = pytest.importorskip("transformers")
    from plantain.metrics.networks import TransformersEncoder

    folder = tiny("DINOv2", tmp_path)
    model = transformers.Dinov2Model.from_pretrained(folder).eval()
    # As the processor is saved: resized to 32 x 32, then (x / 255 - 0.5) / 0.5.
    white = torch.ones(1, 3, 32, 32)
    with torch.no_grad():
        expected = model(white).last_hidden_state[:, 0]
    found = TransformersEncoder(folder).images([np.full((50, 40, 3), 255, np.uint8)])
    assert found == pytest.approx(expected.numpy(), abs=1e-5)
