"""The published files: the wheel contains only the package, under a name that is ours."""

from __future__ import annotations

import os
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from plantain.files import installed
from plantain.files.installed import DISTRIBUTION, install_line
from plantain.records import InputError

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "plantain"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(wheel, source distribution)."""
    build = pytest.importorskip("hatchling.build")
    out, here = tmp_path_factory.mktemp("dist"), Path.cwd()
    os.chdir(ROOT)
    try:
        return out / build.build_wheel(str(out)), out / build.build_sdist(str(out))
    finally:
        os.chdir(here)


def test_wheel_contains_exactly_the_package(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
        for name in held:
            assert wheel.read(name) == (ROOT / "src" / name).read_bytes()
    there = {str(path.relative_to(ROOT / "src")) for path in PACKAGE.rglob("*") if path.is_file()}
    assert held == {name for name in there if "__pycache__" not in name}


def test_metadata_is_complete(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        text = wheel.read(name)
    metadata = Metadata.from_email(text, validate=True)
    assert metadata.name == DISTRIBUTION
    assert metadata.summary and metadata.license_expression == "MIT" and metadata.license_files
    assert HeaderParser().parsestr(text.decode()).get("Description-Content-Type") == "text/markdown"
    assert not [need for need in metadata.requires_dist or () if need.name.startswith("plantain")]


def test_source_distribution_contains_all_that_tests_need(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {"pyproject.toml", "Makefile", "conftest.py", "README.md", "tests/conftest.py"} <= names
    assert not [name for name in names if name.startswith((".venv", "dist/", ".git/", "demo-run"))]


@pytest.mark.parametrize(
    ("clone", "extra", "line"),
    [
        (True, "release", "in plantain's clone: pip install -e '.[release]'"),
        (False, "release", "pip install 'plantain-med[release]'"),
        (True, "", "in plantain's clone: pip install -e ."),
        (False, "", "pip install plantain-med"),
    ],
)
def test_install_line_fits_the_installation(
    monkeypatch: pytest.MonkeyPatch, clone: bool, extra: str, line: str
) -> None:
    monkeypatch.setattr(installed, "_from_a_clone", lambda: clone)
    assert install_line(extra) == line


def test_installation_older_than_the_code_is_reported() -> None:
    with pytest.raises(
        InputError, match=r"own plantain\.poems are not registered.*run its pip install again"
    ):
        installed.installed("plantain.poems")
