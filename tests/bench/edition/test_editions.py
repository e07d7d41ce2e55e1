"""Versions of a benchmark, handing it on, and keeping truths back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from bench.small_bench import small_bench
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import BenchmarkWriter
from plantain.bench.edition.differing import VersionStep, differences
from plantain.bench.edition.exporting import export_benchmark
from plantain.bench.edition.hiding import hide, read_key
from plantain.bench.edition.verifying import verify_benchmark, verify_revealed
from plantain.bench.edition.versions import editions, name_edition
from plantain.cli import main
from plantain.records import InputError, Licence

KEY = bytes(range(32))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_bench(tmp_path_factory.mktemp("edition") / "bench", 8).root


@pytest.fixture
def bench(made: Path, tmp_path: Path) -> Benchmark:
    shutil.copytree(made, tmp_path / "bench")
    return Benchmark.load(tmp_path / "bench")


def reworded(bench: Benchmark, sample: str, prompt: str) -> Benchmark:
    path = bench.root / "benchmark.json"
    data = orjson.loads(path.read_bytes())
    next(row for row in data["samples"] if row["id"] == sample)["prompt"] = prompt
    path.write_bytes(orjson.dumps(data))
    return Benchmark.load(bench.root)


def test_a_version_holds_for_the_content_that_it_was_given_to(
    bench: Benchmark, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(bench.root)
    assert main(["bench", "version", root, "--set", "1.0.0", "--note", "The first."]) == 0
    named = Benchmark.load(bench.root)
    assert named.edition == "1.0.0"
    assert named.digest == bench.digest
    changed = reworded(named, "3", "Add a brighter disc.")
    assert changed.edition == f"1.0.0+changed.{changed.digest[:8]}"
    capsys.readouterr()
    assert main(["bench", "version", root, "--set", "1.0.1", "--note", "A typo."]) == 2
    assert main(["bench", "version", root, "--note", "A typo."]) == 2
    assert "the first number has to grow" in capsys.readouterr().err
    name_edition(changed, "2.0.0", "Sample 3 asks for more.")
    assert [edition.version for edition in editions(Benchmark.load(bench.root))] == ["1.0.0", "2.0.0"]


@pytest.mark.parametrize("version", ["1", "1.0", "01.0.0", "1.0.0-rc1", "v1.0.0", "", "1.0.0\n"])
def test_what_is_no_semantic_version_is_refused(version: str, bench: Benchmark) -> None:
    with pytest.raises(InputError, match=r"MAJOR\.MINOR\.PATCH"):
        name_edition(bench, version, "x")


def test_differences_name_the_number_that_grows(bench: Benchmark, tmp_path: Path) -> None:
    more = small_bench(tmp_path / "more", 9)
    assert differences(bench, bench).step is VersionStep.NONE
    found = differences(bench, more)
    assert (found.added, found.removed, found.changed, found.same) == (("9",), (), {}, 8)
    assert found.step is VersionStep.MINOR
    assert differences(more, bench).step is VersionStep.MAJOR
    other = reworded(bench, "2", "Something else.")
    assert differences(more, other).changed == {"2": ("prompt",)}
    assert main(["bench", "diff", str(more.root), str(other.root)]) == 1
    assert main(["bench", "diff", str(more.root), str(more.root)]) == 0


def test_samples_that_were_added_need_the_second_number_where_the_older_copy_is_there(
    bench: Benchmark, tmp_path: Path
) -> None:
    name_edition(bench, "1.0.0", "The first.")
    older = Benchmark.load(bench.root)
    newer = small_bench(tmp_path / "more", 9)
    data = orjson.loads((newer.root / "benchmark.json").read_bytes())
    data["edition"] = orjson.loads((older.root / "benchmark.json").read_bytes())["edition"]
    (newer.root / "benchmark.json").write_bytes(orjson.dumps(data))
    newer = Benchmark.load(newer.root)
    with pytest.raises(InputError, match="second number"):
        name_edition(newer, "1.0.1", "One more.", older)
    with pytest.raises(InputError, match="nobody knows"):
        name_edition(newer, "1.1.0", "One more.")
    assert name_edition(newer, "1.1.0", "One more.", older).digest == newer.digest


def test_an_exported_benchmark_is_one_and_every_changed_byte_is_named(
    bench: Benchmark, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="has no version"):
        export_benchmark(bench, tmp_path / "early")
    name_edition(bench, "1.0.0", "The first.")
    bench = Benchmark.load(bench.root)
    out = tmp_path / "out"
    done = export_benchmark(bench, out)
    again = Benchmark.load(out)
    assert (again.digest, again.edition, done.samples) == (bench.digest, "1.0.0", 8)
    assert verify_benchmark(out) == []
    assert main(["bench", "verify", str(out)]) == 0
    rows = pq.read_table(out / "data/samples.parquet").to_pylist()
    assert rows[0]["changed"]["bytes"] == again.samples[0].changed.read_bytes()  # type: ignore[union-attr]
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        data = path.read_bytes()
        path.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
        assert verify_benchmark(out), path
        path.write_bytes(data)
    assert verify_benchmark(out) == []


def test_an_export_is_read_by_datasets_and_mlcroissant(
    bench: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    name_edition(bench, "1.0.0", "The first.")
    out = export_benchmark(Benchmark.load(bench.root), tmp_path / "out").path
    loaded = datasets.load_dataset(str(out), "samples", split="test", cache_dir=str(tmp_path / "cache"))
    assert loaded[0]["changed"].size == bench.samples[0].size
    read = mlcroissant.Dataset(jsonld=str(out / "croissant.json"))
    assert not read.metadata.ctx.issues.errors
    records = list(read.records("samples"))
    assert len(records) == 8
    assert records[0]["samples/previous"].size == bench.samples[0].size


def test_pictures_that_may_not_be_passed_on_stay(tmp_path: Path) -> None:
    open_ = small_bench(tmp_path / "open", 4)
    held = small_bench(tmp_path / "held", 2, licence=Licence.CREDENTIALED)
    with pytest.raises(InputError, match="2 of 2 samples may not be passed on"):
        name_edition(held, "1.0.0", "x")
        export_benchmark(Benchmark.load(held.root), tmp_path / "no", leave_out=True)
    data = orjson.loads((open_.root / "benchmark.json").read_bytes())
    data["samples"][1]["image"]["licence"] = "credentialed"
    (open_.root / "benchmark.json").write_bytes(orjson.dumps(data))
    name_edition(Benchmark.load(open_.root), "1.0.0", "x")
    mixed = Benchmark.load(open_.root)
    with pytest.raises(InputError, match="1 of 4 samples"):
        export_benchmark(mixed, tmp_path / "no")
    done = export_benchmark(mixed, tmp_path / "part", leave_out=True)
    assert (done.samples, done.left_out) == (3, 1)
    assert verify_benchmark(done.path) == []
    secret = mixed.samples[1].previous.read_bytes()
    assert not any(secret in path.read_bytes() for path in done.path.rglob("*") if path.is_file())
    assert Benchmark.load(done.path).name.endswith("(what may be passed on)")


def test_hidden_truths_are_nowhere_in_the_public_part_and_can_be_checked_later(
    bench: Benchmark, tmp_path: Path
) -> None:
    parts = hide(bench, 0.3, KEY, tmp_path / "public", tmp_path / "private")
    assert 2 <= parts.hidden < 8
    hidden = {sample.id for sample in parts.private.samples}
    assert {sample.id for sample in parts.public.samples if sample.changed is None} == hidden
    whole = {sample.cluster for sample in bench.samples if sample.id in hidden}
    assert hidden == {sample.id for sample in bench.samples if sample.cluster in whole}
    everything = b"".join(path.read_bytes() for path in (tmp_path / "public").rglob("*") if path.is_file())
    for sample in parts.private.samples:
        assert sample.changed is not None
        assert sample.changed.read_bytes() not in everything
        assert bench.hashes[sample.id][1].encode() not in everything
    assert parts.private.public_digest == parts.public.digest
    assert verify_revealed(parts.private, parts.public, KEY) == []
    assert verify_revealed(parts.private, parts.public, bytes(32))
    with pytest.raises(InputError, match="with its truths; export the public part"):
        export_benchmark(parts.private, tmp_path / "for everybody")
    assert not (tmp_path / "for everybody").exists()


def test_truths_that_are_public_already_are_refused(
    bench: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [tmp_path / "public", tmp_path / "private"]
    with pytest.raises(InputError, match="what is public cannot be hidden"):
        hide(bench, 0.3, KEY, *places, places=[bench.root / "changed"])
    hide(bench, 0.3, KEY, *places, places=[bench.root / "previous"])  # originals are public anyway
    with BenchmarkWriter(tmp_path / "both-ways", "Both ways") as writer:
        for sample in bench.samples:
            writer.add(sample, bench.previous(sample), bench.changed(sample))
        for sample in bench.samples:
            back = Benchmark.load(bench.root).sample(sample.id)
            object.__setattr__(back, "id", f"back-{sample.id}")
            writer.add(back, bench.changed(sample), bench.previous(sample))
    argv = ["bench", "hide", str(tmp_path / "both-ways"), "--key", str(tmp_path / "key.txt")]
    assert main([*argv, "--public", str(tmp_path / "a"), "--private", str(tmp_path / "b")]) == 2
    assert "one way only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("public", "private"), [("out", "out"), ("out", "out/held"), ("held/out", "held"), ("out", "bench/held")]
)
def test_no_part_lies_in_another(bench: Benchmark, tmp_path: Path, public: str, private: str) -> None:
    """A private part within the public one would be published with it."""
    with pytest.raises(InputError, match="take a folder each"):
        hide(bench, 0.3, KEY, tmp_path / public, tmp_path / private)
    assert [path.name for path in tmp_path.iterdir()] == ["bench"]


def test_a_key_is_made_once_for_its_owner_only_and_never_beside_the_benchmark(
    bench: Benchmark, tmp_path: Path
) -> None:
    key = read_key(tmp_path / "key.txt", bench.root)
    assert read_key(tmp_path / "key.txt", bench.root) == key
    assert len(key) == 32
    assert (tmp_path / "key.txt").stat().st_mode & 0o777 == 0o600
    public = tmp_path / "public"
    for folder in (bench.root, public):
        with pytest.raises(InputError, match="could be handed on"):
            read_key(folder / "key.txt", bench.root, public)
    assert not public.exists()
    for endless in (Path("/dev/zero"), Path("/dev/urandom")):
        with pytest.raises(InputError, match="not a regular file"):
            read_key(endless, bench.root)
    (tmp_path / "short.txt").write_text("abcd")
    with pytest.raises(InputError, match="64 hexadecimal"):
        read_key(tmp_path / "short.txt", bench.root)


def test_versions_and_hidden_rows_are_plain_json(bench: Benchmark, tmp_path: Path) -> None:
    parts = hide(bench, 0.3, KEY, tmp_path / "public", tmp_path / "private")
    told = json.loads((parts.public.root / "benchmark.json").read_text())
    assert sum("hidden" in row for row in told["samples"]) == parts.hidden
