"""Tiny pipelines of every class, saved once, so that tests load them as users load theirs: from a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plantain.models.diffusers.jobs import Loading

pytest.importorskip("diffusers")


CLASSES = {
    "instruct-pix2pix": "pix2pix",
    "instruct-diffusion": "pix2pix",
    "imagic": "base",
    "icedit": "fill",
    "flux-kontext": "kontext",
    "flux2-klein": "klein",
    "ledits": "deep base",
    "sdxl-instruct-pix2pix": "sdxl",
    "qwen-image-edit": "qwen",
    "qwen-image-edit-plus": "qwen plus",
}
"""Method -> the saved pipeline that it runs."""


def _save(kind: str, folder: Path) -> None:
    from fakes import tiny_pipelines as tiny

    if kind.startswith("qwen"):
        tiny.save_tiny_qwen_image_edit(folder, plus=kind == "qwen plus")
        return
    build = {
        "pix2pix": tiny.tiny_instruct_pix2pix,
        "base": tiny.tiny_stable_diffusion,
        "deep base": lambda: tiny.tiny_stable_diffusion(levels=3),
        "fill": tiny.tiny_flux_fill,
        "kontext": tiny.tiny_flux_kontext,
        "klein": tiny.tiny_flux2_klein,
        "sdxl": tiny.tiny_sdxl_instruct_pix2pix,
    }[kind]
    build().save_pretrained(folder)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny pipeline that the named method runs."""
    root = tmp_path_factory.mktemp("tiny")

    def folder(method: str) -> Path:
        path = root / CLASSES[method].replace(" ", "-")
        if not path.exists():
            _save(CLASSES[method], path)
        return path

    return folder


@pytest.fixture(scope="session")
def tiny_loading(tiny_folder: Callable[[str], Path]) -> Callable[[str], Loading]:
    return lambda method: Loading(tiny_folder(method), method)
