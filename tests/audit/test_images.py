"""The originals of a run, taken out of a real journal."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from fakes.samples import package_samples
from plantain.audit.images import images_in
from plantain.findings import load_taxonomy
from plantain.journal import Journal, RunHeader


def run_with(folder, images):
    async def build():
        async with Journal.create(folder, RunHeader("id", "name", 1, {}, "0.1.0")) as journal:
            await journal.add_images(
                [(image, journal.put_blob(data, "image/jpeg")) for image, data in images]
            )

    asyncio.run(build())
    return folder


def test_pictures_of_a_run_are_the_real_originals_with_their_bytes(tmp_path):
    real, data = package_samples()[1].prepared()
    drawn = replace(real, id="drawn", synthetic=True)
    found = images_in(run_with(tmp_path / "run", [(real, data), (drawn, data)]), load_taxonomy())
    assert [(picture.image.id, picture.data) for picture in found] == [(real.id, data)]
