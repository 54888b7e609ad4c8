"""Conversion end to end: values, grids, validity and bands carried over, or refused with the fix named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chronozarr_core import EncodeOptions, open_store
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.store import ChronoStore
from chronozarr_core.validate import validate
from gdal_tools.convert import convert, prepare
from gdal_tools.problems import SourceProblemsError
from gdal_tools.sources import SourceOptions
from tests.gdal.builders import CRS, TRANSFORM, WORLD_FILE, frame, write_manifest, write_png, write_series, write_tif

SMALL = EncodeOptions(chunk_size=16)


def converted(manifest: Path, tmp_path: Path, **options: Any) -> ChronoStore:
    """The store of a manifest, which must conform to the specification."""
    out = tmp_path / "store"
    convert(manifest, out, SourceOptions(**options), SMALL)
    assert validate(out) == []
    return open_store(out)


def refused(manifest: Path, tmp_path: Path, **options: Any) -> str:
    """The message with which a manifest is refused; nothing may be left behind."""
    with pytest.raises(ChronozarrError) as error:
        convert(manifest, tmp_path / "store", SourceOptions(**options), SMALL)
    assert not list(tmp_path.glob("store*"))
    return str(error.value)


def one(tmp_path: Path, data: Any, name: str = "a.tif", **options: Any) -> Path:
    write_tif(tmp_path / name, data, **options)
    return write_manifest(tmp_path / "m.csv", [(name, "2024-01-01")])


# values and bands


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
def test_every_value_of_every_date_comes_back(tmp_path: Path, dtype: str) -> None:
    frames = [frame(seed, dtype=dtype) for seed in range(3)]
    rows = []
    for index, values in enumerate(frames):
        write_tif(tmp_path / f"{index}.tif", values)
        rows.append((f"{index}.tif", f"2024-0{3 - index}-01"))
    store = converted(write_manifest(tmp_path / "m.csv", rows), tmp_path)
    assert [np.array_equal(store.read(t), frames[2 - t]) for t in range(3)] == [True] * 3
    assert (store.nodata, store.has_mask, store.crs) == (None, False, CRS)
    assert store.grids[0].transform == TRANSFORM


def test_one_file_for_each_band_is_one_frame(tmp_path: Path) -> None:
    data = frame(bands=2)
    for index, name in enumerate(("B3", "B4")):
        write_tif(tmp_path / f"{name}.tif", data[index])
    rows = [("B3.tif", "2024-01-01", "B3"), ("B4.tif", "2024-01-01", "B4")]
    store = converted(write_manifest(tmp_path / "m.csv", rows), tmp_path)
    assert store.metadata.band_names == ("B3", "B4")
    assert np.array_equal(store.read(0), data)


def test_scale_offset_unit_and_description_become_the_band(tmp_path: Path) -> None:
    manifest = one(
        tmp_path, frame(), scales=[1e-4, 1e-3], offsets=[10.0, 20.0], units=["m", ""], descriptions=["ndvi", "evi"]
    )
    bands = converted(manifest, tmp_path).bands
    assert [(b.name, b.scale, b.offset, b.units) for b in bands] == [
        ("ndvi", 1e-4, 10.0, "m"),
        ("evi", 1e-3, 20.0, None),
    ]


def test_names_in_the_manifest_replace_those_in_the_file(tmp_path: Path) -> None:
    write_tif(tmp_path / "a.tif", frame(), descriptions=["x", "y"])
    store = converted(write_manifest(tmp_path / "m.csv", [("a.tif", "2024-01-01", "B1;B2")]), tmp_path)
    assert store.metadata.band_names == ("B1", "B2")


def test_scale_that_differs_between_files_is_refused(tmp_path: Path) -> None:
    write_tif(tmp_path / "a.tif", frame(), scales=[1e-4, 1e-4], offsets=[0.0, 0.0])
    write_tif(tmp_path / "b.tif", frame(), scales=[1e-4, 1e-4], offsets=[0.0, -0.1])
    message = refused(write_manifest(tmp_path / "m.csv", [("a.tif", "2022-01-01"), ("b.tif", "2022-03-01")]), tmp_path)
    assert "band 2 is stored * 0.0001 + -0.1" in message
    assert "convert the files to the same first" in message


def test_types_band_counts_and_names_that_differ_are_all_reported(tmp_path: Path) -> None:
    write_tif(tmp_path / "a.tif", frame())
    write_tif(tmp_path / "b.tif", frame(dtype="uint8"))
    write_tif(tmp_path / "c.tif", frame(bands=3))
    write_tif(tmp_path / "d.tif", frame(), descriptions=["x", "y"])
    rows = [(f"{name}.tif", f"2024-01-0{day}") for day, name in enumerate("abcd", 1)]
    with pytest.raises(SourceProblemsError) as error:
        prepare(write_manifest(tmp_path / "m.csv", rows))
    assert [problem.what.split(",")[0] for problem in error.value.problems] == [
        "its data type is uint8",
        "3 bands",
        "bands are called x",
    ]


@pytest.mark.parametrize("dtype", ["uint32", "int32", "float64"])
def test_a_type_no_store_holds_is_refused(tmp_path: Path, dtype: str) -> None:
    message = refused(one(tmp_path, frame(dtype=dtype)), tmp_path)
    assert f"its data type is {dtype}, which a store cannot hold" in message


def test_repeated_band_names_are_refused(tmp_path: Path) -> None:
    message = refused(one(tmp_path, frame(), descriptions=["x", "x"]), tmp_path)
    assert "several bands are called x" in message


# grids


def test_south_up_files_keep_the_value_at_a_coordinate(tmp_path: Path) -> None:
    data = frame(bands=1)
    write_tif(tmp_path / "n.tif", data)
    a, b, c, d, e, f = TRANSFORM
    write_tif(tmp_path / "s.tif", data[:, ::-1], transform=(a, b, c, d, -e, f + e * data.shape[1]))
    rows = [("n.tif", "2024-01-01"), ("s.tif", "2024-02-01")]
    store = converted(write_manifest(tmp_path / "m.csv", rows), tmp_path)
    assert np.array_equal(store.read(0), data)
    assert np.array_equal(store.read(1), data)


def test_a_rotated_raster_is_refused_with_the_fix(tmp_path: Path) -> None:
    message = refused(one(tmp_path, frame(), transform=(9.6, -2.5, 5e5, 2.5, 9.6, 5e6)), tmp_path)
    assert "rotated" in message
    assert "--resampling nearest" in message


def test_extents_that_differ_by_whole_pixels_are_padded_never_shifted(tmp_path: Path) -> None:
    ones = np.ones((1, 10, 10), "uint8")
    write_tif(tmp_path / "a.tif", ones)
    write_tif(tmp_path / "b.tif", np.ones((1, 10, 11), "uint8"))
    a, b, c, d, e, f = TRANSFORM
    write_tif(tmp_path / "c.tif", ones, transform=(a, b, c + a, d, e, f))
    rows = [(f"{name}.tif", f"2021-01-0{day}") for day, name in enumerate("abc", 1)]
    store = converted(write_manifest(tmp_path / "m.csv", rows), tmp_path)
    assert store.grids[0].width == 11
    masks = [store.read_mask(t) for t in range(3)]
    assert [(m[:, 0].all(), m[:, 10].all()) for m in masks if m is not None] == [
        (True, False),
        (True, True),
        (False, True),
    ]
    assert all(store.read(t)[0][mask != 0].min() == 1 for t, mask in enumerate(masks) if mask is not None)


def test_padding_is_nodata_where_every_source_declares_the_same(tmp_path: Path) -> None:
    write_tif(tmp_path / "a.tif", np.ones((1, 4, 4), "uint8"), nodata=255)
    write_tif(tmp_path / "b.tif", np.ones((1, 4, 5), "uint8"), nodata=255)
    store = converted(write_manifest(tmp_path / "m.csv", [("a.tif", "2021-01-01"), ("b.tif", "2021-01-02")]), tmp_path)
    assert (store.nodata, store.has_mask) == (255, False)
    assert store.read(0)[0, :, 4].tolist() == [255] * 4


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"transform": (10.0, 0.0, 500003.0, 0.0, -10.0, 5000000.0)}, "its pixels lie 0.3 columns and 0 rows off"),
        ({"transform": (10.13, 0.0, 500000.0, 0.0, -10.13, 5000000.0)}, "its pixels are 10.13 x 10.13"),
        ({"crs": "EPSG:32632"}, "its CRS is EPSG:32632, and the grid's EPSG:32631"),
    ],
)
def test_a_source_on_another_grid_is_refused_unless_resampling_is_asked_for(
    tmp_path: Path, change: dict[str, Any], expected: str
) -> None:
    write_tif(tmp_path / "a.tif", frame())
    write_tif(tmp_path / "b.tif", frame(), **change)
    manifest = write_manifest(tmp_path / "m.csv", [("a.tif", "2021-01-01"), ("b.tif", "2021-01-02")])
    message = refused(manifest, tmp_path)
    assert expected in message
    assert "m.csv row 3 (b.tif)" in message
    assert "--resampling nearest" in message


def test_a_warped_source_without_nodata_gets_a_mask_and_says_so_in_provenance(tmp_path: Path) -> None:
    write_tif(tmp_path / "a.tif", np.full((1, 20, 20), 5, "uint8"))
    write_tif(
        tmp_path / "b.tif", np.full((1, 20, 20), 7, "uint8"), transform=(10.0, 0.0, 500043.0, 0.0, -10.0, 5000000.0)
    )
    manifest = write_manifest(tmp_path / "m.csv", [("a.tif", "2021-01-01"), ("b.tif", "2021-01-02")])
    store = converted(manifest, tmp_path, resampling="nearest")
    mask = store.read_mask(1)
    assert mask is not None
    assert mask[:, :4].max() == 0
    assert mask[:, 5:].min() == 1
    assert set(np.unique(store.read(1)[0][mask != 0])) == {7}
    assert store.nodata is None
    assert store.provenance is not None
    assert "resampled (nearest)" in str(store.provenance.notes)


def test_a_warped_source_with_nodata_keeps_it(tmp_path: Path) -> None:
    write_tif(tmp_path / "a.tif", np.full((1, 20, 20), 5, "uint8"), nodata=0)
    shifted = (10.0, 0.0, 500043.0, 0.0, -10.0, 5000000.0)
    write_tif(tmp_path / "b.tif", np.full((1, 20, 20), 7, "uint8"), transform=shifted, nodata=0)
    manifest = write_manifest(tmp_path / "m.csv", [("a.tif", "2021-01-01"), ("b.tif", "2021-01-02")])
    store = converted(manifest, tmp_path, resampling="nearest")
    assert (store.nodata, store.has_mask) == (0, False)
    assert set(np.unique(store.read(1))) == {0, 7}


def test_nodata_that_is_ignored_is_data_through_a_warp_too(tmp_path: Path) -> None:
    data = np.full((1, 20, 20), 7, "uint8")
    data[0, 10, 10] = 3
    shifted = (10.0, 0.0, 500043.0, 0.0, -10.0, 5000000.0)
    write_tif(tmp_path / "a.tif", np.full((1, 20, 20), 5, "uint8"))
    write_tif(tmp_path / "b.tif", data, transform=shifted, nodata=3)
    manifest = write_manifest(tmp_path / "m.csv", [("a.tif", "2021-01-01"), ("b.tif", "2021-01-02")])
    store = converted(manifest, tmp_path, resampling="nearest", ignore_declared_nodata=True)
    valid = store.read_valid(1)
    assert (store.read(1)[valid] == 3).sum() == 1


def test_several_nodata_values_are_not_blended_with_data(tmp_path: Path) -> None:
    write_tif(tmp_path / "a.tif", frame())
    write_tif(tmp_path / "b.tif", frame(), transform=(10.0, 0.0, 500043.0, 0.0, -10.0, 5000000.0), nodata=3)
    manifest = write_manifest(tmp_path / "m.csv", [("a.tif", "2021-01-01"), ("b.tif", "2021-01-02")])
    message = refused(manifest, tmp_path, resampling="bilinear", nodata=(9.0,))
    assert "several nodata values (3, 9), and bilinear would blend them with data; use --resampling nearest" in message


def test_a_target_grid_is_filled_at_whole_pixels_without_resampling(tmp_path: Path) -> None:
    data = frame(bands=1)
    grid = {"crs": CRS, "transform": (10.0, 0.0, 500050.0, 0.0, -10.0, 4999970.0), "shape": (10, 12)}
    store = converted(one(tmp_path, data), tmp_path, **grid)
    assert np.array_equal(store.read(0), data[:, 3:13, 5:17])


def test_sources_far_apart_are_not_joined_into_an_empty_grid(tmp_path: Path) -> None:
    write_tif(tmp_path / "a.tif", frame())
    write_tif(tmp_path / "b.tif", frame(), transform=(10.0, 0.0, 600000.0, 0.0, -10.0, 5000000.0))
    manifest = write_manifest(tmp_path / "m.csv", [("a.tif", "2021-01-01"), ("b.tif", "2021-01-02")])
    assert "lie so far apart" in refused(manifest, tmp_path)


def test_a_crs_without_epsg_code_is_refused_with_the_fix_and_then_warped(tmp_path: Path) -> None:
    laea = "+proj=laea +lat_0=47 +lon_0=3 +datum=WGS84 +units=m"
    manifest = one(tmp_path, frame(), crs=laea, transform=(10.0, 0.0, 0.0, 0.0, -10.0, 0.0))
    assert "has no EPSG code" in refused(manifest, tmp_path)
    assert "--crs EPSG:<code> --resampling nearest" in refused(manifest, tmp_path)
    store = converted(manifest, tmp_path, crs="EPSG:32631", resampling="nearest")
    mask = store.read_mask(0)
    assert store.crs == "EPSG:32631"
    assert mask is not None
    assert set(np.unique(store.read(0)[:, mask != 0])) <= set(np.unique(frame()))


# validity


def test_a_nodata_that_every_band_of_every_source_declares_is_the_stores(tmp_path: Path) -> None:
    manifest, frames = write_series(tmp_path, nodata=7)
    store = converted(manifest, tmp_path)
    assert (store.nodata, store.has_mask) == (7, False)
    assert all(np.array_equal(store.read(t), values) for t, values in enumerate(frames))


def test_an_internal_mask_becomes_the_mask(tmp_path: Path) -> None:
    data, mask = frame(), np.random.default_rng(1).random((30, 40)) > 0.4
    store = converted(one(tmp_path, data, mask=mask), tmp_path)
    assert np.array_equal(store.read_mask(0), mask)
    assert np.array_equal(store.read(0), data)
    assert store.nodata is None


def test_an_alpha_band_is_the_mask_and_no_data(tmp_path: Path) -> None:
    data = frame(bands=4, dtype="uint8")
    data[3, :, :7], data[3, :, 7:9] = 0, 128
    store = converted(one(tmp_path, data, alpha=True, photometric="RGB"), tmp_path)
    assert store.metadata.band_names == ("red", "green", "blue")
    assert [band.common_name for band in store.bands] == ["red", "green", "blue"]
    assert np.array_equal(store.read_mask(0), data[3] != 0)
    assert np.array_equal(store.read(0), data[:3])


def test_nan_nodata_becomes_a_mask_and_is_never_stored(tmp_path: Path) -> None:
    data = frame(dtype="float32")
    data[0, 3, 4] = data[1, 5, 6] = np.nan
    store = converted(one(tmp_path, data, nodata=np.nan), tmp_path)
    mask = store.read_mask(0)
    assert mask is not None
    assert [(mask == 0).sum(), mask[3, 4], mask[5, 6]] == [2, 0, 0]
    assert np.array_equal(store.read(0), np.nan_to_num(data))


def test_undeclared_nan_is_refused_until_the_user_says_what_it_is(tmp_path: Path) -> None:
    data = frame(dtype="float32")
    data[0, 3, 4] = np.nan
    manifest = one(tmp_path, data)
    assert "say --nodata nan" in refused(manifest, tmp_path)
    mask = converted(manifest, tmp_path, nodata=(float("nan"),)).read_mask(0)
    assert mask is not None
    assert (mask == 0).sum() == 1


def test_a_declared_value_can_be_ignored_or_replaced(tmp_path: Path) -> None:
    manifest = one(tmp_path, frame(), nodata=7)
    options = SourceOptions(nodata=(9.0,), ignore_declared_nodata=True)
    assert prepare(manifest, options).series.validity.nodata == 9
    assert prepare(manifest, SourceOptions(ignore_declared_nodata=True)).series.validity.nodata is None
    assert prepare(manifest, SourceOptions(nodata=(9.0,))).series.validity.has_mask


def test_a_nodata_the_type_cannot_hold_never_occurs(tmp_path: Path) -> None:
    write_tif(tmp_path / "a.tif", frame(dtype="float32"), nodata=-3.4028234663852886e38)
    store = converted(write_manifest(tmp_path / "m.csv", [("a.tif", "2024-01-01")]), tmp_path)
    assert store.nodata == float(np.finfo(np.float32).min)


# PNG frames


def png_series(tmp_path: Path, channels: int = 4, world: str | None = WORLD_FILE) -> tuple[Path, list[Any]]:
    rng = np.random.default_rng(5)
    frames, rows = [], []
    for index in range(2):
        pixels = rng.integers(0, 255, (20, 24, channels)).astype("uint8")
        if channels in (2, 4):
            pixels[..., -1] = rng.choice([0, 128, 255], (20, 24))
        write_png(tmp_path / f"f{index}.png", pixels if channels > 1 else pixels[..., 0])
        if world:
            (tmp_path / f"f{index}.pgw").write_text(world)
        frames.append(pixels)
        rows.append((f"f{index}.png", f"2019-0{index + 1}-01"))
    return write_manifest(tmp_path / "m.csv", rows), frames


def test_rgba_frames_with_world_files_become_red_green_blue_and_a_mask(tmp_path: Path) -> None:
    manifest, frames = png_series(tmp_path)
    store = converted(manifest, tmp_path, crs="EPSG:32718")
    assert store.metadata.band_names == ("red", "green", "blue")
    for t, pixels in enumerate(frames):
        assert np.array_equal(store.read(t), np.moveaxis(pixels[..., :3], -1, 0))
        assert np.array_equal(store.read_mask(t), pixels[..., 3] != 0)
    assert store.grids[0].transform == TRANSFORM
    assert store.nodata is None


def test_grey_frames_are_band_1_and_every_zero_is_data(tmp_path: Path) -> None:
    manifest, frames = png_series(tmp_path, channels=1)
    store = converted(manifest, tmp_path, crs="EPSG:32718")
    assert (store.metadata.band_names, store.nodata, store.has_mask) == (("1",), None, False)
    assert np.array_equal(store.read(0)[0], frames[0][..., 0])


def test_grey_and_alpha_frames_have_one_band_and_a_mask(tmp_path: Path) -> None:
    manifest, frames = png_series(tmp_path, channels=2)
    store = converted(manifest, tmp_path, crs="EPSG:32718")
    assert store.metadata.band_names == ("1",)
    assert np.array_equal(store.read_mask(0), frames[0][..., 1] != 0)


def test_16_bit_alpha_is_valid_where_it_is_not_zero(tmp_path: Path) -> None:
    pixels = np.zeros((4, 4, 2), "uint16")
    pixels[..., 0], pixels[1, 1, 1], pixels[2, 2, 1] = 60000, 1, 65535
    write_png(tmp_path / "a.png", pixels)
    (tmp_path / "a.wld").write_text(WORLD_FILE)
    store = converted(write_manifest(tmp_path / "m.csv", [("a.png", "2019-01-01")]), tmp_path, crs=CRS)
    mask = store.read_mask(0)
    assert mask is not None
    assert np.argwhere(mask).tolist() == [[1, 1], [2, 2]]
    assert store.read(0).max() == 60000


def test_bounds_place_frames_without_sidecars_edge_to_edge(tmp_path: Path) -> None:
    manifest, frames = png_series(tmp_path, world=None)
    store = converted(manifest, tmp_path, crs="EPSG:32718", bounds=(500000.0, 4999800.0, 500240.0, 5000000.0))
    assert store.grids[0].transform == TRANSFORM
    assert np.array_equal(store.read(1)[0], frames[1][..., 0])


def test_bounds_may_stand_in_a_json_manifest_but_only_once(tmp_path: Path) -> None:
    png_series(tmp_path, world=None)
    manifest = tmp_path / "m.json"
    bounds = [500000, 4999800, 500240, 5000000]
    manifest.write_text(json.dumps({"bounds": bounds, "items": [{"uri": "f0.png", "datetime": "2019-01-01"}]}))
    assert "give them once" in refused(manifest, tmp_path, crs="EPSG:32718", bounds=(0.0, 0.0, 1.0, 1.0))
    assert converted(manifest, tmp_path, crs="EPSG:32718").grids[0].transform == TRANSFORM


BOUNDS = (500000.0, 4999800.0, 500240.0, 5000000.0)


def _other_size(folder: Path) -> None:
    write_png(folder / "f1.png", np.zeros((20, 25, 4), "uint8"))


def _own_world(folder: Path) -> None:
    (folder / "f1.pgw").write_text(WORLD_FILE)


@pytest.mark.parametrize(
    ("edit", "options", "expected"),
    [
        (None, {}, "it has no georeferencing"),
        (None, {"crs": "EPSG:32718"}, "give --crs and --bounds"),
        (_other_size, {"crs": "EPSG:32718", "bounds": BOUNDS}, "it is 25 x 20 pixels, the first frame 24 x 20"),
        (_own_world, {"crs": "EPSG:32718", "bounds": BOUNDS}, "it carries its own geotransform"),
    ],
)
def test_frames_that_cannot_be_placed_are_refused_with_the_fixes(
    tmp_path: Path, edit: Callable[[Path], None] | None, options: dict[str, Any], expected: str
) -> None:
    manifest, _ = png_series(tmp_path, world=None)
    if edit:
        edit(tmp_path)
    assert expected in refused(manifest, tmp_path, **options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"bounds": BOUNDS}, "give --crs too"),
        ({"crs": "EPSG:32718", "bounds": (5.0, 0.0, 5.0, 1.0)}, "west < east"),
        ({"crs": "EPSG:32718", "bounds": (0.0, 2.0, 5.0, 1.0)}, "south < north"),
        ({"crs": CRS, "transform": TRANSFORM}, "give both"),
        ({"transform": TRANSFORM, "shape": (3, 3)}, "give --crs too"),
        ({"crs": "EPSG:1"}, "is not a CRS that PROJ knows"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(ChronozarrError) as error:
        SourceOptions(**options)
    assert expected in str(error.value)


def test_a_frame_with_a_world_file_and_no_crs_asks_for_it(tmp_path: Path) -> None:
    manifest, _ = png_series(tmp_path)
    message = refused(manifest, tmp_path)
    assert "m.csv row 2 (f0.png): it declares no CRS; say which one with --crs EPSG:<code>" in message


def test_a_palette_is_refused_with_the_way_to_expand_it(tmp_path: Path) -> None:
    write_png(tmp_path / "p.png", np.array([[0, 1], [2, 1]], "uint8"), palette=[0, 0, 0, 255, 0, 0, 0, 0, 255])
    (tmp_path / "p.pgw").write_text(WORLD_FILE)
    message = refused(write_manifest(tmp_path / "m.csv", [("p.png", "2019-01-01")]), tmp_path, crs=CRS)
    assert "palette (indexed colour) PNG" in message
    assert "gdal_translate -expand rgba" in message


def test_an_aux_xml_gives_crs_and_transform_and_nothing_else_is_needed(tmp_path: Path) -> None:
    pixels = np.zeros((4, 4), "uint8")
    write_png(tmp_path / "a.png", pixels)
    (tmp_path / "a.png.aux.xml").write_text(
        "<PAMDataset><SRS>EPSG:32718</SRS><GeoTransform>500000, 10, 0, 5000000, 0, -10</GeoTransform></PAMDataset>"
    )
    store = converted(write_manifest(tmp_path / "m.csv", [("a.png", "2019-01-01")]), tmp_path)
    assert (store.crs, store.grids[0].transform) == ("EPSG:32718", TRANSFORM)


# bad files


def test_a_missing_file_in_row_40_is_named_before_anything_is_written(tmp_path: Path) -> None:
    write_tif(tmp_path / "a.tif", frame())
    rows = [("a.tif", f"2024-{1 + day // 28:02}-{1 + day % 28:02}") for day in range(45)]
    rows[38] = ("gone.tif", rows[38][1])
    message = refused(write_manifest(tmp_path / "m.csv", rows), tmp_path)
    assert message.startswith(f"m.csv row 40 (gone.tif): the file {tmp_path / 'gone.tif'} does not exist")


def test_a_truncated_tiff_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    manifest = one(tmp_path, np.random.default_rng(0).integers(0, 60000, (2, 200, 200)).astype("uint16"))
    path = tmp_path / "a.tif"
    path.write_bytes(path.read_bytes()[:60000])
    message = refused(manifest, tmp_path)
    assert str(path) in message


def test_a_text_file_is_no_raster(tmp_path: Path) -> None:
    (tmp_path / "a.tif").write_text("not a raster")
    message = refused(write_manifest(tmp_path / "m.csv", [("a.tif", "2024-01-01")]), tmp_path)
    assert "cannot open source" in message
