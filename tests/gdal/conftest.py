"""The binding of GDAL under test: every one that can be imported here, or the one that CHRONOZARR_GDAL names."""

from __future__ import annotations

import importlib.util
import os

import pytest

from gdal_tools.rasters import RasterBackend, raster_backend


def bindings() -> list[str]:
    """rasterio and osgeo never meet in one process: each brings a GDAL of its own."""
    named = os.environ.get("CHRONOZARR_GDAL")
    return [named] if named else [name for name in ("rasterio", "osgeo") if importlib.util.find_spec(name)][:1]


@pytest.fixture(params=bindings())
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> RasterBackend:
    """The adapter of one binding."""
    monkeypatch.setenv("CHRONOZARR_GDAL", request.param)
    return raster_backend()
