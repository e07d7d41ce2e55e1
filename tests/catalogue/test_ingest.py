"""The state that an ingest leaves when it is stopped, repeated, or given files that changed or moved."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from fakes.commands import printed
from plantain.catalogue.ingest import Ingested, ingest, write_rejected
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, is_normal_form, is_source_form
from plantain.records import Consent, InputError, Licence
from plantain.sources.folder import FolderReader
from plantain.sources.registry import SourceOptions
from sources.published import digest_of, jpeg, put

TAXONOMY = load_taxonomy()
OPEN = ["--licence", "open", "--skip-text"]


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    root = tmp_path / "scans"
    for number in range(9):
        put(root / ("normal", "Edema")[number % 2] / f"{number}.jpg", jpeg("chest_xray", number))
    put(root / "normal/broken.jpg", b"x")
    return root


def reader(root: Path) -> FolderReader:
    return FolderReader(SourceOptions(root, "chest_xray", Licence.OPEN), TAXONOMY)


def run(
    out: Path, source: FolderReader, on_file: Callable[[object], None] = lambda _: None, **stated: object
) -> Ingested:
    with Catalogue.create(out) as catalogue:
        return ingest(source, catalogue, on_file=on_file, workers=2, stated=stated)


@pytest.fixture
def whole(scans: Path, tmp_path: Path) -> str:
    run(tmp_path / "whole", reader(scans))
    return digest_of(tmp_path / "whole")


@pytest.mark.parametrize("after", [1, 4])
def test_an_ingest_stopped_several_times_equals_one_in_one_go(
    scans: Path, tmp_path: Path, whole: str, after: int
) -> None:
    out = tmp_path / "out"
    for _ in range(3):
        left = iter(range(after))

        def stop(_: object, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt

        try:
            run(out, reader(scans), stop)
        except KeyboardInterrupt:
            with Catalogue.open(out) as catalogue:
                for image in catalogue.images():
                    catalogue.read(image)
    done = run(out, reader(scans))
    assert digest_of(out) == whole
    assert done.added + done.unchanged == 9
    assert done.unchanged > 0
    assert [item.name for item in done.refused] == ["normal/broken.jpg"]


def test_a_second_process_stops_in_one_line_and_the_first_is_intact(scans: Path, tmp_path: Path) -> None:
    out = tmp_path / "catalogue"
    with Catalogue.create(out) as first:
        meanwhile = iter([lambda: ingest(reader(scans), first)])

        def after_the_first_file(_: object) -> None:
            next(meanwhile, lambda: None)()

        with (
            pytest.raises(InputError, match="another process is adding to this catalogue"),
            Catalogue.create(out) as second,
        ):
            ingest(reader(scans), second, on_file=after_the_first_file)
        total = len(first)
        assert total > 1 and ingest(reader(scans), first).unchanged == total


def test_new_files_are_added_and_changed_ones_refused(scans: Path, tmp_path: Path, whole: str) -> None:
    out = tmp_path / "whole"
    put(scans / "normal/0.jpg", jpeg("chest_xray", 100))
    put(scans / "normal/10.jpg", jpeg("chest_xray", 101))
    (scans / "Edema/1.jpg").unlink()
    done = run(out, reader(scans))
    assert (done.added, done.unchanged) == (1, 7)
    reasons = {item.name: item.reason for item in done.refused}
    assert reasons["normal/0.jpg"].startswith("another image has the id 0")
    with Catalogue.open(out) as catalogue:
        assert len(catalogue) == 10  # an image whose file was removed is kept


def test_stated_dataset_version_and_consent_are_in_every_row(scans: Path, tmp_path: Path) -> None:
    out, consent = tmp_path / "out", Consent("Dr Roe", "contract 7")
    run(out, reader(scans), dataset="Chests", version="2", consent=consent)
    with Catalogue.open(out) as catalogue:
        for image in catalogue.images():
            assert (image.dataset, image.version, image.consent) == ("Chests", "2", consent)
    # Permission may come later, and nothing else changes with it.
    run(tmp_path / "late", reader(scans), dataset="Chests", version="2")
    assert digest_of(tmp_path / "late") != digest_of(out)
    late = run(tmp_path / "late", reader(scans), dataset="Chests", version="2", consent=consent)
    assert late.unchanged == 9
    assert digest_of(tmp_path / "late") == digest_of(out)


def test_two_datasets_in_one_catalogue_keep_their_rejected_files(scans: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    put(other / "normal/a.jpg", jpeg("chest_xray", 50))
    put(other / "normal/copy.jpg", (scans / "normal/0.jpg").read_bytes())
    for root in (scans, other, scans):
        write_rejected(out, root.name, run(out, reader(root)).refused)
    lines = (out / "rejected.csv").read_text().splitlines()
    assert lines[0] == "dataset,file,row,field,reason"
    assert lines[1].startswith("other,normal/copy.jpg,,,the same image as 0 (No Finding) of scans")
    assert lines[2].startswith("scans,normal/broken.jpg,,,")
    with Catalogue.open(out) as catalogue:
        assert catalogue.count_by("dataset") == {"other": 1, "scans": 9}


XMP = b"""<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/">
<Iptc4xmpExt:DigitalSourceType>http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia
</Iptc4xmpExt:DigitalSourceType></rdf:Description></rdf:RDF></x:xmpmeta>"""
"""After the IPTC Photo Metadata User Guide, "Guidance for using Digital Source Type"."""


def test_images_marked_as_synthetic_are_never_recorded_as_real(tmp_path: Path) -> None:
    root, out = tmp_path / "edits", tmp_path / "out"
    theirs = Image.open(io.BytesIO(jpeg("chest_xray", 1)))
    theirs.save(tmp_path / "theirs.jpg", "JPEG", quality=90, xmp=XMP)
    put(root / "Edema/theirs.jpg", (tmp_path / "theirs.jpg").read_bytes())
    put(root / "Edema/ours.jpg", encode_jpeg(decode(jpeg("chest_xray", 2))))
    put(root / "normal/real.jpg", jpeg("chest_xray", 3))
    run(out, reader(root))
    with Catalogue.open(out) as catalogue:
        images = {image.id: image for image in catalogue.images()}
        assert {name for name, image in images.items() if image.synthetic} == {"theirs", "ours"}
        assert images["theirs"].note == "marked as synthetic in the file (trainedAlgorithmicMedia)"
        assert is_normal_form(catalogue.read(images["theirs"]))  # with its mark
        assert is_source_form(catalogue.read(images["real"]))
    assert "2 images are marked as synthetic in the file" in printed(
        "ingest", "folder", root, "--modality", "chest_xray", "--to", out, *OPEN
    )
