"""xarray input: what the coordinates say, in memory and lazily from a netCDF file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyproj
import pytest

from chronozarr_core import ChronozarrError, encode, open_store
from tests.conftest import require
from tests.core.builders import CRS, TRANSFORM, drifting, files, grid_of, months, same_bits

xr: Any = require("xarray")

SHAPE = (4, 2, 21, 17)
DATA = drifting(SHAPE, "uint16")
OPTIONS: dict[str, Any] = {"chunk_size": 8, "workers": 2}


def array(**changes: Any) -> Any:
    """An in-memory series with every coordinate that names what a store needs."""
    grid = grid_of(SHAPE)
    coords = {"time": months(4).astype("datetime64[ns]"), "band": ["red", "nir"], "y": grid.y, "x": grid.x}
    wkt = pyproj.CRS.from_user_input(CRS).to_wkt()
    return xr.DataArray(DATA, coords | changes, ("time", "band", "y", "x")).assign_coords(
        spatial_ref=((), 0, {"crs_wkt": wkt})
    )


def test_coordinates_and_the_spatial_reference_say_all(tmp_path: Path) -> None:
    store = open_store(encode(array(), tmp_path / "out", **OPTIONS).path)
    assert (store.times == months(4)).all()
    assert store.metadata.band_names == ("red", "nir")
    assert (store.crs, store.levels[0].transform) == (CRS, TRANSFORM)
    for t in range(4):
        assert same_bits(store.read(t), DATA[t])


def test_arguments_come_before_coordinates(tmp_path: Path) -> None:
    other = {"crs": "EPSG:32632", "transform": (5, 0, 0, 0, -5, 0), "times": ["2001", "2002", "2003", "2004"]}
    other["times"] = [f"{year}-06-01" for year in other["times"]]
    store = open_store(encode(array(), tmp_path / "out", bands=["a", "b"], **other, **OPTIONS).path)
    assert (store.crs, store.levels[0].transform[0]) == ("EPSG:32632", 5.0)
    assert store.metadata.band_names == ("a", "b")
    assert store.metadata.times[0] == "2001-06-01T00:00:00Z"


def test_a_numpy_array_with_the_same_arguments_gives_the_same_files(tmp_path: Path) -> None:
    encode(array(), tmp_path / "xarray", **OPTIONS)
    encode(DATA, tmp_path / "numpy", crs=CRS, transform=TRANSFORM, times=months(4), bands=["red", "nir"], **OPTIONS)
    assert files(tmp_path / "xarray") == files(tmp_path / "numpy")


def test_a_store_read_as_a_data_array_encodes_to_the_same_values(tmp_path: Path) -> None:
    first = open_store(encode(array(), tmp_path / "first", **OPTIONS).path)
    again = open_store(encode(first.to_xarray(), tmp_path / "again", crs=first.crs, **OPTIONS).path)
    assert again.metadata == first.metadata
    assert same_bits(again.read(3), DATA[3])


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_a_lazy_netcdf_variable_equals_the_array_in_memory(tmp_path: Path, dtype: str) -> None:
    require("netCDF4")
    memory = array().astype(dtype)
    memory.rename("reflectance").to_netcdf(tmp_path / "series.nc")
    with xr.open_dataset(tmp_path / "series.nc", decode_coords="all", mask_and_scale=False) as opened:
        variable = opened["reflectance"]
        assert not variable.variable._in_memory
        encode(variable, tmp_path / "lazy", **OPTIONS)
        assert not variable.variable._in_memory
    encode(memory, tmp_path / "memory", **OPTIONS)
    assert files(tmp_path / "lazy") == files(tmp_path / "memory")


def test_masks_and_coverage_may_be_data_arrays(tmp_path: Path) -> None:
    valid = array().isel(band=0, drop=True) % 2 == 0
    counts = valid.astype("uint8") * 3
    store = open_store(encode(array(), tmp_path / "out", mask=valid, coverage=counts, **OPTIONS).path)
    assert (store.read_mask(2) == valid.values[2]).all()
    assert (store.read_coverage(2) == counts.values[2]).all()


def test_bands_without_names_are_numbered(tmp_path: Path) -> None:
    store = open_store(encode(array().drop_vars("band"), tmp_path / "a", **OPTIONS).path)
    assert store.metadata.band_names == ("1", "2")
    numbered = array(band=[4, 8])
    assert open_store(encode(numbered, tmp_path / "b", **OPTIONS).path).metadata.band_names == ("4", "8")


REFUSALS = {
    "dimension names": (lambda: array().rename(band="channel"), r"dimensions \('time', 'channel', 'y', 'x'\)"),
    "order": (lambda: array().transpose("band", "time", "y", "x"), "rename and transpose them"),
    "three": (lambda: array().isel(band=0), r"dimensions \('time', 'y', 'x'\).*expand_dims"),
    "south up": (lambda: array().sortby("y"), "y increases: a store is north up; use data.sortby"),
    "east to west": (lambda: array().sortby("x", ascending=False), "not north up"),
    "irregular x": (lambda: array(x=np.geomspace(1, 9, 17)), "the x coordinates are not evenly spaced"),
    "irregular y": (lambda: array(y=-np.geomspace(1, 9, 21)), "the y coordinates are not evenly spaced"),
    "constant x": (lambda: array(x=np.ones(17)), "the x coordinates are not evenly spaced"),
    "NaN x": (lambda: array(x=np.full(17, np.nan)), "not evenly spaced|not finite"),
    "one pixel": (lambda: array().isel(x=[0]), "one x coordinate does not tell the pixel size: pass transform="),
    "no x": (lambda: array().drop_vars("x"), "carry no x and y coordinates"),
    "no time": (lambda: array().drop_vars("time"), "carry no times"),
    "no crs": (lambda: array().drop_vars("spatial_ref"), "carry no CRS"),
    "repeated time": (lambda: array(time=np.array(["2024-01-01"] * 4, "datetime64[ns]")), "strictly increasing"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_coordinates_that_a_store_cannot_hold_are_refused(tmp_path: Path, name: str) -> None:
    make, message = REFUSALS[name]
    with pytest.raises(ChronozarrError, match=message):
        encode(make(), tmp_path / "out", **OPTIONS)
    assert list(tmp_path.iterdir()) == []


def test_coordinates_off_by_rounding_are_regular(tmp_path: Path) -> None:
    x = np.float32(0.1) * np.arange(17, dtype=np.float32) + np.float32(12)
    store = open_store(encode(array(x=x), tmp_path / "out", **OPTIONS).path)
    assert store.levels[0].transform[0] == pytest.approx(0.1, rel=1e-5)
