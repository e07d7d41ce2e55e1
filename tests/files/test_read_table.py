"""One reader for every table: dialects, encodings, workbooks and JSON lines; a bad row rejects only itself."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plantain.files.tables import defused, has_columns, read_csv, read_table, written_csv
from plantain.records import InputError
from sources.published import csv_bytes, csv_gz, xlsx_bytes

ROWS = [["ID", "words", "n"], [1, "a，b", 0], [2, "", 1]]
WANTED = [(2, {"ID": "1", "words": "a，b", "n": "0"}), (3, {"ID": "2", "words": "", "n": "1"})]


def read(path: Path, data: bytes) -> list[tuple[int, dict[str, str]]]:
    path.write_bytes(data)
    return [(line, cells) for line, cells, _ in read_table(path).whole_rows()]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("t.csv", csv_bytes(ROWS)),
        ("t.csv", csv_bytes(ROWS).replace(b",", b";")),
        ("t.csv", csv_bytes(ROWS).decode().encode("utf-16")),
        ("t.csv", csv_bytes(ROWS).decode().encode("utf-32")),
        ("t.csv.gz", csv_gz(ROWS)),
        ("t.xlsx", xlsx_bytes(ROWS)),
        ("t.csv", csv_bytes([["", *ROWS[0]], ["0", *ROWS[1]], ["1", *ROWS[2]]])),  # pandas' index
    ],
)
def test_every_form_reads_the_same(tmp_path: Path, name: str, data: bytes) -> None:
    assert read(tmp_path / name, data) == WANTED
    assert read_table(tmp_path / name).columns == ("ID", "words", "n")


def test_bytes_outside_utf_8_are_latin_1_with_the_quotes_of_windows(tmp_path: Path) -> None:
    # WHATWG
    assert read(tmp_path / "t.csv", b"a\nM\xfc\x92s \x96 5") == [(2, {"a": "M\u00fc\u2019s \u2013 5"})]
    assert read(tmp_path / "t.csv", "a,b\nMüller,1\n".encode("latin-1")) == [(2, {"a": "Müller", "b": "1"})]
    assert read(tmp_path / "t.csv", "a\nM\u00fc".encode("latin-1")) == [(2, {"a": "Mü"})]
    # two programs
    assert read(tmp_path / "t.csv", "a\nM\u00fc\u20ac".encode() + b"\xe9") == [(2, {"a": "Mü€é"})]
    german = "a\n„groß“ für"  # ß and the quote are two bytes that UTF-8 reads as one letter
    assert read(tmp_path / "t.csv", german.encode("cp1252")) == [(2, {"a": "„groß“ für"})]
    # of Chinese Excel
    assert read(tmp_path / "t.csv", "a\n正常眼底，lens".encode("gbk")) == [(2, {"a": "正常眼底，lens"})]
    for text in ("scan_größe_1.png", "date créée", "Gefäß,"):  # all accents in pairs, as bytes of Chinese are
        assert read(tmp_path / "t.csv", f"a,b\n{text}".encode("cp1252"))[0][1]["a"] == text.strip(",")
    for name, data in (("t.csv", b"a\n\x81"), ("t.jsonl", b'\n{"a": "\x81"}')):
        assert read(tmp_path / name, data) == [(2, {"a": "\u0081"})]  # WHATWG, index-windows-1252


def test_the_first_visible_sheet_that_the_workbook_names_is_read(tmp_path: Path) -> None:
    """Sheets moved in Excel keep their file names: the first one may be sheet2.xml."""
    book = openpyxl.Workbook()
    book.active.append(["wrong"])
    sheet = book.create_sheet("data", 0)
    hidden = book.create_sheet("lists", 0)
    hidden.append(["wrong as well"])
    hidden.sheet_state = "hidden"
    for row in (["a", "b", "c"], [1.0, 2.5, True], [], ["x", None, "  y "]):
        sheet.append(row)
    book.save(tmp_path / "t.xlsx")
    rows = [(line, cells) for line, cells, _ in read_table(tmp_path / "t.xlsx").whole_rows()]
    assert rows == [(2, {"a": "1", "b": "2.5", "c": "true"}), (4, {"a": "x", "b": "", "c": "y"})]


def test_a_cell_of_a_workbook_without_its_value_is_named(tmp_path: Path) -> None:
    """openpyxl reads formulas that no program has computed, and all merged cells but the first, as empty."""
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, "p"], [2, None], ["=1+1", "q"], ["note", None], [3, "r"]):
        book.active.append(row)
    for cells in ("B2:B3", "A5:B5"):
        book.active.merge_cells(cells)
    book.save(tmp_path / "t.xlsx")
    expected = {2: "", 3: "cells B2", 4: "cell A4", 5: "cells A5", 6: ""}
    assert {row.line: row.fault.partition(":")[0] for row in read_table(tmp_path / "t.xlsx").rows} == expected
    book.active.merge_cells("A1:B1")
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(InputError, match="line 1: cells A1:B1 are merged: fill in each"):
        read_table(tmp_path / "t.xlsx")


def test_a_title_and_escaped_characters_of_a_workbook_are_read(tmp_path: Path) -> None:
    """ECMA-376 Part 1, 22.9.2.19, for characters; the title is in a row above the header's."""
    rows = [["Table S1"], ["a", "b", "c"], ["_x000D_\nx_x000d_y", "_x005F_x000D_", "_x_"]]
    rows.append(["tile_x0010_y0009.png x_x0009_", "x_x005F_y", "_x005F_x0041_"])
    wanted = [(3, {"a": "x\ry", "b": "_x000D_", "c": "_x_"})]
    wanted.append((4, {"a": "tile_x0010_y0009.png x_x0009_", "b": "x_x005F_y", "c": "_x0041_"}))
    assert read(tmp_path / "t.xlsx", xlsx_bytes(rows)) == wanted
    assert read(tmp_path / "t.csv", b"Table S1,,\na,b,c\n1,,\n") == [(3, {"a": "1", "b": "", "c": ""})]


def test_a_workbook_of_strict_open_xml_is_named(tmp_path: Path) -> None:
    """Excel's "Strict Open XML Spreadsheet": the namespace of ISO/IEC 29500-1, Annex A."""
    (tmp_path / "t.xlsx").write_bytes(xlsx_bytes(ROWS))
    with (
        zipfile.ZipFile(tmp_path / "t.xlsx") as parts,
        zipfile.ZipFile(tmp_path / "strict.xlsx", "w") as strict,
    ):
        for name in parts.namelist():
            new = b"http://purl.oclc.org/ooxml/spreadsheetml/main"
            old = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
            strict.writestr(name, parts.read(name).replace(old, new))
    with pytest.raises(
        InputError, match=r"strict.xlsx: is Strict Open XML; save it as a plain Excel workbook"
    ):
        read_table(tmp_path / "strict.xlsx")


def test_json_lines_are_rows_and_values_other_than_text_are_json(tmp_path: Path) -> None:
    lines = ["\ufeff" + json.dumps({"a": "x", "b": {"src": "b.png"}, "n": 1, "ok": True, "none": None}), ""]
    lines += ['{"a": "y", "b": NaN, "more": 2}', "{", "[1]"]
    (tmp_path / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    table = read_table(tmp_path / "t.jsonl")
    assert table.columns == ("a", "b", "n", "ok", "none", "more")
    first, second, broken, listed = table.rows
    assert first.cells == {"a": "x", "b": '{"src": "b.png"}', "n": "1", "ok": "true", "none": "", "more": ""}
    assert (second.line, second.cells["b"], second.cells["n"]) == (3, "", "")
    assert "not JSON" in broken.fault and listed == (5, dict.fromkeys(table.columns, ""), "not a JSON object")


def test_a_bad_row_rejects_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2\n1,2,3\n4,5\n")
    rows = list(read_table(path).rows)
    assert [(row.line, row.fault) for row in rows] == [(2, ""), (3, "3 cells under 2 columns"), (4, "")]
    with pytest.raises(InputError, match="line 3: 3 cells under 2 columns"):
        list(read_table(path).whole_rows())


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "is empty"),
        (b"a,a\n1,2\n", "column 'a': occurs twice"),
        (b"\x89PNG\r\n\x1a\n\0\0", "no text; expected .csv"),
    ],
)
def test_faults_of_a_file_are_reported_in_one_line(tmp_path: Path, data: bytes, complaint: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=complaint) as caught:
        list(read_table(path).require("a").rows)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not has_columns(path, "a")


def test_tables_that_unpack_to_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.xlsx"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book,
        book.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet,
    ):
        for _ in range(129):
            sheet.write(bytes(1 << 20))
    with pytest.raises(InputError, match="more than 128 MB of cells"):
        read_table(path)
    monkeypatch.setattr("plantain.files.tables.MAX_TABLE_BYTES", 3 << 20)
    monkeypatch.setattr("plantain.files.tables.MAX_LINE", 1 << 20)
    for text, complaint in (
        (b"a\n" + b"x\n" * (2 << 20), "more than 3 MB of text"),
        (b"a\n" + b"x" * (2 << 20), "a line"),
    ):
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text, mtime=0))
        with pytest.raises(InputError, match=complaint):
            list(read_table(tmp_path / "t.csv.gz").rows)


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=300), st.sampled_from([".csv", ".csv.gz", ".xlsx", ".jsonl"]), st.integers(0, 2**32)
)
def test_any_bytes_are_rows_or_one_clear_line(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, ending: str, at: int
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / f"t{ending}"
    good = {".csv": csv_bytes, ".csv.gz": csv_gz, ".xlsx": xlsx_bytes, ".jsonl": json_bytes}[ending](ROWS)
    cut = at % (len(good) + 1)
    for data in (noise, good[:cut] + noise + good[cut + len(noise) :]):
        path.write_bytes(data)
        try:
            for row in read_table(path).rows:
                assert all(isinstance(cell, str) for cell in row.cells.values())
        except InputError as error:
            assert "\n" not in str(error)


def json_bytes(rows: list[list[object]]) -> bytes:
    lines = [json.dumps(dict(zip(rows[0], row, strict=True))) for row in rows[1:]]
    return io.StringIO("\n".join(lines)).getvalue().encode()


RUNS = ("=1+1", "+SUM(A1)", "-2+3", "@SUM(1)", "\t=1", "\n=1", " =1", "\uff1d1+1", "'=1", "-5 mm")
STAYS = ("", "-", "-5", "1e-9", "nan", "-5%", "a=b", "it's")


@pytest.mark.parametrize("cell", RUNS)
def test_a_cell_with_a_formula_is_defused(cell: str) -> None:
    text = written_csv([["id", cell]])
    (row,) = csv.reader(io.StringIO(text, newline=""))
    assert row[1] == f"'{cell}"
    assert list(read_csv(io.StringIO(text, newline=""))) == [["id", cell]]


@pytest.mark.parametrize("cell", STAYS)
def test_numbers_and_plain_words_stay_as_they_are(cell: str) -> None:
    assert defused(cell) == cell


@given(
    st.lists(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), min_size=2), max_size=5)
)
def test_every_cell_survives_a_round_trip(rows: list[list[str]]) -> None:
    assert list(read_csv(io.StringIO(written_csv(rows), newline=""))) == rows
