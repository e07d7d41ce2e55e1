"""Tiny pipelines of every class, saved once, so that tests load them as users load theirs: from a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plantain.models.diffusers.jobs import Loading

pytest.importorskip("diffusers")

ALIKE = {"instruct-diffusion": "instruct-pix2pix"}
"""Methods that run another's weights."""


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny pipeline that the named method runs."""
    import torch

    from fakes.tiny.saving import save_tiny

    torch.set_num_threads(1)  # before the first test: see tests/conftest.py
    root = tmp_path_factory.mktemp("tiny")

    def folder(method: str) -> Path:
        path = root / ALIKE.get(method, method)
        if not path.exists():
            save_tiny(method, path)
        return path

    return folder


@pytest.fixture(scope="session")
def tiny_loading(tiny_folder: Callable[[str], Path]) -> Callable[[str], Loading]:
    return lambda method: Loading(tiny_folder(method), method)
