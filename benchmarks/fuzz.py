"""Damaged files through every parser, in a process that is watched: no crash, no hang over 5 s, no memory over 1 GB.

Real files (from the dependencies) and files of ours are damaged at random: bytes flipped, runs cut out, repeated or
overwritten, numbers made huge, the end cut off, two files spliced. A parser may read the result or refuse it with one
clear line; anything else is a failure, printed with its seed.

    python benchmarks/fuzz.py [--minutes 1] [--seed 0] [--only dicom]
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import multiprocessing
import re
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

SECONDS = 5.0
MEGABYTES = 1024
DAMAGE = (
    b"\x00" * 4,
    b"\xff" * 4,
    b"\x7f\xff\xff\xff",
    b"999999999999",
    b"NaN",
    b"-1",
    b'"',
    b"\n",
    b"{",
    b"\xf0\x9f",
)

Parser = Callable[[bytes, Path], object]


def damaged(data: bytes, others: list[bytes], rng: np.random.Generator) -> bytes:
    """One to six injuries; one or two for a short text, of which little would be left."""
    value = bytearray(data)
    for _ in range(int(rng.integers(1, 7 if len(data) > 4096 else 3))):
        if not value:
            break
        at = int(rng.integers(min(len(value), 4096) if rng.random() < 0.6 else len(value)))
        length = int(rng.integers(1, 64))
        kind = int(rng.integers(7))
        if kind == 0:
            value[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del value[at : at + length]
        elif kind == 2:
            value[at:at] = value[at : at + length] * int(rng.integers(1, 20))
        elif kind == 3:
            piece = DAMAGE[int(rng.integers(len(DAMAGE)))]
            value[at : at + len(piece)] = piece
        elif kind == 4:
            del value[int(rng.integers(len(value))) :]
        elif kind == 5:
            value[at : at + length] = rng.integers(0, 256, length, np.uint8).tobytes()
        else:
            other = others[int(rng.integers(len(others)))]
            value[at:] = other[int(rng.integers(max(1, len(other)))) :][: len(value)]
    return bytes(value)


# --- the parsed inputs, built in the worker ----------------------------------------------------------


def corpora() -> dict[str, tuple[Parser, list[bytes]]]:
    """Parser and undamaged files, by name."""
    return {**_pixel_parsers(), **_table_parsers(), **_text_parsers()}


def _pixel_parsers() -> dict[str, tuple[Parser, list[bytes]]]:
    import skimage.data
    from PIL import Image
    from pydicom.data import get_testdata_file

    from plantain.pixels.decode import decode_untrusted
    from plantain.pixels.dicom.files import read_dicom
    from plantain.pixels.dicom.render import render_planes
    from plantain.pixels.volume import choose_slices, read_volume, show_slice

    image = Image.fromarray(skimage.data.astronaut()[:96, :128])
    images = []
    for kind in ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP"):
        buffer = io.BytesIO()
        image.save(buffer, kind)
        images.append(buffer.getvalue())
    names = ("CT_small.dcm", "MR_small.dcm", "MR_small_RLE.dcm", "MR_small_jp2klossless.dcm", "JPEG-lossy.dcm",
             "color-px.dcm", "examples_overlay.dcm", "image_dfl.dcm", "mlut_18.dcm", "vlut_04.dcm", "OT-PAL-8-face.dcm",
             "MR_small_implicit.dcm")  # fmt: skip
    dicoms = [Path(path).read_bytes() for name in names if (path := get_testdata_file(name, download=False))]
    dicoms.append(dicoms[0][132:])  # without preamble

    def volume(data: bytes, folder: Path) -> object:
        read = read_volume(data, "volume.nii")
        return [
            show_slice(read, plane, i)
            for plane in ("axial", "sagittal")
            for i in choose_slices(read, plane, 2)
        ]

    return {
        "image": (lambda data, folder: decode_untrusted(data, "image"), images),
        "dicom": (
            lambda data, folder: render_planes(read_dicom(data, "file.dcm"), "file.dcm"),
            [d for d in dicoms if len(d) < 1_000_000],
        ),
        "nifti": (volume, _volumes()),
    }


def _volumes() -> list[bytes]:
    import nibabel

    found = []
    for image_class, kind in ((nibabel.Nifti1Image, np.int16), (nibabel.Nifti2Image, np.float32)):
        values = (np.random.default_rng(0).random((20, 24, 18)) * 1000).astype(kind)
        found.append(image_class(values, np.diag([2.0, 2.0, 3.0, 1.0])).to_bytes())
    return [*found, gzip.compress(found[0])]


def _table_parsers() -> dict[str, tuple[Parser, list[bytes]]]:
    from plantain.findings import load_taxonomy
    from plantain.sources.registry import SourceOptions, load

    taxonomy = load_taxonomy()

    def reader(kind: str, name: str, more: dict[str, bytes], modality: str = "") -> Parser:
        def parse(data: bytes, folder: Path) -> object:
            for place, content in {**more, name: data}.items():
                path = folder / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            return list(load(kind).open(SourceOptions(folder, modality), taxonomy).scan())

        return parse

    csv = b"file,labels\na.png,normal\nb.png,Cataract\n"
    odir = (
        b"ID,Patient Age,Patient Sex,Left-Fundus,Right-Fundus,Left-Diagnostic Keywords,Right-Diagnostic Keywords,"
        b"N,D,G,C,A,H,M,O,filepath,labels,target,filename\n0,69,Female,0_left.jpg,0_right.jpg,cataract,normal fundus,"
        b"0,0,0,1,0,0,0,0,x,['N'],\"[1, 0, 0, 0, 0, 0, 0, 0]\",0_right.jpg\n"
    )
    columns = (
        b"Atelectasis,Cardiomegaly,Consolidation,Edema,Enlarged Cardiomediastinum,Fracture,Lung Lesion,Lung Opacity,"
        b"No Finding,Pleural Effusion,Pleural Other,Pneumonia,Pneumothorax,Support Devices"
    )
    one, other = b"-".join([b"02aa804e"] * 5), b"-".join([b"174413ec"] * 5)
    mimic = gzip.compress(
        b"subject_id,study_id,"
        + columns
        + b"\n10000032,50414267,1.0,,,,,,,,,,,,,\n10000032,53189527,,,,,,,,,1.0,,,,,\n"
    )
    metadata = gzip.compress(
        b"dicom_id,subject_id,study_id,ViewPosition,Rows,Columns\n"
        + b"".join(
            b"%s,10000032,%d,%s,3056,2544\n" % row
            for row in ((one, 50414267, b"PA"), (other, 53189527, b"AP"))
        )
    )
    split = gzip.compress(
        b"dicom_id,study_id,subject_id,split\n%s,50414267,10000032,train\n%s,53189527,10000032,test\n"
        % (one, other)
    )
    images = {
        f"files/p10/p10000032/s{study}/{dicom.decode()}.jpg": b""
        for study, dicom in ((50414267, one), (53189527, other))
    }
    labels_file, metadata_file, split_file = (
        f"mimic-cxr-2.0.0-{part}.csv.gz" for part in ("chexpert", "metadata", "split")
    )
    return {
        "folder labels": (reader("folder", "labels.csv", {"a.png": b"", "b.png": b""}, "fundus"), [csv]),
        "odir csv": (reader("odir-5k", "full_df.csv", {"0_left.jpg": b"", "0_right.jpg": b""}), [odir]),
        "mimic labels": (
            reader(
                "mimic-cxr",
                labels_file,
                {metadata_file: metadata, split_file: split, **images},
            ),
            [mimic, gzip.decompress(mimic)],
        ),
        "mimic metadata": (
            reader(
                "mimic-cxr",
                metadata_file,
                {labels_file: mimic, split_file: split, **images},
            ),
            [metadata, gzip.decompress(metadata)],
        ),
    }


def _text_parsers() -> dict[str, tuple[Parser, list[bytes]]]:
    from plantain.bench.benchmark.benchmark import read_benchmark
    from plantain.findings import load_taxonomy
    from plantain.models.hosted.reports import read_lines, read_report
    from plantain.pipeline.recipe import load_recipe
    from plantain.rubrics import MED_BANANA, MEDEBENCH
    from plantain.runs.terms import load_terms

    def file(name: str, parse: Callable[[Path], object]) -> Parser:
        def parsed(data: bytes, folder: Path) -> object:
            path = folder / name
            path.write_bytes(data)
            return parse(path)

        return parsed

    limits = b"[limits]\nbudget_usd = 5.0\n[providers.gemini]\nrequests_per_minute = 10\n"
    recipe = b'name = "x"\nseed = 3\n[data]\ncatalogue = "c"\nfindings = ["AMD"]\n' + limits
    import plantain.findings

    findings = [
        re.sub(rb'(?m)^(name|modality) = "', rb'\1 = "own_', path.read_bytes())
        for path in sorted(Path(plantain.findings.__file__).parent.glob("*.toml"))
    ]
    pair = {"Organ": "Skin", "Task": "Remove moles", "prompt": "remove the mole", "url": "https://x/y"}
    passed = {"passed": True, "confidence": 0.9, "codes": [], "evidence": "x"}
    answer = {
        **{criterion.name: passed for criterion in MED_BANANA.criteria},
        "has_disease": True,
        "other_disease": False,
        "opinion": True,
        "reason": "y",
    }
    reply = b"**Editing Accuracy:** 8/10\nContext preservation: [7]/10\nVisual Quality: 9 out of 10"
    return {
        "recipe": (file("recipe.toml", load_recipe), [recipe]),
        "settings": (
            file("settings.toml", lambda path: load_terms(path, ("gemini/x",))),
            [limits],
        ),
        "findings": (file("own.toml", lambda path: load_taxonomy((path,))), findings),
        "benchmark": (
            file("editing_metadata.json", read_benchmark),
            [json.dumps([{"id": number, **pair} for number in (1, 2)]).encode()],
        ),
        "judge answer": (
            lambda data, folder: read_report(data.decode("utf-8", "replace"), MED_BANANA),
            [json.dumps(answer).encode()],
        ),
        "judge lines": (
            lambda data, folder: read_lines(data.decode("utf-8", "replace"), MEDEBENCH, ("visual_quality",)),
            [reply],
        ),
    }


def work(connection: Connection, only: str | None) -> None:
    """Parse requests from a pipe: (name, seed) in; (outcome, peak MB) out."""
    import warnings

    from plantain.models.hosted.answers import Unreadable
    from plantain.records import InputError

    warnings.simplefilter("ignore")
    known = {name: pair for name, pair in corpora().items() if only in (None, name)}
    everything = [data for _, files in known.values() for data in files]
    connection.send(sorted(known))
    while True:
        name, seed = connection.recv()
        parse, files = known[name]
        rng = np.random.default_rng(seed)
        data = damaged(files[int(rng.integers(len(files)))], everything, rng)
        with tempfile.TemporaryDirectory() as folder:
            try:
                parse(data, Path(folder))
                outcome = "read"
            except (InputError, Unreadable) as error:
                outcome = "refused" if "\n" not in str(error) else f"refused in several lines: {error!r}"
            except Exception:  # noqa: BLE001 (the point is to find any)
                outcome = traceback.format_exc(limit=-4)
        connection.send((outcome, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


class Watched:
    """The worker, and how long it takes."""

    def __init__(self, only: str | None) -> None:
        self.only = only
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.ours, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.only), daemon=True)
        self.process.start()
        self.names: list[str] = self.ours.recv()

    def ask(self, name: str, seed: int) -> tuple[str, float, float]:
        """Outcome, seconds, peak megabytes; a worker that hung or died is replaced."""
        started = time.monotonic()
        self.ours.send((name, seed))
        try:
            if self.ours.poll(SECONDS * 4):
                outcome, peak = self.ours.recv()
                return outcome, time.monotonic() - started, peak
            outcome = f"no answer in {SECONDS * 4:g} s"
        except EOFError:
            outcome = "the process died"
        seconds = time.monotonic() - started
        self.process.kill()
        self.start()
        return outcome, seconds, 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one parser")
    options = parser.parse_args()
    watched = Watched(options.only)
    counts: Counter[tuple[str, str]] = Counter()
    slowest: dict[str, tuple[float, int]] = {}
    failures, peak, seed = 0, 0.0, options.seed
    ends = time.monotonic() + 60 * options.minutes
    while time.monotonic() < ends:
        for name in watched.names:
            seed += 1
            outcome, seconds, used = watched.ask(name, seed)
            peak = max(peak, used)
            slowest[name] = max(slowest.get(name, (0.0, 0)), (seconds, seed))
            good = outcome in ("read", "refused") and seconds <= SECONDS
            counts[name, outcome if good else "failed"] += 1
            if not good:
                failures += 1
                if failures <= 20:
                    print(f"FAILED {name}, seed {seed}, {seconds:.1f} s: {outcome}", flush=True)
    for name in watched.names:
        read, refused, failed = (counts[name, what] for what in ("read", "refused", "failed"))
        print(
            f"{name:<16} {read:>6} read {refused:>6} refused {failed:>4} failed; slowest {slowest[name][0]:.2f} s"
        )
    print(f"{sum(counts.values())} files, {failures} failures, peak {peak:.0f} MB (at most {MEGABYTES})")
    watched.process.kill()
    return 1 if failures or peak > MEGABYTES else 0


if __name__ == "__main__":
    sys.exit(main())
