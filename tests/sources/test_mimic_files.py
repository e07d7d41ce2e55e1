"""Downloads of MIMIC-CXR as users have them: nested deeper, unpacked, partial, with links, litter and strays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from plantain.catalogue.ingest import ingest
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.records import InputError
from plantain.sources.mimic_cxr import MimicReader
from plantain.sources.registry import SourceOptions
from sources.published import jpeg, put, scanned
from sources.test_mimic_cxr import Tree, dicom_id

TAXONOMY = load_taxonomy()


def read(root: Path, **settings: str) -> MimicReader:
    return MimicReader(SourceOptions(root, settings=settings), TAXONOMY)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Write the tree as wget leaves it: release 2.1.0, whose tables are still called 2.0.0."""
    tree = Tree(tmp_path / "physionet.org/files/mimic-cxr-jpg/2.1.0")
    tree.study(10000032, 50000001, {"Pneumothorax": "1.0"}, "PA,LATERAL")
    tree.study(10000032, 50000002, {"No Finding": "1.0"}, "AP")
    tree.study(11000033, 50000003, {"Edema": "1.0"}, "PA", "test")
    tree.write()
    return tree


IDS = {"s50000001", "s50000002", "s50000003"}


def test_the_download_is_found_some_levels_down_and_its_release_is_kept(tree: Tree, tmp_path: Path) -> None:
    put(tmp_path / "physionet.org/robots.txt", b"x")
    put(tree.root / "README", b"x")
    put(tree.root / "._mimic-cxr-2.0.0-metadata.csv.gz", b"of a Mac")
    put(tree.root / "files/index.html", b"x")
    put(
        tree.root / "files/p10/p10000032/s50000001.txt",
        b"a report, as MIMIC-CXR keeps them next to the folders",
    )
    for root in (tmp_path, tmp_path / "physionet.org", tree.root):
        entries, refused, _ = scanned(read(root))
        assert (entries.keys(), refused) == (IDS, {})
        assert {entry.image.version for entry in entries.values()} == {"2.1.0"}
        name = f"files/p10/p10000032/s50000001/{dicom_id(0)}.jpg"
        assert entries["s50000001"].name == name


def test_tables_may_be_elsewhere_and_images_behind_links(tree: Tree, tmp_path: Path) -> None:
    tables, disk = tmp_path / "tables", tmp_path / "disk"
    for path in list(tree.root.glob("*.csv.gz")):
        put(tables / path.name, path.read_bytes())
        path.unlink()
    shutil.move(tree.root / "files/p11", disk / "p11")
    (tree.root / "files/p11").symlink_to(disk / "p11")
    assert scanned(read(tree.root, tables=str(tables)))[0].keys() == IDS
    with pytest.raises(InputError, match=r"metadata.csv.gz is not there"):
        read(tree.root)
    with pytest.raises(InputError, match="--set tables=nowhere: not a folder"):
        read(tree.root, tables="nowhere")


def test_undownloaded_folders_are_counted_and_missing_images_named(tree: Tree, tmp_path: Path) -> None:
    shutil.rmtree(tree.root / "files/p11")
    lost = next((tree.root / "files/p10/p10000032/s50000002").glob("*.jpg"))
    lost.unlink()
    entries, refused, left_out = scanned(read(tree.root))
    assert entries.keys() == {"s50000001"}
    name = f"files/p10/p10000032/s50000002/{lost.name}"
    assert refused == {name: "is not there, neither as .jpg nor as .dcm"}
    assert left_out["not downloaded: files/p11 is not there"] == 1
    # The rest arrives later: present images stay unchanged.
    with Catalogue.create(tmp_path / "out") as catalogue:
        assert ingest(read(tree.root), catalogue).added == 1
        put(lost, jpeg("chest_xray", 77))
        put(tree.root / f"files/p11/p11000033/s50000003/{dicom_id(3)}.jpg", jpeg("chest_xray", 78))
        done = ingest(read(tree.root), catalogue)
        assert (done.added, done.unchanged, done.refused) == (2, 1, [])
    shutil.rmtree(tree.root / "files")
    with pytest.raises(InputError, match=r"files/p10 ... files/p19 is not there"):
        read(tree.root)


def test_a_table_cut_short_is_one_line(tree: Tree) -> None:
    table = tree.root / "mimic-cxr-2.0.0-metadata.csv.gz"
    table.write_bytes(table.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"metadata.csv.gz: line \d+: cannot be read"):
        read(tree.root)
