"""Loading benchmarks: MedEBench's published layout, the paper's keys, our own format, and all errors."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import plantain
from fakes.medebench_tree import published_rows, sample_image, spot, write_png, write_rows
from plantain.bench.benchmark.benchmark import Benchmark, read_benchmark, read_mask
from plantain.bench.benchmark.concepts import store_concepts
from plantain.bench.benchmark.native_format import BenchmarkWriter
from plantain.bench.benchmark.samples import Sample, plain_image
from plantain.records import Direction, InputError, Licence


def messages(path: Path) -> list[str]:
    return [str(problem) for problem in read_benchmark(path).problems if not problem.warning]


def test_medebench_is_read_as_published(published: Path) -> None:
    for path in (published.parent, published, published / "editing_metadata.json"):
        bench = plantain.Benchmark.load(path)
        assert (bench.name, len(bench)) == ("MedEBench", 6)
    first = bench.samples[0]
    assert (first.id, first.organ, first.prompt) == ("1", "Skin", "Remove the mole.")
    assert first.task == "Remove moles, nevi, or black marks"
    assert first.rephrased == "Please: Remove the mole."
    assert first.detailed.startswith("The photograph was changed")
    assert (first.size, first.direction, first.finding) == ((160, 120), Direction.REMOVE, "")
    assert first.image.licence is Licence.UNKNOWN
    clean = sample_image("chelsea", left=90, top=60)
    marked, mask = spot(clean, (52, 60), 14)
    assert np.array_equal(bench.previous(first), marked)
    assert np.array_equal(bench.changed(first), clean)
    assert np.array_equal(bench.roi(first), mask)
    assert np.array_equal(bench.roi_grey(first), mask * np.uint8(255))


@pytest.mark.parametrize("shape", ["list", "by id", "published", "samples by id"])
def test_every_shape_of_the_metadata_is_read(tree: Path, shape: str) -> None:
    rows = published_rows()
    by_id = {str(row.pop("id")) if "id" in shape else str(row["id"]): row for row in rows}
    data = {"list": rows, "by id": by_id, "published": {"samples": rows}, "samples by id": {"samples": by_id}}
    write_rows(tree, data[shape])
    assert [sample.id for sample in Benchmark.load(tree).samples] == list("123456")


def test_paper_keys_are_read_and_paths_are_optional(tree: Path) -> None:
    keys = {
        "id": "Id",
        "prompt": "Prompt",
        "rephrased_prompt": "Rephrased_prompt",
        "detailed_prompt": "Detailed_description",
        "previous_image": "Previous_image",
        "changed_image": "GroundTruth_image",
        "previous_mask": "ROI_mask",
    }
    as_published = Benchmark.load(tree)
    write_rows(tree, [{keys.get(key, key): row[key] for key in row} for row in published_rows()])
    as_in_the_paper = Benchmark.load(tree)
    assert as_in_the_paper.samples == as_published.samples
    assert as_in_the_paper.digest == as_published.digest
    first = as_published.samples[0].id
    assert store_concepts(tree, {first: "the lower tooth"}) == 1  # the metadata has "Id"
    assert Benchmark.load(tree).sample(first).key_concept == "the lower tooth"
    rows = [{k: v for k, v in row.items() if not k.endswith(("image", "mask"))} for row in published_rows()]
    write_rows(tree, rows)
    assert all(sample.changed and sample.roi for sample in Benchmark.load(tree).samples)


def test_shared_addresses_become_hashed_clusters(published: Path, tree: Path) -> None:
    bench = Benchmark.load(published)
    clusters = {sample.id: sample.cluster for sample in bench.samples}
    assert clusters["3"] == clusters["4"], "www. and the fragment do not make another source"
    assert len(set(clusters.values())) == 5
    assert clusters["3"].startswith("source-")
    assert clusters["6"] == "6", "no address: a cluster of its own"
    assert "example.org" not in repr(bench), "addresses can name patients"
    read = read_benchmark(published).samples
    assert [one.source for one in read if one.id == "5"] == ["https://example.org/patient/jane-doe.jpg"]
    shutil.copy(tree / "previous" / "1.png", tree / "previous" / "6.png")
    copied = Benchmark.load(tree)
    assert copied.sample("6").cluster == copied.sample("1").cluster, "one image under two addresses"


def test_missing_files_are_named(tree: Path) -> None:
    (tree / "changed" / "2.png").unlink()
    (tree / "previous" / "5.png").unlink()
    with pytest.raises(
        InputError, match=r"changed/2\.png: sample 2: .*no such file \(and 1 more: plantain bench check"
    ):
        Benchmark.load(tree)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id", "../1", "an id becomes a file name"),
        ("id", "1", "used twice"),
        ("Organ", None, "organ: missing"),
        ("previous_image", "/etc/hostname", "is outside the benchmark's folder"),
    ],
)
def test_a_bad_field_is_named(tree: Path, field: str, value: object, message: str) -> None:
    rows = published_rows()
    rows[1][field] = value
    write_rows(tree, rows)
    (found,) = messages(tree)
    assert message in found and "\n" not in found
    with pytest.raises(InputError, match="editing"):
        Benchmark.load(tree)
    with pytest.raises(InputError, match=r"no such folder; did you mean '.*/editing'"):
        Benchmark.load(tree.with_name("editng"))


def test_other_sizes_are_resized_to_the_previous_image_as_published(tree: Path) -> None:
    whole = np.asarray(Image.open(tree / "changed" / "1.png"))
    half = Image.fromarray(whole).resize((80, 60), Image.Resampling.BICUBIC)
    write_png(tree / "changed" / "1.png", np.asarray(half))
    mask = Image.open(tree / "previous_mask" / "1.png").resize((320, 240), Image.Resampling.NEAREST)
    write_png(tree / "previous_mask" / "1.png", np.asarray(mask))
    bench = Benchmark.load(tree)
    sample = bench.sample("1")
    expected = np.asarray(half.resize((160, 120), Image.Resampling.BICUBIC))
    assert np.array_equal(bench.changed(sample), expected)
    assert bench.roi(sample).shape == (120, 160)
    warned = [p.detail for p in read_benchmark(tree).problems if p.warning]
    assert warned == [
        "80x60, the previous image has 160x120; resized by bicubic, as published",
        "320x240, the previous image has 160x120; resized by nearest neighbour, as published",
    ]


def test_own_format_is_read_as_written(tmp_path: Path) -> None:
    out = tmp_path / "own"
    clean = sample_image("coffee", left=100, top=50)
    marked, mask = spot(clean, (60, 60), 12)
    image = replace(
        plain_image("a-10", (160, 120), "mine"), licence=Licence.OPEN, modality="photograph", group="p1"
    )
    sample = Sample(
        id="a-10",
        organ="Skin",
        task="Remove a mole",
        prompt="Remove the mole.",
        cluster="person-1",
        image=image,
        previous=Path(),
        size=(160, 120),
        rephrased="Take it away.",
        detailed="Photograph: gone.",
        key_concept="mole",
        direction=Direction.REMOVE,
        finding="Mole",
        aligned=True,
        notes=("a note",),
    )
    with BenchmarkWriter(out, "Own", {"made_by": "a test"}) as writer:
        writer.add(replace(sample, id="a-2"), clean)
        writer.add(sample, marked, clean, mask)
    bench = Benchmark.load(out)
    assert [one.id for one in bench.samples] == ["a-2", "a-10"], "numbers count as numbers"
    back = bench.sample("a-10")
    files = {"previous": back.previous, "changed": back.changed, "roi": back.roi}
    assert back == replace(sample, **files, image=replace(image, prepared_sha256=bench.hashes["a-10"][0]))
    assert np.array_equal(bench.previous(back), marked)
    assert np.array_equal(bench.changed(back), clean)
    assert np.array_equal(bench.roi(back), mask)
    bare = bench.sample("a-2")
    assert (bare.changed, bare.roi) == (None, None)
    with pytest.raises(InputError, match="no real image after"):
        bench.changed(bare)
    with pytest.raises(InputError, match="exists and is not an empty folder"):
        BenchmarkWriter(out, "Own")
    write_png(out / "previous" / "a-2.png", clean[::-1].copy())
    with pytest.raises(InputError, match=r"previous/a-2\.png: sample a-2: previous: its checksum is not"):
        Benchmark.load(out)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "format: expected 'plantain-benchmark'"),
        ({"version": 2}, "version: 2 is not read"),
    ],
)
def test_another_format_is_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    data = {"format": "plantain-benchmark", "version": 1, "name": "x", "samples": []} | change
    (tmp_path / "benchmark.json").write_bytes(orjson.dumps(data))
    with pytest.raises(InputError, match=message):
        Benchmark.load(tmp_path)


def test_digest_depends_on_content_not_on_the_folder(tree: Path, published: Path) -> None:
    assert Benchmark.load(tree).digest == Benchmark.load(published).digest
    rows = published_rows()
    rows[0]["prompt"] = "Remove the mole, please."
    write_rows(tree, rows)
    changed, before = Benchmark.load(tree), Benchmark.load(published)
    assert changed.digest != before.digest
    same = [s.id for s in before.samples if before.content_of(s) == changed.content_of(changed.sample(s.id))]
    assert same == list("23456")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=8,
)
_PUBLISHED = ["id", "Organ", "Task", "prompt", "previous_image", "changed_image", "previous_mask", "url"]
_OWN = ["organ", "task", "image", "previous", "roi", "sha256", "size", "direction", "notes", "aligned"]
_KEYS = st.sampled_from([*_PUBLISHED, *_OWN])


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.dictionaries(_KEYS | st.text(max_size=8), _JSON, max_size=9) | _JSON, max_size=4),
    own=st.booleans(),
)
def test_any_metadata_gives_one_line_problems(tmp_path: Path, rows: list[object], own: bool) -> None:
    data = {"format": "plantain-benchmark", "version": 1, "name": "x", "samples": rows}
    file = tmp_path / ("benchmark.json" if own else "editing_metadata.json")
    file.write_text(json.dumps(data if own else rows), encoding="utf-8", errors="surrogatepass")
    try:
        reading = read_benchmark(file)
    except InputError as error:
        assert "\n" not in str(error)
        return
    assert not reading.samples, "no sample can have a file here"
    assert reading.problems
    assert all("\n" not in str(problem) for problem in reading.problems)


DISC = np.zeros((60, 80), np.uint8)
cv2.circle(DISC, (40, 30), 18, 255, -1)
INSIDE = DISC > 0
RINGS = DISC // 255 + cv2.erode(DISC, None, iterations=6) // 255 + cv2.erode(DISC, None, iterations=9) // 255


def png(array: np.ndarray, orientation: int = 1) -> bytes:
    buffer, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(array).save(buffer, "PNG", exif=exif)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "remark", "grey"),
    [
        (png(DISC), "", DISC),
        (png(DISC // 255), "stored as 0 to 1", DISC // 255),
        (png(RINGS), "stored as 0 to 3", RINGS),
        (png(np.rot90(DISC), orientation=6), "", DISC),  # EXIF 2.32: the 0th row is the right side
        (png(np.dstack([DISC, DISC, DISC, np.full_like(DISC, 255)])), "", DISC),
        (png(np.dstack([DISC, DISC, DISC, DISC // 2 + 100])), "its transparency is ignored", DISC),
    ],
)
def test_the_same_disc_is_read_from_every_mask_format(data: bytes, remark: str, grey: np.ndarray) -> None:
    mask = read_mask(data, "mask.png")
    assert np.array_equal(mask.region, INSIDE)
    assert mask.remark.startswith(remark) and bool(mask.remark) == bool(remark)
    assert np.array_equal(mask.grey, grey), "the grey levels are those that the published code sees"


def test_soft_edges_are_cut_at_half_with_a_remark() -> None:
    soft = cv2.GaussianBlur(DISC, (0, 0), 3)
    mask = read_mask(png(soft), "mask.png")
    assert np.array_equal(mask.region, soft > soft.max() / 2)
    assert "soft edges" in mask.remark
    assert np.array_equal(mask.grey, soft)
