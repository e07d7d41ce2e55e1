"""Files of a received folder are opened only inside it, and we never write through a link."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from plantain.files.opening import (
    check_received,
    create,
    is_inside,
    read_inside,
    read_regular,
    read_toml_table,
    replace_file,
)
from plantain.findings import load_taxonomy
from plantain.pages.publishing import write_page
from plantain.pipeline.recipe import Recipe
from plantain.records import InputError
from plantain.runs.settings_file import read_toml


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside.txt"
    path.write_text("mine", encoding="utf-8")
    return path


@pytest.fixture
def received(tmp_path: Path) -> Path:
    folder = tmp_path / "received"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "a.txt").write_text("theirs", encoding="utf-8")
    return folder


def test_only_links_that_stay_inside_are_followed(received: Path, outside: Path) -> None:
    (received / "in").symlink_to("a.txt")
    assert read_inside(received, received / "in") == b"theirs"
    check_received(received)
    for number, target in enumerate((outside, Path("../outside.txt"), Path("/etc"), Path("/dev/zero"))):
        link = received / "deep" / "er" / f"out{number}"
        link.symlink_to(target)
        assert not is_inside(link, received)
        with pytest.raises(InputError, match="a link that leads out of"):
            read_inside(received, link)
        with pytest.raises(InputError, match="a link that leads out of"):
            check_received(received)
        link.unlink()


def test_a_linked_parent_folder_leads_out_too(received: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_text("mine", encoding="utf-8")
    (received / "gate").symlink_to(other)
    with pytest.raises(InputError, match="leads out"):
        read_inside(received, received / "gate" / "b.txt")
    with pytest.raises(InputError, match="leads out"):
        check_received(received, levels=1)


def test_special_files_are_refused_at_once(received: Path) -> None:
    os.mkfifo(received / "pipe")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        check_received(received)
    with pytest.raises(InputError, match="not a regular file"):
        read_regular(received / "pipe", "pipe")
    (received / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(received / "s"))
        with pytest.raises(InputError, match="neither a file nor a folder"):
            check_received(received)
    with pytest.raises(InputError, match="not a regular file"):
        read_regular(Path("/dev/zero"), "zero")


def test_a_snapshot_of_the_hubs_cache_may_point_to_its_own_blobs(tmp_path: Path, outside: Path) -> None:
    repository = tmp_path / "datasets--someone--scans"
    snapshot = repository / "snapshots" / "0a1b"
    (snapshot / "glioma").mkdir(parents=True)
    (repository / "blobs").mkdir()
    (repository / "blobs" / "ffee").write_bytes(b"image")
    (snapshot / "glioma" / "1.jpg").symlink_to("../../../blobs/ffee")
    check_received(snapshot)
    assert read_inside(snapshot, snapshot / "glioma" / "1.jpg") == b"image"
    (snapshot / "glioma" / "2.jpg").symlink_to("../../../refs")
    (repository / "refs").write_bytes(b"not a blob")
    assert not is_inside(snapshot / "glioma" / "2.jpg", snapshot)
    (repository / "blobs" / "out").symlink_to(outside)
    (snapshot / "3.jpg").symlink_to("../../blobs/out")
    assert not is_inside(snapshot / "3.jpg", snapshot)


@pytest.mark.parametrize("planted", ["page.html", ".page.html.part", "page.html.part"])
def test_a_planted_link_is_not_written_through(planted: str, received: Path, outside: Path) -> None:
    (received / planted).symlink_to(outside)
    write_page(received / "page.html", "<p>a report</p>")
    assert outside.read_text(encoding="utf-8") == "mine"
    assert (received / "page.html").read_text(encoding="utf-8") == "<p>a report</p>"
    assert not (received / "page.html").is_symlink()


def test_a_new_file_replaces_anything_of_its_name(received: Path, outside: Path) -> None:
    os.link(outside, received / "hard")
    with create(received / "hard") as file:
        file.write(b"ours")
    assert outside.read_text(encoding="utf-8") == "mine"
    replace_file(received / "secret", b"x", mode=0o600)
    assert (received / "secret").stat().st_mode & 0o777 == 0o600
    with pytest.raises(OSError):
        replace_file(received / "deep", b"x")
    assert sorted(path.name for path in received.iterdir()) == ["a.txt", "deep", "hard", "secret"]


BROKEN = {
    "nested arrays": b"a = " + b"[" * 10_000 + b"]" * 10_000,
    "a long number": b"seed = " + b"9" * 5000,
    "not UTF-8": b'name = "\xff"',
    "a key twice": b"a = 1\na = 2",
    "no end": b'name = "',
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_toml_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_bytes(BROKEN[name])
    for read in (read_toml_table, lambda p: read_toml(p, Recipe, "recipe"), lambda p: load_taxonomy([p])):
        with pytest.raises(InputError, match="is not valid TOML") as caught:
            read(path)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500
