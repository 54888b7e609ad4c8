"""Manifests: rows in any order, bands in files of their own, and everything that is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from chronozarr_core.errors import ChronozarrError
from gdal_tools.manifest import read_manifest, resolve_uri
from gdal_tools.problems import SourceProblemsError


def csv(tmp_path: Path, text: str, encoding: str = "utf-8") -> Path:
    path = tmp_path / "m.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_rows_come_in_any_order_and_are_sorted_by_time(tmp_path: Path) -> None:
    manifest = read_manifest(csv(tmp_path, "uri,datetime\nb.tif,2024-02-01\na.tif,2024-01-01T10:30:00+02:00\n"))
    assert [frame.instant for frame in manifest.frames] == [
        np.datetime64("2024-01-01T08:30:00.000"),
        np.datetime64("2024-02-01T00:00:00.000"),
    ]
    assert manifest.frames[0].parts[0].uri == str(tmp_path / "a.tif")


def test_the_same_series_is_read_from_json(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    items = [{"uri": "a.png", "datetime": "2019-01-01", "bands": ["red", "nir"]}]
    path.write_text(json.dumps({"bounds": [1, 2, 3, 4], "items": items}))
    manifest = read_manifest(path)
    assert manifest.bounds == (1.0, 2.0, 3.0, 4.0)
    assert manifest.frames[0].parts[0].bands == ("red", "nir")


@pytest.mark.parametrize("cell", ["B1;B2", "B1|B2", '"B1,B2"', " B1 ; B2 "])
def test_band_names_of_one_file_are_separated_by_semicolon_bar_or_comma(tmp_path: Path, cell: str) -> None:
    manifest = read_manifest(csv(tmp_path, f"uri,datetime,bands\na.tif,2024-01-01,{cell}\n"))
    assert manifest.frames[0].parts[0].bands == ("B1", "B2")


def test_a_byte_order_mark_capitals_and_semicolons_of_a_spreadsheet_are_read(tmp_path: Path) -> None:
    manifest = read_manifest(csv(tmp_path, "\ufeffURI;DateTime\na.tif;2024-01-01\n"))
    assert manifest.frames[0].parts[0].uri.endswith("a.tif")


def test_files_that_share_a_date_are_its_bands_in_the_first_dates_order(tmp_path: Path) -> None:
    manifest = read_manifest(
        csv(
            tmp_path,
            "uri,datetime,bands\nx4,2024-02-01,B4\nx3,2024-02-01,B3\ny3,2024-01-01,B3\ny4,2024-01-01,B4\n",
        )
    )
    names = [[part.bands for part in frame.parts] for frame in manifest.frames]
    assert names == [[("B3",), ("B4",)], [("B3",), ("B4",)]]
    assert [Path(part.uri).name for part in manifest.frames[1].parts] == ["x3", "x4"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uri,when\na.tif,2024-01-01\n", "has columns uri, when: expected uri,datetime"),
        ("uri,datetime\n", "lists no files"),
        ("uri,datetime\na.tif,05-06-2021\n", "row 2 (a.tif): datetime '05-06-2021' is not a date"),
        ("uri,datetime\na.tif,2021-02-30\n", "'2021-02-30' is not a date"),
        ("uri,datetime\na.tif,\n", "row 2 (a.tif): there is no datetime"),
        ("uri,datetime\n,2024-01-01\n", "row 2: there is no uri"),
        ("uri,datetime\na.tif,2024-01-01\nb.tif,2024-01-01\n", "2 files have the datetime 2024-01-01T00:00:00Z"),
        ("uri,datetime,bands\na,2024-01-01,B1\nb,2024-01-01,B1\n", "band B1 of 2024-01-01T00:00:00Z is given more"),
        (
            "uri,datetime,bands\na,2024-01-01,B1\nb,2024-01-01,B2\nc,2024-02-01,B1\n",
            "2024-02-01T00:00:00Z has bands B1, the first date has B1, B2",
        ),
    ],
)
def test_what_a_manifest_gets_wrong_is_named_with_its_row(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ChronozarrError) as refused:
        read_manifest(csv(tmp_path, text))
    assert expected in str(refused.value)


def test_every_bad_row_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(SourceProblemsError) as refused:
        read_manifest(csv(tmp_path, "uri,datetime\na,never\nb,2024-01-01\nc,soon\n"))
    assert [problem.where for problem in refused.value.problems] == ["m.csv row 2 (a)", "m.csv row 4 (c)"]


def test_a_manifest_that_is_not_utf8_is_refused_with_the_byte(tmp_path: Path) -> None:
    with pytest.raises(ChronozarrError, match=r"is not UTF-8 .byte 13 is 0xe9.: save it as UTF-8"):
        read_manifest(csv(tmp_path, "uri,datetime\né.tif,2024-01-01\n", "latin-1"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "is not JSON"),
        ('{"frames": []}', "has no list of items"),
        ('{"bounds": [1, 2], "items": [{"uri": "a", "datetime": "2024-01-01"}]}', "has bounds [1, 2]"),
    ],
)
def test_a_json_manifest_of_another_form_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(ChronozarrError) as refused:
        read_manifest(path)
    assert expected in str(refused.value)


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChronozarrError, match=r"cannot read the manifest .*No such file"):
        read_manifest(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("https://example.org/a.tif?sig=1", "/vsicurl/https://example.org/a.tif?sig=1"),
        ("s3://bucket/a.tif", "/vsis3/bucket/a.tif"),
        ("gs://bucket/a.tif", "/vsigs/bucket/a.tif"),
        ("file:///data/a.tif", "/data/a.tif"),
        ("/vsizip/a.zip/b.tif", "/vsizip/a.zip/b.tif"),
        ('NETCDF:"a.nc":tas', 'NETCDF:"a.nc":tas'),
        ("/data/a.tif", "/data/a.tif"),
        ("sub/a.tif", "/folder/sub/a.tif"),
    ],
)
def test_uris_become_what_gdal_opens(uri: str, expected: str) -> None:
    assert resolve_uri(uri, Path("/folder")) == expected
