"""What this project asks of GDAL, whichever binding answers: headers, rows, warped views, GeoTIFFs, COG copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.errors import ChronozarrError
from chronozarr_core.grid import RasterGrid, Transform

CACHE_BYTES = 64 * 1024 * 1024
"""GDAL's block cache, which belongs to the process, is bounded: memory may not grow with the raster."""

RESAMPLING = ("nearest", "bilinear", "cubic", "average", "mode", "min", "max", "med")


class RasterError(ChronozarrError):
    """GDAL cannot open, read or write a raster; the message names it and says why."""


@dataclass(frozen=True)
class BandHeader:
    """One band as the file declares it.

    Attributes
    ----------
    dtype : numpy name of the stored type, for example ``uint16``
    nodata : the declared value, NaN and infinities included; None where none is declared
    scale, offset, unit : 1, 0 and "" where none is declared
    description : "" where none is declared
    color : GDAL's colour interpretation in lower case: ``gray``, ``red``, ``alpha``, ``palette``, ``undefined`` ...
    """

    dtype: str
    nodata: int | float | None = None
    scale: float = 1.0
    offset: float = 0.0
    unit: str = ""
    description: str = ""
    color: str = "undefined"


@dataclass(frozen=True)
class RasterHeader:
    """What a raster says of itself before any pixel is read.

    Attributes
    ----------
    uri : as given to GDAL
    driver : GDAL's short name, for example ``GTiff``
    bands : every band, the alpha band included
    transform : affine order, pixel corners; None where the raster has no geotransform (GDAL's identity default)
    crs_wkt : WKT of the CRS, None where there is none
    mask : True where a mask of the whole dataset exists that is neither nodata nor an alpha band
    tags : the dataset's own metadata items (``TIFFTAG_DATETIME``, ``AREA_OR_POINT`` ...)
    block_height : rows of one block
    """

    uri: str
    driver: str
    width: int
    height: int
    bands: tuple[BandHeader, ...]
    transform: Transform | None
    crs_wkt: str | None
    mask: bool = False
    block_height: int = 1
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def alpha(self) -> int | None:
        """Index of the alpha band, from 0; None where there is none."""
        return next((i for i, band in enumerate(self.bands) if band.color == "alpha"), None)


@dataclass(frozen=True)
class Warp:
    """A raster seen on another grid.

    Attributes
    ----------
    grid : the target
    resampling : one of :data:`RESAMPLING`
    source_crs : CRS (code or WKT) of a raster that declares none; None leaves the declared one
    source_transform : geotransform of a raster that declares none; None leaves the declared one
    source_nodata : the value of missing source pixels, where the file does not declare it
    ignore_declared_nodata : the nodata that the file declares is data
    nodata : the value that stands for "no source here"; None makes an alpha band of it, in the place of the source's
        own or after the last, that is nonzero where there is a source pixel that is valid in every band
    """

    grid: RasterGrid
    resampling: str
    source_crs: str | None = None
    source_transform: Transform | None = None
    source_nodata: int | float | None = None
    ignore_declared_nodata: bool = False
    nodata: int | float | None = None

    def missing(self, source: RasterHeader) -> int | float | None:
        """The value of missing source pixels; None where there is none, or a mask or alpha band says which they are."""
        if self.source_nodata is not None:
            return self.source_nodata
        if self.ignore_declared_nodata or source.mask or source.alpha is not None:
            return None
        return source.bands[0].nodata

    def source_missing(self, source: RasterHeader) -> int | float | None:
        """What of :meth:`missing` GDAL is told: beside a mask nothing, or it would forget the mask.

        Raises
        ------
        RasterError
            The source has a mask and a nodata value is given, and the resampling would mix that value into others.
        """
        if not source.mask or self.source_nodata is None:
            return self.missing(source)
        if self.resampling == "nearest":
            return None
        raise RasterError(
            f"cannot warp {source.uri} by {self.resampling}: it has a mask, and GDAL does not warp by a mask and the "
            f"nodata value {self.source_nodata} at once; use nearest, or put the value into the mask first"
        )

    def options(self, missing: int | float | None) -> dict[str, str]:
        """GDAL's warp options: nodata is each band's own, and under an alpha band missing pixels keep their value."""
        options = {"UNIFIED_SRC_NODATA": "NO", "NUM_THREADS": "1"}
        return options if self.nodata is not None or missing is None else options | {"INIT_DEST": repr(missing)}


class Raster(Protocol):
    """An open raster (or warped view of one). Not for two threads at once; any thread, one after the other."""

    @property
    def header(self) -> RasterHeader: ...

    def read(self, rows: slice, cols: slice) -> NDArray[Any]:
        """All bands of a window, shape (band, rows, cols), in the file's dtype, nothing scaled.

        Raises
        ------
        RasterError
            The pixels cannot be read (a truncated file, a failed download).
        """
        ...

    def read_mask(self, rows: slice, cols: slice) -> NDArray[np.uint8]:
        """The dataset mask of a window, shape (rows, cols): nonzero is valid."""
        ...

    def close(self) -> None: ...


class GeoTiffWriter(Protocol):
    """A GeoTIFF being written, from top to bottom."""

    def write(self, row: int, data: NDArray[Any], mask: NDArray[np.uint8] | None) -> None:
        """Write full-width rows from ``row`` on: data (band, rows, x), mask (rows, x) with 1 or nonzero valid."""
        ...


class RasterBackend(Protocol):
    """One binding of GDAL."""

    @property
    def name(self) -> str:
        """``rasterio`` or ``osgeo``."""
        ...

    @property
    def gdal_version(self) -> tuple[int, int, int]: ...

    def header(self, uri: str) -> RasterHeader:
        """Open, describe, close. A container with exactly one subdataset is that subdataset.

        Raises
        ------
        RasterError
            GDAL cannot open it, or it holds no raster, or several subdatasets (the message lists them).
        """
        ...

    def open(self, uri: str, warp: Warp | None = None) -> Raster:
        """Open for reading, seen through ``warp`` where one is given."""
        ...

    def suggest_grid(
        self, uri: str, crs: str, source_crs: str | None, source_transform: Transform | None
    ) -> RasterGrid:
        """The grid that GDAL suggests for the raster in ``crs`` (same pixel count along the diagonal)."""
        ...

    def create_geotiff(
        self, path: Path, width: int, height: int, bands: int, dtype: str, *, mask: bool, block_size: int
    ) -> AbstractContextManager[GeoTiffWriter]:
        """A new uncompressed tiled GeoTIFF without georeferencing, with an internal mask where ``mask``."""
        ...

    def copy_cog(self, source: Path, target: Path, options: Mapping[str, str]) -> None:
        """Copy a raster (a VRT) to a COG through GDAL's COG driver with its creation options.

        Raises
        ------
        RasterError
            GDAL cannot write the file; nothing of it stays behind.
        """
        ...


def hide_missing(window: NDArray[Any], missing: int | float | None, alpha: int | None) -> NDArray[Any]:
    """A window, shape (band, rows, cols), whose alpha band is 0 where any other band holds ``missing``.

    GDAL's own alpha is 0 only where every band misses its value.
    """
    if missing is not None and alpha is not None:
        for number, band in enumerate(window):
            if number != alpha:
                window[alpha][np.isnan(band) if np.isnan(missing) else band == missing] = 0
    return window


def check_arrived(path: Path, pixels: int) -> None:
    """Raise unless a file holds the bytes of its pixels: on a full disk GDAL closes one without an error."""
    size = path.stat().st_size
    if size < pixels:
        raise RasterError(f"cannot write {path}: only {size} of {pixels} bytes arrived; is the disk full?")


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """A name beside the target to write to: renamed to it at the end, removed on failure."""
    partial = target.with_name(target.name + ".partial")
    try:
        yield partial
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
