"""InstructDiffusion's checkpoint, in the layout of CompVis's Stable Diffusion, becomes a folder that draws the same.

The layout is written out here from the names of CompVis's modules (input_blocks, middle_block, output_blocks; a VAE's
encoder.down, and decoder.up counted from the end); the way back is diffusers'. No published checkpoint was at hand.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fakes.tiny.stable_diffusion import tiny_instruct_pix2pix
from models.diffusers.engine_jobs import EditSpec, run
from plantain.cli import main
from plantain.models.diffusers.engine import Engine
from plantain.models.diffusers.jobs import Loading, Steering
from plantain.models.diffusers.quiet import quiet_libraries
from plantain.sources.samples import fundus_file

RESNET = {
    ".norm1.": ".in_layers.0.",
    ".conv1.": ".in_layers.2.",
    ".time_emb_proj.": ".emb_layers.1.",
    ".norm2.": ".out_layers.0.",
    ".conv2.": ".out_layers.3.",
    ".conv_shortcut.": ".skip_connection.",
}
TOP = {
    "time_embedding.linear_1.": "time_embed.0.",
    "time_embedding.linear_2.": "time_embed.2.",
    "conv_in.": "input_blocks.0.0.",
    "conv_norm_out.": "out.0.",
    "conv_out.": "out.2.",
}
LAYERS, LEVELS = 1, 4
"""Resnets of a block of the tiny UNet, and levels of the tiny VAE."""


def unet_name(name: str) -> str:
    """A layer of a UNet as CompVis counts it: all blocks of the way down, then of the way up, in one row each."""
    kind = {"resnets": 0, "attentions": 1}
    for old, new in RESNET.items() if ".resnets." in name else ():
        name = name.replace(old, new)
    for old, new in TOP.items():
        name = re.sub(f"^{re.escape(old)}", new, name)
    each = LAYERS + 1
    rules = (
        (
            r"down_blocks\.(\d)\.(resnets|attentions)\.(\d)",
            lambda m: f"input_blocks.{each * int(m[1]) + int(m[3]) + 1}.{kind[m[2]]}",
        ),
        (
            r"down_blocks\.(\d)\.downsamplers\.0\.conv",
            lambda m: f"input_blocks.{each * (int(m[1]) + 1)}.0.op",
        ),
        (
            r"up_blocks\.(\d)\.(resnets|attentions)\.(\d)",
            lambda m: f"output_blocks.{each * int(m[1]) + int(m[3])}.{kind[m[2]]}",
        ),
        (r"up_blocks\.(\d)\.upsamplers\.0", lambda m: f"output_blocks.{each * int(m[1]) + LAYERS}.2"),
        (r"mid_block\.resnets\.(\d)", lambda m: f"middle_block.{2 * int(m[1])}"),
        (r"mid_block\.attentions\.0", lambda m: "middle_block.1"),
    )
    for pattern, becomes in rules:
        name = re.sub(f"^{pattern}", becomes, name)
    return f"model.diffusion_model.{name}"


def vae_name(name: str) -> str:
    name = re.sub(r"mid_block\.resnets\.(\d)", lambda m: f"mid.block_{int(m[1]) + 1}", name)
    name = re.sub(r"up_blocks\.(\d)", lambda m: f"up.{LEVELS - 1 - int(m[1])}", name)
    for old, new in (
        ("down_blocks.", "down."),
        (".resnets.", ".block."),
        ("downsamplers.0", "downsample"),
        ("upsamplers.0", "upsample"),
        ("conv_shortcut", "nin_shortcut"),
        ("conv_norm_out", "norm_out"),
        ("mid_block.attentions.0", "mid.attn_1"),
        ("group_norm", "norm"),
        ("to_out.0", "proj_out"),
        (".to_", "."),
    ):
        name = name.replace(old, new)
    return f"first_stage_model.{name}"


def published(folder: Path) -> dict[str, Tensor]:
    """A tiny pipeline, saved, and its weights as InstructDiffusion's `convert_ckpt.py` leaves them."""
    quiet_libraries()
    pipe = tiny_instruct_pix2pix(3)
    pipe.save_pretrained(folder)
    vae = {vae_name(name): weight for name, weight in pipe.vae.state_dict().items()}
    flat = {  # CompVis's attention of the VAE is of convolutions
        name: weight[:, :, None, None] if "attn_1" in name and weight.ndim == 2 else weight
        for name, weight in vae.items()
    }
    text = pipe.text_encoder.state_dict().items()
    return (
        {unet_name(name): weight for name, weight in pipe.unet.state_dict().items()}
        | flat
        | {
            f"cond_stage_model.transformer.text_model.{name.removeprefix('text_model.')}": weight
            for name, weight in text
        }
    )


def drawn(folder: Path) -> bytes:
    loading = Loading(folder, "instruct-diffusion", safety_checker=False)
    spec = EditSpec(fundus_file().read_bytes(), "Remove the optic disc", 1)
    done = run(Engine("cpu"), loading, spec, Steering(steps=2))
    assert done.image is not None, done.outcome
    return done.image


def test_a_converted_checkpoint_draws_like_its_pipeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = published(tmp_path / "whole")
    assert {  # names that CompVis's own configuration gives (one resnet a level here, two there)
        "model.diffusion_model.input_blocks.0.0.weight",
        "model.diffusion_model.middle_block.1.transformer_blocks.0.attn2.to_k.weight",
        "model.diffusion_model.output_blocks.1.2.conv.weight",
        "first_stage_model.decoder.up.3.upsample.conv.weight",
        "first_stage_model.encoder.mid.attn_1.q.weight",
    } <= state.keys()
    torch.save({"state_dict": state}, tmp_path / "task.ckpt")
    tiny_instruct_pix2pix(9, in_channels=4).save_pretrained(tmp_path / "base")  # other weights, four channels
    command = ["models", "convert", str(tmp_path / "task.ckpt"), "--to", str(tmp_path / "made"), "--base"]
    assert main([*command, str(tmp_path / "base")]) == 0
    assert f"medebench-instruct-diffusion@{tmp_path / 'made'}" in capsys.readouterr().out
    assert drawn(tmp_path / "made") == drawn(tmp_path / "whole")
    assert main([*command, str(tmp_path / "base")]) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("model.diffusion_model.middle_block.1.norm.weight", "has no weights for some parts of"),
        ("cond_stage_model.", "holds no weights of a text encoder"),
    ],
)
def test_a_checkpoint_with_missing_weights_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str, message: str
) -> None:
    state = published(tmp_path / "base")
    state = {name: weight for name, weight in state.items() if not name.startswith(missing)}
    torch.save({"state_dict": state}, tmp_path / "cut.ckpt")
    command = ["models", "convert", str(tmp_path / "cut.ckpt"), "--to", str(tmp_path / "made")]
    assert main([*command, "--base", str(tmp_path / "base")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base", "cut.ckpt"]
