"""Arrays over time that are not rasters: chronozarr stores, and netCDF or Zarr variables through xarray."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from chronozarr_core.arrays import as_series
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.frames import FrameSeries
from chronozarr_core.model import Band
from chronozarr_core.storage import LocalStorage, read_json
from chronozarr_core.store import StoreSeries, open_store

DIMENSIONS = ("time", "band", "y", "x")


def open_series(path: Path, variable: str | None = None, crs: str | None = None) -> FrameSeries:
    """A chronozarr store, or a (time, band, y, x) variable of a netCDF file or Zarr group, as a frame series.

    Raises
    ------
    ChronozarrError
        Nothing there can be read as one; the message lists what was found.
    """
    if not path.exists():
        raise ChronozarrError(f"{path} does not exist: give a chronozarr store, a netCDF file or a Zarr group")
    root = read_json(LocalStorage(path), "zarr.json") if path.is_dir() else None
    if root is not None and "chronozarr" in root.get("attributes", {}):
        return StoreSeries(open_store(path))
    return variable_series(_open_dataset(path), str(path), variable, crs)


def _open_dataset(path: Path) -> Any:
    import xarray  # noqa: PLC0415  # slow to import, and no other command needs it

    engine = "zarr" if path.is_dir() else "netcdf4"
    try:
        return xarray.open_dataset(path, engine=engine, mask_and_scale=False, decode_coords="all")
    except (ValueError, OSError, ImportError, KeyError) as error:
        kind = "Zarr group" if path.is_dir() else "netCDF file"
        raise ChronozarrError(
            f"{path} does not open as a {kind}: {error}; rasters are for chronozarr convert"
        ) from error


def variable_series(dataset: Any, where: str, variable: str | None = None, crs: str | None = None) -> FrameSeries:
    """A variable of an xarray Dataset, opened without unpacking, as a frame series of its stored values."""
    array = dataset[_variable(dataset, where, variable)]
    attributes = {**array.encoding, **array.attrs}
    names = [str(name) for name in array.band.values] if "band" in array.coords else None
    names = names or [str(number + 1) for number in range(array.sizes["band"])]
    return as_series(
        array, crs=crs, bands=[_band(name, attributes) for name in names], nodata=_nodata(attributes, where)
    )


def _variable(dataset: Any, where: str, variable: str | None) -> str:
    fitting = [str(name) for name, array in dataset.data_vars.items() if array.dims == DIMENSIONS]
    if variable is None and len(fitting) == 1:
        return fitting[0]
    if variable in fitting:
        return variable
    found = ", ".join(f"{name} {array.dims}" for name, array in dataset.data_vars.items()) or "none"
    wanted = f"{variable!r} with" if variable else "exactly one with, or --variable that names one of"
    raise ChronozarrError(f"{where} holds the variables {found}: expected {wanted} dimensions {DIMENSIONS}")


def _band(name: str, attributes: Mapping[str, Any]) -> Band:
    scale, offset = attributes.get("scale_factor", 1.0), attributes.get("add_offset", 0.0)
    return Band(name, scale=float(scale), offset=float(offset), units=attributes.get("units"))


def _nodata(attributes: Mapping[str, Any], where: str) -> float | int | None:
    """The one declared fill value; NaN is left for the encoder to refuse where it occurs."""
    declared = {
        value
        for name in ("_FillValue", "missing_value")
        if (value := attributes.get(name)) is not None and not np.isnan(value)
    }
    if len(declared) > 1:
        raise ChronozarrError(f"{where} declares _FillValue and missing_value {sorted(declared)}: keep one of them")
    return np.asarray(next(iter(declared))).item() if declared else None
