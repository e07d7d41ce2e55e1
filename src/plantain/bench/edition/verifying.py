"""Whether an exported benchmark is what it says: checksums, content, version, and the table beside the pictures."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator
from pathlib import Path

import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import OWN
from plantain.bench.edition.exporting import SUMS, TABLE, table_rows
from plantain.bench.edition.versions import editions
from plantain.files.opening import check_received, read_inside
from plantain.records import InputError

_LINE = re.compile(r"([0-9a-f]{64})  ([^\x00-\x1f\x7f]{1,1024})")


def verify_benchmark(root: Path) -> list[str]:
    """What is wrong with an exported benchmark, a line each; none where nothing is.

    Raises:
        InputError: it holds links out of it, or was not exported.
    """
    check_received(root)
    if not (root / SUMS).is_file():
        raise InputError(f"{root}: no {SUMS}: not made by `plantain bench export`")
    problems = list(_sums(root))
    try:
        bench = Benchmark.load(root)
    except InputError as error:
        return [*problems, str(error)]
    if not bench.edition:
        problems.append(f"{OWN}: names no version")
    elif "+" in bench.edition or editions(bench)[-1].digest != bench.digest:
        problems.append(f"{OWN}: its content is not the one that version {bench.named[0]} was given to")
    return problems + list(_table(bench))


def verify_revealed(private: Benchmark, public: Benchmark, key: bytes) -> list[str]:
    """Whether a private part is what the public part promised: its salted hashes, a line for each that is another."""
    promised = promises(public)
    problems = []
    for sample in private.samples:
        promise = promised.get(sample.id)
        if promise is None:
            problems.append(f"sample {sample.id}: the public part hides no such sample")
            continue
        for what, digest in zip(("changed", "roi"), private.hashes[sample.id][1:], strict=True):
            if digest and not hmac.compare_digest(
                promise.get(what, ""), salted(key, sample.id, what, digest)
            ):
                problems.append(
                    f"sample {sample.id}: {what} is not the one that was promised, or the key is another"
                )
    problems += [
        f"sample {name}: promised, and not in the private part"
        for name in sorted(set(promised) - {sample.id for sample in private.samples})
    ]
    return problems


def promises(bench: Benchmark) -> dict[str, dict[str, str]]:
    """The salted hashes of what a public part hides, by sample and by "changed" or "roi"."""
    rows = orjson.loads(read_inside(bench.root, bench.root / OWN)).get("samples", [])
    return {row["id"]: row["hidden"] for row in rows if isinstance(row, dict) and row.get("hidden")}


def salted(key: bytes, sample: str, what: str, sha256: str) -> str:
    """HMAC-SHA256 of a hidden file's hash, so that nobody without the key can try likely files."""
    return hmac.new(key, f"{sample}\x1f{what}\x1f{sha256}".encode(), hashlib.sha256).hexdigest()


def _sums(root: Path) -> Iterator[str]:
    listed: dict[str, str] = {}
    for number, line in enumerate((root / SUMS).read_text("utf-8", "replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2].startswith("/") or ".." in match[2].split("/"):
            yield f"{SUMS}: line {number}: not a checksum and the path of a file beside it"
        else:
            listed[match[2]] = match[1]
    there = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} - {SUMS}
    for name in sorted(there - listed.keys()):
        yield f"{name}: {SUMS} does not name it"
    for name in sorted(listed.keys() - there):
        yield f"{name}: missing"
    for name in sorted(there & listed.keys()):
        with (root / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != listed[name]:
                yield f"{name}: its checksum is another"


def _table(bench: Benchmark) -> Iterator[str]:
    """The table has the benchmark's samples, texts and pictures."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = bench.root / TABLE
    if not path.is_file():
        yield f"{TABLE}: missing"
        return
    known = {str(row["id"]): row for row in table_rows(bench)}
    try:
        found = {
            str(row["id"]): row
            for batch in pq.ParquetFile(path).iter_batches(32)
            for row in batch.to_pylist()
        }
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        yield f"{TABLE}: cannot be read: {str(error)[:200]}"
        return
    for name in sorted(known.keys() | found.keys()):
        if known.get(name) != found.get(name):
            yield f"{TABLE}: sample {name}: is not the benchmark's"
