"""Prepare the images of the packages once in a process: that takes seconds, and tests only read them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from plantain.audit import images

prepared = cache(images.package_images)


@pytest.fixture(autouse=True, scope="module")
def _prepared_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(images, "package_images", lambda: list(prepared()))
        yield
