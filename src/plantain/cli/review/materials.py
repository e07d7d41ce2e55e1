"""The cases that a study is made from, by what lies at a path: a run, a benchmark's run, a release, a list of pairs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import OWN
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.prepare.regions_chosen import proposed_regions
from plantain.files.opening import read_inside
from plantain.journal import JournalReader
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode_untrusted
from plantain.records import InputError
from plantain.review.sources import Material, Read, blob_reader, materials, restricted
from plantain.review.study import ORIGINAL


def materials_at(source: Path) -> list[Material]:
    """The cases of a run, a benchmark's run, a release or a CSV of pairs.

    Raises:
        InputError: none of these, or nothing in it to be judged.
    """
    if (source / JOURNAL_NAME).is_file():
        with JournalReader.open(source) as reader:
            bench = reader.meta("bench") is not None
        found = list(_of_bench(source)) if bench else materials(source)
    elif source.is_file():
        found = materials(source)
    elif (source / OWN).is_file():
        found = list(_of_samples(source, {}))
    elif source.is_dir():
        found = _of_release(source)
    else:
        raise InputError(f"--from {source}: no such run, benchmark run, release or list of pairs")
    if not found:
        raise InputError(f"--from {source}: it holds no edited picture")
    return found


def _of_bench(run: Path) -> Iterator[Material]:
    """Every sample with the first scored output of each arm."""
    with BenchRun.open(run) as opened:
        outputs: dict[str, dict[str, Read]] = {}
        for arm in opened.arms:
            for output in opened.scored(arm):
                if output.edited is not None:
                    outputs.setdefault(output.sample_id, {}).setdefault(arm, blob_reader(run, output.edited))
        root = opened.benchmark_root
    return (one for one in _of_samples(root, outputs) if len(one.pictures) > 1)


def _of_samples(root: Path, outputs: Mapping[str, Mapping[str, Read]]) -> Iterator[Material]:
    """The samples of a benchmark, with proposed regions where it has any; without outputs only regions can be asked."""
    for sample in Benchmark.load(root).samples:

        def original(path: Path = sample.previous) -> Pixels:
            return decode_untrusted(read_inside(root, path), str(path))

        yield Material(
            source=sample.id,
            image=sample.id,
            stratum=sample.organ,
            cluster=sample.cluster,
            modality=sample.image.modality,
            finding=sample.finding,
            direction=sample.direction.value,
            instruction=sample.prompt,
            description=sample.detailed,
            pictures={ORIGINAL: original, **outputs.get(sample.id, {})},
            spacing_mm=sample.image.spacing_mm,
            credentialed=restricted(sample.image),
            proposals=proposed_regions(root, sample.id),
        )


def _of_release(folder: Path) -> list[Material]:
    """A release, by way of a run that lives as long as the study is being made."""
    from plantain.release.importing.importing import import_release

    holder = tempfile.TemporaryDirectory(prefix="plantain-review-")
    run = Path(holder.name) / "run"
    import_release(folder, run)
    found = list(materials(run))
    for one in found:
        one.__dict__["_holder"] = holder  # the folder goes when the last case does
    return found
