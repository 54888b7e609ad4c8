"""GDAL through rasterio: the binding of a pip installation."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
import rasterio.shutil
from numpy.typing import NDArray
from rasterio._err import CPLE_BaseError
from rasterio.crs import CRS
from rasterio.enums import MaskFlags, Resampling
from rasterio.errors import NotGeoreferencedWarning, RasterioError
from rasterio.transform import array_bounds
from rasterio.vrt import WarpedVRT
from rasterio.warp import calculate_default_transform
from rasterio.windows import Window

from chronozarr_core.errors import ChronozarrError
from chronozarr_core.grid import RasterGrid, Transform
from gdal_tools.rasters.port import (
    CACHE_BYTES,
    BandHeader,
    GeoTiffWriter,
    Raster,
    RasterError,
    RasterHeader,
    Warp,
    check_arrived,
    hide_missing,
    written_whole,
)

TOLERANCE = 1e-6
"""Pixels by which GDAL may approximate a transformation; 0, which would say exactly, makes rasterio fail."""
_FAILURES = (RasterioError, CPLE_BaseError, ValueError, OSError)  # rasterio.shutil raises GDAL's own

# A raster without a geotransform is an expected input, answered with transform None.
warnings.filterwarnings("ignore", category=NotGeoreferencedWarning)


class RasterioBackend:
    """See :class:`gdal_tools.rasters.port.RasterBackend`."""

    name = "rasterio"

    @property
    def gdal_version(self) -> tuple[int, int, int]:
        major, minor, patch = (int(part) for part in rasterio.__gdal_version__.split(".")[:3])
        return major, minor, patch

    def header(self, uri: str) -> RasterHeader:
        with _opened(uri) as dataset:
            return describe(dataset, uri)

    def open(self, uri: str, warp: Warp | None = None) -> Raster:
        return RasterioRaster(uri, warp)

    def suggest_grid(
        self, uri: str, crs: str, source_crs: str | None, source_transform: Transform | None
    ) -> RasterGrid:
        with _environment(), _translated(f"cannot warp {uri} to {crs}"), _opened(uri) as dataset:
            if source_transform is not None:
                return _suggested(dataset, crs, source_crs, source_transform)
            with WarpedVRT(dataset, crs=crs, **_source_arguments(source_crs, None)) as view:
                return RasterGrid(crs, tuple(view.transform)[:6], view.height, view.width)

    @contextlib.contextmanager
    def create_geotiff(
        self, path: Path, width: int, height: int, bands: int, dtype: str, *, mask: bool, block_size: int
    ) -> Iterator[GeoTiffWriter]:
        profile = {
            "driver": "GTiff", "width": width, "height": height, "count": bands, "dtype": dtype, "tiled": True,
            "blockxsize": block_size, "blockysize": block_size, "bigtiff": "IF_SAFER",
        }  # fmt: skip
        with (
            _translated(f"cannot write {path}"),
            _environment(GDAL_TIFF_INTERNAL_MASK=True),
            rasterio.open(path, "w", **profile) as target,
        ):
            yield _Writer(target, mask)
        check_arrived(path, width * height * bands * np.dtype(dtype).itemsize)

    def copy_cog(self, source: Path, target: Path, options: Mapping[str, str]) -> None:
        with (
            written_whole(target) as partial,
            _translated(f"cannot write {target}"),
            _environment(GDAL_PAM_ENABLED=False),
        ):
            rasterio.shutil.copy(source, partial, driver="COG", **options)


def _suggested(dataset: Any, crs: str, source_crs: str | None, transform: Transform) -> RasterGrid:
    """What GDAL suggests for a raster without a geotransform, which no warped view of rasterio can be given."""
    height, width = dataset.shape
    bounds = array_bounds(height, width, rasterio.Affine(*transform))
    suggested, columns, rows = calculate_default_transform(source_crs or dataset.crs, crs, width, height, *bounds)
    return RasterGrid(crs, tuple(suggested)[:6], rows, columns)


class _Writer:
    def __init__(self, target: Any, mask: bool) -> None:
        self._target, self._mask = target, mask

    def write(self, row: int, data: NDArray[Any], mask: NDArray[np.uint8] | None) -> None:
        window = Window(0, row, data.shape[2], data.shape[1])
        self._target.write(data, window=window)
        if self._mask and mask is not None:
            self._target.write_mask((mask != 0).astype(np.uint8) * 255, window=window)


class RasterioRaster:
    """See :class:`gdal_tools.rasters.port.Raster`."""

    def __init__(self, uri: str, warp: Warp | None) -> None:
        self._uri = uri
        # Closed by callbacks, not as context managers: those tie a dataset to the thread that opened it.
        self._stack = contextlib.ExitStack()
        source = self._keep(_opened(uri))
        self._missing = None if warp is None else warp.missing(describe(source, uri))
        try:
            with _environment(), _translated(f"cannot warp {uri}"):
                self._dataset = source if warp is None else self._keep(_view(source, uri, warp))
        except RasterError:
            self._stack.close()
            raise
        self.header = describe(self._dataset, uri)

    def _keep(self, dataset: Any) -> Any:
        self._stack.callback(dataset.close)
        return dataset

    def read(self, rows: slice, cols: slice) -> NDArray[Any]:
        with _environment(), _translated(f"cannot read rows {rows.start} to {rows.stop} of {self._uri}"):
            window = np.asarray(self._dataset.read(window=Window.from_slices(rows, cols)))
        return hide_missing(window, self._missing, self.header.alpha)

    def read_mask(self, rows: slice, cols: slice) -> NDArray[np.uint8]:
        with _environment(), _translated(f"cannot read the mask of {self._uri}"):
            return np.asarray(self._dataset.dataset_mask(window=Window.from_slices(rows, cols)))

    def close(self) -> None:
        self._stack.close()


def _view(source: Any, uri: str, warp: Warp) -> Any:
    """A warped view of an open dataset."""
    missing = warp.source_missing(describe(source, uri))
    transform = rasterio.Affine(*warp.grid.transform)
    arguments = {
        "crs": warp.grid.crs, "transform": transform, "width": warp.grid.width, "height": warp.grid.height,
        "resampling": Resampling[warp.resampling], "tolerance": TOLERANCE,
        "src_nodata": missing, "nodata": warp.nodata, **warp.options(missing),
        **_source_arguments(warp.source_crs, warp.source_transform),
    }  # fmt: skip
    if warp.nodata is None:
        arguments["init_dest_nodata"] = False
        arguments["add_alpha"] = not any(band.name == "alpha" for band in source.colorinterp)
    return WarpedVRT(source, **arguments)


def _source_arguments(crs: str | None, transform: Transform | None) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if crs is not None:
        arguments["src_crs"] = CRS.from_user_input(crs)
    if transform is not None:
        arguments["src_transform"] = rasterio.Affine(*transform)
    return arguments


def describe(dataset: Any, uri: str) -> RasterHeader:
    """The header of an open dataset."""
    flags = dataset.mask_flag_enums[0]
    bands = zip(
        dataset.dtypes, dataset.nodatavals, dataset.scales, dataset.offsets, dataset.units, dataset.descriptions,
        dataset.colorinterp, strict=True,
    )  # fmt: skip
    return RasterHeader(
        uri=uri,
        driver=dataset.driver,
        width=dataset.width,
        height=dataset.height,
        bands=tuple(
            BandHeader(str(dtype), nodata, scale, offset, unit or "", description or "", color.name)
            for dtype, nodata, scale, offset, unit, description, color in bands
        ),
        transform=None if dataset.transform.is_identity else tuple(dataset.transform)[:6],
        crs_wkt=dataset.crs.to_wkt() if dataset.crs else None,
        mask=MaskFlags.per_dataset in flags and MaskFlags.alpha not in flags and MaskFlags.nodata not in flags,
        block_height=dataset.block_shapes[0][0],
        tags=dict(dataset.tags()),
    )


def _opened(uri: str) -> Any:
    """The dataset at a URI; of a container with one subdataset, that one.

    GDAL's settings belong to a thread, the dataset does not: it is closed by whoever has it last.
    """
    with _environment(), _translated(f"cannot open source {uri}"):
        dataset = rasterio.open(uri)
        if dataset.count:
            return dataset
        with dataset:
            return rasterio.open(_only_subdataset(dataset, uri))


def _only_subdataset(dataset: Any, uri: str) -> str:
    names: list[str] = dataset.subdatasets
    if len(names) == 1:
        return names[0]
    found = f"{len(names)} subdatasets ({', '.join(names[:10])})" if names else "no raster band"
    raise RasterError(f"cannot open source {uri}: it holds {found}; name one of them as the uri")


def _environment(**options: Any) -> Any:
    """GDAL's block cache is bounded, since memory may not grow with the raster."""
    return rasterio.Env(GDAL_CACHEMAX=CACHE_BYTES, **options)


@contextlib.contextmanager
def _translated(action: str) -> Iterator[None]:
    try:
        yield
    except ChronozarrError:
        raise
    except _FAILURES as error:
        reason = str(error.__cause__ or error).strip()
        raise RasterError(f"{action}: {reason}") from error
