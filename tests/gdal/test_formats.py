"""Formats beside GeoTIFF and PNG: values come through whatever driver GDAL opens the file with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chronozarr_core import open_store
from gdal_tools.convert import convert, prepare
from gdal_tools.problems import SourceProblemsError
from gdal_tools.rasters import RasterError, raster_backend
from gdal_tools.sources import SourceOptions
from tests.conftest import require
from tests.gdal.builders import CRS, TRANSFORM, frame, write_manifest, write_tif


def copied(source: Path, target: Path, driver: str, **options: str) -> Path:
    """A GeoTIFF copied to another format with the binding at hand."""
    if raster_backend().name == "rasterio":
        shutil = require("rasterio.shutil")
        shutil.copy(source, target, driver=driver, **options)
    else:
        gdal = require("osgeo.gdal")
        creation = [f"{name}={value}" for name, value in options.items()]
        gdal.GetDriverByName(driver).CreateCopy(str(target), gdal.Open(str(source)), 1, creation)
    return target


def store_of(tmp_path: Path, name: str, **options: Any) -> Any:
    convert(write_manifest(tmp_path / "m.csv", [(name, "2024-01-01")]), tmp_path / "store", SourceOptions(**options))
    return open_store(tmp_path / "store")


@pytest.mark.parametrize(
    ("driver", "suffix", "options"),
    [
        ("ENVI", ".bil", {"INTERLEAVE": "BIL"}),
        ("ENVI", ".bsq", {"INTERLEAVE": "BSQ"}),
        ("JP2OpenJPEG", ".jp2", {"REVERSIBLE": "YES", "QUALITY": "100"}),
        ("HFA", ".img", {}),
        ("VRT", ".vrt", {}),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
def test_values_grid_and_crs_come_through(
    tmp_path: Path, driver: str, suffix: str, options: dict[str, str], dtype: str
) -> None:
    data = frame(bands=2, height=70, width=90, dtype=dtype)
    copied(write_tif(tmp_path / "a.tif", data), tmp_path / f"b{suffix}", driver, **options)
    store = store_of(tmp_path, f"b{suffix}")
    assert np.array_equal(store.read(0), data)
    assert (store.crs, store.grids[0].transform) == (CRS, TRANSFORM)


def hdf5(path: Path, *variables: str) -> Any:
    """An HDF5 file with a 2-D dataset for each name, written by the netCDF library."""
    netcdf = require("netCDF4")
    data = np.arange(30, dtype="int16").reshape(5, 6)
    with netcdf.Dataset(path, "w") as file:
        file.createDimension("y", 5)
        file.createDimension("x", 6)
        for name in variables:
            file.createVariable(name, "i2", ("y", "x"))[:] = data
    return data


def test_an_hdf5_container_with_one_dataset_is_that_dataset(tmp_path: Path) -> None:
    data = hdf5(tmp_path / "a.h5", "ndvi")
    bounds = (500000.0, 4999950.0, 500060.0, 5000000.0)
    store = store_of(tmp_path, "a.h5", crs=CRS, bounds=bounds)
    assert np.array_equal(store.read(0)[0], data)
    assert store.grids[0].transform == TRANSFORM


def test_a_container_with_several_datasets_lists_them(tmp_path: Path) -> None:
    hdf5(tmp_path / "a.h5", "ndvi", "evi")
    with pytest.raises(RasterError, match=r"it holds 2 subdatasets \(.*ndvi.*\); name one of them"):
        raster_backend().header(str(tmp_path / "a.h5"))


def test_grib_is_float64_to_gdal_and_refused_with_the_conversion_that_helps(tmp_path: Path) -> None:
    grid = {"transform": (0.5, 0.0, 10.0, 0.0, -0.5, 50.0), "crs": "EPSG:4326"}
    data = np.arange(12, dtype="float32").reshape(1, 3, 4)
    grib = copied(write_tif(tmp_path / "a.tif", data, **grid), tmp_path / "a.grib2", "GRIB")
    with pytest.raises(SourceProblemsError, match=r"its data type is float64, .* for example with gdal_translate -ot"):
        prepare(write_manifest(tmp_path / "m.csv", [("a.grib2", "2024-01-01")]))
    raster = raster_backend().open(str(grib))
    assert np.array_equal(raster.read(slice(0, 3), slice(0, 4)), data)
    raster.close()
