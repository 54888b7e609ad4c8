"""Problems that people reported in public, by their numbers, each with the right value or the right error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chronozarr_core import ChronoStore, EncodeOptions, open_store
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.instants import parse_instant
from gdal_tools.convert import convert, prepare
from gdal_tools.problems import SourceProblemsError
from gdal_tools.sources import SourceOptions
from tests.gdal.builders import TRANSFORM, WORLD_FILE, write_manifest, write_png, write_tif

A = np.arange(12, dtype="float32").reshape(3, 4)
NAN = float("nan")


def manifest_of(folder: Path, names: list[str]) -> Path:
    return write_manifest(folder / "m.csv", [(name, f"2021-01-{day:02}") for day, name in enumerate(names, 1)])


def store_of(manifest: Path, **options: Any) -> ChronoStore:
    out = manifest.parent / "store"
    convert(manifest, out, SourceOptions(**options), EncodeOptions(chunk_size=16))
    return open_store(out)


def problems_of(manifest: Path, **options: Any) -> list[str]:
    with pytest.raises(SourceProblemsError) as error:
        prepare(manifest, SourceOptions(**options))
    return [str(problem) for problem in error.value.problems]


def valid_means(store: ChronoStore) -> list[float]:
    return [round(float(store.read(t)[store.read_valid(t)].mean()), 6) for t in range(len(store.times))]


@pytest.mark.parametrize(
    "text", ["05-06-2021", "2013-13-01", "2021-02-30", "20211399", "Mai 2021", "2021", "v2.0.2004.1.3"]
)
def test_3_a_date_that_would_be_a_guess_is_refused(text: str) -> None:
    with pytest.raises(ChronozarrError, match="is not a date"):
        parse_instant(text)


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("2004-01", "2004-01-01T00:00:00"),
        ("2021-06-05", "2021-06-05T00:00:00"),
        ("20240914", "2024-09-14T00:00:00"),
        ("2022-10-24T09:50:29Z", "2022-10-24T09:50:29"),
        ("2020-01-01T00:00:00+05:30", "2019-12-31T18:30:00"),
    ],
)
def test_3_and_18_a_manifest_date_is_the_instant_it_begins_in_utc(text: str, begin: str) -> None:
    assert parse_instant(text) == np.datetime64(begin, "ms")


def test_4_files_of_one_date_are_never_dropped_and_the_series_is_sorted(tmp_path: Path) -> None:
    names = ["20200102a", "20200101b", "20200101a"]
    for value, name in enumerate(names):
        write_tif(tmp_path / f"{name}.tif", np.full((3, 4), value, "float32"))
    manifest = write_manifest(tmp_path / "m.csv", [(f"{name}.tif", name[:8]) for name in names])
    (problem,) = problems_of(manifest)
    assert "row 3 (20200101b.tif) and m.csv row 4 (20200101a.tif): 2 files have the datetime 2020-01-01" in problem
    rows = [(f"{name}.tif", date) for name, date in zip(names, ["20200103", "20200102", "20200101"], strict=True)]
    store = store_of(write_manifest(tmp_path / "m.csv", rows))
    assert [int(store.read(t)[0, 0, 0]) for t in range(3)] == [2, 1, 0]


def test_5_neighbouring_utm_zones_are_told_apart_though_every_number_agrees(tmp_path: Path) -> None:
    corner = (10.0, 0.0, 499980.0, 0.0, -10.0, 5900040.0)
    write_tif(tmp_path / "T12.tif", A, transform=corner, crs="EPSG:32612")
    write_tif(tmp_path / "T11.tif", A, transform=corner, crs="EPSG:32611")
    (problem,) = problems_of(manifest_of(tmp_path, ["T12.tif", "T11.tif"]))
    assert "m.csv row 3 (T11.tif): its CRS is EPSG:32611, and the grid's EPSG:32612" in problem


def test_6_noise_of_1e_12_degrees_is_the_same_grid(tmp_path: Path) -> None:
    for day, left in enumerate((100.0, 100.0 + 1e-12)):
        write_tif(tmp_path / f"{day}.tif", A + day, transform=(0.1, 0.0, left, 0.0, -0.1, 50.0), crs="EPSG:4326")
    store = store_of(manifest_of(tmp_path, ["0.tif", "1.tif"]))
    assert store.levels[0].shape == (2, 1, 3, 4)
    assert np.array_equal(store.read(1)[0], A + 1)
    assert not store.has_mask


def test_6_whole_pixels_are_padded_and_fractions_are_refused(tmp_path: Path) -> None:
    ones = np.ones((10, 10), "uint8")
    a, b, c, d, e, f = TRANSFORM
    write_tif(tmp_path / "101.tif", ones)
    write_tif(tmp_path / "102.tif", np.ones((10, 11), "uint8"))
    write_tif(tmp_path / "103.tif", ones, transform=(a, b, c + 10, d, e, f))
    write_tif(tmp_path / "104.tif", ones, transform=(a, b, c + 3, d, e, f))
    write_tif(tmp_path / "105.tif", ones, transform=(10.13, b, c, d, -10.13, f))
    assert store_of(manifest_of(tmp_path, ["101.tif", "102.tif", "103.tif"])).grids[0].width == 11
    off_lattice, other_size = problems_of(manifest_of(tmp_path, ["101.tif", "104.tif", "105.tif"]))
    assert "0.3 columns and 0 rows off" in off_lattice
    assert "its pixels are 10.13 x 10.13, those of m.csv row 2 (101.tif) 10 x 10" in other_size


def test_8_south_up_keeps_the_value_at_a_coordinate(tmp_path: Path) -> None:
    write_tif(tmp_path / "n.tif", A, transform=(1.0, 0.0, 10.0, 0.0, -1.0, 50.0), crs="EPSG:4326")
    write_tif(tmp_path / "s.tif", A[::-1], transform=(1.0, 0.0, 10.0, 0.0, 1.0, 47.0), crs="EPSG:4326")
    for name in ("n.tif", "s.tif"):
        manifest = manifest_of(tmp_path, [name])
        store = store_of(manifest)
        assert store.read_pixel(x=10.5, y=49.5).values.tolist() == [[0.0]]
        assert store.read_pixel(x=13.5, y=47.5).values.tolist() == [[11.0]]
        (tmp_path / "store").rename(tmp_path / f"{name}.store")


def test_8_a_rotated_raster_is_refused(tmp_path: Path) -> None:
    write_tif(tmp_path / "e.tif", A, transform=(9.66, -2.59, 500000.0, -2.59, -9.66, 5000000.0))
    (problem,) = problems_of(manifest_of(tmp_path, ["e.tif"]))
    assert "e.tif): it is rotated or mirrored" in problem


def sentinel_files(folder: Path) -> Path:
    one, three, four, five = A.copy(), A.copy(), A.copy(), A.copy()
    one[0, 0], three[0, 0], four[0, 0], four[0, 1], five[0, 0] = -9999, -32768, -9999, NAN, NAN
    for number, (data, nodata) in enumerate(
        ((one, -9999), (one, None), (three, -32768), (four, -9999), (five, NAN)), 1
    ):
        write_tif(folder / f"f{number}.tif", data, nodata=nodata)
    return manifest_of(folder, [f"f{number}.tif" for number in range(1, 6)])


def test_9_sentinels_are_masked_file_by_file_with_the_union_of_tag_and_nan(tmp_path: Path) -> None:
    store = store_of(sentinel_files(tmp_path), nodata=(-9999.0,))
    assert valid_means(store) == [6.0, 6.0, 6.0, 6.5, 6.0]
    assert not any(np.isnan(store.read(t)).any() for t in range(5))


def test_9_an_untagged_sentinel_is_data_until_the_user_says_so_and_is_reported(tmp_path: Path) -> None:
    conversion = prepare(sentinel_files(tmp_path))
    assert "f2.tif) declares no nodata while others declare" in conversion.notes[0]
    assert "add --nodata" in conversion.notes[0]
    assert round(valid_means(store_of(tmp_path / "m.csv"))[1], 2) == -827.75


def test_9_nan_beside_a_declared_sentinel_is_stored_as_the_sentinel(tmp_path: Path) -> None:
    data = A.copy()
    data[0, 0], data[0, 1] = -9999, NAN
    write_tif(tmp_path / "f.tif", data, nodata=-9999)
    store = store_of(manifest_of(tmp_path, ["f.tif"]))
    assert (store.nodata, store.has_mask) == (-9999.0, False)
    assert store.read(0)[0, 0].tolist() == [-9999.0, -9999.0, 2.0, 3.0]


def test_11_scale_and_offset_that_change_over_time_are_refused_not_dropped(tmp_path: Path) -> None:
    write_tif(tmp_path / "i1.tif", np.full((1, 2, 2), 5000, "uint16"), nodata=0, scales=[1e-4], offsets=[0.0])
    write_tif(tmp_path / "i2.tif", np.full((1, 2, 2), 6000, "uint16"), nodata=0, scales=[1e-4], offsets=[-0.1])
    (problem,) = problems_of(manifest_of(tmp_path, ["i1.tif", "i2.tif"]))
    assert "band 1 is stored * 0.0001 + -0.1, in m.csv row 2 (i1.tif) stored * 0.0001 + 0" in problem
    write_tif(
        tmp_path / "i3.tif", np.full((2, 2, 2), 1000, "int16"), nodata=-1, scales=[1e-4, 1e-3], offsets=[10.0, 20.0]
    )
    physical = store_of(manifest_of(tmp_path, ["i3.tif"])).read_pixel(0, 0).physical[0]
    assert physical.tolist() == [1000 * 1e-4 + 10.0, 1000 * 1e-3 + 20.0]


def test_13_every_kind_of_png_has_the_validity_gdal_gives_it(tmp_path: Path) -> None:
    kinds = {
        "k16": ({"data": np.array([[0, 60000], [30000, 65535]], "uint16")}, None, [[True, True], [True, True]]),
        "kt": (
            {"data": np.array([[0, 7], [9, 7]], "uint8"), "transparent": b"\x00\x07"},
            7,
            [[True, False], [True, False]],
        ),
        "ka": (
            {"data": np.dstack([np.full((2, 2), 9), [[0, 255], [128, 255]]]).astype("uint8")},
            None,
            [[False, True], [True, True]],
        ),
    }
    for name, (image, nodata, valid) in kinds.items():
        write_png(tmp_path / f"{name}.png", **image)
        (tmp_path / f"{name}.pgw").write_text(WORLD_FILE)
        store = store_of(manifest_of(tmp_path, [f"{name}.png"]), crs="EPSG:32631")
        assert (name, store.nodata) == (name, nodata)
        assert (name, store.read_valid(0)[0].tolist()) == (name, valid)
        assert np.array_equal(store.read(0)[0], np.atleast_3d(image["data"])[..., 0])
        (tmp_path / "store").rename(tmp_path / f"{name}.store")


def test_13_alpha_beats_nodata_and_the_dry_run_says_so(tmp_path: Path) -> None:
    values = np.array([[1, 2], [3, 255]], "uint8")
    rgba = np.stack([values, values, values, np.array([[255, 0], [128, 255]], "uint8")])
    write_tif(tmp_path / "l.tif", rgba, nodata=255, photometric="RGB", alpha=True)
    manifest = manifest_of(tmp_path, ["l.tif"])
    assert "has an alpha band or mask and declares nodata" in prepare(manifest).notes[0]
    assert store_of(manifest).read_valid(0)[0].tolist() == [[True, False], [True, True]]


def test_13_an_internal_mask_is_the_mask(tmp_path: Path) -> None:
    write_tif(tmp_path / "l.tif", np.array([[1, 2], [3, 255]], "uint8"), mask=[[True, False], [True, True]])
    assert store_of(manifest_of(tmp_path, ["l.tif"])).read_valid(0)[0].tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize("dtype", ["uint32", "int32", "float64", "complex64"])
def test_14_types_that_would_lose_values_are_refused(tmp_path: Path, dtype: str) -> None:
    write_tif(tmp_path / "m.tif", np.full((2, 2), 1, dtype))
    (problem,) = problems_of(manifest_of(tmp_path, ["m.tif"]))
    assert f"its data type is {dtype}, which a store cannot hold" in problem


WORLD_CASES = [
    ("n1", ".pgw", WORLD_FILE, TRANSFORM),
    ("n2", ".pngw", WORLD_FILE, TRANSFORM),
    ("n3", ".wld", WORLD_FILE, TRANSFORM),
    ("n4", ".PGW", WORLD_FILE, TRANSFORM),
    ("n5", ".tfw", WORLD_FILE, "n5.tfw is not read as a world file: name it n5.pgw"),
    ("n6", ".pgw", WORLD_FILE.replace(".", ","), TRANSFORM),
    ("n7", ".pgw", WORLD_FILE.replace("\n", "\r\n"), TRANSFORM),
    ("n8", ".pgw", "10.0\n0.0\n0.0\n-10.0\n", "n8.pgw is ignored by GDAL because it has 4 lines instead of six"),
    ("n9", ".pgw", WORLD_FILE.replace("-10.0", "10.0"), (10.0, 0.0, 500000.0, 0.0, -10.0, 5000030.0)),
    ("n10", ".pgwx", WORLD_FILE, "n10.pgwx is not read as a world file: name it n10.pgw"),
    ("n11", ".pgw", "\ufeff" + WORLD_FILE, "n11.pgw is ignored by GDAL because it starts with a byte order mark"),
    (
        "n12",
        ".pgw",
        WORLD_FILE.replace("\n", " "),
        "n12.pgw is ignored by GDAL because its six numbers stand on one line",
    ),
]


@pytest.mark.parametrize(("stem", "suffix", "text", "expected"), WORLD_CASES, ids=[case[0] for case in WORLD_CASES])
def test_15_world_files_place_the_image_or_the_reason_is_named(
    tmp_path: Path, stem: str, suffix: str, text: str, expected: Any
) -> None:
    image = np.zeros((4, 4), "uint8")
    image[0, 0] = 9
    write_png(tmp_path / f"{stem}.png", image)
    (tmp_path / f"{stem}{suffix}").write_bytes(text.encode())
    manifest = manifest_of(tmp_path, [f"{stem}.png"])
    if isinstance(expected, str):
        (problem,) = problems_of(manifest, crs="EPSG:32631")
        assert expected in problem
        return
    store = store_of(manifest, crs="EPSG:32631")
    assert store.grids[0].transform == expected
    row = 3 if stem == "n9" else 0
    assert store.read(0)[0, row, 0] == 9


def test_15_world_files_that_disagree_are_refused(tmp_path: Path) -> None:
    write_png(tmp_path / "a.png", np.zeros((4, 4), "uint8"))
    (tmp_path / "a.pgw").write_text(WORLD_FILE)
    (tmp_path / "a.wld").write_text(WORLD_FILE.replace("500005", "600005"))
    (problem,) = problems_of(manifest_of(tmp_path, ["a.png"]), crs="EPSG:32631")
    assert "the world files a.pgw and a.wld differ; keep one of them" in problem


SINUSOIDAL = "+proj=sinu +lon_0=0 +x_0=0 +y_0=0 +R=6371007.181 +units=m +no_defs"


ALBERS = "+proj=aea +lat_0=-12 +lon_0=-54 +lat_1=-2 +lat_2=-22 +x_0=5000000 +y_0=10000001 +ellps=GRS80 +units=m"


@pytest.mark.parametrize("crs", [SINUSOIDAL, ALBERS])
def test_16_a_crs_without_epsg_code_is_named_and_never_guessed(tmp_path: Path, crs: str) -> None:
    write_tif(tmp_path / "o.tif", A, crs=crs)
    (problem,) = problems_of(manifest_of(tmp_path, ["o.tif"]))
    assert "has no EPSG code, which a store needs; warp it to one that has" in problem


def test_16_an_esri_code_that_defines_the_same_crs_is_stored_by_its_epsg_code(tmp_path: Path) -> None:
    write_tif(tmp_path / "o.tif", A, crs="ESRI:102039")
    assert store_of(manifest_of(tmp_path, ["o.tif"])).crs == "EPSG:5070"


def test_16_no_crs_at_all_asks_for_it(tmp_path: Path) -> None:
    write_tif(tmp_path / "o.tif", A, crs=None)
    manifest = manifest_of(tmp_path, ["o.tif"])
    (problem,) = problems_of(manifest)
    assert "it declares no CRS; say which one with --crs EPSG:<code>" in problem
    assert store_of(manifest, crs="EPSG:32631").crs == "EPSG:32631"


def test_17_a_regional_grid_across_180_degrees_is_kept_as_it_is(tmp_path: Path) -> None:
    region = np.tile(np.arange(150, 210, 10.0), (6, 1)).astype("float32")
    write_tif(tmp_path / "p.tif", region, transform=(10.0, 0.0, 145.0, 0.0, -10.0, 30.0), crs="EPSG:4326")
    store = store_of(manifest_of(tmp_path, ["p.tif"]))
    assert np.array_equal(store.read(0)[0], region)
    assert store.grids[0].bbox == (145.0, -30.0, 205.0, 30.0)


def test_26_valid_zeros_stay_valid_where_no_nodata_is_declared(tmp_path: Path) -> None:
    write_tif(tmp_path / "z.tif", np.zeros((4, 4), "uint8"))
    store = store_of(manifest_of(tmp_path, ["z.tif"]))
    assert store.nodata is None
    assert store.read_valid(0).all()
