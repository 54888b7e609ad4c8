"""Arrays as frame series: numpy arrays, and xarray DataArrays that bring their coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.dtypes import Nodata, check_dtype, check_nodata, default_nodata
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.frames import Strip
from chronozarr_core.grid import GRID_TOLERANCE, RasterGrid, Transform
from chronozarr_core.instants import Instants, as_instants, check_increasing
from chronozarr_core.model import Band, Provenance


class ArraySeries:
    """Frames held in arrays, or in lazy ones that load what is sliced from them.

    Parameters
    ----------
    data : array of a store dtype, shape (time, band, y, x), north up
    grid, times, bands : what the axes mean; times strictly increasing
    nodata : a number, None, or ``"default"``: 0 for unsigned integers, else None (§2.3)
    mask : array of bool or 0 and 1, shape (time, y, x), optional
    coverage : array of integers, shape (time, y, x), optional; counts above 255 saturate (§2.5)

    Raises
    ------
    ChronozarrError
        A shape, dtype, time, band name or nodata value that a store cannot hold.
    """

    random_access = True
    fingerprint = ""

    def __init__(
        self,
        data: Any,
        *,
        grid: RasterGrid,
        times: Any,
        bands: Sequence[str | Band | Mapping[str, Any]],
        nodata: Nodata | str = "default",
        mask: Any = None,
        coverage: Any = None,
        provenance: Provenance | Mapping[str, Any] | None = None,
    ) -> None:
        self.dtype = check_dtype(data.dtype)
        self.grid = grid
        self.times: Instants = as_instants(times)
        self.bands = as_bands(bands)
        self.nodata = default_nodata(self.dtype) if nodata == "default" else check_nodata(nodata, self.dtype)  # type: ignore[arg-type]
        self.provenance = Provenance.from_json(provenance) if isinstance(provenance, Mapping) else provenance
        self._data, self._mask, self._coverage = data, mask, coverage
        check_increasing(self.times)
        self._check_shapes()

    def _check_shapes(self) -> None:
        if not len(self.times):
            raise ChronozarrError("the data hold none: a store needs at least one timestep")
        frame = (self.grid.height, self.grid.width)
        expected = (len(self.times), len(self.bands), *frame)
        if tuple(self._data.shape) != expected:
            raise ChronozarrError(
                f"data has shape {tuple(self._data.shape)}: expected (time, band, y, x) = {expected} "
                "from the times, bands and grid"
            )
        for name, plane in (("mask", self._mask), ("coverage", self._coverage)):
            if plane is not None and tuple(plane.shape) != (len(self.times), *frame):
                raise ChronozarrError(
                    f"{name} has shape {tuple(plane.shape)}: expected (time, y, x) = {(len(self.times), *frame)}"
                )
            if plane is not None and np.dtype(plane.dtype).kind not in "bui":
                raise ChronozarrError(f"{name} has dtype {plane.dtype}: expected bool or integers")

    @property
    def has_mask(self) -> bool:
        return self._mask is not None

    @property
    def has_coverage(self) -> bool:
        return self._coverage is not None

    def read(self, t: int, rows: slice, cols: slice = slice(None)) -> Strip:
        data = np.asarray(self._data[t, :, rows, cols], self.dtype)
        mask = None if self._mask is None else _as_mask(np.asarray(self._mask[t, rows, cols]), t)
        coverage = None if self._coverage is None else _as_coverage(np.asarray(self._coverage[t, rows, cols]), t)
        return Strip(data, mask, coverage)

    def release(self, t: int) -> None:
        """Nothing is held open."""


def _as_mask(plane: NDArray[Any], t: int) -> NDArray[np.uint8]:
    values = plane.astype(np.uint8)
    if (values != plane).any() or (values > 1).any():
        raise ChronozarrError(f"mask of timestep {t} holds values other than 0 and 1: give validity as bool (§2.4)")
    return values


def _as_coverage(plane: NDArray[Any], t: int) -> NDArray[np.uint8]:
    if plane.dtype.kind == "i" and plane.min(initial=0) < 0:
        raise ChronozarrError(
            f"coverage of timestep {t} holds negative counts: expected numbers of observations (§2.5)"
        )
    saturated: NDArray[np.uint8] = np.minimum(plane, 255).astype(np.uint8)
    return saturated


def as_bands(bands: Sequence[str | Band | Mapping[str, Any]]) -> tuple[Band, ...]:
    """Bands given as names, band objects (§3.6) or :class:`Band`; names must be unique and not empty."""
    made = tuple(band if isinstance(band, Band) else Band.from_json(band) for band in bands)
    names: list[object] = [band.name for band in made]
    if not names:
        raise ChronozarrError("a store needs at least one band")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ChronozarrError(f"band name {name!r} is empty or not text: name every band")
        if names.count(name) > 1:
            raise ChronozarrError(f"band name {name!r} is given {names.count(name)} times: names must be unique (§3.6)")
    for band in made:
        _check_number(band, "scale", band.scale)
        _check_number(band, "offset", band.offset)
    return made


def _check_number(band: Band, member: str, value: object) -> None:
    if not isinstance(value, int | float | np.number) or not np.isfinite(value):
        raise ChronozarrError(f"band {band.name!r} has {member} {value!r}: expected a finite number (§3.6)")


def as_series(
    data: Any,
    *,
    crs: str | None = None,
    transform: Sequence[float] | None = None,
    times: Any = None,
    bands: Sequence[str | Band | Mapping[str, Any]] | None = None,
    nodata: Nodata | str = "default",
    mask: Any = None,
    coverage: Any = None,
    provenance: Provenance | Mapping[str, Any] | None = None,
) -> ArraySeries:
    """A numpy array, or an xarray DataArray whose coordinates say what is not given here, as a series.

    ``data`` has dimensions (time, band, y, x), ``y`` decreasing. Of a DataArray, ``time``, ``band``, ``y``, ``x`` and
    the CF ``spatial_ref`` coordinates are read.

    Raises
    ------
    ChronozarrError
        What the array is, or means, is not known: the message says which argument tells it.
    """
    coords = _coordinates(data)
    if getattr(data, "ndim", None) != 4:
        raise ChronozarrError(
            f"data has {getattr(data, 'ndim', 'no')} dimensions: expected 4, (time, band, y, x); "
            "give a single band an axis of length 1"
        )
    times = coords.get("time") if times is None else times
    if times is None:
        raise ChronozarrError("the data carry no times: pass times=, one ISO-8601 date for each timestep")
    grid = _grid(coords, data.shape, crs, transform)
    return ArraySeries(
        data.variable if hasattr(data, "variable") else data,
        grid=grid,
        times=times,
        bands=bands if bands is not None else _band_names(coords, data.shape[1]),
        nodata=nodata,
        mask=mask,
        coverage=coverage,
        provenance=provenance,
    )


def _coordinates(data: Any) -> dict[str, Any]:
    """The coordinates of a DataArray, and its CRS as ``crs``; nothing of a plain array."""
    if not hasattr(data, "coords"):
        return {}
    if tuple(data.dims) != ("time", "band", "y", "x"):
        raise ChronozarrError(
            f"data has dimensions {tuple(data.dims)}: expected (time, band, y, x); "
            "rename and transpose them, and use expand_dims for one that is missing"
        )
    coords = {name: data.coords[name].values for name in ("time", "band", "y", "x") if name in data.coords}
    if "spatial_ref" in data.coords:
        attributes = data.coords["spatial_ref"].attrs
        coords["crs"] = attributes.get("crs_wkt") or attributes.get("spatial_ref")
    return coords


def _band_names(coords: Mapping[str, Any], n_band: int) -> list[str]:
    if "band" in coords:
        return [str(name) for name in coords["band"]]
    return [str(number + 1) for number in range(n_band)]


def _grid(
    coords: Mapping[str, Any], shape: Sequence[int], crs: str | None, transform: Sequence[float] | None
) -> RasterGrid:
    crs = crs or coords.get("crs")
    if crs is None:
        raise ChronozarrError('the data carry no CRS: pass crs=, for example crs="EPSG:32631"')
    if transform is not None:
        if len(transform) != 6:
            raise ChronozarrError(f"transform has {len(transform)} members: expected six, a, b, c, d, e, f")
        return RasterGrid(crs, _six(*transform), int(shape[2]), int(shape[3]))
    if "x" not in coords or "y" not in coords:
        raise ChronozarrError("the data carry no x and y coordinates: pass transform=(a, b, c, d, e, f)")
    a, left = _axis("x", coords["x"])
    e, top = _axis("y", coords["y"])
    if e > 0:
        raise ChronozarrError('y increases: a store is north up; use data.sortby("y", ascending=False)')
    return RasterGrid(crs, (a, 0.0, left, 0.0, e, top), int(shape[2]), int(shape[3]))


def _six(a: float, b: float, c: float, d: float, e: float, f: float) -> Transform:
    return (float(a), float(b), float(c), float(d), float(e), float(f))


def _axis(name: str, centres: Any) -> tuple[float, float]:
    """Step and outer edge of a regular axis of pixel centres."""
    centres = np.asarray(centres, np.float64)
    if centres.size < 2:
        raise ChronozarrError(f"one {name} coordinate does not tell the pixel size: pass transform=(a, b, c, d, e, f)")
    step = float(centres[-1] - centres[0]) / (centres.size - 1)
    steady = centres[0] + step * np.arange(centres.size)
    if not step or np.abs(centres - steady).max() > abs(step) * GRID_TOLERANCE:
        raise ChronozarrError(f"the {name} coordinates are not evenly spaced: resample the data to a regular grid")
    return step, float(centres[0]) - step / 2
