"""Real rasters, where they lie beside the checkout."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chronozarr_core import EncodeOptions, open_store
from chronozarr_core.validate import validate
from gdal_tools.convert import convert, prepare
from gdal_tools.problems import SourceProblemsError
from gdal_tools.rasters import raster_backend
from gdal_tools.sources import SourceOptions
from tests.gdal.builders import write_manifest

pytestmark = pytest.mark.realdata
WHOLE = slice(None)


def pixels(path: Path) -> Any:
    """A file's own values, read whole."""
    raster = raster_backend().open(str(path))
    values = raster.read(slice(0, raster.header.height), slice(0, raster.header.width))
    raster.close()
    return values


def modis_manifest(realdata: Path, tmp_path: Path) -> Path:
    files = sorted((realdata / "modis_ndvi_sinop").glob("*.jp2"))
    assert len(files) == 12
    return write_manifest(tmp_path / "m.csv", [(str(path), path.stem[-10:]) for path in reversed(files)])


def test_modis_in_a_sinusoidal_crs_is_refused_with_the_fix_and_then_warped(realdata: Path, tmp_path: Path) -> None:
    manifest = modis_manifest(realdata, tmp_path)
    with pytest.raises(SourceProblemsError) as error:
        prepare(manifest)
    assert len(error.value.problems) == 12
    assert "no EPSG code, which a store needs" in error.value.problems[0].what
    assert error.value.problems[0].fix == "warp it to one that has: --crs EPSG:<code> --resampling nearest"
    options = SourceOptions(crs="EPSG:32721", resampling="nearest")
    convert(manifest, tmp_path / "store", options, EncodeOptions(chunk_size=128))
    assert validate(tmp_path / "store") == []
    store = open_store(tmp_path / "store")
    assert (store.crs, store.dtype.name, store.has_mask, len(store.times)) == ("EPSG:32721", "int16", True, 12)
    first = sorted((realdata / "modis_ndvi_sinop").glob("*.jp2"))[0]
    mask = store.read_mask(0)
    assert mask is not None
    assert 0 < mask.sum() < mask.size
    assert set(np.unique(store.read(0)[:, mask != 0])) <= set(np.unique(pixels(first)))
    assert str(store.times[0])[:10] == first.stem[-10:]


def landsat_rows(folder: Path, bands: tuple[str, ...]) -> list[tuple[str, str, str]]:
    acquired = re.search(r"_(\d{8})_\d{8}_", folder.name)
    assert acquired is not None
    return [(str(next(folder.glob(f"*_{band}.TIF"))), acquired[1], band) for band in bands]


def test_landsat_scenes_of_one_file_for_each_band_are_joined_and_warped_only_when_asked(
    realdata: Path, tmp_path: Path
) -> None:
    bands = ("B2", "B3", "B4", "B5")
    scenes = sorted((realdata / "landsat8_ny").glob("LC08_L1TP_013032_*"))
    assert len(scenes) == 8
    rows = [row for scene in scenes for row in landsat_rows(scene, bands)]
    manifest = write_manifest(tmp_path / "m.csv", rows)
    with pytest.raises(SourceProblemsError) as error:
        prepare(manifest)
    offsets = [problem.what for problem in error.value.problems]
    assert len(offsets) == 28
    assert all(
        re.search(r"its pixels are 3024\.0789\d* x 3031\.5", what) or re.search(r"lie 0\.\d+ columns", what)
        for what in offsets
    )
    convert(manifest, tmp_path / "store", SourceOptions(resampling="nearest"), EncodeOptions(chunk_size=64))
    assert validate(tmp_path / "store") == []
    store = open_store(tmp_path / "store")
    assert store.metadata.band_names == bands
    assert [str(time)[:10] for time in store.times] == [f"{row[1][:4]}-{row[1][4:6]}-{row[1][6:]}" for row in rows[::4]]
    first = np.concatenate([pixels(Path(row[0])) for row in rows[:4]])
    mask = store.read_mask(0)
    assert mask is not None
    assert np.array_equal(store.read(0), first)
    assert mask.all()


def test_a_panchromatic_band_on_a_finer_grid_is_refused(realdata: Path, tmp_path: Path) -> None:
    scene = sorted((realdata / "landsat8_ny").glob("LC08_L1TP_013032_*"))[0]
    manifest = write_manifest(tmp_path / "m.csv", landsat_rows(scene, ("B4", "B8")))
    with pytest.raises(SourceProblemsError, match="its pixels are"):
        prepare(manifest)


def test_one_landsat_7_image_is_a_store_of_one_date(realdata: Path, tmp_path: Path) -> None:
    path = realdata / "geotiff" / "L7_ETMs.tif"
    manifest = write_manifest(tmp_path / "m.csv", [(str(path), "2000-07-01")])
    convert(manifest, tmp_path / "store")
    assert validate(tmp_path / "store") == []
    store = open_store(tmp_path / "store")
    assert np.array_equal(store.read(0), pixels(path))
    assert store.levels[0].shape[:2] == (1, 6)


def test_the_openeo_series_keeps_its_nodata_and_irregular_dates(realdata: Path, tmp_path: Path) -> None:
    files = sorted((realdata / "series_openeo").glob("*.tif"))
    rows = [(str(path), path.stem.split("_")[1].removesuffix("Z")) for path in files]
    convert(write_manifest(tmp_path / "m.csv", rows), tmp_path / "store", options=EncodeOptions(chunk_size=64))
    store = open_store(tmp_path / "store")
    assert validate(tmp_path / "store") == []
    assert store.nodata == -32768
    assert [str(time)[:10] for time in store.times] == ["2023-06-01", "2023-06-04", "2023-06-06"]
    assert all(np.array_equal(store.read(t), pixels(path)) for t, path in enumerate(files))


def test_a_png_with_a_world_file_and_no_crs_is_converted_with_the_crs_given(realdata: Path, tmp_path: Path) -> None:
    path = next((realdata / "png").glob("*.png"))
    manifest = write_manifest(tmp_path / "m.csv", [(str(path), "2014-04-01")])
    with pytest.raises(SourceProblemsError, match="it declares no CRS"):
        prepare(manifest)
    convert(manifest, tmp_path / "store", SourceOptions(crs="EPSG:3857"))
    assert validate(tmp_path / "store") == []
    store = open_store(tmp_path / "store")
    rgba = pixels(path)
    assert np.array_equal(store.read(0), rgba[:3])
    assert np.array_equal(store.read_mask(0), rgba[3] != 0)


def test_two_files_of_one_date_are_refused(realdata: Path, tmp_path: Path) -> None:
    rows = [(str(path), path.stem[:8]) for path in sorted((realdata / "series_mapserver").glob("*.tif"))]
    with pytest.raises(SourceProblemsError) as error:
        convert(write_manifest(tmp_path / "m.csv", rows), tmp_path / "store")
    assert len(error.value.problems) == 2


def test_mixed_crs_a_rotated_raster_and_a_raster_without_georeference_are_all_refused(
    realdata: Path, tmp_path: Path
) -> None:
    crs = realdata / "crs"
    rows = [
        (str(crs / "utmsmall_topleft_26711.tif"), "2024-01-01"),
        (str(crs / "utmsmall_topright_32611.tif"), "2024-01-02"),
    ]
    with pytest.raises(SourceProblemsError, match=r"its CRS is EPSG:32611, and the grid's EPSG:26711"):
        prepare(write_manifest(tmp_path / "m.csv", rows))
    odd = [(str(realdata / "odd" / "float_nan.tif"), "2024-01-01")]
    with pytest.raises(SourceProblemsError, match="it declares no CRS"):
        prepare(write_manifest(tmp_path / "o.csv", odd))
    rotated = [(str(realdata / "odd" / "rotated.tif"), "2024-01-01")]
    with pytest.raises(SourceProblemsError, match="rotated"):
        prepare(write_manifest(tmp_path / "r.csv", rotated), SourceOptions(crs="EPSG:32631"))


def test_an_internal_one_bit_mask_becomes_the_mask(realdata: Path, tmp_path: Path) -> None:
    path = realdata / "odd" / "test_with_mask_1bit.tif"
    header = raster_backend().header(str(path))
    assert header.mask
    manifest = write_manifest(tmp_path / "m.csv", [(str(path), "2024-01-01")])
    bounds = (0.0, 0.0, float(header.width), float(header.height))
    options = SourceOptions(crs="EPSG:32631", bounds=None if header.transform else bounds)
    convert(manifest, tmp_path / "store", options)
    mask = open_store(tmp_path / "store").read_mask(0)
    assert mask is not None
    raster = raster_backend().open(str(path))
    expected = raster.read_mask(slice(0, header.height), slice(0, header.width)) != 0
    raster.close()
    assert np.array_equal(mask, expected)


def test_a_class_map_keeps_its_indices_and_the_notes_warn_of_block_means(realdata: Path, tmp_path: Path) -> None:
    path = realdata / "geotiff" / "lc.tif"
    manifest = write_manifest(tmp_path / "m.csv", [(str(path), "2011-01-01")])
    assert any("colour table says" in note for note in prepare(manifest).notes)
    convert(manifest, tmp_path / "store")
    assert np.array_equal(open_store(tmp_path / "store").read(0), pixels(path))
