"""A release is enough by itself: taken to a machine that has nothing else, it is read, imported, and trained from.

On the first machine a build of fundus pictures of four sources, one of each licence class, becomes a release. Then the
first machine's folder is gone; on the second, without a network, the release is verified, loaded by `datasets`,
imported, made a benchmark, trained from and exported again. The editor that is trained is a tiny one of random weights:
it shows that training runs, not that it helps. At last every byte of the release, unpacked too, is searched for the
originals that had to stay.

Usage: python benchmarks/second_machine.py [--images 5]     about 3 minutes; exit code 1 where something does not hold
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import skimage.data
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fakes.tiny.saving import save_tiny
from plantain.journal import JournalReader
from plantain.records import Licence
from simulated.elsewhere import Elsewhere, step

CLASSES = ("open", "attribution", "credentialed", "unknown")
LAYOUTS = "med-banana,parquet,preference,trajectory,webdataset"
TERMS = ("--licence", "CC-BY-4.0", "--licence", "attribution=CC-BY-4.0", "--redistribution-approved", "DUA 7")
RECIPE = """
name = "four sources"
seed = 0
[data]
catalogue = "catalogue"
findings = ["AMD", "Myopia"]
add_to = "normal"
[models]
writer = "offline/templates"
editor = "offline/procedural"
judge = "offline/instruments"
[loop]
max_rounds = 5
policy = "all-pass"
"""
SETTINGS = '[providers.diffusers]\ndevice = "cpu"\nsteps = 2\nside = 64\n'
LOADED = """
import sys
from datasets import load_dataset
rows = 0
for split in load_dataset("release", "train").values():
    for row in split:
        before, after = row["original"], row["edited"]
        assert before.size == after.size == (1024, 1024) and row["instruction"], row["task_id"]
        assert row["mask"] is None or row["mask"].size == before.size
        rows += 1
pairs = sum(len(split) for split in load_dataset("release", "preference").values())
print(f"{rows} rows with original, instruction, edited and mask; {pairs} preference pairs")
"""
TINY = ("--model", "diffusers/tiny", "--settings", "settings.toml", "--json", "--set", "side=64")


def sets(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def here(*words: str, folder: Path) -> None:
    """One of our commands on the first machine."""
    subprocess.run(
        [sys.executable, "-m", "plantain", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )


def make_release(first: Path, images: int) -> None:
    """A build of four sources, and its release in every layout."""
    retina = Image.fromarray(skimage.data.retina())
    for place, licence in enumerate(CLASSES):
        folder = first / "scans" / licence / "normal"
        folder.mkdir(parents=True)
        for number in range(images):
            turned = retina.rotate((place * images + number) * 23, resample=Image.Resampling.BICUBIC)
            turned.resize((700, 700)).save(folder / f"{licence}{number}.png")
        words = ["--modality", "fundus", "--licence", licence, "--dataset", licence, "--skip-text"]
        here("ingest", "folder", f"scans/{licence}", *words, "--to", "catalogue", folder=first)
    (first / "recipe.toml").write_text(RECIPE)
    here("build", "recipe.toml", "--run", "run", folder=first)
    here("export", "run", "--to", "release", "--layout", LAYOUTS, *TERMS, folder=first)


def originals(run: Path) -> dict[Licence, list[bytes]]:
    """Prepared source images of a run by their licence class."""
    found: dict[Licence, list[bytes]] = {}
    with JournalReader.open(run) as reader:
        for image in reader.images():
            found.setdefault(image.licence, []).append(reader.read_blob(image.prepared_sha256))
    return found


def every_byte(folder: Path) -> Iterator[bytes]:
    """Every file as it lies there, each cell of each table, each member of each tar."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.read_bytes()
        if path.suffix == ".parquet":
            for row in pq.read_table(path).to_pylist():
                for cell in row.values():
                    data = cell.get("bytes") if isinstance(cell, dict) else cell
                    if isinstance(data, bytes):
                        yield data
        elif path.suffix == ".tar":
            with tarfile.open(path) as tar:
                for member in tar:
                    file = tar.extractfile(member)
                    yield file.read() if file is not None else b""


def inside(folder: Path, pictures: list[bytes]) -> int:
    """How many of the pictures are in a folder, by 64 bytes from the middle of each."""
    pieces = {picture[len(picture) // 2 :][:64] for picture in pictures}
    found = {piece for data in every_byte(folder) for piece in pieces if piece in data}
    return len(found)


def sums(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def on_the_second(second: Elsewhere) -> None:
    """Everything that the issue of a release is: each step is a line of the table."""
    step("verify", lambda: second.plantain("verify", "release").splitlines()[0])
    step("load_dataset", lambda: second.python_code(LOADED).strip())
    step("import", lambda: second.plantain("import", "release", "--run", "run").splitlines()[0])
    step(
        "bench from-build",
        lambda: second.plantain("bench", "from-build", "run", "--to", "bench").splitlines()[0],
    )
    step("bench check", lambda: second.plantain("bench", "check", "bench").splitlines()[-1])
    save_tiny("instruct-pix2pix", second.work / "tiny")
    (second.work / "settings.toml").write_text(SETTINGS)
    few = ["sizes=1", "seeds=1", "steps_per_sample=1", "tasks=1", "per_task=2", "judge=none"]

    def finetune() -> str:
        told = json.loads(second.plantain("train", "finetune", "release", *TINY, *sets(few), "--to", "tuned"))
        return f"{len(list((second.work / told['models']).rglob('training.json')))} model trained"

    def dpo() -> str:
        few = ["steps=2", "supervised_steps=1", "every=1", "lora_rank=2"]
        told = json.loads(second.plantain("train", "dpo", "release", *TINY, *sets(few), "--to", "preferring"))
        return f"{len(told['curve'])} looks at the held-out pairs"

    step("train finetune", finetune)
    step("train dpo", dpo)
    step(
        "export again",
        lambda: second.plantain("export", "run", "--to", "again", "--layout", LAYOUTS, *TERMS[4:]),
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=5, help="pictures of each source")
    images = parser.parse_args().images
    good = True

    def hold(what: str, holds: bool) -> None:
        nonlocal good
        good = good and holds
        print(f"| {what} | | {'yes' if holds else 'NO'} |", flush=True)

    with tempfile.TemporaryDirectory() as name:
        first, second = Path(name) / "first", Elsewhere(Path(name) / "second", {"TZ": "Asia/Kolkata"})
        first.mkdir()
        step("a release of four sources", lambda: make_release(first, images))
        step("a fresh environment", second.make)
        (first / "release").rename(second.work / "release")
        gone = first.rename(Path(name) / "out of reach")
        hold("sockets are refused", second.refuses())
        on_the_second(second)
        hold("both releases are the same bytes", sums(second.work / "release") == sums(second.work / "again"))
        hold("; ".join(["nothing asked for the network", *sorted(set(second.asked))]), not second.asked)
        known = originals(gone / "run")
        for licence, pictures in known.items():
            may = licence in (Licence.OPEN, Licence.ATTRIBUTION)
            for folder in ("release", "again"):
                n = inside(second.work / folder, pictures)
                hold(
                    f"{licence.value}: {n} of {len(pictures)} originals in {folder}", n == len(pictures) * may
                )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
