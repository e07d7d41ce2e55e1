from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plantain.records import InputError
from plantain.sources.settings import parse_settings, whole_number
from plantain.sources.tables import read_table
from sources.published import csv_bytes, csv_gz, xlsx_bytes

ROWS = [["ID", "words", "n"], [1, "a，b", 0], [2, "", 1]]
WANTED = [{"ID": "1", "words": "a，b", "n": "0"}, {"ID": "2", "words": "", "n": "1"}]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("t.csv", csv_bytes(ROWS)),
        ("t.csv", csv_bytes(ROWS, bom=True)),
        ("t.csv", csv_bytes(ROWS).replace(b"\n", b"\r\n") + b"\r\n,,\r\n"),
        ("t.csv", csv_bytes(ROWS).replace(b",", b";")),
        ("t.csv", csv_bytes(ROWS, bom=True).replace(b",", b"\t").replace(b"\n", b"\r\n")),
        ("t.csv.gz", csv_gz(ROWS)),
        ("t.csv", csv_gz(ROWS)),  # unpacked in name only
        ("t.xlsx", xlsx_bytes(ROWS)),
    ],
)
def test_every_form_reads_the_same_by_header(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert list(read_table(tmp_path / name, ["n", "ID"])) == WANTED


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"a,a\n1,2\n", "column 'a': stands twice"),
        (b"x,b\n1,2\n", "column 'a': is missing; the header says x, b"),
        (b'"x\ny",b\n1,2\n', r"the header says x\\ny, b"),
        (b"a,b\n1,2\n1,2,3\n", "row 3: 3 cells under 2 columns"),
        (b"a,b\n\xff\xfe,2\n", "not UTF-8 text; save it as CSV UTF-8"),
        ("ID,words\n1,晶状体尘埃，正常眼底\n".encode("gbk"), "not UTF-8 text; save it as CSV UTF-8"),
        ("ID,words\n1,a\n".encode("utf-16"), "not UTF-8 text; save it as CSV UTF-8"),
        (gzip.compress(b"a,b\n" + b"x" * (5 << 20), mtime=0), "a line of more than 4194304 characters"),
        (gzip.compress(b"a,b\n" + bytes(range(65, 90)) * 99, mtime=0)[:-12], "cannot be read"),
        (b"a,b\n" + b'"' + b"x" * 200_000 + b'"\n', "field larger"),
    ],
)
def test_faults_name_file_and_row(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=says) as caught:
        list(read_table(path, ["a"]))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_sheet_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book,
        book.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet,
    ):
        for _ in range(129):
            sheet.write(bytes(1 << 20))
    with pytest.raises(InputError, match="more than 128 MB of cells"):
        list(read_table(path))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([".csv", ".csv.gz", ".xlsx"]), st.integers(0, 2**32))
def test_any_bytes_are_rows_or_one_clear_line(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, ending: str, at: int
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / f"t{ending}"
    good = {".csv": csv_bytes, ".csv.gz": csv_gz, ".xlsx": xlsx_bytes}[ending](ROWS)
    cut = at % (len(good) + 1)
    for data in (noise, good[:cut] + noise + good[cut + len(noise) :]):
        path.write_bytes(data)
        try:
            for row in read_table(path):
                assert all(isinstance(cell, str) for cell in row.values())
        except InputError as error:
            assert "\n" not in str(error)


def test_settings_are_words_with_an_equals_sign() -> None:
    assert parse_settings(["a=1", "b = x=y"]) == {"a": "1", "b": "x=y"}
    for words, says in ((["a"], "expected name=value"), (["a=1", "a=2"], "given twice")):
        with pytest.raises(InputError, match=says):
            parse_settings(words)
    assert whole_number("n", "12") == 12
    for bad in ("-1", "1.5", "", "٣"):
        with pytest.raises(InputError, match="whole number"):
            whole_number("n", bad)
