"""The demo, on frames small enough for a test; every step runs for real."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from chronozarr_core import ArraySeries, Band, ChronozarrError, RasterGrid, SelectionError, encode, open_store
from gdal_tools import contact_sheet, demo, river

SHAPE = (63, 75)


def store_of(path: Path, data: np.ndarray, names: tuple[str, ...], **options):
    """A store of data, shape (time, band, y, x), with cells of 8 pixels."""
    grid = RasterGrid("EPSG:32718", (10, 0, 500000, 0, -10, 9000000), *data.shape[2:])
    times = np.arange(len(data)).astype("datetime64[M]").astype("datetime64[ms]")
    encode(ArraySeries(data, grid=grid, times=times, bands=names, **options), path, chunk_size=8)
    return open_store(path)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A small demo: its result and every (done, total) it reported."""
    steps = []
    out = tmp_path_factory.mktemp("demo") / "out"
    result = demo.run_demo(out, lambda *step: steps.append(step), shape=SHAPE, months=5, chunk_size=16)
    return result, steps


def test_demo_makes_two_stores_with_pyramids_of_the_drawn_months(ran):
    result, _ = ran
    cogs, png = (open_store(result.out_dir / "stores" / name) for name in ("cogs", "png"))
    assert [str(t)[:7] for t in cogs.times] == ["2023-01", "2023-02", "2023-03", "2023-04", "2023-05"]
    assert cogs.metadata.band_names == river.BANDS
    assert [(band.scale, band.units) for band in cogs.bands] == [(1e-4, "reflectance")] * 4
    assert (cogs.dtype, cogs.nodata, cogs.has_mask) == (np.uint16, 0, False)
    assert png.metadata.band_names == ("red", "green", "blue")
    assert (png.dtype, png.has_mask) == (np.uint8, True)
    assert [level.shape[2:] for level in cogs.levels] == [(63, 75), (32, 38), (16, 19), (8, 10), (4, 5)]


def test_stores_hold_what_was_drawn(ran):
    result, _ = ran
    cogs, png = (open_store(result.out_dir / "stores" / name) for name in ("cogs", "png"))
    for month in range(5):
        scene = river.draw_river(month, SHAPE)
        assert np.array_equal(cogs.read(month), np.stack([scene[band] for band in river.BANDS]))
        assert np.array_equal(png.read_mask(month), scene["valid"])


def test_stores_lie_where_the_world_files_and_cogs_say(ran):
    result, _ = ran
    for name in ("cogs", "png"):
        assert open_store(result.out_dir / "stores" / name).grids[0] == demo.demo_grid(SHAPE)


def test_exported_cogs_are_compared_for_every_month(ran):
    result, _ = ran
    assert len(result.exported) == 5
    with pytest.raises(ChronozarrError, match="expected 5"):
        demo.compare(sorted((result.out_dir / "cogs").glob("*.tif")), list(result.exported[:4]), lambda *step: None)


def test_compare_counts_the_values_that_differ(ran):
    result, _ = ran
    first, second = sorted((result.out_dir / "cogs").glob("*.tif"))[:2]
    differing = int((demo.read_raster(first) != demo.read_raster(second)).sum())
    assert differing > 0
    with pytest.raises(ChronozarrError, match=f"{differing} values differ"):
        demo.compare([first], [second], lambda *step: None)


def test_progress_only_grows_and_ends_at_its_total(ran):
    _, steps = ran
    done = [step for step, _ in steps]
    assert done == sorted(done)
    assert steps[-1] == (25, 25)
    assert {total for _, total in steps} == {25}


def test_summary_names_both_series_and_the_sheet(ran):
    text = str(ran[0])
    assert "png: 5 dates" in text
    assert "cogs: 5 dates" in text
    assert "5 COGs, every value equal" in text
    assert "contact_sheet.png" in text


def test_demo_refuses_a_folder_that_holds_something(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(ChronozarrError, match="not empty"):
        demo.run_demo(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_river_is_drawn_the_same_every_time():
    first = river.draw_river(7, SHAPE)
    for cache in (river._history, river._last_flooded, river._forest, river._noise):
        cache.cache_clear()
    again = river.draw_river(7, SHAPE)
    assert all(np.array_equal(first[name], again[name]) for name in first)


def test_river_cuts_off_one_bend_within_the_months_shown():
    assert [oxbow.month for oxbow in river.oxbows(23) if oxbow.month >= 0] == [11]


def test_gaps_are_zero_and_seen_pixels_never():
    scene = river.draw_river(4, SHAPE)
    assert 0 < (~scene["valid"]).sum() < scene["valid"].size
    for band in river.BANDS:
        assert np.array_equal(scene[band] == 0, ~scene["valid"])


def test_forest_far_from_the_river_keeps_its_texture():
    early, late = (river.draw_river(month, (300, 350))["red"].astype(float) for month in (0, 23))
    corner = np.s_[250:275, 230:255]
    assert np.corrcoef(early[corner].ravel(), late[corner].ravel())[0, 1] > 0.9


def test_bands_are_chosen_by_common_name_then_by_name(tmp_path):
    data = np.ones((1, 3, 8, 8), np.uint8)
    named = store_of(tmp_path / "named", data, ("blue", "green", "red"))
    assert contact_sheet.default_bands(named) == (2, 1, 0)
    common = tuple(Band(f"B{i}", color) for i, color in enumerate(("green", "red", "blue")))
    assert contact_sheet.default_bands(store_of(tmp_path / "common", data, common)) == (1, 0, 2)
    assert contact_sheet.default_bands(store_of(tmp_path / "other", data, ("a", "b", "c"))) == (0, 1, 2)
    assert contact_sheet.default_bands(store_of(tmp_path / "one", data[:, :1], ("a",))) == (0,)


def test_one_stretch_holds_for_all_dates_and_ignores_missing(tmp_path):
    data = np.zeros((2, 1, 8, 8), np.uint16)
    data[0, 0, :4], data[1, 0, :4] = 100, 300
    panel = contact_sheet.make_panel(store_of(tmp_path / "store", data, ("a",)))
    assert panel.limits == (100.0, 300.0)
    dark, bright = (contact_sheet.draw_picture(panel, t, 0) for t in (0, 1))
    assert dark[0, 0].tolist() == [0, 0, 0, 255]
    assert bright[0, 0].tolist() == [255, 255, 255, 255]
    assert bright[7, 7, 3] == 0


def test_colours_of_eight_bits_are_drawn_as_stored(tmp_path):
    data = np.arange(1, 193, dtype=np.uint8).reshape(1, 3, 8, 8)
    panel = contact_sheet.make_panel(store_of(tmp_path / "store", data, ("red", "green", "blue")))
    assert np.array_equal(contact_sheet.draw_picture(panel, 0, 0)[..., :3], np.moveaxis(data[0], 0, -1))


def test_sheet_shows_values_as_squares_and_missing_as_stripes(tmp_path):
    data = np.full((1, 1, 8, 8), 200, np.uint8)
    data[0, 0, 0, 0], data[0, 0, 7, 7] = 100, 0
    store = store_of(tmp_path / "store", data, ("a",))
    path = contact_sheet.contact_sheet(store, tmp_path / "sheet.png", title="Title")
    with Image.open(path) as picture:
        colors = {color for _, color in picture.convert("RGB").getcolors(1 << 24)}
    assert {(0, 0, 0), *contact_sheet.HATCH} <= colors


def test_a_store_without_valid_pixels_is_drawn(tmp_path):
    store = store_of(tmp_path / "store", np.zeros((3, 1, 9, 7), np.uint16), ("a",))
    path = contact_sheet.contact_sheet(store, tmp_path / "sheet.png", dates=2)
    with Image.open(path) as picture:
        assert picture.width > 2 * contact_sheet.TILE / 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dates": [9]}, "timestep 9 does not exist: the store has 2"),
        ({"levels": [5]}, "level 5 does not exist"),
        ({"bands": ["nir"]}, "band 'nir' does not exist: the store has a, b"),
        ({"bands": [0, 1]}, "2 bands are given: expected one"),
    ],
)
def test_what_a_store_does_not_have_is_refused_by_name(tmp_path, options, message):
    store = store_of(tmp_path / "store", np.ones((2, 2, 8, 8), np.uint16), ("a", "b"))
    with pytest.raises(SelectionError, match=message):
        contact_sheet.contact_sheet(store, tmp_path / "sheet.png", **options)
    assert not (tmp_path / "sheet.png").exists()


def test_names_in_any_script_are_written(tmp_path):
    store = store_of(tmp_path / "store", np.ones((1, 1, 8, 8), np.uint16), ("水",))
    assert contact_sheet.contact_sheet(store, tmp_path / "sheet.png", title="Río Ucayali").exists()
