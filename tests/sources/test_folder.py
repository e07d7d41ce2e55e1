from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from pixels.images import save
from plantain.catalogue.ingest import ingest
from plantain.catalogue.store import Catalogue
from plantain.cli.ingest import table_line
from plantain.findings import load_taxonomy
from plantain.records import Licence, SourceImage
from plantain.sources.folder import FolderReader
from plantain.sources.label_table import LabelTable
from plantain.sources.registry import Refused, SourceEntry, SourceOptions, TableRead
from sources.published import jpeg

TAXONOMY = load_taxonomy()


def put(root: Path, **files: bytes) -> None:
    for name, data in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def read(root: Path, modality: str = "chest_xray") -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return ids with labels, and refused names with reasons."""
    scanned = FolderReader(SourceOptions(root, modality, Licence.OPEN), TAXONOMY).scan()
    found = [item for item in scanned if not isinstance(item, TableRead)]
    entries = {item.image.id: item.image.labels for item in found if isinstance(item, SourceEntry)}
    refused = {item.name: item.reason for item in found if isinstance(item, Refused)}
    assert len(entries) + len(refused) == len(found)
    return entries, refused


def test_same_stem_and_bytes_is_one_image_with_several_labels(tmp_path: Path) -> None:
    put(tmp_path, Edema__s1_dot_jpg=b"x", Pneumonia__s1_dot_jpg=b"x")
    # as DICOM exports have
    put(tmp_path, **{"__".join(["Edema", *"abcdefghijklmnop", "deep_dot_jpg"]): b"z"})
    entries, refused = read(tmp_path)
    assert entries == {"s1": ("Edema", "Pneumonia"), "deep": ("Edema",)}
    assert not refused


def test_same_stem_and_other_bytes_are_distinguished_by_folder_then_ending(tmp_path: Path) -> None:
    put(
        tmp_path, Edema__s1_dot_jpg=b"x", Pleural_Effusion__s1_dot_jpg=b"y", Pleural_Effusion__s1_dot_png=b"z"
    )
    put(tmp_path, Edema__s2_dot_jpg=b"other")
    entries, _ = read(tmp_path)
    assert set(entries) == {"Edema_s1", "Pleural_Effusion_s1.jpg", "Pleural_Effusion_s1.png", "s2"}


def test_normal_and_diseased_at_once_is_refused(tmp_path: Path) -> None:
    put(tmp_path, normal__s1_dot_jpg=b"x", Edema__s1_dot_jpg=b"x")
    entries, refused = read(tmp_path)
    assert not entries
    assert refused == {"normal/s1.jpg": "the same image as Edema/s1.jpg: it cannot be normal and not"}


def test_links_that_lead_out_are_refused_and_links_inside_work(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside, a_dot_jpg=b"x")
    root = tmp_path / "in"
    put(root, Edema__real_dot_jpg=b"x")
    (root / "Edema" / "out.jpg").symlink_to(outside / "a.jpg")
    (root / "Edema" / "up.jpg").symlink_to("../../outside/a.jpg")
    (root / "Edema" / "gone.jpg").symlink_to("nowhere.jpg")
    (root / "Edema" / "loop.jpg").symlink_to("loop.jpg")
    (root / "Edema" / "alias.jpg").symlink_to("real.jpg")
    (root / "Fracture").symlink_to(outside)
    entries, refused = read(root)
    assert set(entries) == {"alias", "real"}
    assert set(refused) == {"Edema/out.jpg", "Edema/up.jpg", "Edema/gone.jpg", "Edema/loop.jpg", "Fracture"}
    assert all("link" in reason for reason in refused.values())


def test_only_clutter_is_dropped_silently(tmp_path: Path) -> None:
    put(
        tmp_path, top_dot_jpg=b"x", Edema__notes_dot_txt=b"x", Edema__sub__a_dot_jpg=b"x", Edema___dot_DS=b"x"
    )
    (tmp_path / "Edema" / "Thumbs.db").write_bytes(b"x")
    (tmp_path / ".git").mkdir()
    entries, refused = read(tmp_path)
    assert entries == {"a": ("Edema",)}
    assert set(refused) == {"top.jpg", "Edema/notes.txt"}


def test_scan_order_does_not_depend_on_file_creation(tmp_path: Path) -> None:
    for root, names in ((tmp_path / "a", "cab"), (tmp_path / "b", "bca")):
        for name in names:
            put(root / "Edema", **{f"{name}_dot_jpg": name.encode()})
    orders = []
    for root in (tmp_path / "a", tmp_path / "b"):
        reader = FolderReader(SourceOptions(root, "chest_xray"), TAXONOMY)
        items = list(reader.scan())
        assert reader.count() == len(items)
        orders.append([item.name for item in items])
    assert orders[0] == orders[1] == ["Edema/a.jpg", "Edema/b.jpg", "Edema/c.jpg"]


def described(root: Path) -> dict[str, SourceImage]:
    found = FolderReader(SourceOptions(root, "chest_xray", Licence.OPEN), TAXONOMY).scan()
    return {item.name: item.image for item in found if isinstance(item, SourceEntry)}


def test_a_flat_folder_takes_labels_from_a_table(tmp_path: Path) -> None:
    put(tmp_path, a_dot_png=b"a", b_dot_png=b"b", c_dot_png=b"c", spare_dot_png=b"s", images__d_dot_jpg=b"d")
    (tmp_path / "labels.csv").write_text(
        "file,labels,group,split\n"
        "a.png,Edema|pleural effusion,p1,train\nb.png,normal,p1,train\nc.png,,p2,\n"
        "images\\d.jpg,Fracture,p3,test\ngone.png,Edema,p4,\n"
    )
    images = described(tmp_path)
    assert {name: image.labels for name, image in images.items()} == {
        "a.png": ("Edema", "Pleural Effusion"),
        "b.png": ("No Finding",),
        "c.png": (),
        "images/d.jpg": ("Fracture",),
    }
    assert [image.group for image in images.values()] == ["p1", "p1", "p2", "p3"]
    assert [image.split for image in images.values()] == ["train", "train", "", "test"]
    assert "no label" in images["c.png"].note
    _, refused = read(tmp_path)
    assert refused == {
        "spare.png": "has no row in labels.csv",
        "gone.png": "the table of labels names it, and no such image is there",
    }


def test_the_same_image_in_two_groups_is_refused(tmp_path: Path) -> None:
    put(tmp_path, one__s_dot_png=b"x", two__s_dot_png=b"x")
    (tmp_path / "labels.csv").write_text("file,labels,group\none/s.png,Edema,p1\ntwo/s.png,Edema,p2\n")
    entries, refused = read(tmp_path)
    assert not entries
    assert "another group or split" in refused["two/s.png"]


def test_a_snapshot_of_the_hubs_cache_is_read_and_a_link_elsewhere_is_not(tmp_path: Path) -> None:
    """The layout of huggingface_hub's cache: snapshots/<revision>/... are links to ../../blobs/<hash>."""
    repository = tmp_path / "datasets--someone--chests"
    snapshot = repository / "snapshots" / "0123abcd"
    put(repository, blobs__ff0=jpeg("chest_xray", 1), blobs__ff1=jpeg("chest_xray", 2))
    put(tmp_path, mine=jpeg("chest_xray", 3))
    (snapshot / "Edema").mkdir(parents=True)
    for number in range(2):
        (snapshot / "Edema" / f"{number}.jpg").symlink_to(f"../../../blobs/ff{number}")
    (snapshot / "Edema" / "9.jpg").symlink_to(tmp_path / "mine")
    source = FolderReader(SourceOptions(snapshot, "chest_xray", Licence.OPEN), TAXONOMY)
    with Catalogue.create(tmp_path / "catalogue") as catalogue:
        done = ingest(source, catalogue)
    assert done.added == 2
    assert read(snapshot)[1] == {
        "Edema/9.jpg": "a link that leads out of the folder, to a folder, or nowhere"
    }


def test_a_table_with_a_column_for_each_label_gives_labels(tmp_path: Path) -> None:
    """As CheXpert's train.csv: 1.0 there, 0.0 not, -1.0 uncertain, empty not mentioned; Support Devices is left out."""
    (tmp_path / "labels.csv").write_text(
        "Path,Sex,Age,No Finding,Cardiomegaly,Lung Opacity,Pleural Effusion,Support Devices\n"
        "a/patient00001/view1.jpg,F,68,1.0,,,,1.0\n"
        "a/patient00002/view1.jpg,F,87,,1.0,0.0,-1.0,1.0\n"
        "a/patient00003/view1.jpg,M,83,,,1.0,1.0,\n"
        "a/patient00004/view1.jpg,M,41,,,,0.0,\n",
        encoding="utf-8",
    )
    files = [f"a/patient0000{number}/view1.jpg" for number in (1, 2, 3, 4)]
    table = LabelTable(tmp_path, TAXONOMY, files, SourceOptions(tmp_path, "chest_xray", Licence.OPEN))
    expected = [("No Finding",), ("Cardiomegaly",), ("Lung Opacity", "Pleural Effusion"), ()]
    assert [table.of(file, "chest_xray").labels for file in files] == expected
    assert table.read is not None
    assert (
        "labels from the columns 'No Finding', 'Cardiomegaly', 'Lung Opacity', 'Pleural Effusion' (1: "
        in (table_line(table.read))
    )
    assert "not used: 'Sex', 'Age', 'Support Devices'" in table_line(table.read)
    (tmp_path / "labels.csv").write_text("file,Edema,Pneumonia\na.png,Positive,absent\nb.png,F,present\n")
    table = LabelTable(tmp_path, TAXONOMY, ["a.png", "b.png"], SourceOptions(tmp_path, "chest_xray"))
    assert [table.of(file, "chest_xray").labels for file in ("a.png", "b.png")] == [
        ("Edema",),
        ("Pneumonia",),
    ]


def test_a_table_gives_sequence_and_plane_and_settings_apply_to_the_rest(tmp_path: Path) -> None:
    root = tmp_path / "slices"
    put(root, **{f"{name}_dot_png": name.encode() for name in "abcd"})
    rows = ("a.png,glioma,t2,Coronal", "b.png,glioma,,unknown", "c.png,glioma,T9,axial", "d.png,glioma,T1+C,")
    (root / "labels.csv").write_text("\n".join(("file,labels,sequence,plane", *rows)))
    options = SourceOptions(root, "brain_mri", Licence.OPEN, settings={"sequence": "PD"})
    read, refused, *entries = FolderReader(options, TAXONOMY).scan()
    assert isinstance(read, TableRead) and (read.columns.sequence, read.columns.plane) == (
        "sequence",
        "plane",
    )
    assert refused == Refused(
        "c.png", "sequence 'T9' of labels.csv: choose one of T1, T1+C, T2, FLAIR, PD", row=4, field="sequence"
    )
    described = [(e.image.sequence, e.image.plane) for e in entries if isinstance(e, SourceEntry)]
    assert described == [("T2", "coronal"), ("PD", "unknown"), ("T1+C", "unknown")]


def test_16_bit_slices_of_one_volume_share_a_scale(tmp_path: Path) -> None:
    values = {"glioma/v_01": 4095, "glioma/v_02": 1000}
    put(
        tmp_path,
        **{
            f"{name}.png": save(Image.fromarray(np.full((40, 40), top, np.uint16)), "PNG")
            for name, top in values.items()
        },
    )
    reader = FolderReader(SourceOptions(tmp_path, "brain_mri"), TAXONOMY)
    entries = [item for item in reader.scan() if isinstance(item, SourceEntry)]
    # 12 bits to 8: 4095 // 16 and 1000 // 16.
    assert [int(entry.decode(entry.path.read_bytes()).max()) for entry in entries] == [255, 62]


def test_masks_among_images_are_refused_by_their_published_names(tmp_path: Path) -> None:
    """COVID-19 Radiography Database, TCGA-LGG, BUSI; a row of the table may name an image so."""
    names = [
        "normal/c",
        "normal/masks/c",
        "normal/masks/a",
        *("normal/p/d", "normal/q/d", "normal/masks/d"),  # a row that may mean two images means no mask
        "Lung Segmentation/CXR_png/CHNCXR_0001_0",
        "glioma/patient_mask_1",
        "glioma/t_1_mask",
        "glioma/g (1)_mask_1",
        "glioma/masked",
        "glioma/seg",
    ]
    put(tmp_path, **{f"{name}.png": b"not decoded" for name in names})
    put(
        tmp_path,
        **{
            "labels.csv": b"file,labels\nc.png,normal\nglioma/seg.png,glioma\nglioma/masked.png,glioma\nd,glioma\n"
            b"CHNCXR_0001_0.png,normal\npatient_mask_1,glioma\n"
        },
    )
    found = list(FolderReader(SourceOptions(tmp_path, "brain_mri"), TAXONOMY).scan())
    assert [one.image.id for one in found if isinstance(one, SourceEntry)] == [
        *("CHNCXR_0001_0", "c", "d", "masked", "patient_mask_1", "seg")
    ]
    assert sum("a mask or label map" in one.reason for one in found if isinstance(one, Refused)) == 5
