"""The cases that a study is made from: of a run, a benchmark or its run, a release, or a table of pairs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from plantain.bench.benchmark.benchmark import Benchmark, proposed_regions
from plantain.bench.benchmark.native_format import OWN
from plantain.bench.generate.runfile import BenchRun
from plantain.files.opening import read_inside
from plantain.journal import JournalReader
from plantain.journal.connect import JOURNAL_NAME
from plantain.pixels.decode import decode_untrusted
from plantain.records import InputError
from plantain.release.register import register
from plantain.review.run_materials import blob_reader, materials_of_run
from plantain.review.sources import Cases, Material, Read, restricted
from plantain.review.study import ORIGINAL


def cases_at(
    source: Path, kept: ExitStack, columns: Mapping[str, str], constants: Mapping[str, str]
) -> Cases:
    """Return a function that reads the cases of a run, a benchmark or its run, a release or a table of pairs.

    Args:
        kept: context that removes the temporary run of an imported source after the images were read.
        columns: role -> column, for a table of pairs.
        constants: role -> value for all rows of that table.

    Raises:
        InputError: the source is none of these, or has no edited images.
    """
    if (source / JOURNAL_NAME).is_file():
        with JournalReader.open(source) as reader:
            bench = reader.meta("bench") is not None
        cases = _listed(_of_bench(source)) if bench else partial(materials_of_run, source)
    elif (source / OWN).is_file():
        cases = _listed(_of_samples(source, {}))
    elif source.exists():
        cases = partial(materials_of_run, imported(source, kept, columns, constants))
    else:
        raise InputError(f"--from {source}: no such run, benchmark, release or table of pairs")
    if next(cases(None), None) is None:
        raise InputError(
            f"--from {source}: contains no edited image with its original; import both (--originals)"
        )
    return cases


def _listed(found: Iterable[Material]) -> Cases:
    whole = list(found)
    return lambda wanted: (one for one in whole if wanted is None or one.source in wanted)


def register_study(study: Path, sources: Iterable[Path], drawn: Sequence[Material]) -> None:
    """Record in the source runs that a study contains these cases, so that a withdrawal from a run finds it."""
    for source in sources:
        if (source / JOURNAL_NAME).is_file():
            register(source, study, [one.original or one.source for one in drawn])


def imported(
    source: Path, kept: ExitStack, columns: Mapping[str, str] = {}, constants: Mapping[str, str] = {}
) -> Path:
    """Import a release or a table of pairs as a temporary run, which is deleted at the end of `kept`."""
    from plantain.release.importing.importing import import_release
    from plantain.release.importing.pairs import import_pairs

    run = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="plantain-"))) / "run"
    if source.is_file():
        import_pairs(source, run, columns=columns, constants=constants)
    else:
        import_release(source, run)
    return run


def _of_bench(run: Path) -> Iterator[Material]:
    """Yield every sample with the first scored output of each arm."""
    with BenchRun.open(run) as opened:
        outputs: dict[str, dict[str, Read]] = {}
        for arm in opened.arms:
            for output in opened.scored(arm):
                if output.edited is not None:
                    outputs.setdefault(output.sample_id, {}).setdefault(arm, blob_reader(run, output.edited))
        root = opened.benchmark_root
    return (one for one in _of_samples(root, outputs) if len(one.images) > 1)


def _of_samples(root: Path, outputs: Mapping[str, Mapping[str, Read]]) -> Iterator[Material]:
    """Yield the samples of a benchmark, with their ground truth and proposed regions."""

    def reads(path: Path) -> Read:
        return lambda: decode_untrusted(read_inside(root, path), str(path))

    for sample in Benchmark.load(root).samples:
        yield Material(
            source=sample.id,
            stratum=sample.organ,
            cluster=sample.cluster,
            modality=sample.image.modality,
            finding=sample.finding,
            direction=sample.direction.value,
            instruction=sample.prompt,
            description=sample.detailed,
            images={ORIGINAL: reads(sample.previous), **outputs.get(sample.id, {})},
            ground_truth=reads(sample.changed) if sample.changed is not None else None,
            spacing_mm=sample.image.spacing_mm,
            credentialed=restricted(sample.image),
            proposals=proposed_regions(root, sample.id),
        )
