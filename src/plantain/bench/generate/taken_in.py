"""Records a sample's own pictures in the run once, so that their licence is known wherever they go."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import encode_png
from plantain.bench.benchmark.samples import Sample
from plantain.journal import Journal
from plantain.privacy.lineage import made_from
from plantain.records import InputError
from plantain.roles import EncodedImage

PNG = "image/png"


async def previous_of(benchmark: Benchmark, journal: Journal, sample: Sample) -> tuple[EncodedImage, str]:
    """The sample's previous image as every model gets it, and its hash; taken into the run when first needed."""
    try:
        sha256 = journal.reader.image(sample.id).prepared_sha256
        data = await asyncio.to_thread(journal.reader.read_blob, sha256)
    except InputError:
        data = await asyncio.to_thread(lambda: encode_png(benchmark.previous(sample)))
        blob = await asyncio.to_thread(journal.put_blob, data, PNG)
        await journal.add_images([(replace(sample.image, id=sample.id, prepared_sha256=blob.sha256), blob)])
        sha256 = blob.sha256
    return EncodedImage(data, PNG), sha256


async def changed_of(benchmark: Benchmark, sample: Sample, previous: EncodedImage) -> EncodedImage:
    """The real image after; its owner is that of the previous one."""
    data = await asyncio.to_thread(lambda: encode_png(benchmark.changed(sample)))
    return EncodedImage(made_from(data, previous.data), PNG)
