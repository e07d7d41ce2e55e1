from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import c2pa
import numpy as np
import pytest
import skimage.data
from PIL import Image

from fakes.commands import printed, refused
from plantain.journal import JournalReader, verify
from plantain.pixels.decode import decode
from plantain.pixels.encode import XMP_PACKET, encode_jpeg
from plantain.records import InputError
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions
from plantain.release.proof.provenance import open_signer, signed_attempt
from plantain.release.proof.verify import verify_release
from release.certificates import Chain, make_chain
from release.proofs import kinds
from release.resealing import entries_of, reseal
from release.runs import tree

LAYOUTS = ("dicom", "med-banana", "parquet", "preference", "webdataset")


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    return make_chain(tmp_path_factory.mktemp("chain"))


@pytest.fixture(scope="session")
def image() -> bytes:
    return encode_jpeg(np.ascontiguousarray(skimage.data.retina()[200:712, 200:712]))


def options(chain: Chain) -> ExportOptions:
    return ExportOptions(
        ("med-banana",), sign_cert=chain.certificates, sign_key=chain.key, licences=("CC-BY-4.0",)
    )


@pytest.fixture(scope="session")
def signed(small_run: Path, chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("signed") / "out"
    export_run(
        small_run,
        out,
        ExportOptions(LAYOUTS, sign_cert=chain.certificates, sign_key=chain.key, licences=("CC-BY-4.0",)),
    )
    return out


# --- signing --------------------------------------------------------------------------------------


def test_a_signed_image_keeps_its_pixels_and_names_its_task(chain: Chain, image: bytes) -> None:
    data = open_signer(options(chain)).sign(image, "a1b2", 3)
    assert signed_attempt(data) == ("Valid", "a1b2", 3)
    assert np.array_equal(decode(data), decode(image))
    assert XMP_PACKET in data


def test_a_reader_that_trusts_the_root_trusts_the_signature(chain: Chain, image: bytes) -> None:
    data = open_signer(options(chain)).sign(image, "a1b2", 3)
    trust = {"trust": {"user_anchors": chain.root.read_text()}}
    with c2pa.Reader(
        "image/jpeg", io.BytesIO(data), context=c2pa.Context(c2pa.Settings.from_dict(trust))
    ) as reader:
        assert reader.get_validation_state() == "Trusted"
        actions = json.dumps(reader.get_active_manifest())
        assert "compositeSynthetic" in actions and "not_for_clinical_use" in actions


def images_inside(data: bytes) -> int:
    """Count the images that Pillow decodes from any offset: random bytes may start like one, but do not decode."""
    starts = [found.start() for found in re.finditer(rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n", data)]
    return sum(_decodes(data[start:]) for start in starts)


def _decodes(data: bytes) -> bool:
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
    except (OSError, SyntaxError):
        return False
    return True


def test_a_signed_image_contains_no_other_image(chain: Chain, image: bytes) -> None:
    """The library's defaults embed thumbnails: of a restricted source, that would publish it."""
    data = open_signer(options(chain)).sign(image, "a1b2", 3)
    assert images_inside(data) == 1
    assert len(data) - len(image) < 8_000
    with c2pa.Reader("image/jpeg", io.BytesIO(data)) as reader:
        manifest_text = reader.json()
    assert "thumbnail" not in manifest_text and "ingredient" not in manifest_text


# --- a signed release -----------------------------------------------------------------------------


def test_verify_accepts_a_signed_release_whose_hashes_include_the_signatures(
    signed: Path, small_run: Path
) -> None:
    assert verify_release(signed, against=small_run, pixels=True).problems == ()
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=signed, check=True)
    images = [entry for entry, _ in entries_of(signed) if entry.is_edit]
    assert images and all(entry.source_sha256 and entry.source_sha256 != entry.sha256 for entry in images)
    assert "carry a C2PA manifest" in (signed / "README.md").read_text(encoding="utf-8")


def test_verify_finds_signatures_that_were_exchanged(signed: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(signed, tmp_path / "copy"))
    one, other = sorted(copy.glob("*-edit-failed/*/*.jpeg"))[:2]
    held = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(held)
    reseal(copy)
    assert {(str(path.relative_to(copy)), "signature") for path in (one, other)} <= kinds(
        verify_release(copy)
    )


def test_verify_finds_a_signed_image_that_is_not_the_judged_one(
    signed: Path, chain: Chain, image: bytes, tmp_path: Path
) -> None:
    """Validly signed, for the right task and round, with the right hashes; only the judged image is another one."""
    copy = Path(shutil.copytree(signed, tmp_path / "copy"))
    path = next(copy.glob("*-edit/*/*.jpeg"))
    _, task, round = signed_attempt(path.read_bytes())
    assert task is not None and round is not None
    path.write_bytes(open_signer(options(chain)).sign(image, task, round))
    reseal(copy)
    assert (str(path.relative_to(copy)), "image") in kinds(verify_release(copy))


def test_import_restores_a_signed_release_with_its_verdicts(
    signed: Path, small_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "imported"
    assert "imported without its signed manifest" in printed("import", signed, "--run", run)
    with JournalReader.open(small_run) as before, JournalReader.open(run) as after:
        assert verify(after).ok
        for attempt in before.all_attempts():
            if attempt.edited is not None:
                assert after.read_blob(attempt.edited) == before.read_blob(attempt.edited)
    for source in (small_run, run):
        named = () if source == run else ("CC-BY-4.0",)
        export_run(source, tmp_path / source.name / "out", ExportOptions(LAYOUTS, licences=named))
    assert tree(tmp_path / small_run.name / "out") == tree(run / "out")


def test_verify_finds_a_broken_signature(signed: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(signed, tmp_path / "copy"))
    path = next(copy.glob("*-edit*/*/*.jpeg"))
    data = bytearray(path.read_bytes())
    data[-200] ^= 1
    path.write_bytes(data)
    reseal(copy)
    assert (str(path.relative_to(copy)), "signature") in kinds(verify_release(copy))


@pytest.mark.parametrize("usage", ["documentSigning", None])
def test_certificate_without_the_right_usage_is_refused_at_once(usage: str | None, tmp_path: Path) -> None:
    bad = make_chain(tmp_path, usage=usage)
    with pytest.raises(InputError, match="emailProtection"):
        open_signer(options(bad))


def test_export_with_an_unusable_key_writes_nothing(small_run: Path, chain: Chain, tmp_path: Path) -> None:
    other = make_chain(tmp_path)
    (tmp_path / "text.pem").write_text("not a key")
    for key in (other.key, tmp_path / "text.pem", tmp_path / "no.pem"):
        signing = ("--sign", chain.certificates, "--key", key)
        refused("export", small_run, "--licence", "MIT", "--to", tmp_path / "out", *signing)
        assert not (tmp_path / "out").exists()
