"""A benchmark as it is handed on: a folder that is itself a benchmark, with card, licences, Croissant, Parquet, sums.

Pictures go along whose owners let them: those of other samples are refused, or left out with their samples.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import OWN
from plantain.bench.benchmark.samples import Sample
from plantain.bench.edition.cards import croissant, readme
from plantain.bench.edition.versions import EDITION, editions
from plantain.files.writing import replace_file
from plantain.privacy.licence_terms import named_original_terms
from plantain.privacy.licence_texts import SourcePart, licence_files
from plantain.privacy.original_licences import ATTRIBUTION, attribution, original_parts
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import InputError, Licence

if TYPE_CHECKING:
    import pyarrow as pa

SUMS, TABLE = "SHA256SUMS", "data/samples.parquet"
_ROWS = 32
"""Of a row group: pictures of a benchmark have a few megabytes a sample at most."""


@dataclass(frozen=True, slots=True)
class ExportedBenchmark:
    """What was written."""

    path: Path
    version: str
    samples: int
    left_out: int
    files: int
    bytes: int


def export_benchmark(
    bench: Benchmark, out: Path, *, leave_out: bool = False, licences: tuple[str, ...] = ()
) -> ExportedBenchmark:
    """Writes a benchmark for others.

    Args:
        bench: in our own format, its content under a version.
        out: a new folder.
        leave_out: leave samples out whose pictures may not be passed on, in place of refusing; what is exported is then
            another benchmark, and its name says so.
        licences: "DATASET=TERMS" for sources whose owner's licence is known.

    Raises:
        InputError: no version, content changed since, pictures that may not leave, or the private part of a hidden
            benchmark.
    """
    if bench.public_digest:
        raise InputError(
            f"{bench.root}: the private part of a hidden benchmark, with its truths; export the public part"
        )
    if not bench.edition or "+" in bench.edition:
        state = f"was changed since {bench.named[0]}" if bench.edition else "has no version"
        raise InputError(
            f"{bench.root}: {state}; name one: plantain bench version {bench.root} --set 1.0.0 --note ..."
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists and is not an empty folder; give a new one")
    held = [sample for sample in bench.samples if sample.image.licence not in FREE_TO_LEAVE]
    if held and (not leave_out or len(held) == len(bench.samples)):
        kinds = Counter(sample.image.licence.value for sample in held)
        counted = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
        raise InputError(
            f"{bench.root}: pictures of {len(held)} of {len(bench.samples)} samples may not be passed on ({counted}; "
            f"first {held[0].id}); --leave-out exports the others"
        )
    kept = tuple(sample for sample in bench.samples if sample.image.licence in FREE_TO_LEAVE)
    parts = _parts(kept, licences)
    _copy(bench, kept, out)
    done = Benchmark.load(out)
    files = {**licence_files(parts), ATTRIBUTION: attribution(parts).encode()}
    _write_table(done, out / TABLE)
    history = editions(done)
    files["README.md"] = readme(done, parts, history).encode()
    files["CHANGELOG.md"] = "".join(
        ["# Changelog\n", *(f"\n## {e.version}\n\n{e.note}\n" for e in reversed(history))]
    ).encode()
    files["croissant.json"] = croissant(done, parts, history[-1], _sha256(out / TABLE), out / TABLE)
    for name, data in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        replace_file(out / name, data)
    count, total = _write_sums(out)
    return ExportedBenchmark(out, done.edition, len(kept), len(held), count, total)


def _parts(samples: tuple[Sample, ...], licences: tuple[str, ...]) -> tuple[SourcePart, ...]:
    """Licences of the pictures by dataset; one with several classes is as strict as the strictest."""
    strict: dict[str, Licence] = {}
    for sample in samples:
        image = sample.image
        if strict.get(image.dataset) is not Licence.ATTRIBUTION:
            strict[image.dataset] = image.licence
    counts: Counter[str] = Counter(sample.image.dataset for sample in samples)
    sources: dict[str, Mapping[str, str | int]] = {
        name: {"licence": allowed.value} for name, allowed in strict.items()
    }
    terms = named_original_terms(licences, strict)
    return original_parts(sources, {name: {"carried": n} for name, n in counts.items()}, terms)


def _copy(bench: Benchmark, kept: tuple[Sample, ...], out: Path) -> None:
    """The samples' rows and files as they are; content that is less than it was is named so."""
    data = orjson.loads((bench.root / OWN).read_bytes())
    ids = {sample.id for sample in kept}
    data["samples"] = [row for row in data["samples"] if row["id"] in ids]
    for sample in kept:
        for path in (sample.previous, sample.changed, sample.roi):
            if path is not None:
                target = out / path.relative_to(bench.root)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
    if len(kept) < len(bench.samples):
        data["name"] = f"{bench.name} (what may be passed on)"
    out.mkdir(parents=True, exist_ok=True)
    replace_file(out / OWN, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
    if len(kept) < len(bench.samples):
        data[EDITION]["digest"] = data[EDITION]["changes"][-1]["digest"] = Benchmark.load(out).digest
        replace_file(out / OWN, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")


def table_rows(bench: Benchmark) -> list[dict[str, object]]:
    """A row per sample as the table has it: texts, and pictures as `datasets` embeds them."""

    def picture(path: Path | None) -> dict[str, object] | None:
        return (
            None if path is None else {"bytes": path.read_bytes(), "path": str(path.relative_to(bench.root))}
        )

    return [
        {
            **{name: getattr(s, name) for name in ("id", "organ", "task", "prompt", "rephrased", "detailed")},
            "direction": s.direction.value,
            "finding": s.finding,
            "cluster": s.cluster,
            "dataset": s.image.dataset,
            "modality": s.image.modality,
            "licence": s.image.licence.value,
            "aligned": s.aligned,
            "synthetic_truth": s.synthetic_truth,
            "notes": list(s.notes),
            "previous": picture(s.previous),
            "changed": picture(s.changed),
            "region": picture(s.roi),
        }
        for s in bench.samples
    ]


def _schema() -> pa.Schema:
    import pyarrow as pa

    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    text = (
        *("id", "organ", "task", "prompt", "rephrased", "detailed", "direction", "finding", "cluster"),
        *("dataset", "modality", "licence"),
    )
    fields = [(name, pa.string()) for name in text]
    fields += [("aligned", pa.bool_()), ("synthetic_truth", pa.bool_()), ("notes", pa.list_(pa.string()))]
    fields += [(name, image) for name in ("previous", "changed", "region")]
    features: dict[str, object] = {name: {"dtype": "string", "_type": "Value"} for name in text}
    features |= {name: {"dtype": "bool", "_type": "Value"} for name in ("aligned", "synthetic_truth")}
    features |= {"notes": [{"dtype": "string", "_type": "Value"}]}
    features |= {name: {"_type": "Image"} for name in ("previous", "changed", "region")}
    described = orjson.dumps({"info": {"features": features}})
    return pa.schema(fields).with_metadata({"huggingface": described})


def _write_table(bench: Benchmark, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    schema = _schema()
    pictures = [f"{name}.bytes" for name in ("previous", "changed", "region")]
    plain = {name: "NONE" if name in pictures else "ZSTD" for name in _columns(schema)}
    with pq.ParquetWriter(path, schema, compression=plain) as writer:
        for first in range(0, len(bench.samples), _ROWS):
            part = Benchmark(bench.name, bench.root, bench.samples[first : first + _ROWS], bench.hashes)
            writer.write_table(pa.Table.from_pylist(table_rows(part), schema))


def _columns(schema: pa.Schema) -> list[str]:
    import pyarrow as pa

    names = []
    for field in schema:
        if pa.types.is_struct(field.type):
            names += [f"{field.name}.{inner.name}" for inner in field.type]
        else:
            names.append(f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name)
    return names


def _write_sums(out: Path) -> tuple[int, int]:
    """SHA256SUMS over all files; returns how many there are, and their bytes."""
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    replace_file(out / SUMS, "".join(f"{_sha256(out / name)}  {name}\n" for name in files).encode())
    return len(files), sum((out / name).stat().st_size for name in files)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
