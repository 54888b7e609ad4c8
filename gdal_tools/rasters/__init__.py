"""GDAL behind one port, with two bindings: rasterio, and the ``osgeo`` that QGIS brings."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import lru_cache

from chronozarr_core.errors import ChronozarrError
from gdal_tools.rasters.port import (
    RESAMPLING,
    BandHeader,
    GeoTiffWriter,
    Raster,
    RasterBackend,
    RasterError,
    RasterHeader,
    Warp,
)

__all__ = [
    "RESAMPLING",
    "BandHeader",
    "GeoTiffWriter",
    "Raster",
    "RasterBackend",
    "RasterError",
    "RasterHeader",
    "Warp",
    "raster_backend",
]

VARIABLE = "CHRONOZARR_GDAL"
BINDINGS = ("rasterio", "osgeo")


def raster_backend() -> RasterBackend:
    """The binding of GDAL to use: ``CHRONOZARR_GDAL``; inside QGIS its own osgeo; else rasterio, else osgeo.

    Raises
    ------
    ChronozarrError
        ``CHRONOZARR_GDAL`` names no binding, or none can be imported.
    """
    return _backend(_choice())


def _choice() -> str:
    asked = os.environ.get(VARIABLE)
    if asked:
        if asked not in BINDINGS:
            raise ChronozarrError(f"{VARIABLE} is {asked!r}: expected one of {', '.join(BINDINGS)}")
        return asked
    if "qgis" in sys.modules or importlib.util.find_spec("rasterio") is None:
        return "osgeo"
    return "rasterio"


@lru_cache
def _backend(name: str) -> RasterBackend:
    try:
        if name == "rasterio":
            from gdal_tools.rasters._rasterio import RasterioBackend  # noqa: PLC0415 - the other may be missing

            return RasterioBackend()
        from gdal_tools.rasters._osgeo import OsgeoBackend  # noqa: PLC0415

        return OsgeoBackend()
    except ImportError as error:
        raise ChronozarrError(f"GDAL's binding {name} cannot be imported ({error}): pip install rasterio") from error
